/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's own engine as a policy: the store over a device in memory, with a clock that stands at the trace's time.
 * No thread runs: keeper, cleaner and trainer do their steps between requests.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/metrics/counters.h"
#include "conf/units.h"
#include "server/store/store.h"
#include "tools/common/value.h"
#include "tools/sim/sim.h"

#define START_US (3600ull * 1000000) /* the clock's first reading: no time is zero */
#define STEP_REQUESTS 1 /* between steps of keeper and cleaner */
#define STEPS_BUSY 64 /* of them in a row, while there is something to do */
#define MEMORY_SHARE 1.5 /* -m by the bytes for objects, where these are given */
#define MEMORY_LEAST (4ull << 20)
#define LIMITS_BYTES 4096

struct sim_policy {
	struct clk clock;
	struct store *store;
	struct store_worker *worker;
	uint64_t requests, now_us;
	bool done; /* the request under way */
};

/* What the engine is made of. */
struct engine_config {
	struct store_config store;
	char model[PATH_MAX]; /* "": none */
	bool model_pinned;
	char limits_text[LIMITS_BYTES]; /* all values of app-limit, joined by commas */
	struct app_limits limits; /* what they say; store.limits */
};

/* ---- options --------------------------------------------------------------------------------- */

static const char *const admissions[] = { "svm", "read-once", "read-or-second-hit", "all", "freq", "second-hit", NULL };
static const char *const placements[] = { "sweep", "paper", NULL };
static const char *const reinsertions[] = { "read", "live", NULL };
static const char *const clock_modes[] = { "lru", "mfu", NULL };
static const char *const promotes[] = { "off", "sketch", "lru", "second", NULL };
static const char *const indexes[] = { "slots", "frugal", NULL };
static const char *const filters[] = { "bloom", "cuckoo", NULL };
static const char *const modes[] = { "full", "paper", NULL };
static const char *const read_units[] = { "block", "page", NULL };
static const char *const flags[] = { "no", "yes", NULL };

static int word_of(const char *text, const char *const *words)
{
	for (int i = 0; words[i]; i++)
		if (strcmp(words[i], text) == 0)
			return i;
	return -1;
}

static bool set_word(const char *text, const char *const *words, void *to)
{
	int word = word_of(text, words);

	if (word >= 0)
		*(int *)to = word;
	return word >= 0;
}

static bool set_real(const char *text, double *to)
{
	char *end;

	*to = strtod(text, &end);
	return *text && !*end;
}

static bool set_write_limit(const char *text, struct store_config *config)
{
	uint64_t rate;

	if (units_parse_rate(text, &rate) != FS_OK)
		return false;
	config->flash_write_limit = units_rate_bytes(rate);
	config->flash_write_dwpd = units_rate_dwpd(rate);
	return true;
}

static bool set_share(const char *text, double *to)
{
	if (strcmp(text, "auto") != 0)
		return set_real(text, to);
	*to = 0;
	return true;
}

static bool set_flag(const char *text, bool *to)
{
	int word = word_of(text, flags);

	*to = word == 1;
	return word >= 0;
}

static bool set_path(const char *text, char to[PATH_MAX])
{
	return *text && snprintf(to, PATH_MAX, "%s", text) < PATH_MAX;
}

/* A comma ends an option here, so that each value has one limit, as app1:dram=1m-. */
static bool set_limit(const char *text, struct engine_config *engine)
{
	size_t used = strlen(engine->limits_text);
	char why[APP_LIMITS_WHY_BYTES];

	if (used + strlen(text) + 2 > LIMITS_BYTES)
		return false;
	snprintf(engine->limits_text + used, LIMITS_BYTES - used, "%s%s", used ? "," : "", text);
	engine->store.limits = &engine->limits;
	return app_limits_parse(engine->limits_text, engine->store.app_delimiter, &engine->limits, why) == FS_OK &&
	       app_limits_floors(&engine->limits) <= APP_LIMIT_FLOORS(engine->store.memory_bytes);
}

