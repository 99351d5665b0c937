/* SPDX-License-Identifier: BSD-3-Clause */
/* The frugal index's chain on flash: what is found through it, and merges that fail. */
#include "segments/bins.h"
#include "server/store/state/bins.h"
#include "tests/unit/server/store/harness.h"

#define AGE_WRITES 12u
#define FAILURES 8u

static int setup_chain(void **state)
{
	int result = setup_in_memory(state);
	struct harness *h = *state;

	h->config.index = STORE_INDEX_FRUGAL;
	h->config.frugal_memory = 13; /* two of 16 segments */
	harness_open(h);
	keep_no_reads(h);
	return result;
}

/* Merges are due when most columns are in memory. */
static int setup_lazy(void **state)
{
	int result = setup_in_memory(state);
	struct harness *h = *state;

	h->config.index = STORE_INDEX_FRUGAL;
	h->config.frugal_memory = 90;
	harness_open(h);
	keep_no_reads(h);
	return result;
}

/* Chains of several segments: many keys, and small segments. */
static int setup_long(void **state)
{
	int result = setup_in_memory(state);
	struct harness *h = *state;

	h->config.index = STORE_INDEX_FRUGAL;
	h->config.frugal_memory = 20;
	h->config.memory_bytes = 16u << 20;
	h->config.flash_bytes = 160 * (64u << 10);
	h->config.flash_object_bytes = 60;
	harness_open(h);
	keep_no_reads(h);
	return result;
}

static int setup_one_partition(void **state)
{
	int result = setup_in_memory(state);
	struct harness *h = *state;

	h->config.index = STORE_INDEX_FRUGAL;
	h->config.frugal_memory = 20;
	h->config.memory_bytes = 16u << 20;
	h->config.flash_bytes = 160 * (64u << 10);
	h->config.flash_object_bytes = 1u << 20;
	harness_open(h);
	keep_no_reads(h);
	return result;
}

static struct frugal_status status_of(struct harness *h)
{
	struct frugal_status status;

	frugal_get_status(h->store->frugal, &status);
	return status;
}

/* What does the search of a key come to without a read? */
static enum frugal_answer search(struct harness *h, const char *key, struct frugal_found *out)
{
	uint64_t hash = store_hash(h->store, key, strlen(key));
	struct stripe *stripe = store_stripe(h->store, hash);
	enum frugal_answer answer;
	struct frugal_key k;

	frugal_key_of(h->store->frugal, hash, &k);
	lock_acquire(&stripe->lock);
	answer = frugal_find(h->store->frugal, &k, UINT64_MAX, out);
	lock_release(&stripe->lock);
	return answer;
}

static bool is_in_chain(struct harness *h, const char *key)
{
	struct frugal_found found;

	return search(h, key, &found) == FRUGAL_CHAIN;
}

/* Writes segments until nothing in memory leads to the key, which is on flash. */
static void age(struct harness *h, const char *key)
{
	for (unsigned n = 0; n < AGE_WRITES && !is_in_chain(h, key); n++)
		assert_true(write_one(h));
	assert_true(is_in_chain(h, key));
}

/* Makes a new chain of one segment. */
static void merge_now(struct harness *h)
{
	assert_int_equal(frugal_merge_begin(&h->store->merge, h->store->frugal), FS_OK);
	h->store->cleaner->chain_partition = 0;
	assert_true(chain_turn(h->store));
	assert_null(h->store->merge);
}

/* ---- what is found ----------------------------------------------------------------------------- */

static void what_is_in_the_chain_costs_two_reads(void **state)
{
	struct harness *h = *state;
	uint64_t reads, chain_reads, merges = ctr_sum(CTR_frugal_merges);
	uint64_t unread = ctr_sum(CTR_frugal_chain_records_unread);

	set_on_flash(h, "key", "value");
	age(h, "key");
	assert_int_equal(ctr_sum(CTR_frugal_chain_records_unread), unread);
	assert_int_equal(ctr_sum(CTR_frugal_merges), merges + 1);
	assert_true(status_of(h).columns_in_chain >= 2 && status_of(h).chain_segments == 1);
	reads = ctr_sum(CTR_flash_reads);
	chain_reads = ctr_sum(CTR_frugal_chain_reads);
	assert_value(h, "key", "value");
	assert_int_equal(ctr_sum(CTR_flash_reads), reads + 2);
	assert_int_equal(ctr_sum(CTR_frugal_chain_reads), chain_reads + 1);
	assert_int_equal(run_with(h, STORE_APPEND, "key", "+").result, STORE_STORED);
	assert_value(h, "key", "value+");
}

