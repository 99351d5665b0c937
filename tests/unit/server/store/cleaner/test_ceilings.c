/* SPDX-License-Identifier: BSD-3-Clause */
/* Floors and ceilings at work: who goes, who stays, and that every search ends. */
#include "server/store/dram/limits.h"
#include "tests/unit/server/store/harness.h"

static char filler[MIB(1)];
static struct app_limits wanted;
static char why[APP_LIMITS_WHY_BYTES];

static const struct app_limits *limits_from(const char *text)
{
	assert_int_equal(app_limits_parse(text, ':', &wanted, why), FS_OK);
	return &wanted;
}

/* A cache of 4 MiB in DRAM alone. */
static void open_dram(struct harness *h, const char *text)
{
	h->config.flash_path = NULL;
	h->config.memory_bytes = MIB(4);
	h->config.unwatched = true; /* a sanitizer's resident memory is no measure */
	h->config.limits = limits_from(text);
	harness_open(h);
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

/* Sets so many objects of an application, 1 ms each, with steps of the keeper if it runs. */
static void set_many(struct harness *h, const char *app, unsigned from, unsigned count, uint32_t length, bool keeper)
{
	char key[60];

	for (unsigned n = from; n < from + count; n++) {
		snprintf(key, sizeof(key), "%s:%u", app, n);
		assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = filler, .length = length).result,
				 STORE_STORED);
		clk_scripted_advance(&h->clk, 1000);
		store_worker_turn(h->worker[0]);
		while (keeper && keeper_step(h->store))
			;
	}
}

static unsigned present(struct harness *h, const char *app, unsigned count)
{
	char key[60];
	unsigned there = 0;

	for (unsigned n = 0; n < count; n++) {
		snprintf(key, sizeof(key), "%s:%u", app, n);
		there += where(h, key) != NOWHERE;
	}
	return there;
}

/* ---- ceilings -------------------------------------------------------------------------------- */

static void an_object_above_the_ceiling_is_refused(void **state)
{
	struct harness *h = *state;

	open_dram(h, "scan:dram=-64k");
	set_many(h, "scan", 0, 10, 1000, false);
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "scan:large", .value = filler, .length = KIB(65)).result,
			 STORE_NO_MEMORY);
	assert_int_equal(present(h, "scan", 10), 10); /* for which nothing went */
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "other:large", .value = filler, .length = KIB(65)).result,
			 STORE_STORED);
}

static void a_scan_stays_below_its_ceiling_and_others_lose_nothing(void **state)
{
	struct harness *h = *state;

	for (unsigned keeper = 0; keeper < 2; keeper++) {
		open_dram(h, "scan:dram=-512k");
		set_many(h, "kept", 0, 1500, 1000, keeper);
		for (unsigned from = 0; from < 5000; from += 500) {
			set_many(h, "scan", from, 500, 1000, keeper);
			assert_in_range(limited(h, "scan").dram_bytes, KIB(400) * (from > 500), KIB(512));
		}
		assert_int_equal(present(h, "kept", 1500), 1500);
		assert_true(limited(h, "scan").ceiling_evictions > 4000);
		harness_close(h);
	}
}

static void what_is_read_outlives_what_is_not_below_a_ceiling(void **state)
{
	struct harness *h = *state;
	char key[40];

	open_dram(h, "app:dram=-1m");
	for (unsigned n = 0; n < 6000; n++) {
		set_many(h, "app", n, 1, 400, true);
		snprintf(key, sizeof(key), "app:%u", n % 100);
		get(h, key);
	}
	assert_true(present(h, "app", 100) > 90);
	assert_true(limited(h, "app").dram_bytes <= MIB(1));
}

