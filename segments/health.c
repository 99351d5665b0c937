/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device's health: a budget of errors within a minute. The device is taken offline when its errors exceed
 * the budget, when no segment is left that could be written, or when reads are not answered in time. Reads and
 * writes then fail at once, and the cleaner tries the device again with back-off.
 *
 * Two waits grow. A device that goes offline again soon after it was back pauses for longer each time, up to a
 * minute, until it stays. If writes were the cause, a written segment is enough: a successful write of the superblock
 * says little about the segments, and a written segment says nothing about reads.
 * A device that fails when it is tried is tried again after at most four seconds, or after that pause. A file that is
 * not what was opened takes an operator, and is looked at again after at most a minute.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "base/events.h"
#include "base/log.h"
#include "segments/segments_internal.h"

#define WINDOW_MS 60000u
#define RETRY_FIRST_MS 1000u
#define RETRY_MOST_MS 4000u
#define PAUSE_MOST_MS 60000u
#define STEADY_MS 60000u /* a device that stays online for so long no longer comes and goes */
#define BUDGET_DEFAULT 16u
#define REPORT_EVERY_MS 60000u
#define LOOK_EVERY_MS 5000u /* at the flash file */
#define WHY_BYTES sizeof(((struct seg_health *)0)->reason)

void health_init(struct seg_health *health, unsigned budget)
{
	memset(health, 0, sizeof(*health));
	lock_init(&health->lock, LOCK_LEAF);
	if (budget == 0)
		budget = BUDGET_DEFAULT;
	health->budget = budget < HEALTH_ERRORS_MAX ? budget : HEALTH_ERRORS_MAX;
}

void health_fini(struct seg_health *health)
{
	lock_fini(&health->lock);
}

/* True when this error exceeds the budget within the window. Times are kept plus one, so that zero means none
   yet. The lock is held. */
static bool over_budget(struct seg_health *health, uint64_t now_ms)
{
	uint64_t oldest = health->error_ms[health->next_error];

	must(health->next_error < health->budget && health->budget <= HEALTH_ERRORS_MAX);
	health->error_ms[health->next_error] = now_ms + 1;
	health->next_error = (health->next_error + 1) % health->budget;
	return oldest != 0 && now_ms + 1 - oldest < WINDOW_MS;
}

static uint64_t at_most(uint64_t ms, uint64_t most_ms)
{
	return ms < most_ms ? ms : most_ms;
}

/* The lock is held. */
static void retry_after(struct seg_health *health, uint64_t now_ms, uint64_t wait_ms)
{
	health->retry_after_ms = wait_ms;
	health->retry_at_ms = now_ms + wait_ms;
}

/* The device was tried in vain. The lock is held. */
static void retry_later(struct seg_health *health, uint64_t now_ms)
{
	uint64_t most_ms = health->cause == HEALTH_FILE       ? PAUSE_MOST_MS
			   : health->pause_ms > RETRY_MOST_MS ? health->pause_ms
							      : RETRY_MOST_MS;

	retry_after(health, now_ms, at_most(2 * health->retry_after_ms, most_ms));
}

/* The reason is written already. The lock is held. */
static void go_offline(struct seg_health *health, enum health_cause cause, uint64_t now_ms)
{
	bool again = health->pause_ms > 0 && now_ms < health->back_at_ms + STEADY_MS;

	health->pause_ms = again ? at_most(2 * health->pause_ms, PAUSE_MOST_MS) : RETRY_FIRST_MS;
	health->cause = cause;
	retry_after(health, now_ms, health->pause_ms);
	atomic_store_explicit(&health->offline, true, memory_order_release);
}

static void log_offline(const char *reason)
{
	log_event(LOG_LEVEL_ERROR, "flash_offline", LOG_FIELDS(LOG_TEXT("REASON", reason)),
		  "flash is offline, serving from memory alone: %s", reason);
	if (events_on(EVENT_FLASH))
		events_emit(EVENT_FLASH, "type=flash_offline reason=\"%s\"", reason);
}

static void count_error(struct segments *seg, const char *what, const char *why, enum health_cause cause)
{
	struct seg_health *health = &seg->health;
	uint64_t now_ms = clk_now_ms(seg->clock);
	char reason[sizeof(health->reason)];
	bool gone = false;

	lock_acquire(&health->lock);
	if (!health_offline(seg) && over_budget(health, now_ms)) {
		gone = true;
		snprintf(health->reason, sizeof(health->reason), "%s failed: %s (more than %u errors in a minute)",
			 what, why, health->budget);
		memcpy(reason, health->reason, sizeof(reason));
		go_offline(health, cause, now_ms);
	}
	lock_release(&health->lock);
	if (gone)
		log_offline(reason);
	else
		log_debug("flash: %s failed: %s", what, why);
}

