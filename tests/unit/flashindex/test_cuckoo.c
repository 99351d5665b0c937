/* SPDX-License-Identifier: BSD-3-Clause */
/* Cuckoo filters: no false negative, rates by theory, warm keys, and both kinds beside each other at equal memory. */
#include "tests/unit/flashindex/support.h"

#include <math.h>

#include "flashindex/filter_internal.h"
#include "flashindex/index_internal.h"

#define KEYS 20000u
#define ASKED 200000u

/* An index of a kind, and the hashes of one segment. */
struct world {
	struct fixture f;
	uint64_t hashes[KEYS];
};

static void world_open(struct world *w, enum fidx_filter kind, unsigned bits)
{
	memset(w, 0, sizeof(*w));
	w->f.config = (struct fidx_config){ .filter = kind, .filter_bits = bits };
	fixture_open(&w->f, 10, 2);
	for (unsigned i = 0; i < KEYS; i++)
		w->hashes[i] = rng_next(&w->f.rng);
}

static struct filter *build(struct world *w, uint64_t n)
{
	size_t length;
	void *unit = fidx_filter_build(w->f.index, w->hashes, n, &length);
	struct filter *filter;

	assert_int_equal(length, fidx_filter_length(w->f.index, n));
	filter = filter_wrap(unit, length);
	assert_non_null(filter);
	for (uint64_t i = 0; i < n; i++)
		assert_true(filter_passes(w->f.index, filter, w->hashes[i]));
	return filter;
}

static char kind_of(const struct filter *filter)
{
	const uint8_t *unit = filter->bytes;

	return unit[filter_unit_length(filter) - 7];
}

/* The seed is fixed, and four standard deviations are allowed. */
static void rates_are_those_of_the_theory(void **state)
{
	static const unsigned bits[] = { 3, 4, 6, 8, 10, 12, 16, 24 };

	(void)state;
	for (unsigned i = 0; i < sizeof(bits) / sizeof(*bits); i++) {
		static struct world w;
		struct filter *filter;
		uint64_t passed = 0;
		double rate, own, theory;
		unsigned width;

		world_open(&w, FIDX_FILTER_CUCKOO, bits[i]);
		filter = build(&w, KEYS);
		assert_int_equal(kind_of(filter), 'C');
		width = filter->bytes[filter_unit_length(filter) - 5];
		for (unsigned n = 0; n < ASKED; n++)
			passed += filter_passes(w.f.index, filter, rng_next(&w.f.rng));
		rate = (double)passed / ASKED;
		own = filter_pass_rate(filter);
		/* Two buckets, each of 4 * load cells that are equal by chance. */
		theory = 1 - pow(1 - 1 / (pow(2, width) - 1),
				 2 * (double)KEYS / ((double)(filter_unit_length(filter) - 8) * 8 / (4 * width + 1)));
		print_message("%2u bits: width %2u, %.5f measured, %.5f from its cells, %.5f in theory\n", bits[i],
			      width, rate, own, theory);
		assert_true(fabs(rate - own) < 4 * sqrt(own / ASKED) + 1e-5);
		/* Keys don't lie evenly, which lowers the rate a little (Jensen's inequality). */
		assert_true(own < theory * 1.0001 && own > theory * 0.96);
		filter_free(filter);
		fixture_close(&w.f);
	}
}

static void with_too_few_bits_it_is_a_bloom_filter(void **state)
{
	static struct world w;

	(void)state;
	for (unsigned bits = 1; bits <= 2; bits++) {
		struct filter *filter;

		world_open(&w, FIDX_FILTER_CUCKOO, bits);
		filter = build(&w, KEYS);
		assert_int_equal(kind_of(filter), 'B');
		filter_free(filter);
		fixture_close(&w.f);
	}
}

