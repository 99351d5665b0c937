/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/attach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/store/state/bins.h"
#include "server/store/state/instance.h"

/* ---- opening --------------------------------------------------------------------------------- */

int attach_open(struct store *store, uint64_t most[REGION_AREAS], char reason[256])
{
	const char *slash = strrchr(store->flash_path, '/');
	char name[4200];
	int result;

	most[REGION_STORE] = sizeof(struct kept);
	store->region_found = REGION_FOUND_NONE;
	if (store->config.region_dir) {
		const struct seg_owner *flash = store->config.flash_owner;
		const struct region_owner owner = { flash ? flash->user : 0, flash ? flash->group : 0 };

		snprintf(name, sizeof(name), "%s" INSTANCE_REGION_SUFFIX, slash ? slash + 1 : store->flash_path);
		if (store->config.look_only)
			result = region_look(&store->region, most, store->config.region_dir, name, &store->region_found,
					     reason);
		else
			result = region_open(&store->region, most, store->config.region_dir, name,
					     flash ? &owner : NULL, &store->region_found, reason);
	} else {
		result = region_create(&store->region, most);
	}
	if (result == FS_OK)
		store->fixed_bytes += store_region_fixed_bytes(store);
	return result;
}

static FS_MUST_CHECK int commit_fixed(struct store *store)
{
	int result = region_commit(store->region, REGION_STORE, sizeof(struct kept));

	if (result == FS_OK)
		result = region_commit(store->region, REGION_SEGMENTS, region_most(store->region, REGION_SEGMENTS));
	return result;
}

int attach_empty(struct store *store)
{
	int result;

	store->kept = NULL;
	for (enum region_area area = REGION_INDEX; area <= REGION_FRUGAL; area++)
		region_decommit(store->region, area);
	result = region_reset(store->region);
	if (result == FS_OK)
		result = commit_fixed(store);
	if (result != FS_OK)
		return result;
	store->kept = region_area(store->region, REGION_STORE);
	memset(store->kept, 0, sizeof(*store->kept));
	seg_forget(store->segments);
	return FS_OK;
}

/* ---- judging --------------------------------------------------------------------------------- */

static bool is_of_this_run(const struct kept *kept, const struct seg_info *info)
{
	uint64_t id = atomic_load(&kept->id), next_id = atomic_load(&kept->next_id);

	return info->region_id != 0 &&
	       ((id == info->region_id && atomic_load(&kept->epoch) == info->attach_epoch) ||
		(next_id == info->region_id && atomic_load(&kept->next_epoch) == info->attach_epoch));
}

/* May the region be used, as far as its first page and this start's options tell? */
static bool may_attach(struct store *store, const struct seg_info *info)
{
	static const enum store_start by_file[] = {
		[REGION_FOUND_NONE] = STORE_START_REGION_NONE,
		[REGION_FOUND_SAME] = STORE_START_ATTACHED,
		[REGION_FOUND_VERSION] = STORE_START_REGION_VERSION,
		[REGION_FOUND_LAYOUT] = STORE_START_REGION_LAYOUT,
		[REGION_FOUND_COPY] = STORE_START_REGION_COPY,
		[REGION_FOUND_DAMAGED] = STORE_START_REGION_DAMAGED,
	};
	enum store_start start = by_file[store->region_found];

	if (info->found == SEG_FOUND_LAYOUT)
		start = STORE_START_LAYOUT;
	if (info->found == SEG_FOUND_NONE)
		start = STORE_START_NEW;
	if (store->config.restart_max_downtime_us == 0)
		start = STORE_START_OFF;
	restart_tell(store, start, "");
	return start == STORE_START_ATTACHED;
}

static bool judge_kept(struct store *store, const struct seg_info *info, const struct kept *kept)
{
	char boot[BOOT_ID_BYTES];

	if (atomic_load(&kept->id) == 0 && atomic_load(&kept->next_id) == 0)
		restart_tell(store, STORE_START_REGION_NONE, "");
	else if (memcmp(kept->uuid, info->uuid, sizeof(kept->uuid)) != 0)
		restart_tell(store, STORE_START_REGION_OTHER_FLASH, "");
	else if (!is_of_this_run(kept, info))
		restart_tell(store, STORE_START_REGION_OTHER_RUN, "");
	else if (!restart_boot_id(store, boot) || memcmp(kept->boot_id, boot, sizeof(boot)) != 0)
		restart_tell(store, STORE_START_BOOT, "");
	else if (atomic_load(&kept->flush_cas) >= info->cas_end || atomic_load(&kept->flush_at) > UINT32_MAX ||
		 kept->segment_bytes != info->segment_bytes)
		restart_tell(store, STORE_START_REGION_DAMAGED, "");
	else
		restart_judge_downtime(store, atomic_load(&kept->alive_us), kept->origin_us);
	return store->start == STORE_START_ATTACHED;
}

