/* SPDX-License-Identifier: BSD-3-Clause */
/* "stats flash", "stats classifier" and "stats segments". */
#include "server/admin/admin.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/metrics/counters.h"
#include "base/metrics/rows.h"
#include "conf/version.h"
#include "server/store/move.h"
#include "server/store/store.h"

static void number_row(struct stats_out *out, enum row row, uint64_t value)
{
	stats_add(out, row_info(row)->name, "%" PRIu64, value);
}

static void text_row(struct stats_out *out, enum row row, const char *text)
{
	stats_add(out, row_info(row)->name, "%s", text);
}

/* A ratio of nothing is NAN, whose sign printf would show. */
static void real_row(struct stats_out *out, enum row row, double value)
{
	if (isnan(value))
		text_row(out, row, "nan");
	else
		stats_add(out, row_info(row)->name, "%.6f", value);
}

static void counter_rows(struct stats_out *out, enum ctr_group group)
{
	for (enum ctr counter = 0; counter < CTR_COUNT; counter++) {
		const struct ctr_info *info = ctr_info(counter);

		if (info->group == group)
			stats_add(out, info->name, "%" PRIu64, ctr_sum(counter));
	}
}

static double share_of(uint64_t part, uint64_t whole)
{
	return whole > 0 ? (double)part / (double)whole : NAN;
}

static void index_rows(const struct store_status *status, struct stats_out *out)
{
	const struct fidx_status *index = &status->index;
	uint64_t objects = index->used + index->extents_used;

	text_row(out, ROW_FLASH_index, status->is_frugal ? "frugal" : "slots");
	number_row(out, ROW_FLASH_flash_items, store_flash_objects(status));
	number_row(out, ROW_FLASH_flash_ghosts, index->ghosts);
	number_row(out, ROW_FLASH_flash_live_bytes, store_flash_bytes(status));
	number_row(out, ROW_FLASH_flash_hot_bytes, status->hot_bytes);
	number_row(out, ROW_FLASH_flash_hot_threshold_bytes, status->hot_threshold_bytes);
	number_row(out, ROW_FLASH_flash_copy_bytes, status->copy_bytes);
	real_row(out, ROW_FLASH_flash_copy_share, status->copy_share);
	number_row(out, ROW_FLASH_index_slots, index->slots);
	number_row(out, ROW_FLASH_index_slots_used, index->used);
	number_row(out, ROW_FLASH_index_slots_uncounted, index->uncounted);
	real_row(out, ROW_FLASH_index_load, share_of(index->used, index->slots));
	number_row(out, ROW_FLASH_index_bytes, index->index_bytes);
	number_row(out, ROW_FLASH_index_other_bytes, index->other_bytes);
	number_row(out, ROW_FLASH_extent_entries, index->extents);
	number_row(out, ROW_FLASH_extent_entries_used, index->extents_used);
	number_row(out, ROW_FLASH_filter_bytes, index->filter_bytes);
	real_row(out, ROW_FLASH_filter_false_positive, status->filter_false_positive);
	number_row(out, ROW_FLASH_filter_bits, status->filter_bits);
	number_row(out, ROW_FLASH_filters_left, status->filters_left);
	number_row(out, ROW_FLASH_filter_units, status->filter_units);
	number_row(out, ROW_FLASH_tag_bits, status->tag_bits);
	real_row(out, ROW_FLASH_dram_bytes_per_flash_item,
		 objects + status->frugal.objects > 0 ? status->dram_bytes_per_flash_item : NAN);
	real_row(out, ROW_FLASH_innocent_drops, status->innocent_drops);
}

