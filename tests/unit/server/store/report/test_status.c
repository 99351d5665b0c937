/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures for stats and metrics: each is what its room says, and the parts make up the whole. */
#include <math.h>

#include "tests/unit/server/store/harness.h"

static struct store_status status_of(struct harness *h)
{
	struct store_status status;

	for (unsigned i = 0; i < WORKERS; i++)
		context_settle(&h->worker[i]->context);
	context_settle(&h->store->cleaner->context);
	memset(&status, 0xff, sizeof(status)); /* each field is written */
	store_get_status(h->store, &status);
	return status;
}

static struct store_memory memory_of(struct harness *h)
{
	struct store_memory memory;

	memset(&memory, 0xff, sizeof(memory));
	store_get_memory(h->store, &memory);
	return memory;
}

/* All structures of the index over all objects. */
static void assert_bytes_of_each_object(const struct store_status *status)
{
	uint64_t objects = status->index.used + status->index.extents_used + status->frugal.objects;
	uint64_t bytes = status->index.index_bytes + status->index.filter_bytes + status->index.other_bytes +
			 status->frugal_index_bytes;

	assert_true(objects > 0 && fabs(status->dram_bytes_per_flash_item * (double)objects - (double)bytes) < 1);
}

static void set_some(struct harness *h, unsigned count)
{
	char key[24];

	for (unsigned n = 0; n < count; n++) {
		snprintf(key, sizeof(key), "object:%u", n);
		assert_int_equal(set(h, key, "value").result, STORE_STORED);
	}
}

/* ---- without flash --------------------------------------------------------------------------- */

static void without_flash_its_figures_are_zero(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	set_some(h, 10);
	struct store_status status = status_of(h);
	assert_false(status.flash);
	assert_null(status.without_flash); /* no path was given */
	assert_int_equal(status.tag_bits | status.filter_bits | status.staging_bytes | status.classifier_bytes, 0);
	assert_int_equal(status.segments.total, 0);
	assert_int_equal(status.index.slots, 0);
	assert_int_equal(status.candidates | status.candidate_bytes, 0);
	assert_true(status.dram_bytes_per_flash_item == 0);
	assert_true(status.innocent_drops == 0);
	assert_int_equal(status.curr_items, 10);
	assert_int_equal(status.curr_bytes, status.dram_bytes);
	assert_int_equal(status.hot_bytes, status.dram_bytes);
	struct store_memory memory = memory_of(h);
	assert_int_equal(memory.index | memory.filters | memory.index_other | memory.segments, 0);
	assert_int_equal(memory.classifier | memory.staging | memory.untouched, 0);
	assert_int_equal(memory.heap, memory.items + memory.tables + memory.stripes);
}

static void only_a_store_with_flash_has_samples(void **state)
{
	struct clf_labelled sample, *labelled = &sample;
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	assert_int_equal(store_get_samples(h->store, &labelled), 0);
	assert_null(labelled);
}

static void no_sample_is_labelled_at_the_start(void **state)
{
	struct harness *h = *state;
	struct clf_labelled *labelled;

	harness_open(h);
	assert_int_equal(store_get_samples(h->store, &labelled), 0);
	assert_non_null(labelled); /* to be freed */
	mem_free(labelled);
}

/* Accounts go by batches, so that the sum may be below 0 for a moment. */
static void an_account_below_zero_is_shown_as_nothing(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	atomic_fetch_sub(&h->store->item_bytes, 1000);
	atomic_fetch_sub(&h->store->candidate_count, 1);
	struct store_status status = status_of(h);
	assert_int_equal(status.dram_bytes, 0);
	assert_int_equal(status.curr_bytes, 0);
	assert_int_equal(status.candidates, 0);
	assert_int_equal(memory_of(h).items, 0);
	atomic_fetch_add(&h->store->item_bytes, 1000);
	atomic_fetch_add(&h->store->candidate_count, 1);
}

/* ---- both tiers ------------------------------------------------------------------------------ */

static void an_empty_store_has_no_objects_and_divides_by_none_of_them(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	struct store_status status = status_of(h);
	assert_true(status.flash);
	assert_int_equal(status.curr_items | status.curr_bytes | status.dram_items | status.dram_bytes, 0);
	assert_true(status.dram_bytes_per_flash_item == 0);
	assert_int_equal(status.segments.total, 16);
	assert_int_equal(status.info.segment_bytes, KIB(64));
	assert_int_equal(status.now_seconds, 0);
	assert_true(status.window[STORE_WINDOW_1D].seconds == 0);
	seconds_pass(h, 7);
	status = status_of(h);
	assert_int_equal(status.now_seconds, 7);
	assert_true(status.window[STORE_WINDOW_1D].seconds == 7);
}

