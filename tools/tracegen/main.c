/* SPDX-License-Identifier: BSD-3-Clause */
/* flashield-tracegen: plans each application, fits it, and merges their requests by time. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "tools/common/text.h"
#include "tools/tracegen/fit.h"
#include "tools/tracegen/output.h"
#include "tools/tracegen/report.h"

/* An application under way. */
struct stream {
	struct plan plan;
	struct tally tally;
	struct source *source;
	struct event next;
	bool has_next;
	uint32_t *ids; /* of its keys in the whole trace, + 1; given by first appearance */
};

static uint32_t plan_all(const struct tracegen_options *options, struct stream *streams, struct progress *progress)
{
	struct plan_shares shares;
	uint32_t count = 0;

	plan_shares(&shares);
	for (int i = 0; i < APP_COUNT; i++) {
		char note[64];

		if (!options->chosen[i])
			continue;
		snprintf(note, sizeof(note), "fitting app %u", app_table[i].id);
		if (progress->terminal)
			progress_show(progress, (double)i / APP_COUNT, note);
		plan_make(&streams[count].plan, &app_table[i], &shares, options->scale, options->span_s);
		if (options->fit)
			fit_plan(&streams[count].plan, &shares, options->seed);
		count++;
	}
	progress_clear(progress);
	return count;
}

static void start(struct stream *stream, uint64_t seed)
{
	stream->source = source_create(&stream->plan, seed);
	tally_init(&stream->tally, &stream->plan);
	stream->ids = mem_must_zalloc(stream->plan.keys * sizeof(*stream->ids));
	stream->has_next = source_next(stream->source, &stream->next);
}

static struct stream *earliest(struct stream *streams, uint32_t count)
{
	struct stream *first = NULL;

	for (uint32_t i = 0; i < count; i++)
		if (streams[i].has_next && (!first || streams[i].next.time_s < first->next.time_s))
			first = &streams[i];
	return first;
}

/* Writes all rows. Returns the number of rows that the format has no word for. */
static uint64_t write_rows(const struct tracegen_options *options, struct stream *streams, uint32_t count,
			   struct progress *progress)
{
	struct output *output = output_open(options->output, options->format);
	uint64_t left_out = 0, rows = 0;
	uint32_t last_id = 0;

	for (struct stream *stream; (stream = earliest(streams, count));) {
		uint32_t *id = &stream->ids[stream->next.key];

		if (output_takes(output, stream->next.op)) {
			if (!*id)
				*id = ++last_id;
			output_event(output, &stream->next, stream->plan.app->id, *id - 1);
		} else {
			left_out++;
		}
		tally_event(&stream->tally, &stream->next);
		if ((++rows & 0xffff) == 0)
			progress_show(progress, stream->next.time_s / options->span_s, "writing");
		stream->has_next = source_next(stream->source, &stream->next);
	}
	progress_clear(progress);
	output_close(output);
	return left_out;
}

int main(int argc, char **argv)
{
	struct tracegen_options options;
	struct stream streams[APP_COUNT];
	struct tally tallies[APP_COUNT];
	struct progress progress;
	uint64_t left_out;
	uint32_t count;

	tracegen_options_parse(argc, argv, &options);
	memset(streams, 0, sizeof(streams));
	progress_init(&progress, options.quiet);
	count = plan_all(&options, streams, &progress);
	for (uint32_t i = 0; i < count; i++)
		start(&streams[i], options.seed);
	left_out = write_rows(&options, streams, count, &progress);
	for (uint32_t i = 0; i < count; i++)
		tallies[i] = streams[i].tally;
	if (!options.quiet)
		tracegen_report(&options, tallies, count, left_out, strcmp(options.output, "-") == 0 ? stderr : stdout);
	for (uint32_t i = 0; i < count; i++) {
		source_destroy(streams[i].source);
		tally_fini(&streams[i].tally);
		mem_free(streams[i].ids);
	}
	return 0;
}
