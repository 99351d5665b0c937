/* SPDX-License-Identifier: BSD-3-Clause */
/* The version in "version", "stats", -V and -h. */
#ifndef FS_CONF_VERSION_H
#define FS_CONF_VERSION_H

#define FS_VERSION "0.1.0"

#endif
