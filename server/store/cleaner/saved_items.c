/* SPDX-License-Identifier: BSD-3-Clause */
/* Which file holds the objects of the last run, and whether a start may believe it. */
#include "server/store/cleaner/saved_items.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"

#define FILE_SUFFIX ".items"
#define DAEMON_SEED 0x6461656d6f6eull
#define CAS_MOST (ITEM_CAS_MAX + 1)

static const struct {
	const char *word, *text;
} starts[] = {
	[SAVED_START_NO_STATE_DIR] = { "no_state_dir", "cold: there is no --state-dir" },
	[SAVED_START_WARM] = { "warm", "warm" },
	[SAVED_START_OFF] = { "off", "cold: --restart-max-downtime is 0" },
	[SAVED_START_NO_FILE] = { "no_file", "cold: the last run has saved no objects of DRAM in --state-dir" },
	[SAVED_START_UNREADABLE] = { "unreadable", "cold: the file of saved objects can't be read" },
	[SAVED_START_VERSION] = { "version", "cold: the file of saved objects has another format version" },
	[SAVED_START_DAMAGED] = { "damaged", "cold: the file of saved objects is damaged" },
	[SAVED_START_OTHER_DAEMON] = { "other_daemon", "cold: the file of saved objects is another daemon's" },
	[SAVED_START_OTHER_FLASH] = { "other_flash", "cold: the file of saved objects belongs to another flash" },
	[SAVED_START_OTHER_START] = { "other_start", "cold: the file of saved objects is of an earlier run" },
	[SAVED_START_BOOT] = { "boot", "cold: the machine was booted since the stop" },
	[SAVED_START_CLOCK] = { "clock", "cold: the clock was set back since the stop" },
	[SAVED_START_DOWNTIME] = { "downtime", "cold: the stop was longer ago than --restart-max-downtime" },
	[SAVED_START_KEPT] = { "kept", "cold: the file of saved objects can't be removed, so it is not used" },
	[SAVED_START_NO_MEMORY] = { "memory", "cold: there is no memory for loading" },
};

const char *saved_start_word(enum saved_start start)
{
	must(start < sizeof(starts) / sizeof(starts[0]));
	return starts[start].word;
}

const char *saved_start_text(enum saved_start start)
{
	must(start < sizeof(starts) / sizeof(starts[0]));
	return starts[start].text;
}

/* ---- names ----------------------------------------------------------------------------------- */

void saved_path_of(const char *state_dir, const char *flash_path, char out[SAVED_PATH_BYTES])
{
	const char *slash = flash_path ? strrchr(flash_path, '/') : NULL;

	snprintf(out, SAVED_PATH_BYTES, "%s/%s" FILE_SUFFIX, state_dir,
		 !flash_path ? "dram"
		 : slash     ? slash + 1
			     : flash_path);
}

void saved_path(const struct store *store, char out[SAVED_PATH_BYTES])
{
	saved_path_of(store->config.state_dir, store->index ? store->flash_path : NULL, out);
}

static uint64_t daemon_hash(const char *name)
{
	return hash64(name, strlen(name), DAEMON_SEED);
}

static uint64_t saved_daemon(const struct store *store)
{
	return daemon_hash(store->config.daemon ? store->config.daemon : "");
}

/* May this daemon use what that one has saved? */
static bool is_usable(const struct store *store, uint64_t daemon)
{
	for (unsigned i = 0; i < store->config.kin_count; i++)
		if (store->config.kin[i].covers && daemon_hash(store->config.kin[i].name) == daemon)
			return true;
	return daemon == saved_daemon(store);
}

bool saved_is_made_stale(const struct store *store, const struct saved_head *head)
{
	for (unsigned i = 0; i < store->config.kin_count; i++)
		if (daemon_hash(store->config.kin[i].name) == head->daemon)
			return true;
	return head->daemon == saved_daemon(store);
}

