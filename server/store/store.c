/* SPDX-License-Identifier: BSD-3-Clause */
/* The store's life: opening in order, closing in the mirrored order; the values that may change in between. */
#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "conf/units.h"
#include "server/store/cleaner/cleaner.h"
#include "server/store/cleaner/saved_items.h"
#include "server/store/dram/limits.h"
#include "server/store/request/sketch.h"
#include "server/store/state/attach.h"
#include "server/store/state/bins.h"
#include "server/store/state/id_times.h"
#include "server/store/state/ids.h"
#include "server/store/state/ids_note.h"
#include "server/store/state/losses.h"
#include "server/store/state/sizing.h"

#define COUNT_BYTES_EACH 4
#define COUNTS_SHARE 16 /* of -m */
#define COUNTS_LEAST 4096u

void store_config_init(struct store_config *config)
{
	*config = (struct store_config){ .clock = clk_boot(),
					 .memory_bytes = 64ull << 20,
					 .max_item_bytes = 1u << 20,
					 .evict = true,
					 .cas = true,
					 .workers = 1,
					 .flash_object_bytes = 400,
					 .filter_bits = -1,
					 .functions = 16,
					 .hot_fraction = 0.7,
					 .promotion = { .miss_cost = 50, .width = 256, .threshold = 0.19 },
					 .flash_write_ratio = 0.2,
					 .size_exponent = 1,
					 .read_timeout_ms = 1000,
					 .flashiness_threshold = 1,
					 .training_window_ms = 86400000,
					 .app_delimiter = ':' };
}

/* ---- the start ----------------------------------------------------------------------------- */

static void open_log_start(const struct store *store, const struct sizing *sizing)
{
	char more[160] = "", unused[UNITS_TEXT_BYTES], flash[UNITS_TEXT_BYTES], segment[UNITS_TEXT_BYTES],
	     index[UNITS_TEXT_BYTES];

	units_show_size(sizing->flash_given - sizing->flash_used, unused);
	if (sizing->flash_used < sizing->flash_given && sizing->segments == SEG_MAX_SEGMENTS)
		snprintf(more, sizeof(more), "; %s of the flash stay unused, because there are at most %u segments",
			 unused, SEG_MAX_SEGMENTS);
	else if (sizing->flash_used < sizing->flash_given)
		snprintf(more, sizeof(more), "; %s of the flash stay unused; -m %llu would use all of it", unused,
			 (unsigned long long)sizing->memory_for_all >> 20);
	else if (sizing->memory_for_all > store->config.memory_bytes)
		snprintf(more, sizeof(more), "; with objects of %u bytes it takes -m %llu to use all of it",
			 store->config.flash_object_bytes, (unsigned long long)sizing->memory_for_all >> 20);
	log_notice("flash: %s, %s in %u segments of %s; the index begins with %s (tag %u bits)%s", store->flash_path,
		   units_show_size(store->flash_capacity, flash), sizing->segments,
		   units_show_size(store->segment_bytes, segment),
		   units_show_size(sizing->buckets * FIDX_BUCKET_SLOTS * sizeof(uint32_t), index), store->tag_bits,
		   more);
}

/* ---- tuning -------------------------------------------------------------------------------------- */

void store_get_tuning(const struct store *store, struct store_tuning *out)
{
	*out = (struct store_tuning){ .hot_fraction = atomic_load(&store->tuning.hot_fraction),
				      .flash_write_limit = atomic_load(&store->tuning.flash_write_limit),
				      .flash_write_dwpd = atomic_load(&store->tuning.flash_write_dwpd),
				      .flash_write_ratio = store_write_ratio(store),
				      .promote_miss_cost = atomic_load(&store->tuning.promote_miss_cost),
				      .read_timeout_ms = atomic_load(&store->tuning.read_timeout_ms),
				      .admission = (enum clf_admission)atomic_load(&store->tuning.admission) };
}