/* No key, a few of them, and one that is there more often than there are cells for it. */
static void odd_sets_of_keys_are_built(void **state)
{
	static struct world w;
	struct filter *filter;

	(void)state;
	world_open(&w, FIDX_FILTER_CUCKOO, 8);
	filter = build(&w, 0);
	assert_true(filter_pass_rate(filter) == 0);
	assert_false(filter_passes(w.f.index, filter, 1));
	filter_free(filter);
	for (unsigned n = 1; n < 200; n++)
		filter_free(build(&w, n));
	for (unsigned i = 0; i < 9; i++)
		w.hashes[i] = 77;
	filter = build(&w, 1000);
	assert_int_equal(kind_of(filter), 'B');
	filter_free(filter);
	fixture_close(&w.f);
}

static void malformed_ones_count_as_none(void **state)
{
	static const uint8_t bad[][4] = {
		{ 'F', 'C', 1, 1 }, { 'F', 'C', 1, 15 }, { 'F', 'C', 2, 5 }, { 'F', 'D', 1, 5 }
	};

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		uint8_t *unit = mem_must_zalloc(72);

		memcpy(unit + 64, bad[i], 4);
		assert_null(filter_wrap(unit, 72));
	}
}

static void either_kind_reads_the_other(void **state)
{
	static struct world w, other;
	struct filter *filter;

	(void)state;
	world_open(&w, FIDX_FILTER_CUCKOO, 8);
	world_open(&other, FIDX_FILTER_BLOOM, 8);
	filter = build(&w, KEYS);
	for (unsigned i = 0; i < KEYS; i++)
		assert_true(filter_passes(other.f.index, filter, w.hashes[i]));
	filter_free(filter);
	filter = build(&other, KEYS);
	assert_int_equal(kind_of(filter), 'B');
	for (unsigned i = 0; i < KEYS; i++)
		assert_true(filter_passes(w.f.index, filter, other.hashes[i]));
	filter_free(filter);
	fixture_close(&w.f);
	fixture_close(&other.f);
}

/* Warm keys pass far less often than others do, and the filter's own keys always pass, warm or not. */
static void warm_keys_are_rejected(void **state)
{
	static struct world w;
	struct fidx_key warm[1000];
	struct filter *filter;
	unsigned cold_passed = 0, warm_passed = 0;

	(void)state;
	world_open(&w, FIDX_FILTER_CUCKOO, 8);
	filter = build(&w, KEYS);
	for (unsigned i = 0; i < 1000; i++) {
		warm[i] = key_next(&w.f);
		cold_passed += filter_passes(w.f.index, filter, warm[i].hash);
		fidx_note_warm(w.f.index, &warm[i]);
	}
	filter_free(filter);
	for (unsigned i = 0; i < 1000; i++) {
		struct fidx_key own;

		fidx_key_of(w.f.index, w.hashes[i], &own);
		fidx_note_warm(w.f.index, &own);
	}
	filter = build(&w, KEYS);
	for (unsigned i = 0; i < 1000; i++)
		warm_passed += filter_passes(w.f.index, filter, warm[i].hash);
	print_message("of 1000 warm keys %u pass, and %u passed before they were warm\n", warm_passed, cold_passed);
	assert_true(cold_passed > 30 && warm_passed < cold_passed / 3);
	filter_free(filter);
	fixture_close(&w.f);
}

static void the_oldest_warm_key_of_a_set_is_forgotten(void **state)
{
	static struct world w;
	struct fidx_key keys[WARM_WAYS + 1];
	_Atomic uint64_t *set;

	(void)state;
	world_open(&w, FIDX_FILTER_CUCKOO, 8);
	for (unsigned n = 0; n < WARM_WAYS + 1; n++)
		do
			keys[n] = key_next(&w.f);
		while (keys[n].own % WARM_SETS != 3);
	set = w.f.index->warm->hash[3];
	for (unsigned n = 0; n < WARM_WAYS; n++)
		fidx_note_warm(w.f.index, &keys[n]);
	fidx_note_warm(w.f.index, &keys[0]); /* now the second is the oldest */
	fidx_note_warm(w.f.index, &keys[0]);
	fidx_note_warm(w.f.index, &keys[WARM_WAYS]);
	assert_int_equal(set[0], keys[WARM_WAYS].hash);
	assert_int_equal(set[1], keys[0].hash);
	for (unsigned way = 2; way < WARM_WAYS; way++)
		assert_int_equal(set[way], keys[WARM_WAYS + 1 - way].hash);
	fixture_close(&w.f);
}

