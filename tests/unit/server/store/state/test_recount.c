/* SPDX-License-Identifier: BSD-3-Clause */
/* The store before its index is counted, after a kill or a clean stop: it serves, changes hold, and nothing is decided by half a count. */
#include "server/store/state/recount.h"

#include <sys/stat.h>
#include <unistd.h>

#include "flashindex/layout_internal.h"
#include "server/store/state/restart.h"
#include "tests/unit/server/store/killed_child.h"

#define MINUTE_US 60000000ull
#define OBJECTS 30
#define KEY_BYTES 24

static char folder[100], state_folder[100];

static int setup_folders(void **state)
{
	struct harness *h;

	assert_int_equal(setup(state), 0);
	h = *state;
	snprintf(folder, sizeof(folder), "/dev/shm/flashield-recount-XXXXXX");
	snprintf(state_folder, sizeof(state_folder), "/dev/shm/flashield-recount-XXXXXX");
	assert_true(mkdtemp(folder) && mkdtemp(state_folder));
	h->config.region_dir = folder;
	h->config.restart_max_downtime_us = MINUTE_US;
	h->config.boot_id = "one boot";
	return 0;
}

static int teardown_folders(void **state)
{
	struct harness *h = *state;
	char path[200];

	snprintf(path, sizeof(path), "%s/%.80s.region", folder, strrchr(h->path, '/') + 1);
	unlink(path);
	snprintf(path, sizeof(path), "%s/%.80s.state", state_folder, strrchr(h->path, '/') + 1);
	unlink(path);
	return teardown(state) == 0 && rmdir(folder) == 0 && rmdir(state_folder) == 0 ? 0 : -1;
}

static const char *key_number(int n)
{
	static char key[KEY_BYTES];

	snprintf(key, sizeof(key), "object-%d", n);
	return key;
}

static void fill(struct harness *h)
{
	harness_open(h);
	for (int n = 0; n < OBJECTS; n++)
		set(h, key_number(n), key_number(n));
	for (int n = 0; n < OBJECTS; n++)
		if (where(h, key_number(n)) != FLASH)
			move(h, key_number(n));
}

static struct fidx_status index_status(struct harness *h)
{
	struct store_status status;

	store_get_status(h->store, &status);
	return status.index;
}

/* Opens what was killed; nothing is counted yet. */
static void open_uncounted(struct harness *h)
{
	harness_open(h);
	assert_string_equal(store_start_word(h->store->start), "attached");
	assert_true(fidx_is_counting(h->store->index));
	assert_true(index_status(h).uncounted > 0);
	assert_int_equal(index_status(h).used, 0);
}

static void assert_served(struct harness *h, int from)
{
	for (int n = from; n < OBJECTS; n++) {
		struct reply reply = get(h, key_number(n));

		assert_int_equal(reply.result, STORE_HIT);
		assert_string_equal(reply.value, key_number(n));
	}
}

static void objects_are_served_before_they_are_counted(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, fill);
	open_uncounted(h);
	assert_served(h, 0);
	set(h, key_number(0), "new");
	assert_int_equal(run(h, STORE_DELETE, key_number(1)).result, STORE_DELETED);
	assert_true(index_status(h).uncounted > 0);
	while (fidx_is_counting(h->store->index))
		assert_true(store_clean_step(h->store)); /* there is more to do */
	assert_int_equal(index_status(h).uncounted, 0);
	assert_true(index_status(h).used >= OBJECTS - 2);
	assert_true(fidx_verify(h->store->index));
	assert_value(h, key_number(0), "new");
	assert_missing(h, key_number(1));
	assert_served(h, 2);
	harness_close(h);
	harness_open(h);
	assert_missing(h, key_number(0)); /* it was in DRAM alone */
	assert_missing(h, key_number(1));
	assert_served(h, 2);
}

/* Under -M a segment is written anew when no slot names it; none is counted yet. */
static void an_uncounted_segment_is_not_taken_for_an_empty_one(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, fill);
	h->config.evict = false;
	open_uncounted(h);
	assert_true(write_one(h));
	assert_false(fidx_is_counting(h->store->index)); /* a write needs whole counts */
	while (write_one(h))
		assert_served(h, 0);
	assert_served(h, 0);
}

static int deleted;

static void delete_and_count(struct harness *h)
{
	open_uncounted(h);
	assert_int_equal(run(h, STORE_DELETE, key_number(deleted)).result, STORE_DELETED);
	recount_finish(h->store); /* the fault point is in there */
}

static void a_kill_in_the_recount_leaves_the_next_start_warm(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	run_in_killed_child(h, fill);
	for (deleted = 0; deleted < 6; deleted++) {
		fault_arm(FAULT_killed_in_recount, FAULT_AFTER, (uint64_t)deleted * deleted);
		run_in_killed_child(h, delete_and_count);
		fault_disarm_all();
		open_uncounted(h);
		for (int n = 0; n <= deleted; n++)
			assert_missing(h, key_number(n));
		assert_served(h, deleted + 1);
		recount_finish(h->store);
		assert_true(fidx_verify(h->store->index));
		harness_close(h);
	}
}

