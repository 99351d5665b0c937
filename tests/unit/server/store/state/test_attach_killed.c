/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects on flash over a kill at a fault point: whatever was under way, no value is older than what clients were told. */
#include <sys/mman.h>

#include "tests/unit/server/store/state/attaching.h"

/* Under TSan a storm takes a minute, and there is one thread. */
#ifdef __SANITIZE_THREAD__
#define ONE_THREAD_IS_SLOW true
#else
#define ONE_THREAD_IS_SLOW false
#endif

#define VERSION_GONE 0 /* deleted, flushed or never set */

/* What clients were told, in memory that outlives the child. */
struct told {
	uint32_t acknowledged[OBJECTS]; /* a version, or VERSION_GONE */
	uint32_t maybe[OBJECTS]; /* another version that may be there, of a command that wasn't answered */
	int pending_key; /* of a command that is under way; -1: none, OBJECTS: all */
	uint32_t pending;
	uint32_t version, seed;
};
static struct told *told;

static void change(struct harness *h, struct rng *rng)
{
	int n = (int)rng_below(rng, OBJECTS);
	uint32_t version = ++told->version, what = (uint32_t)rng_below(rng, 100);
	static char value[LARGE];
	char key[KEY_BYTES];

	key_number(key, n);
	memset(value, 0, sizeof(value));
	snprintf(value, sizeof(value), "%u", version);
	told->pending = what < 80 ? version : VERSION_GONE;
	told->pending_key = what < 98 ? n : OBJECTS;
	if (what < 80)
		run_full(h, .op = STORE_SET, .key = key, .value = value,
			 .length = n % 8 == 0 ? LARGE : (uint32_t)strlen(value) + 1);
	else if (what < 98)
		run(h, STORE_DELETE, key);
	else
		store_flush_all(h->store, 0);
	for (int k = 0; k < OBJECTS; k++)
		if (k == told->pending_key || told->pending_key == OBJECTS)
			told->acknowledged[k] = told->maybe[k] = told->pending;
	told->pending_key = -1;
}

/* Sets, deletes and flushes, with the cleaner at work, until a fault point fires. */
static void storm(struct harness *h)
{
	struct rng rng;

	harness_open(h);
	rng_init(&rng, told->seed);
	for (int turn = 0; turn < 4000; turn++) {
		change(h, &rng);
		if (turn % 4 == 0)
			(void)write_one(h);
	}
}

static void assert_never_stale(struct harness *h, const char *what, uint32_t *hits)
{
	for (int n = 0; n < OBJECTS; n++) {
		char key[KEY_BYTES];
		struct reply reply;
		uint32_t version;

		if (told->pending_key == n)
			told->maybe[n] = told->pending;
		key_number(key, n);
		reply = get(h, key);
		if (reply.result != STORE_HIT)
			continue;
		(*hits)++;
		version = (uint32_t)atoi(reply.value);
		if (version == VERSION_GONE || (version != told->acknowledged[n] && version != told->maybe[n]))
			fail_msg("%s, seed %u: %s has version %u; %u was acknowledged", what, told->seed, key, version,
				 told->acknowledged[n]);
		told->acknowledged[n] = told->maybe[n] = version; /* seen by a client now */
	}
	told->pending_key = -1;
}

static void told_begin(uint32_t seed)
{
	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(told != MAP_FAILED);
	*told = (struct told){ .pending_key = -1, .seed = seed };
}

static void kill_at(struct harness *h, enum fault_point point, uint64_t after, const char *what)
{
	uint32_t hits = 0;

	if (!HAVE_FAULTS || ONE_THREAD_IS_SLOW)
		skip();
	unlink(region_path);
	unlink(h->path);
	told_begin((uint32_t)after + 1);
	for (int turn = 0; turn < 2; turn++, told->seed++) {
		fault_disarm_all();
		if (point == FAULT_killed_in_relocation)
			fault_arm(FAULT_index_force_relocation, FAULT_ALWAYS, 0);
		fault_arm(point, FAULT_AFTER, after);
		run_in_killed_child(h, storm);
		assert_true(told->version < 4000u * (unsigned)(turn + 1)); /* the point was reached */
		fault_disarm_all();
		assert_start(h, ATTACHED);
		assert_never_stale(h, what, &hits);
		for (int n = 0; n < 20; n++)
			assert_true(write_one(h)); /* segments that were left over are reclaimed */
		assert_never_stale(h, what, &hits);
		assert_true(fidx_verify(h->store->index));
		harness_close(h);
	}
	if (point != FAULT_killed_in_flush)
		assert_true(hits > 0);
	munmap(told, sizeof(*told));
}

