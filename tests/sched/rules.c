/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sched/rules.h"

#include <string.h>

#include "base/metrics/counters.h"
#include "segments/bins.h"
#include "segments/segments_internal.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/state/journal.h"
#include "server/store/state/losses.h"
#include "server/store/state/state.h"
#include "tests/sched/clients.h"
#include "tests/sched/fibers.h"
#include "tests/sched/finding.h"
#include "tests/sched/life.h"

#define SECOND_NS 1000000000ull
#define ONLINE_S 1800u /* the longest back-off of a device, and more */
#define REST_S 120u
#define QUIET_S 5u

static void sleep_s(unsigned seconds)
{
	fiber_sleep_until(fiber_now_ns() + seconds * SECOND_NS);
}

static uint64_t work_done(void)
{
	return ctr_total(CTR_segments_written) + ctr_total(CTR_segments_reclaimed) + ctr_total(CTR_evictions);
}

bool rules_rebuilds(const struct store *store)
{
	return store->rebuild != NULL;
}

static bool any_has_readers(struct store *store)
{
	for (uint32_t i = 0; i < store->segments->segments; i++) {
		struct seg_live *live = seg_live_at(store->segments, i);

		if (live->state == SEG_RECLAIMING && live->sequence == 0)
			return true;
	}
	return false;
}

static bool has_losses_to_write(const struct store *store)
{
	static uint64_t seen; /* at the last look: whoever waits for it, or doesn't, has had time since */
	const struct journal *journal = store->losses ? store->losses->journal : NULL;
	uint64_t before = seen;

	if (!journal)
		return false;
	seen = journal_newest(journal);
	return journal_durable(journal) < before;
}

bool rules_is_moment(struct store *store, enum rules_moment moment)
{
	switch (moment) {
	case MOMENT_WRITE:
		return cleaner_is_writing(store);
	case MOMENT_READERS:
		return any_has_readers(store);
	case MOMENT_RESCUE:
		return store->segments->rescue != NULL;
	case MOMENT_REBUILD:
		return store->rebuild != NULL;
	case MOMENT_LOSSES:
		return has_losses_to_write(store);
	case MOMENT_MERGE:
		return store->merge != NULL;
	default:
		return false;
	}
}

void rules_liveness(struct world *world, struct store *store)
{
	unsigned waited = 0;

	for (; store->segments && seg_offline(store->segments); waited++, sleep_s(1))
		if (waited > ONLINE_S)
			finding("the flash is still offline %u s after the last fault", waited);
	clients_set_some(world, store, world->seed);
	rules_rest(store);
}

void rules_rest(struct store *store)
{
	unsigned quiet = 0;

	for (unsigned waited = 0; quiet < QUIET_S; waited++) {
		uint64_t before = work_done();

		sleep_s(1);
		quiet = work_done() == before && !cleaner_is_writing(store) && !store->rebuild ? quiet + 1 : 0;
		if (waited > REST_S)
			finding("the cleaner is still at work %u s after the last command", waited);
		if (!store_alive_within(store, 2))
			finding("keeper or cleaner has not come round for 2 s");
	}
}

/* ---- one truth for a key --------------------------------------------------------------------- */

/* Does the match lead to a record of the key? It looks into the drive itself: no time passes, and nobody waits. */
static bool leads_to(const struct world *world, struct store *store, const struct fidx_match *match, const char *name,
		     unsigned length, struct seg_record *record)
{
	uint64_t offset = seg_position(store->segments, match->segment, match->place, match->function);
	uint64_t at = seg_offset(store->segments, match->segment) + offset;
	uint64_t most = store->segment_bytes - offset, needed;

	return at + most <= world->drive.bytes &&
	       seg_record_read(store->segments, match->segment, match->sequence, offset, world->drive.now + at, most,
			       record, &needed) == FS_OK &&
	       record->key_length == length && memcmp(record->key, name, length) == 0;
}

/* An object that is changed or new in DRAM has no slot, and no key has two. */
static void check_key(const struct world *world, struct store *store, unsigned number)
{
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_extent extent;
	struct seg_record record;
	struct fidx_key key;
	char name[40];
	unsigned length = model_name(number, name), matches, own = 0;
	uint64_t hash = store_hash(store, name, length);
	struct stripe *stripe = store_stripe(store, hash);
	const struct item *item;
	bool is_dirty, has_extent;

	fidx_key_of(store->index, hash, &key);
	lock_acquire(&stripe->lock);
	item = stripe_find(stripe, hash, name, length);
	is_dirty = item && !(item->state & ITEM_CLEAN);
	(void)flash_may_hold(store, &key, match, &matches, &extent, &has_extent);
	lock_release(&stripe->lock);
	for (unsigned i = 0; i < matches; i++)
		own += leads_to(world, store, &match[i], name, length, &record);
	if (own > 1 || (own == 1 && is_dirty))
		finding("key %u has %u slots%s", number, own, is_dirty ? ", and an item that is not a copy" : "");
}

