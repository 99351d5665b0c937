/* SPDX-License-Identifier: BSD-3-Clause */
/* flashield-inspect FILE list: the superblock, and a line per segment. */
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "tools/common/args.h"
#include "tools/common/text.h"
#include "tools/inspect/commands.h"
#include "tools/inspect/grid.h"
#include "tools/inspect/live.h"
#include "tools/inspect/words.h"

struct list {
	const struct inspect_options *options;
	const struct flash *flash;
	const struct segment *segments;
	const struct live_count *counts; /* NULL: --no-live */
	bool in_use;
};

struct sums {
	uint64_t states[SEGMENT_STATES], earlier_starts;
	uint64_t records, bytes, live, superseded, expired, expiring, failures;
	double fill;
	uint32_t broken_copies;
};

static bool is_earlier(const struct list *list, const struct segment *segment)
{
	return segment->state == SEGMENT_COMPLETE && !segment_may_be_served(&list->flash->super, segment);
}

static struct sums sum_up(const struct list *list)
{
	struct sums sums = { 0 };

	for (uint32_t n = 0; n < list->flash->super.segments; n++) {
		const struct segment *segment = &list->segments[n];

		sums.states[segment->state]++;
		if (segment->state == SEGMENT_COMPLETE) {
			sums.earlier_starts += is_earlier(list, segment);
			sums.records += segment->header.records;
			sums.bytes += segment->header.record_bytes;
			sums.fill += segment_fill(segment);
		}
		if (!list->counts)
			continue;
		sums.live += list->counts[n].live;
		sums.superseded += list->counts[n].superseded;
		sums.expired += list->counts[n].expired;
		sums.expiring += list->counts[n].expiring;
		sums.failures += list->counts[n].failures;
	}
	for (unsigned n = 0; n < FORMAT_COPIES; n++) {
		bool failure;

		sums.broken_copies += superblock_copy_remark(list->flash->copies, n, &failure) && failure;
	}
	return sums;
}

/* ---- text ------------------------------------------------------------------------------------ */

static const struct grid_column columns[] = {
	{ .title = "segment" },        { .title = "state", .left = true },
	{ .title = "sequence" },       { .title = "written", .left = true },
	{ .title = "start" },          { .title = "kind", .left = true },
	{ .title = "granule" },        { .title = "L" },
	{ .title = "records" },        { .title = "extents" },
	{ .title = "fill" },           { .title = "bytes" },
	{ .title = "filter" },         { .title = "live at most" },
	{ .title = "superseded" },     { .title = "expired" },
	{ .title = "", .left = true }, { .title = NULL },
};

static void live_cells(const struct list *list, const struct segment *segment, struct grid *grid)
{
	const struct live_count *count = list->counts ? &list->counts[segment->number] : NULL;

	if (list->counts && is_earlier(list, segment)) {
		grid_cell(grid, "0");
		grid_cell(grid, "-");
		grid_cell(grid, "-");
		grid_cell(grid, "of an earlier start: not served");
		return;
	}
	if (!count || !count->known) {
		grid_end_row(grid);
		return;
	}
	grid_cell(grid, "%" PRIu64, count->live);
	grid_cell(grid, "%" PRIu64, count->superseded);
	if (list->options->uptime_s >= 0)
		grid_cell(grid, "%" PRIu64, count->expired);
	else
		grid_cell(grid, "-");
	if (count->failures)
		grid_cell(grid, "%" PRIu64 " failures: run verify", count->failures);
	grid_end_row(grid);
}

/* Header fields, for every state in which there is a header of this flash. */
static void header_cells(const struct segment *segment, struct grid *grid)
{
	const struct format_header *header = &segment->header;
	char text[WORDS_TIME_BYTES], size[TEXT_BYTES];

	grid_cell(grid, "%" PRIu64, header->sequence);
	grid_cell(grid, "%s", words_time(header->written_s, text));
	grid_cell(grid, "%" PRIu64, header->attach_epoch);
	grid_cell(grid, "%s", format_kind_text(header->kind));
	grid_cell(grid, "%u B", header->granule);
	grid_cell(grid, "%u B", header->longest_999);
	grid_cell(grid, "%u", header->records);
	grid_cell(grid, "%u", header->extents);
	grid_cell(grid, "%.2f %%", 100 * segment_fill(segment));
	grid_cell(grid, "%s", text_size((double)header->record_bytes, size));
}

