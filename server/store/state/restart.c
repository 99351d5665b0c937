/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/restart.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

#define FILE_SUFFIX ".state"
#define RESTART_PATH_BYTES 8300 /* of --state-dir and the name of the flash */
#define BOOT_ID "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_BYTES 40 /* 36 characters and zeros */

/* The store's part of the file. Times are the boot-time clock's. */
struct saved_store {
	uint8_t uuid[16]; /* of the flash */
	uint64_t attach_epoch; /* of the run that ended */
	char boot_id[BOOT_ID_BYTES];
	uint64_t stopped_us, origin_us;
	uint64_t flush_cas;
	uint64_t flush_at; /* the store's second of a pending flush_all, 0: none */
};

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
	[STORE_START_OPTIONS] = { "options", "cold: --tag-bits or --clock-mode has changed" },
	[STORE_START_MEMORY] = { "memory", "cold: the index needs more memory than -m leaves" },
};

const char *store_start_word(enum store_start start)
{
	must(start < sizeof(starts) / sizeof(starts[0]));
	return starts[start].word;
}

static void tell(struct store *store, enum store_start start, const char *more)
{
	must(start < sizeof(starts) / sizeof(starts[0]));
	store->start = start;
	snprintf(store->start_text, sizeof(store->start_text), "%s%s%s", starts[start].text, more[0] ? ": " : "", more);
}

/* The state file has the name of the flash, so that two daemons may share a state directory. */
static void state_path(const struct store *store, char out[RESTART_PATH_BYTES])
{
	const char *slash = strrchr(store->flash_path, '/');

	snprintf(out, RESTART_PATH_BYTES, "%s/%s" FILE_SUFFIX, store->config.state_dir,
		 slash ? slash + 1 : store->flash_path);
}

/* Fills in the identity of this boot of the machine. False: it can't be read. */
static bool boot_id(const struct store *store, char out[BOOT_ID_BYTES])
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
	tell(store, start, "");
	return start == STORE_START_WARM;
}

static bool judge_downtime(struct store *store, const struct saved_store *saved)
{
	uint64_t now_us = clk_now_us(store->clock), most_us = store->config.restart_max_downtime_us;
	char more[80];

	if (now_us < saved->stopped_us || saved->origin_us > saved->stopped_us)
		tell(store, STORE_START_CLOCK, "");
	else if (now_us - saved->stopped_us > most_us) {
		snprintf(more, sizeof(more), "%.1f s of %.1f s", (double)(now_us - saved->stopped_us) / 1e6,
			 (double)most_us / 1e6);
		tell(store, STORE_START_DOWNTIME, more);
	}
	return store->start == STORE_START_WARM;
}

static bool judge_head(struct store *store, const struct seg_info *info, const struct saved_store *saved)
{
	char boot[BOOT_ID_BYTES];

	if (memcmp(saved->uuid, info->uuid, sizeof(saved->uuid)) != 0)
		tell(store, STORE_START_OTHER_FLASH, "");
	else if (saved->attach_epoch + 1 != info->attach_epoch)
		tell(store, STORE_START_OTHER_START, "");
	else if (!boot_id(store, boot) || memcmp(saved->boot_id, boot, sizeof(boot)) != 0)
		tell(store, STORE_START_BOOT, "");
	else if (saved->flush_cas >= atomic_load(&store->cas_next) || saved->flush_at > UINT32_MAX)
		tell(store, STORE_START_DAMAGED, "");
	return store->start == STORE_START_WARM && judge_downtime(store, saved);
}

/* Tells why reading the file has failed with this code. */
static void tell_failure(struct store *store, int code)
{
	int error = errno;

	switch (code) {
	case FS_ENOTFOUND:
		return tell(store, STORE_START_NO_FILE, "");
	case FS_EVERSION:
		return tell(store, STORE_START_VERSION, "");
	case FS_ECORRUPT:
	case FS_ESHORT:
		return tell(store, STORE_START_DAMAGED, "");
	case FS_EINVAL:
		return tell(store, STORE_START_OPTIONS, "");
	case FS_ERANGE:
		return tell(store, STORE_START_MEMORY, "");
	default:
		return tell(store, STORE_START_UNREADABLE, code == FS_ESYS ? strerror(error) : fs_strerror(code));
	}
}

