/* SPDX-License-Identifier: BSD-3-Clause */
/* When the cleaner writes, and what it does at each step beside that. */
#include "tests/unit/server/store/harness.h"

/* ---- the write limit ------------------------------------------------------------------------- */

static void tune(struct harness *h, uint64_t limit, enum clf_admission admission)
{
	store_set_tuning(h->store, &(struct store_tuning){ .hot_fraction = 0.5,
							   .flash_write_limit = limit,
							   .read_timeout_ms = 1000,
							   .admission = admission });
}

static void a_limit_counts_from_when_it_is_set(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	for (int i = 0; i < 20; i++)
		assert_true(write_one(h)); /* without a limit: nothing is to be paid for later */
	store_clean_step(h->store);
	tune(h, h->store->segment_bytes, CLF_ADMIT_ALL);
	seconds_pass(h, 2);
	store_clean_step(h->store);
	assert_true(h->store->cleaner->write_tokens > 0);
}

static void a_lower_limit_cuts_what_was_saved_up(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	tune(h, MIB(100), CLF_ADMIT_ALL);
	seconds_pass(h, 100);
	store_clean_step(h->store);
	assert_true(h->store->cleaner->write_tokens > (int64_t)MIB(500));
	tune(h, KIB(1), CLF_ADMIT_ALL);
	store_clean_step(h->store);
	assert_true(h->store->cleaner->write_tokens <= (int64_t)h->store->segment_bytes);
}

/* ---- large segments in little memory --------------------------------------------------------- */

static char filler[KIB(4)];

static void store_sized(struct harness *h, const char *name, unsigned n, uint32_t length)
{
	char key[40];

	snprintf(key, sizeof(key), "%s:%u", name, n);
	assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = filler, .length = length).result,
			 STORE_STORED);
}

static void segments_of_a_quarter_of_memory_are_written(void **state)
{
	struct harness *h = *state;
	uint64_t written = ctr_sum(CTR_segments_written);

	h->config.memory_bytes = MIB(4);
	h->config.segment_bytes = MIB(1);
	h->config.flash_bytes = MIB(16);
	harness_open(h);
	for (unsigned n = 0; n < 12000; n++) {
		store_sized(h, "object", n, 1000);
		clk_scripted_advance(&h->clk, 1000);
		if (n % 50 == 0)
			store_clean_step(h->store);
	}
	assert_true(ctr_sum(CTR_segments_written) >= written + 4);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static void ids_are_reserved_before_they_are_given(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	uint64_t reserved = atomic_load(&h->store->cas_reserved);
	atomic_store(&h->store->cas_next, reserved - 1000);
	store_clean_step(h->store);
	assert_true(atomic_load(&h->store->cas_reserved) > reserved);
	assert_true(set(h, "key", "value").cas >= reserved - 1000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_limit_counts_from_when_it_is_set),
		TEST(a_lower_limit_cuts_what_was_saved_up),
		TEST(segments_of_a_quarter_of_memory_are_written),
		TEST(ids_are_reserved_before_they_are_given),
	};

	return cmocka_run_group_tests_name("store: the cleaner", tests, NULL, NULL);
}