/* So that few sets have to search. */
static void the_keeper_leaves_a_margin_below_a_ceiling(void **state)
{
	struct harness *h = *state;
	const struct limited *app;

	open_dram(h, "app:dram=-1m,none:write=1m");
	app = limits_find(store_limits(h->store), "app:1", 5);
	assert_int_equal(limited_margin(app), KIB(16));
	assert_int_equal(limited_margin(limits_find(store_limits(h->store), "none:1", 6)), MIB(1));
	for (unsigned n = 0; limited(h, "app").dram_bytes <= MIB(1) - KIB(8); n++) {
		assert_int_equal(limits_excess(store_limits(h->store), true), 0);
		set_many(h, "app", n, 1, 1000, false);
	}
	assert_int_equal(limited(h, "app").ceiling_evictions, 0);
	assert_in_range(limits_excess(store_limits(h->store), true), 1, KIB(16));
	seconds_pass(h, 2);
	while (keeper_step(h->store))
		;
	assert_int_equal(limits_excess(store_limits(h->store), true), 0);
	assert_in_range(limited(h, "app").dram_bytes, MIB(1) - KIB(18), MIB(1) - KIB(16));
	assert_in_range(limited(h, "app").ceiling_evictions, 5, 10);
}

static void a_lower_ceiling_after_a_reload_is_reached_by_the_keeper(void **state)
{
	struct harness *h = *state;
	unsigned steps = 0;

	open_dram(h, "app:dram=-3m");
	set_many(h, "app", 0, 2000, 1000, true);
	set_many(h, "kept", 0, 500, 1000, true);
	assert_int_equal(store_set_limits(h->store, limits_from("app:dram=-256k")), FS_OK);
	seconds_pass(h, 2); /* nothing is young */
	while (keeper_step(h->store) && steps++ < 1000)
		;
	assert_true(steps < 1000);
	assert_true(limited(h, "app").dram_bytes <= KIB(256));
	assert_int_equal(present(h, "kept", 500), 500);
	assert_int_equal(limited(h, "app").ceiling_evictions + limited(h, "app").dram_items, 2000);
}

/* An application of which nothing may go, as all of it is young: the keeper rests, and a set is taken all the same. */
static void a_ceiling_that_can_not_be_reached_holds_nobody_up(void **state)
{
	struct harness *h = *state;
	unsigned steps = 0;

	open_dram(h, "app:dram=-3m");
	atomic_store(&h->store->recent.since_ms, (uint32_t)clk_now_ms(&h->clk) - 100);
	for (unsigned n = 0; n < 100; n++) {
		char key[20];

		snprintf(key, sizeof(key), "app:%u", n);
		assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = filler, .length = 1000).result,
				 STORE_STORED);
	}
	clk_scripted_advance(&h->clk, 1000);
	atomic_store(&h->store->recent.since_ms, (uint32_t)clk_now_ms(&h->clk) - 100);
	assert_int_equal(store_set_limits(h->store, limits_from("app:dram=-64k")), FS_OK);
	while (keeper_step(h->store) && steps++ < 100)
		;
	assert_true(steps < 100);
	assert_int_equal(limited(h, "app").dram_items, 100);
	set_many(h, "app", 100, 1, 1000, false); /* by its own set some go, though young */
	assert_true(limited(h, "app").dram_items < 100);
}

/* ---- floors ---------------------------------------------------------------------------------- */

static void a_scan_takes_nothing_from_below_a_floor(void **state)
{
	struct harness *h = *state;

	for (unsigned keeper = 0; keeper < 2; keeper++) {
		open_dram(h, "kept:dram=1m-");
		set_many(h, "kept", 0, 800, 1000, keeper);
		assert_true(limited(h, "kept").dram_bytes < MIB(1));
		set_many(h, "scan", 0, 12000, 1000, keeper);
		assert_int_equal(present(h, "kept", 800), 800);
		assert_int_equal(limited(h, "kept").floor_evictions, 0);
		harness_close(h);
	}
}

static void without_a_floor_a_scan_takes_all(void **state)
{
	struct harness *h = *state;

	open_dram(h, "kept:write=1m");
	set_many(h, "kept", 0, 800, 1000, true);
	set_many(h, "scan", 0, 12000, 1000, true);
	assert_true(present(h, "kept", 800) < 80);
}

static void what_is_above_the_floor_is_evicted_like_others(void **state)
{
	struct harness *h = *state;

	open_dram(h, "kept:dram=1m-");
	set_many(h, "kept", 0, 2000, 1000, true);
	assert_true(limited(h, "kept").dram_bytes > MIB(2) - KIB(200));
	set_many(h, "scan", 0, 12000, 1000, true);
	assert_in_range(limited(h, "kept").dram_bytes, MIB(1) - 2000, MIB(1) + KIB(300));
}