static void frugal_rows(const struct store_status *status, struct stats_out *out)
{
	const struct frugal_status *frugal = &status->frugal;

	number_row(out, ROW_FLASH_frugal_items, frugal->objects);
	number_row(out, ROW_FLASH_frugal_item_bytes, frugal->bytes);
	number_row(out, ROW_FLASH_frugal_index_bytes, status->frugal_index_bytes);
	number_row(out, ROW_FLASH_frugal_column_bytes, frugal->bundle_bytes);
	number_row(out, ROW_FLASH_frugal_prefilter_bytes, frugal->prefilter_bytes);
	number_row(out, ROW_FLASH_frugal_kill_bytes, frugal->kill_bytes);
	number_row(out, ROW_FLASH_frugal_kills_held, frugal->kills);
	number_row(out, ROW_FLASH_frugal_kills_limit, frugal->kills_most);
	number_row(out, ROW_FLASH_frugal_kills_listed, frugal->kills_listed);
	number_row(out, ROW_FLASH_frugal_partitions, frugal->partitions);
	number_row(out, ROW_FLASH_frugal_columns, frugal->columns_in_memory);
	number_row(out, ROW_FLASH_frugal_bundles, frugal->bundles);
	number_row(out, ROW_FLASH_frugal_chain_columns, frugal->columns_in_chain);
	number_row(out, ROW_FLASH_frugal_chain_segments, frugal->chain_segments);
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
	text_row(out, ROW_FLASH_journal, !status->journal ? "off" : status->journal_broken ? "broken" : "sync");
	number_row(out, ROW_FLASH_journal_entries, status->journal_entries);
	number_row(out, ROW_FLASH_journal_syncs, status->journal_syncs);
	number_row(out, ROW_FLASH_journal_waiting, status->journal_waiting);
	number_row(out, ROW_FLASH_journal_bytes, status->journal_bytes);
	number_row(out, ROW_FLASH_journal_files, status->journal_files);
	number_row(out, ROW_FLASH_rebuild_segments, status->rebuild_segments);
	number_row(out, ROW_FLASH_rebuilt_segments, status->rebuilt_segments);
}

static void segment_rows(const struct store_status *status, struct stats_out *out)
{
	const struct seg_status *segments = &status->segments;

	number_row(out, ROW_FLASH_segments_total, segments->total);
	number_row(out, ROW_FLASH_segments_used, segments->live);
	number_row(out, ROW_FLASH_segments_free, segments->free);
	number_row(out, ROW_FLASH_segments_retired, segments->retired);
	number_row(out, ROW_FLASH_segments_bad, segments->bad);
	number_row(out, ROW_FLASH_segment_bytes, status->info.segment_bytes);
	real_row(out, ROW_FLASH_segment_fill, segments->live > 0 ? segments->fill : NAN);
	number_row(out, ROW_FLASH_segment_residence_ms, segments->residence_ms);
	number_row(out, ROW_FLASH_flash_bytes, status->info.flash_bytes);
	number_row(out, ROW_FLASH_flash_asked_bytes, status->flash_asked_bytes);
	number_row(out, ROW_FLASH_flash_allocated_bytes, segments->allocated_bytes);
	text_row(out, ROW_FLASH_flash_allocation, allocation_text(status));
	number_row(out, ROW_FLASH_flash_direct_io, status->info.direct);
	number_row(out, ROW_FLASH_flash_read_unit, status->info.read_unit);
	number_row(out, ROW_FLASH_flash_waited_ms, segments->busy_ms);
	number_row(out, ROW_FLASH_flash_offline, segments->offline);
	text_row(out, ROW_FLASH_flash_offline_reason, segments->offline_reason[0] ? segments->offline_reason : "none");
	text_row(out, ROW_FLASH_flash_file_away_reason, segments->away_reason[0] ? segments->away_reason : "none");
}

static void move_rows(struct store *store, struct stats_out *out)
{
	struct store_move_status move;

	store_move_get_status(store, &move);
	text_row(out, ROW_FLASH_flash_move, store_move_word(move.state));
	text_row(out, ROW_FLASH_flash_move_path, move.path[0] ? move.path : "none");
	number_row(out, ROW_FLASH_flash_move_segments, move.segments);
	number_row(out, ROW_FLASH_flash_move_segments_copied, move.segments_copied);
	number_row(out, ROW_FLASH_flash_move_bytes, move.bytes);
	number_row(out, ROW_FLASH_flash_move_unreadable_pages, move.unreadable_pages);
	text_row(out, ROW_FLASH_flash_move_reason, move.reason[0] ? move.reason : "none");
}