void store_set_tuning(struct store *store, const struct store_tuning *tuning)
{
	atomic_store(&store->tuning.hot_fraction, tuning->hot_fraction);
	atomic_store(&store->tuning.flash_write_limit, tuning->flash_write_limit);
	atomic_store(&store->tuning.flash_write_dwpd, tuning->flash_write_dwpd);
	atomic_store(&store->tuning.flash_write_ratio, tuning->flash_write_ratio);
	atomic_store(&store->tuning.promote_miss_cost, tuning->promote_miss_cost);
	atomic_store(&store->tuning.read_timeout_ms, tuning->read_timeout_ms);
	atomic_store(&store->tuning.admission, (int)tuning->admission);
	if (store->classifier)
		clf_set_admission(store->classifier, tuning->admission);
}

/* ---- opening --------------------------------------------------------------------------------- */

static struct fidx_config open_index_config(const struct store *store, const struct sizing *sizing)
{
	const struct store_config *config = &store->config;

	return (struct fidx_config){
		.buckets = sizing->buckets,
		.buckets_most = sizing->buckets_most,
		.segments = sizing->index_segments,
		.tag_bits = config->tag_bits,
		.functions = config->functions,
		.clock_mode = config->clock_mode,
		.seed = store->hash_seed,
		.filter = config->filter_units ? FIDX_FILTER_BLOOM : config->filter,
		.filter_units = config->filter_units,
		.filter_bits = config->filter_bits > 0 ? (unsigned)config->filter_bits : 0,
		.extents_most = sizing->extents_most,
	};
}

static int open_region(struct store *store, const struct sizing *sizing, const struct fidx_config *index,
		       char reason[256])
{
	uint64_t most[REGION_AREAS] = { [REGION_SEGMENTS] = seg_region_bytes(
						sizing->index_segments, sizing->segment_bytes, sizing->crossings) };

	fidx_region_most(index, most);
	bins_region_most(store, most);
	return attach_open(store, most, reason);
}

static int open_segments(struct store *store, const struct sizing *sizing)
{
	const struct store_config *config = &store->config;
	const struct seg_config segments = { .clock = store->clock,
					     .path = store->flash_path,
					     .device = config->flash_device,
					     .flash_bytes = sizing->flash_used,
					     .segment_bytes = sizing->segment_bytes,
					     .index_segments = sizing->index_segments,
					     .index_flash_bytes = sizing->index_flash_bytes,
					     .asked_bytes = sizing->flash_asked,
					     .functions = config->functions,
					     .direct = config->direct,
					     .read_unit = config->read_unit,
					     .crossings = sizing->crossings,
					     .look_only = config->look_only,
					     .owner = config->flash_owner,
					     .seed = config->flash_device ? config->seed : 0 };
	struct seg_info info;
	int result = seg_look(&store->segments, &segments, region_area(store->region, REGION_SEGMENTS));

	if (result != FS_OK)
		return result;
	seg_get_info(store->segments, &info);
	store->hash_seed = info.hash_seed;
	store->fixed_bytes += info.staging_bytes;
	store->segment_bytes = sizing->segment_bytes;
	store->slot_record_bytes = sizing->slot_record_bytes;
	store->flash_capacity = (uint64_t)sizing->segments * info.segment_bytes;
	store->flash_asked = sizing->flash_asked;
	return FS_OK;
}

/* Counts of so many keys as flash and DRAM have objects, and of as many that have left; not more than a 16th of -m. */
static size_t open_counts_bytes(const struct store *store)
{
	uint64_t objects = (store->flash_capacity + store->config.memory_bytes) / store->config.flash_object_bytes;
	uint64_t bytes = objects * COUNT_BYTES_EACH, most = store->config.memory_bytes / COUNTS_SHARE;

	return bytes > most ? most : bytes < COUNTS_LEAST ? COUNTS_LEAST : bytes;
}

