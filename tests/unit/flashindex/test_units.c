/* SPDX-License-Identifier: BSD-3-Clause */
/* Filter units: as many bits together as one filter, malformed ones, no false negative while they come and go. */
#include "tests/unit/flashindex/support.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

#include "flashindex/index_internal.h"
#include "flashindex/units.h"

#define KEYS 2000u
#define UNITS 4u
#define SEQUENCE 5u

struct group {
	struct fixture f;
	uint64_t hashes[KEYS];
	uint8_t *bytes; /* of all units, as in a footer */
	size_t length, each;
};

static uint8_t *copy_of(const uint8_t *bytes, size_t length)
{
	uint8_t *copy = mem_must_zalloc(length);

	memcpy(copy, bytes, length);
	return copy;
}

static void group_build(struct group *g, uint64_t sequence)
{
	mem_free(g->bytes);
	g->length = fidx_filter_length(g->f.index, KEYS);
	g->each = g->length / UNITS;
	g->bytes = mem_must_zalloc(g->length);
	for (unsigned u = 0; u < UNITS; u++)
		fidx_unit_build(g->f.index, sequence, u, g->hashes, KEYS, g->bytes, g->length);
}

static void group_open(struct group *g, unsigned bits)
{
	*g = (struct group){ .f = { .config = { .filter_bits = bits, .filter_units = UNITS } } };
	fixture_open(&g->f, 200, 4);
	for (unsigned i = 0; i < KEYS; i++)
		g->hashes[i] = rng_next(&g->f.rng);
	group_build(g, SEQUENCE);
	fidx_segment_open(g->f.index, 0, 0, SEQUENCE, 100, copy_of(g->bytes, g->length), g->length);
}

static void group_close(struct group *g)
{
	mem_free(g->bytes);
	fixture_close(&g->f);
}

static int add(struct group *g, unsigned unit)
{
	return fidx_unit_add(g->f.index, 0, copy_of(g->bytes + unit * g->each, g->each), g->each);
}

static unsigned resident(struct group *g)
{
	struct fidx_units units;

	return fidx_units_of(g->f.index, 0, &units) ? units.resident : 0;
}

/* The share of other keys that the segment's filter passes; all of its own must. */
static double pass_rate(struct group *g)
{
	unsigned passed = 0;

	for (unsigned i = 0; i < KEYS; i++)
		assert_true(fidx_filter_passes(g->f.index, 0, g->hashes[i]));
	for (unsigned i = 0; i < 50000; i++)
		passed += fidx_filter_passes(g->f.index, 0, rng_next(&g->f.rng));
	return passed / 50000.0;
}

/* "Separability": k units of b bits pass as many as one filter of k * b. */
static void each_unit_rejects_by_itself(void **state)
{
	struct group g;
	double one;

	(void)state;
	group_open(&g, 6); /* units of 3 bits */
	assert_int_equal(resident(&g), 2);
	fidx_unit_drop(g.f.index, 0);
	one = pass_rate(&g);
	assert_true(fabs(one - 0.24) < 0.03);
	for (unsigned u = 1; u < UNITS; u++) {
		assert_int_equal(add(&g, u), FS_OK);
		assert_int_equal(resident(&g), u + 1);
		assert_true(fabs(pass_rate(&g) - pow(one, u + 1)) < 0.15 * pow(one, u + 1) + 0.002);
	}
	while (resident(&g))
		fidx_unit_drop(g.f.index, 0);
	assert_true(pass_rate(&g) == 1);
	assert_int_equal(status_of(g.f.index).filter_bytes, 0);
	assert_int_equal(add(&g, 0), FS_OK);
	group_close(&g);
}

static void only_the_next_unit_of_this_life_is_taken(void **state)
{
	struct group g;
	uint8_t *bad;

	(void)state;
	group_open(&g, 4);
	assert_int_equal(resident(&g), 2);
	assert_int_equal(add(&g, 0), FS_ECORRUPT);
	assert_int_equal(add(&g, 3), FS_ECORRUPT);
	for (size_t at = 0; at < g.each; at += at < g.each - 17 ? 61 : 1) {
		/* Bits of the blocks, the sum, the trailer; the last two bytes are zeros, which the sum covers too. */
		bad = copy_of(g.bytes + 2 * g.each, g.each);
		bad[at] ^= 0x10;
		assert_int_equal(fidx_unit_add(g.f.index, 0, bad, g.each), FS_ECORRUPT);
	}
	assert_int_equal(fidx_unit_add(g.f.index, 0, NULL, 0), FS_ECORRUPT);
	assert_int_equal(fidx_unit_add(g.f.index, 0, copy_of(g.bytes, 8), 8), FS_ECORRUPT);
	bad = copy_of(g.bytes + 2 * g.each, g.each);
	assert_int_equal(fidx_unit_add(g.f.index, 0, bad, g.each - 64), FS_ECORRUPT);
	group_build(&g, SEQUENCE + 1); /* whole, but of another life of the segment */
	assert_int_equal(add(&g, 2), FS_ECORRUPT);
	group_build(&g, SEQUENCE);
	assert_int_equal(resident(&g), 2);
	assert_int_equal(add(&g, 2), FS_OK);
	assert_true(pass_rate(&g) < 0.1);
	group_close(&g);
}