static void segment_row(const struct list *list, const struct segment *segment, struct grid *grid)
{
	char size[TEXT_BYTES];

	grid_cell(grid, "%u", segment->number);
	grid_cell(grid, "%s", segment_state_text(segment->state));
	if (segment->header_good)
		header_cells(segment, grid);
	else
		for (int i = 0; i < 10; i++)
			grid_cell(grid, "-");
	if (segment->state == SEGMENT_COMPLETE) {
		grid_cell(grid, "%s", text_size((double)segment->tail.filter_bytes, size));
		live_cells(list, segment, grid);
		return;
	}
	for (int i = 0; i < 4; i++)
		grid_cell(grid, "-");
	grid_cell(grid, "%s", segment->why);
}

/* Empty segments that follow each other share a line: a new flash has thousands. */
static uint32_t empty_row(const struct list *list, uint32_t first, struct grid *grid)
{
	uint32_t last = first;

	while (last + 1 < list->flash->super.segments && list->segments[last + 1].state == SEGMENT_EMPTY)
		last++;
	if (last == first)
		grid_cell(grid, "%u", first);
	else
		grid_cell(grid, "%u-%u", first, last);
	grid_cell(grid, "%s", segment_state_text(SEGMENT_EMPTY));
	grid_end_row(grid);
	return last;
}

static void print_segments(const struct list *list)
{
	struct grid *grid = grid_create(columns);

	for (uint32_t n = 0; n < list->flash->super.segments; n++) {
		if (list->segments[n].state == SEGMENT_EMPTY)
			n = empty_row(list, n, grid);
		else
			segment_row(list, &list->segments[n], grid);
	}
	grid_print(grid);
	grid_destroy(grid);
}

static void print_states(const struct list *list, const struct sums *sums)
{
	const char *separator = ": ";

	printf("%u segments", list->flash->super.segments);
	for (unsigned state = 0; state < SEGMENT_STATES; state++) {
		if (!sums->states[state])
			continue;
		printf("%s%" PRIu64 " %s", separator, sums->states[state], segment_state_text(state));
		separator = ", ";
	}
	if (sums->earlier_starts)
		printf("; %" PRIu64 " of earlier starts, not served", sums->earlier_starts);
	putchar('\n');
}

static void print_sums(const struct list *list, const struct sums *sums)
{
	uint64_t complete = sums->states[SEGMENT_COMPLETE];
	char number[TEXT_BYTES], bytes[TEXT_BYTES];

	print_states(list, sums);
	if (complete)
		printf("%s records in complete segments, %s, mean fill %.2f %%\n", text_grouped(sums->records, number),
		       text_size((double)sums->bytes, bytes), 100 * sums->fill / (double)complete);
	if (list->counts) {
		printf("%s live at most, %s superseded", text_grouped(sums->live, number),
		       text_grouped(sums->superseded, bytes));
		if (list->options->uptime_s >= 0)
			printf(", %s expired", text_grouped(sums->expired, number));
		else if (sums->expiring)
			printf("; %s of the live ones have an expiry, --uptime tells which are over",
			       text_grouped(sums->expiring, number));
		putchar('\n');
	}
	if (sums->failures)
		printf("%s failures: run verify\n", text_grouped(sums->failures, number));
}

static void print_legend(const struct list *list)
{
	if (list->options->quiet)
		return;
	puts("\n"
	     "start: which start of the daemon wrote it. kind: how records are found there. granule: records\n"
	     "lie at multiples of it. L: 99.9 % of the records are no longer; outside of bins a get reads as much.\n"
	     "extents: large records, kept in an area of their own. fill: share of the segment's data areas\n"
	     "that records take.");
	if (list->counts)
		puts("live at most: records with no younger one of the same key in this file; which of them\n"
		     "were deleted, flushed or evicted, only the daemon knows.");
}

