/* SPDX-License-Identifier: BSD-3-Clause */
/* The prefilter: it passes each key that was added, some others, and after it was made anew only those of the lists. */
#include "tests/unit/flashindex/frugal/world.h"

#define ADDED 1000u

static void it_passes_what_was_added_and_some_others(void **state)
{
	struct world w = { .config = { .objects = ADDED, .partitions = 8 } };
	unsigned others = 0, probes = 0;

	(void)state;
	world_open(&w);
	/* 4 bits a key, in whole blocks */
	assert_int_equal(w.frugal->prefilter->blocks, 1);
	assert_int_equal(prefilter_blocks(w.frugal, 10 * ADDED), 10);
	assert_int_equal(prefilter_blocks(w.frugal, 0), 1);
	for (unsigned i = 0; i < ADDED; i++)
		prefilter_add(w.frugal->prefilter, i % 8, (uint16_t)(i * 60));
	for (unsigned i = 0; i < ADDED; i++)
		assert_true(prefilter_passes(w.frugal->prefilter, i % 8, (uint16_t)(i * 60)));
	for (uint32_t p = 0; p < 8; p++)
		for (unsigned f = 7; f < 60000; f += 60, probes++)
			others += prefilter_passes(w.frugal->prefilter, p, (uint16_t)f);
	/* 125 keys in 512 bits, three bits each: (1 - e^(-3 * 125 / 512))^3 = 0.14 */
	assert_true(others > probes / 12 && others < probes / 5);
	world_close(&w);
}

static void what_is_in_no_list_any_more_goes(void **state)
{
	struct world w = { .config = { .objects = 8000, .partitions = 3 } };
	uint16_t kept[200];
	unsigned gone = 0;

	(void)state;
	world_open(&w);
	for (uint32_t k = 0; k < 300; k++)
		world_set(&w, k);
	assert_true(world_write(&w, 1, NULL));
	for (uint32_t p = 0; p < 3; p++)
		for (unsigned f = 0; f < 2000; f++)
			prefilter_add(w.frugal->prefilter, p, (uint16_t)(f * 31));
	for (unsigned i = 0; i < 200; i++)
		kept[i] = (uint16_t)(i * 31);
	for (uint32_t p = 0; p < 3; p++)
		prefilter_renew(w.frugal, p, kept, 200, 0);
	for (uint32_t p = 0; p < 3; p++) {
		for (unsigned i = 0; i < 200; i++)
			assert_true(prefilter_passes(w.frugal->prefilter, p, kept[i]));
		for (unsigned f = 200; f < 2000; f++)
			gone += !prefilter_passes(w.frugal->prefilter, p, (uint16_t)(f * 31));
	}
	assert_true(gone > 3 * 1800 / 2);
	for (uint32_t k = 0; k < 300; k++) /* of the bundle */
		assert_true(
			prefilter_passes(w.frugal->prefilter, w.key[k].key.partition, fingerprint_of(w.key[k].key.x)));
	/* Without the bundle, which a chain would cover. */
	for (uint32_t p = 0; p < 3; p++)
		prefilter_renew(w.frugal, p, NULL, 0, w.frugal->serial);
	for (uint32_t k = 0; k < 300; k++)
		assert_false(
			prefilter_passes(w.frugal->prefilter, w.key[k].key.partition, fingerprint_of(w.key[k].key.x)));
	world_close(&w);
}

/* Without memory for a copy of the words, bits are added where they lie. */
static void making_anew_never_holds_a_key_back(void **state)
{
	struct world w = { .config = { .objects = 1 << 16, .partitions = 2 } };
	const uint16_t values[] = { 1, 2, 3 };

	(void)state;
	world_open(&w);
	assert_true(w.frugal->prefilter->blocks > 16);
	fault_arm(FAULT_memory_alloc, FAULT_ALWAYS, 0);
	prefilter_renew(w.frugal, 1, values, 3, 0);
	fault_disarm_all();
	for (unsigned i = 0; i < 3; i++)
		assert_true(prefilter_passes(w.frugal->prefilter, 1, values[i]));
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_passes_what_was_added_and_some_others),
		cmocka_unit_test(what_is_in_no_list_any_more_goes),
		cmocka_unit_test(making_anew_never_holds_a_key_back),
	};

	return cmocka_run_group_tests_name("prefilter", tests, NULL, NULL);
}
