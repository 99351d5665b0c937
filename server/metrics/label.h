/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Label values made from clients' bytes: keys may have any bytes, but label values must be UTF-8.
 *
 * Threads: any.
 */
#ifndef FS_SERVER_METRICS_LABEL_H
#define FS_SERVER_METRICS_LABEL_H

#include <stddef.h>

#define LABEL_NAME_MAX 250u
#define LABEL_BYTES (4 * LABEL_NAME_MAX + 1)

/*
 * Writes a name of length bytes (at most LABEL_NAME_MAX) as a label value, with a 0 behind it, into out, and returns
 * its length. Characters of valid UTF-8 stay; control characters, backslashes and bytes that are no UTF-8 become \xNN.
 * Different names give different label values.
 */
size_t label_escape(const char *name, size_t length, char out[LABEL_BYTES]);

#endif
