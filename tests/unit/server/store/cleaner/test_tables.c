/* SPDX-License-Identifier: BSD-3-Clause */
/* The index sizes itself: what --flash-object-size says doesn't matter after some turns of the flash. */
#include "tests/unit/server/store/harness.h"

#define EVERY_GROUP ((1u << GROUPS) - 1)
#define VALUE_BYTES 220u
#define FLASH MIB(16)

static const char value[400]; /* as large as any */
static uint32_t next_object;

static void open_with(struct harness *h, uint64_t memory, double object_bytes)
{
	h->config.memory_bytes = memory;
	h->config.flash_bytes = FLASH;
	h->config.segment_bytes = KIB(128);
	h->config.flash_object_bytes = (uint32_t)object_bytes;
	h->config.placement = SEG_PLACE_SWEEP;
	harness_use_ram(h);
	harness_open(h);
	next_object = 0;
}

static void key_name(uint32_t object, char key[24])
{
	snprintf(key, 24, "object:%u", object);
}

static void set_objects(struct harness *h, uint32_t count, uint32_t bytes)
{
	char key[24];

	for (uint32_t n = 0; n < count; n++) {
		key_name(next_object++, key);
		assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = value, .length = bytes).result,
				 STORE_STORED);
		if (n % 400 == 399)
			(void)write_segment(h->store, EVERY_GROUP);
	}
}

static void turns_of_the_flash(struct harness *h, double turns, uint32_t bytes)
{
	set_objects(h, (uint32_t)(turns * (double)(FLASH / seg_record_length(12, bytes))), bytes);
}

/* Objects that flash and DRAM hold, of the newest ones. */
static double share_found(struct harness *h, uint32_t newest)
{
	uint32_t found = 0;
	char key[24];

	for (uint32_t n = 0; n < newest; n++) {
		key_name(next_object - newest + n, key);
		found += get(h, key).result == STORE_HIT;
	}
	return found / (double)newest;
}

static double reads_per_miss(struct harness *h)
{
	uint64_t before = ctr_sum(CTR_flash_reads);
	char key[24];

	for (uint32_t n = 0; n < 20000; n++) {
		snprintf(key, sizeof(key), "nobody:%u", n);
		assert_missing(h, key);
	}
	return (double)(ctr_sum(CTR_flash_reads) - before) / 20000;
}

static void wrong_by(struct harness *h, double factor)
{
	uint64_t drops = ctr_sum(CTR_index_drops);
	struct fidx_status index;
	struct seg_status segments;

	open_with(h, MIB(6), 262 * factor);
	turns_of_the_flash(h, 3, VALUE_BYTES);
	fidx_get_status(h->store->index, &index);
	seg_get_status(h->store->segments, &segments);
	print_message(
		"wrong by %.2f: %u tables, %.2f bytes per object, %u of %u segments, fill %.3f, %.4f of the newest\n",
		factor, index.tables, (double)index.slots * 4 / (double)index.used, segments.live, segments.total,
		segments.fill, share_found(h, (uint32_t)(index.used * 9 / 10)));
	assert_true((double)index.slots * 4 <= 4.5 * (double)index.used);
	assert_true(segments.live >= segments.total * 97 / 100);
	assert_int_equal(ctr_sum(CTR_index_drops), drops);
	assert_true(share_found(h, (uint32_t)(index.used * 9 / 10)) > 0.999);
	assert_true(reads_per_miss(h) <= 0.01);
	assert_true(fidx_verify(h->store->index));
	harness_close(h);
}

static void after_three_turns_a_wrong_guess_does_not_matter(void **state)
{
	static const double factors[] = { 1, 2, 4, 10, 0.5, 0.25, 0.1 };

	for (unsigned i = 0; i < sizeof(factors) / sizeof(*factors); i++)
		wrong_by(*state, factors[i]);
}

static uint64_t index_bytes(struct harness *h)
{
	struct fidx_status index;

	fidx_get_status(h->store->index, &index);
	return index.index_bytes;
}

/* Of one size, then of another, and of the first again: what the index no longer needs is the items' again. */
static void it_follows_the_objects_both_ways(void **state)
{
	struct harness *h = *state;
	uint64_t first;
	struct fidx_status index;

	open_with(h, MIB(6), 262);
	turns_of_the_flash(h, 3, VALUE_BYTES);
	first = index_bytes(h);
	turns_of_the_flash(h, 3, 20);
	assert_true(index_bytes(h) > 2 * first);
	fidx_get_status(h->store->index, &index);
	assert_true((double)index.slots * 4 <= 4.5 * (double)index.used);
	turns_of_the_flash(h, 4, VALUE_BYTES);
	fidx_get_status(h->store->index, &index);
	assert_int_equal(index.tables, 1);
	assert_true((double)index.slots * 4 <= 4.5 * (double)index.used);
	assert_true(index_bytes(h) < first + first / 10);
	assert_int_equal(atomic_load(&h->store->index_bytes),
			 index.index_bytes + index.filter_bytes + index.other_bytes);
	assert_true(fidx_verify(h->store->index));
}

