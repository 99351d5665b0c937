/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments of bins: commit, changes while they are written, and the table of kills. */
#include "server/store/state/bins.h"
#include "tests/unit/server/store/harness.h"

static int setup_frugal(void **state)
{
	int result = setup_in_memory(state);

	((struct harness *)*state)->config.index = STORE_INDEX_FRUGAL;
	harness_open(*state);
	return result;
}

static void overwrite(struct harness *h)
{
	assert_int_equal(where(h, "key"), PLANNED);
	assert_int_equal(set(h, "key", "two").result, STORE_STORED);
}

static void delete (struct harness *h)
{
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
}

static void count_up(struct harness *h)
{
	assert_int_equal(run_number(h, STORE_INCR, "key", 1).number, 8);
}

static void what_is_committed_has_left_memory(void **state)
{
	struct harness *h = *state;
	struct frugal_status status;

	set_on_flash(h, "key", "value");
	frugal_get_status(h->store->frugal, &status);
	assert_int_equal(status.segments, 1);
	assert_true(status.objects > 100 && status.objects == ctr_sum(CTR_flash_objects_written));
	assert_null(item_in_dram(h, "key"));
	assert_int_equal(atomic_load(&h->store->plan_bytes), 0);
}

static void a_change_while_it_is_written_holds(void **state)
{
	struct harness *h = *state;

	for (int phase = PHASE_GATHERED; phase <= PHASE_WRITTEN; phase++) {
		assert_int_equal(set(h, "key", "one").result, STORE_STORED);
		while_planned(h, "key", (enum phase)phase, overwrite);
		assert_value(h, "key", "two");
		assert_int_equal(where(h, "key"), DRAM);
		assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
		assert_missing(h, "key");
		assert_true(write_one(h));
		assert_missing(h, "key");
	}
}

static void what_is_deleted_while_it_is_written_stays_gone(void **state)
{
	struct harness *h = *state;

	for (int phase = PHASE_GATHERED; phase <= PHASE_WRITTEN; phase++) {
		assert_int_equal(set(h, "key", "one").result, STORE_STORED);
		while_planned(h, "key", (enum phase)phase, delete);
		assert_missing(h, "key");
		assert_true(write_one(h));
		assert_missing(h, "key");
	}
}

static void a_number_that_counts_while_it_is_written_holds(void **state)
{
	struct harness *h = *state;

	assert_int_equal(set(h, "key", "7").result, STORE_STORED);
	while_planned(h, "key", PHASE_WRITTEN, count_up);
	assert_value(h, "key", "8");
	move(h, "key");
	assert_value(h, "key", "8");
}

static struct stripe *stripe_of_key(struct harness *h)
{
	return store_stripe(h->store, store_hash(h->store, "key", 3));
}

static void freeze(struct harness *h)
{
	stripe_of_key(h)->frozen++;
}

static void what_a_commit_passes_by_is_kept_and_a_change_of_it_holds(void **state)
{
	struct harness *h = *state;

	assert_int_equal(set(h, "key", "one").result, STORE_STORED);
	while_planned(h, "key", PHASE_WRITTEN, freeze);
	stripe_of_key(h)->frozen--;
	assert_int_equal(where(h, "key"), DRAM);
	assert_true(item_in_dram(h, "key")->state & ITEM_KEPT);
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_missing(h, "key"); /* its record is in an open segment */
	assert_true(write_one(h));
	assert_missing(h, "key");
}

/* Sets further keys of the stripe of "key", from number *n on. */
static void set_in_stripe(struct harness *h, unsigned *n, unsigned count)
{
	char key[16];

	while (count > 0) {
		snprintf(key, sizeof(key), "k-%u", (*n)++);
		if (store_stripe(h->store, store_hash(h->store, key, strlen(key))) != stripe_of_key(h))
			continue;
		assert_int_equal(set(h, key, "value").result, STORE_STORED);
		count--;
	}
}

static unsigned next_in_stripe;

/* Once the key is planned it is overwritten, and its stripe's table grows, so that the walk for candidates begins anew. */
static void overwrite_and_grow(void *context)
{
	struct harness *h = context;
	const struct item *item = item_in_dram(h, "key");
	uint32_t lines = stripe_lines(stripe_of_key(h));

	if (!item || !(item->state & ITEM_PLANNED))
		return;
	fault_arm(FAULT_cleaner_step, FAULT_OFF, 0);
	assert_int_equal(set(h, "key", "two").result, STORE_STORED);
	while (stripe_lines(stripe_of_key(h)) == lines)
		set_in_stripe(h, &next_in_stripe, 1);
}

