/* SPDX-License-Identifier: BSD-3-Clause */
/* Clean copies that a fault point makes of what is read from flash. */
#include "tests/unit/server/store/harness.h"

static void a_slow_get_promotes_nothing_that_was_overwritten(void **state)
{
	struct harness *h = *state;
	struct flight slow, f;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "k", "old");
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	assert_false(start(h, 0, &slow, STORE_GET, "k"));
	start_with(h, 1, &f, .op = STORE_SET, .key = "k", .value = "new", .length = 3);
	finish(h, &slow);
	assert_value(h, "k", "new");
	assert_false(start(h, 0, &slow, STORE_GET, "k") && slow.reply.from_flash);
	start(h, 1, &f, STORE_DELETE, "k");
	assert_missing(h, "k");
}

static void a_slow_get_promotes_nothing_that_was_deleted(void **state)
{
	struct harness *h = *state;
	struct flight slow, f;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "k", "old");
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	assert_false(start(h, 0, &slow, STORE_GET, "k"));
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	start(h, 1, &f, STORE_DELETE, "k");
	assert_int_equal(finish(h, &f).result, STORE_DELETED);
	finish(h, &slow);
	assert_int_equal(where(h, "k"), NOWHERE);
	assert_missing(h, "k");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slow_get_promotes_nothing_that_was_overwritten),
		TEST(a_slow_get_promotes_nothing_that_was_deleted),
	};

	return cmocka_run_group_tests_name("store: promotion", tests, NULL, NULL);
}
