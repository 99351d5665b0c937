/* SPDX-License-Identifier: BSD-3-Clause */
/* Samples of live objects: what is seen of them is true, each has its chance, and they come no faster than they should. */
#include "server/store/state/id_times.h"
#include "tests/unit/server/store/harness.h"

#define OBJECTS 4000u
#define KEYS 40u

struct seen {
	uint64_t count, dram, flash;
	double weight, weight_of_large; /* of DRAM */
	unsigned of[KEYS]; /* of keys "key%u" */
	struct store_sampled last; /* without its key */
	char last_key[STORE_KEY_MAX + 1];
	struct harness *h;
};

static struct seen seen;

static void see(void *context, const struct store_sampled *object)
{
	struct seen *all = context;
	unsigned number;

	assert_ptr_equal(all, &seen);
	assert_true(object->weight > 0 && object->key_length > 0);
	all->count++;
	all->dram += !object->from_flash;
	all->flash += object->from_flash;
	if (!object->from_flash) {
		all->weight += object->weight;
		all->weight_of_large += object->value_length > 100 ? object->weight : 0;
	}
	all->last = *object;
	memcpy(all->last_key, object->key, object->key_length);
	all->last_key[object->key_length] = 0;
	if (sscanf(all->last_key, "key%u", &number) == 1 && number < KEYS)
		all->of[number]++;
	for (uint32_t n = 0; all->count % 64 == 1 && n < all->h->store->stripe_count; n++) {
		struct lock *lock = &all->h->store->stripes[n].lock;

		assert_true(lock_try(lock));
		lock_release(lock);
	}
}

static void open_seen(struct harness *h)
{
	seen = (struct seen){ .h = h };
	h->config.samples = (struct store_sample_sink){ .seen = see, .context = &seen };
	harness_open(h);
}

/* Steps of keeper and cleaner, 50 ms apart. */
static void step(struct harness *h, unsigned steps)
{
	for (unsigned i = 0; i < steps; i++) {
		clk_scripted_advance(&h->clk, 50000);
		(void)store_clean_step(h->store);
	}
}

static void forget(struct harness *h)
{
	seen = (struct seen){ .h = h };
}

/* ---- nothing to see --------------------------------------------------------------------------------- */

static void nobody_wants_samples(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	set(h, "key", "value");
	assert_null(h->store->samples);
	step(h, 100);
}

static void an_empty_cache(void **state)
{
	struct harness *h = *state;

	open_seen(h);
	step(h, 200);
	assert_int_equal(seen.count, 0);
}

static void dead_objects_are_not_seen(void **state)
{
	struct harness *h = *state;

	open_seen(h);
	run_full(h, .op = STORE_SET, .key = "key1", .value = "v", .length = 1, .exptime = 10);
	set(h, "key2", "v");
	seconds_pass(h, 11);
	store_flush_all(h->store, 0);
	set(h, "key3", "v");
	step(h, 2000);
	assert_int_equal(seen.of[1], 0);
	assert_int_equal(seen.of[2], 0);
	assert_true(seen.of[3] > 0);
}

/* Objects on flash whose record can't be read. */
static void a_record_that_is_damaged(void **state)
{
	struct harness *h = *state;

	open_seen(h);
	set_on_flash(h, "key1", "value");
	forget(h);
	h->ram->fail_reads = 1;
	step(h, 40);
	h->ram->fail_reads = 0;
	assert_int_equal(seen.flash, 0);
}

/* ---- DRAM -------------------------------------------------------------------------------------------- */

static void what_is_seen_of_an_object(void **state)
{
	struct harness *h = *state;

	open_seen(h);
	id_times_begin(h->store);
	seconds_pass(h, 5);
	run_full(h, .op = STORE_SET, .key = "app:one", .value = "0123456789", .length = 10, .exptime = 1000);
	seconds_pass(h, 100);
	get(h, "app:one");
	seconds_pass(h, 20);
	step(h, 400);
	assert_string_equal(seen.last_key, "app:one");
	assert_int_equal(seen.last.value_length, 10);
	assert_true(seen.last.expires);
	/* 20 s of steps at the most lie between the last of them and now. */
	assert_in_range(seen.last.ttl_seconds, 1000 - 141, 1000 - 120);
	assert_in_range(seen.last.age_seconds, 118, 145);
	assert_in_range(seen.last.idle_seconds, 20, 41);
	assert_false(seen.last.from_flash || seen.last.from_earlier);
	assert_int_equal(seen.last.bytes, item_cost(item_in_dram(h, "app:one")));
}

/* An eighth of the objects is large: the weights say so, and nearly as many objects are seen as should be. */
static void weights_are_those_of_the_cache(void **state)
{
	struct harness *h = *state;
	char key[32], value[200];

	memset(value, 'v', sizeof(value));
	open_seen(h);
	for (unsigned i = 0; i < OBJECTS; i++) {
		snprintf(key, sizeof(key), "object-%u", i);
		run_full(h, .op = STORE_SET, .key = key, .value = value, .length = i % 8 ? 20 : 200);
	}
	step(h, 400); /* 20 s */
	assert_in_range(seen.dram, SAMPLE_DRAM_PER_S * 5, SAMPLE_DRAM_PER_S * 40);
	assert_true(fabs(seen.weight_of_large / seen.weight - 0.125) < 0.03);
}

/* ---- flash --------------------------------------------------------------------------------------------- */

static bool all_keys_were_seen(void)
{
	for (unsigned i = 0; i < KEYS; i++)
		if (seen.of[i] == 0)
			return false;
	return true;
}