static void what_is_gathered_twice_is_not_written(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	next_in_stripe = 0;
	assert_int_equal(set(h, "key", "one").result, STORE_STORED);
	set_in_stripe(h, &next_in_stripe, 400);
	fault_call(FAULT_cleaner_step, overwrite_and_grow, h);
	fault_arm(FAULT_cleaner_step, FAULT_ALWAYS, 0);
	assert_true(write_one(h));
	assert_int_not_equal(next_in_stripe, 0);
	assert_value(h, "key", "two");
	move(h, "key");
	assert_value(h, "key", "two");
}

/* A walk may have pinned the segment before it is opened. */
static void note_a_read(struct harness *h)
{
	assert_false(bins_was_read(h->store, h->writing, 4711));
	bins_set_read(h->store, h->writing, 4711);
	assert_true(bins_was_read(h->store, h->writing, 4711));
}

static void reads_can_be_noted_as_soon_as_a_segment_is_live(void **state)
{
	struct harness *h = *state;

	assert_int_equal(set(h, "key", "one").result, STORE_STORED);
	while_planned(h, "key", PHASE_WRITTEN, note_a_read);
	assert_true(bins_was_read(h->store, segment_of(h, "key"), 4711));
}

static void a_write_that_fails_leaves_no_bits_of_reads(void **state)
{
	struct harness *h = *state;

	uint64_t errors = ctr_sum(CTR_flash_write_errors);

	assert_int_equal(set(h, "key", "one").result, STORE_STORED);
	ram_fault_arm(h->ram, RAM_FAULT_write_eio, FAULT_ALWAYS, 0);
	for (unsigned n = 0; n < 127 * 127; n++) {
		char key[3] = { (char)(0x80 + n % 127), (char)(0x80 + n / 127), 0 };

		assert_int_equal(set(h, key, "").result, STORE_STORED);
	}
	assert_false(write_segment(h->store, 1u << GROUP_SMALL));
	assert_true(ctr_sum(CTR_flash_write_errors) > errors);
	ram_fault_arm(h->ram, RAM_FAULT_write_eio, FAULT_OFF, 0);
	assert_int_equal(atomic_load(&h->store->bins_reads_bytes), 0);
	move(h, "key");
	assert_value(h, "key", "one");
}

/* Changes while a segment is written, for which the table of kills has no room. */
static void delete_fillers(struct harness *h)
{
	for (unsigned n = 0; n < 127 * 127; n++) {
		char key[3] = { (char)(0x80 + n % 127), (char)(0x80 + n / 127), 0 };

		(void)run(h, STORE_DELETE, key);
	}
	assert_true(ctr_sum(CTR_frugal_watermarks) > 0);
}

static void what_is_written_in_vain_stays_in_memory(void **state)
{
	struct harness *h = *state;

	h->config.index = STORE_INDEX_FRUGAL;
	h->config.frugal_kill_bytes = 64;
	h->config.flash_object_bytes = 1 << 20; /* one partition */
	harness_open(h);
	assert_int_equal(set(h, "key", "one").result, STORE_STORED);
	while_planned(h, "key", PHASE_WRITTEN, delete_fillers);
	assert_int_equal(where(h, "key"), DRAM);
	assert_value(h, "key", "one");
	move(h, "key");
	assert_value(h, "key", "one");
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_missing(h, "key");
}

/* The object stays in DRAM, and an equal record lies in a segment of bins. Returns the segment. */
static uint32_t keep(struct harness *h)
{
	assert_int_equal(set(h, "key", "one").result, STORE_STORED);
	while_planned(h, "key", PHASE_WRITTEN, freeze);
	stripe_of_key(h)->frozen--;
	assert_true(item_in_dram(h, "key")->state & ITEM_KEPT);
	return segment_of(h, "key");
}

/* A search in vain notes that the key is absent, which spares the next set a kill: that must not outlive the commit. */
static void what_was_absent_and_is_kept_can_be_evicted_and_set_anew(void **state)
{
	struct harness *h = *state;
	struct store *store = h->store;
	uint64_t hash = store_hash(store, "key", 3), visited;
	struct frugal_key key;

	frugal_key_of(store->frugal, hash, &key);
	frugal_note_absent(store->frugal, &key);
	(void)keep(h);
	assert_true(frugal_may_hold(store->frugal, &key));
	for (unsigned tries = 0; tries < 10 && item_in_dram(h, "key"); tries++)
		(void)evict_dram(&store->cleaner->context, 1 << 20, 10000, EVICT_ALL, false, &visited);
	assert_null(item_in_dram(h, "key"));
	assert_value(h, "key", "one");
	assert_int_equal(set(h, "key", "two").result, STORE_STORED);
	assert_int_equal(slots_of(h, "key"), 0);
}

