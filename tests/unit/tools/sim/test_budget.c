/* SPDX-License-Identifier: BSD-3-Clause */
/* The budget: what is refused, and that the best offers are taken until it is spent. */
#include "sim_test.h"
#include "tools/sim/budget.h"

static void test_no_budget_takes_everything(void **state)
{
	struct budget budget;

	(void)state;
	budget_init(&budget, 0, 100);
	budget_earn(&budget, 1000);
	assert_true(budget_admit(&budget, 0, 1));
	assert_true(budget_admit(&budget, 1e-300, 1000000));
}

static void test_a_score_of_nothing_is_refused(void **state)
{
	struct budget budget;

	(void)state;
	budget_init(&budget, 100, 100);
	budget_earn(&budget, 1000);
	assert_false(budget_admit(&budget, 0, 1));
	assert_false(budget_admit(&budget, -1, 1));
	assert_true(budget_admit(&budget, 1e-300, 1));
	assert_true(budget_admit(&budget, 1e300, 1));
}

static void test_debt_asks_for_better_offers_at_once(void **state)
{
	struct budget budget;

	(void)state;
	budget_init(&budget, 1, 100);
	assert_true(budget_admit(&budget, 1, 10000)); /* a hundred windows of debt */
	assert_false(budget_admit(&budget, 1, 1));
	assert_false(budget_admit(&budget, 1000000, 1));
}

static void test_a_write_far_larger_than_a_window_ends_one(void **state)
{
	struct budget budget;

	(void)state;
	budget_init(&budget, 0.1, 1);
	budget_earn(&budget, UINT64_MAX / 2); /* as many windows would take for ever */
	assert_true(budget_admit(&budget, 1, 1));
}

/* Each round offers one byte at each of ten scores, of which the budget pays for `paid` of ten. */
static double share_taken(double paid, bool best)
{
	const unsigned rounds = 20000;
	struct budget budget;
	unsigned taken = 0, of_best = 0;

	budget_init(&budget, paid, 1000);
	for (unsigned i = 0; i < rounds; i++) {
		budget_earn(&budget, 10);
		for (unsigned score = 0; score < 10; score++) {
			bool take = budget_admit(&budget, 1u << score, 1);

			taken += take;
			of_best += take && score >= 5;
		}
	}
	return best ? of_best / (double)(taken + !taken) : taken / (10.0 * rounds);
}

static void test_the_share_is_met(void **state)
{
	const double shares[] = { 0.05, 0.1, 0.33, 0.5, 0.9 };

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		double taken = share_taken(shares[i], false);

		assert_true(taken > shares[i] * 0.97 && taken < shares[i] * 1.03);
	}
}

static void test_the_best_are_taken(void **state)
{
	(void)state;
	assert_true(share_taken(0.33, true) > 0.98);
}

static void test_an_offer_below_the_budget_is_taken_whole(void **state)
{
	(void)state;
	assert_true(share_taken(2, false) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_budget_takes_everything),
		cmocka_unit_test(test_a_score_of_nothing_is_refused),
		cmocka_unit_test(test_debt_asks_for_better_offers_at_once),
		cmocka_unit_test(test_a_write_far_larger_than_a_window_ends_one),
		cmocka_unit_test(test_the_share_is_met),
		cmocka_unit_test(test_the_best_are_taken),
		cmocka_unit_test(test_an_offer_below_the_budget_is_taken_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
