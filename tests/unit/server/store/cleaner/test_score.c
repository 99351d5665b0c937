/* SPDX-License-Identifier: BSD-3-Clause */
/* Which objects in DRAM become candidates for flash. */
#include "tests/unit/server/store/harness.h"

static void an_object_over_a_quarter_of_a_segment_stays_in_dram(void **state)
{
	struct harness *h = *state;
	static char value[KIB(17)];

	harness_open(h);
	memset(value, 'v', sizeof(value));
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "big", .value = value, .length = sizeof(value)).result,
			 STORE_STORED);
	for (int i = 0; i < 8; i++)
		assert_true(write_one(h));
	assert_int_equal(where(h, "big"), DRAM);
	assert_int_equal(get(h, "big").value_hash, hash64(value, sizeof(value), 0));
}

static void a_clean_copy_is_no_candidate_however_often_it_is_read(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "k", "val");
	uint32_t segment = segment_of(h, "k");
	make_clean_copy(h, "k");
	for (int i = 0; i < 9; i++)
		assert_false(get(h, "k").from_flash);
	assert_true(write_one(h));
	assert_int_equal(where(h, "k"), CLEAN_COPY);
	assert_int_equal(segment_of(h, "k"), segment);
}

static void tune(struct harness *h, uint64_t limit, enum clf_admission admission)
{
	store_set_tuning(h->store, &(struct store_tuning){ .hot_fraction = 0.5,
							   .flash_write_limit = limit,
							   .read_timeout_ms = 1000,
							   .admission = admission });
}

static void another_rule_judges_what_comes(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	uint64_t version = clf_version(h->store->classifier);
	tune(h, 0, CLF_ADMIT_READ_ONCE);
	assert_true(clf_version(h->store->classifier) > version);
	set(h, "never read", "x");
	assert_int_equal(candidate_total(h->store), 0);
	tune(h, 0, CLF_ADMIT_ALL);
	set(h, "not read either", "x");
	assert_true(candidate_total(h->store) > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_object_over_a_quarter_of_a_segment_stays_in_dram),
		TEST(a_clean_copy_is_no_candidate_however_often_it_is_read),
		TEST(another_rule_judges_what_comes),
	};

	return cmocka_run_group_tests_name("store: scores", tests, NULL, NULL);
}
