/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --journal=sync: the store's side of the journal (journal.h). It writes down each loss of a slot, each committed
 * segment, each flush, and holds answers back until what they depend on is durable.
 *
 *   command --> key stripe --> slot goes --> losses_lost: entry, ticket of the slot's tag
 *                   |                                                   |
 *                   v                                     writer thread: one block for all that waits, fdatasync
 *      the answer waits while the ticket of its key's tag               |
 *      is not durable (request/park.c)  <--- eventfd of each worker that waits
 *
 * What may be answered when: all keys that can match a slot share its tag, so the tag's ticket stands for every loss that
 * an answer about the key can depend on: of a command before on the same key, of another key's set that took the slot
 * along, of a full table. Each answer of any command, a get's too, waits until the ticket of its key's tag is durable. So
 * a client never sees a new value, or that there is none, and then, after a crash, the old one. A command whose key has
 * lost nothing lately isn't held up at all: that is each set of a key that isn't on flash.
 * Flushes raise a ticket that every answer waits for (the barrier).
 *
 * A slot is written down before it goes, so that a command that doesn't find it any more finds the ticket.
 *
 * Reclaim: the floor is durable before the first slot of the victim goes; losses at or below the floor need no entry.
 *
 * A rebuild (cleaner/rebuild.c): keys that a command has changed, or has told to be absent, have no slot yet that could be
 * lost. Their hashes are written down (CHANGED), and a bit is set under the key's stripe, which the walk looks at.
 *
 * Threads: each function says. Locks: tickets are atomics; the list of waiting workers has a leaf lock.
 */
#ifndef FS_STORE_LOSSES_H
#define FS_STORE_LOSSES_H

#include "server/store/state/background.h"
#include "server/store/state/journal.h"
#include "server/store/state/state.h"

#define LOSSES_TAGS 16384u /* tickets, by the low bits of the tag */

/* A worker that may wait for tickets. */
struct losses_waiter {
	struct losses_waiter *next;
	int eventfd;
	_Atomic bool waits; /* the eventfd is written once more is durable */
};

struct losses {
	struct store *store;
	struct journal *journal; /* NULL before losses_begin, and when it could not be made */
	struct background writer;
	_Atomic uint64_t *ticket; /* by tag: the newest loss */
	_Atomic uint64_t barrier; /* a ticket that all answers wait for */
	struct lock lock; /* a leaf; covers waiters */
	pthread_cond_t advanced; /* more is durable, or work is done; with the lock */
	struct losses_waiter *waiters;

	_Atomic bool rebuilding; /* set before other threads run, cleared by the cleaner */
	/* A step of a move that the cleaner asks the writer for. While there is work the three fields are the writer's, else the
	   cleaner's. */
	_Atomic enum losses_work { LOSSES_NO_WORK, LOSSES_SEAL, LOSSES_UNSEAL, LOSSES_CONFIRM } work;
	struct journal_medium *work_medium;
	uint64_t work_epoch;
	int work_error; /* of LOSSES_SEAL */
	bool work_left; /* of LOSSES_CONFIRM */

	uint64_t rebuild_newest; /* sequence of the newest segment that is walked */
	_Atomic uint64_t *touched; /* a bit for each hash, touched_mask + 1 of them. Read under a stripe */
	uint64_t touched_mask;

	/* Between losses_read and losses_begin: */
	struct journal_medium *medium;
	struct journal_found found;
	int found_code; /* of journal_read */
	bool found_last; /* it is the last run's */
};

/* ---- the start and the end: one thread ------------------------------------------------------- */

/* Makes store->losses and reads the journal of the last run. FS_OK, whatever the journal is like; FS_ENOMEM. */
FS_MUST_CHECK int losses_read(struct store *store);
/* May the index be rebuilt from the journal's segments? STORE_START_REBUILT; or why not, where more[0] may get a figure.
   The store's start was cold for a reason that doesn't speak against a rebuild. */
enum store_start losses_judge(struct store *store, char more[80]);
/* Takes clock, flush mark, pending flush and the time of the last service from the journal, for a rebuild. */
void losses_take_times(struct store *store);
/* Gives the bits of touched keys room, and marks that commands write changed keys down. FS_OK, FS_ENOMEM. */
FS_MUST_CHECK int losses_begin_rebuild(struct store *store, uint64_t newest);
/* The end of a rebuild, or of its plan: gives the bits back. No worker looks at them after each stripe was held once, as a
   worker asks for `rebuilding` under one. The cleaner, or the only thread; takes every stripe. */
void losses_end_rebuild(struct store *store);
/* Is a rebuild under way that the next start can begin again? Then a clean stop leaves everything to it. Without a region,
   which would have the index as far as it is made, and as long as the journal is whole. The cleaner, or the only thread. */