/* Names and values are those of the daemon's options; slot-record, in bytes, is the engine's alone. */
static bool set_option(struct engine_config *engine, const char *name, const char *value)
{
	struct store_config *config = &engine->store;
	double real = 0;

	if (strcmp(name, "model") == 0)
		return set_path(value, engine->model);
	if (strcmp(name, "model-pinned") == 0)
		return set_flag(value, &engine->model_pinned);
	if (strcmp(name, "admission") == 0)
		return set_word(value, admissions, &config->admission);
	if (strcmp(name, "placement") == 0)
		return set_word(value, placements, &config->placement);
	if (strcmp(name, "reinsertion") == 0)
		return set_word(value, reinsertions, &config->reinsertion);
	if (strcmp(name, "label-mode") == 0)
		return set_word(value, modes, &config->label_mode);
	if (strcmp(name, "promote") == 0)
		return set_word(value, promotes, &config->promotion.rule);
	if (strcmp(name, "flash-read-unit") == 0)
		return set_word(value, read_units, &config->read_unit);
	if (strcmp(name, "index") == 0)
		return set_word(value, indexes, &config->index);
	if (strcmp(name, "filter") == 0)
		return set_word(value, filters, &config->filter);
	if (strcmp(name, "clock-mode") == 0)
		return set_word(value, clock_modes, &config->clock_mode);
	if (strcmp(name, "promote-share") == 0)
		return set_share(value, &config->promotion.share);
	if (strcmp(name, "flash-write-limit") == 0)
		return set_write_limit(value, config);
	if (strcmp(name, "app-limit") == 0)
		return set_limit(value, engine);
	if (!set_real(value, &real))
		return false;
	if (strcmp(name, "hot-fraction") == 0)
		config->hot_fraction = real;
	else if (strcmp(name, "flashiness-threshold") == 0)
		config->flashiness_threshold = (uint32_t)real;
	else if (strcmp(name, "filter-bits") == 0 && real >= 0 && real <= 16)
		config->filter_bits = (int)real;
	else if (strcmp(name, "frugal-memory") == 0 && real >= 1 && real <= 100)
		config->frugal_memory = (unsigned)real;
	else if (strcmp(name, "filter-units") == 0 && real >= 2 && real <= 8)
		config->filter_units = (unsigned)real;
	else if (strcmp(name, "tag-bits") == 0 && real >= 2 && real <= 24)
		config->tag_bits = (unsigned)real;
	else if (strcmp(name, "slot-record") == 0 && real >= STORE_SLOT_RECORD_LEAST)
		config->slot_record_bytes = (uint64_t)real;
	else if (strcmp(name, "promote-miss-cost") == 0)
		config->promotion.miss_cost = real;
	else if (strcmp(name, "promote-threshold") == 0)
		config->promotion.threshold = real;
	else if (strcmp(name, "promote-width") == 0)
		config->promotion.width = (unsigned)real;
	else if (strcmp(name, "size-exponent") == 0)
		config->size_exponent = real;
	else if (strcmp(name, "flash-write-ratio") == 0)
		config->flash_write_ratio = real;
	else
		return false;
	return true;
}

static int set_options(struct engine_config *config, const char *text, char reason[256])
{
	size_t bytes = strlen(text) + 1;
	char *copy = mem_must_zalloc(bytes), *rest = copy, *part;
	int code = FS_OK;

	memcpy(copy, text, bytes);
	while (code == FS_OK && (part = strsep(&rest, ","))) {
		char *value = strchr(part, '=');

		if (value)
			*value++ = '\0';
		if (*part && (!value || !set_option(config, part, value))) {
			snprintf(reason, 256, "the engine knows no option \"%s\" with the value \"%s\"", part,
				 value ? value : "");
			code = FS_EINVAL;
		}
	}
	mem_free(copy);
	return code;
}

/* ---- life ------------------------------------------------------------------------------------ */

