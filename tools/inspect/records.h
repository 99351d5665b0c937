/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of a segment's records, printed during the walk. There may be millions, so none is kept. A
 * segment that was overwritten since it was judged gives a short or an empty list.
 *
 * Threads: the main thread.
 */
#ifndef FS_TOOLS_INSPECT_RECORDS_H
#define FS_TOOLS_INSPECT_RECORDS_H

#include <jansson.h>

#include "tools/inspect/flash.h"
#include "tools/inspect/options.h"
#include "tools/inspect/segment.h"

/* Prints the list as a table. */
void records_print(const struct inspect_options *options, const struct flash *flash, const struct segment *segment);

/* Prints object with one more field, "records_listed"; frees it. */
void records_print_json(const struct flash *flash, const struct segment *segment, json_t *object);

#endif