/* These rows cover windows of time, or the time since the start while that is shorter. "stats reset" doesn't change
   them. */
static void window_rows(const struct store_status *status, struct stats_out *out)
{
	static const enum row rows[STORE_WINDOWS] = {
		[STORE_WINDOW_5M] = ROW_FLASH_clwa_5m,
		[STORE_WINDOW_1H] = ROW_FLASH_clwa_1h,
		[STORE_WINDOW_1D] = ROW_FLASH_clwa_1d,
	};
	const struct store_window *recent = &status->window[STORE_WINDOW_5M];
	double allowed = (double)status->write_limit * recent->seconds;

	for (unsigned i = 0; i < STORE_WINDOWS; i++)
		real_row(out, rows[i], share_of(status->window[i].flash_bytes, status->window[i].app_bytes));
	text_row(out, ROW_FLASH_flash_writes_held_by, store_hold_word(status->hold));
	real_row(out, ROW_FLASH_flash_fill_seconds_left, status->fill_seconds);
	number_row(out, ROW_FLASH_flash_fills, status->segments.fills);
	number_row(out, ROW_FLASH_flash_fill_bytes_left, status->segments.fill_left_bytes);
	number_row(out, ROW_FLASH_flash_write_limit, status->write_limit);
	real_row(out, ROW_FLASH_flash_write_ratio, status->write_ratio);
	real_row(out, ROW_FLASH_flash_write_budget_used, allowed > 0 ? (double)recent->flash_bytes / allowed : NAN);
}

void stats_flash(const struct server *server, struct stats_out *out)
{
	struct store_status status;

	store_get_status(server->store, &status);
	text_row(out, ROW_FLASH_flashield_version, FS_VERSION);
	number_row(out, ROW_FLASH_memory_used, status.memory_used);
	number_row(out, ROW_FLASH_memory_resident, status.memory_resident);
	number_row(out, ROW_FLASH_dram_items, status.dram_items);
	number_row(out, ROW_FLASH_dram_bytes, status.dram_bytes);
	number_row(out, ROW_FLASH_dram_budget, status.dram_budget);
	text_row(out, ROW_FLASH_dram_start, status.dram_start_text);
	number_row(out, ROW_FLASH_dram_loading, status.dram_loading);
	number_row(out, ROW_FLASH_dram_loaded, status.dram_loaded);
	number_row(out, ROW_FLASH_dram_load_skipped, status.dram_load_skipped);
	number_row(out, ROW_FLASH_dram_load_left, status.dram_load_left);
	number_row(out, ROW_FLASH_flash_enabled, status.flash);
	text_row(out, ROW_FLASH_flash_unused_reason, status.without_flash ? status.without_flash : "none");
	text_row(out, ROW_FLASH_flash_start, status.flash ? status.start_text : "none");
	number_row(out, ROW_FLASH_flash_uptime, status.flash_seconds);
	journal_rows(&status, out);
	index_rows(&status, out);
	frugal_rows(&status, out);
	segment_rows(&status, out);
	move_rows(server->store, out);
	real_row(out, ROW_FLASH_clwa, share_of(ctr_sum(CTR_flash_bytes_written), ctr_sum(CTR_app_bytes_written)));
	real_row(out, ROW_FLASH_flash_write_rate, status.write_rate);
	window_rows(&status, out);
	number_row(out, ROW_FLASH_candidates, status.candidates);
	number_row(out, ROW_FLASH_candidate_bytes, status.candidate_bytes);
	number_row(out, ROW_FLASH_plan_bytes, status.plan_bytes);
	number_row(out, ROW_FLASH_staging_bytes, status.staging_bytes);
	number_row(out, ROW_FLASH_reader_bytes, status.reader_bytes);
	counter_rows(out, CTR_GROUP_FLASH);
}