static uint64_t nominal_memory(const struct sim_space *space)
{
	uint64_t bytes = (uint64_t)((double)space->dram_bytes * MEMORY_SHARE);

	if (space->memory_bytes)
		return space->memory_bytes;
	return bytes < MEMORY_LEAST ? MEMORY_LEAST : bytes;
}

static struct store_config store_config_of(const struct sim_config *config, const struct clk *clock)
{
	const struct sim_space *space = &config->space;
	struct store_config store;

	store_config_init(&store);
	store.clock = clock;
	store.memory_bytes = nominal_memory(space);
	store.item_bytes = space->memory_bytes ? 0 : space->dram_bytes;
	store.unwatched = true;
	store.max_item_bytes = 1u << 30;
	store.seed = config->seed ? config->seed : 1;
	store.segment_bytes = space->segment_bytes;
	if (space->flash_bytes) {
		store.flash_path = "memory";
		store.flash_bytes = space->flash_bytes;
	}
	if (config->train_us)
		store.training_window_ms = config->train_us / 1000;
	if (config->horizon_us)
		store.flashiness_horizon_ms = config->horizon_us / 1000;
	if (config->has_clwa)
		store.flash_write_ratio = config->clwa;
	if (config->reinsert)
		store.reinsertion = STORE_REINSERT_READ;
	return store;
}

/* Accepted models are written to the output, which isn't there yet. */
static int open_models(struct store *store, const struct engine_config *engine, const char *output, char reason[256])
{
	char why[256] = "";
	const struct store_models models = { .given = *engine->model ? engine->model : NULL,
					     .pinned = engine->model_pinned,
					     .saved = output };
	int code = store_open_models(store, &models, why);

	if (code != FS_OK && *why)
		snprintf(reason, 256, "--option model: %.230s", why);
	return code;
}

static void engine_destroy(struct sim_policy *policy)
{
	if (policy->worker)
		store_worker_destroy(policy->worker);
	if (policy->store)
		store_close(policy->store);
	mem_free(policy);
}

