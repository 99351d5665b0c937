/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects on flash over a kill: a child opens the store, works, and ends by SIGKILL, at random or at a fault point. The
 * next process attaches to its region: acknowledged values come back right or not at all, older ones never.
 */
#include "server/store/state/attach.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/store/state/recount.h"
#include "tests/unit/server/store/killed_child.h"

#define MINUTE_US 60000000ull
#define OBJECTS 40
#define KEY_BYTES 24
#define LARGE 3000 /* has an extent */

/* Under TSan a storm takes a minute, and there is one thread. */
#ifdef __SANITIZE_THREAD__
#define ONE_THREAD_IS_SLOW true
#else
#define ONE_THREAD_IS_SLOW false
#endif

static char folder[100], region_path[200], state_folder[100];

static int setup_folder(void **state)
{
	struct harness *h;

	assert_int_equal(setup(state), 0);
	h = *state;
	snprintf(folder, sizeof(folder), "/dev/shm/flashield-attach-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(state_folder, sizeof(state_folder), "%.40s/flashield-state-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(state_folder));
	snprintf(region_path, sizeof(region_path), "%s/%.80s.region", folder, strrchr(h->path, '/') + 1);
	h->config.region_dir = folder;
	h->config.restart_max_downtime_us = MINUTE_US;
	h->config.boot_id = "one boot";
	return 0;
}

static int teardown_folder(void **state)
{
	struct harness *h = *state;
	char path[200];

	snprintf(path, sizeof(path), "%s/%.80s.state", state_folder, strrchr(h->path, '/') + 1);
	unlink(path);
	unlink(region_path);
	fault_disarm_all();
	return teardown(state) == 0 && rmdir(folder) == 0 && rmdir(state_folder) == 0 ? 0 : -1;
}

/* ---- kill and start -------------------------------------------------------------------------- */

static enum store_start start_again(struct harness *h)
{
	struct store_status status;

	harness_open(h);
	store_get_status(h->store, &status);
	assert_string_equal(status.start_word, store_start_word(h->store->start));
	assert_true(fidx_verify(h->store->index));
	if (!restart_is_warm(h->store))
		assert_int_equal(status.index.used + status.index.extents_used + status.segments.live, 0);
	return h->store->start;
}

#define assert_start(h, how) assert_string_equal(store_start_word(start_again(h)), store_start_word(STORE_START_##how))

static void key_number(char key[KEY_BYTES], int n)
{
	snprintf(key, KEY_BYTES, "object-%d", n);
}

static void fill(struct harness *h)
{
	char key[KEY_BYTES];

	for (int n = 0; n < OBJECTS; n++) {
		key_number(key, n);
		set(h, key, key);
	}
	for (int n = 0; n < OBJECTS; n++) {
		key_number(key, n);
		if (where(h, key) != FLASH)
			move(h, key);
	}
}

static void open_and_fill(struct harness *h)
{
	harness_open(h);
	fill(h);
}

static void assert_filled(struct harness *h)
{
	char key[KEY_BYTES];

	for (int n = 0; n < OBJECTS; n++) {
		struct reply reply;

		key_number(key, n);
		reply = get(h, key);
		assert_int_equal(reply.result, STORE_HIT);
		assert_true(reply.from_flash);
		assert_string_equal(reply.value, key);
	}
}

#define assert_cold(h, why) \
	do { \
		assert_start(h, why); \
		assert_missing(h, "object-0"); \
		set_on_flash(h, "key", "new"); \
		assert_value(h, "key", "new"); \
		harness_close(h); \
	} while (0)

static void only_open(struct harness *h)
{
	harness_open(h);
}

/* ---- warm ------------------------------------------------------------------------------------ */

static void what_lay_on_flash_is_served_after_a_kill(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, open_and_fill);
	for (int turn = 0; turn < 3; turn++) {
		assert_start(h, ATTACHED);
		assert_filled(h);
		harness_close(h); /* no orderly end either: nothing is saved */
		run_in_killed_child(h, only_open);
	}
}

static void write_over(struct harness *h)
{
	harness_open(h);
	for (int n = 0; n < 40; n++)
		set_on_flash(h, "key", "value");
}

static void the_flash_turns_on(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, open_and_fill);
	for (int turn = 0; turn < 3; turn++) {
		run_in_killed_child(h, write_over);
		assert_start(h, ATTACHED);
		assert_value(h, "key", "value");
		set_on_flash(h, "key", "later");
		assert_value(h, "key", "later");
		harness_close(h);
	}
}