/* A connection may pipeline a get and a set of the same key. */
static void an_object_that_is_changed_between_the_two_reads_answers_the_get(void **state)
{
	struct harness *h = *state;
	struct flight flight;
	struct reply reply;

	set_on_flash(h, "key", "old");
	age(h, "key");
	assert_false(start(h, 0, &flight, STORE_GET, "key"));
	set(h, "key", "new");
	reply = finish(h, &flight);
	assert_int_equal(reply.result, STORE_HIT);
	assert_int_equal(reply.length, 3);
	assert_memory_equal(reply.value, "old", 3);
	assert_value(h, "key", "new");
	move(h, "key");
	age(h, "key");
	assert_false(start(h, 0, &flight, STORE_GET, "key"));
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	reply = finish(h, &flight);
	assert_int_equal(reply.result, STORE_HIT);
	assert_memory_equal(reply.value, "new", 3);
	assert_missing(h, "key");
}

static void the_newest_record_counts_wherever_its_column_is(void **state)
{
	struct harness *h = *state;

	set_on_flash(h, "key", "one");
	age(h, "key");
	set_on_flash(h, "key", "two");
	assert_value(h, "key", "two");
	age(h, "key");
	assert_value(h, "key", "two");
	assert_int_equal(run_full(h, .op = STORE_ADD, .key = "key", .value = "three", .length = 5).result,
			 STORE_NOT_STORED);
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	for (unsigned n = 0; n < AGE_WRITES; n++) {
		assert_missing(h, "key");
		assert_true(write_one(h));
	}
	assert_int_equal(run_full(h, .op = STORE_ADD, .key = "key", .value = "three", .length = 5).result,
			 STORE_STORED);
	assert_value(h, "key", "three");
}

static void keys_that_were_never_set_cost_few_reads(void **state)
{
	struct harness *h = *state;
	uint64_t reads;
	char key[24];

	set_on_flash(h, "key", "value");
	age(h, "key");
	reads = ctr_sum(CTR_flash_reads);
	for (int n = 0; n < 2000; n++) {
		snprintf(key, sizeof(key), "absent-%d", n);
		assert_missing(h, key);
	}
	assert_true(ctr_sum(CTR_flash_reads) - reads < 700);
}

static void what_was_read_through_the_chain_comes_back_from_its_segment(void **state)
{
	struct harness *h = *state;
	uint32_t segment;

	set_on_flash(h, "key", "value");
	set_on_flash(h, "old", "one");
	age(h, "old");
	set_on_flash(h, "old", "two");
	segment = segment_of(h, "key");
	assert_value(h, "key", "value");
	assert_true(reclaim_segment(h->store, segment));
	assert_non_null(item_in_dram(h, "key"));
	assert_value(h, "key", "value");
	assert_value(h, "old", "two");
}

/* A get that reads the chain has the key's own segment not pinned yet. Returns the get under way. */
static void get_while_its_segment_goes(struct harness *h, struct flight *f)
{
	uint32_t segment;

	set_on_flash(h, "key", "value");
	age(h, "key");
	assert_value(h, "key", "value"); /* so that it is worth keeping */
	segment = segment_of(h, "key");
	assert_false(start(h, 0, f, STORE_GET, "key"));
	assert_true(reclaim_segment(h->store, segment));
	assert_non_null(item_in_dram(h, "key"));
}

static void what_goes_back_to_memory_during_a_get_is_found(void **state)
{
	struct harness *h = *state;
	struct reply reply;
	struct flight f;

	get_while_its_segment_goes(h, &f);
	reply = finish(h, &f);
	assert_int_equal(reply.result, STORE_HIT);
	assert_string_equal(reply.value, "value");
}

static void what_goes_back_and_forth_during_a_get_is_found(void **state)
{
	struct harness *h = *state;
	struct reply reply;
	struct flight f;

	get_while_its_segment_goes(h, &f);
	lock_acquire(&store_stripe(h->store, store_hash(h->store, "key", 3))->lock);
	candidate_set(h->store, store_stripe(h->store, store_hash(h->store, "key", 3)), item_in_dram(h, "key"));
	lock_release(&store_stripe(h->store, store_hash(h->store, "key", 3))->lock);
	move(h, "key");
	reply = finish(h, &f);
	assert_int_equal(reply.result, STORE_HIT);
	assert_string_equal(reply.value, "value");
}

