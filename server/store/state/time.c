/* SPDX-License-Identifier: BSD-3-Clause */
/* The store's seconds, and flush_all. */
#include "server/store/state/attach.h"
#include "server/store/state/losses.h"

/* ---- time ------------------------------------------------------------------------------------ */

uint32_t store_expiry(const struct store *store, int64_t exptime)
{
	int64_t now, at;

	if (exptime == 0)
		return 0;
	if (exptime < 0)
		return ITEM_EXPIRED_ALWAYS;
	now = store_now_seconds(store, clk_now_us(store->clock));
	at = exptime > STORE_RELATIVE_EXPTIME_MAX ? exptime - clk_wall_seconds() + now : exptime + now;
	if (at <= (int64_t)ITEM_EXPIRED_ALWAYS)
		return ITEM_EXPIRED_ALWAYS;
	return at > UINT32_MAX ? UINT32_MAX : (uint32_t)at;
}

/* ---- flush_all ------------------------------------------------------------------------------- */

static void store_flush_now(struct store *store)
{
	uint64_t mark, old;

	atomic_fetch_add(&store->flushing, 1);
	mark = atomic_load(&store->cas_next) - 1;
	kept_flush_mark(store, mark);
	if (store->losses)
		losses_flushed(store, mark);
	fault_kill(FAULT_killed_in_flush);
	old = atomic_load(&store->flush_cas);
	while (old < mark && !atomic_compare_exchange_weak(&store->flush_cas, &old, mark))
		;
	atomic_fetch_sub(&store->flushing, 1);
	fault_kill(FAULT_killed_in_flush);
}

void store_apply_flush(struct store *store, uint32_t at, uint32_t now_seconds)
{
	const uint32_t due = at;

	if (now_seconds >= at && atomic_compare_exchange_strong(&store->flush_at, &at, 0)) {
		store_flush_now(store);
		kept_flush_done(store, due);
	}
}

void store_flush_all(struct store *store, int64_t exptime)
{
	ctr_add(CTR_cmd_flush, 1);
	if (exptime > 0) {
		uint32_t at = store_expiry(store, exptime);
		uint32_t now = store_now_seconds(store, clk_now_us(store->clock));

		kept_flush_at(store, at);
		if (store->losses)
			losses_flush_at(store, at > now ? at - now : 0);
		atomic_store(&store->flush_at, at);
	} else {
		/* A pending one is dropped when this one is in force: a kill in between loses neither. */
		store_flush_now(store);
		kept_flush_at(store, 0);
		atomic_store(&store->flush_at, 0);
	}
}

/* ---- keys ------------------------------------------------------------------------------------- */

uint64_t store_hash(const struct store *store, const char *key, size_t length)
{
	return hash64(key, length, store->hash_seed);
}

/* ---- bytes written ------------------------------------------------------------------------------ */

struct window_reading store_written(const struct store *store)
{
	return (struct window_reading){ .now_ms = clk_now_ms(store->clock),
					.flash_bytes = ctr_total(CTR_flash_bytes_written),
					.app_bytes = ctr_total(CTR_app_bytes_written) };
}