/* Small objects share a segment of slots with larger ones where neither fills one. */
static void move_to_a_slot(struct harness *h)
{
	static char large[3000];
	struct fidx_match match;

	memset(large, 'l', sizeof(large) - 1);
	lock_acquire(&stripe_of_key(h)->lock);
	candidate_set(h->store, stripe_of_key(h), item_in_dram(h, "key"));
	lock_release(&stripe_of_key(h)->lock);
	for (unsigned tries = 0; tries < 100 && where(h, "key") == DRAM; tries++) {
		assert_int_equal(set(h, "large", large).result, STORE_STORED);
		(void)write_one(h);
	}
	assert_int_equal(where(h, "key"), FLASH);
	assert_true(slot_of(h, "key", &match));
}

static void an_object_that_is_kept_and_goes_to_a_slot_leaves_its_bin(void **state)
{
	struct harness *h = *state;
	uint32_t segment = keep(h);

	move_to_a_slot(h);
	assert_int_equal(slots_of(h, "key"), 1);
	assert_value(h, "key", "one");
	h->store->config.reinsertion = STORE_REINSERT_LIVE;
	assert_true(reclaim_segment(h->store, segment));
	assert_null(item_in_dram(h, "key")); /* else its slot would outlive a change */
	assert_int_equal(set(h, "key", "two").result, STORE_STORED);
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_int_equal(slots_of(h, "key"), 0);
	assert_missing(h, "key");
}

/* A touch keeps the id: the old record in a bin has that of the copy. */
static void a_copy_of_a_slot_whose_old_bin_is_reclaimed_can_be_changed(void **state)
{
	struct harness *h = *state;
	uint32_t segment;

	if (!HAVE_FAULTS)
		skip();
	set_on_flash(h, "key", "one");
	segment = segment_of(h, "key");
	assert_int_equal(run_expiry(h, STORE_TOUCH, "key", 1000).result, STORE_TOUCHED);
	move_to_a_slot(h);
	make_clean_copy(h, "key");
	assert_int_equal(frugal_take_kills(h->store->frugal), FS_OK);
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_int_equal(slots_of(h, "key"), 0);
	assert_missing(h, "key");
}

static void a_copy_that_relieves_a_kept_object_has_no_record(void **state)
{
	struct store_value *held = mem_must_zalloc(ITEM_REFS_MAX * sizeof(*held));
	struct harness *h = *state;
	struct item *item;

	(void)keep(h);
	item = item_in_dram(h, "key");
	for (unsigned i = 0; i < ITEM_REFS_MAX; i++) {
		struct flight f;

		flight_prepare(h, 0, &f, STORE_GET, "key");
		store_worker_turn(h->worker[0]);
		assert_true(store_execute(h->worker[0], &f.request));
		held[i] = f.request.value;
	}
	assert_ptr_not_equal(item_in_dram(h, "key"), item);
	assert_int_equal(slots_of(h, "key"), 0);
	for (unsigned i = 0; i < ITEM_REFS_MAX; i++)
		store_value_release(h->worker[0], &held[i]);
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_missing(h, "key");
	mem_free(held);
}

/* Deletes fillers, of which most are on flash, and writes nothing meanwhile. */
static void delete_until_crowded(struct harness *h)
{
	for (unsigned n = 0; n < 14; n++)
		assert_true(write_one(h));
	for (unsigned n = 0; n < 127 * 127 && !frugal_is_crowded(h->store->frugal); n++) {
		char key[3] = { (char)(0x80 + n % 127), (char)(0x80 + n / 127), 0 };

		(void)run(h, STORE_DELETE, key);
	}
	assert_true(frugal_is_crowded(h->store->frugal));
}

/* Its scheduling tells whether a segment's cycle begins without pauses. */
static bool begins_hurried(struct harness *h)
{
	struct cleaner *cleaner = h->store->cleaner;
	bool hurried;

	cleaner->background.threaded = true; /* or nothing is scheduled */
	cleaner->pace.hurried = false;
	pace_begin(h->store);
	hurried = cleaner->pace.hurried;
	cleaner->background.threaded = false;
	return hurried;
}

/* However much memory is free: until the kills are taken, further ones cost other keys' objects. */
static void while_kills_wait_the_cleaner_makes_no_pauses(void **state)
{
	struct harness *h = *state;

	h->store->cleaner->pace.demand = 0;
	assert_false(pace_hurry(h->store));
	assert_false(begins_hurried(h));
	delete_until_crowded(h);
	h->store->cleaner->pace.demand = 0;
	assert_true(pace_hurry(h->store));
	assert_true(begins_hurried(h));
}