/* ---- both kinds over time, at equal memory ------------------------------------------------------ */

#define SEGMENTS 6u
#define SEGMENT_KEYS 20000u
#define TURNS 3u
#define GETS 60000u
#define HOT 1000u /* ranks */

/* Keys of a zipf distribution by rank, alpha 1 (inverse of the harmonic sum, nearly). */
static uint64_t zipf_rank(struct rng *rng)
{
	return (uint64_t)pow((double)SEGMENTS * SEGMENT_KEYS, (double)rng_below(rng, 1u << 30) / (1u << 30));
}

static uint64_t hash_of_rank(uint64_t rank)
{
	return mix64(rank * 0x9e3779b97f4a7c15 + 7);
}

/* Each get asks all filters but that of its own segment; a segment is written anew after each GETS / SEGMENTS. */
static uint64_t hot_false_reads(enum fidx_filter kind, unsigned bits, uint64_t turn_reads[TURNS])
{
	static uint64_t hashes[SEGMENT_KEYS];
	struct filter *filter[SEGMENTS] = { NULL };
	struct fixture f = { .config = { .filter = kind, .filter_bits = bits } };
	uint64_t total = 0;

	fixture_open(&f, 10, 2);
	for (unsigned turn = 0; turn < TURNS; turn++) {
		turn_reads[turn] = 0;
		for (unsigned s = 0; s < SEGMENTS; s++) {
			size_t length;

			for (unsigned i = 0; i < SEGMENT_KEYS; i++)
				hashes[i] = hash_of_rank((uint64_t)i * SEGMENTS + s + 1);
			filter_free(filter[s]);
			filter[s] = filter_wrap(fidx_filter_build(f.index, hashes, SEGMENT_KEYS, &length), length);
			for (unsigned n = 0; n < GETS / SEGMENTS; n++) {
				uint64_t rank = zipf_rank(&f.rng), reads = 0;
				struct fidx_key key;

				fidx_key_of(f.index, hash_of_rank(rank), &key);
				for (unsigned o = 0; o < SEGMENTS; o++)
					if (filter[o] && o != (rank - 1) % SEGMENTS)
						reads += filter_passes(f.index, filter[o], key.hash);
				fidx_note_warm(f.index, &key);
				turn_reads[turn] += rank <= HOT ? reads : 0;
			}
		}
		total += turn_reads[turn];
	}
	for (unsigned s = 0; s < SEGMENTS; s++)
		filter_free(filter[s]);
	fixture_close(&f);
	return total;
}

static void hot_keys_cost_fewer_false_reads(void **state)
{
	static const unsigned bits[] = { 8, 12 };

	(void)state;
	for (unsigned i = 0; i < sizeof(bits) / sizeof(*bits); i++) {
		uint64_t bloom[TURNS], cuckoo[TURNS];

		hot_false_reads(FIDX_FILTER_BLOOM, bits[i], bloom);
		hot_false_reads(FIDX_FILTER_CUCKOO, bits[i], cuckoo);
		for (unsigned turn = 0; turn < TURNS; turn++)
			print_message(
				"%2u bits, turn %u of the flash: false reads of the 1000 hottest keys, Bloom %lu, cuckoo %lu\n",
				bits[i], turn + 1, (unsigned long)bloom[turn], (unsigned long)cuckoo[turn]);
		assert_true(cuckoo[TURNS - 1] < bloom[TURNS - 1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rates_are_those_of_the_theory),
		cmocka_unit_test(with_too_few_bits_it_is_a_bloom_filter),
		cmocka_unit_test(odd_sets_of_keys_are_built),
		cmocka_unit_test(malformed_ones_count_as_none),
		cmocka_unit_test(either_kind_reads_the_other),
		cmocka_unit_test(warm_keys_are_rejected),
		cmocka_unit_test(the_oldest_warm_key_of_a_set_is_forgotten),
		cmocka_unit_test(hot_keys_cost_fewer_false_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
