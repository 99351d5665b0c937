/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What requests count, in all, by size class and for watchers; the same from DRAM and from flash. Extended ones count as
 * memcached 1.6.18 was seen to.
 */
#include "base/events.h"
#include "tests/unit/server/store/asking.h"

#define COUNTED_MAX 3

/* A request on a key that holds "10" for 100 seconds, or (absent) on none, and what rises by one. */
struct counted {
	const char *name;
	bool absent, differs;
	struct asked asked;
	enum ctr rises[COUNTED_MAX];
	unsigned count;
};

static const struct counted COUNTED[] = {
	{ "mg", false, false, { .op = STORE_GET }, { CTR_cmd_get, CTR_get_hits }, 2 },
	{ "mg, absent", true, false, { .op = STORE_GET }, { CTR_cmd_get, CTR_get_misses }, 2 },
	{ "mg T",
	  false,
	  false,
	  { .op = STORE_GET, .options = { .touch = true } },
	  { CTR_cmd_touch, CTR_touch_hits },
	  2 },
	{ "mg T, absent",
	  true,
	  false,
	  { .op = STORE_GET, .options = { .touch = true } },
	  { CTR_cmd_get, CTR_get_misses },
	  2 },
	{ "mg N", false, false, { .op = STORE_GET, .options = { .vivify = true } }, { CTR_cmd_get, CTR_get_hits }, 2 },
	{ "mg N, absent",
	  true,
	  false,
	  { .op = STORE_GET, .options = { .vivify = true } },
	  { CTR_cmd_get, CTR_get_hits, CTR_total_items },
	  3 },
	{ "mg N T, absent",
	  true,
	  false,
	  { .op = STORE_GET, .options = { .vivify = true, .touch = true } },
	  { CTR_cmd_touch, CTR_touch_hits, CTR_total_items },
	  3 },
	{ "mg R",
	  false,
	  false,
	  { .op = STORE_GET, .options = { .recache = true, .recache_seconds = 200 } },
	  { CTR_cmd_get, CTR_get_hits },
	  2 },
	{ "me", false, false, { .op = STORE_GET, .options = { .uncounted = true } }, { 0 }, 0 },
	{ "me, absent", true, false, { .op = STORE_GET, .options = { .uncounted = true } }, { 0 }, 0 },
	{ "gat", false, false, { .op = STORE_GAT }, { CTR_cmd_touch, CTR_touch_hits }, 2 },
	{ "gat, absent", true, false, { .op = STORE_GAT }, { CTR_cmd_touch, CTR_touch_misses }, 2 },
	{ "touch", false, false, { .op = STORE_TOUCH }, { CTR_cmd_touch, CTR_touch_hits }, 2 },
	{ "touch, absent", true, false, { .op = STORE_TOUCH }, { CTR_cmd_touch, CTR_touch_misses }, 2 },
	{ "ms", false, false, { .op = STORE_SET, .value = "1" }, { CTR_cmd_set, CTR_total_items }, 2 },
	{ "ms C",
	  false,
	  false,
	  { .op = STORE_SET, .value = "1", .options = { .compare_cas = true } },
	  { CTR_cmd_set, CTR_cas_hits, CTR_total_items },
	  3 },
	{ "ms C, differs",
	  false,
	  true,
	  { .op = STORE_SET, .value = "1", .options = { .compare_cas = true } },
	  { CTR_cmd_set, CTR_cas_badval },
	  2 },
	{ "ms C I, differs",
	  false,
	  true,
	  { .op = STORE_SET, .value = "1", .options = { .compare_cas = true, .invalidate = true } },
	  { CTR_cmd_set, CTR_cas_badval },
	  2 },
	{ "ms C, absent",
	  true,
	  false,
	  { .op = STORE_SET, .value = "1", .options = { .compare_cas = true } },
	  { CTR_cmd_set, CTR_cas_misses },
	  2 },
	{ "ms MR C",
	  false,
	  false,
	  { .op = STORE_REPLACE, .value = "1", .options = { .compare_cas = true } },
	  { CTR_cmd_set, CTR_cas_hits, CTR_total_items },
	  3 },
	{ "ms MR C, absent",
	  true,
	  false,
	  { .op = STORE_REPLACE, .value = "1", .options = { .compare_cas = true } },
	  { CTR_cmd_set, CTR_cas_misses },
	  2 },
	{ "ms ME C, absent",
	  true,
	  false,
	  { .op = STORE_ADD, .value = "1", .options = { .compare_cas = true } },
	  { CTR_cmd_set, CTR_total_items },
	  2 },
	{ "ms MA C",
	  false,
	  false,
	  { .op = STORE_APPEND, .value = "1", .options = { .compare_cas = true } },
	  { CTR_cmd_set, CTR_total_items },
	  2 },
	{ "ms MA C, differs",
	  false,
	  true,
	  { .op = STORE_APPEND, .value = "1", .options = { .compare_cas = true } },
	  { CTR_cmd_set },
	  1 },
	{ "ms MA, absent", true, false, { .op = STORE_APPEND, .value = "1" }, { CTR_cmd_set }, 1 },
	{ "ma", false, false, { .op = STORE_INCR }, { CTR_incr_hits }, 1 },
	{ "ma C, differs", false, true, { .op = STORE_INCR, .options = { .compare_cas = true } }, { 0 }, 0 },
	{ "ma, absent", true, false, { .op = STORE_INCR }, { CTR_incr_misses }, 1 },
	{ "ma N, absent", true, false, { .op = STORE_INCR, .options = { .vivify = true } }, { CTR_total_items }, 1 },
	{ "ma MD N", false, false, { .op = STORE_DECR, .options = { .vivify = true } }, { CTR_decr_hits }, 1 },
	{ "ma that grows", false, false, { .op = STORE_INCR, .delta = 90 }, { CTR_incr_hits, CTR_total_items }, 2 },
	{ "ma MD, absent", true, false, { .op = STORE_DECR }, { CTR_decr_misses }, 1 },
	{ "md", false, false, { .op = STORE_DELETE }, { CTR_delete_hits }, 1 },
	{ "md C, differs",
	  false,
	  true,
	  { .op = STORE_DELETE, .options = { .compare_cas = true } },
	  { CTR_delete_misses },
	  1 },
	{ "md, absent", true, false, { .op = STORE_DELETE }, { CTR_delete_misses }, 1 },
	{ "md I", false, false, { .op = STORE_DELETE, .options = { .invalidate = true } }, { 0 }, 0 },
	{ "md x",
	  false,
	  false,
	  { .op = STORE_DELETE, .options = { .drop_value = true } },
	  { CTR_delete_hits, CTR_total_items },
	  2 },
	{ "md x I",
	  false,
	  false,
	  { .op = STORE_DELETE, .options = { .drop_value = true, .invalidate = true } },
	  { CTR_total_items },
	  1 },
	{ "md I, absent",
	  true,
	  false,
	  { .op = STORE_DELETE, .options = { .invalidate = true } },
	  { CTR_delete_misses },
	  1 },
};

