/* SPDX-License-Identifier: BSD-3-Clause */
/* Items: what they are made of, when they are freed, and what they cost. */
#include "tests/unit/server/store/harness.h"

#define SECOND_MS 1000u

static struct store_context *context_of(struct harness *h)
{
	return &h->worker[0]->context;
}

static uint64_t class_items(struct harness *h, size_t bytes)
{
	struct store_class_status status;

	store_get_class(h->store, size_class(bytes), &status);
	return status.items;
}

/* ---- the limit of -I ------------------------------------------------------------------------- */

static void the_limit_counts_header_and_key_to_the_byte(void **state)
{
	const uint64_t header = 56; /* memcached's 48, and 8 of the id */
	struct harness *h = *state;

	h->config.max_item_bytes = KIB(1);
	h->config.flash_path = NULL;
	harness_open(h);
	assert_true(store_too_large(h->store, 1, KIB(1) - header));
	assert_false(store_too_large(h->store, 1, KIB(1) - header - 1));
	assert_true(store_too_large(h->store, STORE_KEY_MAX, KIB(1) - header - STORE_KEY_MAX + 1));
	assert_false(store_too_large(h->store, STORE_KEY_MAX, KIB(1) - header - STORE_KEY_MAX));
	assert_true(store_too_large(h->store, 1, UINT32_MAX));
	assert_true(store_too_large(h->store, 1, 1ull << 62));
}

/* ---- their parts ----------------------------------------------------------------------------- */

static void a_new_item_has_one_reference_and_nothing_else(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	struct item *item = item_new(context_of(h), "key", 3, 0, 77, 5);
	assert_int_equal(item->refs, 1);
	assert_int_equal(item->state, 0);
	assert_int_equal(item->cas, 0);
	assert_int_equal(item->expiry, 77);
	assert_false(item_has_extra(item) || shape_has_flags(item->shape) || item_marked(item));
	assert_int_equal(item_client_flags(item), 0);
	assert_true(item_is(item, "key", 3));
	assert_false(item_is(item, "ke", 2));
	assert_false(item_is(item, "kez", 3));
	assert_int_equal(item_allocated_bytes(item), sizeof(*item) + sizeof(struct clf_reads) + 3 + 5);
	item_release(context_of(h), item);
}

/* Client flags and extra lie before the key; each may be there or not. */
static void each_mix_of_extra_and_flags_keeps_key_flags_and_value_apart(void **state)
{
	static const uint32_t flags[] = { 0, 1, UINT32_MAX };
	struct harness *h = *state;
	char key[STORE_KEY_MAX];

	harness_open(h);
	memset(key, 'k', sizeof(key));
	for (unsigned i = 0; i < 6; i++) {
		size_t length = i < 3 ? 1 : STORE_KEY_MAX;
		struct item *item = i % 2 ? item_new_extra(context_of(h), key, length, flags[i % 3], 0, 4)
					  : item_new(context_of(h), key, length, flags[i % 3], 0, 4);

		assert_int_equal(item_has_extra(item), i % 2);
		memcpy(item_value(item), "text", 4);
		if (item_has_extra(item)) {
			assert_int_equal(item_extra(item)->marks, 0);
			assert_int_equal(item_extra(item)->shown_cas, 0);
			item_extra(item)->shown_cas = UINT64_MAX;
		}
		assert_int_equal(item_client_flags(item), flags[i % 3]);
		assert_true(item_is(item, key, length));
		assert_memory_equal(item_value(item), "text", 4);
		assert_ptr_equal(item_value(item) + 4, (char *)item + item_allocated_bytes(item));
		item_release(context_of(h), item);
	}
}

static void a_client_s_own_id_is_shown_and_marks_are_seen(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	struct item *item = item_new_extra(context_of(h), "key", 3, 0, 0, 0);
	item->cas = 10;
	assert_false(item_marked(item));
	assert_int_equal(item_shown_cas(item), 10);
	item_extra(item)->shown_cas = 5;
	assert_true(item_marked(item));
	assert_int_equal(item_shown_cas(item), 5);
	item_extra(item)->shown_cas = 0;
	item_extra(item)->marks = ITEM_STALE;
	assert_true(item_marked(item));
	assert_int_equal(item_shown_cas(item), 10);
	item_release(context_of(h), item);
}

