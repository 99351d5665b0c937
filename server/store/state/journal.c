/* SPDX-License-Identifier: BSD-3-Clause */
/* The writer of a journal: collects entries, writes a block of them, begins new files, and gives up safely. */
#include "server/store/state/journal.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "server/store/state/journal_internal.h"

#define BLOCK_MOST (journal_block_bytes(JOURNAL_BLOCK_ENTRIES))
#define GIVE_UP_EVERY_MS 1000
#define REMOVED_AT_ONCE 4096u
#define WAITING_KEPT JOURNAL_BLOCK_ENTRIES /* room for more of them is freed once none waits */

struct journal {
	struct journal_config config; /* constant */

	struct lock lock; /* a leaf; covers the next five */
	struct journal_entry *waiting;
	uint64_t count, capacity;
	bool lost_one; /* memory was out for an entry: the journal is of no use any more */
	uint64_t taken; /* tickets up to it are in a block */

	_Atomic uint64_t newest, durable, floor; /* newest: written under the lock; the others by the writer */
	_Atomic bool broken, needs_disowning;
	_Atomic uint64_t syncs, bytes, files_now; /* written by the writer */

	/* The writer's: */
	struct journal_state state; /* of all entries that are in a block */
	struct journal_file_state file[JOURNAL_FILES_MOST + 1]; /* the last one is being written */
	unsigned files;
	struct journal_block *block; /* BLOCK_MOST bytes */
	uint64_t written_ms; /* the last block */
	uint64_t give_up_ms; /* the next try to remove the files */
	uint64_t head_bytes; /* of the present file's head */
	/* While it is sealed: */
	struct journal_medium *next; /* where the files have their second names; NULL: it is not sealed */
	bool confirmed;
	uint64_t leave_ms; /* the next try to remove the old names */
};

static struct journal_entry *entries_of(struct journal_block *block)
{
	return (struct journal_entry *)(block + 1);
}

static struct journal_file_state *last_file(struct journal *journal)
{
	must(journal->files > 0);
	return &journal->file[journal->files - 1];
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Writes journal->block, which has so many entries, behind the file's blocks, and makes it durable. 0 or a negative
   errno. */
static int write_block(struct journal *journal, struct journal_file_state *file, uint32_t entries)
{
	struct journal_block *block = journal->block;
	uint64_t used = sizeof(*block) + entries * sizeof(struct journal_entry), bytes = journal_block_bytes(entries);
	struct journal_medium *medium = journal->config.medium;
	int error;

	memset(block, 0, sizeof(*block));
	memset((char *)block + used, 0, bytes - used);
	memcpy(block->magic, JOURNAL_MAGIC, sizeof(block->magic));
	memcpy(block->uuid, journal->config.uuid, sizeof(block->uuid));
	block->epoch = journal->config.epoch;
	block->number = file->blocks;
	block->file = file->number;
	block->entries = entries;
	journal->config.times(journal->config.context, &block->wall_s, &block->store_s);
	block->check = journal_block_check(block);
	error = medium->write(medium, file->number, block, bytes, file->bytes);
	if (error == 0)
		error = medium->sync(medium, file->number);
	if (error != 0)
		return error;
	file->blocks++;
	file->bytes += bytes;
	journal->written_ms = clk_now_ms(journal->config.clock);
	atomic_fetch_add_explicit(&journal->syncs, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&journal->bytes, bytes, memory_order_relaxed);
	return 0;
}

/* Everything in a block so far is durable. */
static void publish(struct journal *journal, uint64_t ticket)
{
	atomic_store(&journal->floor, journal->state.floor);
	atomic_store(&journal->durable, ticket);
	journal->config.advanced(journal->config.context);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void put(struct journal_block *block, uint32_t *n, struct journal_entry entry)
{
	must(*n < JOURNAL_BLOCK_ENTRIES);
	entries_of(block)[(*n)++] = entry;
}

/* Fills journal->block with what a head repeats; older: so many of the files are needed. Returns the entries. */
static uint32_t make_head(struct journal *journal, unsigned older)
{
	const struct journal_state *state = &journal->state;
	struct journal_block *block = journal->block;
	uint32_t n = 0;

	for (unsigned i = 0; i < older; i++)
		put(block, &n,
		    (struct journal_entry){
			    .kind = JOURNAL_FILE, .small = journal->file[i].number, .value = journal->file[i].blocks });
	for (uint32_t i = 0; i < JOURNAL_OPTIONS; i++)
		put(block, &n, (struct journal_entry){ .kind = JOURNAL_OPTION, .small = i, .value = state->option[i] });
	put(block, &n, (struct journal_entry){ .kind = JOURNAL_FLOOR, .value = state->floor });
	put(block, &n, (struct journal_entry){ .kind = JOURNAL_FLUSH, .value = state->flush_cas });
	put(block, &n, (struct journal_entry){ .kind = JOURNAL_FLUSH_AT, .value = state->flush_at });
	if (state->served_s)
		put(block, &n, (struct journal_entry){ .kind = JOURNAL_SERVED, .value = state->served_s });
	for (unsigned i = 0; i < JOURNAL_TABLES_MOST; i++)
		if (state->table[i].buckets)
			put(block, &n,
			    (struct journal_entry){ .kind = JOURNAL_TABLE,
						    .small = (uint32_t)state->table[i].buckets,
						    .value = state->table[i].id });
	for (uint32_t s = 0; s < state->segments; s++)
		if (state->commit[s].sequence > state->floor)
			put(block, &n,
			    (struct journal_entry){ .kind = JOURNAL_COMMIT,
						    .segment = (uint16_t)s,
						    .small = state->commit[s].table,
						    .value = state->commit[s].sequence });
	return n;
}

static uint64_t files_bytes(const struct journal *journal)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < journal->files; i++)
		bytes += journal->file[i].bytes;
	return bytes;
}

