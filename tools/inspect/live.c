/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/live.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "tools/common/text.h"
#include "tools/inspect/commands.h"
#include "tools/inspect/keyset.h"
#include "tools/inspect/scan.h"
#include "tools/inspect/words.h"

struct key {
	uint64_t hash;
	uint32_t expiry;
};

/* The keys of one segment, until its turn comes. */
struct keys {
	bool chain; /* its records are no objects */
	uint64_t hash_seed;
	uint32_t count;
	struct key key[];
};

struct live {
	const struct inspect_options *options;
	const struct flash *flash;
	const struct segment *segments;
	struct keyset seen; /* keys of younger segments */
	struct live_count *counts;
};

static void *begin_segment(void *context, const struct segment *segment)
{
	const struct live *live = context;
	struct keys *keys = mem_must_zalloc(sizeof(*keys) + segment->header.records * sizeof(keys->key[0]));

	keys->chain = segment->header.kind == FORMAT_CHAIN;
	keys->hash_seed = live->flash->super.hash_seed;
	return keys;
}

static void take_key(void *state, const struct format_record *record, bool good)
{
	struct keys *keys = state;

	if (good && !keys->chain)
		keys->key[keys->count++] = (struct key){
			.hash = hash64(record->key, record->key_length, keys->hash_seed),
			.expiry = record->expiry,
		};
}

static void count_key(struct live *live, const struct key *key, struct live_count *count)
{
	if (!keyset_add(&live->seen, key->hash)) {
		count->superseded++;
	} else if (words_expired(key->expiry, live->options->uptime_s)) {
		count->expired++;
	} else {
		count->live++;
		count->expiring += key->expiry != 0;
	}
}

/* Leaves out a segment that was overwritten since the first look, because it is younger than those counted before. */
static void end_segment(void *context, const struct scan_outcome *outcome)
{
	struct live *live = context;
	const struct segment *expected = &live->segments[outcome->segment.number];
	struct live_count *count = &live->counts[outcome->segment.number];
	struct keys *keys = outcome->state;

	count->failures = outcome->failures;
	if (keys && outcome->segment.header.checksum == expected->header.checksum) {
		count->known = true;
		for (uint32_t i = 0; i < keys->count; i++)
			count_key(live, &keys->key[i], count);
	}
	mem_free(keys);
}

/* Announces a read that takes more than a moment. */
#define ANNOUNCED_BYTES (256u << 20)

static void announce(const struct inspect_options *options, uint64_t records, uint64_t bytes)
{
	char number[TEXT_BYTES], size[TEXT_BYTES], memory[TEXT_BYTES];

	if (!options->quiet && bytes >= ANNOUNCED_BYTES)
		fprintf(stderr,
			"reading %s records (%s) to see which are superseded; takes %s of memory; "
			"--no-live skips "
			"it\n",
			text_count((double)records, number), text_size((double)bytes, size),
			text_size((double)keyset_bytes(records), memory));
}

struct live_count *live_counts(const struct inspect_options *options, const struct flash *flash,
			       const struct segment *segments, uint64_t newest)
{
	static const struct scan_ops ops = {
		.begin = begin_segment, .record = take_key, .end = end_segment, .drop = mem_free
	};
	struct live live = { .options = options, .flash = flash, .segments = segments };
	struct scan_request request = { .flash = flash,
					.newest = newest,
					.threads = options->threads,
					.quiet = options->quiet || options->json,
					.note = "reading records" };
	uint32_t *numbers = command_youngest_first(flash, segments, false, &request.count);
	uint64_t records = 0;

	live.counts = mem_must_zalloc(flash->super.segments * sizeof(*live.counts));
	for (uint32_t i = 0; i < request.count; i++)
		records += segments[numbers[i]].header.records;
	if (request.count > 0) {
		announce(options, records, request.count * flash->super.segment_bytes);
		keyset_init(&live.seen, records);
		request.numbers = numbers;
		scan_run(&request, &ops, &live);
		keyset_fini(&live.seen);
	}
	mem_free(numbers);
	return live.counts;
}
