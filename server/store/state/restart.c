/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/store/state/bins.h"
#include "server/store/state/id_times.h"
#include "server/store/state/ids.h"
#include "server/store/state/ids_note.h"
#include "server/store/state/instance.h"
#include "server/store/state/losses.h"
#include "server/store/state/recount.h"

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* A word for /metrics; a text for the log and "stats flash", where a figure may follow. */
static const struct {
	const char *word, *text;
} starts[] = {
	[STORE_START_NO_STATE_DIR] = { "no_state_dir", "cold: there is no --state-dir" },
	[STORE_START_WARM] = { "warm", "warm" },
	[STORE_START_OFF] = { "off", "cold: --restart-max-downtime is 0" },
	[STORE_START_NEW] = { "new", "cold: the flash is new" },
	[STORE_START_LAYOUT] = { "layout",
				 "cold: the size of flash or segments, or the number of hash functions, has changed" },
	[STORE_START_UNCLEAN] = { "unclean", "cold: the last run was killed, or saved nothing" },
	[STORE_START_NO_FILE] = { "no_file", "cold: there is no state file in --state-dir" },
	[STORE_START_UNREADABLE] = { "unreadable", "cold: the state file can't be read" },
	[STORE_START_VERSION] = { "version", "cold: the state file has another format version" },
	[STORE_START_DAMAGED] = { "damaged", "cold: the state file is damaged" },
	[STORE_START_OTHER_FLASH] = { "other_flash", "cold: the state file belongs to another flash" },
	[STORE_START_OTHER_START] = { "other_start", "cold: the state file is of an earlier run" },
	[STORE_START_BOOT] = { "boot", "cold: the machine was booted since the stop" },
	[STORE_START_CLOCK] = { "clock", "cold: the clock was set back since the stop" },
	[STORE_START_DOWNTIME] = { "downtime", "cold: the stop was longer ago than --restart-max-downtime" },
	[STORE_START_OPTIONS] = { "options", "cold: --index, --tag-bits or --clock-mode has changed" },
	[STORE_START_MEMORY] = { "memory", "cold: the index needs more memory than -m leaves" },
	[STORE_START_TRUNCATED] = { "truncated", "cold: the end of the flash file was cut off" },
	[STORE_START_ATTACHED] = { "attached", "warm: by the region that the last run has left" },
	[STORE_START_REGION_NONE] = { "region_none", "cold: --region-dir has no region of the last run" },
	[STORE_START_REGION_VERSION] = { "region_version", "cold: the region has another format version" },
	[STORE_START_REGION_LAYOUT] = { "region_layout",
					"cold: the region has other sizes: --index, flash, segments or -m have changed" },
	[STORE_START_REGION_COPY] = { "region_copy", "cold: the region is a copy" },
	[STORE_START_REGION_DAMAGED] = { "region_damaged", "cold: the region is damaged" },
	[STORE_START_REGION_OTHER_FLASH] = { "region_other_flash", "cold: the region belongs to another flash" },
	[STORE_START_REGION_OTHER_RUN] = { "region_other_run", "cold: the region is of an earlier run" },
	[STORE_START_REBUILT] = { "rebuilt", "warm: the index is rebuilt from flash and journal" },
	[STORE_START_NO_JOURNAL] = { "no_journal", "cold: there is no journal of the last run" },
	[STORE_START_JOURNAL] = { "journal", "cold: the journal is damaged, or can't be written" },
};

const char *store_start_word(enum store_start start)
{
	must(start < sizeof(starts) / sizeof(starts[0]));
	return starts[start].word;
}

void restart_tell(struct store *store, enum store_start start, const char *more)
{
	must(start < sizeof(starts) / sizeof(starts[0]));
	store->start = start;
	snprintf(store->start_text, sizeof(store->start_text), "%s%s%s", starts[start].text, more[0] ? ": " : "", more);
}

bool restart_is_warm(const struct store *store)
{
	return store->start == STORE_START_WARM || store->start == STORE_START_ATTACHED ||
	       store->start == STORE_START_REBUILT;
}

/* The state file has the name of the flash, so that two daemons may share a state directory. */
static void state_path(const struct store *store, char out[INSTANCE_PATH_BYTES])
{
	instance_state_path(store->config.state_dir, store->flash_path, out);
}

