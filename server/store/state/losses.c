/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries of the journal while the store runs, and who waits for them. losses_start.c has start and end. */
#include "server/store/state/losses.h"

#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/store/state/instance.h"

/* ---- tickets --------------------------------------------------------------------------------- */

static void raise_to(_Atomic uint64_t *ticket, uint64_t to)
{
	uint64_t now = atomic_load(ticket);

	while (now < to && !atomic_compare_exchange_weak(ticket, &now, to))
		;
}

static void append_for(struct losses *losses, uint32_t tag, const struct journal_entry *entry)
{
	raise_to(&losses->ticket[tag % LOSSES_TAGS], journal_append(losses->journal, entry));
}

static void append_for_all(struct losses *losses, const struct journal_entry *entry)
{
	raise_to(&losses->barrier, journal_append(losses->journal, entry));
}

/* ---- entries --------------------------------------------------------------------------------- */

void losses_lost(void *context, const struct fidx_lost *lost)
{
	struct losses *losses = context;
	const struct segments *segments = losses->store->segments;
	uint64_t offset = lost->offset;

	if (lost->sequence <= journal_floor(losses->journal))
		return;
	if (!lost->extent)
		offset = seg_position(segments, lost->segment, lost->place, lost->function);
	append_for(losses, lost->tag,
		   &(struct journal_entry){ .kind = JOURNAL_DEAD, .small = (uint32_t)offset, .value = lost->sequence });
}

void losses_dead(struct store *store, uint64_t sequence, uint64_t offset, uint32_t tag)
{
	append_for(store->losses, tag,
		   &(struct journal_entry){ .kind = JOURNAL_DEAD, .small = (uint32_t)offset, .value = sequence });
}

void losses_committed(struct store *store, uint32_t segment, uint64_t sequence, unsigned table)
{
	struct fidx_table tables[FIDX_TABLES];

	fidx_tables(store->index, tables);
	must(table < FIDX_TABLES && tables[table].live);
	(void)journal_append(store->losses->journal,
			     &(struct journal_entry){ .kind = JOURNAL_TABLE,
						      .small = (uint32_t)(tables[table].slots / FIDX_BUCKET_SLOTS),
						      .value = tables[table].id });
	(void)journal_append(store->losses->journal, &(struct journal_entry){ .kind = JOURNAL_COMMIT,
									      .segment = (uint16_t)segment,
									      .small = tables[table].id,
									      .value = sequence });
}

void losses_uncommitted(struct store *store, uint32_t segment, uint64_t sequence)
{
	append_for_all(
		store->losses,
		&(struct journal_entry){ .kind = JOURNAL_UNCOMMIT, .segment = (uint16_t)segment, .value = sequence });
}

void losses_flushed(struct store *store, uint64_t mark)
{
	append_for_all(store->losses, &(struct journal_entry){ .kind = JOURNAL_FLUSH, .value = mark });
}

void losses_served(struct store *store)
{
	(void)journal_append(store->losses->journal,
			     &(struct journal_entry){ .kind = JOURNAL_SERVED, .value = losses_served_s(store) });
}

void losses_flush_at(struct store *store, uint32_t seconds)
{
	uint64_t at_s = (uint64_t)losses_wall(store) + seconds;

	append_for_all(store->losses, &(struct journal_entry){ .kind = JOURNAL_FLUSH_AT, .value = at_s });
}

/* ---- during a rebuild ------------------------------------------------------------------------ */

void losses_touch(struct store *store, const struct fidx_key *key)
{
	struct losses *losses = store->losses;
	uint64_t bit = key->hash & losses->touched_mask;

	atomic_fetch_or(&losses->touched[bit / 64], 1ull << bit % 64);
	append_for(losses, key->tag,
		   &(struct journal_entry){ .kind = JOURNAL_CHANGED,
					    .segment = (uint16_t)(losses->rebuild_newest >> 32),
					    .small = (uint32_t)losses->rebuild_newest,
					    .value = key->hash });
}

bool losses_touched(const struct losses *losses, uint64_t hash)
{
	uint64_t bit = hash & losses->touched_mask;

	return atomic_load(&losses->touched[bit / 64]) >> bit % 64 & 1;
}

/* ---- waiting --------------------------------------------------------------------------------- */

bool losses_step(struct losses *losses)
{
	return !losses->writer.threaded && journal_step(losses->journal);
}

void losses_disown(struct store *store)
{
	struct journal *journal = store->losses->journal;

	if (!journal_needs_disowning(journal) || seg_raise_epoch(store->segments) != FS_OK)
		return;
	log_warn("journal: its files can't be removed, so the flash has got a new epoch in their place");
	journal_disowned(journal);
}