static int open_classifier(struct store *store)
{
	const struct store_config *config = &store->config;
	uint64_t share = config->memory_bytes / 32, most = (1u << 20) + config->memory_bytes / 128;
	uint64_t memory = share < most ? share : most;
	const struct clf_config classifier = { .clock = store->clock,
					       .seed = config->seed,
					       .label_mode = config->label_mode,
					       .admission = config->admission,
					       .threshold = config->flashiness_threshold,
					       .training_window_ms = config->training_window_ms,
					       .horizon_ms = config->flashiness_horizon_ms,
					       .memory_bytes = memory < 64 << 10    ? 64 << 10
							       : memory > 256 << 20 ? 256 << 20
										    : memory,
					       .app_delimiter = config->app_delimiter,
					       .counts_bytes = open_counts_bytes(store),
					       .flash_bytes = store->flash_capacity,
					       .size_exponent = config->size_exponent };
	int result = clf_create(&store->classifier, &classifier);

	if (result != FS_OK)
		return result;
	store->fixed_bytes += clf_memory_bytes(store->classifier);
	store->plain_shape = clf_keeps_gaps(store->classifier) ? ITEM_GAPS : ITEM_READS;
	return FS_OK;
}

/* With --flash-min-free the operator accepts a store without flash: a cache in DRAM is better than none. */
static int open_without_flash(struct store *store, uint64_t wanted, const char *cause)
{
	char size[UNITS_TEXT_BYTES];

	snprintf(store->without_flash, sizeof(store->without_flash), "%s is not used, a file of %s: %s",
		 store->flash_path, units_show_size(wanted, size), cause);
	log_warn("flash: %s: all objects stay in memory", store->without_flash);
	store->config.flash_path = NULL;
	if (store->region) {
		store->fixed_bytes -= store_region_fixed_bytes(store);
		region_destroy(store->region);
		store->region = NULL;
	}
	return FS_OK;
}

/* Is the file there, or may it be made? */
static bool open_has_flash_room(struct store *store, const struct sizing *sizing)
{
	uint64_t wanted = store->config.flash_min_free, bytes = seg_free_bytes(store->flash_path, sizing->flash_used);
	char cause[128], there[UNITS_TEXT_BYTES], asked[UNITS_TEXT_BYTES];

	if (wanted == 0 || bytes >= wanted || store->config.flash_device)
		return true;
	snprintf(cause, sizeof(cause), "%s are free there, --flash-min-free asks for %s", units_show_size(bytes, there),
		 units_show_size(wanted, asked));
	(void)open_without_flash(store, sizing->flash_used, cause);
	return false;
}

/* The least -m that would do. The parts beside items grow with -m too, so half of each further byte is theirs. */
static int open_too_little_memory(const struct store *store, char reason[256])
{
	uint64_t limit = store_memory_limit(store), others = store_used_bytes(store), enough = limit;

	while (enough < others + memory_least_for_items(store, enough) + (enough - limit) / 2)
		enough += 1u << 20;
	snprintf(
		reason, 256,
		"-m/--memory-limit: %.2f MiB is too little: index, segments and classifier take %.2f MiB; with segments of %llu KiB, -m %llu is enough",
		(double)limit / (1 << 20), (double)others / (1 << 20), (unsigned long long)(store->segment_bytes >> 10),
		(unsigned long long)(enough >> 20) + 1);
	return FS_ERANGE;
}

/* Does an empty index leave enough of -m for items? It is made for this question alone, outside of the region. */
static int open_judge_memory(struct store *store, const struct fidx_config *index)
{
	uint64_t most[REGION_AREAS] = { 0 };
	struct frugal *frugal = NULL;
	struct region *region;
	struct fidx *empty;
	int result;

	fidx_region_most(index, most);
	bins_region_most(store, most);
	result = region_create(&region, most);
	if (result != FS_OK)
		return result;
	result = fidx_create(&empty, index, region);
	if (result == FS_OK) {
		if (store->config.index == STORE_INDEX_FRUGAL)
			result = frugal_create(&frugal, &store->frugal_config, region);
		tables_account_of(store, empty, frugal);
		frugal_destroy(frugal);
		fidx_destroy(empty);
		if (result == FS_OK && !memory_suffices(store, store->config.memory_bytes))
			result = FS_ERANGE;
	}
	region_destroy(region);
	return result;
}

