/* SPDX-License-Identifier: BSD-3-Clause */
/* The samples of /metrics: of the process, memory, flash and classifier, and then the counters. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/metrics/counters.h"
#include "base/resident.h"
#include "conf/conf.h"
#include "conf/version.h"
#include "server/conn/server.h"
#include "server/metrics/collect_internal.h"

#define LABELS_MAX 8u
#define MODEL_COMMON "common" /* the one model that all applications share */

_Static_assert((int)METRICS_GAUGE == METRIC_TYPE_GAUGE && (int)METRICS_COUNTER == METRIC_TYPE_COUNTER &&
		       (int)METRICS_HISTOGRAM == METRIC_TYPE_HISTOGRAM,
	       "the sink's types are the table's");

/* MODEL(name, expression): a metric of the one model, from struct source *from. */
#define MODEL(name, expression) \
	void show_##name(const struct source *from) \
	{ \
		give_one(from, METRIC_##name, MODEL_COMMON, expression); \
	}

/* ---- samples ------------------------------------------------------------------------------------ */

/* A ratio of nothing has no sample. */
void give_sample(const struct source *from, enum metric metric, const char *const *values, double value)
{
	if (isnan(value))
		return;
	from->sink->sample(from->sink->context, metric_info(metric)->labels, values, value);
}

void give_one(const struct source *from, enum metric metric, const char *label, double value)
{
	give_sample(from, metric, &label, value);
}

static double ratio_of(double part, double whole)
{
	return whole > 0 ? part / whole : 0;
}

static double gauge_not_negative(int64_t value)
{
	return value > 0 ? (double)value : 0;
}

/* ---- the process -------------------------------------------------------------------------------- */

void show_build_info(const struct source *from)
{
	const char *const values[] = { FS_VERSION, from->conf->compat_version };

	give_sample(from, METRIC_build_info, values, 1);
}

/* The labels are options. Their names are those of the configuration file, with "_" for "-". */
struct settings {
	const char *labels;
	char text[LABELS_MAX][32];
};

static void keep_setting(void *context, const struct conf_option *option, const char *value)
{
	struct settings *settings = context;
	const char *label = settings->labels;

	for (unsigned i = 0; *label; i++) {
		size_t length = strcspn(label, ","), same = 0;

		while (same < length && (option->name[same] == '-' ? '_' : option->name[same]) == label[same])
			same++;
		if (same == length && !option->name[same])
			snprintf(settings->text[i], sizeof(settings->text[i]), "%s", value);
		label += length + (label[length] != 0);
	}
}

void show_config_info(const struct source *from)
{
	struct settings settings = { .labels = metric_info(METRIC_config_info)->labels };
	const char *values[LABELS_MAX];

	for (unsigned i = 0; i < LABELS_MAX; i++)
		values[i] = settings.text[i];
	conf_describe(from->conf, keep_setting, &settings);
	give_sample(from, METRIC_config_info, values, 1);
}

static double timeval_seconds(const struct timeval *time)
{
	return (double)time->tv_sec + (double)time->tv_usec / 1e6;
}

void show_cpu_seconds_total(const struct source *from)
{
	give_one(from, METRIC_cpu_seconds_total, "user", timeval_seconds(&from->usage.ru_utime));
	give_one(from, METRIC_cpu_seconds_total, "system", timeval_seconds(&from->usage.ru_stime));
}

/* Since Linux 6.2 the folder's size is their number; before that its entries are counted. */
static double open_files(void)
{
	struct stat status;
	double count = 0;
	DIR *folder;

	if (stat("/proc/self/fd", &status) == 0 && status.st_size > 0)
		return (double)status.st_size;
	folder = opendir("/proc/self/fd");
	if (!folder)
		return NAN;
	for (const struct dirent *entry; (entry = readdir(folder));)
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count - 1; /* without the descriptor of this folder */
}

static double resident_memory(void)
{
	uint64_t bytes = resident_bytes();

	return bytes ? (double)bytes : NAN;
}

VALUE(start_time_seconds, (double)from->server->started_seconds)

void show_reload_successful(const struct source *from)
{
	const struct reload_status *status = from->server->reload_status;

	give_sample(from, METRIC_reload_successful, NULL, !status || !atomic_load(&status->failed));
}

void show_reload_failures_total(const struct source *from)
{
	const struct reload_status *status = from->server->reload_status;

	give_sample(from, METRIC_reload_failures_total, NULL, status ? (double)atomic_load(&status->failures) : 0);
}

void show_reload_restart_options(const struct source *from)
{
	const struct reload_status *status = from->server->reload_status;

	give_sample(from, METRIC_reload_restart_options, NULL,
		    status ? (double)atomic_load(&status->restart_options) : 0);
}

VALUE(threads, from->conf->threads)
VALUE(open_fds, open_files())
VALUE(connections, from->net.connections)
VALUE(connections_limit, from->conf->conn_limit)
VALUE(accepting_connections, from->net.accepting)
VALUE(certificate_expiry_timestamp_seconds, (double)from->net.certificates_expire_at)
VALUE(certificate_renewal_successful, !from->net.certificates_failed)
VALUE(certificate_renewal_failures_total, (double)from->net.certificate_failures)
VALUE(metrics_certificate_expiry_timestamp_seconds, (double)from->own.certificates_expire_at)
VALUE(metrics_certificate_renewal_successful, !from->own.renewal_failed)
VALUE(metrics_certificate_renewal_failures_total, (double)from->own.renewal_failures)
VALUE(metrics_password_checks_total, (double)from->own.password_checks)

/* ---- memory and objects ------------------------------------------------------------------------- */

VALUE(memory_limit_bytes, (double)from->store.memory_limit)
VALUE(memory_used_bytes, (double)from->store.memory_used)
VALUE(resident_memory_bytes, resident_memory())

void show_memory_part_bytes(const struct source *from)
{
	const struct store_status *store = &from->store;
	const struct {
		const char *part;
		uint64_t bytes;
	} parts[] = {
		{ "items", store->dram_bytes },
		{ "table", store->dram_table_bytes },
		{ "index", store->index.index_bytes },
		{ "filters", store->index.filter_bytes },
		{ "index_other", store->index.other_bytes },
		{ "frugal", store->frugal_index_bytes },
		{ "plan", store->plan_bytes },
		{ "staging", store->staging_bytes },
		{ "readers", store->reader_bytes },
		{ "journal", store->losses_bytes },
		{ "promotion", store->promotion_bytes },
		{ "classifier", store->classifier_bytes },
		{ "connections", from->net.client_bytes },
	};

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		give_one(from, METRIC_memory_part_bytes, parts[i].part, (double)parts[i].bytes);
}

void show_items(const struct source *from)
{
	give_one(from, METRIC_items, "dram", (double)from->store.dram_items);
	give_one(from, METRIC_items, "flash", (double)store_flash_objects(&from->store));
}

void show_item_bytes(const struct source *from)
{
	give_one(from, METRIC_item_bytes, "dram", (double)from->store.dram_bytes);
	give_one(from, METRIC_item_bytes, "flash",
		 gauge_not_negative(from->store.index.hot_bytes) + (double)from->store.frugal.bytes);
}

VALUE(dram_budget_bytes, (double)from->store.dram_budget)

void show_dram_start(const struct source *from)
{
	give_one(from, METRIC_dram_start, from->store.dram_start_word, 1);
}

VALUE(dram_loading, from->store.dram_loading)
VALUE(dram_loaded_items, (double)from->store.dram_loaded)
VALUE(dram_load_skipped_items, (double)from->store.dram_load_skipped)
VALUE(dram_load_left_items, (double)from->store.dram_load_left)

static double dram_bytes_per_flash_item(const struct source *from)
{
	const struct store_status *store = &from->store;

	return store->index.used + store->index.extents_used + store->frugal.objects ? store->dram_bytes_per_flash_item
										     : NAN;
}

/* ---- flash -------------------------------------------------------------------------------------- */

VALUE(flash_enabled, from->store.flash)

void show_flash_start(const struct source *from)
{
	give_one(from, METRIC_flash_start, from->store.flash ? from->store.start_word : "none", from->store.flash);
}

VALUE(journal_broken, from->store.journal_broken)
VALUE(journal_bytes, (double)from->store.journal_bytes)
VALUE(journal_waiting_entries, (double)from->store.journal_waiting)
VALUE(rebuild_segments, from->store.rebuild_segments)
VALUE(rebuilt_segments, from->store.rebuilt_segments)
VALUE(flash_offline, from->store.segments.offline)
VALUE(flash_file_away, from->store.segments.away_reason[0] != 0)
VALUE(flash_waited_seconds, (double)from->store.segments.busy_ms / 1000)
VALUE(flash_size_bytes, (double)from->store.info.flash_bytes)
VALUE(flash_asked_bytes, (double)from->store.flash_asked_bytes)
VALUE(flash_moving, store_move_is_under_way(&from->move))
VALUE(flash_move_segments, from->move.segments)
VALUE(flash_move_copied_segments, from->move.segments_copied)
VALUE(flash_allocated_bytes, (double)from->store.segments.allocated_bytes)
VALUE(flash_direct_io, from->store.info.direct)
VALUE(flash_read_unit_bytes, from->store.info.read_unit)
VALUE(ghosts, (double)from->store.index.ghosts)
VALUE(hot_bytes, (double)from->store.hot_bytes)
VALUE(flash_copy_bytes, (double)from->store.copy_bytes)
VALUE(flash_copy_share, from->store.copy_share)
VALUE(hot_threshold_bytes, (double)from->store.hot_threshold_bytes)
VALUE(index_slots, (double)from->store.index.slots)
VALUE(index_slots_used, (double)from->store.index.used)
VALUE(index_slots_uncounted, (double)from->store.index.uncounted)
VALUE(index_load_ratio,
      from->store.index.slots ? (double)from->store.index.used / (double)from->store.index.slots : NAN)
VALUE(dram_bytes_per_flash_item, dram_bytes_per_flash_item(from))
VALUE(filter_false_positive_ratio, from->store.filter_false_positive)
VALUE(filters_left_segments, from->store.filters_left)
VALUE(filter_units, from->store.filter_units)
VALUE(frugal_items, (double)from->store.frugal.objects)
VALUE(frugal_kills_held, (double)from->store.frugal.kills)
VALUE(frugal_kills_limit, (double)from->store.frugal.kills_most)
VALUE(frugal_kills_listed, (double)from->store.frugal.kills_listed)

void show_segments(const struct source *from)
{
	const struct seg_status *segments = &from->store.segments;

	give_one(from, METRIC_segments, "live", segments->live);
	give_one(from, METRIC_segments, "free", segments->free);
	give_one(from, METRIC_segments, "retired", segments->retired);
	give_one(from, METRIC_segments, "bad", segments->bad);
	give_one(from, METRIC_segments, "other",
		 gauge_not_negative((int64_t)segments->total - segments->live - segments->free - segments->retired -
				    segments->bad));
}

VALUE(segment_size_bytes, (double)from->store.info.segment_bytes)
VALUE(segment_fill_ratio, from->store.segments.live ? from->store.segments.fill : NAN)
VALUE(segment_residence_seconds, (double)from->store.segments.residence_ms / 1e3)
VALUE(candidates, (double)from->store.candidates)
VALUE(candidate_bytes, (double)from->store.candidate_bytes)

/* ---- writes ------------------------------------------------------------------------------------- */

static const char *const window_names[STORE_WINDOWS] = {
	[STORE_WINDOW_5M] = "5m",
	[STORE_WINDOW_1H] = "1h",
	[STORE_WINDOW_1D] = "1d",
};

static double window_rate(const struct store_window *window)
{
	return ratio_of((double)window->flash_bytes, window->seconds);
}

static void show_rates(const struct source *from, enum metric metric, double divisor)
{
	give_one(from, metric, "10s", ratio_of(from->store.write_rate, divisor));
	for (unsigned i = 0; i < STORE_WINDOWS; i++)
		give_one(from, metric, window_names[i], ratio_of(window_rate(&from->store.window[i]), divisor));
}

void show_flash_writes_held_by(const struct source *from)
{
	for (unsigned hold = 0; hold <= STORE_HOLD_NOTHING; hold++)
		give_one(from, METRIC_flash_writes_held_by, store_hold_word(hold), hold == from->store.hold);
}

VALUE(flash_fill_seconds_left, from->store.fill_seconds)
VALUE(flash_fills_total, from->store.segments.fills)
VALUE(flash_write_ratio, from->store.write_ratio)
VALUE(flash_write_limit_bytes_per_second, (double)from->store.write_limit)

void show_flash_write_rate_bytes_per_second(const struct source *from)
{
	show_rates(from, METRIC_flash_write_rate_bytes_per_second, 1);
}

void show_flash_write_budget_used_ratio(const struct source *from)
{
	if (from->store.write_limit)
		show_rates(from, METRIC_flash_write_budget_used_ratio, (double)from->store.write_limit);
}

void show_clwa_ratio(const struct source *from)
{
	for (unsigned i = 0; i < STORE_WINDOWS; i++) {
		const struct store_window *window = &from->store.window[i];

		give_one(from, METRIC_clwa_ratio, window_names[i],
			 window->app_bytes ? (double)window->flash_bytes / (double)window->app_bytes : NAN);
	}
}

/* ---- the classifier ----------------------------------------------------------------------------- */

static double of_model(const struct source *from, double value)
{
	return from->store.classifier.model_in_use ? value : NAN;
}

static double of_judged(const struct source *from, double value)
{
	return from->store.classifier.judged ? of_model(from, value) : NAN;
}

/* A pinned model may be of any age. */
static double model_age_seconds(const struct source *from)
{
	return from->store.classifier.model_origin == CLF_ORIGIN_PINNED
		       ? NAN
		       : of_model(from, (double)from->store.classifier.model_age_ms / 1e3);
}

MODEL(model_in_use, from->store.classifier.model_in_use)
MODEL(model_age_seconds, model_age_seconds(from))
MODEL(model_samples, from->store.classifier.model_in_use ? (double)from->store.classifier.model_samples : 0)
MODEL(model_precision_ratio, of_judged(from, from->store.classifier.precision))
MODEL(model_recall_ratio, of_judged(from, from->store.classifier.recall))
MODEL(model_threshold, from->store.classifier.threshold)
MODEL(model_positive_ratio, of_model(from, from->store.classifier.positive_share))
MODEL(model_admitted_ratio, of_judged(from, from->store.classifier.admitted_share))
MODEL(model_horizon_seconds, (double)from->store.classifier.horizon_ms / 1e3)
VALUE(samples_waiting, (double)from->store.classifier.samples_waiting)
VALUE(sampled_keys, (double)from->store.classifier.tracked_keys)

/* ---- all of it ---------------------------------------------------------------------------------- */

static void (*const shows[METRIC_COUNT])(const struct source *from) = {
#define METRIC(name, type, labels, text) [METRIC_##name] = show_##name,
#include "base/metrics/metrics.def"
#undef METRIC
};

static void show_counters(const struct metrics_sink *sink)
{
	for (enum ctr counter = 0; counter < CTR_COUNT; counter++) {
		sink->begin(sink->context, metric_counter_name(counter), METRICS_COUNTER, ctr_info(counter)->text);
		sink->sample(sink->context, "", NULL, (double)ctr_total(counter));
	}
}

void metrics_collect(const struct server *server, const struct metrics_sink *sink)
{
	struct source from = { .server = server, .conf = server->conf, .sink = sink };

	store_get_status(server->store, &from.store);
	store_move_get_status(server->store, &from.move);
	net_get_status(server->net, &from.net);
	metrics_get_status(server->metrics, &from.own);
	getrusage(RUSAGE_SELF, &from.usage);
	for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
		const struct metric_info *info = metric_info(metric);

		sink->begin(sink->context, info->name, (int)info->type, info->text);
		shows[metric](&from);
	}
	show_counters(sink);
}