/* Commands of one connection take effect in order. */
static void what_is_set_after_a_get_does_not_answer_it(void **state)
{
	struct harness *h = *state;
	struct reply reply;
	struct flight f;

	get_while_its_segment_goes(h, &f);
	assert_int_equal(set(h, "key", "later").result, STORE_STORED);
	reply = finish(h, &f);
	assert_true(reply.result == STORE_MISS || strcmp(reply.value, "value") == 0);
	assert_value(h, "key", "later");
	assert_true(run(h, STORE_DELETE, "key").result == STORE_DELETED);
	get_while_its_segment_goes(h, &f);
	assert_int_equal(set(h, "key", "later").result, STORE_STORED);
	move(h, "key");
	reply = finish(h, &f);
	assert_true(reply.result == STORE_MISS || strcmp(reply.value, "value") == 0);
	assert_value(h, "key", "later");
}

/* Writes segments until another chain is published. */
static void merge_again(struct harness *h)
{
	uint64_t merges = ctr_sum(CTR_frugal_merges);

	for (unsigned n = 0; n < AGE_WRITES && ctr_sum(CTR_frugal_merges) == merges; n++)
		assert_true(write_one(h));
	assert_true(ctr_sum(CTR_frugal_merges) > merges);
}

/* The record that is read belongs to a chain which is replaced meanwhile. */
static void a_chain_that_is_replaced_during_a_read_is_asked_anew(void **state)
{
	struct harness *h = *state;
	struct reply reply;
	struct flight f;

	set_on_flash(h, "key", "value");
	age(h, "key");
	assert_false(start(h, 0, &f, STORE_GET, "key"));
	merge_again(h);
	reply = finish(h, &f);
	assert_int_equal(reply.result, STORE_HIT);
	assert_string_equal(reply.value, "value");
	assert_false(start_with(h, 0, &f, .op = STORE_APPEND, .key = "key", .value = "+", .length = 1));
	merge_again(h);
	assert_int_equal(finish(h, &f).result, STORE_STORED);
	assert_value(h, "key", "value+");
}

/* The same, and the object is another one then, in the new chain too. */
static void what_is_changed_while_a_chain_is_read_counts(void **state)
{
	struct harness *h = *state;
	struct flight f;

	set_on_flash(h, "key", "one");
	age(h, "key");
	assert_false(start_with(h, 0, &f, .op = STORE_APPEND, .key = "key", .value = "+", .length = 1));
	set_on_flash(h, "key", "two");
	age(h, "key");
	assert_int_equal(finish(h, &f).result, STORE_STORED);
	assert_value(h, "key", "two+");
	move(h, "key");
	age(h, "key");
	assert_false(start_with(h, 1, &f, .op = STORE_APPEND, .key = "key", .value = "+", .length = 1));
	assert_int_equal(run(h, STORE_DELETE, "key").result, STORE_DELETED);
	merge_again(h);
	assert_int_equal(finish(h, &f).result, STORE_NOT_STORED);
	assert_missing(h, "key");
	merge_again(h);
	assert_missing(h, "key");
}

/* A chain of many turns of the flash: its segments go like others, after their columns. */
static void chains_come_and_go_with_the_turns_of_the_flash(void **state)
{
	struct harness *h = *state;
	char key[24], value[24];
	uint64_t merges = ctr_sum(CTR_frugal_merges), given_up = ctr_sum(CTR_frugal_merges_given_up);
	unsigned found = 0;

	for (unsigned n = 0; n < 60; n++) {
		snprintf(key, sizeof(key), "key-%u", n);
		snprintf(value, sizeof(value), "value-%u", n);
		set_on_flash(h, key, value);
		for (unsigned old = n > 20 ? n - 20 : 0; old <= n; old++) {
			struct reply reply;

			snprintf(key, sizeof(key), "key-%u", old);
			snprintf(value, sizeof(value), "value-%u", old);
			reply = get(h, key);
			assert_true(reply.result == STORE_MISS || strcmp(reply.value, value) == 0);
			found += old + 6 >= n && reply.result == STORE_HIT;
		}
		assert_true(status_of(h).columns_in_memory <= 4);
	}
	assert_true(found >= 6 * 54); /* the flash has 16 segments, of which the chain takes a few */
	assert_true(ctr_sum(CTR_frugal_merges) > merges + 15);
	assert_int_equal(ctr_sum(CTR_frugal_merges_given_up), given_up);
}