static int attach_parts(struct store *store, const struct seg_info *info, const struct fidx_config *index)
{
	uint64_t *sequences;
	int result = seg_attach(store->segments);

	if (result != FS_OK)
		return result;
	sequences = bins_sequences(store, info->segments);
	if (!sequences)
		return FS_ENOMEM;
	result = fidx_attach(&store->index, index, store->region, sequences + info->segments, info->segment_bytes);
	if (result == FS_OK && store->config.index == STORE_INDEX_FRUGAL)
		result = frugal_attach(&store->frugal, &store->frugal_config, store->region, sequences);
	mem_free(sequences);
	return result;
}

enum restart attach_load(struct store *store, const struct fidx_config *index)
{
	struct seg_info info;
	struct kept *kept;
	int result;

	seg_get_info(store->segments, &info);
	if (!store->config.region_dir || !may_attach(store, &info))
		return RESTART_COLD;
	store->load_us = clk_now_us(store->clock);
	result = commit_fixed(store);
	kept = region_area(store->region, REGION_STORE);
	if (result == FS_OK && !judge_kept(store, &info, kept))
		return RESTART_COLD;
	if (result == FS_OK)
		result = attach_parts(store, &info, index);
	if (result != FS_OK) {
		fidx_destroy(store->index);
		store->index = NULL;
		restart_tell(store,
			     result == FS_EINVAL   ? STORE_START_OPTIONS
			     : result == FS_ENOMEM ? STORE_START_MEMORY
						   : STORE_START_REGION_DAMAGED,
			     "");
		return RESTART_COLD;
	}
	if (!seg_file_is_whole(store->segments)) {
		fidx_destroy(store->index);
		store->index = NULL;
		bins_destroy(store);
		restart_tell(store, STORE_START_TRUNCATED, "");
		return RESTART_COLD;
	}
	store->kept = kept;
	store->origin_us = kept->origin_us;
	restart_resume(store, atomic_load(&kept->alive_us));
	atomic_store(&store->flush_cas, atomic_load(&kept->flush_cas));
	atomic_store(&store->flush_at, (uint32_t)atomic_load(&kept->flush_at));
	store->load_us = clk_now_us(store->clock) - store->load_us;
	return RESTART_WARM;
}

/* ---- the takeover ---------------------------------------------------------------------------- */

/* Fills in what the region of a cold start, or of a state file, lacks. */
static void fill_kept(struct store *store, const struct seg_info *info)
{
	struct kept *kept = store->kept;

	memcpy(kept->uuid, info->uuid, sizeof(kept->uuid));
	if (!restart_boot_id(store, kept->boot_id))
		memset(kept->boot_id, 0, sizeof(kept->boot_id)); /* no boot's: never valid */
	kept->segment_bytes = info->segment_bytes;
	kept->origin_us = store->origin_us;
	kept_flush_mark(store, restart_is_warm(store) ? atomic_load(&store->flush_cas)
			       : info->cas_end        ? info->cas_end - 1
						      : 0);
	kept_flush_at(store, atomic_load(&store->flush_at));
	kept_alive(store);
}

/* Finishes what the killed process had begun. A segment that no index has as open was never committed, or is
   reclaimed all but the row. */
static void attach_repair(struct store *store, const struct seg_info *info)
{
	fidx_repair(store->index);
	if (store->frugal)
		frugal_repair(store->frugal);
	for (uint32_t s = 0; s < info->segments; s++)
		if (seg_sequence(store->segments, s) != 0 && !segment_is_open(store, s))
			seg_drop(store->segments, s);
}

