/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of policies: what is refused, and what their parts become. */
#include "sim_test.h"

static void assert_refused(const char *text, const char *why)
{
	const struct sim_policy_ops *policy;
	bool reinsert;
	double parameter;
	char reason[256] = "";

	assert_int_equal(sim_policy_parse(text, &policy, &reinsert, &parameter, reason), FS_EINVAL);
	assert_non_null(strstr(reason, why));
}

static void assert_read(const char *text, const char *name, bool reinserts, double number)
{
	const struct sim_policy_ops *policy;
	bool reinsert;
	double parameter;
	char reason[256] = "";

	assert_int_equal(sim_policy_parse(text, &policy, &reinsert, &parameter, reason), FS_OK);
	assert_string_equal(policy->name, name);
	assert_int_equal(reinsert, reinserts);
	assert_true(parameter == number);
}

static void test_refuses_what_is_no_policy(void **state)
{
	(void)state;
	assert_refused("", "no policy");
	assert_refused("lr", "no policy");
	assert_refused("lru2", "no policy");
	assert_refused(":reinsert", "no policy");
	assert_refused("lru:", "no parameter");
	assert_refused("lru:1", "no parameter");
	assert_refused("lru:reinsert", "reinsert");
	assert_refused("read-once:reinsert:1", "no parameter");
	assert_refused("random-p:", "from 0 to 1");
	assert_refused("random-p:1.01", "from 0 to 1");
	assert_refused("random-p:-0.01", "from 0 to 1");
	assert_refused("random-p:nan", "from 0 to 1");
	assert_refused("random-p:0.5x", "from 0 to 1");
	assert_refused("random-p:0.5:reinsert", "from 0 to 1");
	assert_refused("random-p:reinsertion", "from 0 to 1");
}

static void test_reads_the_parts(void **state)
{
	(void)state;
	assert_read("lru", "lru", false, 0);
	assert_read("random-p", "random-p", false, 0.5);
	assert_read("random-p:0", "random-p", false, 0);
	assert_read("random-p:1", "random-p", false, 1);
	assert_read("random-p:reinsert", "random-p", true, 0.5);
	assert_read("random-p:reinsert:0.25", "random-p", true, 0.25);
	assert_read("flashield:reinsert", "flashield", true, 0);
	assert_read("extstore", "extstore", false, 512);
}

static void test_every_policy_has_all_that_the_driver_calls(void **state)
{
	(void)state;
	for (unsigned i = 0; sim_policies[i]; i++) {
		const struct sim_policy_ops *policy = sim_policies[i];

		assert_true(policy->help && policy->create && policy->get && policy->set && policy->remove &&
			    policy->figures && policy->destroy);
		assert_read(policy->name, policy->name, false, policy->parameter_default);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refuses_what_is_no_policy),
		cmocka_unit_test(test_reads_the_parts),
		cmocka_unit_test(test_every_policy_has_all_that_the_driver_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