static void an_application_grows_to_its_floor_at_the_cost_of_others(void **state)
{
	struct harness *h = *state;

	open_dram(h, "late:dram=2m-");
	set_many(h, "other", 0, 6000, 1000, true);
	set_many(h, "late", 0, 1700, 1000, true);
	assert_int_equal(present(h, "late", 1700), 1700);
}

static void what_is_expired_goes_from_below_a_floor_too(void **state)
{
	struct harness *h = *state;
	char key[40];

	open_dram(h, "kept:dram=1m-");
	for (unsigned n = 0; n < 500; n++) {
		snprintf(key, sizeof(key), "kept:%u", n);
		run_full(h, .op = STORE_SET, .key = key, .value = filler, .length = 1000, .exptime = 5);
	}
	seconds_pass(h, 10);
	set_many(h, "scan", 0, 8000, 1000, false);
	assert_int_equal(limited(h, "kept").dram_items, 0);
}

/* Nothing but protected objects, in more memory than there is: a set takes them rather than be refused, and it is told. */
static void a_set_is_not_refused_for_a_floor(void **state)
{
	struct harness *h = *state;
	unsigned steps = 0;

	open_dram(h, "a:dram=3m-");
	set_many(h, "a", 0, 2000, 1000, true);
	assert_true(limited(h, "a").dram_bytes > MIB(2) - KIB(100));
	assert_true(limited(h, "a").dram_bytes < limited(h, "a").floor_held);
	assert_int_equal(limited(h, "a").floor_evictions, 0);
	assert_int_equal(store_set_memory_limit(h->store, MIB(2)), FS_OK);
	seconds_pass(h, 2);
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "b:1", .value = filler, .length = KIB(300)).result,
			 STORE_STORED);
	assert_true(limited(h, "a").floor_evictions > 0);
	seconds_pass(h, 2);
	while (keeper_step(h->store) && steps++ < 1000) /* it lowers the floor, and goes on without breaking it */
		;
	assert_true(steps < 1000);
	assert_true(limited(h, "a").floor_held < MIB(2));
	assert_true(store_free_bytes(h->store) >= 0);
}

/* ---- both, with flash ------------------------------------------------------------------------ */

static void with_flash_a_ceiling_leaves_candidates_to_the_cleaner(void **state)
{
	struct harness *h = *state;

	h->config.unwatched = true;
	h->config.limits = limits_from("app:dram=-2m");
	harness_open(h);
	set_many(h, "app", 0, 3000, 1000, true);
	assert_true(limited(h, "app").dram_bytes <= MIB(2) + KIB(2));
	for (unsigned n = 0; n < 4 && write_one(h); n++)
		;
	assert_true(limited(h, "app").write_bytes > KIB(100));
}

static void open_on_flash(struct harness *h, const char *text)
{
	h->config.unwatched = true;
	h->config.memory_bytes = MIB(16);
	h->config.flash_bytes = MIB(8);
	h->config.flash_object_bytes = 1000;
	h->config.limits = limits_from(text);
	harness_open(h);
}

static void clean_all(struct harness *h)
{
	unsigned steps = 0;

	while (cleaner_step(h->store) && steps++ < 1000)
		;
	assert_true(steps < 1000);
}

static unsigned on_flash(struct harness *h, const char *app, unsigned count)
{
	char key[60];
	unsigned there = 0;

	for (unsigned n = 0; n < count; n++) {
		snprintf(key, sizeof(key), "%s:%u", app, n);
		there += where(h, key) == FLASH;
	}
	return there;
}

static void read_many(struct harness *h, const char *app, unsigned from, unsigned count)
{
	char key[60];

	for (unsigned n = from; n < from + count; n++) {
		snprintf(key, sizeof(key), "%s:%u", app, n);
		get(h, key);
		get(h, key);
	}
}

