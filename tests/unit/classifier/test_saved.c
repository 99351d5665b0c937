/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts and threshold over a stop: the same keys have the same counts, and other options start empty. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "classifier/classifier_internal.h"

#define KEYS 500
#define COUNTS_BYTES (64u << 10)

static char path[120];

static int setup_path(void **state)
{
	char folder[100];

	(void)state;
	snprintf(folder, sizeof(folder), "%.60s/clf-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/saved", folder);
	return 0;
}

static int teardown_path(void **state)
{
	(void)state;
	unlink(path);
	*strrchr(path, '/') = '\0';
	return rmdir(path);
}

static struct clf_config config_of(uint64_t seed)
{
	return (struct clf_config){ .clock = clk_boot(),
				    .seed = seed,
				    .admission = CLF_ADMIT_FREQ,
				    .threshold = 1,
				    .training_window_ms = 10000,
				    .memory_bytes = 256 << 10,
				    .counts_bytes = COUNTS_BYTES,
				    .flash_bytes = 1 << 20,
				    .size_exponent = 1 };
}

static struct clf *make(const struct clf_config *config)
{
	struct clf *clf;

	assert_int_equal(clf_create(&clf, config), FS_OK);
	return clf;
}

static uint64_t key_of(const struct clf *clf, uint64_t n)
{
	return sampler_key(&clf->sampler, mix64(n + 1));
}

static void save(struct clf *clf, uint8_t counts[COUNTS_BYTES])
{
	struct parts_writer *writer;

	assert_int_equal(clf_counts_bytes(clf), COUNTS_BYTES);
	clf_counts_copy(clf, 0, counts, COUNTS_BYTES);
	assert_int_equal(parts_create(&writer, path), FS_OK);
	clf_save(clf, writer);
	assert_int_equal(parts_finish(writer), FS_OK);
}

static bool load(struct clf *clf)
{
	struct parts_reader *reader;
	bool same;

	assert_int_equal(parts_open(&reader, path), FS_OK);
	assert_int_equal(clf_load(clf, reader, &same), FS_OK);
	parts_close(reader);
	return same;
}

static void fill(struct clf *clf)
{
	for (uint64_t n = 0; n < KEYS; n++)
		counts_set(&clf->counts, key_of(clf, n), (double)(1 + n % 7));
	for (unsigned n = 0; n < 100; n++)
		(void)!offers_add(&clf->offers, (float)(n % 20), 1000);
	offers_budget(&clf->offers,
		      &(struct offers_spent){
			      .ms = 1000, .app_bytes = 100000, .written_bytes = 20000, .allowed_bytes = 20000 });
	atomic_store(&clf->residence_ms, 4711);
}

static void counts_and_threshold_go_on(void **state)
{
	struct clf_config config = config_of(1);
	struct clf *clf = make(&config), *next;
	static uint8_t counts[COUNTS_BYTES];
	double before[KEYS];
	float threshold;

	(void)state;
	fill(clf);
	for (uint64_t n = 0; n < KEYS; n++)
		before[n] = counts_get(&clf->counts, key_of(clf, n));
	threshold = clf_threshold(clf);
	assert_true(threshold > -60);
	save(clf, counts);
	clf_destroy(clf);
	config.seed = 2;
	next = make(&config);
	assert_true(load(next));
	assert_true(clf_threshold(next) >= threshold && clf_threshold(next) <= threshold);
	assert_int_equal(atomic_load(&next->residence_ms), 4711);
	counts_set(&next->counts, key_of(next, 3), 64); /* known anew before its old count is merged */
	clf_counts_merge(next, 0, counts, COUNTS_BYTES / 2);
	clf_counts_merge(next, COUNTS_BYTES / 2, counts + COUNTS_BYTES / 2, COUNTS_BYTES / 2);
	for (uint64_t n = 0; n < KEYS; n++) {
		double count = counts_get(&next->counts, key_of(next, n)), expected = n == 3 ? 64 : before[n];

		assert_true(count >= expected && count <= expected);
	}
	clf_destroy(next);
}