static void with_large_ones(struct harness *h)
{
	static char large[LARGE];
	unsigned second;

	open_and_fill(h);
	assert_int_equal(fidx_table_add(h->store->index, 100, &second), FS_OK);
	memset(large, 'L', sizeof(large));
	assert_int_equal(run_full(h, .op = STORE_SET, .key = "large", .value = large, .length = sizeof(large)).result,
			 STORE_STORED);
	move(h, "large");
}

static void tables_and_extents_come_back(void **state)
{
	struct harness *h = *state;
	struct fidx_table tables[FIDX_TABLES];

	run_in_killed_child(h, with_large_ones);
	assert_start(h, ATTACHED);
	fidx_tables(h->store->index, tables);
	assert_true(tables[0].live && tables[1].live && tables[0].id != tables[1].id);
	assert_int_equal(tables[1].slots, 100 * FIDX_BUCKET_SLOTS);
	assert_int_equal(get(h, "large").length, LARGE);
	assert_filled(h);
}

/* ---- never stale ----------------------------------------------------------------------------- */

static void change_all(struct harness *h)
{
	harness_open(h);
	set_on_flash(h, "set", "old");
	set_on_flash(h, "deleted", "old");
	set_on_flash(h, "appended", "old");
	set_on_flash(h, "touched", "old");
	set_on_flash(h, "number", "17");
	set_on_flash(h, "kept", "old");
	set(h, "set", "new");
	assert_int_equal(run(h, STORE_DELETE, "deleted").result, STORE_DELETED);
	assert_int_equal(run_with(h, STORE_APPEND, "appended", "er").result, STORE_STORED);
	assert_int_equal(run_expiry(h, STORE_TOUCH, "touched", 1000).result, STORE_TOUCHED);
	assert_int_equal(run_number(h, STORE_INCR, "number", 1).result, STORE_HIT);
}

static void what_was_changed_before_the_kill_does_not_come_back(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, change_all);
	assert_start(h, ATTACHED);
	assert_missing(h, "set");
	assert_missing(h, "deleted");
	assert_missing(h, "appended");
	assert_missing(h, "touched");
	assert_missing(h, "number");
	assert_value(h, "kept", "old");
}

static void flush_and_set(struct harness *h)
{
	harness_open(h);
	set_on_flash(h, "old", "value");
	store_flush_all(h->store, 0);
	set_on_flash(h, "new", "value");
	store_flush_all(h->store, 40);
}

static void flushes_hold(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, flush_and_set);
	seconds_pass(h, 20);
	assert_start(h, ATTACHED);
	assert_missing(h, "old");
	assert_value(h, "new", "value");
	harness_close(h);
	seconds_pass(h, 21);
	assert_start(h, ATTACHED);
	assert_missing(h, "new");
	set_on_flash(h, "later", "value");
	assert_value(h, "later", "value");
}

static void ids_never_repeat(void **state)
{
	struct harness *h = *state;
	uint64_t before;

	run_in_killed_child(h, open_and_fill);
	assert_start(h, ATTACHED);
	before = get(h, "object-0").cas;
	for (int n = 1; n < OBJECTS; n++) {
		char key[KEY_BYTES];

		key_number(key, n);
		before = before > get(h, key).cas ? before : get(h, key).cas;
	}
	assert_true(set(h, "object-0", "later").cas > before);
}

/* ---- killed in the middle -------------------------------------------------------------------- */

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

/* Each start is killed at its next step, and the last one is warm all the same. */
static void killed_in_the_take_over(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	run_in_killed_child(h, open_and_fill);
	for (uint64_t pair = 0; pair < 5 * 5; pair++) { /* two in a row */
		fault_arm(FAULT_killed_in_take_over, FAULT_AFTER, pair / 5);
		run_in_killed_child(h, only_open);
		fault_arm(FAULT_killed_in_take_over, FAULT_AFTER, pair % 5);
		run_in_killed_child(h, only_open);
		fault_disarm_all();
		assert_start(h, ATTACHED);
		assert_filled(h);
		harness_close(h);
	}
	fault_arm(FAULT_killed_in_take_over, FAULT_AFTER, 5);
	assert_start(h, ATTACHED); /* there is no further step */
	assert_filled(h);
}

static void only_tick(struct harness *h)
{
	harness_open(h);
	store_tick(h->store); /* the keeper would */
}

static void open_and_save(struct harness *h)
{
	harness_open(h);
	(void)store_save(h->store);
}