/* Others' candidates stay in memory, of which enough is free. */
static void what_a_ceiling_would_evict_goes_to_flash_while_memory_is_free(void **state)
{
	static const struct {
		enum clf_admission rule;
		unsigned present, on_flash; /* least, of 3000; memory has room for 900 */
	} rows[] = { { CLF_ADMIT_ALL, 2800, 1800 }, { CLF_ADMIT_FREQ, 1200, 400 } /* it takes the better ones */ };
	struct harness *h = *state;

	for (unsigned i = 0; i < 2; i++) {
		h->config.admission = rows[i].rule;
		open_on_flash(h, "app:dram=-1m");
		set_many(h, "other", 0, 1000, 1000, true);
		for (unsigned n = 0; n < 3000; n += 20) {
			set_many(h, "app", n, 20, 1000, true);
			read_many(h, "app", n, 20);
			clean_all(h);
		}
		assert_true(store_free_bytes(h->store) > (int64_t)MIB(8));
		assert_int_equal(present(h, "other", 1000), 1000);
		assert_int_equal(on_flash(h, "other", 1000), 0);
		assert_true(limited(h, "app").dram_bytes <= MIB(1) + KIB(2));
		assert_true(present(h, "app", 3000) > rows[i].present);
		assert_true(on_flash(h, "app", 3000) > rows[i].on_flash);
		harness_close(h);
	}
}

/* One alone never has candidates for a segment. */
static void ceilings_below_a_segment_share_one(void **state)
{
	struct harness *h = *state;
	uint64_t written;

	h->config.segment_bytes = KIB(256);
	open_on_flash(h, "a:dram=-160k");
	written = ctr_sum(CTR_segments_written);
	for (unsigned n = 0; n < 500; n++) {
		set_many(h, "a", n, 1, 1000, true);
		assert_false(cleaner_step(h->store));
	}
	assert_int_equal(ctr_sum(CTR_segments_written), written);
	assert_int_equal(h->store->cleaner->ceilings.rest_ms, 0); /* none was tried */
	assert_int_equal(store_set_limits(h->store, limits_from("a:dram=-160k,b:dram=-160k")), FS_OK);
	for (unsigned n = 0; n < 500; n++) {
		set_many(h, "a", n, 1, 1000, true);
		set_many(h, "b", n, 1, 1000, true);
		clean_all(h);
	}
	assert_true(ctr_sum(CTR_segments_written) > written);
	assert_true(on_flash(h, "a", 500) > 100);
	assert_true(on_flash(h, "b", 500) > 100);
}

static struct limited *limits_app(struct harness *h, const char *key)
{
	struct limited *app = limits_find(store_limits(h->store), key, strlen(key));

	assert_non_null(app);
	return app;
}

static void far_below_its_ceiling_an_application_writes_nothing(void **state)
{
	struct harness *h = *state;

	open_on_flash(h, "app:dram=-4m");
	set_many(h, "app", 0, 1000, 1000, true);
	assert_false(cleaner_step(h->store));
	assert_int_equal(ceilings_choose_groups(h->store), 0);
	atomic_store(&limits_app(h, "app:1")->ceiling, limited(h, "app").dram_bytes + KIB(65));
	assert_int_equal(ceilings_choose_groups(h->store), 0);
	atomic_store(&limits_app(h, "app:1")->ceiling, limited(h, "app").dram_bytes + KIB(63));
	assert_int_not_equal(ceilings_choose_groups(h->store), 0);
}

/* Each of these would be refused when it is gathered, so that the search would be in vain. */
static void what_may_not_be_written_asks_for_no_segment(void **state)
{
	struct harness *h = *state;
	struct limited *app;
	int64_t candidates;

	open_on_flash(h, "app:dram=-1m,flash=-8m,write=1m");
	app = limits_app(h, "app:1");
	set_many(h, "app", 0, 2000, 1000, true);
	candidates = (int64_t)candidate_total(h->store);
	assert_int_not_equal(ceilings_choose_groups(h->store), 0);
	assert_int_equal(limited_may_plan(app), candidates);

	atomic_store(&app->floor_held, MIB(1)); /* nothing is above it */
	assert_int_equal(limited_may_plan(app), 0);
	assert_int_equal(ceilings_choose_groups(h->store), 0);
	assert_false(app->pressed);
	atomic_store(&app->floor_held, limited_bytes(app) - KIB(60)); /* less than a segment is */
	assert_int_equal(limited_may_plan(app), KIB(60));
	assert_int_equal(ceilings_choose_groups(h->store), 0);
	atomic_store(&app->floor_held, 0);

	atomic_store(&app->flash_bytes, MIB(8) - KIB(60));
	assert_int_equal(limited_may_plan(app), KIB(60));
	assert_int_equal(ceilings_choose_groups(h->store), 0);
	atomic_store(&app->flash_bytes, MIB(9));
	assert_int_equal(limited_may_plan(app), 0);
	atomic_store(&app->flash_bytes, 0);

	atomic_store(&app->tokens, (int64_t)KIB(60));
	assert_int_equal(ceilings_choose_groups(h->store), 0);
	atomic_store(&app->tokens, -1);
	assert_int_equal(limited_may_plan(app), 0);
	atomic_store(&app->tokens, (int64_t)MIB(1));
	assert_int_not_equal(ceilings_choose_groups(h->store), 0);

	atomic_store(&app->write, 0);
	assert_int_equal(limited_may_plan(app), 0);
	assert_false(cleaner_step(h->store));
}