/* What nobody asks for takes no room. */
static void an_item_keeps_the_features_that_its_store_asks_for(void **state)
{
	static const struct {
		bool flash;
		enum clf_label_mode mode;
		enum item_shape shape;
		unsigned parts;
	} rows[] = { { false, CLF_LABEL_PAPER, ITEM_BARE, 0 },
		     { true, CLF_LABEL_FULL, ITEM_READS, 4 },
		     { true, CLF_LABEL_PAPER, ITEM_GAPS, 7 } };
	const struct clf_features all = {
		.accessed_ms = 4711, .reads = { 3, 2, 500 }, .gaps = { 7, 8, 9 }, .past = 17
	};
	struct harness *h = *state;
	const char *path = h->config.flash_path;

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		h->config.flash_path = rows[i].flash ? path : NULL;
		h->config.label_mode = rows[i].mode;
		harness_open(h);
		for (unsigned flags = 0; flags < 2; flags++) {
			struct item *item = item_new(context_of(h), "key", 3, flags, 0, 5);
			struct clf_features features = item_features(item);

			assert_int_equal(item->shape, rows[i].shape + flags);
			assert_int_equal(item_allocated_bytes(item), sizeof(*item) + rows[i].parts + 4 * flags + 8);
			assert_memory_equal(&features, &(struct clf_features){ 0 }, sizeof(features));
			item_set_features(item, &all);
			features = item_features(item);
			assert_int_equal(features.accessed_ms, 4711);
			assert_int_equal(features.past, 17);
			assert_int_equal(features.reads.count, rows[i].parts > 0 ? 3 : 0);
			assert_int_equal(features.reads.stay, rows[i].parts > 0 ? 2 : 0);
			assert_int_equal(features.reads.mean_gap, rows[i].parts > 0 ? 500 : 0);
			assert_int_equal(features.gaps.first, rows[i].parts > 4 ? 7 : 0);
			assert_int_equal(features.gaps.max, rows[i].parts > 4 ? 9 : 0);
			assert_true(item_is(item, "key", 3));
			assert_int_equal(item_client_flags(item), flags);
			item_release(context_of(h), item);
		}
		harness_close(h);
	}
}

/* Ids have 53 bits, beside which lie shape and key length. */
static void the_largest_id_leaves_its_neighbours_alone(void **state)
{
	struct harness *h = *state;
	struct item *item;

	harness_open(h);
	item = item_new_extra(context_of(h), "key", 3, 0, 0, 0);
	item_set_cas(item, ITEM_CAS_MAX);
	assert_true(item->cas == ITEM_CAS_MAX && item_shown_cas(item) == ITEM_CAS_MAX);
	assert_int_equal(item->key_length, 3);
	assert_true(item_has_extra(item));
	item_release(context_of(h), item);
}

/* Times have 32 bits of milliseconds, and come from the clocks of several threads. */
static void idle_time_survives_the_wrap_of_the_clock_and_another_thread_s_clock(void **state)
{
	uint32_t accessed_ms = UINT32_MAX - 499;

	(void)state;
	assert_int_equal(item_idle_seconds(accessed_ms, (1ull << 32) + 2 * SECOND_MS - 500), 2);
	assert_int_equal(item_idle_seconds(accessed_ms, (1ull << 32) - 501), 0); /* a millisecond before the write */
	assert_int_equal(item_idle_seconds(accessed_ms, (1ull << 32) - 500 - ITEM_CLOCKS_APART_MS + 1), 0);
	accessed_ms = 4 * SECOND_MS;
	assert_int_equal(item_idle_seconds(accessed_ms, 10 * SECOND_MS + 999), 6);
}

/* ---- references and cost --------------------------------------------------------------------- */

static void an_item_is_freed_with_its_last_reference_alone(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	struct item *item = item_new(context_of(h), "key", 3, 0, 0, 100);
	size_t bytes = item_allocated_bytes(item);
	uint64_t before = class_items(h, bytes);
	item_ref(item);
	item_ref(item);
	for (unsigned left = 2; left > 0; left--) {
		item_release(context_of(h), item);
		assert_int_equal(item->refs, left);
		assert_int_equal(class_items(h, bytes), before);
	}
	item_release(context_of(h), item);
	assert_int_equal(class_items(h, bytes), before - 1);
}

static void the_account_has_the_cost_of_each_item_until_it_goes(void **state)
{
	static const uint32_t lengths[] = { 0, 1, 100, 4096, 70000 };
	struct harness *h = *state;

	h->config.flash_path = NULL;
	harness_open(h);
	for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct item *item = item_new(context_of(h), "key", 3, 9, 0, lengths[i]);

		context_settle(context_of(h));
		assert_int_equal(h->store->item_bytes, item_cost(item));
		assert_int_equal(context_of(h)->item_bytes, 0);
		item_release(context_of(h), item);
		context_settle(context_of(h));
		assert_int_equal(h->store->item_bytes, 0);
	}
}

/* A thread's own share may hide so much from the others, and not more. */
static void a_context_settles_when_its_share_is_above_a_batch_either_way(void **state)
{
	struct harness *h = *state;
	struct item *item[400];
	unsigned count = 0;

	h->config.flash_path = NULL;
	harness_open(h);
	int64_t batch = h->store->account_batch;
	assert_in_range(batch, 1, KIB(64));
	for (int64_t all = 0; all < 3 * batch && count < 400; count++) {
		item[count] = item_new(context_of(h), "key", 3, 0, 0, 100);
		all += (int64_t)item_cost(item[count]);
		assert_in_range(context_of(h)->item_bytes, 0, batch);
		assert_int_equal(h->store->item_bytes + context_of(h)->item_bytes, all);
	}
	assert_true(h->store->item_bytes > batch);
	while (count > 0) {
		item_release(context_of(h), item[--count]);
		assert_true(context_of(h)->item_bytes >= -batch);
	}
	context_settle(context_of(h));
	assert_int_equal(h->store->item_bytes, 0);
}

