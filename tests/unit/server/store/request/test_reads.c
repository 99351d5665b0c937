/* SPDX-License-Identifier: BSD-3-Clause */
/* Flash reads are shared by all who want the same object, and what was read is kept for a while. */
#include "segments/layout.h"
#include "tests/unit/server/store/harness.h"

#define CLIENTS 50

static uint64_t reads(const struct harness *h)
{
	return __atomic_load_n(&h->ram->reads, __ATOMIC_RELAXED);
}

/* On flash in memory, with nothing of it kept from having been put there. */
static void open_with(struct harness *h, const char *key, const char *value)
{
	harness_use_ram(h);
	harness_open(h);
	set_on_flash(h, key, value);
}

/* Where the record of a key that has one slot begins on the device. */
static uint64_t place_on_device(struct harness *h, const char *key, struct fidx_match *match)
{
	assert_true(slot_of(h, key, match));
	return LAYOUT_SUPER_BYTES + match->segment * h->store->segment_bytes +
	       seg_position(h->store->segments, match->segment, match->place, match->function);
}

static void a_read_that_fails_is_not_kept(void **state)
{
	struct harness *h = *state;
	struct fidx_match match;
	struct fidx_key key;

	open_with(h, "key", "value");
	fidx_key_of(h->store->index, store_hash(h->store, "key", 3), &key);
	assert_true(slot_of(h, "key", &match));
	h->ram->fail_reads = true;
	assert_missing(h, "key"); /* and its slot is gone */
	h->ram->fail_reads = false;
	lock_acquire(&store_stripe(h->store, key.hash)->lock);
	assert_true(fidx_insert(h->store->index, &key, match.segment, match.function, 0, FIDX_DROP_NONE));
	lock_release(&store_stripe(h->store, key.hash)->lock);
	assert_value(h, "key", "value");
}

static void bytes_that_fail_their_check_are_not_kept(void **state)
{
	struct harness *h = *state;
	struct fidx_match match;
	struct fidx_key key;

	open_with(h, "key", "value");
	fidx_key_of(h->store->index, store_hash(h->store, "key", 3), &key);
	uint64_t at = place_on_device(h, "key", &match);
	h->ram->bytes[at] ^= 1;
	assert_missing(h, "key"); /* and its slot is gone */
	h->ram->bytes[at] ^= 1;
	lock_acquire(&store_stripe(h->store, key.hash)->lock);
	assert_true(fidx_insert(h->store->index, &key, match.segment, match.function, 0, FIDX_DROP_NONE));
	lock_release(&store_stripe(h->store, key.hash)->lock);
	assert_value(h, "key", "value");
}

static void gets_of_one_object_share_a_read(void **state)
{
	struct harness *h = *state;
	struct flight f[CLIENTS];
	uint64_t before, shared = ctr_sum(CTR_flash_reads_shared), issued = ctr_sum(CTR_flash_reads);

	open_with(h, "key", "value");
	before = reads(h);
	for (unsigned i = 0; i < CLIENTS; i++)
		assert_false(start(h, 0, &f[i], STORE_GET, "key"));
	for (unsigned i = 0; i < CLIENTS; i++) {
		assert_int_equal(finish(h, &f[i]).result, STORE_HIT);
		assert_string_equal(f[i].reply.value, "value");
		assert_true(f[i].reply.from_flash);
	}
	assert_int_equal(reads(h) - before, 1);
	assert_int_equal(ctr_sum(CTR_flash_reads) - issued, 1);
	assert_int_equal(ctr_sum(CTR_flash_reads_shared) - shared, CLIENTS - 1);
	assert_value(h, "key", "value");
	assert_int_equal(reads(h) - before, 1); /* it was kept */
}

static void what_is_kept_is_bounded(void **state)
{
	struct harness *h = *state;
	char key[16];

	harness_use_ram(h);
	harness_open(h);
	for (unsigned i = 0; i < 40; i++) {
		snprintf(key, sizeof(key), "key:%u", i);
		set(h, key, "value");
	}
	move(h, "key:0");
	for (unsigned i = 0; i < 40; i++) {
		snprintf(key, sizeof(key), "key:%u", i);
		assert_value(h, key, "value");
	}
	assert_in_range(h->worker[0]->reads.kept_bytes, SEG_PAGE, h->worker[0]->reads.kept_most);
	store_worker_flush(h->worker[0]);
	assert_in_range(h->worker[0]->accounted_bytes, SEG_PAGE, 200 << 10);
}

static void a_kept_read_of_what_was_overwritten_is_not_served(void **state)
{
	struct harness *h = *state;

	open_with(h, "key", "old");
	assert_value(h, "key", "old");
	set(h, "key", "new");
	assert_value(h, "key", "new");
	move(h, "key");
	assert_value(h, "key", "new");
	run(h, STORE_DELETE, "key");
	assert_missing(h, "key");
}

static void a_change_shares_the_read_of_a_get_and_leaves_it_its_bytes(void **state)
{
	struct harness *h = *state;
	struct flight get, append;
	uint64_t before;

	open_with(h, "key", "value");
	before = reads(h);
	assert_false(start(h, 0, &get, STORE_GET, "key"));
	assert_false(start_with(h, 0, &append, .op = STORE_APPEND, .key = "key", .value = "+", .length = 1));
	assert_int_equal(finish(h, &append).result, STORE_STORED);
	assert_string_equal(finish(h, &get).value, "value");
	assert_int_equal(reads(h) - before, 1);
	assert_value(h, "key", "value+");
}