/* Starts that are killed before they serve, in the takeover and behind it, or that fail. The pause is that between the two
   runs that served. */
static void starts_without_service(struct harness *h)
{
	h->serves_nobody = true;
	for (uint64_t step = 0; HAVE_FAULTS && step < 5; step++) {
		seconds_pass(h, 5);
		fault_arm(FAULT_killed_in_take_over, FAULT_AFTER, step);
		run_in_killed_child(h, only_open);
		fault_disarm_all();
	}
	if (!HAVE_FAULTS)
		seconds_pass(h, 25);
	seconds_pass(h, 15);
	run_in_killed_child(h, only_tick);
	seconds_pass(h, 10);
	run_in_killed_child(h, open_and_save);
	h->serves_nobody = false;
}

static void starts_that_are_killed_do_not_end_the_pause(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, open_and_fill);
	starts_without_service(h);
	seconds_pass(h, 10);
	assert_start(h, ATTACHED);
	assert_filled(h);
	harness_close(h);
	starts_without_service(h); /* the pause begins with the run that served */
	seconds_pass(h, 11);
	assert_cold(h, DOWNTIME);
}

/* The same, where the run that served ended cleanly: the region takes the time from the state file, and the state file from
   the region. */
static void the_pause_goes_from_file_to_region_and_back(void **state)
{
	struct harness *h = *state;

	h->config.state_dir = state_folder;
	for (int turn = 0; turn < 2; turn++) {
		unlink(h->path);
		open_and_fill(h);
		assert_true(store_save(h->store));
		harness_close(h);
		starts_without_service(h);
		seconds_pass(h, turn ? 11 : 10);
		if (turn) {
			assert_cold(h, DOWNTIME);
			continue;
		}
		assert_start(h, WARM); /* the start before has saved again */
		assert_filled(h);
		harness_close(h);
	}
}

/* ---- with a clean stop ----------------------------------------------------------------------- */

static void save(struct harness *h)
{
	open_and_fill(h);
	assert_true(store_save(h->store));
}

static void a_clean_stop_saves_and_empties_the_region(void **state)
{
	struct harness *h = *state;
	struct stat st;

	h->config.state_dir = state_folder;
	open_and_fill(h);
	assert_true(store_save(h->store));
	harness_close(h);
	assert_int_equal(stat(region_path, &st), 0);
	assert_int_equal(st.st_size, 0);
	assert_start(h, WARM);
	assert_filled(h);
	harness_close(h);
	assert_start(h, ATTACHED); /* that run wasn't saved */
	assert_filled(h);
}

static void the_region_does_for_a_clean_stop_without_a_state_directory(void **state)
{
	struct harness *h = *state;

	open_and_fill(h);
	assert_false(store_save(h->store));
	harness_close(h);
	assert_start(h, ATTACHED);
	assert_filled(h);
}

static void killed_in_the_stop_and_in_a_start_from_the_state_file(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	h->config.state_dir = state_folder;
	fault_arm(FAULT_killed_in_save, FAULT_ALWAYS, 0);
	run_in_killed_child(h, save);
	fault_disarm_all();
	assert_start(h, ATTACHED);
	assert_filled(h);
	for (uint64_t step = 0; step < 5; step++) {
		assert_true(store_save(h->store));
		harness_close(h);
		fault_arm(FAULT_killed_in_take_over, FAULT_AFTER, step);
		run_in_killed_child(h, only_open);
		fault_disarm_all();
		assert_string_equal(store_start_word(start_again(h)), step < 2 ? "warm" : "attached");
		assert_filled(h);
	}
}

/* ---- cold ------------------------------------------------------------------------------------ */

static void pairings_that_do_not_fit_start_cold(void **state)
{
	struct harness *h = *state;
	struct store_config config = h->config;

	assert_cold(h, NEW);
	run_in_killed_child(h, open_and_fill);
	h->config.boot_id = "another boot";
	assert_cold(h, BOOT);
	h->config = config;
	run_in_killed_child(h, open_and_fill);
	seconds_pass(h, 61);
	assert_cold(h, DOWNTIME);
	run_in_killed_child(h, open_and_fill);
	h->config.tag_bits = 10;
	assert_cold(h, OPTIONS);
	h->config = config;
	run_in_killed_child(h, open_and_fill);
	h->config.functions = 8;
	assert_cold(h, LAYOUT);
	h->config = config;
	run_in_killed_child(h, open_and_fill);
	unlink(region_path);
	assert_cold(h, REGION_NONE);
	run_in_killed_child(h, open_and_fill);
	atomic_fetch_sub(&h->clk.scripted_us, 1000000);
	assert_cold(h, CLOCK);
	atomic_fetch_add(&h->clk.scripted_us, 1000000);
	run_in_killed_child(h, open_and_fill);
	unlink(h->path);
	run_in_killed_child(h, only_open); /* another flash */
	assert_start(h, ATTACHED);
	harness_close(h);
}

