/* SPDX-License-Identifier: BSD-3-Clause */
/* Accounts of applications with limits: exact whatever happens to objects and limits; buckets of writes. */
#include <pthread.h>

#include "base/fault.h"
#include "server/store/dram/limits.h"
#include "tests/unit/server/store/harness.h"

#define THREAD_SETS 4000u

static char filler[KIB(8)];
static struct app_limits wanted;
static char why[APP_LIMITS_WHY_BYTES];

static const struct app_limits *limits_from(const char *text)
{
	assert_int_equal(app_limits_parse(text, ':', &wanted, why), FS_OK);
	return &wanted;
}

static void open_with(struct harness *h, const char *text)
{
	h->config.limits = text ? limits_from(text) : NULL;
	harness_open(h);
}

static void limit(struct harness *h, const char *text)
{
	assert_int_equal(store_set_limits(h->store, limits_from(text)), FS_OK);
}

static struct store_limited limited(struct harness *h, const char *name)
{
	struct store_limited app;

	for (unsigned n = 0; store_get_limited(h->store, n, &app); n++)
		if (strcmp(app.limit.name, name) == 0)
			return app;
	fail_msg("%s has no account", name);
	return app;
}

static void store_of(struct harness *h, const char *app, unsigned n, uint32_t length)
{
	char key[200];

	snprintf(key, sizeof(key), "%s:%u", app, n);
	assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = filler, .length = length).result,
			 STORE_STORED);
}

static uint64_t cost_of(struct harness *h, const char *key)
{
	return item_cost(item_in_dram(h, key));
}

static void count_all(struct harness *h)
{
	while (limits_count_step(h->store))
		;
	assert_true(store_limits_are_counted(h->store));
}

/* ---- names ----------------------------------------------------------------------------------- */

static void keys_of_no_limited_application_have_no_account(void **state)
{
	static const char *const keys[] = { "shop", "shopping:1", "sho:1", ":shop:1", "x:shop:1", "shop;1", "SHOP:1" };
	struct harness *h = *state;
	char longest[APP_LIMIT_NAME_MAX + 40];

	open_with(h, "shop:dram=-1m");
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		assert_null(limits_find(store_limits(h->store), keys[i], strlen(keys[i])));
		set(h, keys[i], "value");
	}
	memset(longest, 'l', sizeof(longest));
	assert_null(limits_find(store_limits(h->store), longest, sizeof(longest)));
	assert_int_equal(limited(h, "shop").dram_items, 0);
	assert_int_equal(limited(h, "shop").dram_bytes, 0);
	set(h, "shop:1", "value");
	assert_int_equal(limited(h, "shop").dram_items, 1);
	set(h, "shop:2", "value");
	assert_int_equal(limited(h, "shop").dram_items, 2);
}

static void each_of_many_names_is_found(void **state)
{
	struct harness *h = *state;
	char text[8000] = "", key[200];

	for (unsigned i = 0; i < APP_LIMITS_MOST; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*stenant-%02u-production:dram=-%um",
			 i ? "," : "", (int)i % 40, "a-long-beginning-that-differs-nowhere------", i, i + 1);
	open_with(h, text);
	for (unsigned i = 0; i < APP_LIMITS_MOST; i++) {
		snprintf(key, sizeof(key), "%.*stenant-%02u-production:key:1", (int)i % 40,
			 "a-long-beginning-that-differs-nowhere------", i);
		const struct limited *app = limits_find(store_limits(h->store), key, strlen(key));
		assert_non_null(app);
		assert_int_equal(app->ceiling, MIB(i + 1));
	}
}