/* Takes the files out that nothing needs any more, and the oldest where there are too many. dropped: their numbers. */
static unsigned drop_files(struct journal *journal, uint32_t dropped[JOURNAL_FILES_MOST + 1])
{
	unsigned kept = 0, drops = 0;

	while (journal->files > 0 &&
	       (journal->files > JOURNAL_FILES_MOST || files_bytes(journal) > journal->config.most_bytes)) {
		if (journal->file[0].newest > journal->state.floor)
			journal->state.floor = journal->file[0].newest;
		dropped[drops++] = journal->file[0].number;
		memmove(&journal->file[0], &journal->file[1], --journal->files * sizeof(journal->file[0]));
	}
	for (unsigned i = 0; i < journal->files; i++)
		if (journal->file[i].newest > journal->state.floor)
			journal->file[kept++] = journal->file[i];
		else
			dropped[drops++] = journal->file[i].number;
	journal->files = kept;
	return drops;
}

/* Begins a file of this number. 0 or a negative errno. */
static int begin_file(struct journal *journal, uint32_t number)
{
	struct journal_medium *medium = journal->config.medium;
	uint32_t dropped[JOURNAL_FILES_MOST + 1];
	unsigned drops = drop_files(journal, dropped);
	uint32_t entries = make_head(journal, journal->files);
	int error = medium->create(medium, number);

	journal->file[journal->files++] = (struct journal_file_state){ .number = number };
	if (error == 0)
		error = write_block(journal, last_file(journal), entries);
	if (error != 0)
		return error;
	journal->head_bytes = last_file(journal)->bytes;
	for (unsigned i = 0; i < drops; i++)
		(void)medium->remove(medium, dropped[i]); /* no head names it: it only takes room */
	atomic_store_explicit(&journal->bytes, files_bytes(journal), memory_order_relaxed);
	atomic_store_explicit(&journal->files_now, journal->files, memory_order_relaxed);
	return 0;
}

/* Begins the next file, and tells so in the one before if it is still needed. 0 or a negative errno. */
static int next_file(struct journal *journal)
{
	struct journal_file_state before = *last_file(journal);
	int error = begin_file(journal, before.number + 1);
	uint32_t n = 0;

	if (error != 0 || journal->files < 2 || journal->file[journal->files - 2].number != before.number)
		return error;
	put(journal->block, &n, (struct journal_entry){ .kind = JOURNAL_NEXT, .value = before.number + 1 });
	return write_block(journal, &before, n);
}

static bool is_kept(const struct journal_file_state *kept, unsigned files, uint32_t number)
{
	for (unsigned i = 0; i < files; i++)
		if (kept[i].number == number)
			return true;
	return false;
}