/* Removes a file that this run makes stale. False: it can't be removed. */
static bool forget_other(struct store *store, const char *path)
{
	struct parts_reader *reader;
	struct saved_head head = { 0 };
	int result = parts_open(&reader, path);

	if (result == FS_OK)
		result = parts_take(reader, PARTS_ITEMS_HEAD, 0, &head, sizeof(head));
	parts_close(reader);
	if (result != FS_OK || !saved_is_made_stale(store, &head))
		return true; /* no start believes the first kind; the other is another daemon's */
	if (parts_remove(path) == FS_OK)
		return true;
	log_warn("memory: %s can't be removed: %s; a later start may take it for new", path, strerror(errno));
	return false;
}

bool saved_forget_others(struct store *store)
{
	char own[SAVED_PATH_BYTES], path[SAVED_PATH_BYTES];
	DIR *folder = opendir(store->config.state_dir);
	struct dirent *entry;
	bool ok = true;

	if (!folder)
		return true; /* there is none yet */
	saved_path(store, own);
	while ((entry = readdir(folder))) {
		size_t length = strlen(entry->d_name), suffix = sizeof(FILE_SUFFIX) - 1;

		if (length <= suffix || strcmp(entry->d_name + length - suffix, FILE_SUFFIX) != 0)
			continue;
		snprintf(path, sizeof(path), "%s/%s", store->config.state_dir, entry->d_name);
		if (strcmp(path, own) != 0)
			ok = forget_other(store, path) && ok;
	}
	closedir(folder);
	return ok;
}

/* ---- the head -------------------------------------------------------------------------------- */

bool saved_head_make(struct store *store, struct saved_head *out)
{
	struct seg_info info;

	memset(out, 0, sizeof(*out));
	if (store->segments) {
		seg_get_info(store->segments, &info);
		memcpy(out->uuid, info.uuid, sizeof(out->uuid));
		out->attach_epoch = info.attach_epoch;
	}
	out->daemon = saved_daemon(store);
	out->stopped_us = restart_served_us(store);
	out->origin_us = store->origin_us;
	out->flush_cas = atomic_load(&store->flush_cas);
	out->cas_next = atomic_load(&store->cas_next);
	out->flush_at = atomic_load(&store->flush_at);
	out->objects = store_dram_items(store);
	out->classifier = store->classifier != NULL;
	return restart_boot_id(store, out->boot_id);
}

static enum saved_start judge_owner(struct store *store, const struct saved_head *head)
{
	struct seg_info info = { 0 };
	uint64_t epoch = 0;

	/* Who only looks doesn't know by which addresses the daemon is known. */
	if (!is_usable(store, head->daemon) && !store->config.look_only)
		return SAVED_START_OTHER_DAEMON;
	if (store->segments) {
		seg_get_info(store->segments, &info);
		epoch = info.attach_epoch - (store->config.look_only ? 0 : 1);
	}
	/* A flash with another layout gets a new name, and its epochs go on: no other run was between. */
	if (memcmp(head->uuid, info.found_uuid, sizeof(head->uuid)) != 0)
		return SAVED_START_OTHER_FLASH;
	return head->attach_epoch == epoch ? SAVED_START_WARM : SAVED_START_OTHER_START;
}

static enum saved_start judge_time(struct store *store, const struct saved_head *head)
{
	uint64_t pause_us = restart_pause_us(store, head->stopped_us, head->origin_us);
	char boot[BOOT_ID_BYTES];

	if (!restart_boot_id(store, boot) || memcmp(head->boot_id, boot, sizeof(boot)) != 0)
		return SAVED_START_BOOT;
	if (pause_us == UINT64_MAX)
		return SAVED_START_CLOCK;
	return pause_us > store->config.restart_max_downtime_us ? SAVED_START_DOWNTIME : SAVED_START_WARM;
}

enum saved_start saved_head_judge(struct store *store, const struct saved_head *head)
{
	enum saved_start start = judge_owner(store, head);

	if (start == SAVED_START_WARM)
		start = judge_time(store, head);
	if (start != SAVED_START_WARM)
		return start;
	if (head->classifier != (store->classifier != NULL) || head->cas_next == 0 ||
	    head->flush_cas >= head->cas_next || head->flush_at > UINT32_MAX ||
	    head->cas_next > (store->segments ? atomic_load(&store->cas_next) : CAS_MOST))
		return SAVED_START_DAMAGED;
	return SAVED_START_WARM;
}