static void a_long_chain_is_written_between_segments_of_objects(void **state)
{
	struct harness *h = *state;
	uint64_t written = ctr_sum(CTR_frugal_chain_bytes_written);
	bool waited = false;
	char key[24];

	for (unsigned n = 0; n < 110; n++) {
		snprintf(key, sizeof(key), "key-%u", n);
		set_on_flash(h, key, key);
		waited |= h->store->merge != NULL;
	}
	assert_true(waited);
	assert_true(status_of(h).chain_segments > 1);
	for (unsigned n = 0; n < 110; n++) {
		snprintf(key, sizeof(key), "key-%u", n);
		assert_value(h, key, key);
	}
	assert_true(ctr_sum(CTR_frugal_chain_bytes_written) >= written + 4 * (64u << 10));
}

/* Once or twice, as a merge makes each record twice. */
static void an_old_chain_is_read_in_large_pieces(void **state)
{
	struct harness *h = *state;
	uint64_t reclaimed = ctr_sum(CTR_segments_reclaimed), reads;

	set_on_flash(h, "key", "value");
	age(h, "key");
	assert_int_equal(status_of(h).chain_segments, 1);
	reads = ctr_sum(CTR_frugal_search_reads);
	merge_now(h);
	assert_true(is_in_chain(h, "key"));
	assert_int_equal(ctr_sum(CTR_segments_reclaimed), reclaimed); /* which would read, too */
	assert_in_range(ctr_sum(CTR_frugal_search_reads) - reads, 1, 2);
}

/* ---- what fails -------------------------------------------------------------------------------- */

static void a_chain_record_that_cannot_be_read_is_a_miss(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	set_on_flash(h, "key", "one");
	set_on_flash(h, "key", "two");
	age(h, "key");
	fault_arm(FAULT_device_read_eio, FAULT_AFTER, 0);
	assert_missing(h, "key");
	fault_disarm_all();
	assert_missing(h, "key"); /* one answer was given: it stays */
	for (unsigned n = 0; n < AGE_WRITES; n++) {
		assert_true(write_one(h));
		assert_missing(h, "key");
	}
	set_on_flash(h, "key", "three");
	assert_value(h, "key", "three");
}

static void a_damaged_chain_record_is_a_miss(void **state)
{
	struct harness *h = *state;
	struct frugal_found place;
	uint64_t errors, unread;

	set_on_flash(h, "key", "one");
	set_on_flash(h, "key", "two");
	age(h, "key");
	assert_int_equal(search(h, "key", &place), FRUGAL_CHAIN);
	for (uint64_t at = 0; at + 32 < h->config.flash_bytes; at++)
		if (memcmp(h->ram->bytes + at, "FLCH", 4) == 0)
			h->ram->bytes[at + 30] ^= 1;
	errors = ctr_sum(CTR_flash_checksum_errors);
	assert_missing(h, "key");
	assert_true(ctr_sum(CTR_flash_checksum_errors) > errors);
	/* A merge can't use it either, and says so. */
	unread = ctr_sum(CTR_frugal_chain_records_unread);
	for (unsigned n = 0; n < AGE_WRITES; n++) {
		assert_true(write_one(h));
		assert_missing(h, "key");
	}
	assert_true(ctr_sum(CTR_frugal_chain_records_unread) > unread);
	set_on_flash(h, "key", "three");
	age(h, "key");
	assert_value(h, "key", "three");
}

