/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Label values from bytes of clients: keys may have any, label values have to be UTF-8.
 *
 * Threads: any.
 */
#ifndef FS_SERVER_METRICS_LABEL_H
#define FS_SERVER_METRICS_LABEL_H

#include <stddef.h>

#define LABEL_NAME_MAX 250u
#define LABEL_BYTES (4 * LABEL_NAME_MAX + 1)

/*
 * Characters of valid UTF-8 stay; control characters, backslashes and bytes that are no UTF-8 become \xNN. Different
 * names stay different. At most LABEL_NAME_MAX bytes of name; out is ended by a 0. Returns its length.
 */
size_t label_escape(const char *name, size_t length, char out[LABEL_BYTES]);

#endif