/* Removes all files but those that are kept, the oldest first. 0 or a negative errno. */
static int remove_others(struct journal_medium *medium, const struct journal_file_state *kept, unsigned files)
{
	uint32_t *number = mem_must_zalloc(REMOVED_AT_ONCE * sizeof(*number));
	int64_t listed = medium->list(medium, number, REMOVED_AT_ONCE);
	int error = listed < 0 ? (int)listed : listed > REMOVED_AT_ONCE ? -EOVERFLOW : 0;

	for (;;) {
		int64_t oldest = -1;

		for (int64_t i = 0; i < listed && i < REMOVED_AT_ONCE; i++)
			if (number[i] && !is_kept(kept, files, number[i]) && (oldest < 0 || number[i] < number[oldest]))
				oldest = i;
		if (oldest < 0 || error != 0)
			break;
		error = medium->remove(medium, number[oldest]);
		number[oldest] = 0;
	}
	mem_free(number);
	return error;
}

int journal_remove(struct journal_medium *medium)
{
	return remove_others(medium, NULL, 0);
}

/* Sets the room for entries that wait; the lock is held. False: memory is out. */
static bool resize_waiting(struct journal *journal, uint64_t capacity)
{
	struct journal_entry *waiting = NULL;

	if (capacity > 0)
		waiting = mem_realloc(journal->waiting, capacity * sizeof(*waiting));
	else
		mem_free(journal->waiting);
	if (capacity > 0 && !waiting)
		return false;
	if (journal->config.resized)
		journal->config.resized(journal->config.context,
					((int64_t)capacity - (int64_t)journal->capacity) * (int64_t)sizeof(*waiting));
	journal->waiting = waiting;
	journal->capacity = capacity;
	return true;
}

/* ---- failure --------------------------------------------------------------------------------- */

static void end_waiting(struct journal *journal)
{
	lock_acquire(&journal->lock);
	journal->count = 0;
	(void)resize_waiting(journal, 0);
	lock_release(&journal->lock);
	atomic_store(&journal->needs_disowning, false);
	atomic_store(&journal->durable, UINT64_MAX);
	journal->config.advanced(journal->config.context);
}

/* Removes all files; as long as that fails, no answer may go on that depends on them. */
static bool give_up(struct journal *journal)
{
	uint64_t now_ms = clk_now_ms(journal->config.clock);

	if (atomic_load(&journal->durable) == UINT64_MAX || now_ms < journal->give_up_ms)
		return false;
	journal->give_up_ms = now_ms + GIVE_UP_EVERY_MS;
	if (journal_remove(journal->config.medium) == 0 && (!journal->next || journal_remove(journal->next) == 0)) {
		end_waiting(journal);
	} else {
		atomic_store(&journal->needs_disowning, true);
		journal->config.wake(journal->config.context);
	}
	return true;
}

static void fail(struct journal *journal, int error)
{
	log_event(LOG_LEVEL_WARN, "journal_failed", LOG_FIELDS(LOG_TEXT("ERROR", strerror(-error))),
		  "journal: it can't be written and ends here, so after a crash of the host the flash starts empty: %s",
		  strerror(-error));
	atomic_store(&journal->broken, true);
	journal->give_up_ms = 0;
	(void)give_up(journal);
}

void journal_disowned(struct journal *journal)
{
	must(atomic_load(&journal->broken));
	end_waiting(journal);
}

bool journal_needs_disowning(const struct journal *journal)
{
	return atomic_load(&journal->needs_disowning);
}

/* ---- the interface --------------------------------------------------------------------------- */

int journal_create(struct journal **out, const struct journal_config *config, struct journal_found *found)
{
	struct journal *journal = mem_must_zalloc(sizeof(*journal));
	int error;

	*out = NULL;
	journal->config = *config;
	lock_init(&journal->lock, LOCK_LEAF);
	journal->block = mem_zalloc(BLOCK_MOST);
	if (!journal->block) {
		journal_destroy(journal);
		return FS_ENOMEM;
	}
	journal->state = found->state;
	journal->state.next_epoch = 0; /* of an earlier run's move */
	found->state = (struct journal_state){ .segments = 0 };
	journal->files = found->files;
	memcpy(journal->file, found->file, sizeof(journal->file));
	error = begin_file(journal, found->highest + 1);
	if (error == 0) {
		atomic_store(&journal->floor, journal->state.floor);
		(void)remove_others(config->medium, journal->file, journal->files); /* no head names them */
		*out = journal;
		return FS_OK;
	}
	(void)!journal_remove(config->medium); /* the epoch has made them invalid already */
	journal_destroy(journal);
	errno = -error;
	return FS_EIO;
}