static void more_names_than_are_kept_change_nothing(void **state)
{
	struct harness *h = *state;
	char text[4000];

	open_with(h, NULL);
	for (unsigned from = 0; from < STORE_LIMITED_MOST; from += APP_LIMITS_MOST) {
		text[0] = '\0';
		for (unsigned i = from; i < from + APP_LIMITS_MOST; i++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sa%u:dram=-1m",
				 i > from ? "," : "", i);
		limit(h, text);
	}
	assert_int_equal(store_set_limits(h->store, limits_from("a255:dram=-2m,new:dram=-2m")), FS_ERANGE);
	assert_int_equal(limited(h, "a255").limit.dram_ceiling, MIB(1));
	assert_true(limited(h, "a192").limited);
	assert_false(limited(h, "a191").limited);
	limit(h, "a0:dram=-3m"); /* a known one may come back */
	assert_int_equal(limited(h, "a0").limit.dram_ceiling, MIB(3));
}

static void names_without_memory_change_nothing(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	open_with(h, NULL);
	fault_arm(FAULT_limits_memory, FAULT_AFTER, 1);
	assert_int_equal(store_set_limits(h->store, limits_from("a:dram=-1m,b:dram=-1m")), FS_ENOMEM);
	assert_null(store_limits(h->store));
	limit(h, "a:dram=-1m");
	fault_arm(FAULT_limits_memory, FAULT_AFTER, 1);
	assert_int_equal(store_set_limits(h->store, limits_from("a:dram=-2m,b:dram=-1m,c:dram=-1m")), FS_ENOMEM);
	assert_int_equal(limited(h, "a").limit.dram_ceiling, MIB(1));
	assert_int_equal(limits_names(store_limits(h->store)), 1);
	count_all(h);
	limit(h, "b:dram=-3m"); /* the fault fires once */
	assert_int_equal(limited(h, "b").limit.dram_ceiling, MIB(3));
	assert_false(limited(h, "a").limited);
}

/* ---- accounts -------------------------------------------------------------------------------- */

static void a_store_without_limits_keeps_no_accounts(void **state)
{
	struct harness *h = *state;
	struct store_limited app;

	open_with(h, NULL);
	set(h, "shop:1", "value");
	assert_false(item_in_dram(h, "shop:1")->state & ITEM_LIMITED);
	assert_false(store_get_limited(h->store, 0, &app));
	assert_true(store_limits_are_counted(h->store));
	assert_false(limits_count_step(h->store));
	assert_true(limits_have_room(h->store, "shop:1", 6, UINT64_MAX / 2));
	assert_true(limits_may_write(h->store, "shop:1", 6));
	limit(h, "");
	assert_null(store_limits(h->store));
}

static void the_account_is_the_cost_of_the_objects(void **state)
{
	struct harness *h = *state;
	uint64_t one, two;

	open_with(h, "shop:dram=-4m");
	store_of(h, "shop", 1, 100);
	store_of(h, "shop", 2, 2000);
	store_of(h, "other", 3, 3000);
	one = cost_of(h, "shop:1");
	two = cost_of(h, "shop:2");
	assert_int_equal(limited(h, "shop").dram_bytes, one + two);
	assert_int_equal(limited(h, "shop").dram_items, 2);
	store_of(h, "shop", 1, 5000); /* replaced */
	assert_int_equal(limited(h, "shop").dram_bytes, cost_of(h, "shop:1") + two);
	assert_int_equal(limited(h, "shop").dram_items, 2);
	set(h, "shop:2", "7");
	run_number(h, STORE_INCR, "shop:2", 9999999);
	assert_int_equal(limited(h, "shop").dram_bytes, cost_of(h, "shop:1") + cost_of(h, "shop:2"));
	run(h, STORE_DELETE, "shop:1");
	run(h, STORE_DELETE, "shop:2");
	assert_int_equal(limited(h, "shop").dram_bytes, 0);
	assert_int_equal(limited(h, "shop").dram_items, 0);
}

static void what_goes_to_flash_leaves_the_account(void **state)
{
	struct harness *h = *state;

	open_with(h, "shop:dram=-4m");
	store_of(h, "shop", 1, 100);
	move(h, "shop:1");
	assert_int_equal(limited(h, "shop").dram_items, 0);
	assert_int_equal(limited(h, "shop").dram_bytes, 0);
	assert_int_equal(limited(h, "shop").write_bytes, seg_record_length(strlen("shop:1"), 100));
}