static void with_no_downtime_allowed_nothing_is_kept(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, open_and_fill);
	h->config.restart_max_downtime_us = 0;
	assert_cold(h, OFF);
	run_in_killed_child(h, open_and_fill);
	h->config.restart_max_downtime_us = MINUTE_US;
	assert_cold(h, REGION_NONE);
}

static void a_run_without_the_region_makes_it_worthless(void **state)
{
	struct harness *h = *state;

	for (uint64_t step = 0; step < 5; step++) {
		h->config.region_dir = folder;
		run_in_killed_child(h, open_and_fill);
		if (HAVE_FAULTS) {
			fault_arm(FAULT_killed_in_take_over, FAULT_AFTER, step);
			run_in_killed_child(h, only_open);
			fault_disarm_all();
		}
		h->config.region_dir = NULL;
		run_in_killed_child(h, only_open);
		h->config.region_dir = folder;
		assert_cold(h, REGION_OTHER_RUN);
	}
}

struct bytes {
	char *at;
	size_t length;
};

static struct bytes file_get(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	struct bytes bytes;

	assert_int_equal(fstat(fd, &st), 0);
	bytes = (struct bytes){ mem_must_zalloc((size_t)st.st_size), (size_t)st.st_size };
	assert_int_equal(pread(fd, bytes.at, bytes.length, 0), bytes.length);
	close(fd);
	return bytes;
}

/* In place, so that the file is still the same. */
static void file_put(const char *path, const struct bytes *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_int_equal(pwrite(fd, bytes->at, length, 0), length);
	assert_int_equal(ftruncate(fd, (off_t)length), 0);
	close(fd);
}

static void an_older_region_or_a_copy_starts_cold(void **state)
{
	struct harness *h = *state;
	struct bytes older, copy;

	run_in_killed_child(h, open_and_fill);
	older = file_get(region_path);
	run_in_killed_child(h, only_open);
	file_put(region_path, &older, older.length);
	assert_cold(h, REGION_OTHER_RUN);
	run_in_killed_child(h, open_and_fill);
	copy = file_get(region_path);
	assert_int_equal(rename(region_path, "/dev/shm/flashield-attach-original"), 0);
	file_put(region_path, &copy, copy.length);
	unlink("/dev/shm/flashield-attach-original");
	assert_cold(h, REGION_COPY);
	mem_free(older.at);
	mem_free(copy.at);
}

static void the_region_of_another_flash_starts_cold(void **state)
{
	struct harness *h = *state;
	struct bytes flash;

	run_in_killed_child(h, only_open);
	flash = file_get(h->path);
	unlink(h->path);
	run_in_killed_child(h, open_and_fill);
	file_put(h->path, &flash, flash.length);
	assert_cold(h, REGION_OTHER_FLASH);
	mem_free(flash.at);
}

/* Two flashes with files of one name in different folders share the name of the region. */
static void the_region_of_a_flash_of_another_size_starts_cold(void **state)
{
	struct harness *h = *state;
	struct bytes flash;

	run_in_killed_child(h, open_and_fill);
	flash = file_get(h->path);
	unlink(h->path);
	h->config.flash_bytes *= 2;
	run_in_killed_child(h, open_and_fill);
	h->config.flash_bytes /= 2;
	file_put(h->path, &flash, flash.length);
	assert_cold(h, REGION_LAYOUT);
	mem_free(flash.at);
}

static void a_truncated_region_starts_cold(void **state)
{
	struct harness *h = *state;
	struct bytes flash, region;

	run_in_killed_child(h, open_and_fill);
	flash = file_get(h->path);
	region = file_get(region_path);
	for (unsigned part = 0; part < 10; part++) {
		file_put(h->path, &flash, flash.length);
		file_put(region_path, &region, region.length * part / 10);
		assert_string_equal(store_start_word(start_again(h)), part ? "region_damaged" : "region_none");
		harness_close(h);
	}
	file_put(h->path, &flash, flash.length);
	file_put(region_path, &region, region.length);
	assert_start(h, ATTACHED);
	assert_filled(h);
	mem_free(flash.at);
	mem_free(region.at);
}

