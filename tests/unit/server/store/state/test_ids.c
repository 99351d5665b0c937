/* SPDX-License-Identifier: BSD-3-Clause */
/* CAS ids over restarts, kills and a device that is offline: small, rising, and never given twice. */
#include "server/store/state/ids.h"

#include <pthread.h>

#include "tests/unit/server/store/harness.h"

#define IDS_MOST ((uint64_t)1 << 53)

_Static_assert(IDS_MOST / IDS_RESERVE >= 1000000, "so many kills");

/* The bytes of the flash, over all lives of a test. */
static uint8_t *memory;

static int setup_memory(void **state)
{
	struct harness *h;

	assert_int_equal(setup(state), 0);
	h = *state;
	memory = ram_memory(h->config.flash_bytes);
	return 0;
}

static int teardown_memory(void **state)
{
	int result = teardown(state);

	mem_free(memory);
	return result;
}

static void live(struct harness *h)
{
	h->ram = ram_device_create(h->config.flash_bytes, memory);
	h->config.flash_device = &h->ram->dev;
	harness_open(h);
}

/* The end of a life, cleanly or by a kill. */
static void end(struct harness *h, bool clean)
{
	if (clean)
		assert_false(store_save(h->store)); /* there is no --state-dir */
	harness_close(h);
}

static uint64_t next_id(struct harness *h)
{
	return set(h, "key", "value").cas;
}

static void go_offline(struct harness *h)
{
	atomic_store(&h->ram->fail_writes, true);
	for (unsigned n = 0; n < 100 && !seg_offline(h->store->segments); n++) {
		atomic_store(&h->store->cas_next, atomic_load(&h->store->cas_reserved) - IDS_RESERVE / 2);
		store_clean_step(h->store);
	}
	assert_true(seg_offline(h->store->segments));
}

static void come_back(struct harness *h)
{
	atomic_store(&h->ram->fail_writes, false);
	seconds_pass(h, 100);
	store_clean_step(h->store);
	assert_false(seg_offline(h->store->segments));
}

/* ---- restarts -------------------------------------------------------------------------------- */

static void without_flash_they_begin_at_1(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	assert_int_equal(next_id(h), 1);
	assert_int_equal(next_id(h), 2);
}

static void clean_stops_leave_no_gap(void **state)
{
	struct harness *h = *state;

	for (uint64_t id = 1; id < 50; id += 2) {
		live(h);
		assert_int_equal(next_id(h), id);
		assert_int_equal(next_id(h), id + 1);
		end(h, true);
	}
	live(h);
	assert_int_equal(next_id(h), 51);
}

static void a_kill_costs_the_reserve(void **state)
{
	struct harness *h = *state;
	uint64_t last = 0;

	for (unsigned kill = 0; kill < 5; kill++) {
		uint64_t id;

		live(h);
		id = next_id(h);
		assert_true(id > last && id <= last + 1 + IDS_RESERVE);
		last = id;
		end(h, false);
	}
	/* Also when it follows a clean stop, of which it takes the rest. */
	live(h);
	last = next_id(h);
	end(h, true);
	live(h);
	assert_int_equal(next_id(h), last + 1);
	end(h, false);
	live(h);
	assert_true(next_id(h) > last + 1);
}

static void nothing_is_flushed_by_a_start(void **state)
{
	struct harness *h = *state;

	live(h);
	next_id(h);
	assert_value(h, "key", "value");
	store_flush_all(h->store, 0);
	assert_missing(h, "key");
	end(h, true);
	live(h);
	next_id(h);
	assert_value(h, "key", "value");
}

/* ---- the reserve ----------------------------------------------------------------------------- */

static void a_reserve_is_extended_now_and_then(void **state)
{
	struct harness *h = *state;
	uint64_t reserved, writes;

	live(h);
	reserved = atomic_load(&h->store->cas_reserved);
	assert_int_equal(reserved, 1 + IDS_RESERVE);
	writes = h->ram->writes;
	for (unsigned n = 0; n < 10; n++)
		store_clean_step(h->store);
	assert_int_equal(h->ram->writes, writes);
	atomic_store(&h->store->cas_next, IDS_RESERVE / 4 + 1);
	store_clean_step(h->store);
	assert_int_equal(h->ram->writes, writes + 2);
	assert_int_equal(atomic_load(&h->store->cas_reserved), IDS_RESERVE / 4 + 1 + IDS_RESERVE);
	end(h, false);
	live(h);
	assert_int_equal(next_id(h), IDS_RESERVE / 4 + 1 + IDS_RESERVE);
}

/* ---- offline --------------------------------------------------------------------------------- */

