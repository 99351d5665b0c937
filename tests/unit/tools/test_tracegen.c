/* SPDX-License-Identifier: BSD-3-Clause */
/* An application's requests: the same for a seed, in order, and with the published counts. */
#include "tests/unit/tools/tools_test.h"

#include <math.h>

#include "tools/tracegen/fit.h"
#include "tools/tracegen/tally.h"

#define SPAN_S 604800.0

static struct plan_shares shares;

static struct plan plan_of(uint32_t app, double scale)
{
	struct plan plan;

	plan_make(&plan, &app_table[app_find(app)], &shares, scale, SPAN_S);
	return plan;
}

static void an_unknown_application_is_not_found(void **state)
{
	(void)state;
	assert_int_equal(app_find(4), -1);
	assert_true(app_find(31) >= 0);
}

static void another_seed_gives_another_trace(void **state)
{
	struct plan plan = plan_of(10, 1e-4);
	struct source *a = source_create(&plan, 1), *b = source_create(&plan, 2);
	struct event x, y;
	int same = 0, count = 0;

	(void)state;
	while (source_next(a, &x) && source_next(b, &y)) {
		same += x.time_s == y.time_s;
		count++;
	}
	assert_true(count > 1000 && same < count / 100);
	source_destroy(a);
	source_destroy(b);
}

static void a_seed_gives_the_same_trace_again(void **state)
{
	struct plan plan = plan_of(94, 1e-3);
	struct source *a = source_create(&plan, 7), *b = source_create(&plan, 7);
	struct event x, y;

	(void)state;
	memset(&x, 0, sizeof(x));
	memset(&y, 0, sizeof(y));
	while (source_next(a, &x)) {
		assert_true(source_next(b, &y));
		assert_true(x.time_s == y.time_s && x.key == y.key && x.op == y.op && x.hit == y.hit &&
			    x.value_size == y.value_size && x.key_size == y.key_size);
	}
	assert_false(source_next(b, &y));
	source_destroy(a);
	source_destroy(b);
}

static void time_never_goes_back(void **state)
{
	struct plan plan = plan_of(13, 1e-3);
	struct source *source = source_create(&plan, 3);
	struct event event;
	double last = 0;

	(void)state;
	while (source_next(source, &event)) {
		assert_true(event.time_s >= last && event.time_s <= SPAN_S);
		assert_true(event.key < plan.keys);
		assert_true(event.op != EVENT_GET || event.hit == (event.value_size > 0));
		last = event.time_s;
	}
	source_destroy(source);
}

static void assert_near(double reached, double wanted, double slack, const char *what, uint32_t app)
{
	if (fabs(reached - wanted) > slack)
		fail_msg("app %u: %s is %g, not %g +- %g", app, what, reached, wanted, slack);
}

/* A scale for each application that gives some 200 000 requests. */
static void every_application_has_its_published_counts(void **state)
{
	(void)state;
	for (int i = 0; i < APP_COUNT; i++) {
		const struct app *app = &app_table[i];
		double scale = fmin(1, 0.2 / app->requests_m), requests = app->requests_m * 1e6 * scale;
		struct plan plan = plan_of(app->id, scale);
		struct source *source = source_create(&plan, 5);
		struct tally tally;
		struct event event;

		tally_init(&tally, &plan);
		while (source_next(source, &event))
			tally_event(&tally, &event);
		assert_near((double)tally.requests, requests, 0.03 * requests + 20, "requests", app->id);
		assert_near((double)tally.keys, app->keys * scale, 0.03 * app->keys * scale + 2, "keys", app->id);
		assert_near(100.0 * (double)tally.ops[EVENT_GET] / (double)tally.requests, app->get, 0.3, "get %",
			    app->id);
		assert_near(100.0 * (double)tally.ops[EVENT_SET] / (double)tally.requests, app->set, 0.3, "set %",
			    app->id);
		assert_near(100.0 * (double)tally.ops[EVENT_DELETE] / (double)tally.requests, app->delete, 0.3,
			    "delete %", app->id);
		if (plan.keys > 100)
			assert_near(tally.value_bytes / (double)tally.value_rows, app->mean_value,
				    0.1 * app->mean_value, "mean value", app->id);
		tally_fini(&tally);
		source_destroy(source);
	}
}

static void the_whole_has_the_published_shares(void **state)
{
	double known = 0, writes = 0, unread = 0;

	(void)state;
	for (int i = 0; i < APP_COUNT; i++) {
		struct plan plan = plan_of(app_table[i].id, 1);

		known += (double)plan.known;
		writes += (double)(plan.keys - plan.silent);
		unread += (double)plan.unread;
	}
	assert_near(writes / known, PUBLISHED_WRITE_SHARE, 0.001, "write share", 0);
	assert_near(unread / writes, PUBLISHED_UNREAD_SHARE, 0.005, "unread share", 0);
}

static void the_fit_reaches_the_published_hit_ratio(void **state)
{
	static const uint32_t apps[] = { 1, 10, 23 };

	(void)state;
	for (size_t i = 0; i < sizeof(apps) / sizeof(apps[0]); i++) {
		const struct app *app = &app_table[app_find(apps[i])];
		struct plan plan = plan_of(app->id, 0.05 / app->requests_m);
		struct source *source;
		struct tally tally;
		struct event event;

		fit_plan(&plan, &shares, 1);
		source = source_create(&plan, 1);
		tally_init(&tally, &plan);
		while (source_next(source, &event))
			tally_event(&tally, &event);
		assert_near(tally_hit_percent(&tally), app->hit, 2, "LRU hit", app->id);
		tally_fini(&tally);
		source_destroy(source);
	}
}

static void an_lru_evicts_the_oldest(void **state)
{
	struct lru lru;

	(void)state;
	lru_init(&lru, 10, 100);
	assert_false(lru_access(&lru, 9, 101)); /* larger than the cache: not cached */
	assert_int_equal(lru.bytes, 0);
	assert_false(lru_access(&lru, 1, 40));
	assert_false(lru_access(&lru, 2, 40));
	assert_true(lru_access(&lru, 1, 40));
	assert_false(lru_access(&lru, 3, 40)); /* evicts 2 */
	assert_false(lru_access(&lru, 2, 40)); /* evicts 1 */
	assert_true(lru_access(&lru, 3, 40));
	assert_false(lru_access(&lru, 3, 41)); /* another size is a miss */
	assert_int_equal(lru.bytes, 81);
	lru_fini(&lru);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unknown_application_is_not_found),
		cmocka_unit_test(another_seed_gives_another_trace),
		cmocka_unit_test(a_seed_gives_the_same_trace_again),
		cmocka_unit_test(time_never_goes_back),
		cmocka_unit_test(every_application_has_its_published_counts),
		cmocka_unit_test(the_whole_has_the_published_shares),
		cmocka_unit_test(the_fit_reaches_the_published_hit_ratio),
		cmocka_unit_test(an_lru_evicts_the_oldest),
	};

	plan_shares(&shares);
	return cmocka_run_group_tests_name("tracegen", tests, NULL, NULL);
}