static void a_damaged_group_is_used_as_far_as_it_is_whole(void **state)
{
	struct group g;

	(void)state;
	group_open(&g, 4);
	g.bytes[g.each + 3] ^= 1; /* the second unit */
	fidx_segment_open(g.f.index, 1, 0, SEQUENCE, 100, copy_of(g.bytes, g.length), g.length);
	g.bytes[3] ^= 1;
	fidx_segment_open(g.f.index, 2, 0, SEQUENCE, 100, copy_of(g.bytes, g.length), g.length);
	fidx_segment_open(g.f.index, 3, 0, SEQUENCE, 100, copy_of(g.bytes, g.length - 8), g.length - 8);
	for (unsigned i = 0; i < KEYS; i++)
		for (uint32_t s = 1; s < 4; s++)
			assert_true(fidx_filter_passes(g.f.index, s, g.hashes[i]));
	assert_true(fidx_lacks_filter(g.f.index, 2) && fidx_lacks_filter(g.f.index, 3));
	assert_false(fidx_lacks_filter(g.f.index, 1));
	group_close(&g);
}

/* An index without the option reads units; one with it reads whole filters. */
static void both_kinds_are_read_whatever_the_option(void **state)
{
	struct fixture plain = { .config = { .filter_bits = 4 } };
	struct fidx_units units;
	struct group g;
	size_t length;
	void *whole;

	(void)state;
	group_open(&g, 4);
	fixture_open(&plain, 200, 2);
	fidx_segment_open(plain.index, 0, 0, SEQUENCE, 100, copy_of(g.bytes, g.length), g.length);
	assert_true(fidx_units_of(plain.index, 0, &units));
	assert_int_equal(units.resident, 2);
	for (unsigned i = 0; i < KEYS; i++)
		assert_true(fidx_filter_passes(plain.index, 0, g.hashes[i]));
	whole = fidx_filter_build(plain.index, g.hashes, KEYS, &length);
	fidx_segment_open(g.f.index, 1, 0, SEQUENCE + 1, 100, whole, length);
	assert_false(fidx_units_of(g.f.index, 1, &units));
	for (unsigned i = 0; i < KEYS; i++)
		assert_true(fidx_filter_passes(g.f.index, 1, g.hashes[i]));
	fixture_close(&plain);
	group_close(&g);
}

static void what_was_asked_in_vain_is_counted(void **state)
{
	struct group g;
	struct fidx_key key;
	unsigned rejected = 0;

	(void)state;
	group_open(&g, 8);
	for (unsigned i = 0; i < 1000; i++)
		rejected += !fidx_filter_passes(g.f.index, 0, rng_next(&g.f.rng));
	assert_int_equal(fidx_units_asked(g.f.index, 0), rejected);
	assert_int_equal(fidx_units_asked(g.f.index, 0), 0);
	key = key_next(&g.f);
	fidx_learn(g.f.index, &(struct fidx_match){ .segment = 0, .sequence = SEQUENCE }, key.hash);
	assert_int_equal(fidx_units_asked(g.f.index, 0), 1);
	group_close(&g);
}

/* Over a clean end: the units that were in memory are there again. */
static void resident_units_outlive_a_clean_end(void **state)
{
	const uint64_t sequences[4] = { SEQUENCE };
	struct parts_writer *writer;
	struct parts_reader *reader;
	struct fixture other;
	struct fidx_units units;
	struct group g;
	char path[200];

	(void)state;
	snprintf(path, sizeof(path), "%.100s/fidx-units-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
		 (int)getpid());
	group_open(&g, 4);
	assert_int_equal(add(&g, 2), FS_OK);
	assert_int_equal(parts_create(&writer, path), FS_OK);
	fidx_save(g.f.index, writer);
	assert_int_equal(parts_finish(writer), FS_OK);
	other = (struct fixture){ .config = g.f.config };
	fixture_open(&other, 200, 4);
	assert_int_equal(parts_open(&reader, path), FS_OK);
	assert_int_equal(fidx_load(other.index, sequences, 100000, reader), FS_OK);
	parts_close(reader);
	unlink(path);
	assert_true(fidx_units_of(other.index, 0, &units));
	assert_int_equal(units.resident, 3);
	assert_int_equal(units.stored, UNITS);
	assert_int_equal(status_of(other.index).filter_bytes, status_of(g.f.index).filter_bytes);
	for (unsigned i = 0; i < KEYS; i++)
		assert_true(fidx_filter_passes(other.index, 0, g.hashes[i]));
	assert_int_equal(fidx_unit_add(other.index, 0, copy_of(g.bytes + 3 * g.each, g.each), g.each), FS_OK);
	fixture_close(&other);
	group_close(&g);
}

/* Threads look all keys up while units come and go, and the segment is closed and opened again. */
struct racing {
	struct group *g;
	const struct fidx_key *keys;
	_Atomic bool over;
	_Atomic uint64_t rounds, wrong;
};

