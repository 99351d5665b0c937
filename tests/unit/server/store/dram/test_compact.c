/* SPDX-License-Identifier: BSD-3-Clause */
/* Small objects are moved together, so that the memory between them is free. */
#include "base/resident.h"
#include "tests/unit/server/store/harness.h"

static char filler[KIB(4)];

static void store_sized(struct harness *h, const char *name, unsigned n, uint32_t length)
{
	char key[40];

	snprintf(key, sizeof(key), "%s:%u", name, n);
	assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = filler, .length = length).result,
			 STORE_STORED);
}

static void objects_are_moved_together_when_most_of_a_size_have_gone(void **state)
{
	struct harness *h = *state;
	bool sparse[MEM_CLASSES];
	uint64_t compactions = ctr_sum(CTR_memory_compactions), holes;
	char key[40];

	if (!resident_is_exact())
		skip();
	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(8);
	harness_open(h);
	for (unsigned n = 0; n < 6000; n++)
		store_sized(h, "object", n, 1000);
	for (unsigned n = 0; n < 6000; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		if (n % 8)
			run(h, STORE_DELETE, key);
	}
	holes = mem_holes(sparse);
	assert_true(holes > MIB(3));
	assert_true(sparse[mem_class(1000 + sizeof(struct item))]);
	for (unsigned i = 0; i < 100 && ctr_sum(CTR_memory_compactions) == compactions; i++) {
		keeper_step(h->store);
		clk_scripted_advance(&h->clk, 300000);
	}
	assert_true(ctr_sum(CTR_memory_compactions) > compactions);
	assert_in_range(mem_holes(sparse), 0, holes / 3);
	for (unsigned n = 0; n < 6000; n += 8) {
		snprintf(key, sizeof(key), "object:%u", n);
		assert_int_equal(get(h, key).value_hash, hash64(filler, 1000, 0));
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(objects_are_moved_together_when_most_of_a_size_have_gone),
	};

	return cmocka_run_group_tests_name("store: compaction", tests, NULL, NULL);
}
