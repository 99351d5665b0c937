/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An index at a load of 0.95 through each of its operations. What they find is judged: every key has its slot, others hardly
 * ever have one of theirs, and nothing is left at the end. Nanoseconds per operation are printed, and judged by nobody. The
 * default is small, so that the whole lies in the cache; FLASHINDEX_BUCKETS=262144 gives a table of 16 MiB.
 */
#include "tests/unit/flashindex/support.h"

#include <inttypes.h>
#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void report(const char *what, uint64_t since, uint64_t n)
{
	print_message("%-34s %6.1f ns\n", what, (double)(now_ns() - since) / (double)n);
}

static void open_filtered(struct fixture *f, const uint64_t *hashes, uint64_t n)
{
	size_t length;
	uint64_t since = now_ns();
	void *unit = fidx_filter_build(f->index, hashes, n, &length);

	if (unit)
		report("filter build", since, n);
	fidx_segment_open(f->index, 0, 0, 5, 400, unit, length);
}

static void bench(uint64_t buckets, unsigned filter_bits, unsigned tag_bits)
{
	struct fixture f = { .config = { .filter_bits = filter_bits, .tag_bits = tag_bits } };
	uint64_t n = buckets * 16 * 95 / 100, since, found = 0, visited, strangers;
	uint64_t *hashes = mem_must_zalloc(n * sizeof(*hashes));
	struct fidx_match out[FIDX_MAX_MATCHES];
	struct fidx_key key;

	print_message("%" PRIu64 " slots (%.1f MiB) at 0.95, filter bits %u, tag bits %u\n", buckets * 16,
		      (double)buckets / 16384, filter_bits, tag_bits);
	fixture_open(&f, buckets, 8191);
	for (uint64_t i = 0; i < n; i++)
		hashes[i] = rng_next(&f.rng);
	open_filtered(&f, hashes, n);
#define EACH(what, hash, call) \
	since = now_ns(); \
	for (uint64_t i = 0; i < n; i++) { \
		fidx_key_of(f.index, (hash), &key); \
		call; \
	} \
	report(what, since, n)
	EACH("insert", hashes[i], (void)!fidx_insert(f.index, &key, 0, (unsigned)i % 16, 0, FIDX_DROP_COLDEST));
	assert_int_equal(status_of(f.index).used, n);
	EACH("lookup, hit", hashes[i], found += fidx_lookup(f.index, &key, out));
	assert_in_range(found, n, n + n / 50); /* 30 of 2048 tags are other slots' in a pair of full buckets */
	found = 0;
	EACH("lookup, miss", mix64(i), found += fidx_lookup(f.index, &key, out));
	strangers = filter_bits ? n / 100 : n / 50;
	assert_in_range(found, 1, strangers);
	EACH("touch", hashes[i], out[0] = match_of(0, 5, (unsigned)i % 16); fidx_touch(f.index, &key, &out[0]));
	assert_int_equal(status_of(f.index).ghosts, 0);
	found = 0;
	EACH("clear, nothing there", mix64(i), found += fidx_clear(f.index, &key));
	assert_in_range(found, 1, strangers);
	assert_int_equal(status_of(f.index).used, n - found);
	since = now_ns();
	assert_int_equal(fidx_hand(f.index, n, 1, &visited), 1);
	report("hand, per live slot", since, visited);
	assert_int_equal(visited, n - found);
	EACH("clear", hashes[i], found += fidx_clear(f.index, &key));
	assert_int_equal(found, n);
	assert_counts(f.index, 0, 0, 0, 0);
	since = now_ns();
	assert_int_equal(fidx_sweep(f.index, 1), 0);
	report("sweep, per bucket", since, buckets);
	fixture_close(&f);
	mem_free(hashes);
}

static void test_speed(void **state)
{
	const char *given = getenv("FLASHINDEX_BUCKETS");
	uint64_t buckets = given ? strtoull(given, NULL, 0) : 2048;

	(void)state;
	bench(buckets, 0, 0);
	bench(buckets, 2, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_speed) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