void health_error(struct segments *seg, const char *what, int error)
{
	count_error(seg, what, strerror(error), HEALTH_WRITES);
}

void health_read_error(struct segments *seg, uint32_t segment, int error)
{
	atomic_fetch_add_explicit(&seg_live_at(seg, segment)->read_errors, 1, memory_order_relaxed);
	atomic_store_explicit(&seg->failing, true, memory_order_release);
	count_error(seg, "a read", strerror(error), HEALTH_READS);
}

/* Counts a corrupt record. The number to report now, or 0. */
static uint64_t corrupt_to_report(struct seg_health *health, uint64_t now_ms)
{
	uint64_t count = 0;

	lock_acquire(&health->lock);
	health->corrupt++;
	if (now_ms >= health->corrupt_report_at_ms) {
		count = health->corrupt;
		health->corrupt = 0;
		health->corrupt_report_at_ms = now_ms + REPORT_EVERY_MS;
	}
	lock_release(&health->lock);
	return count;
}

void seg_report_corrupt(struct segments *seg, uint32_t segment, uint64_t offset)
{
	uint64_t count = corrupt_to_report(&seg->health, clk_now_ms(seg->clock));

	if (count > 0)
		log_event(LOG_LEVEL_WARN, "flash_corrupt",
			  LOG_FIELDS(LOG_NUMBER("RECORDS", count), LOG_NUMBER("SEGMENT", segment),
				     LOG_NUMBER("OFFSET", offset)),
			  "flash: a record fails its check; number since the last such line: %llu, the "
			  "latest in segment %u at offset %llu",
			  (unsigned long long)count, segment, (unsigned long long)offset);
	if (!atomic_load_explicit(&seg_live_at(seg, segment)->partial, memory_order_relaxed))
		count_error(seg, "a read", fs_strerror(FS_ECORRUPT), HEALTH_READS);
}

/* Does nothing when the device is offline already. */
static void take_offline(struct segments *seg, const char *reason, enum health_cause cause)
{
	struct seg_health *health = &seg->health;
	uint64_t now_ms = clk_now_ms(seg->clock);
	bool gone;

	lock_acquire(&health->lock);
	gone = !health_offline(seg);
	if (gone) {
		snprintf(health->reason, sizeof(health->reason), "%s", reason);
		go_offline(health, cause, now_ms);
	}
	lock_release(&health->lock);
	if (gone)
		log_offline(reason);
}

void health_none_left(struct segments *seg, int error)
{
	char reason[sizeof(seg->health.reason)];

	snprintf(reason, sizeof(reason), "no segment is left that could be written: %s", strerror(error));
	take_offline(seg, reason, HEALTH_WRITES);
}

void health_silent(struct segments *seg, uint64_t patience_ms)
{
	char reason[sizeof(seg->health.reason)];

	lock_acquire(&seg->health.lock);
	seg->health.patience_ms = patience_ms;
	lock_release(&seg->health.lock);
	snprintf(reason, sizeof(reason), "reads are not answered within %llu ms (--flash-read-timeout)",
		 (unsigned long long)patience_ms);
	take_offline(seg, reason, HEALTH_READS);
}

void health_proven(struct segments *seg)
{
	lock_acquire(&seg->health.lock);
	if (!health_offline(seg) && seg->health.cause == HEALTH_WRITES)
		seg->health.pause_ms = 0;
	lock_release(&seg->health.lock);
}

/* Asks what became of the device. */
static enum dev_sight look_after(const struct segments *seg, char why[WHY_BYTES])
{
	return seg->device->ops->look ? seg->device->ops->look(seg->device, why, WHY_BYTES) : DEV_WHOLE;
}

/* The device is online. A file that is not at its path goes on to be used, as all of it is there. */
static void look_if_due(struct segments *seg)
{
	struct seg_health *health = &seg->health;
	uint64_t now_ms = clk_now_ms(seg->clock);
	enum dev_sight sight;
	char why[WHY_BYTES];
	bool was_away;

	if (now_ms < health->look_at_ms)
		return;
	health->look_at_ms = now_ms + LOOK_EVERY_MS;
	device_asked(seg);
	sight = look_after(seg, why);
	device_answered(seg);
	if (sight == DEV_SHORT)
		take_offline(seg, why, HEALTH_FILE);
	lock_acquire(&seg->health.lock);
	was_away = health->away[0] != 0;
	snprintf(health->away, sizeof(health->away), "%s", sight == DEV_AWAY ? why : "");
	lock_release(&seg->health.lock);
	if (sight == DEV_AWAY && !was_away)
		log_event(LOG_LEVEL_WARN, "flash_file_away", LOG_FIELDS(LOG_TEXT("REASON", why)),
			  "flash: %s; it is used until the daemon ends, and lost then", why);
}

