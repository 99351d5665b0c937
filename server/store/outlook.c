/* SPDX-License-Identifier: BSD-3-Clause */
/* The heads of what the last run has left, and the start that only looks. */
#include "server/store/outlook.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/store/cleaner/saved_items.h"
#include "server/store/state/attach.h"
#include "server/store/state/ids_note.h"
#include "server/store/state/instance.h"
#include "server/store/state/journal.h"

/* ---- heads ----------------------------------------------------------------------------------- */

/* Reads the first part of a file of the state directory. False, with a code: there is none that can be read. */
static bool read_head(struct outlook_file *file, enum parts_kind kind, void *head, uint64_t bytes)
{
	struct parts_reader *reader;

	file->code = parts_open(&reader, file->path);
	if (file->code == FS_OK) {
		file->code = parts_take(reader, kind, 0, head, bytes);
		file->error = errno;
		parts_close(reader);
	} else {
		file->error = errno;
	}
	return file->code == FS_OK;
}

static bool is_this_boot(const struct store *store, const char boot_id[BOOT_ID_BYTES])
{
	char boot[BOOT_ID_BYTES];

	return restart_boot_id(store, boot) && memcmp(boot_id, boot, sizeof(boot)) == 0;
}

static void find_state(const struct store *store, struct outlook_file *file)
{
	struct saved_store saved;

	instance_state_path(store->config.state_dir, store->flash_path, file->path);
	if (!read_head(file, PARTS_STORE, &saved, sizeof(saved)))
		return;
	memcpy(file->uuid, saved.uuid, sizeof(file->uuid));
	file->epoch = saved.attach_epoch;
	file->this_boot = is_this_boot(store, saved.boot_id);
	file->time_us = saved.stopped_us;
}

static void find_items(const struct store *store, struct outlook_file *file)
{
	struct saved_head head;

	saved_path_of(store->config.state_dir, store->flash_path, file->path);
	if (!read_head(file, PARTS_ITEMS_HEAD, &head, sizeof(head)))
		return;
	memcpy(file->uuid, head.uuid, sizeof(file->uuid));
	file->epoch = head.attach_epoch;
	file->this_boot = is_this_boot(store, head.boot_id);
	file->time_us = head.stopped_us;
	file->counted = true;
	file->objects = head.objects;
}

static int region_code(enum region_found found)
{
	switch (found) {
	case REGION_FOUND_NONE:
		return FS_ENOTFOUND;
	case REGION_FOUND_VERSION:
		return FS_EVERSION;
	case REGION_FOUND_SAME:
	case REGION_FOUND_LAYOUT: /* the store's area comes first, whatever the others' sizes */
	case REGION_FOUND_COPY:
		return FS_OK;
	case REGION_FOUND_DAMAGED:
		break;
	}
	return FS_ECORRUPT;
}

static void take_kept(const struct store *store, const struct kept *kept, struct outlook_file *file)
{
	bool taken = atomic_load(&kept->id) == 0 && atomic_load(&kept->next_id) != 0;

	memcpy(file->uuid, kept->uuid, sizeof(file->uuid));
	file->sealed = taken || atomic_load(&kept->id) != 0;
	file->epoch = atomic_load(taken ? &kept->next_epoch : &kept->epoch);
	file->this_boot = is_this_boot(store, kept->boot_id);
	file->time_us = atomic_load(&kept->alive_us);
}

static void find_region(const struct store *store, struct outlook_file *file)
{
	const uint64_t most[REGION_AREAS] = { [REGION_STORE] = sizeof(struct kept) };
	const char *slash = strrchr(store->flash_path, '/');
	char name[4200];
	enum region_found found;
	struct region *region;

	snprintf(name, sizeof(name), "%s" INSTANCE_REGION_SUFFIX, slash ? slash + 1 : store->flash_path);
	snprintf(file->path, sizeof(file->path), "%s/%s", store->config.region_dir, name);
	file->code = region_look(&region, most, store->config.region_dir, name, &found, file->why);
	file->error = errno;
	if (file->code != FS_OK)
		return;
	file->code = region_code(found);
	if (file->code == FS_OK)
		file->code = region_commit(region, REGION_STORE, sizeof(struct kept));
	if (file->code == FS_OK)
		take_kept(store, region_area(region, REGION_STORE), file);
	region_destroy(region);
}

void outlook_find(const struct store_config *config, struct outlook_files *out)
{
	struct store *store = mem_zaligned(_Alignof(struct store), sizeof(*store));

	must(store);
	memset(out, 0, sizeof(*out));
	store->config = *config;
	snprintf(store->flash_path, sizeof(store->flash_path), "%s", config->flash_path);
	if (config->state_dir) {
		find_state(store, &out->state);
		find_items(store, &out->items);
	}
	if (config->region_dir)
		find_region(store, &out->region);
	mem_free(store);
}

void outlook_find_journal(const struct store_config *config, const uint8_t uuid[16], uint32_t segments,
			  struct outlook_file *out)
{
	struct journal_medium *medium;
	struct journal_found found;

	memset(out, 0, sizeof(*out));
	instance_journal_path(config->state_dir, config->flash_path, out->path);
	medium = config->journal_medium ? config->journal_medium : journal_directory(out->path);
	must(medium);
	out->code = journal_read(medium, uuid, segments, NULL, NULL, &found);
	out->error = errno;
	medium->close(medium);
	if (out->code != FS_OK)
		return;
	memcpy(out->uuid, uuid, sizeof(out->uuid));
	out->epoch = found.epoch;
	out->time_us = (found.state.served_s ? found.state.served_s : found.wall_s) * 1000000;
	journal_found_fini(&found);
}

void outlook_find_ids(const struct store_config *config, struct outlook_ids *out)
{
	DIR *folder = opendir(config->state_dir);
	char path[INSTANCE_PATH_BYTES];
	struct dirent *entry;

	memset(out, 0, sizeof(*out));
	while (folder && (entry = readdir(folder))) {
		uint64_t end;

		if (!instance_is_ids(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", config->state_dir, entry->d_name);
		out->notes++;
		if (ids_note_read(path, &end) != FS_OK)
			out->damaged++;
		else if (end > out->end)
			out->end = end;
	}
	if (folder)
		closedir(folder);
}

/* ---- the start that only looks --------------------------------------------------------------- */

void outlook_judge(const struct store_config *config, struct outlook *out)
{
	struct store_config look = *config;
	struct loader_figures loader;
	struct fidx_recounted recounted;
	struct frugal_status frugal = { 0 };
	struct fidx_status index;
	struct store *store;

	memset(out, 0, sizeof(*out));
	look.look_only = look.unwatched = true;
	if (store_open(&store, &look, out->reason) != FS_OK) {
		out->refused = true;
		return;
	}
	(void)!fidx_recount(store->index, UINT64_MAX, &recounted);
	fidx_get_status(store->index, &index);
	if (store->frugal)
		frugal_get_status(store->frugal, &frugal);
	loader_get_figures(store, &loader);
	out->warm = restart_is_warm(store);
	out->objects = index.used + index.extents_used - index.ghosts + frugal.objects;
	out->word = store_start_word(store->start);
	snprintf(out->text, sizeof(out->text), "%s", store->start_text);
	out->dram_warm = loader.start == SAVED_START_WARM;
	out->dram_word = saved_start_word(loader.start);
	out->dram_text = saved_start_text(loader.start);
	store_close(store);
}