static unsigned woken;

static void note_wake(struct store *store)
{
	(void)store;
	woken++;
}

static void a_batch_that_leaves_less_than_a_segment_free_wakes_the_cleaner(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	h->store->wake = note_wake;
	woken = 0;
	struct item *most = item_new(context_of(h), "key", 3, 0, 0,
				     (uint64_t)store_free_bytes(h->store) - h->store->segment_bytes * 20);
	assert_int_equal(woken, 0);
	assert_true(store_free_bytes(h->store) > (int64_t)h->store->segment_bytes);
	struct item *last = item_new(context_of(h), "key", 3, 0, 0, (uint64_t)store_free_bytes(h->store));
	assert_int_equal(woken, 1);
	item_release(context_of(h), most);
	item_release(context_of(h), last);
}

static void what_the_cleaner_releases_is_counted_as_its_own(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	struct item *one = item_new(context_of(h), "key", 3, 0, 0, 100);
	struct item *two = item_new(context_of(h), "key", 3, 0, 0, 100);
	uint64_t cost = item_cost(one), before = h->store->released_bytes;
	item_release(context_of(h), one);
	context_settle(context_of(h));
	assert_int_equal(h->store->released_bytes, before);
	item_release(&h->store->cleaner->context, two);
	context_settle(&h->store->cleaner->context);
	assert_int_equal(h->store->released_bytes, before + cost);
	context_settle(&h->store->cleaner->context); /* once is enough */
	assert_int_equal(h->store->released_bytes, before + cost);
	assert_int_equal(h->store->cleaner->context.released_bytes, 0);
}

/* ---- records --------------------------------------------------------------------------------- */

static void a_record_s_item_has_all_that_the_record_has(void **state)
{
	struct clf_features features = { .accessed_ms = 9000, .reads = { .count = 3 }, .gaps = { .first = 1 } };
	struct seg_record record = { .key = "key",
				     .key_length = 3,
				     .value = "the value",
				     .value_length = 9,
				     .client_flags = 42,
				     .expiry = 4711,
				     .cas = 99 };
	struct clf_features_packed packed;
	struct harness *h = *state;

	harness_open(h);
	clf_features_pack(&features, 10000, &packed);
	memcpy(record.features, &packed, sizeof(record.features));
	for (unsigned fetched = 0; fetched < 2; fetched++) {
		record.item_flags = (uint8_t)fetched;
		struct item *item = item_from_record(context_of(h), &record, 10000);
		assert_non_null(item);
		assert_true(item_is(item, "key", 3));
		assert_int_equal(item->value_length, 9);
		assert_memory_equal(item_value(item), "the value", 9);
		assert_int_equal(item_client_flags(item), 42);
		assert_int_equal(item->expiry, 4711);
		assert_int_equal(item->cas, 99);
		assert_int_equal(item->state, fetched ? ITEM_FETCHED : 0);
		assert_int_equal(item_features(item).reads.count, 3);
		assert_in_range(item->accessed_ms, 8900, 9100); /* steps of 4.6 % of its age */
		item_release(context_of(h), item);
	}
}

static void each_byte_of_a_key_counts_and_none_behind_it(void **state)
{
	char a[251], b[251];

	(void)state;
	memset(a, 'k', sizeof(a));
	memset(b, 'k', sizeof(b));
	for (size_t length = 0; length <= 250; length++) {
		b[length] = 'x';
		assert_true(keys_equal(a, b, length));
		b[length] = 'k';
		for (size_t i = 0; i < length; i++) {
			b[i] ^= 1;
			assert_false(keys_equal(a, b, length));
			b[i] ^= 1;
		}
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_byte_of_a_key_counts_and_none_behind_it),
		TEST(the_limit_counts_header_and_key_to_the_byte),
		TEST(a_new_item_has_one_reference_and_nothing_else),
		TEST(each_mix_of_extra_and_flags_keeps_key_flags_and_value_apart),
		TEST(a_client_s_own_id_is_shown_and_marks_are_seen),
		TEST(an_item_keeps_the_features_that_its_store_asks_for),
		TEST(the_largest_id_leaves_its_neighbours_alone),
		TEST(idle_time_survives_the_wrap_of_the_clock_and_another_thread_s_clock),
		TEST(an_item_is_freed_with_its_last_reference_alone),
		TEST(the_account_has_the_cost_of_each_item_until_it_goes),
		TEST(a_context_settles_when_its_share_is_above_a_batch_either_way),
		TEST(a_batch_that_leaves_less_than_a_segment_free_wakes_the_cleaner),
		TEST(what_the_cleaner_releases_is_counted_as_its_own),
		TEST(a_record_s_item_has_all_that_the_record_has),
	};

	return cmocka_run_group_tests_name("store: items", tests, NULL, NULL);
}