/* The two passes over old records read them anew: whichever fails, what is found is true or nothing. */
static void a_merge_that_cannot_read_the_old_chain_loses_and_forges_nothing(void **state)
{
	struct harness *h = *state;
	uint64_t unread = ctr_sum(CTR_frugal_chain_records_unread);
	char key[24];
	unsigned hits = 0;

	if (!HAVE_FAULTS)
		skip();
	for (unsigned fails_at = 0; fails_at < 12; fails_at++) {
		snprintf(key, sizeof(key), "key-%u", fails_at);
		set_on_flash(h, key, "one");
		set_on_flash(h, key, "two");
		age(h, key);
		fault_arm(FAULT_device_read_eio, FAULT_AFTER, fails_at);
		for (unsigned n = 0; n < 4; n++)
			assert_true(write_one(h));
		fault_disarm_all();
		if (get(h, key).result == STORE_HIT) {
			hits++;
			assert_value(h, key, "two");
		}
		for (unsigned old = 0; old < fails_at; old++) {
			snprintf(key, sizeof(key), "key-%u", old);
			assert_true(get(h, key).result == STORE_MISS || strcmp(get(h, key).value, "two") == 0);
		}
	}
	assert_true(hits > 0);
	assert_int_equal(ctr_sum(CTR_frugal_chain_records_unread), unread); /* the second try read each */
}

/* The only partition has the only record, so that few reads fail, and the device stays online. */
static void what_a_merge_cannot_read_at_all_is_lost_and_counted(void **state)
{
	struct harness *h = *state;
	uint64_t unread = ctr_sum(CTR_frugal_chain_records_unread), merges;

	if (!HAVE_FAULTS)
		skip();
	set_on_flash(h, "key", "value");
	assert_true(write_one(h));
	merge_now(h);
	assert_true(is_in_chain(h, "key"));
	assert_int_equal(ctr_sum(CTR_frugal_chain_records_unread), unread);
	assert_true(write_one(h));
	merges = ctr_sum(CTR_frugal_merges);
	fault_arm(FAULT_device_read_eio, FAULT_ALWAYS, 0);
	merge_now(h);
	fault_disarm_all();
	assert_int_equal(ctr_sum(CTR_frugal_merges), merges + 1);
	assert_int_equal(ctr_sum(CTR_frugal_chain_records_unread), unread + 2); /* once in each pass */
	assert_missing(h, "key");
	set_on_flash(h, "key", "new");
	assert_true(write_one(h));
	merge_now(h);
	assert_true(is_in_chain(h, "key"));
	assert_value(h, "key", "new");
}

static void a_merge_that_cannot_be_written_leaves_all_as_it_was(void **state)
{
	struct harness *h = *state;
	uint64_t merges, given_up = ctr_sum(CTR_frugal_merges_given_up);
	bool failed = false;

	if (!HAVE_FAULTS)
		skip();
	set_on_flash(h, "old", "old");
	age(h, "old");
	set_on_flash(h, "key", "value");
	merges = ctr_sum(CTR_frugal_merges);
	for (unsigned n = 0; n < 8 && !failed; n++) {
		assert_true(write_one(h));
		if (status_of(h).columns_in_memory < 2)
			continue;
		assert_int_equal(frugal_merge_begin(&h->store->merge, h->store->frugal), FS_OK);
		h->store->cleaner->chain_partition = 0;
		fault_arm(FAULT_device_write_eio, FAULT_ALWAYS, 0);
		chain_turn(h->store);
		fault_disarm_all();
		failed = true;
		assert_null(h->store->merge);
	}
	assert_true(failed);
	assert_int_equal(ctr_sum(CTR_frugal_merges_given_up), given_up + 1);
	assert_int_equal(ctr_sum(CTR_frugal_merges), merges);
	assert_value(h, "old", "old");
	assert_value(h, "key", "value");
	seconds_pass(h, 2); /* the device is tried again */
	age(h, "key");
	assert_value(h, "key", "value");
}