static void other_options_start_empty(void **state)
{
	struct clf_config config = config_of(1), other;
	struct clf *clf = make(&config);
	static uint8_t counts[COUNTS_BYTES];

	(void)state;
	fill(clf);
	save(clf, counts);
	clf_destroy(clf);
	for (unsigned n = 0; n < 4; n++) {
		other = config;
		other.seed = 2;
		if (n == 0)
			other.counts_bytes *= 2;
		else if (n == 1)
			other.flash_bytes *= 2;
		else if (n == 2)
			other.size_exponent = 0.5;
		else
			other.admission = CLF_ADMIT_ALL;
		clf = make(&other);
		float threshold = clf_threshold(clf);
		uint64_t seed = clf->sampler.config.seed;
		assert_false(load(clf));
		assert_true(clf_threshold(clf) >= threshold && clf_threshold(clf) <= threshold);
		assert_int_equal(clf->sampler.config.seed, seed);
		clf_destroy(clf);
	}
}

/* As of a version with more or fewer fields, should it have the same number. */
static void another_length_starts_empty(void **state)
{
	const struct clf_config config = config_of(1);
	struct parts_writer *writer;
	struct parts_reader *reader;
	static uint8_t bytes[64 << 10];
	bool same = true;

	(void)state;
	for (uint64_t length = 0; length <= sizeof(bytes); length = length ? length * 8 : 8) {
		struct clf *clf = make(&config);
		float threshold = clf_threshold(clf);

		memset(bytes, 1, sizeof(bytes));
		assert_int_equal(parts_create(&writer, path), FS_OK);
		parts_put(writer, PARTS_CLASSIFIER, 0, bytes, length);
		assert_int_equal(parts_finish(writer), FS_OK);
		assert_int_equal(parts_open(&reader, path), FS_OK);
		assert_int_not_equal(clf_load(clf, reader, &same), FS_OK);
		parts_close(reader);
		assert_false(same);
		assert_true(clf_threshold(clf) >= threshold && clf_threshold(clf) <= threshold);
		clf_destroy(clf);
	}
}

/* A checksum tells that nothing has changed since, and no more: a threshold without end would hold everything back. */
static void amounts_that_no_budget_makes_start_empty(void **state)
{
	const struct clf_config config = config_of(1);
	static uint8_t counts[COUNTS_BYTES];
	const double wrong[] = { NAN, INFINITY, -INFINITY, -1, 1e300 };

	(void)state;
	for (unsigned n = 0; n < 3 * sizeof(wrong) / sizeof(wrong[0]); n++) {
		struct clf *clf = make(&config);
		double amount = wrong[n / 3];

		fill(clf);
		if (n % 3 == 0)
			clf->offers.recent_allowed = amount;
		else if (n % 3 == 1)
			clf->offers.bytes[OFFERS_BINS - 1] = amount;
		else
			clf->offers.correction = amount;
		save(clf, counts);
		clf_destroy(clf);
		clf = make(&config);
		assert_false(load(clf));
		clf_destroy(clf);
	}
}

static void a_full_bucket_keeps_its_own(void **state)
{
	struct counts counts = { 0 }, other = { 0 };
	uint8_t saved[64];

	(void)state;
	assert_int_equal(counts_init(&counts, sizeof(saved)), FS_OK);
	assert_int_equal(counts_init(&other, sizeof(saved)), FS_OK);
	for (uint64_t n = 0; n < 1000; n++) {
		counts_set(&counts, mix64(n), 16);
		counts_set(&other, mix64(n + 5000), 1);
	}
	uint16_t before[COUNTS_ENTRIES];
	memcpy(before, counts.bucket[0], sizeof(before));
	counts_copy(&other, 0, 1, saved);
	counts_merge(&counts, 0, 1, saved);
	assert_memory_equal(counts.bucket[0], before, sizeof(before));
	counts_fini(&counts);
	counts_fini(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(counts_and_threshold_go_on, setup_path, teardown_path),
		cmocka_unit_test_setup_teardown(another_length_starts_empty, setup_path, teardown_path),
		cmocka_unit_test_setup_teardown(amounts_that_no_budget_makes_start_empty, setup_path, teardown_path),
		cmocka_unit_test_setup_teardown(other_options_start_empty, setup_path, teardown_path),
		cmocka_unit_test(a_full_bucket_keeps_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
