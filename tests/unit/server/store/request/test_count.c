/* SPDX-License-Identifier: BSD-3-Clause */
/* What extended requests count, as memcached 1.6.18 was seen to; the same from DRAM and from flash. */
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
	uint64_t before[WATCHED_COUNT];

	run(h, STORE_DELETE, "key");
	if (!counted->absent)
		asked.cas = run_full(h, .op = STORE_SET, .key = "key", .value = "10", .length = 2, .exptime = 100).cas +
			    counted->differs;
	if (!counted->absent && on_flash)
		move(h, "key");
	for (unsigned i = 0; i < WATCHED_COUNT; i++)
		before[i] = ctr_sum(WATCHED[i]);
	ask(h, "key", asked);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_request_counts_as_memcached_counts_it, setup, teardown),
	};

	return cmocka_run_group_tests_name("store: what is counted", tests, NULL, NULL);
}