/* Would a get that begins now return what it must not? */
static void check_age(const struct world *world, struct store *store, unsigned number, uint32_t expiry, uint64_t cas,
		      const char *place)
{
	const struct model_key *key = &world->model.key[number];

	if ((cas < key->floor || cas <= key->dead) &&
	    store_alive(store, expiry, cas, store_now_seconds(store, clk_now_us(store->clock))))
		finding("key %u: its object %s has the id %llu, and it is %llu, or was gone up to %llu", number, place,
			(unsigned long long)cas, (unsigned long long)key->floor, (unsigned long long)key->dead);
}

/* Is the record that this match leads to no older than it may be? True: a get goes on to older columns, as the bin lacks the key. */
static bool check_bin(const struct world *world, struct store *store, unsigned number, uint64_t x, const char *name,
		      unsigned length, const struct frugal_found *match)
{
	struct segments *segments = store->segments;
	enum seg_bin_says says;
	struct seg_record record;
	struct seg_bin bin;
	uint64_t at;

	if (!seg_pin(segments, match->segment, match->sequence))
		return false;
	bin = seg_bin_of(segments, match->segment, x);
	says = seg_bin_find(segments, match->segment, match->sequence, &bin,
			    world->drive.now + seg_offset(segments, match->segment) + bin.offset, name, length, &record,
			    &at);
	if (says == SEG_BIN_FOUND)
		check_age(world, store, number, record.expiry, record.cas, "in a bin");
	seg_unpin(segments, match->segment);
	return says == SEG_BIN_ABSENT;
}

/* The columns in memory; a chain would take reads. The stripe is held. */
static void check_bins(const struct world *world, struct store *store, unsigned number, uint64_t hash, const char *name,
		       unsigned length)
{
	struct frugal_found found = { .sequence = UINT64_MAX };
	struct frugal_key key;

	frugal_key_of(store->frugal, hash, &key);
	while (frugal_find(store->frugal, &key, found.sequence, &found) == FRUGAL_MATCH)
		if (!check_bin(world, store, number, key.x, name, length, &found))
			return;
}

void rules_glance(struct world *world, struct store *store, unsigned number)
{
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct seg_record record;
	struct fidx_key key;
	char name[40];
	unsigned length = model_name(number, name), matches;
	uint64_t hash = store_hash(store, name, length);
	struct stripe *stripe = store_stripe(store, hash);
	const struct item *item;
	bool is_copy;

	fidx_key_of(store->index, hash, &key);
	lock_acquire(&stripe->lock);
	item = stripe_find(stripe, hash, name, length);
	is_copy = item && item->state & ITEM_CLEAN;
	if (item)
		check_age(world, store, number, item->expiry, item->cas, "in DRAM");
	matches = is_copy ? 0 : fidx_lookup(store->index, &key, match);
	for (unsigned i = 0; i < matches; i++) {
		if (!leads_to(world, store, &match[i], name, length, &record))
			continue;
		if (item)
			finding("key %u has a slot, and an item that is not a copy", number);
		check_age(world, store, number, record.expiry, record.cas, "on flash");
	}
	if (!item && store->frugal)
		check_bins(world, store, number, hash, name, length);
	lock_release(&stripe->lock);
}

void rules_glance_at_all(struct world *world, struct store *store)
{
	for (unsigned key = 0; key < world->keys; key++)
		rules_glance(world, store, key);
}

/* What the items of a stripe take. */
static uint64_t stripe_bytes(const struct stripe *stripe)
{
	uint64_t bytes = 0;

	for (uint32_t line = 0; line < stripe_lines(stripe); line++)
		for (unsigned link = 0; link < LINE_LINKS; link++) {
			const struct item *item = stripe_item(stripe, line, link);

			bytes += item ? item_cost(item) : 0;
		}
	return bytes;
}

/* What items take by the account, and by themselves. */
static void check_account(struct store *store)
{
	int64_t items = (int64_t)store_dram_items(store), bytes = 0;

	for (uint32_t i = 0; i < store->stripe_count; i++)
		bytes += (int64_t)stripe_bytes(&store->stripes[i]);
	if (bytes != (int64_t)atomic_load(&store->item_bytes))
		finding("%lld items take %lld bytes, and the account says %lld", (long long)items, (long long)bytes,
			(long long)atomic_load(&store->item_bytes));
	for (uint32_t i = 0; i < store->stripe_count; i++)
		if (store->stripes[i].frozen != 0)
			finding("stripe %u is still frozen", i);
}

/* Nobody holds a segment any more. */
static void check_pins(struct store *store)
{
	for (uint32_t i = 0; i < store->segments->segments; i++)
		if (atomic_load(&seg_live_at(store->segments, i)->pins) != 0)
			finding("segment %u is still pinned", i);
}

void rules_check(struct world *world, struct store *store)
{
	if (!fidx_verify(store->index))
		finding("the index is not sound");
	check_account(store);
	check_pins(store);
	for (unsigned key = 0; key < world->keys; key++)
		check_key(world, store, key);
}