void journal_destroy(struct journal *journal)
{
	if (!journal)
		return;
	journal->config.medium->close(journal->config.medium);
	if (journal->next)
		journal->next->close(journal->next);
	journal_state_fini(&journal->state);
	lock_fini(&journal->lock);
	mem_free(journal->waiting);
	mem_free(journal->block);
	mem_free(journal);
}

uint64_t journal_memory_bytes(void)
{
	return sizeof(struct journal) + BLOCK_MOST;
}

uint64_t journal_append(struct journal *journal, const struct journal_entry *entry)
{
	uint64_t ticket;
	bool first;

	must(entry->kind > 0 && entry->kind < JOURNAL_KINDS && entry->kind != JOURNAL_FILE &&
	     entry->kind != JOURNAL_NEXT && entry->kind != JOURNAL_EPOCH);
	lock_acquire(&journal->lock);
	ticket = atomic_load_explicit(&journal->newest, memory_order_relaxed) + 1;
	atomic_store(&journal->newest, ticket);
	if (atomic_load(&journal->durable) == UINT64_MAX) {
		lock_release(&journal->lock);
		return ticket;
	}
	if (journal->count == journal->capacity && !journal->lost_one)
		journal->lost_one = !resize_waiting(journal, journal->capacity ? 2 * journal->capacity : 256);
	first = journal->count == 0 || journal->lost_one;
	if (!journal->lost_one)
		journal->waiting[journal->count++] = *entry;
	lock_release(&journal->lock);
	if (first)
		journal->config.wake(journal->config.context);
	return ticket;
}

uint64_t journal_durable(const struct journal *journal)
{
	return atomic_load(&journal->durable);
}

uint64_t journal_newest(const struct journal *journal)
{
	return atomic_load(&journal->newest);
}

uint64_t journal_floor(const struct journal *journal)
{
	return atomic_load_explicit(&journal->floor, memory_order_acquire);
}

static bool has_lost_one(struct journal *journal)
{
	bool lost;

	lock_acquire(&journal->lock);
	lost = journal->lost_one;
	lock_release(&journal->lock);
	return lost;
}

/* Moves the oldest entries that wait into the block, as many as it takes, and notes them in state and file. Returns how
   many; *ticket is the last one's. */
static uint32_t fill_block(struct journal *journal, uint64_t *ticket)
{
	struct journal_file_state *file = last_file(journal);
	const struct journal_entry *entry = entries_of(journal->block);
	uint32_t n;

	lock_acquire(&journal->lock);
	n = journal->count < JOURNAL_BLOCK_ENTRIES ? (uint32_t)journal->count : JOURNAL_BLOCK_ENTRIES;
	if (n > 0) {
		memcpy(entries_of(journal->block), journal->waiting, n * sizeof(*journal->waiting));
		memmove(journal->waiting, journal->waiting + n, (journal->count - n) * sizeof(*journal->waiting));
	}
	journal->count -= n;
	if (journal->count == 0 && journal->capacity > WAITING_KEPT)
		(void)resize_waiting(journal, 0);
	journal->taken += n;
	*ticket = journal->taken;
	lock_release(&journal->lock);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t names = journal_entry_names(&entry[i]);

		file->newest = names > file->newest ? names : file->newest;
		if (!names)
			must(journal_state_take(&journal->state, &entry[i]));
	}
	return n;
}

/* ---- a move of the flash --------------------------------------------------------------------- */

/* Writes a block with the epoch that the journal is of too. 0 or a negative errno. */
static int write_epoch(struct journal *journal, uint64_t epoch)
{
	uint32_t n = 0;

	put(journal->block, &n, (struct journal_entry){ .kind = JOURNAL_EPOCH, .value = epoch });
	journal->state.next_epoch = epoch;
	return write_block(journal, last_file(journal), n);
}