static const enum ctr WATCHED[] = {
	CTR_cmd_get,       CTR_cmd_set,    CTR_cmd_touch,   CTR_get_hits,     CTR_get_misses,  CTR_delete_hits,
	CTR_delete_misses, CTR_incr_hits,  CTR_incr_misses, CTR_decr_hits,    CTR_decr_misses, CTR_cas_hits,
	CTR_cas_misses,    CTR_cas_badval, CTR_touch_hits,  CTR_touch_misses, CTR_total_items,
};
#define WATCHED_COUNT (sizeof(WATCHED) / sizeof(WATCHED[0]))

static bool should_rise(const struct counted *counted, enum ctr counter)
{
	for (unsigned i = 0; i < counted->count; i++)
		if (counted->rises[i] == counter)
			return true;
	return false;
}

static void check(struct harness *h, const struct counted *counted, bool on_flash)
{
	struct asked asked = counted->asked;
	uint64_t before[WATCHED_COUNT], hits;

	run(h, STORE_DELETE, "key");
	if (!counted->absent)
		asked.cas = run_full(h, .op = STORE_SET, .key = "key", .value = "10", .length = 2, .exptime = 100).cas +
			    counted->differs;
	if (!counted->absent && on_flash)
		move(h, "key");
	for (unsigned i = 0; i < WATCHED_COUNT; i++)
		before[i] = ctr_sum(WATCHED[i]);
	hits = ctr_sum(CTR_dram_hits) + ctr_sum(CTR_flash_hits) - ctr_sum(CTR_get_hits);
	ask(h, "key", asked);
	if (ctr_sum(CTR_dram_hits) + ctr_sum(CTR_flash_hits) - ctr_sum(CTR_get_hits) != hits)
		fail_msg("%s%s: hits of both tiers are not all hits", counted->name, on_flash ? " on flash" : "");
	for (unsigned i = 0; i < WATCHED_COUNT; i++)
		if (ctr_sum(WATCHED[i]) - before[i] != (uint64_t)should_rise(counted, WATCHED[i]))
			fail_msg("%s%s: counter %u of the watched ones rose by %llu", counted->name,
				 on_flash ? " on flash" : "", i, (unsigned long long)(ctr_sum(WATCHED[i]) - before[i]));
}