/* Each of them has cost a segment's place. */
static void merges_that_fail_again_and_again_wait_longer_and_longer(void **state)
{
	struct harness *h = *state;
	uint64_t given_up = ctr_sum(CTR_frugal_merges_given_up), merges;

	if (!HAVE_FAULTS)
		skip();
	set_on_flash(h, "old", "old");
	age(h, "old");
	assert_true(write_one(h));
	merges = ctr_sum(CTR_frugal_merges);
	for (unsigned n = 0; n < FAILURES; n++) {
		assert_null(h->store->merge);
		assert_int_equal(frugal_merge_begin(&h->store->merge, h->store->frugal), FS_OK);
		h->store->cleaner->chain_partition = 0;
		fault_arm(FAULT_device_write_eio, FAULT_ALWAYS, 0);
		assert_false(chain_turn(h->store));
		fault_disarm_all();
		assert_int_equal(chain_makes_room(h->store), n == 0);
		seconds_pass(h, 2); /* the device is tried again */
	}
	assert_int_equal(ctr_sum(CTR_frugal_merges_given_up), given_up + FAILURES);
	for (unsigned n = 0; n < 3; n++) {
		assert_true(write_one(h));
		assert_null(h->store->merge);
	}
	assert_true(frugal_merge_is_due(h->store->frugal));
	assert_int_equal(ctr_sum(CTR_frugal_merges), merges);
	assert_value(h, "old", "old");
	seconds_pass(h, 64);
	age(h, "old");
	assert_true(write_one(h));
	assert_true(ctr_sum(CTR_frugal_merges) > merges);
	assert_int_equal(ctr_sum(CTR_frugal_merges_given_up), given_up + FAILURES);
	assert_true(chain_makes_room(h->store));
	assert_value(h, "old", "old");
}

static void without_memory_a_merge_waits(void **state)
{
	struct harness *h = *state;
	unsigned given_up = 0;

	if (!HAVE_FAULTS)
		skip();
	set_on_flash(h, "key", "one");
	set_on_flash(h, "key", "two");
	for (unsigned n = 0; n < 40; n++) {
		fault_arm(FAULT_memory_alloc, FAULT_AFTER, n);
		chain_turn(h->store);
		if (status_of(h).columns_in_memory >= 2 && !h->store->merge &&
		    frugal_merge_begin(&h->store->merge, h->store->frugal) == FS_OK) {
			h->store->cleaner->chain_partition = 0;
			chain_turn(h->store);
		}
		fault_disarm_all();
		given_up += !h->store->merge && status_of(h).columns_in_memory >= 2;
		assert_value(h, "key", "two");
	}
	assert_true(given_up > 5);
	seconds_pass(h, 64); /* what failed for want of memory is tried again later */
	age(h, "key");
	assert_value(h, "key", "two");
}

static void a_merge_that_gets_no_memory_to_begin_rests(void **state)
{
	struct harness *h = *state;
	uint64_t merges, fired;

	if (!HAVE_FAULTS)
		skip();
	set_on_flash(h, "key", "one");
	while (h->store->merge || !frugal_merge_is_due(h->store->frugal)) {
		h->store->cleaner->saves = true; /* no merge begins by itself */
		assert_true(write_one(h));
		h->store->cleaner->saves = false;
		if (h->store->merge)
			bins_cancel_merge(h->store);
	}
	merges = ctr_sum(CTR_frugal_merges);
	fault_arm(FAULT_memory_alloc, FAULT_ALWAYS, 0);
	for (unsigned rest_s = 1; rest_s <= 4; rest_s *= 2) {
		fired = fault_fired(FAULT_memory_alloc);
		assert_false(chain_turn(h->store));
		assert_null(h->store->merge);
		assert_true(fault_fired(FAULT_memory_alloc) > fired);
		assert_int_equal(h->store->cleaner->chain_rest_ms, 1000 * rest_s);
		fired = fault_fired(FAULT_memory_alloc);
		assert_false(chain_turn(h->store)); /* it doesn't try */
		assert_int_equal(fault_fired(FAULT_memory_alloc), fired);
		seconds_pass(h, rest_s);
	}
	fault_disarm_all();
	for (unsigned n = 0; n < 40 && ctr_sum(CTR_frugal_merges) == merges; n++)
		(void)chain_turn(h->store);
	assert_int_equal(ctr_sum(CTR_frugal_merges), merges + 1);
	assert_int_equal(h->store->cleaner->chain_rest_ms, 0);
	assert_value(h, "key", "one");
}

static void delete_fillers(struct harness *h)
{
	char key[3] = "";

	for (unsigned n = 0; n < 127 * 127; n++) {
		key[0] = (char)(0x80 + n % 127);
		key[1] = (char)(0x80 + n / 127);
		(void)run(h, STORE_DELETE, key);
	}
}