static void offline_they_go_on_and_never_repeat(void **state)
{
	struct harness *h = *state;
	uint64_t reserved, before, beyond, last;

	live(h);
	go_offline(h);
	reserved = atomic_load(&h->store->cas_reserved);
	atomic_store(&h->store->cas_next, reserved - 1);
	before = seg_clock_cas();
	assert_int_equal(next_id(h), reserved - 1);
	beyond = next_id(h);
	assert_true(beyond >= before && beyond <= seg_clock_cas() && beyond < IDS_MOST);
	assert_int_equal(next_id(h), beyond + 1);
	store_clean_step(h->store);
	last = next_id(h);
	assert_int_equal(last, beyond + 2);
	/* flush_all comes after them all. */
	store_flush_all(h->store, 0);
	assert_missing(h, "key");
	end(h, false);
	/* The next life begins below. */
	live(h);
	assert_int_equal(next_id(h), reserved);
	/* It has them behind it when the device comes back. */
	go_offline(h);
	atomic_store(&h->store->cas_next, atomic_load(&h->store->cas_reserved));
	beyond = next_id(h);
	assert_true(beyond >= before);
	come_back(h);
	assert_int_equal(next_id(h), beyond + 1);
	assert_true(atomic_load(&h->store->cas_reserved) > beyond + IDS_RESERVE / 2);
	/* Another time offline in one life, sooner than the clock overtakes the reserve. */
	go_offline(h);
	reserved = atomic_load(&h->store->cas_reserved);
	atomic_store(&h->store->cas_next, reserved - 1);
	assert_int_equal(next_id(h), reserved - 1);
	beyond = next_id(h);
	assert_true(beyond >= reserved + (IDS_RESERVE << 6) && beyond < IDS_MOST);
	end(h, false);
	live(h);
	assert_int_equal(next_id(h), reserved);
}

static void a_clean_stop_after_all_that_leaves_no_gap(void **state)
{
	struct harness *h = *state;
	uint64_t beyond;

	live(h);
	go_offline(h);
	atomic_store(&h->store->cas_next, atomic_load(&h->store->cas_reserved));
	beyond = next_id(h);
	come_back(h);
	end(h, true);
	live(h);
	assert_int_equal(next_id(h), beyond + 1);
}

/* A clean end while the device is offline gives nothing back. */
static void a_stop_offline_is_like_a_kill(void **state)
{
	struct harness *h = *state;
	uint64_t reserved;

	live(h);
	go_offline(h);
	reserved = atomic_load(&h->store->cas_reserved);
	end(h, true);
	live(h);
	assert_int_equal(next_id(h), reserved);
}

/* Objects whose ids are not reserved wait in memory. */
static void ids_without_a_reserve_are_not_written(void **state)
{
	struct harness *h = *state;

	live(h);
	assert_true(ids_reserve(h->store));
	atomic_store(&h->store->cas_next, atomic_load(&h->store->cas_reserved) + 5);
	atomic_store(&h->ram->fail_writes, true);
	assert_false(ids_reserve(h->store));
	atomic_store(&h->ram->fail_writes, false);
	assert_true(ids_reserve(h->store));
}

/* ---- threads --------------------------------------------------------------------------------- */

#define TAKERS 4
#define TAKEN 2000

struct taker {
	struct store *store;
	pthread_t thread;
	uint64_t ids[TAKEN];
};

static void *take_ids(void *context)
{
	struct taker *taker = context;

	for (unsigned n = 0; n < TAKEN; n++)
		taker->ids[n] = store_next_cas(taker->store);
	return NULL;
}

static int compare_ids(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void threads_that_meet_the_end_share_no_id(void **state)
{
	struct harness *h = *state;
	static struct taker takers[TAKERS];
	static uint64_t all[TAKERS * TAKEN];
	uint64_t reserved, begun = seg_clock_cas();

	live(h);
	reserved = atomic_load(&h->store->cas_reserved);
	atomic_store(&h->store->cas_next, reserved - TAKEN);
	for (unsigned t = 0; t < TAKERS; t++) {
		takers[t].store = h->store;
		assert_int_equal(pthread_create(&takers[t].thread, NULL, take_ids, &takers[t]), 0);
	}
	for (unsigned t = 0; t < TAKERS; t++) {
		assert_int_equal(pthread_join(takers[t].thread, NULL), 0);
		memcpy(all + (size_t)t * TAKEN, takers[t].ids, sizeof(takers[t].ids));
		for (unsigned n = 1; n < TAKEN; n++)
			assert_true(takers[t].ids[n] > takers[t].ids[n - 1]);
	}
	qsort(all, TAKERS * TAKEN, sizeof(all[0]), compare_ids);
	for (unsigned n = 0; n < TAKERS * TAKEN; n++) {
		assert_true(n == 0 || all[n] > all[n - 1]);
		assert_true(n < TAKEN ? all[n] == reserved - TAKEN + n : all[n] >= begun);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_memory, teardown_memory)
	const struct CMUnitTest tests[] = {
		TEST(without_flash_they_begin_at_1),
		TEST(clean_stops_leave_no_gap),
		TEST(a_kill_costs_the_reserve),
		TEST(nothing_is_flushed_by_a_start),
		TEST(a_reserve_is_extended_now_and_then),
		TEST(offline_they_go_on_and_never_repeat),
		TEST(a_clean_stop_after_all_that_leaves_no_gap),
		TEST(a_stop_offline_is_like_a_kill),
		TEST(ids_without_a_reserve_are_not_written),
		TEST(threads_that_meet_the_end_share_no_id),
	};

	return cmocka_run_group_tests_name("ids", tests, NULL, NULL);
}