static void objects_on_flash_have_their_chance(void **state)
{
	struct harness *h = *state;
	uint64_t reads, steps = 0;
	char key[32];

	open_seen(h);
	id_times_begin(h->store);
	for (unsigned i = 0; i < KEYS; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		run_full(h, .op = STORE_SET, .key = key, .value = "on flash", .length = 8, .exptime = 100000);
	}
	seconds_pass(h, 50);
	for (unsigned i = 0; i < KEYS; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		move(h, key);
	}
	get(h, "key7");
	forget(h);
	reads = h->ram->reads;
	for (unsigned i = 0; i < 4000 && !all_keys_were_seen(); i++) {
		step(h, 10);
		steps += 10;
	}
	assert_in_range(seen.flash, 1, steps / 20 * SAMPLE_FLASH_PER_S + SAMPLE_FLASH_PER_S);
	assert_in_range(h->ram->reads - reads, seen.flash, 3 * seen.flash + 10);
	assert_true(all_keys_were_seen());
}

static void what_is_seen_of_a_record(void **state)
{
	struct harness *h = *state;
	unsigned found = 0;

	open_seen(h);
	id_times_begin(h->store);
	seconds_pass(h, 5);
	run_full(h, .op = STORE_SET, .key = "key1", .value = "on flash", .length = 8, .exptime = 100000);
	seconds_pass(h, 100);
	move(h, "key1");
	forget(h);
	for (unsigned i = 0; i < 200000 && found < 2; i++) {
		uint64_t before = seen.of[1];

		step(h, 1);
		if (seen.of[1] == before || strcmp(seen.last_key, "key1") != 0)
			continue;
		assert_true(seen.last.from_flash && seen.last.expires && !seen.last.from_earlier);
		assert_int_equal(seen.last.value_length, 8);
		assert_int_equal(seen.last.bytes, seg_record_length(4, 8));
		assert_true(seen.last.age_seconds >= 100 && seen.last.idle_seconds >= 90);
		assert_int_equal(seen.last.read_on_flash, found > 0);
		if (found++ == 0)
			get(h, "key1");
	}
	assert_int_equal(found, 2);
}

/* Large objects cost so many bytes that samples wait. */
static void the_bytes_read_are_bounded(void **state)
{
	struct harness *h = *state;
	static char value[200 << 10];
	uint64_t before;
	char key[32];

	h->config.memory_bytes = MIB(16);
	h->config.segment_bytes = MIB(1);
	h->config.flash_bytes = MIB(17);
	open_seen(h);
	memset(value, 'v', sizeof(value));
	for (unsigned i = 0; i < 40; i++) {
		snprintf(key, sizeof(key), "large%u", i);
		run_full(h, .op = STORE_SET, .key = key, .value = value, .length = sizeof(value));
	}
	move(h, "large0");
	step(h, 100);
	before = ctr_total(CTR_flash_bytes_read);
	forget(h);
	step(h, 1200); /* a minute */
	assert_true(seen.flash > 10);
	assert_true(ctr_total(CTR_flash_bytes_read) - before <= 66ull * SAMPLE_FLASH_BYTES_PER_S);
}

/* ---- bins -------------------------------------------------------------------------------------------- */

static int setup_frugal(void **state)
{
	int result = setup_in_memory(state);

	((struct harness *)*state)->config.index = STORE_INDEX_FRUGAL;
	return result;
}

static void set_keys_on_flash(struct harness *h, const char *value)
{
	char key[32];

	for (unsigned i = 0; i < KEYS; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		assert_int_equal(set(h, key, value).result, STORE_STORED);
	}
	for (unsigned i = 0; i < KEYS; i++) {
		snprintf(key, sizeof(key), "key%u", i);
		move(h, key);
	}
}

/* Of what was overwritten or deleted the records are there still. */
static void in_bins_live_objects_have_their_chance(void **state)
{
	struct harness *h = *state;
	char key[32];

	open_seen(h);
	set_keys_on_flash(h, "first");
	set_keys_on_flash(h, "second");
	for (unsigned i = 0; i < KEYS; i += 2) {
		snprintf(key, sizeof(key), "key%u", i);
		assert_int_equal(run(h, STORE_DELETE, key).result, STORE_DELETED);
	}
	forget(h);
	for (unsigned i = 0; i < 40000; i++) {
		uint64_t before = seen.flash;

		step(h, 5);
		if (seen.flash > before && strncmp(seen.last_key, "key", 3) == 0)
			assert_int_equal(seen.last.value_length, strlen("second"));
		if (seen.of[1] && seen.of[11] && seen.of[21] && seen.of[31])
			break;
	}
	assert_true(seen.of[1] && seen.of[11] && seen.of[21] && seen.of[31]);
	for (unsigned i = 0; i < KEYS; i += 2)
		assert_int_equal(seen.of[i], 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nobody_wants_samples),
		TEST(an_empty_cache),
		TEST(dead_objects_are_not_seen),
		TEST(a_record_that_is_damaged),
		TEST(what_is_seen_of_an_object),
		TEST(weights_are_those_of_the_cache),
		TEST(objects_on_flash_have_their_chance),
		TEST(what_is_seen_of_a_record),
		TEST(the_bytes_read_are_bounded),
		cmocka_unit_test_setup_teardown(in_bins_live_objects_have_their_chance, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(what_is_seen_of_a_record, setup_frugal, teardown),
		cmocka_unit_test_setup_teardown(a_record_that_is_damaged, setup_frugal, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