static void drop_next(struct journal *journal)
{
	struct journal_medium *next = journal->next, *medium = journal->config.medium;

	if (!medium->is_same(medium, next))
		(void)!journal_remove(next);
	next->close(next);
	journal->next = NULL;
}

int journal_seal(struct journal *journal, struct journal_medium *next, uint64_t epoch)
{
	struct journal_medium *medium = journal->config.medium;
	int error = 0;

	must(!journal->next);
	if (atomic_load(&journal->broken)) { /* its files are removed, or the flash will be disowned */
		next->close(next);
		return atomic_load(&journal->durable) == UINT64_MAX ? 0 : -EIO;
	}
	journal->next = next;
	journal->confirmed = false;
	if (!medium->is_same(medium, next)) {
		error = journal_remove(next);
		for (unsigned i = 0; i < journal->files && error == 0; i++)
			error = medium->share(medium, journal->file[i].number, next);
	}
	if (error == 0) {
		error = write_epoch(journal, epoch);
		if (error != 0)
			fail(journal, error);
	}
	if (error != 0)
		drop_next(journal);
	return error;
}

void journal_unseal(struct journal *journal)
{
	int error;

	if (!journal->next)
		return;
	if (!atomic_load(&journal->broken) && (error = write_epoch(journal, 0)) != 0)
		fail(journal, error);
	drop_next(journal);
}

/* Leaves the old names, if the flash has left the old device. Until they are gone, the journal stays what both flashes need.
   0 or a negative errno. */
static int leave_if_due(struct journal *journal)
{
	struct journal_medium *medium = journal->config.medium, *next = journal->next;
	uint64_t now_ms = clk_now_ms(journal->config.clock);

	if (!journal->confirmed || now_ms < journal->leave_ms)
		return 0;
	journal->leave_ms = now_ms + GIVE_UP_EVERY_MS;
	if (!medium->is_same(medium, next)) {
		int error = journal_remove(medium);

		if (error != 0) {
			log_limited(LOG_LEVEL_WARN, "journal: the files of the old flash can't be removed: %s",
				    strerror(-error));
			return 0;
		}
	}
	fault_kill(FAULT_killed_in_move);
	medium->close(medium);
	journal->config.medium = next;
	journal->next = NULL;
	journal->config.epoch = journal->state.next_epoch;
	journal->state.next_epoch = 0;
	return next_file(journal);
}

bool journal_confirm(struct journal *journal)
{
	int error;

	if (!journal->next)
		return true;
	journal->confirmed = true;
	journal->leave_ms = 0;
	if (!atomic_load(&journal->broken) && (error = leave_if_due(journal)) != 0)
		fail(journal, error);
	return !journal->next;
}

bool journal_step(struct journal *journal)
{
	bool late = clk_now_ms(journal->config.clock) >= journal->written_ms + JOURNAL_BEAT_S * 1000;
	uint64_t ticket;
	uint32_t entries;
	int error = 0;

	if (atomic_load(&journal->broken))
		return give_up(journal);
	if (has_lost_one(journal))
		error = -ENOMEM;
	else if (journal->next)
		error = leave_if_due(journal);
	else if (last_file(journal)->bytes - journal->head_bytes >= journal->config.file_bytes)
		error = next_file(journal);
	if (error == 0) {
		entries = fill_block(journal, &ticket);
		if (entries == 0 && !late)
			return false;
		fault_kill(FAULT_killed_in_journal);
		error = write_block(journal, last_file(journal), entries);
	}
	if (error != 0) {
		fail(journal, error);
	} else {
		fault_kill(FAULT_killed_in_journal);
		publish(journal, ticket);
	}
	return true;
}

void journal_get_status(struct journal *journal, struct journal_status *out)
{
	*out = (struct journal_status){ .entries = atomic_load(&journal->newest),
					.syncs = atomic_load(&journal->syncs),
					.bytes = atomic_load(&journal->bytes),
					.files = atomic_load(&journal->files_now),
					.floor = atomic_load(&journal->floor),
					.broken = atomic_load(&journal->broken) };
	lock_acquire(&journal->lock);
	out->waiting = journal->count;
	lock_release(&journal->lock);
}
