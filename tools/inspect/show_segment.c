/* SPDX-License-Identifier: BSD-3-Clause */
/* flashield-inspect FILE segment NUMBER: a full report on one segment. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/common/args.h"
#include "tools/common/text.h"
#include "tools/inspect/commands.h"
#include "tools/inspect/grid.h"
#include "tools/inspect/records.h"
#include "tools/inspect/scan.h"
#include "tools/inspect/words.h"

#define CLASSES 32u /* of lengths: class n holds those below 2^n and not below 2^(n-1) */
#define BAR_WIDTH 40

_Static_assert(FORMAT_SEGMENT_MOST < 1u << (CLASSES - 1), "each length has a class");

/* Records by length, header and key included. */
struct histogram {
	uint64_t records[CLASSES], bytes[CLASSES];
};

struct view {
	const struct inspect_options *options;
	const struct flash *flash;
	struct segment segment;
	struct histogram histogram;
	struct walk_totals totals;
	bool walked;
	uint64_t failures;
	json_t *listed; /* failures */
};

static uint64_t length_of(const struct format_record *record)
{
	return (uint64_t)FORMAT_RECORD_BYTES + record->key_length + record->value_length;
}

static void *begin_segment(void *context, const struct segment *segment)
{
	(void)context;
	(void)segment;
	return mem_must_zalloc(sizeof(struct histogram));
}

static void take_record(void *state, const struct format_record *record, bool good)
{
	struct histogram *histogram = state;
	uint64_t length = length_of(record);
	unsigned class = 64 - (unsigned)__builtin_clzll(length);

	if (!good)
		return;
	histogram->records[class]++;
	histogram->bytes[class] += length;
}

static void end_segment(void *context, const struct scan_outcome *outcome)
{
	struct view *view = context;

	view->segment = outcome->segment;
	view->walked = outcome->walked;
	view->totals = outcome->totals;
	view->failures = outcome->failures;
	if (outcome->state)
		view->histogram = *(const struct histogram *)outcome->state;
	mem_free(outcome->state);
	for (uint32_t i = 0; i < outcome->kept_count; i++)
		json_array_append_new(view->listed,
				      json_pack("{s:I, s:s}", "offset", (json_int_t)outcome->kept[i].offset, "failure",
						outcome->kept[i].text));
}