bool restart_boot_id(const struct store *store, char *out)
{
	ssize_t length;
	int fd;

	memset(out, 0, BOOT_ID_BYTES);
	if (store->config.boot_id) {
		snprintf(out, BOOT_ID_BYTES, "%s", store->config.boot_id);
		return true;
	}
	fd = open(BOOT_ID, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	length = read(fd, out, BOOT_ID_BYTES - 1);
	close(fd);
	return length > 0;
}

/* ---- the start ------------------------------------------------------------------------------- */

/* Do configuration and flash allow a warm start? Otherwise tells why not. */
static bool may_load(struct store *store, const struct seg_info *info)
{
	static const enum store_start by_found[] = {
		[SEG_FOUND_NONE] = STORE_START_NEW,
		[SEG_FOUND_LAYOUT] = STORE_START_LAYOUT,
		[SEG_FOUND_UNCLEAN] = STORE_START_UNCLEAN,
		[SEG_FOUND_CLEAN] = STORE_START_WARM,
	};
	enum store_start start = by_found[info->found];

	if (store->config.restart_max_downtime_us == 0)
		start = STORE_START_OFF;
	if (!store->config.state_dir)
		start = STORE_START_NO_STATE_DIR;
	restart_tell(store, start, "");
	return start == STORE_START_WARM;
}

uint64_t restart_pause_us(const struct store *store, uint64_t served_us, uint64_t origin_us)
{
	uint64_t pause_us = clk_now_us(store->clock) - served_us;

	/* Half of the clock's range is in the past, as a rebuild's times may lie before the boot. */
	return pause_us > INT64_MAX || !store_time_is_sound(served_us, origin_us) ? UINT64_MAX : pause_us;
}

void restart_resume(struct store *store, uint64_t served_us)
{
	atomic_store(&store->served_us, served_us ? served_us : 1);
}

uint64_t restart_served_us(const struct store *store)
{
	uint64_t served_us = atomic_load(&store->served_us);

	return served_us ? served_us : store->ended_us ? store->ended_us : clk_now_us(store->clock);
}

void store_serves(struct store *store)
{
	if (atomic_exchange(&store->served_us, 0) == 0)
		return;
	kept_alive(store);
	if (store->losses)
		losses_served(store);
}

void restart_judge_downtime(struct store *store, uint64_t stopped_us, uint64_t origin_us)
{
	uint64_t pause_us = restart_pause_us(store, stopped_us, origin_us);
	uint64_t most_us = store->config.restart_max_downtime_us;
	char more[80];

	if (pause_us == UINT64_MAX)
		restart_tell(store, STORE_START_CLOCK, "");
	else if (pause_us > most_us) {
		snprintf(more, sizeof(more), "%.1f s of %.1f s", (double)pause_us / 1e6, (double)most_us / 1e6);
		restart_tell(store, STORE_START_DOWNTIME, more);
	}
}

static bool judge_head(struct store *store, const struct seg_info *info, const struct saved_store *saved)
{
	char boot[BOOT_ID_BYTES];

	if (memcmp(saved->uuid, info->uuid, sizeof(saved->uuid)) != 0)
		restart_tell(store, STORE_START_OTHER_FLASH, "");
	else if (saved->attach_epoch != info->attach_epoch)
		restart_tell(store, STORE_START_OTHER_START, "");
	else if (!restart_boot_id(store, boot) || memcmp(saved->boot_id, boot, sizeof(boot)) != 0)
		restart_tell(store, STORE_START_BOOT, "");
	else if (saved->flush_cas >= info->cas_end || saved->flush_at > UINT32_MAX)
		restart_tell(store, STORE_START_DAMAGED, "");
	else if (saved->index_kind != (uint64_t)store->config.index)
		restart_tell(store, STORE_START_OPTIONS, "");
	else
		restart_judge_downtime(store, saved->stopped_us, saved->origin_us);
	return store->start == STORE_START_WARM;
}

/* Tells why reading the file has failed with this code. */
static void tell_failure(struct store *store, int code)
{
	int error = errno;

	switch (code) {
	case FS_ENOTFOUND:
		return restart_tell(store, STORE_START_NO_FILE, "");
	case FS_EVERSION:
		return restart_tell(store, STORE_START_VERSION, "");
	case FS_ECORRUPT:
	case FS_ESHORT:
		return restart_tell(store, STORE_START_DAMAGED, "");
	case FS_EINVAL:
		return restart_tell(store, STORE_START_OPTIONS, "");
	case FS_EFULL:
		return restart_tell(store, STORE_START_LAYOUT, "");
	case FS_ERANGE:
		return restart_tell(store, STORE_START_MEMORY, "");
	default:
		return restart_tell(store, STORE_START_UNREADABLE,
				    code == FS_ESYS ? strerror(error) : fs_strerror(code));
	}
}

/* Fills segments and index. A code of seg_load or fidx_load. */
static int load_parts(struct store *store, const struct seg_info *info, struct parts_reader *reader)
{
	uint64_t *sequences, length;
	int result = seg_load(store->segments, reader);

	if (result != FS_OK)
		return result;
	sequences = bins_sequences(store, info->segments);
	if (!sequences)
		return FS_ENOMEM;
	result = fidx_load(store->index, sequences + info->segments, info->segment_bytes, reader);
	if (result == FS_OK && store->frugal) {
		bins_empty(store);
		result = frugal_load(&store->frugal, &store->frugal_config, store->region, sequences, reader);
	}
	if (result == FS_OK)
		result = parts_next(reader, PARTS_END, 0, &length);
	mem_free(sequences);
	return result;
}

static void take_head(struct store *store, const struct saved_store *saved)
{
	store->origin_us = saved->origin_us;
	atomic_store(&store->flush_cas, saved->flush_cas);
	atomic_store(&store->flush_at, (uint32_t)saved->flush_at);
}

enum restart restart_load(struct store *store)
{
	struct parts_reader *reader = NULL;
	enum restart restart = RESTART_COLD;
	struct saved_store saved;
	char path[INSTANCE_PATH_BYTES];
	struct seg_info info;
	int result;

	seg_get_info(store->segments, &info);
	if (store->config.region_dir && !(store->config.state_dir && info.found == SEG_FOUND_CLEAN))
		return RESTART_COLD; /* there is no state to load, and the region's answer says why the start is cold */
	if (!may_load(store, &info))
		return RESTART_COLD;
	store->load_us = clk_now_us(store->clock);
	state_path(store, path);
	result = parts_open(&reader, path);
	if (result == FS_OK)
		result = parts_take(reader, PARTS_STORE, 0, &saved, sizeof(saved));
	if (result == FS_OK && judge_head(store, &info, &saved)) {
		restart = RESTART_SPOILT;
		result = load_parts(store, &info, reader);
	}
	if (result != FS_OK)
		tell_failure(store, result);
	else if (store->start == STORE_START_WARM && !seg_file_is_whole(store->segments))
		restart_tell(store, STORE_START_TRUNCATED, "");
	parts_close(reader);
	if (store->start != STORE_START_WARM)
		return restart;
	take_head(store, &saved);
	restart_resume(store, saved.stopped_us);
	store->load_us = clk_now_us(store->clock) - store->load_us;
	return RESTART_WARM;
}

void store_claim(struct store *store, const char *name)
{
	const struct store_config *config = &store->config;
	const char *folder = config->state_dir ? config->state_dir : config->region_dir;
	char path[INSTANCE_PATH_BYTES];

	mem_free(store->claimed);
	store->claimed = mem_must_zalloc(strlen(name) + 1);
	memcpy(store->claimed, name, strlen(name));
	if (folder)
		instance_note(folder, config->region_dir, name, config->flash_path ? config->flash_path : "");
	for (unsigned i = 0; folder && i < config->kin_count; i++)
		instance_forget(folder, config->kin[i].name, config->flash_path ? config->flash_path : "");
	if (config->state_dir)
		ids_note_open(store, config->state_dir, name);
	id_times_begin(store);
	/* The note may be of no run with this flash. */
	if (!store->without_flash[0])
		return;
	if (config->region_dir)
		instance_remove_region(config->region_dir, store->flash_path);
	if (!config->state_dir)
		return;
	instance_remove_journal(config->state_dir, store->flash_path);
	state_path(store, path);
	if (parts_remove(path) != FS_OK)
		log_warn("flash: %s can't be removed: %s", path, strerror(errno));
}

void restart_refuse(struct store *store, enum store_start why)
{
	store->origin_us = store->opened_us;
	atomic_store(&store->flush_at, 0);
	atomic_store(&store->served_us, 0);
	restart_tell(store, why, "");
}

/* Ids go on behind those of all earlier lives, and what is older than a cold start is gone. */
static FS_MUST_CHECK int reserve_ids(struct store *store)
{
	uint64_t mark = atomic_load(&store->flush_cas);
	int result = ids_open(store);

	if (result == FS_OK && restart_is_warm(store))
		atomic_store(&store->flush_cas, mark);
	if (result == FS_OK)
		kept_flush_mark(store, atomic_load(&store->flush_cas));
	return result;
}

static void tell_start(const struct store *store)
{
	if (store->start == STORE_START_ATTACHED)
		log_notice(
			"flash: warm start from the region of the last run, attached in %.3f s; its objects are being counted",
			(double)store->load_us / 1e6);
	else if (store->start == STORE_START_WARM)
		log_notice(
			"flash: warm start from the state file, which was loaded in %.3f s; its objects are being counted",
			(double)store->load_us / 1e6);
	else if (store->start != STORE_START_NO_STATE_DIR && store->start != STORE_START_OFF)
		log_notice("flash: %s", store->start_text);
}

int restart_take_over(struct store *store)
{
	char path[INSTANCE_PATH_BYTES];
	int result = attach_take_over(store);

	if (result == FS_OK)
		result = reserve_ids(store);
	if (result != FS_OK)
		return result;
	tell_start(store);
	if (!store->config.state_dir || store->start == STORE_START_OTHER_FLASH)
		return FS_OK;
	state_path(store, path);
	/* The epoch has made the file invalid already; it only takes room. */
	if (parts_remove(path) != FS_OK)
		log_warn("flash: %s can't be removed: %s", path, strerror(errno));
	return FS_OK;
}

/* ---- the stop -------------------------------------------------------------------------------- */

/* Writes the state file. FS_OK, or a code of parts_finish. */
static int save_parts(struct store *store, const char *path)
{
	struct saved_store saved = { 0 };
	struct parts_writer *writer;
	struct seg_info info;
	int result;

	seg_get_info(store->segments, &info);
	memcpy(saved.uuid, info.uuid, sizeof(saved.uuid));
	saved.attach_epoch = info.attach_epoch;
	saved.stopped_us = restart_served_us(store);
	saved.origin_us = store->origin_us;
	saved.flush_cas = atomic_load(&store->flush_cas);
	saved.flush_at = atomic_load(&store->flush_at);
	saved.index_kind = store->config.index;
	if (!restart_boot_id(store, saved.boot_id))
		return FS_ESYS;
	result = parts_create(&writer, path);
	if (result != FS_OK)
		return result;
	parts_put(writer, PARTS_STORE, 0, &saved, sizeof(saved));
	seg_save(store->segments, writer);
	fidx_save(store->index, writer);
	if (store->frugal)
		frugal_save(store->frugal, writer);
	return parts_finish(writer);
}

bool store_save(struct store *store)
{
	char path[INSTANCE_PATH_BYTES];
	uint64_t began_us = clk_now_us(store->clock);
	int result;

	kept_alive(store);
	ids_note_end(store);
	if (!store->index)
		return false;
	ids_return(store);
	if (!store->config.state_dir || store->config.restart_max_downtime_us == 0)
		return false;
	store_apply_due_flush(store, store_now_seconds(store, began_us));
	if (losses_rebuild_again(store)) {
		losses_settle(store);
		log_notice(
			"flash: the rebuild of the index is not over; the next start begins it again, without the objects of memory");
		return false;
	}
	state_path(store, path);
	losses_settle(store); /* it may raise the epoch, which the file names */
	recount_finish(store);
	result = seg_offline(store->segments) ? FS_EOFFLINE : FS_OK;
	bins_cancel_merge(store);
	/* Twice: kills that a process which was killed has left may count as those of the present epoch. */
	for (unsigned tries = 0; tries < 2 && result == FS_OK && store->frugal; tries++)
		result = frugal_take_kills(store->frugal);
	if (result == FS_OK)
		result = save_parts(store, path);
	if (result == FS_OK)
		result = seg_end_clean(store->segments);
	if (result != FS_OK) {
		log_warn("flash: its state can't be saved in %s, so the next start is %s: %s", store->config.state_dir,
			 store->config.region_dir ? "as after a kill" : "cold",
			 result == FS_ESYS ? strerror(errno) : fs_strerror(result));
		/* Where the mark may be there after all, there is no file that it could make valid. */
		(void)!parts_remove(path);
		return false;
	}
	fault_kill(FAULT_killed_in_save);
	kept_end(store);
	log_info("flash: its state is saved in %s, in %.3f s", store->config.state_dir,
		 (double)(clk_now_us(store->clock) - began_us) / 1e6);
	return true;
}
