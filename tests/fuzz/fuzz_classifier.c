/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the classifier saves at a clean stop: budget and counts of keys. Damage that no checksum knows of is refused. What
 * is taken leads to a finite threshold whatever is offered and written afterwards, and can be saved and taken again.
 */
#include <math.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/parts.h"
#include "base/rng.h"
#include "classifier/classifier.h"
#include "tests/fuzz/damage.h"

#define COUNTS_BYTES 1024u
#define FLASH_BYTES (1u << 20)
#define ROOM 1024u
#define TURNS 24u
#define PLACES 8u

static char folder[64], path[80];
static struct clk clk;

/* ---- files ----------------------------------------------------------------------------------- */

static void remove_folder(void)
{
	unlink(path);
	rmdir(folder);
}

static void make_folder(void)
{
	snprintf(folder, sizeof(folder), "%s/flashield-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	require(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/saved", folder);
	atexit(remove_folder);
}

static void save(struct clf *clf)
{
	uint8_t counts[COUNTS_BYTES];
	struct parts_writer *writer;

	require(clf_counts_bytes(clf) == COUNTS_BYTES);
	clf_counts_copy(clf, 0, counts, COUNTS_BYTES);
	require(parts_create(&writer, path) == FS_OK);
	clf_save(clf, writer);
	parts_put(writer, PARTS_COUNTS, 0, counts, COUNTS_BYTES);
	require(parts_finish(writer) == FS_OK);
}

/* Returns whether all that lies at path was taken. */
static bool load(struct clf *clf)
{
	uint8_t counts[COUNTS_BYTES];
	struct parts_reader *reader;
	bool same = false;

	if (parts_open(&reader, path) != FS_OK)
		return false;
	if (clf_load(clf, reader, &same) != FS_OK)
		same = false;
	if (same && parts_take(reader, PARTS_COUNTS, 0, counts, COUNTS_BYTES) == FS_OK)
		clf_counts_merge(clf, 0, counts, COUNTS_BYTES);
	parts_close(reader);
	return same;
}

/* ---- a classifier ---------------------------------------------------------------------------- */

static struct clf *make_classifier(void)
{
	const struct clf_config config = { .clock = &clk,
					   .seed = 7,
					   .admission = CLF_ADMIT_FREQ,
					   .threshold = 1,
					   .training_window_ms = 60000,
					   .memory_bytes = 64 << 10,
					   .counts_bytes = COUNTS_BYTES,
					   .flash_bytes = FLASH_BYTES,
					   .size_exponent = 1 };
	struct clf *clf;

	require(clf_create(&clf, &config) == FS_OK);
	return clf;
}

/* Objects of all sizes come, are read and are offered, and a budget holds some of them back. */
static void run(struct clf *clf, uint64_t seed)
{
	struct rng rng;

	rng_init(&rng, seed);
	for (unsigned turn = 0; turn < TURNS; turn++) {
		struct clf_written written = { .seconds = 1, .app_bytes = 1 << 16, .ratio = 0.2 };
		float threshold;

		for (unsigned i = 0; i < 8; i++) {
			uint64_t now_ms = clk_now_ms(&clk);
			struct clf_features features;
			struct clf_object object = { .hash = mix64(rng_below(&rng, 100)),
						     .features = &features,
						     .record_bytes = 64u << rng_below(&rng, 10) };

			clf_features_written(&features, now_ms);
			clf_note_missed(clf, object.hash, now_ms);
			if (clf_offer(clf, &object, now_ms))
				written.flash_bytes += object.record_bytes;
			require(isfinite(clf_worth(clf, &object, now_ms)));
		}
		clk_scripted_advance(&clk, 1000000);
		clf_budget(clf, &written);
		threshold = clf_threshold(clf);
		require(isfinite(threshold) && threshold >= -64);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct damaged left;
	struct taking from = { data, data + size };
	unsigned options = (unsigned)take_number(&from, 1), count = 1;
	struct damage_place places[PLACES];
	struct damaged file;
	struct clf *clf, *next;
	bool taken;

	clk_scripted_init(&clk, 1000000000);
	if (!left.bytes) {
		make_folder();
		clf = make_classifier();
		run(clf, 1);
		save(clf);
		clf_destroy(clf);
		left = damaged_read(path, 0);
	}
	file = damaged_copy(left.bytes, left.length, left.length + ROOM);
	places[0] = (struct damage_place){ &file, 0 };
	count += parts_seal(&file, places + 1, PLACES - 1);
	damage(&from, places, count);
	if (options & 1)
		parts_seal(&file, NULL, 0);
	damaged_write(path, &file);
	clf = make_classifier();
	taken = load(clf);
	require(taken || damaged_differs(&file, &left));
	run(clf, 2);
	save(clf);
	next = make_classifier();
	require(load(next));
	clf_destroy(next);
	clf_destroy(clf);
	free(file.bytes);
	return 0;
}