static void each_request_counts_as_memcached_counts_it(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	for (unsigned i = 0; i < 2 * sizeof(COUNTED) / sizeof(COUNTED[0]); i++)
		check(h, &COUNTED[i / 2], i % 2);
}

/* The same rows as plain commands, where they have no options: these take another way through the code. */
static void check_plain(struct harness *h, const struct counted *counted)
{
	const struct asked *asked = &counted->asked;
	uint64_t before[WATCHED_COUNT], cas = 0;

	run(h, STORE_DELETE, "key");
	if (!counted->absent)
		cas = set(h, "key", "10").cas + counted->differs;
	for (unsigned i = 0; i < WATCHED_COUNT; i++)
		before[i] = ctr_sum(WATCHED[i]);
	if (asked->value)
		run_full(h, .op = asked->op, .key = "key", .value = asked->value,
			 .length = (uint32_t)strlen(asked->value), .cas = cas);
	else if (asked->op == STORE_INCR || asked->op == STORE_DECR)
		run_number(h, asked->op, "key", asked->delta);
	else
		run_expiry(h, asked->op, "key", asked->exptime);
	for (unsigned i = 0; i < WATCHED_COUNT; i++)
		if (ctr_sum(WATCHED[i]) - before[i] != (uint64_t)should_rise(counted, WATCHED[i]))
			fail_msg("%s, plain: counter %u of the watched ones rose by %llu", counted->name, i,
				 (unsigned long long)(ctr_sum(WATCHED[i]) - before[i]));
}

static void a_plain_command_counts_as_the_one_with_no_option_set(void **state)
{
	static const struct store_options none;
	struct harness *h = *state;
	unsigned plain = 0;

	harness_open(h);
	for (unsigned i = 0; i < sizeof(COUNTED) / sizeof(COUNTED[0]); i++)
		if (memcmp(&COUNTED[i].asked.options, &none, sizeof(none)) == 0) {
			check_plain(h, &COUNTED[i]);
			plain++;
		}
	assert_true(plain > 0);
}