/* Whose superblock is this? Another start, or an older copy of the file, has another epoch. */
static bool is_ours(const struct segments *seg, const struct layout_super *found)
{
	return memcmp(found->uuid, seg->super.uuid, sizeof(found->uuid)) == 0 &&
	       found->attach_epoch == seg->super.attach_epoch;
}

/* Reads and writes the superblock, the least that a useful device can do. The read must come in time. False: *cause
   is set, and why is empty or the new reason to be offline. */
static bool probe_device(struct segments *seg, char why[WHY_BYTES], enum health_cause *cause)
{
	uint64_t began_ms, patience_ms, generation;
	struct layout_super found;
	int rc;

	why[0] = 0;
	*cause = HEALTH_FILE;
	if (look_after(seg, why) != DEV_WHOLE)
		return false;
	lock_acquire(&seg->health.lock);
	patience_ms = seg->health.patience_ms;
	lock_release(&seg->health.lock);
	began_ms = clk_now_ms(seg->clock);
	rc = super_load(seg->device, &found, &generation);
	if (rc == FS_ENOTFOUND || rc == FS_ECORRUPT || rc == FS_EVERSION || (rc == FS_OK && !is_ours(seg, &found))) {
		snprintf(why, WHY_BYTES, "the superblock of the flash is gone or another's");
		return false;
	}
	*cause = HEALTH_READS;
	if (rc != FS_OK)
		return false;
	if (patience_ms > 0 && clk_now_ms(seg->clock) - began_ms >= patience_ms)
		return false;
	*cause = HEALTH_WRITES;
	return super_store(seg->device, seg->clock, &seg->super) == FS_OK;
}

/* The device was tried in vain. A new reason replaces the one that it went offline for. */
static void stay_offline(struct segments *seg, const char *why, enum health_cause cause)
{
	struct seg_health *health = &seg->health;
	uint64_t now_ms = clk_now_ms(seg->clock);
	bool told;

	lock_acquire(&health->lock);
	told = why[0] == 0 || strcmp(why, health->reason) == 0;
	if (!told)
		snprintf(health->reason, sizeof(health->reason), "%s", why);
	if (cause == HEALTH_FILE)
		health->cause = cause;
	retry_later(health, now_ms);
	lock_release(&health->lock);
	if (!told)
		log_offline(why);
}

static void go_online(struct segments *seg)
{
	struct seg_health *health = &seg->health;
	uint32_t revived = seg_revive(seg);
	uint64_t now_ms = clk_now_ms(seg->clock);

	lock_acquire(&health->lock);
	memset(health->error_ms, 0, sizeof(health->error_ms));
	health->back_at_ms = now_ms;
	atomic_store_explicit(&health->offline, false, memory_order_release);
	lock_release(&health->lock);
	if (events_on(EVENT_FLASH))
		events_emit(EVENT_FLASH, "type=flash_online segments_revived=%u", (unsigned)revived);
	if (revived)
		log_event(LOG_LEVEL_NOTICE, "flash_online", LOG_FIELDS(LOG_NUMBER("SEGMENTS_REVIVED", revived)),
			  "flash is online again; retired segments that are tried again: %u", (unsigned)revived);
	else
		log_event(LOG_LEVEL_NOTICE, "flash_online", LOG_FIELDS(LOG_NUMBER("SEGMENTS_REVIVED", 0)),
			  "flash is online again");
}

bool health_online(struct segments *seg)
{
	struct seg_health *health = &seg->health;
	uint64_t now_ms = clk_now_ms(seg->clock);
	enum health_cause cause;
	char why[WHY_BYTES];
	bool due, back;

	if (!health_offline(seg))
		look_if_due(seg);
	if (!health_offline(seg))
		return true;
	lock_acquire(&health->lock);
	due = now_ms >= health->retry_at_ms;
	lock_release(&health->lock);
	if (!due)
		return false;
	device_asked(seg);
	back = probe_device(seg, why, &cause);
	device_answered(seg);
	if (back)
		go_online(seg);
	else
		stay_offline(seg, why, cause);
	return back;
}

bool seg_online(struct segments *seg)
{
	return health_online(seg);
}

bool seg_offline(const struct segments *seg)
{
	return health_offline(seg);
}

uint64_t seg_busy_ms(const struct segments *seg)
{
	uint64_t since_ms = atomic_load_explicit(&seg->busy_since_ms, memory_order_relaxed);
	uint64_t now_ms = clk_now_ms(seg->clock);

	/* since_ms is one more than the time when the wait began. */
	return since_ms == 0 ? 0 : now_ms >= since_ms ? now_ms - since_ms + 1 : 1;
}