static void print_text(const struct list *list, const struct sums *sums)
{
	superblock_print(list->options, list->flash, list->in_use);
	putchar('\n');
	print_segments(list);
	putchar('\n');
	print_sums(list, sums);
	print_legend(list);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *live_json(const struct list *list, const struct segment *segment)
{
	const struct live_count *count = &list->counts[segment->number];

	if (!count->known)
		return is_earlier(list, segment) ? json_pack("{s:i}", "live_at_most", 0) : json_null();
	if (list->options->uptime_s < 0)
		return json_pack("{s:I, s:I, s:I}", "live_at_most", (json_int_t)count->live, "superseded",
				 (json_int_t)count->superseded, "with_expiry", (json_int_t)count->expiring);
	return json_pack("{s:I, s:I, s:I}", "live_at_most", (json_int_t)count->live, "superseded",
			 (json_int_t)count->superseded, "expired", (json_int_t)count->expired);
}

json_t *segment_json(const struct segment *segment)
{
	const struct format_header *header = &segment->header;
	json_t *object =
		json_pack("{s:i, s:s}", "segment", (int)segment->number, "state", segment_state_text(segment->state));

	if (segment->why[0])
		json_object_set_new(object, "why", json_string(segment->why));
	if (!segment->header_good)
		return object;
	json_object_update_new(
		object, json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f}", "sequence",
				  (json_int_t)header->sequence, "kind", format_kind_text(header->kind), "written_s",
				  (json_int_t)header->written_s, "start", (json_int_t)header->attach_epoch, "granule",
				  (json_int_t)header->granule, "longest_999", (json_int_t)header->longest_999,
				  "records", (json_int_t)header->records, "extents", (json_int_t)header->extents,
				  "record_bytes", (json_int_t)header->record_bytes, "fill", segment_fill(segment)));
	if (segment->state == SEGMENT_COMPLETE)
		json_object_set_new(object, "filter_bytes", json_integer((json_int_t)segment->tail.filter_bytes));
	return object;
}

static void print_list_json(const struct list *list, const struct sums *sums)
{
	json_t *array = json_array(), *states = json_object(), *all;

	for (uint32_t n = 0; n < list->flash->super.segments; n++) {
		json_t *object = segment_json(&list->segments[n]);

		if (list->counts && list->segments[n].state == SEGMENT_COMPLETE)
			json_object_set_new(object, "liveness", live_json(list, &list->segments[n]));
		json_array_append_new(array, object);
	}
	for (unsigned state = 0; state < SEGMENT_STATES; state++)
		json_object_set_new(states, segment_state_text(state), json_integer((json_int_t)sums->states[state]));
	all = json_pack("{s:s, s:o, s:o, s:o, s:I, s:I, s:I}", "file", list->options->path, "superblock",
			superblock_json(list->flash, list->in_use), "segments", array, "states", states, "records",
			(json_int_t)sums->records, "record_bytes", (json_int_t)sums->bytes, "failures",
			(json_int_t)sums->failures);
	words_print_json(all);
}

int command_list(const struct inspect_options *options, const struct flash *flash)
{
	struct list list = { .options = options, .flash = flash, .in_use = flash_in_use(flash) };
	struct segment *segments;
	struct live_count *counts = NULL;
	struct sums sums;
	uint64_t newest;

	segments = command_segments(flash, &newest);
	list.segments = segments;
	if (options->live)
		counts = live_counts(options, flash, segments, newest);
	list.counts = counts;
	sums = sum_up(&list);
	if (options->json)
		print_list_json(&list, &sums);
	else
		print_text(&list, &sums);
	mem_free(counts);
	mem_free(segments);
	return sums.failures || sums.broken_copies || sums.states[SEGMENT_BROKEN] || sums.states[SEGMENT_MISSING]
		       ? EXIT_WRONG
		       : 0;
}