static void a_new_limit_counts_what_is_there(void **state)
{
	struct harness *h = *state;
	uint64_t bytes;

	open_with(h, NULL);
	for (unsigned n = 0; n < 300; n++)
		store_of(h, n % 3 ? "shop" : "other", n, 100 + n);
	limit(h, "shop:dram=-6m");
	assert_false(store_limits_are_counted(h->store));
	store_of(h, "shop", 1, 3000); /* counted by itself, before the walk: once */
	run(h, STORE_DELETE, "shop:2"); /* never counted */
	count_all(h);
	assert_int_equal(limited(h, "shop").dram_items, 199);
	bytes = limited(h, "shop").dram_bytes;
	limit(h, "other:dram=-1m");
	assert_false(limited(h, "shop").limited);
	count_all(h);
	assert_int_equal(limited(h, "other").dram_items, 100);
	store_of(h, "shop", 1, 10); /* an account goes on without limits ... */
	limit(h, "shop:dram=-6m");
	assert_true(store_limits_are_counted(h->store)); /* ... so that nothing is to be counted */
	assert_int_equal(limited(h, "shop").dram_items, 199);
	assert_true(limited(h, "shop").dram_bytes < bytes);
	for (unsigned n = 0; n < 300; n++) {
		char key[40];

		snprintf(key, sizeof(key), "%s:%u", n % 3 ? "shop" : "other", n);
		run(h, STORE_DELETE, key);
	}
	assert_int_equal(limited(h, "shop").dram_bytes, 0);
	assert_int_equal(limited(h, "other").dram_bytes, 0);
}

/* While limits change, workers set and delete; in the end each account is the sum over what is there. */
struct setter {
	struct harness *h;
	unsigned worker;
	pthread_t thread;
};

static void *set_and_delete(void *argument)
{
	struct setter *setter = argument;
	struct harness *h = setter->h;
	char key[40];

	for (unsigned n = 0; n < THREAD_SETS; n++) {
		struct flight flight;

		snprintf(key, sizeof(key), "app%u:%u", n % 4, n % 500 + 500 * (setter->worker % 2));
		if (n % 5 == 4)
			start(h, setter->worker, &flight, STORE_DELETE, key);
		else
			(void)start_with(h, setter->worker, &flight, .op = STORE_SET, .key = key, .value = filler,
					 .length = n % 400);
		(void)finish(h, &flight);
	}
	return NULL;
}

/* What the objects in memory of these applications come to. */
struct sums {
	uint64_t items, bytes, candidates;
};

static struct sums sums_of_accounts(struct harness *h)
{
	const struct limits *limits = store_limits(h->store);
	struct sums sums = { 0 };

	for (uint32_t n = 0; n < limits_names(limits); n++) {
		const struct limited *app = limits_number(limits, n);

		sums.items += (uint64_t)atomic_load(&app->items);
		sums.bytes += limited_bytes(app);
		for (int g = 0; g < GROUPS; g++)
			sums.candidates += (uint64_t)atomic_load(&app->candidate_bytes[g]);
	}
	return sums;
}

static struct sums sums_of_objects(struct harness *h)
{
	struct sums sums = { 0 };

	for (unsigned n = 0; n < 1000; n++)
		for (unsigned app = 0; app < 4; app++) {
			char key[40];
			const struct item *item;

			snprintf(key, sizeof(key), "app%u:%u", app, n);
			item = item_in_dram(h, key);
			sums.items += item != NULL;
			sums.bytes += item ? item_cost(item) : 0;
			sums.candidates += item && item->state & ITEM_CANDIDATE ? item_record_bytes(item) : 0;
		}
	return sums;
}