static void objects_of_both_tiers_are_counted_once(void **state)
{
	static char large[9000];
	struct harness *h = *state;

	harness_open(h);
	set_on_flash(h, "small", "value");
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "large", .value = large, .length = sizeof(large)).result,
			 STORE_STORED);
	move(h, "large");
	set_some(h, 10);
	struct store_status status = status_of(h);
	assert_int_equal(status.dram_items, store_dram_items(h->store));
	assert_true(status.index.used > 0);
	assert_int_equal(status.index.extents_used, 1);
	assert_int_equal(status.curr_items, status.dram_items + status.index.used + 1);
	assert_int_equal(status.curr_bytes, status.dram_bytes + (uint64_t)status.index.live_bytes);
	assert_int_equal(status.hot_bytes, status.dram_bytes + (uint64_t)status.index.hot_bytes);
	assert_true(status.dram_bytes_per_flash_item > 4);
	assert_bytes_of_each_object(&status);
	assert_int_equal(status.candidates, h->store->candidate_count);
	assert_int_equal(status.candidate_bytes, candidate_total(h->store));
	assert_true(status.candidates >= 10);
	run(h, STORE_DELETE, "large");
	assert_int_equal(status_of(h).curr_items, status.curr_items - 1);
}

static void an_object_with_a_clean_copy_is_one(void **state)
{
	struct harness *h = *state;
	struct store_status before, status;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	set_on_flash(h, "key", "value");
	before = status_of(h);
	make_clean_copy(h, "key");
	status = status_of(h);
	assert_int_equal(status.copy_items, 1);
	assert_int_equal(status.dram_items, before.dram_items + 1);
	assert_int_equal(status.curr_items, before.curr_items);
	assert_int_equal(status.curr_bytes, before.curr_bytes);
}

static void what_was_written_is_in_each_window(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	seconds_pass(h, 10);
	assert_int_equal(set(h, "key", "value").result, STORE_STORED);
	struct store_status status = status_of(h);
	for (unsigned i = 0; i < STORE_WINDOWS; i++) {
		assert_int_equal(status.window[i].flash_bytes, 0);
		assert_int_equal(status.window[i].app_bytes, 8); /* key and value */
	}
	assert_true(write_one(h));
	status = status_of(h);
	for (unsigned i = 0; i < STORE_WINDOWS; i++)
		assert_in_range(status.window[i].flash_bytes, KIB(32), KIB(80)); /* a segment */
}

static void what_was_tuned_is_shown(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	assert_int_equal(status_of(h).write_limit, 0);
	store_set_tuning(h->store, &(struct store_tuning){ .hot_fraction = 0,
							   .flash_write_limit = 12345,
							   .read_timeout_ms = 1000,
							   .admission = CLF_ADMIT_ALL });
	struct store_status status = status_of(h);
	assert_int_equal(status.write_limit, 12345);
	assert_int_equal(status.hot_threshold_bytes, status.dram_budget - KIB(32)); /* of the flash nothing */
	assert_int_equal(store_set_memory_limit(h->store, MIB(9)), FS_OK);
	assert_int_equal(status_of(h).memory_limit, MIB(9));
}