static void one_who_times_out_leaves_the_read_to_the_others(void **state)
{
	struct harness *h = *state;
	struct flight first, second;
	uint64_t cancelled = ctr_sum(CTR_flash_reads_cancelled);

	open_with(h, "key", "value");
	assert_false(start(h, 0, &first, STORE_GET, "key"));
	clk_scripted_advance(&h->clk, 600000);
	store_worker_turn(h->worker[0]);
	assert_false(start(h, 0, &second, STORE_GET, "key"));
	clk_scripted_advance(&h->clk, 600000);
	store_worker_turn(h->worker[0]);
	store_worker_poll(h->worker[0]); /* nothing was sent yet */
	assert_true(first.done);
	assert_int_equal(first.reply.result, STORE_MISS);
	assert_false(second.done);
	assert_int_equal(finish(h, &second).result, STORE_HIT);
	assert_int_equal(ctr_sum(CTR_flash_reads_cancelled), cancelled);
}

static void a_read_that_nobody_waits_for_any_more_is_never_sent(void **state)
{
	struct harness *h = *state;
	struct flight f[3];
	uint64_t before, cancelled = ctr_sum(CTR_flash_reads_cancelled);

	open_with(h, "key", "value");
	before = reads(h);
	for (unsigned i = 0; i < 3; i++)
		assert_false(start(h, 0, &f[i], STORE_GET, "key"));
	clk_scripted_advance(&h->clk, 1001000);
	turn(h, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_true(f[i].done && f[i].reply.result == STORE_MISS);
	assert_int_equal(reads(h) - before, 0);
	assert_int_equal(ctr_sum(CTR_flash_reads_cancelled), cancelled + 1);
	assert_int_equal(h->worker[0]->reads.count, 0);
	assert_value(h, "key", "value");
}

/* The pin that keeps a segment is the read's own: the lookups that wanted it may be gone. */
static void a_read_under_way_holds_its_segment_without_a_lookup(void **state)
{
	struct harness *h = *state;
	struct flight f;
	uint32_t segment;

	open_with(h, "key", "value");
	segment = segment_of(h, "key");
	h->ram->hold = true;
	assert_false(start(h, 0, &f, STORE_GET, "key"));
	store_worker_flush(h->worker[0]);
	clk_scripted_advance(&h->clk, 1001000);
	turn(h, 0);
	assert_true(f.done);
	assert_int_equal(h->worker[0]->lookups, 0);
	seg_reclaim_begin(h->store->segments, segment);
	fidx_segment_close(h->store->index, segment);
	fidx_sweep(h->store->index, segment);
	assert_int_equal(seg_reclaim_end(h->store->segments, segment, 0), FS_EBUSY);
	h->ram->hold = false;
	store_worker_poll(h->worker[0]);
	assert_int_equal(seg_reclaim_end(h->store->segments, segment, 0), FS_OK);
}

/* ---- a change must know ---------------------------------------------------------------------- */

/*
 * A record longer than what is read at first (L), in whose key a bit flips on the way: unchecked bytes look like
 * another key's record. A delete that believes them answers NOT_FOUND, and the object lives on.
 */
static void a_delete_reads_all_of_a_record_before_it_takes_it_for_anothers(void **state)
{
	struct harness *h = *state;
	char value[900];
	struct fidx_match match;
	uint64_t at;

	memset(value, 'v', sizeof(value));
	harness_use_ram(h);
	harness_open(h);
	do { /* until it lies over the end of a page, its key in the page that is read first */
		assert_int_equal(
			run_full(h, .op = STORE_SET, .key = "long", .value = value, .length = sizeof(value)).result,
			STORE_STORED);
		move(h, "long");
		at = place_on_device(h, "long", &match) + SEG_RECORD_HEADER;
	} while (at % SEG_PAGE < SEG_PAGE - sizeof(value) || at % SEG_PAGE > SEG_PAGE - sizeof("long"));
	assert_true(seg_read_length(h->store->segments, match.segment, 0) < 100); /* all others are short */
	h->ram->flip_at = at;
	assert_int_equal(run(h, STORE_DELETE, "long").result, STORE_DELETED);
	assert_int_equal(h->ram->flip_at, 0);
	assert_missing(h, "long");
	assert_int_equal(slots_of(h, "long"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_read_that_fails_is_not_kept),
		TEST(bytes_that_fail_their_check_are_not_kept),
		TEST(gets_of_one_object_share_a_read),
		TEST(what_is_kept_is_bounded),
		TEST(a_kept_read_of_what_was_overwritten_is_not_served),
		TEST(a_change_shares_the_read_of_a_get_and_leaves_it_its_bytes),
		TEST(one_who_times_out_leaves_the_read_to_the_others),
		TEST(a_read_that_nobody_waits_for_any_more_is_never_sent),
		TEST(a_read_under_way_holds_its_segment_without_a_lookup),
		TEST(a_delete_reads_all_of_a_record_before_it_takes_it_for_anothers),
	};

	return cmocka_run_group_tests_name("store: shared reads", tests, NULL, NULL);
}
