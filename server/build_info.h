/* SPDX-License-Identifier: BSD-3-Clause */
/* The lines that "flashield --version" adds about this very program. tools/build-info.sh makes the source, for the daemon
   alone, so that a commit links nothing else anew. Constant. */
#ifndef FS_SERVER_BUILD_INFO_H
#define FS_SERVER_BUILD_INFO_H

extern const char build_info[]; /* "commit ...\ncompiler ...\nlibraries ...\n" */

#endif