static void a_get_is_counted_in_the_tier_that_had_the_object(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	uint64_t dram = ctr_sum(CTR_dram_hits), flash = ctr_sum(CTR_flash_hits);
	set(h, "key", "value");
	get(h, "key");
	get(h, "nothing");
	assert_int_equal(ctr_sum(CTR_dram_hits), dram + 1);
	assert_int_equal(ctr_sum(CTR_flash_hits), flash);
	move(h, "key");
	get(h, "key");
	assert_int_equal(ctr_sum(CTR_dram_hits), dram + 1);
	assert_int_equal(ctr_sum(CTR_flash_hits), flash + 1);
}

/* ---- by size class --------------------------------------------------------------------------- */

static struct store_class_status class_of(struct harness *h, unsigned class)
{
	struct store_class_status status;

	store_get_class(h->store, class, &status);
	return status;
}

static void a_class_counts_what_met_its_objects_and_no_miss(void **state)
{
	unsigned class = size_class(item_bytes(ITEM_BARE, 3, 2));
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	run(h, STORE_GET, "key");
	run(h, STORE_DELETE, "key");
	run_number(h, STORE_INCR, "key", 1);
	run_expiry(h, STORE_TOUCH, "key", 0);
	struct store_class_status status = class_of(h, class);
	assert_int_equal(status.get_hits | status.delete_hits | status.incr_hits | status.touch_hits, 0);
	uint64_t cas = set(h, "key", "10").cas;
	run(h, STORE_GET, "key");
	run_number(h, STORE_INCR, "key", 1);
	run_number(h, STORE_DECR, "key", 1);
	run_expiry(h, STORE_TOUCH, "key", 0);
	run_full(h, .op = STORE_CAS, .key = "key", .value = "11", .length = 2, .cas = cas); /* it has changed since */
	cas = set(h, "key", "10").cas;
	run_full(h, .op = STORE_CAS, .key = "key", .value = "11", .length = 2, .cas = cas);
	run_with(h, STORE_ADD, "key", "12"); /* not stored, and counted all the same */
	run(h, STORE_DELETE, "key");
	status = class_of(h, class);
	assert_int_equal(status.get_hits, 1);
	assert_int_equal(status.incr_hits, 1);
	assert_int_equal(status.decr_hits, 1);
	assert_int_equal(status.touch_hits, 1);
	assert_int_equal(status.cas_badval, 1);
	assert_int_equal(status.cas_hits, 1);
	assert_int_equal(status.set_count, 5);
	assert_int_equal(status.delete_hits, 1);
}

static void an_object_on_flash_counts_in_the_class_that_it_would_have(void **state)
{
	struct harness *h = *state;
	char value[400];

	harness_open(h);
	memset(value, 'v', sizeof(value));
	run_full(h, .op = STORE_SET, .key = "key", .value = value, .length = sizeof(value), .flags = 1);
	move(h, "key");
	unsigned class = size_class(store_item_bytes(h->store, 3, 1, sizeof(value)));
	assert_true(get(h, "key").from_flash);
	assert_int_equal(class_of(h, class).get_hits, 1);
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_int_equal(class_of(h, class).delete_hits, 1);
}

/* ---- for watchers ---------------------------------------------------------------------------- */

static struct store_told told_of(struct harness *h, struct flight *f)
{
	struct store_told told;

	memset(&told, 0xff, sizeof(told));
	assert_true(store_execute(h->worker[0], &f->request));
	store_tell(h->store, &f->request, &told);
	store_value_release(h->worker[0], &f->request.value);
	return told;
}

static struct store_told told_plain(struct harness *h, enum store_op op, int64_t exptime)
{
	struct flight f;

	flight_prepare(h, 0, &f, op, "key");
	f.request.expiry = store_expiry(h->store, exptime);
	return told_of(h, &f);
}

static struct store_told told_storing(struct harness *h, enum store_op op, int64_t exptime)
{
	enum store_result why;
	struct flight f;

	flight_prepare(h, 0, &f, op, "key");
	f.request.item = store_item_create(h->worker[0], "key", 3, 0, store_expiry(h->store, exptime), 100, &why);
	assert_non_null(f.request.item);
	memset(store_item_value(f.request.item), '1', 100);
	return told_of(h, &f);
}