/* Objects that shrink a little again and again need a table more each time, and there can be three. */
static void the_whole_flash_is_used_again_after_small_changes(void **state)
{
	static const uint32_t bytes[] = { 220, 200, 180, 162, 146 };
	struct harness *h = *state;
	struct seg_status segments;

	open_with(h, MIB(6), 262);
	for (unsigned i = 0; i < sizeof(bytes) / sizeof(*bytes); i++)
		turns_of_the_flash(h, 0.6, bytes[i]);
	turns_of_the_flash(h, 4, bytes[4]);
	seg_get_status(h->store->segments, &segments);
	assert_true(segments.live >= segments.total * 97 / 100);
	assert_true(fidx_verify(h->store->index));
}

/* Where half of -m is not enough, the flash holds less, and no slot is dropped. */
static void it_never_has_more_than_half_of_the_memory(void **state)
{
	struct harness *h = *state;
	uint64_t drops = ctr_sum(CTR_index_drops), most = 0;
	struct fidx_status index;

	open_with(h, MIB(2), 400);
	for (unsigned n = 0; n < 2000; n++) {
		set_objects(h, 400, 4);
		for (unsigned i = 0; i < 10 && store_clean_step(h->store); i++)
			;
		fidx_get_status(h->store->index, &index);
		most = index.index_bytes > most ? index.index_bytes : most;
	}
	assert_in_range(most, KIB(1000), KIB(1024));
	assert_true((double)index.used >= 0.85 * (double)index.slots);
	assert_int_equal(ctr_sum(CTR_index_drops), drops);
}

/* The cleaner gathers by it again. */
static void a_choice_that_fails_leaves_the_last_table(void **state)
{
	struct harness *h = *state;
	unsigned table = 0;

	open_with(h, MIB(16), 1000);
	assert_false(tables_choose(h->store, 1ull << 40, &table));
	assert_int_equal(table, 0);
}

/* Objects of all sizes come and go, and each that is found is the one that was set last. */
static void what_is_found_is_right_while_tables_come_and_go(void **state)
{
	struct harness *h = *state;
	static const uint32_t sizes[] = { 220, 20, 400, 8, 220 };
	char key[24], text[16];
	uint32_t found = 0;

	open_with(h, MIB(6), 1000);
	for (unsigned round = 0; round < 5; round++) {
		snprintf(text, sizeof(text), "round %u", round);
		for (unsigned n = 0; n < 2000; n++) {
			snprintf(key, sizeof(key), "kept:%u", n);
			assert_int_equal(set(h, key, text).result, STORE_STORED);
		}
		turns_of_the_flash(h, 0.5, sizes[round]);
		for (unsigned n = 0; n < 2000; n++) {
			snprintf(key, sizeof(key), "kept:%u", n);
			struct reply reply = get(h, key);

			if (reply.result == STORE_HIT) {
				assert_string_equal(reply.value, text);
				found++;
			}
		}
	}
	assert_true(found > 5000);
	assert_true(fidx_verify(h->store->index));
}

static void store_small(struct harness *h, unsigned from, unsigned to)
{
	char key[24], small[100] = "";

	for (unsigned n = from; n < to; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		assert_int_equal(
			run_full(h, .op = STORE_SET, .key = key, .value = small, .length = sizeof(small)).result,
			STORE_STORED);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		context_settle(&h->worker[i]->context);
}

/* Ten thousand objects fit on the flash, and four thousand in the index. */
static void where_the_index_is_full_the_oldest_segment_goes_and_no_slot_is_dropped(void **state)
{
	struct harness *h = *state;
	uint64_t drops = ctr_sum(CTR_index_drops), reclaimed = ctr_sum(CTR_segments_reclaimed);
	struct fidx_status status;
	struct seg_status segments;

	h->config.memory_bytes = MIB(2); /* half of it: places for 262144 objects */
	h->config.flash_bytes = MIB(80);
	harness_open(h);
	for (unsigned n = 0; n < 1100000; n += 1000) {
		store_small(h, n, n + 1000);
		write_segment(h->store, EVERY_GROUP);
	}
	fidx_get_status(h->store->index, &status);
	seg_get_status(h->store->segments, &segments);
	assert_true(ctr_sum(CTR_segments_reclaimed) > reclaimed);
	assert_true(segments.free > 2); /* flash was not what was short */
	assert_int_equal(ctr_sum(CTR_index_drops), drops);
	assert_true((double)status.used <= INDEX_LOAD_MOST * (double)status.slots);
	assert_true((double)status.used > 0.7 * (double)status.slots);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(after_three_turns_a_wrong_guess_does_not_matter),
		TEST(it_follows_the_objects_both_ways),
		TEST(the_whole_flash_is_used_again_after_small_changes),
		TEST(it_never_has_more_than_half_of_the_memory),
		TEST(a_choice_that_fails_leaves_the_last_table),
		TEST(what_is_found_is_right_while_tables_come_and_go),
		TEST(where_the_index_is_full_the_oldest_segment_goes_and_no_slot_is_dropped),
	};

	return cmocka_run_group_tests_name("store: the index's size", tests, NULL, NULL);
}