void stats_segments(const struct server *server, struct stats_out *out)
{
	struct store_status status;

	store_get_status(server->store, &status);
	segment_rows(&status, out);
	number_row(out, ROW_SEGMENTS_newest_sequence, status.segments.newest_sequence);
	number_row(out, ROW_SEGMENTS_records, status.segments.records_live);
	number_row(out, ROW_SEGMENTS_record_bytes, status.segments.record_bytes_live);
}

static void page_row(struct stats_out *out, uint32_t page, const char *name, uint64_t value)
{
	char full[48];

	snprintf(full, sizeof(full), "%u:%s", page, name);
	stats_add(out, full, "%" PRIu64, value);
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
	static const enum row rows[CLF_FEATURES] = {
		[CLF_READS] = ROW_CLASSIFIER_weight_reads,
		[CLF_MEAN_GAP] = ROW_CLASSIFIER_weight_mean_gap,
		[CLF_LAST_GAP] = ROW_CLASSIFIER_weight_last_gap,
		[CLF_MAX_GAP] = ROW_CLASSIFIER_weight_max_gap,
		[CLF_FIRST_GAP] = ROW_CLASSIFIER_weight_first_gap,
		[CLF_COUNT] = ROW_CLASSIFIER_weight_count,
		[CLF_IDLE] = ROW_CLASSIFIER_weight_idle,
		[CLF_SIZE] = ROW_CLASSIFIER_weight_size,
		[CLF_TTL] = ROW_CLASSIFIER_weight_ttl,
	};

	for (unsigned i = 0; i < CLF_FEATURES; i++)
		real_row(out, rows[i], model->weight[i]);
}

/* Of the last model that was judged by samples. */
static void judged_row(const struct clf_status *model, struct stats_out *out, enum row row, double value)
{
	real_row(out, row, model->judged ? value : NAN);
}

void stats_classifier(const struct server *server, struct stats_out *out)
{
	struct store_status status;
	const struct clf_status *model = &status.classifier;

	store_get_status(server->store, &status);
	text_row(out, ROW_CLASSIFIER_model, model->model_in_use ? "svm" : "none");
	text_row(out, ROW_CLASSIFIER_model_origin, clf_origin_word(model->model_origin));
	text_row(out, ROW_CLASSIFIER_reason, model->reason[0] ? model->reason : "no model has been trained yet");
	number_row(out, ROW_CLASSIFIER_model_age_ms, model->model_age_ms);
	number_row(out, ROW_CLASSIFIER_model_samples, model->model_samples);
	number_row(out, ROW_CLASSIFIER_samples_waiting, model->samples_waiting);
	number_row(out, ROW_CLASSIFIER_tracked_keys, model->tracked_keys);
	judged_row(model, out, ROW_CLASSIFIER_precision, model->precision);
	judged_row(model, out, ROW_CLASSIFIER_recall, model->recall);
	judged_row(model, out, ROW_CLASSIFIER_positive_share, model->positive_share);
	judged_row(model, out, ROW_CLASSIFIER_admitted_share, model->admitted_share);
	judged_row(model, out, ROW_CLASSIFIER_read_once_share, model->read_once_share);
	judged_row(model, out, ROW_CLASSIFIER_read_once_precision, model->read_once_precision);
	judged_row(model, out, ROW_CLASSIFIER_read_once_recall, model->read_once_recall);
	judged_row(model, out, ROW_CLASSIFIER_second_hit_share, model->second_hit_share);
	judged_row(model, out, ROW_CLASSIFIER_model_hits, model->model_hits);
	judged_row(model, out, ROW_CLASSIFIER_freq_hits, model->freq_hits);
	judged_row(model, out, ROW_CLASSIFIER_second_hit_hits, model->second_hit_hits);
	real_row(out, ROW_CLASSIFIER_threshold, model->threshold);
	real_row(out, ROW_CLASSIFIER_bias, model->bias);
	weight_rows(model, out);
	number_row(out, ROW_CLASSIFIER_horizon_ms, model->horizon_ms);
	counter_rows(out, CTR_GROUP_CLASSIFIER);
}
