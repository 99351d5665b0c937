/* SPDX-License-Identifier: BSD-3-Clause */
/* What a test wants on flash gets there, and nothing else; cleaner and keeper come to rest. */
#include "server/store/drive.h"
#include "tests/unit/server/store/harness.h"

#ifdef FS_FAULTS
#define OBJECTS 30

static const _Atomic bool never, at_once = true;

static struct store_place_key key_of(const char *key)
{
	return (struct store_place_key){ .key = key, .length = strlen(key) };
}

static void what_is_wanted_gets_to_flash(void **state)
{
	struct harness *h = *state;
	char names[OBJECTS][24];
	struct store_place_key keys[OBJECTS];

	harness_open(h);
	for (int n = 0; n < OBJECTS; n++) {
		snprintf(names[n], sizeof(names[n]), "object-%d", n);
		set(h, names[n], names[n]);
		keys[n] = key_of(names[n]);
	}
	assert_int_equal(store_start(h->store), FS_OK);
	assert_int_equal(store_place(h->store, keys, OBJECTS / 2, &never), OBJECTS / 2);
	store_stop(h->store);
	for (int n = 0; n < OBJECTS; n++)
		assert_int_equal(where(h, names[n]), n < OBJECTS / 2 ? FLASH : DRAM);
	for (int n = 0; n < OBJECTS; n++)
		assert_value(h, names[n], names[n]);
	harness_close(h);
}

/* A small object and one with an extent, which a frugal index writes apart; one that isn't there; and one that is on flash. */
static void of_each_size_and_not_what_is_not_there(void **state)
{
	static char large[20000];
	struct harness *h = *state;
	const struct store_place_key keys[] = { key_of("small"), key_of("large"), key_of("none"), key_of("flash") };

	harness_open(h);
	memset(large, 'l', sizeof(large));
	set_on_flash(h, "flash", "value");
	set(h, "small", "value");
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "large", .value = large, .length = sizeof(large)).result,
			 STORE_STORED);
	assert_int_equal(store_start(h->store), FS_OK);
	assert_int_equal(store_place(h->store, keys, 4, &never), 2);
	store_stop(h->store);
	for (int n = 0; n < 4; n++)
		assert_int_equal(where(h, keys[n].key), n == 2 ? NOWHERE : FLASH);
	assert_value(h, "small", "value");
	harness_close(h);
}

/* What is too large for it, and what is there already, is none of them. */
static void without_keys_all_that_can_go_gets_there(void **state)
{
	static char large[40000];
	struct harness *h = *state;
	char name[24];

	harness_open(h);
	memset(large, 'l', sizeof(large));
	for (int n = 0; n < OBJECTS; n++) {
		snprintf(name, sizeof(name), "object-%d", n);
		set(h, name, name);
	}
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "large", .value = large, .length = sizeof(large)).result,
			 STORE_STORED);
	assert_int_equal(store_start(h->store), FS_OK);
	assert_int_equal(store_place(h->store, NULL, 0, &never), OBJECTS);
	assert_int_equal(store_place(h->store, NULL, 0, &never), 0);
	store_stop(h->store);
	assert_int_equal(where(h, "large"), DRAM);
	for (int n = 0; n < OBJECTS; n++) {
		snprintf(name, sizeof(name), "object-%d", n);
		assert_int_equal(where(h, name), FLASH);
		assert_value(h, name, name);
	}
	harness_close(h);
}

/* However little the write budget leaves, and whatever the rule says. */
static void no_rule_holds_it_back(void **state)
{
	struct harness *h = *state;
	const struct store_place_key key = key_of("key");

	h->config.admission = CLF_ADMIT_SVM;
	h->config.flash_write_limit = 1;
	harness_open(h);
	set(h, "key", "value");
	assert_int_equal(store_start(h->store), FS_OK);
	assert_int_equal(store_place(h->store, &key, 1, &never), 1);
	store_stop(h->store);
	assert_int_equal(where(h, "key"), FLASH);
	harness_close(h);
}

static void who_stops_waiting_gets_an_answer(void **state)
{
	struct harness *h = *state;
	const struct store_place_key key = key_of("key");

	harness_use_ram(h);
	harness_open(h);
	set(h, "key", "value");
	atomic_store(&h->store->cleaner->offline_until_ms, UINT64_MAX); /* no write is tried */
	assert_int_equal(store_start(h->store), FS_OK);
	assert_int_equal(store_place(h->store, &key, 1, &at_once), 0);
	store_rest(h->store, &at_once);
	store_stop(h->store);
	assert_int_equal(where(h, "key"), DRAM);
	harness_close(h);
}

/* More than memory holds: when both rest, there is as much free memory as they keep. */
static void work_is_done_when_they_rest(void **state)
{
	struct harness *h = *state;
	char key[24];

	harness_open(h);
	assert_int_equal(store_start(h->store), FS_OK);
	for (int n = 0; n < 30000; n++) {
		snprintf(key, sizeof(key), "filler-%d", n);
		set(h, key, "a value of some bytes that takes a while to fill the memory with, and a bit more of it");
		if (n % 2000 == 0)
			store_rest(h->store, &never);
	}
	store_rest(h->store, &never);
	assert_false(cleaner_is_writing(h->store));
	assert_false(cleaner_wants_to_write(h->store, store_free_bytes(h->store)));
	assert_true(ctr_sum(CTR_segments_written) > 0);
	store_stop(h->store);
	harness_close(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_wanted_gets_to_flash, setup_in_memory, teardown),
		cmocka_unit_test_setup_teardown(of_each_size_and_not_what_is_not_there, setup_in_memory, teardown),
		cmocka_unit_test_setup_teardown(without_keys_all_that_can_go_gets_there, setup_in_memory, teardown),
		cmocka_unit_test_setup_teardown(no_rule_holds_it_back, setup_in_memory, teardown),
		cmocka_unit_test_setup_teardown(who_stops_waiting_gets_an_answer, setup, teardown),
		cmocka_unit_test_setup_teardown(work_is_done_when_they_rest, setup_in_memory, teardown),
	};

	return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
#else
static void there_is_none(void **state)
{
	(void)state;
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(there_is_none) };

	return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
#endif