static void an_application_that_writes_nothing_keeps_no_other_from_it(void **state)
{
	struct harness *h = *state;

	open_on_flash(h, "large:dram=-8m,write=0,small:dram=-128k");
	set_many(h, "large", 0, 8000, 1000, true);
	for (unsigned n = 0; n < 500; n += 10) {
		set_many(h, "small", n, 10, 1000, true);
		clean_all(h);
	}
	assert_true(store_free_bytes(h->store) > (int64_t)MIB(4));
	assert_true(on_flash(h, "small", 500) > 300);
	assert_int_equal(on_flash(h, "large", 8000), 0);
}

static void without_budget_an_application_at_its_ceiling_waits(void **state)
{
	struct harness *h = *state;

	h->config.flash_write_limit = 1;
	open_on_flash(h, "app:dram=-1m");
	set_many(h, "app", 0, 2000, 1000, true);
	atomic_store(&h->store->cleaner->write_tokens, -(int64_t)MIB(1));
	assert_false(cleaner_step(h->store));
	assert_false(atomic_load(&h->store->cleaner->held_up)); /* which is for what memory needs */
	assert_int_equal(on_flash(h, "app", 2000), 0);
	atomic_store(&h->store->cleaner->write_tokens, (int64_t)h->store->segment_bytes);
	assert_true(cleaner_step(h->store));
	assert_false(h->store->cleaner->ceilings.only);
	assert_true(on_flash(h, "app", 2000) > 40);
}

static void others_keep_a_segment_of_the_budget(void **state)
{
	struct harness *h = *state;

	h->config.admission = CLF_ADMIT_FREQ;
	h->config.flash_write_ratio = 0.001;
	open_on_flash(h, "app:dram=-1m");
	harness_end_fill(h);
	for (unsigned n = 0; n < 2000; n += 20) {
		set_many(h, "app", n, 20, 1000, true);
		read_many(h, "app", n, 20);
	}
	atomic_store(&h->store->cleaner->ratio_tokens, (int64_t)h->store->segment_bytes - KIB(4));
	assert_int_not_equal(ceilings_choose_groups(h->store), 0);
	assert_false(cleaner_step(h->store));
	atomic_store(&h->store->cleaner->ratio_tokens, (int64_t)h->store->segment_bytes + KIB(4));
	assert_true(cleaner_step(h->store));
}

/* What was marked is dead when it is gathered. */
static void a_segment_that_can_not_be_filled_is_not_tried_again_at_once(void **state)
{
	struct harness *h = *state;
	struct ceilings *ceilings;
	char key[40];

	open_on_flash(h, "app:dram=-1m");
	ceilings = &h->store->cleaner->ceilings;
	for (unsigned rest_ms = 1000; rest_ms <= 4000; rest_ms *= 2) {
		for (unsigned n = 0; n < 1500; n++) {
			snprintf(key, sizeof(key), "app:%u", n);
			run_full(h, .op = STORE_SET, .key = key, .value = filler, .length = 1000, .exptime = 1);
		}
		clk_scripted_advance(&h->clk, 2000000);
		assert_int_not_equal(ceilings_choose_groups(h->store), 0);
		assert_false(cleaner_step(h->store));
		assert_int_equal(ceilings->rest_ms, rest_ms);
		assert_int_equal(ceilings_choose_groups(h->store), 0);
		clk_scripted_advance(&h->clk, rest_ms * 1000ull);
	}
	set_many(h, "app", 0, 2000, 1000, true);
	clk_scripted_advance(&h->clk, 8000000);
	assert_true(cleaner_step(h->store));
	assert_int_equal(ceilings->rest_ms, 0);
}