/* Many deletions without a write: what takes the memory of columns are kills, fewer than make a merge due. It rids memory of them. */
static void kills_that_fill_the_memory_go_into_the_chain(void **state)
{
	struct harness *h = *state;
	uint64_t merges;

	set_on_flash(h, "key", "one");
	assert_true(write_one(h));
	assert_int_equal(frugal_merge_begin(&h->store->merge, h->store->frugal), FS_OK);
	assert_true(chain_turn(h->store));
	assert_int_equal(status_of(h).columns_in_memory, 0);
	delete_fillers(h);
	assert_int_equal(frugal_take_kills(h->store->frugal), FS_OK);
	assert_true(status_of(h).kills_listed > 1000);
	assert_false(frugal_merge_is_due(h->store->frugal));
	assert_false(chain_is_urgent(h->store));
	atomic_store(&h->store->memory_limit, 2 * frugal_memory(h->store->frugal));
	assert_true(chain_is_urgent(h->store));
	merges = ctr_sum(CTR_frugal_merges);
	assert_true(chain_turn(h->store));
	assert_false(chain_is_urgent(h->store));
	assert_int_equal(status_of(h).kills_listed, 0);
	atomic_store(&h->store->memory_limit, h->config.memory_bytes);
	assert_int_equal(ctr_sum(CTR_frugal_merges), merges + 1);
	assert_true(write_one(h));
	assert_value(h, "key", "one");
}

/* Objects are so much smaller than expected that all are in one partition, whose chain record fits into no segment. */
static void without_a_chain_memory_is_made_by_reclaims(void **state)
{
	struct harness *h = *state;
	uint64_t given_up = ctr_sum(CTR_frugal_merges_given_up), reclaimed = ctr_sum(CTR_segments_reclaimed);
	bool room = false;
	char key[24];

	for (unsigned n = 0; status_of(h).columns_in_memory < 40; n++) {
		snprintf(key, sizeof(key), "%07u", n);
		assert_int_equal(set(h, key, "").result, STORE_STORED);
		if (n % 1000 == 0 && candidate_total(h->store) > 2 * h->store->segment_bytes)
			assert_true(write_one(h));
	}
	assert_true(ctr_sum(CTR_frugal_merges_given_up) > given_up);
	assert_int_equal(status_of(h).chain_segments, 0);
	assert_int_equal(ctr_sum(CTR_segments_reclaimed), reclaimed);
	atomic_store(&h->store->memory_limit, 2 * frugal_memory(h->store->frugal));
	for (unsigned n = 0; n < 20 && !room; n++) {
		bins_plan_begin(h->store);
		room = bins_room(h->store, 1000);
		bins_plan_end(h->store);
	}
	assert_true(room);
	atomic_store(&h->store->memory_limit, h->config.memory_bytes);
	assert_true(ctr_sum(CTR_segments_reclaimed) > reclaimed);
	set_on_flash(h, "key", "value");
	assert_value(h, "key", "value");
}

/* Its record is long, and each merge reads the one before. */
static void the_only_partition_keeps_its_record_from_merge_to_merge(void **state)
{
	struct harness *h = *state;

	set_on_flash(h, "key", "value");
	for (unsigned n = 0; n < 3; n++) {
		assert_true(write_one(h));
		merge_now(h);
		assert_true(is_in_chain(h, "key"));
		assert_value(h, "key", "value");
	}
}

/* ---- segments of the chain ----------------------------------------------------------------------- */

/* Where flash is reclaimed out of turn, what only the chain knew is lost. */
static void a_chain_whose_segment_is_reclaimed_is_dropped(void **state)
{
	struct harness *h = *state;
	struct frugal_found place;

	set_on_flash(h, "key", "one");
	set_on_flash(h, "key", "two");
	age(h, "key");
	assert_true(write_one(h));
	assert_int_equal(search(h, "key", &place), FRUGAL_CHAIN);
	assert_int_equal(frugal_merge_begin(&h->store->merge, h->store->frugal), FS_OK);
	assert_true(reclaim_segment(h->store, place.segment));
	assert_null(h->store->merge);
	assert_int_equal(status_of(h).chain_segments, 0);
	assert_missing(h, "key");
	assert_int_equal(run_full(h, .op = STORE_ADD, .key = "key", .value = "three", .length = 5).result,
			 STORE_STORED);
	move(h, "key");
	assert_value(h, "key", "three");
	age(h, "key");
	assert_value(h, "key", "three");
}

