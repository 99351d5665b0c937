/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flash moves to another device (move.h, segments/move.h), a piece in each step of the cleaner. The switch has an
 * order by which a kill at any point leaves one flash that the region is valid for:
 *
 *   note      the state directory names both flashes: a later run removes what it finds of the one that it isn't with
 *   seal      region and journal are valid by the epoch to come (the region by a pair of epoch and id), as well as by the
 *             present one; the journal's files have the name of the new flash, too
 *   switch    the new flash gets its superblock with that pair, durably, in one write
 *   rename    the region gets the name of the new flash
 *   confirm   the region is valid by the new pair alone, the journal's files lose their old names, and the state directory
 *             names the new flash alone
 *
 * Before the rename a start with the old flash is warm, behind it one with the new flash. Between the two nothing is
 * written to either.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "segments/move.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/move.h"
#include "server/store/state/attach.h"
#include "server/store/state/instance.h"
#include "server/store/state/losses.h"
#include "server/store/state/recount.h"

#define BURST_SHARE 8 /* of a second's bytes may be copied at once */
#define BURST_LEAST (1 << 20)

/* What other threads ask for and are told. The lock, a leaf, covers all but the cleaner's own. */
struct mover {
	struct lock lock;
	struct store_move asked; /* its path is told.path */
	struct store_move_status told;
	_Atomic bool cancel;
	_Atomic bool
		busy; /* from store_move_begin to the end of the move; set under the lock, cleared by the cleaner */
	/* The cleaner's own: */
	uint64_t rate, tokens_at_ms;
	int64_t tokens; /* bytes */
};

void mover_init(struct store *store)
{
	struct mover *mover = mem_must_zalloc(sizeof(*mover));

	lock_init(&mover->lock, LOCK_LEAF);
	store->cleaner->mover = mover;
}

void mover_fini(struct store *store)
{
	struct mover *mover = store->cleaner->mover;

	lock_fini(&mover->lock);
	mem_free(mover);
}

/* ---- requests -------------------------------------------------------------------------------- */

const char *store_move_word(enum store_move_state state)
{
	static const char *const words[] = {
		[STORE_MOVE_NONE] = "none",           [STORE_MOVE_ASKED] = "asked",
		[STORE_MOVE_COPYING] = "copying",     [STORE_MOVE_EMPTYING] = "emptying",
		[STORE_MOVE_LEAVING] = "leaving",     [STORE_MOVE_DONE] = "done",
		[STORE_MOVE_CANCELLED] = "cancelled", [STORE_MOVE_FAILED] = "failed",
	};

	must(state < sizeof(words) / sizeof(words[0]));
	return words[state];
}

static int refuse(char reason[256], const char *why, int code)
{
	snprintf(reason, 256, "%s", why);
	return code;
}

int store_move_begin(struct store *store, const struct store_move *move, char reason[256])
{
	struct mover *mover = store->cleaner->mover;
	bool busy;

	if (!store->index)
		return refuse(reason, "there is no flash", FS_EINVAL);
	if (move->path[0] != '/' || strlen(move->path) >= STORE_MOVE_PATH_BYTES)
		return refuse(reason, "the path must be absolute", FS_EINVAL);
	lock_acquire(&mover->lock);
	busy = atomic_load(&mover->busy);
	if (!busy) {
		mover->asked = *move;
		mover->asked.path = NULL;
		memset(&mover->told, 0, sizeof(mover->told));
		memcpy(mover->told.path, move->path, strlen(move->path));
		mover->told.state = STORE_MOVE_ASKED;
		atomic_store(&mover->cancel, false);
		atomic_store(&mover->busy, true);
	}
	lock_release(&mover->lock);
	if (busy)
		return refuse(reason, "a move is under way", FS_EBUSY);
	store->wake(store);
	return FS_OK;
}

int store_move_cancel(struct store *store)
{
	struct mover *mover = store->cleaner->mover;
	bool under_way;

	lock_acquire(&mover->lock);
	under_way = atomic_load(&mover->busy) && mover->told.state != STORE_MOVE_LEAVING;
	if (under_way)
		atomic_store(&mover->cancel, true);
	lock_release(&mover->lock);
	return under_way ? FS_OK : FS_ENOTFOUND;
}

void store_move_get_status(struct store *store, struct store_move_status *out)
{
	struct mover *mover = store->cleaner->mover;

	lock_acquire(&mover->lock);
	*out = mover->told;
	lock_release(&mover->lock);
}