static void walk(struct view *view)
{
	static const struct scan_ops ops = {
		.begin = begin_segment, .record = take_record, .end = end_segment, .drop = mem_free
	};
	struct scan_request request = { .flash = view->flash,
					.numbers = &view->options->segment,
					.count = 1,
					.threads = 1,
					.quiet = true,
					.note = "" };

	scan_run(&request, &ops, view);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void print_area(const char *name, uint64_t offset, uint64_t bytes, const char *remark)
{
	char size[TEXT_BYTES];

	printf("%-15s from %10" PRIu64 ", %10" PRIu64 " bytes (%s)%s\n", name, offset, bytes,
	       text_size((double)bytes, size), remark);
}

static void print_header(const struct view *view)
{
	const struct format_header *header = &view->segment.header;
	char text[WORDS_TIME_BYTES], size[TEXT_BYTES];

	printf("sequence        %" PRIu64 "\n", header->sequence);
	printf("written         %s, by start %" PRIu64 "%s\n", words_time(header->written_s, text),
	       header->attach_epoch,
	       segment_may_be_served(&view->flash->super, &view->segment) ? "" : ", an earlier one: not served");
	printf("kind            %s", format_kind_text(header->kind));
	if (header->kind == FORMAT_BINS)
		printf(", %" PRIu64 " of %u bytes", header->data_bytes / header->bin_bytes, header->bin_bytes);
	printf("\nindex table     %u\n", header->table_id);
	printf("granule         %u bytes; %u functions\n", header->granule, header->functions);
	printf("L               %u bytes: 99.9 %% of the records outside of extents are no longer\n",
	       header->longest_999);
	print_area("extents", header->extents_offset, header->extents_bytes, "");
	print_area("data", header->data_offset, header->data_bytes,
		   header->data_offset + header->data_bytes > header->footer_offset ? "; the footer covers its end"
										    : "");
	print_area("footer", header->footer_offset, header->footer_bytes, "");
	printf("records         %u, of them %u extents; %s, fill %.2f %%\n", header->records, header->extents,
	       text_size((double)header->record_bytes, size), 100 * segment_fill(&view->segment));
	if (view->segment.state != SEGMENT_COMPLETE)
		return;
	printf("list of offsets %" PRIu64 " bytes\n", view->segment.tail.list_bytes);
	printf("filter          %" PRIu64 " bytes\n", view->segment.tail.filter_bytes);
}

static const struct grid_column histogram_columns[] = {
	{ .title = "record size" }, { .title = "records" },        { .title = "share" },
	{ .title = "bytes" },       { .title = "", .left = true }, { .title = NULL },
};

static void print_histogram(const struct view *view)
{
	const struct histogram *histogram = &view->histogram;
	struct grid *grid = grid_create(histogram_columns);
	uint64_t most = 1;

	for (unsigned i = 0; i < CLASSES; i++)
		most = histogram->records[i] > most ? histogram->records[i] : most;
	for (unsigned i = 0; i < CLASSES; i++) {
		char size[TEXT_BYTES], bar[BAR_WIDTH + 1];
		int filled = (int)(histogram->records[i] * BAR_WIDTH / most);

		if (histogram->records[i] == 0)
			continue;
		memset(bar, '#', sizeof(bar));
		bar[filled ? filled : 1] = 0;
		grid_cell(grid, "%llu-%llu B", 1ull << (i - 1), (1ull << i) - 1);
		grid_cell(grid, "%" PRIu64, histogram->records[i]);
		grid_cell(grid, "%.1f %%", 100 * (double)histogram->records[i] / (double)view->totals.records);
		grid_cell(grid, "%s", text_size((double)histogram->bytes[i], size));
		grid_cell(grid, "%s", bar);
	}
	grid_print(grid);
	grid_destroy(grid);
}

static void print_walked(const struct view *view)
{
	const json_t *failure;
	size_t i;

	if (view->walked && view->totals.largest_gap)
		printf("largest gap     %" PRIu64 " bytes, at offset %" PRIu64 "\n", view->totals.largest_gap,
		       view->totals.largest_gap_offset);
	if (view->totals.records) {
		putchar('\n');
		print_histogram(view);
	}
	if (view->failures)
		putchar('\n');
	json_array_foreach(view->listed, i, failure)
	{
		printf("offset %" JSON_INTEGER_FORMAT ": %s\n", json_integer_value(json_object_get(failure, "offset")),
		       json_string_value(json_object_get(failure, "failure")));
	}
	if (view->failures > json_array_size(view->listed))
		printf("%" PRIu64 " more failures\n", view->failures - json_array_size(view->listed));
}

static void print_text(const struct view *view)
{
	printf("segment         %u, %s%s%s\n", view->segment.number, segment_state_text(view->segment.state),
	       view->segment.why[0] ? ": " : "", view->segment.why);
	if (view->segment.header_good)
		print_header(view);
	print_walked(view);
	if (view->options->records && view->walked)
		records_print(view->options, view->flash, &view->segment);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *histogram_json(const struct histogram *histogram)
{
	json_t *array = json_array();

	for (unsigned i = 0; i < CLASSES; i++)
		if (histogram->records[i])
			json_array_append_new(array, json_pack("{s:I, s:I, s:I, s:I}", "from", (json_int_t)1 << (i - 1),
							       "to", ((json_int_t)1 << i) - 1, "records",
							       (json_int_t)histogram->records[i], "bytes",
							       (json_int_t)histogram->bytes[i]));
	return array;
}

static json_t *areas_json(const struct segment *segment)
{
	const struct format_header *header = &segment->header;

	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "extents_offset",
			 (json_int_t)header->extents_offset, "extents_bytes", (json_int_t)header->extents_bytes,
			 "data_offset", (json_int_t)header->data_offset, "data_bytes", (json_int_t)header->data_bytes,
			 "footer_offset", (json_int_t)header->footer_offset, "footer_bytes",
			 (json_int_t)header->footer_bytes, "list_bytes", (json_int_t)segment->tail.list_bytes,
			 "filter_bytes", (json_int_t)segment->tail.filter_bytes, "functions",
			 (json_int_t)header->functions, "table_id", (json_int_t)header->table_id, "bin_bytes",
			 (json_int_t)header->bin_bytes);
}

static void print_json(const struct view *view)
{
	json_t *object = segment_json(&view->segment);

	if (view->segment.state == SEGMENT_COMPLETE)
		json_object_update_new(object, areas_json(&view->segment));
	if (view->walked) {
		json_object_set_new(object, "good_records", json_integer((json_int_t)view->totals.records));
		json_object_set_new(object, "largest_gap", json_integer((json_int_t)view->totals.largest_gap));
		json_object_set_new(object, "largest_gap_offset",
				    json_integer((json_int_t)view->totals.largest_gap_offset));
		json_object_set_new(object, "sizes", histogram_json(&view->histogram));
	}
	json_object_set_new(object, "failures", json_integer((json_int_t)view->failures));
	json_object_set(object, "failed", view->listed);
	if (view->options->records && view->walked)
		records_print_json(view->flash, &view->segment, object);
	else
		words_print_json(object);
}

int command_segment(const struct inspect_options *options, const struct flash *flash)
{
	struct view view = { .options = options, .flash = flash };

	if (options->segment >= flash->super.segments)
		arg_die("the flash has segments 0 to %u", flash->super.segments - 1);
	view.listed = json_array();
	walk(&view);
	if (options->json)
		print_json(&view);
	else
		print_text(&view);
	json_decref(view.listed);
	return view.failures ? EXIT_WRONG : 0;
}