static void open_settle(const struct store *store)
{
	if (store->config.settle && !store->config.look_only)
		store->config.settle();
}

/* Makes an empty index, in place of one that was filled in part, or is too large. A region that another start can still
   use is emptied only for a start that has enough memory: FS_ERANGE. */
static int open_empty(struct store *store, const struct fidx_config *index)
{
	int result = FS_OK;

	fidx_destroy(store->index);
	store->index = NULL;
	bins_destroy(store);
	if (store->config.region_dir)
		result = open_judge_memory(store, index);
	/* From here on the region of a killed run is gone. A clean end has left none. */
	if (result == FS_OK && store->region_found != REGION_FOUND_NONE)
		open_settle(store);
	if (result == FS_OK)
		result = attach_empty(store);
	if (result == FS_OK)
		result = fidx_create(&store->index, index, store->region);
	return result == FS_OK ? bins_create(store) : result;
}

/* Is there only no index of the last run? */
static bool open_lacks_index(enum store_start start)
{
	switch (start) {
	case STORE_START_UNCLEAN:
	case STORE_START_BOOT:
	case STORE_START_NO_FILE:
	case STORE_START_REGION_NONE:
	case STORE_START_REGION_VERSION:
	case STORE_START_REGION_LAYOUT:
	case STORE_START_REGION_COPY:
	case STORE_START_REGION_DAMAGED:
	case STORE_START_REGION_OTHER_FLASH:
	case STORE_START_REGION_OTHER_RUN:
		return true;
	default:
		return false;
	}
}

/* Where nothing else speaks against a warm start, the journal may have what a rebuild of the index needs. */
static enum restart open_rebuild(struct store *store)
{
	enum store_start start = store->start;
	char more[80];

	if (!open_lacks_index(start))
		return RESTART_COLD;
	start = losses_judge(store, more);
	if (start == STORE_START_REBUILT && rebuild_plan(store) != FS_OK) {
		restart_tell(store, STORE_START_JOURNAL, "");
		return RESTART_SPOILT;
	}
	restart_tell(store, start, more);
	if (start != STORE_START_REBUILT)
		return RESTART_COLD;
	losses_take_times(store);
	return RESTART_WARM;
}

/* Begins the journal. Without it, a rebuild would not know what commands do meanwhile. */
static void open_journal(struct store *store)
{
	if (!store->losses)
		return;
	losses_begin(store);
	if (!store->losses && store->rebuild) {
		rebuild_cancel(store);
		restart_refuse(store, STORE_START_JOURNAL);
		kept_take(store);
	}
}

/* Makes the index, with the objects that the last run has left on flash if they may be used: those in its region, else
   those in its state file, else those that its journal calls committed. */
static int open_index(struct store *store, const struct fidx_config *index)
{
	enum restart restart = attach_load(store, index);
	int result = FS_OK;

	if (restart == RESTART_COLD)
		result = open_empty(store, index);
	if (restart == RESTART_COLD && result == FS_OK)
		restart = restart_load(store);
	if (result == FS_OK && restart == RESTART_COLD && store->losses)
		restart = open_rebuild(store);
	if (restart == RESTART_WARM) {
		tables_resume(store);
		if (memory_suffices(store, store->config.memory_bytes))
			return FS_OK;
		rebuild_cancel(store);
		restart_refuse(store, STORE_START_MEMORY);
	}
	if (result == FS_OK && restart != RESTART_COLD)
		result = open_empty(store, index);
	if (result != FS_OK)
		return result;
	/* Before the flash is taken over, and the state file removed. */
	tables_account_of(store, store->index, store->frugal);
	return memory_suffices(store, store->config.memory_bytes) ? FS_OK : FS_ERANGE;
}