/* ---- what is told ---------------------------------------------------------------------------- */

static void tell_state(struct mover *mover, enum store_move_state state)
{
	lock_acquire(&mover->lock);
	mover->told.state = state;
	lock_release(&mover->lock);
}

static void tell_progress(struct mover *mover, const struct seg_moved *moved)
{
	lock_acquire(&mover->lock);
	mover->told.bytes += moved->bytes;
	mover->told.unreadable_pages = moved->unreadable;
	if (moved->phase == SEG_MOVE_COPYING || moved->phase == SEG_MOVE_EMPTYING) {
		mover->told.state = moved->phase == SEG_MOVE_COPYING ? STORE_MOVE_COPYING : STORE_MOVE_EMPTYING;
		mover->told.segments = moved->live;
		mover->told.segments_copied = moved->copied;
	}
	lock_release(&mover->lock);
}

/* The move ends before its switch. */
static void tell_end(struct mover *mover, enum store_move_state state, const char *reason)
{
	lock_acquire(&mover->lock);
	mover->told.state = state;
	snprintf(mover->told.reason, sizeof(mover->told.reason), "%s", reason);
	lock_release(&mover->lock);
	if (state == STORE_MOVE_CANCELLED)
		log_event(LOG_LEVEL_NOTICE, "flash_move_cancelled", LOG_FIELDS(LOG_TEXT("PATH", mover->told.path)),
			  "flash: the move to %s is cancelled; the flash stays where it was", mover->told.path);
	else
		log_event(LOG_LEVEL_ERROR, "flash_move_failed",
			  LOG_FIELDS(LOG_TEXT("PATH", mover->told.path), LOG_TEXT("REASON", reason)),
			  "flash: the move to %s has failed, and the flash stays where it was: %s", mover->told.path,
			  reason);
	atomic_store(&mover->busy, false); /* from here on the path may be another one's */
}