/* Waits up to 100 ms for the ticket. True: it is durable. */
static bool wait_a_while(struct losses *losses, uint64_t ticket)
{
	struct timespec until = clk_monotonic_after(100);

	if (losses_step(losses))
		return journal_durable(losses->journal) >= ticket;
	lock_acquire(&losses->lock);
	if (journal_durable(losses->journal) < ticket)
		pthread_cond_timedwait(&losses->advanced, &losses->lock.mutex, &until);
	lock_release(&losses->lock);
	return journal_durable(losses->journal) >= ticket;
}

void losses_reclaim(struct store *store, uint64_t sequence, void (*beat)(struct store *store))
{
	struct losses *losses = store->losses;
	uint64_t ticket =
		journal_append(losses->journal, &(struct journal_entry){ .kind = JOURNAL_FLOOR, .value = sequence });

	while (journal_durable(losses->journal) < ticket && !wait_a_while(losses, ticket)) {
		losses_disown(store);
		beat(store);
	}
}

void losses_reclaim_early(struct store *store, uint32_t segment, uint64_t sequence, void (*beat)(struct store *store))
{
	struct losses *losses = store->losses;
	uint64_t ticket;

	losses_uncommitted(store, segment, sequence);
	ticket = journal_newest(losses->journal);
	while (journal_durable(losses->journal) < ticket && !wait_a_while(losses, ticket)) {
		losses_disown(store);
		beat(store);
	}
}

/* ---- while the flash moves ------------------------------------------------------------------- */

bool losses_work(struct losses *losses)
{
	enum losses_work work = atomic_load(&losses->work);

	if (work == LOSSES_NO_WORK)
		return false;
	if (work == LOSSES_SEAL)
		losses->work_error = journal_seal(losses->journal, losses->work_medium, losses->work_epoch);
	else if (work == LOSSES_UNSEAL)
		journal_unseal(losses->journal);
	else
		losses->work_left = journal_confirm(losses->journal);
	lock_acquire(&losses->lock);
	atomic_store(&losses->work, LOSSES_NO_WORK);
	pthread_cond_broadcast(&losses->advanced);
	lock_release(&losses->lock);
	return true;
}

/* Returns when the writer has done it. */
static void ask_writer(struct store *store, enum losses_work work, void (*beat)(struct store *store))
{
	struct losses *losses = store->losses;

	atomic_store(&losses->work, work);
	if (!losses->writer.threaded) {
		(void)losses_work(losses);
		return;
	}
	background_wake(&losses->writer);
	while (atomic_load(&losses->work) != LOSSES_NO_WORK) {
		struct timespec until = clk_monotonic_after(100);

		lock_acquire(&losses->lock);
		if (atomic_load(&losses->work) != LOSSES_NO_WORK)
			pthread_cond_timedwait(&losses->advanced, &losses->lock.mutex, &until);
		lock_release(&losses->lock);
		beat(store);
	}
}

int losses_seal(struct store *store, const char *path, uint64_t epoch, void (*beat)(struct store *store))
{
	struct losses *losses = store->losses;
	char name[INSTANCE_PATH_BYTES];

	if (!losses)
		return 0;
	instance_journal_path(store->config.state_dir, path, name);
	losses->work_medium = store->config.journal_medium ? store->config.journal_medium : journal_directory(name);
	losses->work_epoch = epoch;
	if (!losses->work_medium)
		return -ENOMEM;
	ask_writer(store, LOSSES_SEAL, beat);
	return losses->work_error;
}

void losses_unseal(struct store *store, void (*beat)(struct store *store))
{
	if (store->losses)
		ask_writer(store, LOSSES_UNSEAL, beat);
}

bool losses_confirm(struct store *store, void (*beat)(struct store *store))
{
	if (!store->losses)
		return true;
	ask_writer(store, LOSSES_CONFIRM, beat);
	return store->losses->work_left;
}

void losses_register(struct losses *losses, struct losses_waiter *waiter, int eventfd)
{
	waiter->eventfd = eventfd;
	atomic_store(&waiter->waits, false);
	lock_acquire(&losses->lock);
	waiter->next = losses->waiters;
	losses->waiters = waiter;
	lock_release(&losses->lock);
}

void losses_unregister(struct losses *losses, struct losses_waiter *waiter)
{
	struct losses_waiter **at;

	lock_acquire(&losses->lock);
	for (at = &losses->waiters; *at != waiter; at = &(*at)->next)
		must(*at);
	*at = waiter->next;
	lock_release(&losses->lock);
}