/* A flash that was moved to a smaller device goes on with the index that it has, as long as a start may be warm. */
static void open_take_shape(const struct store *store, struct sizing *sizing)
{
	const struct store_config *config = &store->config;
	const struct seg_config look = { .path = store->flash_path,
					 .device = config->flash_device,
					 .flash_bytes = sizing->flash_used };
	struct seg_shape shape;

	if (sizing_may_be_warm(config) && seg_read_shape(&look, &shape) && sizing_take_shape(config, &shape, sizing))
		log_info("flash: the index has room for %u segments, as before the flash was moved to a smaller device",
			 sizing->index_segments);
}

static int open_flash(struct store *store, char reason[256])
{
	struct sizing sizing = { 0 };
	struct fidx_config index;
	int result = sizing_take_extstore(&store->config, reason);

	if (result != FS_OK || (result = sizing_make(&store->config, &sizing, reason)) != FS_OK ||
	    (result = bins_judge_options(store, reason)) != FS_OK || !open_has_flash_room(store, &sizing))
		return result;
	sizing_tell_smaller(store->flash_path, &sizing);
	open_take_shape(store, &sizing);
	index = open_index_config(store, &sizing);
	bins_configure(store, &sizing);
	if ((result = open_region(store, &sizing, &index, reason)) != FS_OK)
		return result;
	if ((result = open_segments(store, &sizing)) != FS_OK) {
		if (!store->segments && result == FS_ESYS && (errno == ENOSPC || errno == EDQUOT) &&
		    store->config.flash_min_free)
			return open_without_flash(store, sizing.flash_used, strerror(errno));
		if (result == FS_ESYS && (errno == ENOSPC || errno == EDQUOT))
			sizing_no_room(store->flash_path, sizing.flash_used, reason);
		else
			sizing_path_refused(store->flash_path, result, reason);
		return result;
	}
	index.seed = store->frugal_config.seed = store->hash_seed;
	result = open_classifier(store);
	if (result == FS_OK && store->config.journal && store->config.state_dir)
		result = losses_read(store);
	if (result == FS_OK)
		result = open_index(store, &index);
	if (result == FS_OK)
		open_settle(store);
	if (result == FS_OK)
		result = store->config.look_only ? ids_look(store) : restart_take_over(store);
	if (result == FS_ERANGE && !memory_suffices(store, store->config.memory_bytes))
		return open_too_little_memory(store, reason);
	if (result != FS_OK) {
		if (!region_is_short(store->region, reason))
			snprintf(reason, 256, "index and classifier: %s", fs_strerror(result));
		return result;
	}
	store->tag_bits = fidx_tag_bits(store->index);
	if (!store->config.look_only)
		open_journal(store);
	if (!store->rebuild)
		tables_tidy(store);
	open_log_start(store, &sizing);
	tables_tell_filters(store);
	return FS_OK;
}