bool losses_rebuild_again(struct store *store);
/* Begins the journal of this run: goes on with the last one's where its segments are in use, else with an empty one.
   Without it (a log line says why) the store runs as if it had none, and store->losses is NULL. The index is ready. */
void losses_begin(struct store *store);
/* Starts and stops the writer's thread; without one, losses_step is called by workers and cleaner. FS_OK, FS_ESYS. */
FS_MUST_CHECK int losses_start(struct store *store);
void losses_stop(struct store *store);
/* Writes what still waits, or makes the journal invalid. Before the clean mark is written; the writer's thread is
   stopped. store->losses may be NULL. */
void losses_settle(struct store *store);
/* Writes what still waits, and frees everything. store->losses may be NULL. */
void losses_close(struct store *store);

/* ---- entries: any thread --------------------------------------------------------------------- */

/* fidx_tell_losses: a slot or extent is about to go. */
void losses_lost(void *context, const struct fidx_lost *lost);
/* The record at this offset of a segment that is being committed or walked gets no slot. tag: its key's. */
void losses_dead(struct store *store, uint64_t sequence, uint64_t offset, uint32_t tag);
/* All objects of the segment are committed or written down as dead. The cleaner. */
void losses_committed(struct store *store, uint32_t segment, uint64_t sequence, unsigned table);
/* The segment could not be taken over whole: the next rebuild leaves it out. The cleaner. */
void losses_uncommitted(struct store *store, uint32_t segment, uint64_t sequence);
/* Before a segment is reclaimed: returns when the floor above it is durable. Calls beat every 100 ms. The cleaner. */
void losses_reclaim(struct store *store, uint64_t sequence, void (*beat)(struct store *store));
/* The same for a segment that is not the oldest one: it is committed no more, and the floor stays. */
void losses_reclaim_early(struct store *store, uint32_t segment, uint64_t sequence, void (*beat)(struct store *store));
/* All objects with ids up to the mark are flushed. To be called before the mark can be seen. */
void losses_flushed(struct store *store, uint64_t mark);
/* Notes restart_served_us, if this run serves no clients yet; else that it serves them. No answer waits for it. */
void losses_served(struct store *store);
/* A flush is pending, and due in so many seconds. */
void losses_flush_at(struct store *store, uint32_t seconds);
/* During a rebuild: a command changes the key, or says that it is absent. The key's stripe is held. */
void losses_touch(struct store *store, const struct fidx_key *key);
/* During a rebuild: has a command touched the key since the start? The key's stripe is held. */
bool losses_touched(const struct losses *losses, uint64_t hash);

/* Returns the wall clock's second of restart_served_us, or one before; 0: this run serves clients. */
uint64_t losses_served_s(const struct store *store);
/* Returns the wall clock's seconds. */
static inline int64_t losses_wall(const struct store *store)
{
	return store->config.wall_seconds ? store->config.wall_seconds() : clk_wall_seconds();
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Returns the ticket that an answer about a key with this tag waits for; 0: none. */
static inline uint64_t losses_ticket(const struct losses *losses, uint32_t tag)
{
	uint64_t ticket = atomic_load(&losses->ticket[tag % LOSSES_TAGS]), barrier = atomic_load(&losses->barrier);

	ticket = ticket > barrier ? ticket : barrier;
	return ticket > journal_durable(losses->journal) ? ticket : 0;
}

/* Returns the ticket that every answer waits for; 0: none. */
static inline uint64_t losses_barrier(const struct losses *losses)
{
	uint64_t barrier = atomic_load(&losses->barrier);

	return barrier > journal_durable(losses->journal) ? barrier : 0;
}

/* Registers a worker, and takes it off again. */
void losses_register(struct losses *losses, struct losses_waiter *waiter, int eventfd);
void losses_unregister(struct losses *losses, struct losses_waiter *waiter);
/* Without a thread of its own, the journal is written by this call. True: something was written. */
bool losses_step(struct losses *losses);
/*
 * While the flash moves to another device (cleaner/move.c): journal_seal for the flash at that path and the attach epoch to
 * come, and its two ends. The writer's thread does it; meanwhile answers that wait go on waiting. losses_seal: 0 or a negative
 * errno. losses_confirm: true when the old names are gone. The cleaner.
 */
FS_MUST_CHECK int losses_seal(struct store *store, const char *path, uint64_t epoch, void (*beat)(struct store *store));
void losses_unseal(struct store *store, void (*beat)(struct store *store));
FS_MUST_CHECK bool losses_confirm(struct store *store, void (*beat)(struct store *store));
/* Does the work that the cleaner asks for. True: there was some. The writer. */
bool losses_work(struct losses *losses);

/* Is the journal waiting until the flash has got another epoch? losses_disown gives it one. The cleaner. */
void losses_disown(struct store *store);

#endif
