/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/ids.h"

#include "server/store/state/ids_note.h"

#define IDS_JUMP (1ull << 40)

void ids_init(struct store *store)
{
	atomic_store(&store->cas_next, 1);
	atomic_store(&store->cas_reserved, UINT64_MAX);
	atomic_store(&store->cas_beyond, UINT64_MAX);
}

int ids_open(struct store *store)
{
	uint64_t first, end;
	int result = seg_reserve_cas(store->segments, IDS_RESERVE, &first, &end);

	if (result != FS_OK)
		return result;
	atomic_store(&store->cas_next, first);
	atomic_store(&store->cas_reserved, end);
	atomic_store(&store->flush_cas, first - 1);
	return FS_OK;
}

int ids_look(struct store *store)
{
	struct seg_info info;

	seg_get_info(store->segments, &info);
	atomic_store(&store->cas_next, info.cas_end);
	return FS_OK;
}

bool ids_reserve(struct store *store)
{
	uint64_t next = atomic_load(&store->cas_next), reserved = atomic_load(&store->cas_reserved), first, end;

	if (next + IDS_RESERVE / 4 * 3 < reserved)
		return true;
	if (!seg_offline(store->segments)) {
		/* From there on the ids were given without a reservation. */
		if (next > reserved)
			seg_skip_cas(store->segments, reserved = next);
		if (seg_reserve_cas(store->segments, next + IDS_RESERVE - reserved, &first, &end) == FS_OK) {
			atomic_store(&store->cas_reserved, end);
			atomic_store(&store->cas_beyond, UINT64_MAX);
			ids_note_reserved(store);
		}
	}
	return atomic_load(&store->cas_next) <= atomic_load(&store->cas_reserved);
}

void ids_return(struct store *store)
{
	uint64_t next = atomic_load(&store->cas_next);

	if (next < atomic_load(&store->cas_reserved) && !seg_offline(store->segments))
		seg_return_cas(store->segments, next);
}

/* The reserve is used up. An id of the range that was reserved last, or of the clock's, may be given, and none between
   them. */
uint64_t store_next_cas_beyond(struct store *store, uint64_t cas)
{
	for (;;) {
		uint64_t beyond = atomic_load(&store->cas_beyond), next;

		if (cas < atomic_load(&store->cas_reserved) || cas >= beyond)
			return cas;
		if (beyond == UINT64_MAX) {
			next = seg_clock_cas();
			/* A clock that is behind the ids is of no use. */
			atomic_compare_exchange_strong(&store->cas_beyond, &beyond, next > cas ? next : cas + IDS_JUMP);
			continue;
		}
		next = atomic_load(&store->cas_next);
		while (next < beyond && !atomic_compare_exchange_weak(&store->cas_next, &next, beyond))
			;
		cas = atomic_fetch_add(&store->cas_next, 1);
	}
}