static void assert_told(struct store_told told, unsigned class, uint32_t value_bytes, uint32_t ttl_seconds)
{
	assert_int_equal(told.class, class);
	assert_int_equal(told.value_bytes, value_bytes);
	assert_int_equal(told.ttl_seconds, ttl_seconds);
}

static void of_a_miss_a_watcher_is_told_nothing(void **state)
{
	static const enum store_op ops[] = { STORE_GET, STORE_GAT, STORE_DELETE, STORE_INCR };
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		assert_told(told_plain(h, ops[i], 0), 0, 0, 0);
}

static void a_watcher_is_told_of_the_object_that_a_request_met_or_brought(void **state)
{
	unsigned class = size_class(item_bytes(ITEM_BARE, 3, 100));
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	assert_told(told_storing(h, STORE_REPLACE, 50), class, 100, 50); /* not stored */
	assert_told(told_storing(h, STORE_SET, 50), class, 100, 50);
	assert_told(told_plain(h, STORE_GET, 0), class, 100, 0);
	assert_told(told_plain(h, STORE_GAT, 70), class, 100, 70);
	assert_told(told_plain(h, STORE_TOUCH, 0), class, 0, 0); /* never expires */
	assert_told(told_storing(h, STORE_ADD, -1), class, 100, UINT32_MAX); /* has expired */
	assert_told(told_plain(h, STORE_DELETE, 0), class, 0, 0);
	assert_told(told_plain(h, STORE_GET, 0), 0, 0, 0);
}

static void assert_met(struct store_told told, enum store_met met, unsigned class, uint32_t value_bytes)
{
	assert_int_equal(told.met, met);
	assert_int_equal(told.met_class, class);
	assert_int_equal(told.met_bytes, value_bytes);
}

static void a_watcher_of_look_ups_is_told_what_was_there_before(void **state)
{
	unsigned class = size_class(item_bytes(ITEM_BARE, 3, 100));
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	assert_int_equal(told_storing(h, STORE_SET, 0).met, STORE_MET_UNKNOWN); /* nobody watched then */
	events_want(1u << EVENT_FETCHERS);
	assert_met(told_storing(h, STORE_SET, 0), STORE_MET_IN_DRAM, class, 100);
	assert_met(told_storing(h, STORE_ADD, 0), STORE_MET_IN_DRAM, class, 100);
	assert_met(told_plain(h, STORE_GET, 0), STORE_MET_IN_DRAM, class, 100);
	assert_met(told_plain(h, STORE_TOUCH, 70), STORE_MET_IN_DRAM, class, 100);
	assert_met(told_plain(h, STORE_DELETE, 0), STORE_MET_IN_DRAM, class, 100);
	assert_met(told_plain(h, STORE_DELETE, 0), STORE_MET_NOTHING, 0, 0);
	assert_met(told_plain(h, STORE_GAT, 0), STORE_MET_NOTHING, 0, 0);
	assert_met(told_storing(h, STORE_REPLACE, 0), STORE_MET_NOTHING, 0, 0);
	assert_met(told_storing(h, STORE_SET, 0), STORE_MET_NOTHING, 0, 0);
	events_want(0);
}