/* With flash the cleaner gathers, writes and gives back meanwhile. */
static void accounts_are_exact(struct harness *h)
{
	static const char *const texts[] = { "app0:dram=-4m,app1:dram=1m-", "app1:dram=1m-2m", "",
					     "app2:dram=-3m,app3:write=5" };
	struct setter setters[WORKERS];
	uint64_t written = ctr_sum(CTR_segments_written) + (h->config.flash_path ? 3 : 0);

	open_with(h, NULL);
	for (unsigned i = 0; i < WORKERS; i++) {
		setters[i] = (struct setter){ .h = h, .worker = i };
		assert_int_equal(pthread_create(&setters[i].thread, NULL, set_and_delete, &setters[i]), 0);
	}
	for (unsigned n = 0; n < 200 || (n < 100000 && ctr_sum(CTR_segments_written) < written); n++) {
		limit(h, texts[n % 4]);
		for (unsigned steps = 0; steps < n % 7; steps++)
			limits_count_step(h->store);
		if (h->config.flash_path && candidate_total(h->store) > h->store->segment_bytes)
			write_segment(h->store, (1u << GROUPS) - 1);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(setters[i].thread, NULL);
	assert_true(ctr_sum(CTR_segments_written) >= written);
	limit(h, "app0:dram=-7m,app1:dram=-7m,app2:dram=-7m,app3:dram=-7m");
	count_all(h);
	const struct sums accounts = sums_of_accounts(h), objects = sums_of_objects(h);
	assert_true(objects.items > 0);
	assert_true(!h->config.flash_path || objects.candidates > 0);
	assert_int_equal(accounts.items, objects.items);
	assert_int_equal(accounts.bytes, objects.bytes);
	assert_int_equal(accounts.candidates, objects.candidates);
}

static void accounts_are_exact_under_threads_and_reloads(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	accounts_are_exact(h);
}

static void candidates_are_exact_under_threads_and_reloads(void **state)
{
	accounts_are_exact(*state);
}

/* ---- floors ---------------------------------------------------------------------------------- */

static void floors_are_lowered_together_where_memory_is_short(void **state)
{
	struct harness *h = *state;
	uint64_t now_ms, sum;

	open_with(h, "a:dram=2m-,b:dram=1m-");
	now_ms = clk_now_ms(&h->clk);
	assert_int_equal(limited(h, "a").floor_held, MIB(2));
	assert_int_equal(limited(h, "b").floor_held, MIB(1));
	atomic_store(&h->store->excess_bytes, MIB(8)); /* an eighth of -m is left */
	limits_hold_floors(h->store, now_ms, false);
	assert_int_equal(limited(h, "a").floor_held, MIB(2)); /* it was looked at a moment ago */
	limits_hold_floors(h->store, now_ms + 1000, false);
	sum = limited(h, "a").floor_held + limited(h, "b").floor_held;
	assert_in_range(sum, store_item_budget(h->store) / 8 * 7 - 16, store_item_budget(h->store) / 8 * 7);
	assert_in_range(limited(h, "a").floor_held, 2 * limited(h, "b").floor_held - 2,
			2 * limited(h, "b").floor_held + 2);
	assert_int_equal(limited(h, "a").limit.dram_floor, MIB(2));
	atomic_store(&h->store->excess_bytes, 0);
	limits_hold_floors(h->store, now_ms + 2000, false);
	assert_int_equal(limited(h, "a").floor_held, MIB(2));
}

/* ---- writes ---------------------------------------------------------------------------------- */

static void an_empty_bucket_admits_nothing_until_it_fills(void **state)
{
	struct harness *h = *state;
	struct limited *app;

	open_with(h, "shop:write=1000");
	app = limits_find(store_limits(h->store), "shop:", 5);
	assert_int_equal(app->tokens, h->store->segment_bytes); /* more than ten seconds of the limit */
	assert_true(limits_may_write(h->store, "shop:1", 6));
	atomic_store(&app->tokens, 0);
	assert_false(limits_may_write(h->store, "shop:1", 6));
	assert_true(limits_may_write(h->store, "other:1", 7));
	assert_int_equal(limited(h, "shop").write_refusals, 1);
	limits_fill(h->store, clk_now_ms(&h->clk) + 999);
	assert_int_equal(app->tokens, 0);
	limits_fill(h->store, clk_now_ms(&h->clk) + 1500);
	assert_int_equal(app->tokens, 1500);
	limits_fill(h->store, clk_now_ms(&h->clk) + 3600000);
	assert_int_equal(app->tokens, h->store->segment_bytes);
}

static void nothing_goes_to_flash_with_a_limit_of_zero(void **state)
{
	struct harness *h = *state;

	open_with(h, "shop:write=0");
	for (unsigned n = 0; n < 400; n++) {
		store_of(h, "shop", n, 300);
		store_of(h, "other", n, 300);
	}
	limits_fill(h->store, clk_now_ms(&h->clk) + 3600000);
	assert_true(write_one(h));
	assert_int_equal(limited(h, "shop").write_bytes, 0);
	assert_int_equal(limited(h, "shop").dram_items, 400);
	assert_true(store_dram_items(h->store) < 800); /* others went */
	assert_true(limited(h, "shop").write_refusals > 0);
}

static void a_plan_takes_what_the_bucket_has(void **state)
{
	struct harness *h = *state;
	struct limited *app;
	uint64_t record = seg_record_length(strlen("shop:100"), 300);

	open_with(h, "shop:write=1m");
	app = limits_find(store_limits(h->store), "shop:", 5);
	for (unsigned n = 100; n < 500; n++) {
		store_of(h, "shop", n, 300);
		store_of(h, "next", n, 300);
	}
	atomic_store(&app->tokens, (int64_t)(10 * record)); /* emptied after they became candidates */
	assert_true(write_one(h));
	assert_in_range(limited(h, "shop").write_bytes, 1, 10 * record);
	assert_int_equal(app->tokens, (int64_t)(10 * record - limited(h, "shop").write_bytes));
}

static void what_a_floor_needs_stays_in_memory(void **state)
{
	struct harness *h = *state;

	open_with(h, "shop:dram=1m-");
	for (unsigned n = 0; n < 400; n++) {
		store_of(h, "shop", n, 300);
		store_of(h, "other", n, 300);
	}
	assert_true(write_one(h));
	assert_int_equal(limited(h, "shop").dram_items, 400);
	assert_true(store_dram_items(h->store) < 800);
}

/* What a plan has taken already is still in the account. */
static void a_plan_leaves_what_a_floor_needs(void **state)
{
	struct harness *h = *state;
	uint64_t all;

	open_with(h, "shop:dram=110k-");
	for (unsigned n = 0; n < 400; n++)
		store_of(h, "shop", n, 300);
	all = limited(h, "shop").dram_bytes;
	assert_true(all > KIB(130));
	for (unsigned n = 0; n < 3; n++) {
		assert_true(write_one(h));
		assert_true(limited(h, "shop").dram_bytes >= KIB(110));
	}
	assert_in_range(limited(h, "shop").dram_bytes, KIB(110),
			KIB(112)); /* the rest is for flash, like others' objects */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(keys_of_no_limited_application_have_no_account),
		TEST(each_of_many_names_is_found),
		TEST(more_names_than_are_kept_change_nothing),
		TEST(names_without_memory_change_nothing),
		TEST(a_store_without_limits_keeps_no_accounts),
		TEST(the_account_is_the_cost_of_the_objects),
		TEST(what_goes_to_flash_leaves_the_account),
		TEST(a_new_limit_counts_what_is_there),
		TEST(accounts_are_exact_under_threads_and_reloads),
		TEST(candidates_are_exact_under_threads_and_reloads),
		TEST(floors_are_lowered_together_where_memory_is_short),
		TEST(an_empty_bucket_admits_nothing_until_it_fills),
		TEST(nothing_goes_to_flash_with_a_limit_of_zero),
		TEST(a_plan_takes_what_the_bucket_has),
		TEST(what_a_floor_needs_stays_in_memory),
		TEST(a_plan_leaves_what_a_floor_needs),
	};

	return cmocka_run_group_tests_name("store: limits of applications", tests, NULL, NULL);
}