static void *look_up(void *context)
{
	struct racing *racing = context;
	struct fidx_match out[FIDX_MAX_MATCHES];

	while (!atomic_load(&racing->over)) {
		for (unsigned i = 0; i < 200; i++) {
			/* Slots of segment 1 are always there, so each key must be found. */
			bool found = false;
			unsigned n = fidx_lookup(racing->g->f.index, &racing->keys[i], out);

			for (unsigned m = 0; m < n; m++)
				found |= out[m].segment == 1;
			atomic_fetch_add(&racing->wrong, !found);
		}
		atomic_fetch_add(&racing->rounds, 1);
	}
	return NULL;
}

static void no_key_is_denied_while_units_come_and_go(void **state)
{
	static struct fidx_key keys[200];
	struct racing racing = { .keys = keys };
	struct group g;
	pthread_t thread[2];
	uint8_t *other;

	(void)state;
	group_open(&g, 4);
	other = copy_of(g.bytes, g.length); /* segment 1 has the same sequence, and the same keys */
	fidx_segment_open(g.f.index, 1, 0, SEQUENCE, 100, copy_of(other, g.length), g.length);
	for (unsigned i = 0; i < 200; i++) {
		fidx_key_of(g.f.index, g.hashes[i], &keys[i]);
		assert_true(fidx_insert(g.f.index, &keys[i], 1, i % 16, 0, FIDX_DROP_NONE));
	}
	racing.g = &g;
	for (unsigned t = 0; t < 2; t++)
		assert_int_equal(pthread_create(&thread[t], NULL, look_up, &racing), 0);
	for (unsigned n = 0; n < 300 || atomic_load(&racing.rounds) < 20; n++) {
		unsigned u = 0;

		while (!fidx_lacks_filter(g.f.index, 1))
			fidx_unit_drop(g.f.index, 1);
		for (; u < 1 + n % UNITS; u++)
			assert_int_equal(fidx_unit_add(g.f.index, 1, copy_of(other + u * g.each, g.each), g.each),
					 FS_OK);
		/* The reclaim of another segment, in the middle of its units. */
		fidx_segment_close(g.f.index, 0);
		fidx_segment_open(g.f.index, 0, 0, SEQUENCE + n + 1, 100, NULL, 0);
	}
	atomic_store(&racing.over, true);
	for (unsigned t = 0; t < 2; t++)
		pthread_join(thread[t], NULL);
	assert_int_equal(atomic_load(&racing.wrong), 0);
	mem_free(other);
	group_close(&g);
}

/* Clears slots again and again that the cleaner inserts. */
static void *clear_slots(void *context)
{
	struct racing *racing = context;

	while (!atomic_load(&racing->over))
		for (unsigned i = 0; i < 200; i++)
			(void)fidx_clear(racing->g->f.index, &racing->keys[i]);
	return NULL;
}

static void the_share_that_passes_is_right_when_slots_and_units_change_together(void **state)
{
	static struct fidx_key keys[200];
	struct racing racing = { .keys = keys };
	struct group g;
	pthread_t thread;

	(void)state;
	group_open(&g, 4);
	for (unsigned i = 0; i < 200; i++)
		fidx_key_of(g.f.index, g.hashes[i], &keys[i]);
	racing.g = &g;
	assert_int_equal(pthread_create(&thread, NULL, clear_slots, &racing), 0);
	for (unsigned n = 0; n < 3000; n++) {
		(void)!fidx_insert(g.f.index, &keys[n % 200], 0, n % 16, 0, FIDX_DROP_NONE);
		while (!fidx_lacks_filter(g.f.index, 0))
			fidx_unit_drop(g.f.index, 0);
		for (unsigned u = 0; u < 1 + n % UNITS; u++)
			assert_int_equal(add(&g, u), FS_OK);
	}
	atomic_store(&racing.over, true);
	pthread_join(thread, NULL);
	(void)!fidx_insert(g.f.index, &keys[0], 0, 0, 0, FIDX_DROP_NONE);
	assert_true(fabs(fidx_filter_false_positive(g.f.index) - pass_rate(&g)) < 0.05);
	while (!fidx_lacks_filter(g.f.index, 0))
		fidx_unit_drop(g.f.index, 0);
	assert_true(fidx_filter_false_positive(g.f.index) == 1);
	group_close(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_unit_rejects_by_itself),
		cmocka_unit_test(only_the_next_unit_of_this_life_is_taken),
		cmocka_unit_test(a_damaged_group_is_used_as_far_as_it_is_whole),
		cmocka_unit_test(both_kinds_are_read_whatever_the_option),
		cmocka_unit_test(what_was_asked_in_vain_is_counted),
		cmocka_unit_test(resident_units_outlive_a_clean_end),
		cmocka_unit_test(no_key_is_denied_while_units_come_and_go),
		cmocka_unit_test(the_share_that_passes_is_right_when_slots_and_units_change_together),
	};

	print_message("seed %llu\n", (unsigned long long)test_seed());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