int store_open(struct store **out, const struct store_config *config, char reason[256])
{
	struct store *store = mem_zaligned(CACHE_LINE, sizeof(*store));
	int result = FS_OK;

	reason[0] = '\0';
	must(store);
	store->config = *config;
	store->clock = config->clock;
	store->origin_us = store->opened_us = clk_now_us(store->clock);
	if (store->config.seed == 0)
		rng_secret(&store->config.seed, sizeof(store->config.seed));
	store->hash_seed = store->config.seed;
	ids_init(store);
	memory_init(store);
	if (config->promotion.rule == STORE_PROMOTE_SKETCH && config->flash_path && config->evict)
		atomic_fetch_add(&store->promotion_bytes, config->workers * sketch_bytes(config->promotion.width));
	cleaner_create(store);
	store->wake = cleaner_wake;
	store_set_tuning(store, &(struct store_tuning){ .hot_fraction = config->hot_fraction,
							.flash_write_limit = config->flash_write_limit,
							.flash_write_dwpd = config->flash_write_dwpd,
							.flash_write_ratio = config->flash_write_ratio,
							.promote_miss_cost = config->promotion.miss_cost,
							.read_timeout_ms = config->read_timeout_ms,
							.admission = config->admission });
	atomic_store(&store->crawler_enabled, true);
	atomic_store(&store->crawl_sleep_us, STORE_CRAWL_SLEEP_US);
	if (config->flash_path) {
		snprintf(store->flash_path, sizeof(store->flash_path), "%s", config->flash_path);
		store->config.flash_path = store->flash_path;
		result = open_flash(store, reason);
	}
	limits_init(store);
	if (result == FS_OK)
		result = memory_suffices(store, config->memory_bytes) ? stripes_init(store)
								      : open_too_little_memory(store, reason);
	if (result != FS_OK) {
		if (!reason[0])
			snprintf(reason, 256, "%s", fs_strerror(result));
		int error = errno;

		store->stripe_count = 0;
		store_close(store);
		errno = error;
		return result;
	}
	const struct window_reading written = store_written(store);
	windows_init(&store->windows, &written);
	bins_begin(store);
	id_times_init(store);
	keeper_init(store);
	cleaner_init(store);
	samples_init(store);
	open_settle(store);
	loader_open(store);
	*out = store;
	return FS_OK;
}

/* ---- models ---------------------------------------------------------------------------------- */

static void open_saved_model(struct store *store, const char *path)
{
	char why[256];
	int code = clf_load_model(store->classifier, path, CLF_ORIGIN_SAVED, why);

	if (code != FS_OK && !(code == FS_ESYS && errno == ENOENT))
		log_warn("classifier: starts without the saved model: %s", why);
}

int store_reload_model(struct store *store, const char *given, bool pinned, char reason[256])
{
	return store->classifier ? clf_load_model(store->classifier, given,
						  pinned ? CLF_ORIGIN_PINNED : CLF_ORIGIN_IMPORTED, reason)
				 : FS_OK;
}

int store_open_models(struct store *store, const struct store_models *models, char reason[256])
{
	int code = FS_OK;

	if (!store->classifier)
		return FS_OK;
	if (models->given)
		code = store_reload_model(store, models->given, models->pinned, reason);
	else if (models->saved)
		open_saved_model(store, models->saved);
	if (code == FS_OK && models->saved)
		code = clf_save_models(store->classifier, models->saved);
	return code;
}

/* ---- the end --------------------------------------------------------------------------------- */

void store_close(struct store *store)
{
	rebuild_cancel(store);
	if (store->stripe_count) {
		loader_close(store);
		samples_fini(store);
		cleaner_fini(store);
		keeper_fini(store);
		id_times_fini(store);
		windows_fini(&store->windows);
		stripes_fini(store);
	}
	losses_close(store);
	ids_note_close(store);
	if (store->classifier)
		clf_destroy(store->classifier);
	if (store->index)
		fidx_destroy(store->index);
	bins_destroy(store);
	if (store->segments)
		seg_close(store->segments);
	if (store->region)
		region_destroy(store->region);
	cleaner_destroy(store);
	limits_fini(store);
	memory_fini(store);
	mem_free(store->claimed);
	mem_free(store);
}

int store_start(struct store *store)
{
	int result = losses_start(store);

	if (result == FS_OK)
		result = keeper_start(store);
	if (result == FS_OK)
		result = cleaner_start(store);
	if (result == FS_OK && store->classifier)
		result = clf_start(store->classifier);
	if (result == FS_OK)
		result = loader_start(store);
	if (result != FS_OK) { /* stops the ones that run */
		int error = errno;

		store_stop(store);
		errno = error;
	}
	return result;
}

void store_stop(struct store *store)
{
	loader_stop(store);
	if (store->classifier)
		clf_stop(store->classifier);
	cleaner_stop(store);
	keeper_stop(store);
	losses_stop(store);
}
