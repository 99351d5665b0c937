/* SPDX-License-Identifier: BSD-3-Clause */
/* "stats flash", "stats classifier" and "stats segments". */
#include "server/admin/admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/metrics/counters.h"
#include "conf/version.h"
#include "server/store/move.h"
#include "server/store/store.h"

static void number_row(struct stats_out *out, const char *name, uint64_t value)
{
	stats_add(out, name, "%" PRIu64, value);
}

static void real_row(struct stats_out *out, const char *name, double value)
{
	stats_add(out, name, "%.6f", value);
}

static void counter_rows(struct stats_out *out, enum ctr_group group)
{
	for (enum ctr counter = 0; counter < CTR_COUNT; counter++) {
		const struct ctr_info *info = ctr_info(counter);

		if (info->group == group)
			number_row(out, info->name, ctr_sum(counter));
	}
}

static double share_row(uint64_t part, uint64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : 0;
}

static uint64_t flash_not_negative(int64_t value)
{
	return value > 0 ? (uint64_t)value : 0;
}

static void index_rows(const struct store_status *status, struct stats_out *out)
{
	const struct fidx_status *index = &status->index;
	uint64_t objects = index->used + index->extents_used;

	number_row(out, "flash_items", objects - (index->ghosts < objects ? index->ghosts : objects));
	number_row(out, "flash_ghosts", index->ghosts);
	number_row(out, "flash_live_bytes", flash_not_negative(index->live_bytes));
	number_row(out, "flash_hot_bytes", status->hot_bytes);
	number_row(out, "flash_hot_threshold_bytes", status->hot_threshold_bytes);
	number_row(out, "flash_copy_bytes", status->copy_bytes);
	number_row(out, "index_slots", index->slots);
	number_row(out, "index_slots_used", index->used);
	number_row(out, "index_slots_uncounted", index->uncounted);
	real_row(out, "index_load", share_row(index->used, index->slots));
	number_row(out, "index_bytes", index->index_bytes);
	number_row(out, "index_other_bytes", index->other_bytes);
	number_row(out, "extent_entries", index->extents);
	number_row(out, "extent_entries_used", index->extents_used);
	number_row(out, "filter_bytes", index->filter_bytes);
	real_row(out, "filter_false_positive", index->filter_false_positive);
	number_row(out, "filter_bits", status->filter_bits);
	number_row(out, "filters_left", status->filters_left);
	number_row(out, "filter_units", status->filter_units);
	number_row(out, "tag_bits", status->tag_bits);
	real_row(out, "dram_bytes_per_flash_item", status->dram_bytes_per_flash_item);
	real_row(out, "innocent_drops", status->innocent_drops);
}

static const char *allocation_text(const struct store_status *status)
{
	if (!status->flash)
		return "none";
	if (status->segments.allocated_bytes >= status->info.flash_bytes)
		return "complete";
	return status->segments.allocate_error ? strerror(status->segments.allocate_error) : "in progress";
}

static void journal_rows(const struct store_status *status, struct stats_out *out)
{
	stats_add(out, "journal", "%s", !status->journal ? "off" : status->journal_broken ? "broken" : "sync");
	number_row(out, "journal_entries", status->journal_entries);
	number_row(out, "journal_syncs", status->journal_syncs);
	number_row(out, "journal_waiting", status->journal_waiting);
	number_row(out, "journal_bytes", status->journal_bytes);
	number_row(out, "journal_files", status->journal_files);
	number_row(out, "rebuild_segments", status->rebuild_segments);
	number_row(out, "rebuilt_segments", status->rebuilt_segments);
}

static void segment_rows(const struct store_status *status, struct stats_out *out)
{
	const struct seg_status *segments = &status->segments;

	number_row(out, "segments_total", segments->total);
	number_row(out, "segments_used", segments->live);
	number_row(out, "segments_free", segments->free);
	number_row(out, "segments_retired", segments->retired);
	number_row(out, "segment_bytes", status->info.segment_bytes);
	real_row(out, "segment_fill", segments->fill);
	number_row(out, "segment_residence_ms", segments->residence_ms);
	number_row(out, "flash_bytes", status->info.flash_bytes);
	number_row(out, "flash_allocated_bytes", segments->allocated_bytes);
	stats_add(out, "flash_allocation", "%s", allocation_text(status));
	number_row(out, "flash_direct_io", status->info.direct);
	number_row(out, "flash_waited_ms", segments->busy_ms);
	number_row(out, "flash_offline", segments->offline);
	stats_add(out, "flash_offline_reason", "%s", segments->offline_reason[0] ? segments->offline_reason : "none");
}

static void move_rows(struct store *store, struct stats_out *out)
{
	struct store_move_status move;

	store_move_get_status(store, &move);
	stats_add(out, "flash_move", "%s", store_move_word(move.state));
	stats_add(out, "flash_move_path", "%s", move.path[0] ? move.path : "none");
	number_row(out, "flash_move_segments", move.segments);
	number_row(out, "flash_move_segments_copied", move.segments_copied);
	number_row(out, "flash_move_bytes", move.bytes);
	number_row(out, "flash_move_unreadable_pages", move.unreadable_pages);
	stats_add(out, "flash_move_reason", "%s", move.reason[0] ? move.reason : "none");
}

/* These rows cover windows of time, or the time since the start while that is shorter. "stats reset" doesn't change
   them. */