/* A set and a blind delete don't read it: they know no size. */
static void a_watcher_of_look_ups_is_told_of_flash(void **state)
{
	struct harness *h = *state;
	struct flight f;

	harness_open(h);
	events_want(1u << EVENT_FETCHERS);
	set_on_flash(h, "key", "value");
	assert_met(told_storing(h, STORE_SET, 0), STORE_MET_ON_FLASH, 0, 0);
	assert_met(told_storing(h, STORE_SET, 0), STORE_MET_IN_DRAM, size_class(store_item_bytes(h->store, 3, 0, 100)),
		   100);
	set_on_flash(h, "key", "value");
	flight_prepare(h, 0, &f, STORE_DELETE, "key");
	f.request.has_options = f.request.options.blind = true;
	assert_met(told_of(h, &f), STORE_MET_ON_FLASH, 0, 0);
	set_on_flash(h, "key", "value");
	flight_prepare(h, 0, &f, STORE_DELETE, "key");
	if (!flight_execute(h, &f))
		drain(h, 0);
	struct store_told told;
	store_tell(h->store, &f.request, &told);
	assert_met(told, STORE_MET_ON_FLASH, size_class(store_item_bytes(h->store, 3, 0, 5)), 5);
	events_want(0);
}

/* Small objects and the pages that their hits have read; a read that is shared, and a larger object, say nothing of these. */
static void hits_of_small_objects_are_counted_with_their_pages(void **state)
{
	struct harness *h = *state;
	char large[1000] = { 0 };
	uint64_t hits, pages, all_pages, bytes;

	harness_open(h);
	memset(large, 'x', sizeof(large) - 1);
	set_on_flash(h, "large", large);
	set_on_flash(h, "small", "value");
	keep_no_reads(h);
	hits = ctr_sum(CTR_flash_small_hits), pages = ctr_sum(CTR_flash_small_pages_read);
	all_pages = ctr_sum(CTR_flash_pages_read), bytes = ctr_sum(CTR_flash_key_bytes_read);
	assert_true(get(h, "large").from_flash);
	assert_int_equal(ctr_sum(CTR_flash_small_hits) - hits, 0);
	assert_int_equal(ctr_sum(CTR_flash_small_pages_read) - pages, 0);
	assert_in_range(ctr_sum(CTR_flash_pages_read) - all_pages, 1, 2);
	assert_in_range(ctr_sum(CTR_flash_key_bytes_read) - bytes, 1024, 2 * SEG_PAGE);
	all_pages = ctr_sum(CTR_flash_pages_read), bytes = ctr_sum(CTR_flash_key_bytes_read);
	assert_true(get(h, "small").from_flash);
	assert_int_equal(ctr_sum(CTR_flash_small_hits) - hits, 1);
	assert_in_range(ctr_sum(CTR_flash_small_pages_read) - pages, 1, 2);
	assert_int_equal(ctr_sum(CTR_flash_pages_read) - all_pages, ctr_sum(CTR_flash_small_pages_read) - pages);
	assert_int_equal((ctr_sum(CTR_flash_key_bytes_read) - bytes) % 512, 0);
	assert_in_range(ctr_sum(CTR_flash_key_bytes_read) - bytes, 512, 2 * SEG_PAGE);
	h->worker[0]->reads.kept_most = 1 << 20;
	assert_true(get(h, "small").from_flash);
	pages = ctr_sum(CTR_flash_small_pages_read);
	assert_true(get(h, "small").from_flash);
	assert_int_equal(ctr_sum(CTR_flash_small_pages_read), pages);
	assert_int_equal(ctr_sum(CTR_flash_small_hits) - hits, 2); /* the third shares the second one's read */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_request_counts_as_memcached_counts_it),
		TEST(a_plain_command_counts_as_the_one_with_no_option_set),
		TEST(a_get_is_counted_in_the_tier_that_had_the_object),
		TEST(a_class_counts_what_met_its_objects_and_no_miss),
		TEST(an_object_on_flash_counts_in_the_class_that_it_would_have),
		TEST(of_a_miss_a_watcher_is_told_nothing),
		TEST(a_watcher_is_told_of_the_object_that_a_request_met_or_brought),
		TEST(a_watcher_of_look_ups_is_told_what_was_there_before),
		TEST(a_watcher_of_look_ups_is_told_of_flash),
		TEST(hits_of_small_objects_are_counted_with_their_pages),
	};

	return cmocka_run_group_tests_name("store: what is counted", tests, NULL, NULL);
}
