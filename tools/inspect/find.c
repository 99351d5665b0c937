/* SPDX-License-Identifier: BSD-3-Clause */
/* flashield-inspect FILE find KEY: every record of a key, by reading all of them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/common/args.h"
#include "tools/common/text.h"
#include "tools/inspect/commands.h"
#include "tools/inspect/grid.h"
#include "tools/inspect/scan.h"
#include "tools/inspect/words.h"

/* A record of the key, without its bytes. */
struct hit {
	struct hit *next;
	struct format_record record; /* its pointers are no longer valid */
	uint8_t classifier[FORMAT_CLASSIFIER_BYTES];
	bool good;
};

struct find;

/* The records of the key in one segment, in order of offset. */
struct hits {
	const struct find *find;
	bool chain; /* the segment has no objects */
	struct hit *first, **last;
};

struct find {
	const struct inspect_options *options;
	const struct flash *flash;
	bool found_youngest;
	struct find_location youngest;
	uint64_t found, failures;
	struct grid *grid; /* NULL: not to be printed as text */
	json_t *listed; /* NULL: not as JSON */
};

static void *begin_segment(void *context, const struct segment *segment)
{
	struct hits *hits = mem_must_zalloc(sizeof(*hits));

	hits->find = context;
	hits->chain = segment->header.kind == FORMAT_CHAIN;
	hits->last = &hits->first;
	return hits;
}

static void take_record(void *state, const struct format_record *record, bool good)
{
	struct hits *hits = state;
	const struct inspect_options *options = hits->find->options;
	struct hit *hit;

	if (hits->chain || record->key_length != options->key_length ||
	    memcmp(record->key, options->key, options->key_length) != 0)
		return;
	hit = mem_must_zalloc(sizeof(*hit));
	hit->record = *record;
	memcpy(hit->classifier, record->classifier, sizeof(hit->classifier));
	hit->record.classifier = hit->classifier;
	hit->record.key = (const uint8_t *)options->key;
	hit->good = good;
	*hits->last = hit;
	hits->last = &hit->next;
}

static void drop_hits(void *state)
{
	struct hits *hits = state;

	while (hits->first) {
		struct hit *hit = hits->first;

		hits->first = hit->next;
		mem_free(hit);
	}
	mem_free(hits);
}

/* ---- a record found -------------------------------------------------------------------------- */

static const struct grid_column columns[] = {
	{ .title = "segment" },
	{ .title = "offset" },
	{ .title = "sequence" },
	{ .title = "written", .left = true },
	{ .title = "CAS id" },
	{ .title = "flags" },
	{ .title = "value" },
	{ .title = "expires", .left = true },
	{ .title = "check", .left = true },
	{ .title = "", .left = true },
	{ .title = NULL },
};

static const char *standing(const struct find *find, const struct segment *segment, const struct hit *hit,
			    bool youngest)
{
	if (!hit->good)
		return "broken";
	if (!segment_may_be_served(&find->flash->super, segment))
		return youngest ? "youngest, but of an earlier start: not served" : "of an earlier start";
	return youngest ? "youngest" : "superseded";
}

static void add_row(const struct find *find, const struct segment *segment, const struct hit *hit, bool youngest)
{
	char text[WORDS_TIME_BYTES];

	grid_cell(find->grid, "%u", segment->number);
	grid_cell(find->grid, "%" PRIu64, hit->record.offset);
	grid_cell(find->grid, "%" PRIu64, segment->header.sequence);
	grid_cell(find->grid, "%s", words_time(segment->header.written_s, text));
	grid_cell(find->grid, "%" PRIu64, hit->record.cas);
	grid_cell(find->grid, "%u", hit->record.client_flags);
	grid_cell(find->grid, "%u B", hit->record.value_length);
	grid_cell(find->grid, "%s", words_expiry(hit->record.expiry, find->options->uptime_s, text));
	grid_cell(find->grid, "%s", hit->good ? "ok" : "FAILS");
	grid_cell(find->grid, "%s", standing(find, segment, hit, youngest));
}