int attach_take_over(struct store *store)
{
	struct kept *kept = store->kept;
	struct seg_info info;
	uint64_t id = 0;
	int result;

	seg_get_info(store->segments, &info);
	fault_kill(FAULT_killed_in_take_over);
	if (store->config.region_dir && store->config.restart_max_downtime_us != 0) {
		while (id == 0)
			rng_secret(&id, sizeof(id));
		if (store->start != STORE_START_ATTACHED)
			fill_kept(store, &info);
		/* A start was killed behind its write: what is valid by the next pair must be so by the first one. */
		if (store->start == STORE_START_ATTACHED && atomic_load(&kept->next_id) == info.region_id) {
			atomic_store(&kept->id, 0);
			atomic_store(&kept->epoch, info.attach_epoch);
			atomic_store(&kept->id, info.region_id);
		}
		atomic_store(&kept->next_id, 0);
		atomic_store(&kept->next_epoch, info.attach_epoch + 1);
		atomic_store(&kept->next_id, id);
	}
	fault_kill(FAULT_killed_in_take_over);
	result = seg_take_over(store->segments, restart_is_warm(store), id);
	if (result != FS_OK)
		return result;
	fault_kill(FAULT_killed_in_take_over);
	atomic_store(&kept->id, 0);
	atomic_store(&kept->epoch, info.attach_epoch + 1);
	atomic_store(&kept->id, id);
	fault_kill(FAULT_killed_in_take_over);
	atomic_store(&kept->next_id, 0);
	if (store->start == STORE_START_ATTACHED)
		attach_repair(store, &info);
	fault_kill(FAULT_killed_in_take_over);
	return FS_OK;
}

/* ---- the flash moves ------------------------------------------------------------------------- */

bool attach_note_flash(const struct store *store, const char *path, const char *other)
{
	const struct store_config *config = &store->config;
	const char *folder = config->state_dir ? config->state_dir : config->region_dir;

	return !folder || !store->claimed ||
	       instance_note_move(folder, config->region_dir, store->claimed, path, other);
}

uint64_t attach_seal(struct store *store, uint64_t epoch)
{
	struct kept *kept = store->kept;
	uint64_t id = 0;

	if (!store->config.region_dir || atomic_load(&kept->id) == 0)
		return 0;
	while (id == 0)
		rng_secret(&id, sizeof(id));
	atomic_store(&kept->next_epoch, epoch);
	atomic_store(&kept->next_id, id);
	return id;
}

void attach_unseal(struct store *store)
{
	atomic_store(&store->kept->next_id, 0);
}

void attach_rename(struct store *store, const char *path)
{
	const char *slash = strrchr(path, '/');
	char name[4200], reason[256];

	if (!store->config.region_dir)
		return;
	snprintf(name, sizeof(name), "%s" INSTANCE_REGION_SUFFIX, slash ? slash + 1 : path);
	if (region_rename(store->region, name, reason) != FS_OK)
		log_warn("flash: the region can't be renamed, so that a start after a kill will be cold: %s", reason);
}

void attach_confirm(struct store *store, uint64_t epoch, uint64_t id)
{
	struct kept *kept = store->kept;

	if (id == 0)
		return;
	atomic_store(&kept->id, 0);
	atomic_store(&kept->epoch, epoch);
	atomic_store(&kept->id, id);
	atomic_store(&kept->next_id, 0);
}

/* ---- while the store runs -------------------------------------------------------------------- */

void kept_alive(struct store *store)
{
	if (store->kept)
		atomic_store(&store->kept->alive_us, restart_served_us(store));
}

void kept_end(struct store *store)
{
	if (!store->kept)
		return;
	atomic_store(&store->kept->id, 0);
	region_discard(store->region);
}

void kept_take(struct store *store)
{
	if (!store->kept)
		return;
	store->kept->origin_us = store->origin_us;
	kept_alive(store);
	atomic_store(&store->kept->flush_cas, atomic_load(&store->flush_cas));
	atomic_store(&store->kept->flush_at, atomic_load(&store->flush_at));
}

void kept_flush_mark(struct store *store, uint64_t mark)
{
	uint64_t old;

	if (!store->kept)
		return;
	old = atomic_load(&store->kept->flush_cas);
	while (old < mark && !atomic_compare_exchange_weak(&store->kept->flush_cas, &old, mark))
		;
}

void kept_flush_at(struct store *store, uint32_t at)
{
	if (store->kept)
		atomic_store(&store->kept->flush_at, at);
}

void kept_flush_done(struct store *store, uint32_t at)
{
	uint64_t expected = at;

	if (store->kept)
		(void)!atomic_compare_exchange_strong(&store->kept->flush_at, &expected, 0);
}
