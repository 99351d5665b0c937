/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/region.h"
#include "conf/units.h"
#include "segments/segments.h"
#include "server/store/state/instance.h"
#include "server/store/state/sizing.h"
#include "server/store/store.h"

#define OPENED_MOST (1ull << 30) /* -m up to which a store is opened to see whether all fits: it takes a part of -m */
#define MODEL_MEMORY (16u << 20) /* of the store that reads a model */

/* Opens the store on a device in memory, and without the folders of the real one: a daemon may have its region open, or the next
   one needs it. On success the caller closes it. */
static int open_on_memory(struct store **out, const struct store_config *config, uint64_t flash_bytes, char reason[256])
{
	struct store_config copy = *config;

	copy.state_dir = NULL;
	copy.region_dir = NULL;
	copy.flash_min_free = 0;
	if (copy.flash_path) {
		copy.flash_bytes = flash_bytes;
		copy.flash_device = dev_memory_create(flash_bytes);
		if (!copy.flash_device) {
			snprintf(reason, 256, "%s", fs_strerror(FS_ENOMEM));
			return FS_ENOMEM;
		}
	}
	return store_open(out, &copy, reason);
}

static int check_path(const struct store_config *config, char reason[256])
{
	int code = seg_check_path(config->flash_path, config->takes_extstore);

	if (code != FS_OK)
		sizing_path_refused(config->flash_path, code, reason);
	return code;
}

/* With --flash-min-free a start goes on without flash where the file doesn't fit, so that it is no fault. */
static int check_room(const struct store_config *config, uint64_t wanted, char reason[256])
{
	uint64_t free_bytes = seg_free_bytes(config->flash_path, wanted);
	char file[UNITS_TEXT_BYTES], there[UNITS_TEXT_BYTES];

	if (free_bytes >= wanted)
		return FS_OK;
	if (config->flash_min_free) {
		log_warn("flash-path %s: it would take %s, and %s are free there: all objects would stay in memory",
			 config->flash_path, units_show_size(wanted, file), units_show_size(free_bytes, there));
		return FS_OK;
	}
	errno = ENOSPC;
	sizing_no_room(config->flash_path, wanted, reason);
	return FS_ESYS;
}

/* Is the folder in memory, and may the file in it be read? */
static int check_region(const struct store_config *config, char reason[256])
{
	const uint64_t most[REGION_AREAS] = { [REGION_STORE] = 1 };
	const char *slash = strrchr(config->flash_path, '/');
	char name[4200];
	enum region_found found;
	struct region *region;
	int code;

	snprintf(name, sizeof(name), "%s" INSTANCE_REGION_SUFFIX, slash ? slash + 1 : config->flash_path);
	code = region_look(&region, most, config->region_dir, name, &found, reason);
	if (code == FS_OK)
		region_destroy(region);
	else if (!reason[0])
		snprintf(reason, 256, "--region-dir: %s", fs_strerror(code));
	return code;
}

int store_check(const struct store_config *config, char reason[256])
{
	struct sizing sizing = { 0 };
	struct store *store;
	int code = FS_OK;

	if (config->flash_path) {
		code = check_path(config, reason);
		if (code == FS_OK)
			code = sizing_make(config, &sizing, reason);
		if (code == FS_OK)
			code = check_room(config, sizing.flash_used, reason);
		if (code == FS_OK)
			sizing_tell_smaller(config->flash_path, &sizing);
		if (code == FS_OK && config->region_dir)
			code = check_region(config, reason);
	}
	if (code != FS_OK || config->memory_bytes > OPENED_MOST)
		return code;
	code = open_on_memory(&store, config, sizing.flash_used, reason);
	if (code == FS_OK)
		store_close(store);
	return code;
}

int store_check_model(const struct store_config *config, const struct store_models *models, char reason[256])
{
	const struct store_models given = { .given = models->given, .pinned = models->pinned };
	struct store_config small = *config;
	struct store *store;
	int code;

	if (!models->given || !config->flash_path)
		return FS_OK;
	small.memory_bytes = MODEL_MEMORY;
	small.max_item_bytes = MODEL_MEMORY / 16;
	small.segment_bytes = 0;
	code = open_on_memory(&store, &small, MODEL_MEMORY, reason);
	if (code != FS_OK)
		return code;
	code = store_open_models(store, &given, reason);
	store_close(store);
	return code;
}