static void add_json(const struct find *find, const struct segment *segment, const struct hit *hit, bool youngest)
{
	json_t *object = words_json_record(&hit->record, segment->number, hit->good);

	json_object_set_new(object, "sequence", json_integer((json_int_t)segment->header.sequence));
	json_object_set_new(object, "written_s", json_integer((json_int_t)segment->header.written_s));
	json_object_set_new(object, "youngest", json_boolean(youngest));
	json_object_set_new(object, "standing", json_string(standing(find, segment, hit, youngest)));
	json_array_append_new(find->listed, object);
}

/* Segments come youngest first; within one, the highest CAS id is the youngest. */
static const struct hit *youngest_of(const struct hits *hits)
{
	const struct hit *best = NULL;

	for (const struct hit *hit = hits->first; hit; hit = hit->next)
		if (hit->good && (!best || hit->record.cas > best->record.cas))
			best = hit;
	return best;
}

static void end_segment(void *context, const struct scan_outcome *outcome)
{
	struct find *find = context;
	struct hits *hits = outcome->state;
	const struct hit *best = hits && !find->found_youngest ? youngest_of(hits) : NULL;

	find->failures += outcome->failures;
	if (!hits)
		return;
	if (best) {
		find->found_youngest = true;
		find->youngest = (struct find_location){ outcome->segment.number, best->record.offset };
	}
	for (const struct hit *hit = hits->first; hit; hit = hit->next) {
		find->found++;
		if (find->grid)
			add_row(find, &outcome->segment, hit, hit == best);
		if (find->listed)
			add_json(find, &outcome->segment, hit, hit == best);
	}
	drop_hits(hits);
}

static void run(struct find *find)
{
	static const struct scan_ops ops = {
		.begin = begin_segment, .record = take_record, .end = end_segment, .drop = drop_hits
	};
	struct scan_request request = { .flash = find->flash,
					.threads = find->options->threads,
					.quiet = find->options->quiet || find->options->json,
					.note = "reading records" };
	struct segment *segments = command_segments(find->flash, &request.newest);
	uint32_t *numbers = command_youngest_first(find->flash, segments, true, &request.count);

	for (uint32_t n = 0; n < find->flash->super.segments; n++)
		find->failures += segment_failed(&segments[n]);
	request.numbers = numbers;
	scan_run(&request, &ops, find);
	mem_free(numbers);
	mem_free(segments);
}

/* ---- the commands ---------------------------------------------------------------------------- */

bool find_youngest(const struct inspect_options *options, const struct flash *flash, struct find_location *location)
{
	struct find find = { .options = options, .flash = flash };

	run(&find);
	*location = find.youngest;
	return find.found_youngest;
}

static void print_text(const struct find *find)
{
	char key[WORDS_KEY_BYTES];

	words_key((const uint8_t *)find->options->key, find->options->key_length, key);
	if (find->found > 0)
		grid_print(find->grid);
	if (find->found == 0)
		printf("no record of key %s in this file\n", key);
	else
		printf("\n%" PRIu64 " %s of key %s\n", find->found, find->found == 1 ? "record" : "records", key);
	if (find->failures)
		printf("%" PRIu64 " failures in segments that were read, there may be more records: run verify\n",
		       find->failures);
}

static void print_json(const struct find *find)
{
	json_t *object = json_object();

	words_json_bytes(object, "key", (const uint8_t *)find->options->key, find->options->key_length);
	json_object_set_new(object, "found", json_integer((json_int_t)find->found));
	json_object_set_new(object, "failures", json_integer((json_int_t)find->failures));
	json_object_set(object, "records", find->listed);
	words_print_json(object);
}

int command_find(const struct inspect_options *options, const struct flash *flash)
{
	struct find find = { .options = options, .flash = flash };

	if (options->json)
		find.listed = json_array();
	else
		find.grid = grid_create(columns);
	run(&find);
	if (options->json)
		print_json(&find);
	else
		print_text(&find);
	json_decref(find.listed);
	if (find.grid)
		grid_destroy(find.grid);
	return find.failures ? EXIT_WRONG : 0;
}