#define KILLED_IN(name, after) \
	static void a_kill_##name(void **state) \
	{ \
		kill_at(*state, FAULT_killed_##name, after, #name); \
		kill_at(*state, FAULT_killed_##name, 2 * (after) + 1, #name); \
	}

KILLED_IN(at_slot_clear, 20001)
KILLED_IN(in_commit, 10000)
KILLED_IN(in_row, 30)
KILLED_IN(in_reclaim, 6)
KILLED_IN(in_close, 10)
KILLED_IN(in_relocation, 8000)
KILLED_IN(in_flush, 2)

static void die_in_table_add(struct harness *h)
{
	unsigned second;

	open_and_fill(h);
	fault_arm(FAULT_killed_in_table, FAULT_ALWAYS, 0);
	(void)!fidx_table_add(h->store->index, 100, &second);
	_exit(1); /* the point was not reached */
}

static void die_in_table_drop(struct harness *h)
{
	unsigned second;

	open_and_fill(h);
	assert_int_equal(fidx_table_add(h->store->index, 100, &second), FS_OK);
	fault_arm(FAULT_killed_in_table, FAULT_ALWAYS, 0);
	fidx_table_drop(h->store->index, second);
	_exit(1);
}

/* Memory that no live table has is taken again by the next one, and is empty then. */
static void a_kill_in_table(void **state)
{
	static void (*const work[])(struct harness *) = { die_in_table_add, die_in_table_drop };
	struct harness *h = *state;
	struct fidx_table tables[FIDX_TABLES];
	unsigned second;

	if (!HAVE_FAULTS)
		skip();
	for (unsigned n = 0; n < 2; n++) {
		run_in_killed_child(h, work[n]);
		assert_start(h, ATTACHED);
		fidx_tables(h->store->index, tables);
		assert_true(tables[0].live && !tables[1].live && !tables[2].live);
		assert_filled(h);
		assert_int_equal(fidx_table_add(h->store->index, 200, &second), FS_OK);
		assert_true(fidx_verify(h->store->index));
		set_on_flash(h, "key", "value");
		assert_value(h, "key", "value");
		harness_close(h);
		assert_start(h, ATTACHED);
		assert_filled(h);
		harness_close(h);
		unlink(region_path);
		unlink(h->path);
	}
}

#define EXTENTS 8

static void set_large(struct harness *h)
{
	static char large[LARGE];
	char key[KEY_BYTES];

	harness_open(h);
	memset(large, 'L', sizeof(large));
	for (int n = 0; n < EXTENTS; n++) {
		key_number(key, n);
		assert_int_equal(
			run_full(h, .op = STORE_SET, .key = key, .value = large, .length = sizeof(large)).result,
			STORE_STORED);
	}
	for (int n = 0; n < EXTENTS; n++) {
		key_number(key, n);
		if (where(h, key) != FLASH)
			move(h, key);
	}
}

static uint64_t extents_moved; /* before the kill */

static void die_in_extent_move(struct harness *h)
{
	set_large(h);
	fault_arm(FAULT_killed_in_extent_move, FAULT_AFTER, extents_moved);
	(void)!fidx_extents_reserve(h->store->index, 500);
	_exit(1);
}

/* Wherever the kill comes, each object has one extent, the old one or the new one. */
static void a_kill_in_extent_move(void **state)
{
	struct harness *h = *state;
	struct store_status status;
	char key[KEY_BYTES];

	if (!HAVE_FAULTS)
		skip();
	for (extents_moved = 0; extents_moved < EXTENTS; extents_moved++) {
		unlink(region_path);
		unlink(h->path);
		run_in_killed_child(h, die_in_extent_move);
		assert_start(h, ATTACHED);
		recount_finish(h->store);
		store_get_status(h->store, &status);
		assert_int_equal(status.index.extents_used, EXTENTS);
		for (int n = 0; n < EXTENTS; n++) {
			key_number(key, n);
			assert_int_equal(get(h, key).length, LARGE);
		}
		key_number(key, (int)extents_moved);
		set(h, key, "new");
		assert_true(fidx_verify(h->store->index));
		harness_close(h);
		assert_start(h, ATTACHED);
		assert_missing(h, key);
		harness_close(h);
	}
	assert_start(h, ATTACHED);
}

/* Under -M the object is cleared by its place: where a move was cut off, in both tables. */
static void a_delete_before_the_move_is_finished_holds(void **state)
{
	struct harness *h = *state;
	char key[KEY_BYTES];

	if (!HAVE_FAULTS)
		skip();
	h->config.evict = false;
	extents_moved = EXTENTS / 2;
	run_in_killed_child(h, die_in_extent_move);
	harness_open(h);
	assert_int_equal(h->store->start, STORE_START_ATTACHED);
	for (int n = 0; n < EXTENTS; n++) {
		key_number(key, n);
		assert_int_equal(run(h, STORE_DELETE, key).result, STORE_DELETED);
	}
	recount_finish(h->store);
	for (int n = 0; n < EXTENTS; n++) {
		key_number(key, n);
		assert_missing(h, key);
	}
	assert_true(fidx_verify(h->store->index));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ATTACH_TEST(a_kill_at_slot_clear),  ATTACH_TEST(a_kill_in_commit),
		ATTACH_TEST(a_kill_in_row),         ATTACH_TEST(a_kill_in_reclaim),
		ATTACH_TEST(a_kill_in_close),       ATTACH_TEST(a_kill_in_relocation),
		ATTACH_TEST(a_kill_in_flush),       ATTACH_TEST(a_kill_in_table),
		ATTACH_TEST(a_kill_in_extent_move), ATTACH_TEST(a_delete_before_the_move_is_finished_holds),
	};

	return cmocka_run_group_tests_name("attach_killed", tests, NULL, NULL);
}
