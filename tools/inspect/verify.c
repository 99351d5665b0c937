/* SPDX-License-Identifier: BSD-3-Clause */
/* flashield-inspect FILE verify: makes every check and prints a line per failure. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/alloc.h"
#include "tools/common/args.h"
#include "tools/common/text.h"
#include "tools/inspect/commands.h"
#include "tools/inspect/scan.h"
#include "tools/inspect/words.h"

struct verify {
	const struct inspect_options *options;
	const struct flash *flash;
	uint64_t records, failures;
	uint64_t states[SEGMENT_STATES];
	uint64_t *sequences; /* by segment; 0: no header of this flash */
	json_t *listed; /* failures, for --json */
	uint64_t read_bytes;
	double seconds;
};

static void report(struct verify *verify, const char *where, int64_t segment, uint64_t offset, const char *text)
{
	if (!verify->options->json && segment >= 0)
		printf("segment %" PRId64 " offset %" PRIu64 ": %s\n", segment, offset, text);
	else if (!verify->options->json)
		printf("%s offset %" PRIu64 ": %s\n", where, offset, text);
	else
		json_array_append_new(verify->listed, json_pack("{s:s, s:o, s:I, s:s}", "where", where, "segment",
								segment >= 0 ? json_integer(segment) : json_null(),
								"offset", (json_int_t)offset, "failure", text));
}

static void check_superblock(struct verify *verify)
{
	for (unsigned n = 0; n < FORMAT_COPIES; n++) {
		bool failure;
		const char *remark = superblock_copy_remark(verify->flash->copies, n, &failure);

		if (!remark || !failure)
			continue;
		verify->failures++;
		report(verify, n ? "superblock copy 1" : "superblock copy 0", -1, (uint64_t)n * FORMAT_COPY_OFFSET,
		       remark);
	}
}

static void end_segment(void *context, const struct scan_outcome *outcome)
{
	struct verify *verify = context;
	const struct segment *segment = &outcome->segment;

	verify->states[segment->state]++;
	verify->records += outcome->walked ? outcome->totals.records : 0;
	verify->failures += outcome->failures;
	if (segment->header_good)
		verify->sequences[segment->number] = segment->header.sequence;
	for (uint32_t i = 0; i < outcome->kept_count; i++)
		report(verify, "segment", segment->number, outcome->kept[i].offset, outcome->kept[i].text);
	if (outcome->failures > outcome->kept_count && !verify->options->json)
		printf("segment %u: %" PRIu64 " more failures\n", segment->number,
		       outcome->failures - outcome->kept_count);
}

struct numbered {
	uint64_t sequence;
	uint32_t segment;
};

static int by_sequence(const void *left, const void *right)
{
	const struct numbered *a = left, *b = right;

	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

/* No sequence number is used twice in the life of a flash. */
static void check_sequences(struct verify *verify)
{
	uint32_t count = verify->flash->super.segments, used = 0;
	struct numbered *all = mem_must_zalloc(count * sizeof(*all));
	char text[SCAN_TEXT_BYTES];

	for (uint32_t n = 0; n < count; n++)
		if (verify->sequences[n] != 0)
			all[used++] = (struct numbered){ verify->sequences[n], n };
	qsort(all, used, sizeof(*all), by_sequence);
	for (uint32_t i = 1; i < used; i++) {
		if (all[i].sequence != all[i - 1].sequence)
			continue;
		snprintf(text, sizeof(text), "sequence number %" PRIu64 " is the one of segment %u too",
			 all[i].sequence, all[i - 1].segment);
		verify->failures++;
		report(verify, "segment", all[i].segment, 56, text);
	}
	mem_free(all);
}

/* "not checked: 3 empty, 1 being written" */
static void print_unchecked(const struct verify *verify)
{
	static const enum segment_state unchecked[] = { SEGMENT_EMPTY, SEGMENT_WRITING, SEGMENT_TORN, SEGMENT_STRANGE };
	const char *before = "not checked: ";

	for (unsigned i = 0; i < sizeof(unchecked) / sizeof(unchecked[0]); i++) {
		if (verify->states[unchecked[i]] == 0)
			continue;
		printf("%s%" PRIu64 " %s", before, verify->states[unchecked[i]], segment_state_text(unchecked[i]));
		before = ", ";
	}
	if (before[0] == ',')
		putchar('\n');
}

static void print_summary(const struct verify *verify)
{
	double seconds = verify->seconds > 1e-6 ? verify->seconds : 1e-6;
	char bytes[TEXT_BYTES], rate[TEXT_BYTES], time[TEXT_BYTES];

	print_unchecked(verify);
	if (!verify->options->quiet)
		printf("read %s in %s, %s/s\n", text_size((double)verify->read_bytes, bytes),
		       text_duration(seconds, time), text_size((double)verify->read_bytes / seconds, rate));
	printf("%" PRIu64 " segments, %" PRIu64 " records, %" PRIu64 " failures\n", verify->states[SEGMENT_COMPLETE],
	       verify->records, verify->failures);
}

static void print_json(struct verify *verify)
{
	json_t *states = json_object();

	for (unsigned state = 0; state < SEGMENT_STATES; state++)
		json_object_set_new(states, segment_state_text(state), json_integer((json_int_t)verify->states[state]));
	words_print_json(json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:I, s:f}", "file", verify->options->path,
				   "segments", (json_int_t)verify->states[SEGMENT_COMPLETE], "records",
				   (json_int_t)verify->records, "failures", (json_int_t)verify->failures, "states",
				   states, "failed", verify->listed, "read_bytes", (json_int_t)verify->read_bytes,
				   "seconds", verify->seconds));
}

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void check_segments(struct verify *verify)
{
	static const struct scan_ops ops = { .end = end_segment };
	uint32_t count = verify->flash->super.segments;
	struct scan_request request = { .flash = verify->flash,
					.count = count,
					.threads = verify->options->threads,
					.quiet = verify->options->quiet || verify->options->json,
					.note = "verifying" };
	uint32_t *numbers = mem_must_zalloc(count * sizeof(*numbers));
	struct segment *segments = command_segments(verify->flash, &request.newest);

	mem_free(segments);
	for (uint32_t n = 0; n < count; n++)
		numbers[n] = n;
	request.numbers = numbers;
	verify->sequences = mem_must_zalloc(count * sizeof(*verify->sequences));
	verify->read_bytes = scan_run(&request, &ops, verify);
	check_sequences(verify);
	mem_free(verify->sequences);
	mem_free(numbers);
}

int command_verify(const struct inspect_options *options, const struct flash *flash)
{
	struct verify verify = { .options = options, .flash = flash };
	double start_s = now_s();

	if (options->json)
		verify.listed = json_array();
	check_superblock(&verify);
	check_segments(&verify);
	verify.seconds = now_s() - start_s;
	if (options->json)
		print_json(&verify);
	else
		print_summary(&verify);
	return verify.failures ? EXIT_WRONG : 0;
}