/* Fills segments and index. A code of seg_load or fidx_load. */
static int load_parts(struct store *store, const struct seg_info *info, struct parts_reader *reader)
{
	uint64_t *sequences, length;
	int result = seg_load(store->segments, reader);

	if (result != FS_OK)
		return result;
	sequences = mem_zalloc(info->segments * sizeof(*sequences));
	if (!sequences)
		return FS_ENOMEM;
	for (uint32_t s = 0; s < info->segments; s++)
		sequences[s] = seg_sequence(store->segments, s);
	result = fidx_load(store->index, sequences, info->segment_bytes, reader);
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
	char path[RESTART_PATH_BYTES];
	struct seg_info info;
	int result;

	seg_get_info(store->segments, &info);
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
	parts_close(reader);
	if (store->start != STORE_START_WARM)
		return restart;
	take_head(store, &saved);
	store->load_us = clk_now_us(store->clock) - store->load_us;
	return RESTART_WARM;
}

void restart_refuse(struct store *store, enum store_start why)
{
	store->origin_us = store->opened_us;
	atomic_store(&store->flush_cas, atomic_load(&store->cas_next) - 1);
	atomic_store(&store->flush_at, 0);
	tell(store, why, "");
}

void restart_consume(struct store *store)
{
	char path[RESTART_PATH_BYTES];
	struct fidx_status index;

	fidx_get_status(store->index, &index);
	if (store->start == STORE_START_WARM && seg_keep(store->segments) != FS_OK)
		log_warn("flash: its superblock can't be written: flashield-inspect will miss objects of earlier runs");
	if (store->start == STORE_START_WARM)
		log_notice("flash: warm start, with %" PRIu64 " objects, loaded in %.3f s",
			   index.used + index.extents_used - index.ghosts, (double)store->load_us / 1e6);
	else if (store->start != STORE_START_NO_STATE_DIR && store->start != STORE_START_OFF)
		log_notice("flash: %s", store->start_text);
	if (!store->config.state_dir || store->start == STORE_START_OTHER_FLASH)
		return;
	state_path(store, path);
	/* The epoch has made the file invalid already; it only takes room. */
	if (parts_remove(path) != FS_OK)
		log_warn("flash: %s can't be removed: %s", path, strerror(errno));
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
	saved.stopped_us = clk_now_us(store->clock);
	saved.origin_us = store->origin_us;
	saved.flush_cas = atomic_load(&store->flush_cas);
	saved.flush_at = atomic_load(&store->flush_at);
	if (!boot_id(store, saved.boot_id))
		return FS_ESYS;
	result = parts_create(&writer, path);
	if (result != FS_OK)
		return result;
	parts_put(writer, PARTS_STORE, 0, &saved, sizeof(saved));
	seg_save(store->segments, writer);
	fidx_save(store->index, writer);
	return parts_finish(writer);
}

bool store_save(struct store *store)
{
	char path[RESTART_PATH_BYTES];
	uint64_t began_us = clk_now_us(store->clock);
	int result;

	if (!store->index || !store->config.state_dir || store->config.restart_max_downtime_us == 0)
		return false;
	store_apply_due_flush(store, store_now_seconds(store, began_us));
	state_path(store, path);
	result = seg_offline(store->segments) ? FS_EOFFLINE : save_parts(store, path);
	if (result == FS_OK)
		result = seg_end_clean(store->segments);
	if (result != FS_OK) {
		log_warn("flash: its state can't be saved in %s, so the next start is cold: %s",
			 store->config.state_dir, result == FS_ESYS ? strerror(errno) : fs_strerror(result));
		/* Where the mark may be there after all, there is no file that it could make valid. */
		(void)!parts_remove(path);
		return false;
	}
	log_info("flash: its state is saved in %s, in %.3f s", store->config.state_dir,
		 (double)(clk_now_us(store->clock) - began_us) / 1e6);
	return true;
}