static int engine_create(struct sim_policy **out, const struct sim_config *config, char reason[256])
{
	struct sim_policy *policy = mem_must_zalloc(sizeof(*policy));
	struct engine_config engine = { 0 };
	int code;

	log_set_level(LOG_LEVEL_WARN);
	clk_scripted_init(&policy->clock, START_US);
	policy->now_us = START_US;
	engine.store = store_config_of(config, &policy->clock);
	code = config->options ? set_options(&engine, config->options, reason) : FS_OK;
	if (code == FS_OK && engine.store.flash_bytes) {
		engine.store.flash_device = dev_memory_create(engine.store.flash_bytes);
		if (!engine.store.flash_device)
			code = FS_ENOMEM;
	}
	if (code == FS_OK)
		code = store_open(&policy->store, &engine.store, reason);
	if (code == FS_OK)
		code = open_models(policy->store, &engine, config->model_output, reason);
	/* Nothing expires here, and looking at every object once a minute of the trace's time would be most of the work. */
	if (code == FS_OK)
		store_set_crawler(policy->store, &(struct store_crawler){ .enabled = false });
	if (code == FS_OK)
		code = store_worker_create(&policy->worker, policy->store);
	if (code == FS_OK)
		*out = policy;
	else
		engine_destroy(policy);
	return code;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void move_clock(struct sim_policy *policy, uint64_t time_us)
{
	uint64_t now_us = START_US + time_us;

	if (now_us > policy->now_us) {
		clk_scripted_advance(&policy->clock, now_us - policy->now_us);
		policy->now_us = now_us;
	}
}

static void do_steps(struct sim_policy *policy)
{
	for (unsigned n = 0; n < STEPS_BUSY && store_clean_step(policy->store); n++)
		;
}

static void request_is_done(struct store_request *request)
{
	*(bool *)request->owner = true;
}

static void execute(struct sim_policy *policy, struct store_request *request)
{
	policy->done = false;
	request->done = request_is_done;
	request->owner = &policy->done;
	(void)store_worker_turn(policy->worker);
	if (store_execute(policy->worker, request))
		return;
	while (!policy->done) {
		store_worker_flush(policy->worker);
		store_worker_poll(policy->worker);
	}
}

static struct store_request request_of(struct sim_policy *policy, const struct sim_access *access, enum store_op op,
				       char key[KEY_MAX_BYTES])
{
	size_t length = trace_key_write(key, access->app + 1, access->object, access->key_bytes);

	move_clock(policy, access->time_us);
	if (++policy->requests % STEP_REQUESTS == 0)
		do_steps(policy);
	return (struct store_request){
		.op = op, .key = key, .key_length = (uint8_t)length, .hash = store_hash(policy->store, key, length)
	};
}

static bool engine_get(struct sim_policy *policy, const struct sim_access *access)
{
	char key[KEY_MAX_BYTES];
	struct store_request request = request_of(policy, access, STORE_GET, key);

	execute(policy, &request);
	if (request.result != STORE_HIT)
		return false;
	store_value_release(policy->worker, &request.value);
	return true;
}

static void engine_set(struct sim_policy *policy, const struct sim_access *access, bool filled)
{
	char key[KEY_MAX_BYTES];
	struct store_request request = request_of(policy, access, STORE_SET, key);
	enum store_result why;

	(void)filled;
	request.item = store_item_create(policy->worker, key, request.key_length, 0, 0, access->value_bytes, &why);
	if (request.item) {
		memset(store_item_value(request.item), 'v', access->value_bytes);
		execute(policy, &request);
	}
}

static void engine_remove(struct sim_policy *policy, const struct sim_access *access)
{
	char key[KEY_MAX_BYTES];
	struct store_request request = request_of(policy, access, STORE_DELETE, key);

	execute(policy, &request);
}

static void engine_figures(const struct sim_policy *policy, struct sim_figures *out)
{
	struct store_status status;

	store_get_status(policy->store, &status);
	*out = (struct sim_figures){
		.flash_bytes_written = ctr_total(CTR_flash_bytes_written),
		.flash_reads = ctr_total(CTR_flash_reads),
		.flash_reads_missed = ctr_total(CTR_flash_reads_on_miss),
		.flash_hits = ctr_total(CTR_flash_hits),
		.flash_pages = ctr_total(CTR_flash_pages_read),
		.flash_key_bytes = ctr_total(CTR_flash_key_bytes_read),
		.small_hits = ctr_total(CTR_flash_small_hits),
		.small_pages = ctr_total(CTR_flash_small_pages_read),
		.reclaim_bytes = ctr_total(CTR_flash_reclaim_bytes_read),
		.segment_fill = status.segments.fill,
		.dram_objects = status.dram_items,
		.flash_objects = status.index.used + status.frugal.objects,
		.fixed_bytes = status.memory_limit - status.dram_budget,
		.copy_share = status.copy_share,
		.index_bytes = status.index.index_bytes + status.index.filter_bytes + status.index.other_bytes +
			       status.frugal_index_bytes,
		.extents = status.index.extents_used,
		.false_matches = ctr_total(CTR_false_matches),
		.has_model = status.classifier.model_in_use,
		.precision = status.classifier.precision,
		.recall = status.classifier.recall,
		.model_origin = clf_origin_word(status.classifier.model_origin),
	};
	snprintf(out->model_reason, sizeof(out->model_reason), "%s", status.classifier.reason);
}

static long engine_samples(struct sim_policy *policy, struct clf_labelled **out)
{
	return store_get_samples(policy->store, out);
}

const struct sim_policy_ops sim_engine = { .name = "flashield",
					   .help = "the daemon's own engine, over a device in memory",
					   .reinserts = true,
					   .create = engine_create,
					   .get = engine_get,
					   .set = engine_set,
					   .remove = engine_remove,
					   .figures = engine_figures,
					   .samples = engine_samples,
					   .destroy = engine_destroy };
