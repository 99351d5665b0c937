/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures of single segments: what table and index say, which change while they are asked. */
#include "server/store/state/state.h"

uint32_t store_segment_count(const struct store *store)
{
	struct seg_info info = { 0 };

	if (store->index)
		seg_get_info(store->segments, &info);
	return info.segments;
}

void store_get_segment(struct store *store, uint32_t number, struct store_segment *out)
{
	must(number < store_segment_count(store));
	*out = (struct store_segment){ .sequence = seg_sequence(store->segments, number) };
	if (out->sequence == 0)
		return;
	out->live_bytes = fidx_segment_live_bytes(store->index, number);
	if (store->frugal)
		out->live_bytes += frugal_segment_bytes(store->frugal, number);
}