/* Memory has no checksum: a flipped bit may be taken, may lose objects, may start cold; it gives no wrong value. */
static void a_flipped_bit_never_gives_a_wrong_value(void **state)
{
	struct harness *h = *state;
	struct bytes flash, region;
	unsigned cold = 0;
	char key[KEY_BYTES];
	struct rng rng;

	rng_init(&rng, 1);
	run_in_killed_child(h, open_and_fill);
	flash = file_get(h->path);
	region = file_get(region_path);
	for (size_t at = 0; at < 4096 * 6; at += at < 300 ? 3 : 1 + rng_below(&rng, 150)) {
		region.at[at] = (char)(region.at[at] ^ 1 << at % 8);
		file_put(h->path, &flash, flash.length);
		file_put(region_path, &region, region.length);
		harness_open(h);
		cold += !restart_is_warm(h->store);
		for (int n = 0; n < OBJECTS; n += 7) {
			struct reply reply;

			key_number(key, n);
			reply = get(h, key);
			if (reply.result == STORE_HIT)
				assert_string_equal(reply.value, key);
		}
		harness_close(h);
		region.at[at] = (char)(region.at[at] ^ 1 << at % 8);
	}
	assert_true(cold > 20);
	mem_free(flash.at);
	mem_free(region.at);
}

/* ---- the folder ------------------------------------------------------------------------------ */

static void folders_and_files_that_will_not_do_are_refused(void **state)
{
	struct harness *h = *state;

	h->config.region_dir = "/proc/self/nowhere";
	assert_int_equal(harness_try_open(h), FS_ESYS);
	assert_non_null(strstr(h->reason, "--region-dir: /proc/self/nowhere: No such file"));
	h->config.region_dir = "/proc";
	assert_int_equal(harness_try_open(h), FS_EINVAL);
	assert_non_null(strstr(h->reason, "is on a disk; accepted are folders on tmpfs"));
	h->config.region_dir = folder;
	only_open(h);
	harness_close(h);
	assert_int_equal(chmod(region_path, 0640), 0);
	assert_int_equal(harness_try_open(h), FS_EINVAL);
	assert_non_null(strstr(h->reason, "mode 0600"));
	assert_int_equal(chmod(region_path, 0600), 0);
	assert_start(h, ATTACHED);
}

static void another_daemon_s_region_is_refused(void **state)
{
	struct harness *h = *state, other = *h;

	only_open(h);
	other.store = NULL;
	assert_int_equal(harness_try_open(&other), FS_EBUSY);
	assert_non_null(strstr(other.reason, "another daemon uses it"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folder, teardown_folder)
	const struct CMUnitTest tests[] = {
		TEST(what_lay_on_flash_is_served_after_a_kill),
		TEST(the_flash_turns_on),
		TEST(tables_and_extents_come_back),
		TEST(what_was_changed_before_the_kill_does_not_come_back),
		TEST(flushes_hold),
		TEST(ids_never_repeat),
		TEST(a_kill_at_slot_clear),
		TEST(a_kill_in_commit),
		TEST(a_kill_in_row),
		TEST(a_kill_in_reclaim),
		TEST(a_kill_in_close),
		TEST(a_kill_in_relocation),
		TEST(a_kill_in_flush),
		TEST(a_kill_in_table),
		TEST(a_kill_in_extent_move),
		TEST(a_delete_before_the_move_is_finished_holds),
		TEST(killed_in_the_take_over),
		TEST(starts_that_are_killed_do_not_end_the_pause),
		TEST(the_pause_goes_from_file_to_region_and_back),
		TEST(a_clean_stop_saves_and_empties_the_region),
		TEST(the_region_does_for_a_clean_stop_without_a_state_directory),
		TEST(killed_in_the_stop_and_in_a_start_from_the_state_file),
		TEST(pairings_that_do_not_fit_start_cold),
		TEST(with_no_downtime_allowed_nothing_is_kept),
		TEST(a_run_without_the_region_makes_it_worthless),
		TEST(an_older_region_or_a_copy_starts_cold),
		TEST(the_region_of_another_flash_starts_cold),
		TEST(the_region_of_a_flash_of_another_size_starts_cold),
		TEST(a_truncated_region_starts_cold),
		TEST(a_flipped_bit_never_gives_a_wrong_value),
		TEST(folders_and_files_that_will_not_do_are_refused),
		TEST(another_daemon_s_region_is_refused),
	};

	return cmocka_run_group_tests_name("attach", tests, NULL, NULL);
}