static void give_up(struct store *store, enum store_move_state state, const char *reason)
{
	seg_move_cancel(store->segments);
	tell_end(store->cleaner->mover, state, reason);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Has the new device room for fewer segments than there are? */
static bool is_smaller(const struct store *store)
{
	struct seg_status segments;

	seg_get_status(store->segments, &segments);
	return seg_count_for(seg_move_bytes(store->segments), store->segment_bytes) < segments.total;
}

static void begin(struct store *store)
{
	struct mover *mover = store->cleaner->mover;
	struct seg_move_config config;
	char reason[256] = "";

	lock_acquire(&mover->lock);
	config = (struct seg_move_config){ .path = mover->told.path,
					   .device = mover->asked.device,
					   .flash_bytes = mover->asked.flash_bytes };
	mover->rate = mover->asked.rate;
	lock_release(&mover->lock);
	mover->tokens = 0;
	mover->tokens_at_ms = clk_now_ms(store->clock);
	if (seg_move_begin(store->segments, &config, reason) != FS_OK) {
		tell_end(mover, STORE_MOVE_FAILED, reason);
		return;
	}
	if (!store->config.evict && is_smaller(store)) {
		give_up(store, STORE_MOVE_FAILED, "with -M the new flash can't have fewer segments");
		return;
	}
	tell_state(mover, STORE_MOVE_COPYING);
	log_event(LOG_LEVEL_NOTICE, "flash_move", LOG_FIELDS(LOG_TEXT("PATH", mover->told.path)),
		  "flash: it begins to move to %s, with %.2f GiB", mover->told.path,
		  (double)seg_move_bytes(store->segments) / (1 << 30));
}

/* Must copies wait, for the sake of the rate? */
static bool is_paced(struct store *store)
{
	struct mover *mover = store->cleaner->mover;
	uint64_t now_ms = clk_now_ms(store->clock), burst = mover->rate / BURST_SHARE;

	if (mover->rate == 0)
		return false;
	if (burst < BURST_LEAST)
		burst = BURST_LEAST;
	if (now_ms > mover->tokens_at_ms) {
		mover->tokens += (int64_t)((double)mover->rate * (double)(now_ms - mover->tokens_at_ms) / 1000);
		mover->tokens_at_ms = now_ms;
	}
	if (mover->tokens > (int64_t)burst)
		mover->tokens = (int64_t)burst;
	return mover->tokens <= 0;
}

/* From here on nobody can cancel. False: somebody has. */
static bool begin_switch(struct mover *mover)
{
	bool begun;

	lock_acquire(&mover->lock);
	begun = !atomic_load(&mover->cancel);
	if (begun)
		mover->told.state = STORE_MOVE_LEAVING;
	lock_release(&mover->lock);
	return begun;
}

static void switch_over(struct store *store)
{
	struct mover *mover = store->cleaner->mover;
	const char *path = mover->told.path;
	uint64_t epoch = seg_move_epoch(store->segments), id;
	struct seg_status segments;
	char reason[256];
	bool left;
	int error;

	if (!begin_switch(mover)) {
		give_up(store, STORE_MOVE_CANCELLED, "");
		return;
	}
	if (!attach_note_flash(store, path, store->flash_path)) {
		give_up(store, STORE_MOVE_FAILED, "the state directory can't be written");
		return;
	}
	fault_kill(FAULT_killed_in_move);
	error = losses_seal(store, path, epoch, cleaner_beat);
	if (error != 0) {
		(void)!attach_note_flash(store, store->flash_path, NULL); /* else it names both, which does no harm */
		snprintf(reason, sizeof(reason), "the journal can't be written for the new flash: %s",
			 strerror(-error));
		give_up(store, STORE_MOVE_FAILED, reason);
		return;
	}
	fault_kill(FAULT_killed_in_move);
	id = attach_seal(store, epoch);
	fault_kill(FAULT_killed_in_move);
	if (seg_move_switch(store->segments, id) != FS_OK) {
		error = errno;
		attach_unseal(store);
		losses_unseal(store, cleaner_beat);
		(void)!attach_note_flash(store, store->flash_path, NULL); /* the same */
		give_up(store, STORE_MOVE_FAILED, strerror(error));
		return;
	}
	fault_kill(FAULT_killed_in_move);
	attach_rename(store, path);
	fault_kill(FAULT_killed_in_move);
	attach_confirm(store, epoch, id);
	left = losses_confirm(store, cleaner_beat);
	fault_kill(FAULT_killed_in_move);
	/* As long as the journal has its old names, a start with the new flash must remove them. */
	if (left)
		(void)!attach_note_flash(store, path, NULL); /* the same */
	snprintf(store->flash_path, sizeof(store->flash_path), "%s", path);
	seg_get_status(store->segments, &segments);
	atomic_store(&store->flash_asked, 0);
	atomic_store(&store->flash_capacity, segments.total * store->segment_bytes);
	log_event(LOG_LEVEL_NOTICE, "flash_moved", LOG_FIELDS(LOG_TEXT("PATH", path)),
		  "flash: it is in %s now, %.2f GiB in %u segments: the next start needs --flash-path=%s and "
		  "--flash-size=%lluk",
		  path, (double)store->flash_capacity / (1 << 30), segments.total, path,
		  (unsigned long long)(seg_move_bytes(store->segments) >> 10));
}

static bool step_on(struct store *store)
{
	struct mover *mover = store->cleaner->mover;
	bool paced = is_paced(store);
	struct seg_moved moved;

	if (seg_move_step(store->segments, paced, &moved) != FS_OK) {
		give_up(store, STORE_MOVE_FAILED, strerror(errno));
		return false;
	}
	/* What doesn't wait isn't charged: else a flash that is written faster than that would never have moved. */
	if (!paced)
		mover->tokens -= (int64_t)moved.bytes;
	tell_progress(mover, &moved);
	switch (moved.phase) {
	case SEG_MOVE_READY:
		switch_over(store);
		return true;
	case SEG_MOVE_EMPTYING:
		recount_finish(store); /* before a reclaim, as for a write */
		return chain_moves_away(store, moved.segment) || reclaim_segment(store, moved.segment);
	case SEG_MOVE_NONE:
		lock_acquire(&mover->lock);
		mover->told.state = STORE_MOVE_DONE;
		atomic_store(&mover->busy, false);
		lock_release(&mover->lock);
		return false;
	default:
		return moved.bytes > 0;
	}
}

bool mover_step(struct store *store)
{
	struct mover *mover = store->cleaner->mover;
	enum store_move_state state;

	if (!atomic_load_explicit(&mover->busy, memory_order_acquire))
		return false;
	lock_acquire(&mover->lock);
	state = mover->told.state;
	lock_release(&mover->lock);
	if (state == STORE_MOVE_ASKED) {
		begin(store);
		return true;
	}
	if (atomic_load(&mover->cancel) && state != STORE_MOVE_LEAVING) {
		give_up(store, STORE_MOVE_CANCELLED, "");
		return false;
	}
	return step_on(store);
}