/* A share of the flash's size per day is bytes per second here, at least one; without flash it says nothing. */
static void a_limit_by_the_size_of_the_flash_is_shown_as_a_rate(void **state)
{
	struct harness *h = *state;
	struct store_tuning tuning;

	h->config.flash_write_dwpd = 1e-9;
	harness_open(h);
	assert_int_equal(status_of(h).write_limit, 1);
	store_get_tuning(h->store, &tuning);
	assert_true(tuning.flash_write_dwpd == 1e-9 && tuning.flash_write_limit == 0);
	tuning.flash_write_dwpd = 86400;
	store_set_tuning(h->store, &tuning);
	assert_int_equal(status_of(h).write_limit, h->store->flash_capacity);
	tuning.flash_write_dwpd = 0;
	store_set_tuning(h->store, &tuning);
	assert_int_equal(status_of(h).write_limit, 0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void the_parts_of_memory_are_all_that_is_used(void **state)
{
	struct harness *h = *state;

	h->config.filter_bits = 8;
	harness_open(h);
	for (unsigned round = 0; round < 3; round++) {
		set_some(h, 500);
		set_on_flash(h, "key", "value");
		assert_value(h, "key", "value"); /* a reader's buffers */
		turn(h, 0);
		struct store_status status = status_of(h);
		struct store_memory memory = memory_of(h);
		assert_int_equal(memory.limit, MIB(8));
		assert_int_equal(memory.items, status.dram_bytes);
		assert_int_equal(memory.tables, status.dram_table_bytes);
		assert_int_equal(memory.readers, status.reader_bytes);
		assert_true(memory.readers > 0);
		assert_int_equal(memory.plans | memory.frugal, 0);
		uint64_t parts = memory.items + memory.tables + memory.stripes + memory.index + memory.filters +
				 memory.index_other + memory.segments + memory.classifier + memory.plans +
				 memory.staging + memory.readers;
		assert_in_range(status.memory_used - parts, 0, SEG_PAGE - 1); /* the region has whole pages */
		assert_int_equal(memory.heap, parts + memory.frugal + memory.journal + memory.promotion -
						      region_bytes(h->store->region));
		assert_true(memory.untouched < memory.index + memory.segments + memory.classifier + MIB(1));
		assert_int_equal(status.hash_buckets / LINE_LINKS * sizeof(struct link_line), status.dram_table_bytes);
	}
}

/* packaging/doc/sizing.md: samples, and 4 B for each object that -m and the flash hold. Here that is far more than 1/16 of -m. */
static void the_classifier_takes_what_the_guide_says(void **state)
{
	static const struct {
		uint64_t memory, samples;
	} cases[] = { { MIB(8), KIB(128) },
		      { MIB(32), KIB(512) },
		      { MIB(64), KIB(768) },
		      { MIB(256), KIB(1536) },
		      { MIB(2048), MIB(4) } };
	struct harness *h = *state;

	h->config.flash_object_bytes = 34;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t samples = cases[i].samples, counts = cases[i].memory / 16;

		h->config.memory_bytes = cases[i].memory;
		harness_open(h);
		assert_in_range(memory_of(h).classifier, counts + samples - samples / 32, counts + samples + KIB(32));
		harness_close(h);
	}
	h->config.flash_object_bytes = 1000;
	h->config.memory_bytes = MIB(64);
	harness_open(h);
	assert_in_range(memory_of(h).classifier, KIB(768 - 24) + MIB(64) / 1000 * 4,
			KIB(768 + 32) + (MIB(64) + h->config.flash_bytes) / 1000 * 4);
	harness_close(h);
}

static void parts_that_are_empty_at_first_count_too(void **state)
{
	struct harness *h = *state;
	uint64_t heap;

	harness_open(h);
	_Atomic uint64_t *parts[] = { &h->store->plan_bytes, &h->store->losses_bytes, &h->store->promotion_bytes,
				      &h->store->loader_bytes };
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		heap = memory_of(h).heap;
		atomic_fetch_add(parts[i], KIB(100));
		assert_int_equal(memory_of(h).heap, heap + KIB(100));
		atomic_fetch_sub(parts[i], KIB(100));
	}
}

static void an_index_without_slots_counts_its_reads_too(void **state)
{
	struct harness *h = *state;
	uint64_t frugal, heap;

	h->config.index = STORE_INDEX_FRUGAL;
	harness_open(h);
	frugal = memory_of(h).frugal;
	heap = memory_of(h).heap;
	assert_int_equal(frugal, frugal_memory(h->store->frugal));
	atomic_fetch_add(&h->store->bins_reads_bytes, KIB(100));
	assert_int_equal(memory_of(h).frugal, frugal + KIB(100));
	assert_int_equal(memory_of(h).heap, heap + KIB(100));
	atomic_fetch_sub(&h->store->bins_reads_bytes, KIB(100));
}

static void an_index_without_slots_is_in_the_bytes_of_each_object(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	h->config.index = STORE_INDEX_FRUGAL;
	harness_open(h);
	set_on_flash(h, "key", "value");
	status = status_of(h);
	assert_true(status.frugal.objects > 0 && status.frugal_index_bytes > 0);
	assert_bytes_of_each_object(&status);
}

static void what_holes_cost_is_charged_and_no_part_of_the_heap(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	uint64_t budget = status_of(h).dram_budget, heap = memory_of(h).heap;
	atomic_store(&h->store->excess_bytes, KIB(100));
	assert_int_equal(memory_of(h).charged, KIB(100));
	assert_int_equal(memory_of(h).heap, heap);
	assert_int_equal(status_of(h).dram_budget, budget - KIB(100));
	atomic_store(&h->store->excess_bytes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_flash_its_figures_are_zero),
		TEST(only_a_store_with_flash_has_samples),
		TEST(no_sample_is_labelled_at_the_start),
		TEST(an_account_below_zero_is_shown_as_nothing),
		TEST(an_empty_store_has_no_objects_and_divides_by_none_of_them),
		TEST(objects_of_both_tiers_are_counted_once),
		TEST(an_object_with_a_clean_copy_is_one),
		TEST(what_was_written_is_in_each_window),
		TEST(what_was_tuned_is_shown),
		TEST(a_limit_by_the_size_of_the_flash_is_shown_as_a_rate),
		TEST(the_parts_of_memory_are_all_that_is_used),
		TEST(the_classifier_takes_what_the_guide_says),
		TEST(parts_that_are_empty_at_first_count_too),
		TEST(an_index_without_slots_counts_its_reads_too),
		TEST(an_index_without_slots_is_in_the_bytes_of_each_object),
		TEST(what_holes_cost_is_charged_and_no_part_of_the_heap),
	};

	return cmocka_run_group_tests_name("store: figures", tests, NULL, NULL);
}