static void a_segment_for_a_ceiling_does_not_hurry(void **state)
{
	struct harness *h = *state;
	struct pace *pace;

	open_on_flash(h, "app:dram=-1m");
	pace = &h->store->cleaner->pace;
	set_many(h, "app", 0, 2000, 1000, true);
	atomic_store(&pace->cycle_ms, 10.0);
	atomic_store(&pace->demand, 1e6); /* other memory lasts for seconds */
	h->store->cleaner->ceilings.only = true;
	assert_false(pace_hurry(h->store));
	pace_begin(h->store);
	clk_scripted_advance(&h->clk, 1000000);
	pace_end(h->store);
	assert_true(atomic_load(&pace->cycle_ms) == 10.0);
	atomic_store(&pace->demand, 1e10);
	assert_true(pace_hurry(h->store));
	h->store->cleaner->ceilings.only = false;
}

static void while_a_segment_is_written_the_keeper_leaves_margins_alone(void **state)
{
	struct harness *h = *state;
	uint64_t evicted;

	open_on_flash(h, "app:dram=-1m");
	for (unsigned n = 0; limited(h, "app").dram_bytes <= MIB(1) - KIB(4); n++)
		set_many(h, "app", n, 1, 1000, false);
	seconds_pass(h, 2);
	evicted = limited(h, "app").ceiling_evictions;
	atomic_store(&h->store->cleaner->writing, true);
	assert_false(keeper_step(h->store));
	assert_int_equal(limited(h, "app").ceiling_evictions, evicted);
	atomic_store(&h->store->cleaner->writing, false);
	while (keeper_step(h->store))
		;
	assert_true(limited(h, "app").ceiling_evictions > evicted);
}

/* All of its objects are candidates, and none may go to flash now. */
static void a_lower_ceiling_is_reached_among_candidates(void **state)
{
	struct harness *h = *state;
	unsigned steps = 0;

	open_on_flash(h, "app:dram=-8m");
	set_many(h, "app", 0, 5000, 1000, true);
	assert_true(limited_mostly_candidates(limits_app(h, "app:1")));
	assert_int_equal(store_set_limits(h->store, limits_from("app:dram=-256k")), FS_OK);
	seconds_pass(h, 2);
	while (keeper_step(h->store) && steps++ < 1000)
		;
	assert_true(steps < 1000);
	assert_true(limited(h, "app").dram_bytes <= KIB(256));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_object_above_the_ceiling_is_refused),
		TEST(a_scan_stays_below_its_ceiling_and_others_lose_nothing),
		TEST(what_is_read_outlives_what_is_not_below_a_ceiling),
		TEST(the_keeper_leaves_a_margin_below_a_ceiling),
		TEST(a_lower_ceiling_after_a_reload_is_reached_by_the_keeper),
		TEST(a_ceiling_that_can_not_be_reached_holds_nobody_up),
		TEST(a_scan_takes_nothing_from_below_a_floor),
		TEST(without_a_floor_a_scan_takes_all),
		TEST(what_is_above_the_floor_is_evicted_like_others),
		TEST(an_application_grows_to_its_floor_at_the_cost_of_others),
		TEST(what_is_expired_goes_from_below_a_floor_too),
		TEST(a_set_is_not_refused_for_a_floor),
		TEST(with_flash_a_ceiling_leaves_candidates_to_the_cleaner),
		TEST(what_a_ceiling_would_evict_goes_to_flash_while_memory_is_free),
		TEST(ceilings_below_a_segment_share_one),
		TEST(far_below_its_ceiling_an_application_writes_nothing),
		TEST(what_may_not_be_written_asks_for_no_segment),
		TEST(an_application_that_writes_nothing_keeps_no_other_from_it),
		TEST(without_budget_an_application_at_its_ceiling_waits),
		TEST(others_keep_a_segment_of_the_budget),
		TEST(a_segment_that_can_not_be_filled_is_not_tried_again_at_once),
		TEST(a_segment_for_a_ceiling_does_not_hurry),
		TEST(while_a_segment_is_written_the_keeper_leaves_margins_alone),
		TEST(a_lower_ceiling_is_reached_among_candidates),
	};

	return cmocka_run_group_tests_name("store: floors and ceilings", tests, NULL, NULL);
}