static void a_segment_of_an_unfinished_chain_that_is_reclaimed_ends_the_merge(void **state)
{
	struct harness *h = *state;
	const struct frugal_merge *merge;
	uint32_t segment = UINT32_MAX;
	char key[24];

	for (unsigned n = 0; n < 150 && segment == UINT32_MAX; n++) {
		snprintf(key, sizeof(key), "key-%u", n);
		set_on_flash(h, key, key);
		merge = h->store->merge;
		for (uint32_t s = 0; merge && s < store_segment_count(h->store); s++) {
			uint64_t sequence = seg_sequence(h->store->segments, s);

			if (sequence && seg_kind_of(h->store->segments, s) == SEG_CHAIN &&
			    frugal_merge_has(merge, s, sequence))
				segment = s;
		}
	}
	assert_int_not_equal(segment, UINT32_MAX);
	assert_true(reclaim_segment(h->store, segment));
	assert_null(h->store->merge);
	assert_value(h, key, key);
	assert_value(h, "key-20", "key-20");
}

static void limits_of_applications_are_refused(void **state)
{
	static const struct app_limits limits = { .count = 1, .of = { { .name = "key" } } };
	struct harness *h = *state;

	assert_int_equal(store_set_limits(h->store, &limits), FS_EINVAL);
	set_on_flash(h, "key:1", "value");
	assert_value(h, "key:1", "value");
}

static void with_all_columns_in_memory_a_chain_of_before_is_over_in_time(void **state)
{
	struct harness *h = *state;

	set_on_flash(h, "key", "value");
	age(h, "key");
	h->store->frugal_config.share = 1;
	assert_int_equal(status_of(h).chain_segments, 1);
	for (unsigned n = 0; n < 20; n++)
		assert_true(write_one(h));
	assert_int_equal(status_of(h).chain_segments, 0);
	set_on_flash(h, "key", "new");
	assert_value(h, "key", "new");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup_chain, teardown)
	const struct CMUnitTest tests[] = {
		CASE(what_is_in_the_chain_costs_two_reads),
		CASE(an_object_that_is_changed_between_the_two_reads_answers_the_get),
		CASE(the_newest_record_counts_wherever_its_column_is),
		CASE(keys_that_were_never_set_cost_few_reads),
		CASE(what_was_read_through_the_chain_comes_back_from_its_segment),
		CASE(what_goes_back_to_memory_during_a_get_is_found),
		CASE(what_goes_back_and_forth_during_a_get_is_found),
		CASE(what_is_set_after_a_get_does_not_answer_it),
		CASE(a_chain_that_is_replaced_during_a_read_is_asked_anew),
		CASE(what_is_changed_while_a_chain_is_read_counts),
		CASE(chains_come_and_go_with_the_turns_of_the_flash),
		cmocka_unit_test_setup_teardown(a_long_chain_is_written_between_segments_of_objects, setup_long,
						teardown),
		CASE(an_old_chain_is_read_in_large_pieces),
		CASE(a_chain_record_that_cannot_be_read_is_a_miss),
		CASE(a_damaged_chain_record_is_a_miss),
		CASE(a_merge_that_cannot_read_the_old_chain_loses_and_forges_nothing),
		cmocka_unit_test_setup_teardown(what_a_merge_cannot_read_at_all_is_lost_and_counted,
						setup_one_partition, teardown),
		CASE(a_merge_that_cannot_be_written_leaves_all_as_it_was),
		CASE(merges_that_fail_again_and_again_wait_longer_and_longer),
		CASE(without_memory_a_merge_waits),
		CASE(a_merge_that_gets_no_memory_to_begin_rests),
		cmocka_unit_test_setup_teardown(kills_that_fill_the_memory_go_into_the_chain, setup_lazy, teardown),
		cmocka_unit_test_setup_teardown(without_a_chain_memory_is_made_by_reclaims, setup_one_partition,
						teardown),
		cmocka_unit_test_setup_teardown(the_only_partition_keeps_its_record_from_merge_to_merge,
						setup_one_partition, teardown),
		CASE(a_chain_whose_segment_is_reclaimed_is_dropped),
		cmocka_unit_test_setup_teardown(a_segment_of_an_unfinished_chain_that_is_reclaimed_ends_the_merge,
						setup_long, teardown),
		CASE(limits_of_applications_are_refused),
		CASE(with_all_columns_in_memory_a_chain_of_before_is_over_in_time),
	};

	return cmocka_run_group_tests_name("store: chain", tests, NULL, NULL);
}