static void a_clean_stop_in_the_recount_saves_all(void **state)
{
	struct harness *h = *state;

	h->config.state_dir = state_folder;
	run_in_killed_child(h, fill);
	open_uncounted(h);
	assert_true(store_save(h->store));
	harness_close(h);
	harness_open(h);
	assert_string_equal(store_start_word(h->store->start), "warm");
	assert_served(h, 0);
	recount_finish(h->store);
	assert_true(index_status(h).used >= OBJECTS);
	assert_true(fidx_verify(h->store->index));
}

/* Served, changed, stopped and killed before a slot of the state file is counted: nothing is lost, and nothing comes back. */
static void a_loaded_state_is_served_before_it_is_counted(void **state)
{
	struct harness *h = *state;

	h->config.state_dir = state_folder;
	fill(h);
	for (int life = 0; life < 3; life++) {
		assert_true(store_save(h->store));
		harness_close(h);
		harness_open(h);
		assert_string_equal(store_start_word(h->store->start), "warm");
		assert_true(fidx_is_counting(h->store->index));
		assert_int_equal(index_status(h).used, 0);
		assert_served(h, 2 * life);
		set(h, key_number(2 * life), "new");
		assert_int_equal(run(h, STORE_DELETE, key_number(2 * life + 1)).result, STORE_DELETED);
		assert_true(index_status(h).uncounted > 0);
		for (int n = 0; n < 2 * life; n++)
			assert_missing(h, key_number(n));
	}
	harness_close(h); /* as a kill would: the region has all of it */
	harness_open(h);
	assert_string_equal(store_start_word(h->store->start), "attached");
	recount_finish(h->store);
	assert_true(fidx_verify(h->store->index));
	for (int n = 0; n < 6; n++)
		assert_missing(h, key_number(n));
	assert_served(h, 6);
}

static void fill_and_damage(struct harness *h)
{
	struct fidx_table tables[FIDX_TABLES];
	struct slot_layout layout;
	_Atomic uint32_t *slot;
	uint32_t segments;
	unsigned table = 0;

	fill(h);
	segments = store_segment_count(h->store);
	assert_true(layout_init(&layout, segments, 0));
	assert_true(segments < (1u << layout.segment_bits) - 1);
	fidx_tables(h->store->index, tables);
	while (tables[table].used == 0)
		table++;
	slot = ((struct bucket *)region_area(h->store->region, (enum region_area)(REGION_TABLE_0 + table)))->slot;
	while (slot_load(slot) == SLOT_EMPTY)
		slot++;
	atomic_fetch_or(slot, layout.segment_mask);
}

static void what_is_out_of_range_goes_and_counts(void **state)
{
	struct harness *h = *state;
	uint64_t before;

	run_in_killed_child(h, fill_and_damage);
	open_uncounted(h);
	before = ctr_sum(CTR_flash_objects_dropped);
	recount_finish(h->store);
	assert_int_equal(ctr_sum(CTR_flash_objects_dropped), before + 1);
	assert_true(fidx_verify(h->store->index));
}

static void fill_and_turn(struct harness *h)
{
	fill(h);
	for (unsigned n = 0; n < 20; n++)
		assert_true(write_one(h));
}

/* Kills may be many at the start already: then the cleaner's first step may write a segment of the chain, for which it reclaims another
   one. */
static void the_chain_waits_for_the_count(void **state)
{
	struct harness *h = *state;

	h->config.index = STORE_INDEX_FRUGAL;
	h->config.frugal_memory = 13;
	run_in_killed_child(h, fill_and_turn);
	harness_open(h);
	assert_string_equal(store_start_word(h->store->start), "attached");
	assert_true(fidx_is_counting(h->store->index));
	assert_int_equal(frugal_merge_begin(&h->store->merge, h->store->frugal), FS_OK);
	assert_true(chain_turn(h->store));
	assert_false(fidx_is_counting(h->store->index));
	assert_true(fidx_verify(h->store->index));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folders, teardown_folders)
	const struct CMUnitTest tests[] = {
		TEST(objects_are_served_before_they_are_counted),
		TEST(an_uncounted_segment_is_not_taken_for_an_empty_one),
		TEST(a_kill_in_the_recount_leaves_the_next_start_warm),
		TEST(a_clean_stop_in_the_recount_saves_all),
		TEST(a_loaded_state_is_served_before_it_is_counted),
		TEST(what_is_out_of_range_goes_and_counts),
		TEST(the_chain_waits_for_the_count),
	};

	return cmocka_run_group_tests_name("recount", tests, NULL, NULL);
}