static void window_rows(const struct store_status *status, struct stats_out *out)
{
	static const char *const names[STORE_WINDOWS] = {
		[STORE_WINDOW_5M] = "clwa_5m",
		[STORE_WINDOW_1H] = "clwa_1h",
		[STORE_WINDOW_1D] = "clwa_1d",
	};
	const struct store_window *recent = &status->window[STORE_WINDOW_5M];
	double allowed = (double)status->write_limit * recent->seconds;

	for (unsigned i = 0; i < STORE_WINDOWS; i++)
		real_row(out, names[i], share_row(status->window[i].flash_bytes, status->window[i].app_bytes));
	number_row(out, "flash_write_limit", status->write_limit);
	real_row(out, "flash_write_ratio", status->write_ratio);
	real_row(out, "flash_write_budget_used", allowed > 0 ? (double)recent->flash_bytes / allowed : 0);
}

void stats_flash(const struct server *server, struct stats_out *out)
{
	struct store_status status;

	store_get_status(server->store, &status);
	stats_add(out, "flashield_version", "%s", FS_VERSION);
	number_row(out, "memory_used", status.memory_used);
	number_row(out, "memory_resident", status.memory_resident);
	number_row(out, "dram_items", status.dram_items);
	number_row(out, "dram_bytes", status.dram_bytes);
	number_row(out, "dram_budget", status.dram_budget);
	stats_add(out, "dram_start", "%s", status.dram_start_text);
	number_row(out, "dram_loading", status.dram_loading);
	number_row(out, "dram_loaded", status.dram_loaded);
	number_row(out, "dram_load_skipped", status.dram_load_skipped);
	number_row(out, "dram_load_left", status.dram_load_left);
	number_row(out, "flash_enabled", status.flash);
	stats_add(out, "flash_unused_reason", "%s", status.without_flash ? status.without_flash : "none");
	stats_add(out, "flash_start", "%s", status.flash ? status.start_text : "none");
	number_row(out, "flash_uptime", status.flash_seconds);
	journal_rows(&status, out);
	index_rows(&status, out);
	segment_rows(&status, out);
	move_rows(server->store, out);
	real_row(out, "clwa", share_row(ctr_sum(CTR_flash_bytes_written), ctr_sum(CTR_app_bytes_written)));
	real_row(out, "flash_write_rate", status.write_rate);
	window_rows(&status, out);
	number_row(out, "candidates", status.candidates);
	number_row(out, "candidate_bytes", status.candidate_bytes);
	number_row(out, "plan_bytes", status.plan_bytes);
	number_row(out, "staging_bytes", status.staging_bytes);
	number_row(out, "reader_bytes", status.reader_bytes);
	counter_rows(out, CTR_GROUP_FLASH);
}

void stats_segments(const struct server *server, struct stats_out *out)
{
	struct store_status status;

	store_get_status(server->store, &status);
	segment_rows(&status, out);
	number_row(out, "newest_sequence", status.segments.newest_sequence);
	number_row(out, "records", status.segments.records_live);
	number_row(out, "record_bytes", status.segments.record_bytes_live);
}

static void page_row(struct stats_out *out, uint32_t page, const char *name, uint64_t value)
{
	char full[48];

	snprintf(full, sizeof(full), "%u:%s", page, name);
	number_row(out, full, value);
}

/* A segment stands for a page of extstore's. There is one bucket, number 0. */
void stats_extstore(const struct server *server, struct stats_out *out)
{
	for (uint32_t n = 0; n < store_segment_count(server->store); n++) {
		struct store_segment segment;

		store_get_segment(server->store, n, &segment);
		page_row(out, n, "version", segment.sequence);
		page_row(out, n, "bytes", segment.live_bytes);
		page_row(out, n, "bucket", 0);
		page_row(out, n, "free_bucket", 0);
	}
}

static void weight_rows(const struct clf_status *model, struct stats_out *out)
{
	char name[32];

	for (unsigned i = 0; i < CLF_FEATURES; i++) {
		snprintf(name, sizeof(name), "weight_%s", clf_feature_name((enum clf_feature)i));
		real_row(out, name, model->weight[i]);
	}
}

void stats_classifier(const struct server *server, struct stats_out *out)
{
	struct store_status status;
	const struct clf_status *model = &status.classifier;

	store_get_status(server->store, &status);
	stats_add(out, "model", "%s", model->model_in_use ? "svm" : "none");
	stats_add(out, "model_origin", "%s", clf_origin_word(model->model_origin));
	stats_add(out, "reason", "%s", model->reason[0] ? model->reason : "no model has been trained yet");
	number_row(out, "model_age_ms", model->model_age_ms);
	number_row(out, "model_samples", model->model_samples);
	number_row(out, "samples_waiting", model->samples_waiting);
	number_row(out, "tracked_keys", model->tracked_keys);
	real_row(out, "precision", model->precision);
	real_row(out, "recall", model->recall);
	real_row(out, "positive_share", model->positive_share);
	real_row(out, "admitted_share", model->admitted_share);
	real_row(out, "read_once_share", model->read_once_share);
	real_row(out, "read_once_precision", model->read_once_precision);
	real_row(out, "read_once_recall", model->read_once_recall);
	real_row(out, "second_hit_share", model->second_hit_share);
	real_row(out, "model_hits", model->model_hits);
	real_row(out, "freq_hits", model->freq_hits);
	real_row(out, "second_hit_hits", model->second_hit_hits);
	real_row(out, "threshold", model->threshold);
	real_row(out, "bias", model->bias);
	weight_rows(model, out);
	number_row(out, "horizon_ms", model->horizon_ms);
	counter_rows(out, CTR_GROUP_CLASSIFIER);
}
