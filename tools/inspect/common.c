/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions that several commands use: the look at all segments, and their order by age. */
#include <stdlib.h>

#include "base/alloc.h"
#include "tools/common/args.h"
#include "tools/inspect/commands.h"

struct segment *command_segments(const struct flash *flash, uint64_t *newest)
{
	struct segment *segments;
	int rc = segment_look_at_all(flash, &segments, newest);

	if (rc != FS_OK)
		arg_die("%s", fs_strerror(rc));
	return segments;
}

static int younger_first(const void *left, const void *right, void *context)
{
	const struct segment *segments = context;
	uint64_t a = segments[*(const uint32_t *)left].header.sequence;
	uint64_t b = segments[*(const uint32_t *)right].header.sequence;

	return a > b ? -1 : a < b;
}

uint32_t *command_youngest_first(const struct flash *flash, const struct segment *segments, bool all_starts,
				 uint32_t *count)
{
	uint32_t *numbers = mem_must_zalloc(((uint64_t)flash->super.segments + 1) * sizeof(*numbers));

	*count = 0;
	for (uint32_t n = 0; n < flash->super.segments; n++)
		if (segments[n].state == SEGMENT_COMPLETE &&
		    (all_starts || segment_may_be_served(&flash->super, &segments[n])))
			numbers[(*count)++] = n;
	qsort_r(numbers, *count, sizeof(*numbers), younger_first, (void *)(uintptr_t)segments);
	return numbers;
}