/* Clients delete, and set little: kills are listed in memory, of which -m gives the index a half. */
static void kills_without_memory_cost_the_oldest_segments(void **state)
{
	struct harness *h = *state;
	uint64_t limit = store_memory_limit(h->store), reclaimed;
	struct frugal_status before, status;

	set_on_flash(h, "key", "value");
	delete_until_crowded(h);
	frugal_get_status(h->store->frugal, &before);
	atomic_store(&h->store->memory_limit, 2 * frugal_memory(h->store->frugal));
	reclaimed = ctr_sum(CTR_segments_reclaimed);
	h->store->cleaner->saves = true; /* at the stop no segment is given up */
	bins_step(h->store);
	assert_int_equal(ctr_sum(CTR_segments_reclaimed), reclaimed);
	h->store->cleaner->saves = false;
	for (unsigned n = 0; n < 100 && frugal_is_crowded(h->store->frugal); n++)
		bins_step(h->store);
	frugal_get_status(h->store->frugal, &status);
	assert_false(frugal_is_crowded(h->store->frugal));
	assert_true(ctr_sum(CTR_segments_reclaimed) > reclaimed && status.segments < before.segments);
	assert_true(frugal_memory(h->store->frugal) <= store_memory_limit(h->store) / 2);
	atomic_store(&h->store->memory_limit, limit);
	set_on_flash(h, "key", "two");
	assert_value(h, "key", "two");
}

static void a_table_of_kills_that_fills_up_is_taken_over(void **state)
{
	struct harness *h = *state;
	struct frugal_status status;

	delete_until_crowded(h);
	set_on_flash(h, "key", "value");
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	assert_int_equal(frugal_take_kills(h->store->frugal), FS_OK);
	frugal_get_status(h->store->frugal, &status);
	assert_int_equal(status.kills, 0);
	assert_true(status.kills_listed > 0);
	assert_missing(h, "key");
}

/* Until they are taken over, each further kill may cost objects of other keys. */
static void a_table_of_kills_that_fills_up_lets_the_cleaner_hurry(void **state)
{
	struct harness *h = *state;
	uint64_t watermarks = ctr_sum(CTR_frugal_watermarks);
	struct frugal_status status;

	assert_false(pace_hurry(h->store));
	delete_until_crowded(h);
	frugal_get_status(h->store->frugal, &status);
	assert_true(status.kills < status.kills_most / 2); /* there is room for those that come until then */
	assert_true(pace_hurry(h->store));
	bins_step(h->store);
	assert_false(pace_hurry(h->store));
	frugal_get_status(h->store->frugal, &status);
	assert_int_equal(status.kills, 0);
	assert_int_equal(ctr_sum(CTR_frugal_watermarks), watermarks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_committed_has_left_memory, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(a_change_while_it_is_written_holds, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(what_is_deleted_while_it_is_written_stays_gone, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(a_number_that_counts_while_it_is_written_holds, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(what_a_commit_passes_by_is_kept_and_a_change_of_it_holds, setup_frugal,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_written_in_vain_stays_in_memory, setup_in_memory, teardown),
		cmocka_unit_test_setup_teardown(reads_can_be_noted_as_soon_as_a_segment_is_live, setup_frugal,
						teardown),
		cmocka_unit_test_setup_teardown(a_write_that_fails_leaves_no_bits_of_reads, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(what_is_gathered_twice_is_not_written, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(what_was_absent_and_is_kept_can_be_evicted_and_set_anew, setup_frugal,
						teardown),
		cmocka_unit_test_setup_teardown(an_object_that_is_kept_and_goes_to_a_slot_leaves_its_bin, setup_frugal,
						teardown),
		cmocka_unit_test_setup_teardown(a_copy_of_a_slot_whose_old_bin_is_reclaimed_can_be_changed,
						setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(a_copy_that_relieves_a_kept_object_has_no_record, setup_frugal,
						teardown),
		cmocka_unit_test_setup_teardown(kills_without_memory_cost_the_oldest_segments, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(while_kills_wait_the_cleaner_makes_no_pauses, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(a_table_of_kills_that_fills_up_is_taken_over, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(a_table_of_kills_that_fills_up_lets_the_cleaner_hurry, setup_frugal,
						teardown),
	};

	return cmocka_run_group_tests_name("store: bins", tests, NULL, NULL);
}
