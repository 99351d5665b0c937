/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The flash moves while commands run: no value is wrong or old, before, at and behind the switch. A move that ends early, in
 * any way, leaves the old flash as it would be without it; over a kill exactly one of the two is warm.
 */
#include "server/store/move.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/store/state/instance.h"
#include "server/store/state/recount.h"
#include "server/store/state/restart.h"
#include "tests/unit/server/store/harness.h"
#include "tests/unit/server/store/killed_child.h"

#define OBJECTS 40
#define KEY_BYTES 24
#define STEPS_MOST 100000u
#define NAME "11211"

static char folder[100], new_path[120];

static int setup_folders(void **state)
{
	struct harness *h;

	assert_int_equal(setup(state), 0);
	h = *state;
	snprintf(folder, sizeof(folder), "/dev/shm/flashield-move-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(new_path, sizeof(new_path), "%.80s.new", h->path);
	h->config.region_dir = folder;
	h->config.restart_max_downtime_us = 60000000;
	h->config.boot_id = "one boot";
	return 0;
}

static int teardown_folders(void **state)
{
	char command[300];
	int result;

	fault_disarm_all();
	result = teardown(state);
	snprintf(command, sizeof(command), "rm -rf '%s' '%s'", folder, new_path);
	return system(command) == 0 ? result : -1; /* NOLINT: the names are ours */
}

static void name(char key[KEY_BYTES], int n)
{
	snprintf(key, KEY_BYTES, "object-%d", n);
}

static void fill(struct harness *h)
{
	char key[KEY_BYTES];

	for (int n = 0; n < OBJECTS; n++) {
		name(key, n);
		set(h, key, key);
	}
	for (int n = 0; n < OBJECTS; n++) {
		name(key, n);
		if (where(h, key) != FLASH)
			move(h, key);
	}
}

/* Each object has its value or, where a smaller flash may have dropped it, is missing. */
static unsigned count_right(struct harness *h)
{
	unsigned found = 0;
	char key[KEY_BYTES];

	for (int n = 0; n < OBJECTS; n++) {
		struct reply reply;

		name(key, n);
		reply = get(h, key);
		if (reply.result == STORE_MISS)
			continue;
		assert_int_equal(reply.result, STORE_HIT);
		assert_string_equal(reply.value, key);
		found++;
	}
	return found;
}

static struct store_move_status status_of(struct harness *h)
{
	struct store_move_status status;

	store_move_get_status(h->store, &status);
	return status;
}

static void begin(struct harness *h, uint64_t flash_bytes)
{
	char reason[256];

	assert_int_equal(store_move_begin(h->store,
					  &(struct store_move){ .path = new_path, .flash_bytes = flash_bytes }, reason),
			 FS_OK);
}

static void step_to(struct harness *h, enum store_move_state state)
{
	for (unsigned steps = 0; steps < STEPS_MOST && status_of(h).state != state; steps++)
		store_clean_step(h->store);
	assert_string_equal(store_move_word(status_of(h).state), store_move_word(state));
}

static void objects_are_right_all_the_way(void **state)
{
	struct harness *h = *state;
	struct seg_info info;

	harness_open(h);
	fill(h);
	begin(h, 2 * h->config.flash_bytes);
	for (unsigned steps = 0; steps < STEPS_MOST && status_of(h).state != STORE_MOVE_DONE; steps++) {
		char key[KEY_BYTES];

		store_clean_step(h->store);
		name(key, (int)(steps % OBJECTS));
		assert_value(h, key, key);
	}
	assert_int_equal(status_of(h).state, STORE_MOVE_DONE);
	assert_int_equal(count_right(h), OBJECTS);
	assert_string_equal(h->store->flash_path, new_path);
	seg_get_info(h->store->segments, &info);
	assert_int_equal(info.flash_bytes, 2 * h->config.flash_bytes);
	/* What is written from now on goes there, and is reclaimed there. */
	set_on_flash(h, "later", "value");
	assert_value(h, "later", "value");
	assert_int_equal(truncate(h->path, 0), 0);
	for (unsigned n = 0; n < 20; n++)
		assert_true(write_one(h));
	count_right(h);
}

/* A read that the drive has at the switch, and a change of its key behind it. */
static void a_read_over_the_switch_is_right(void **state)
{
	struct harness *h = *state;
	struct flight flight;

	harness_open(h);
	keep_no_reads(h);
	set_on_flash(h, "key", "old");
	assert_false(start(h, 0, &flight, STORE_GET, "key"));
	begin(h, 0);
	/* Not beyond: the read has its segment pinned until it is finished. */
	step_to(h, STORE_MOVE_LEAVING);
	for (unsigned steps = 0; steps < 10; steps++)
		store_clean_step(h->store);
	assert_int_equal(status_of(h).state, STORE_MOVE_LEAVING);
	assert_int_equal(store_move_cancel(h->store), FS_ENOTFOUND); /* nobody can, behind the switch */
	set(h, "key", "new");
	assert_string_equal(finish(h, &flight).value, "old"); /* it began before the change */
	assert_value(h, "key", "new");
	step_to(h, STORE_MOVE_DONE);
	assert_value(h, "key", "new");
}

static void a_smaller_flash_keeps_what_has_room(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	harness_open(h);
	fill(h);
	while (seg_sequence(h->store->segments, 15) == 0)
		assert_true(write_one(h));
	begin(h, KIB(64) * 9); /* the superblock's 64 KiB, and eight segments */
	step_to(h, STORE_MOVE_DONE);
	count_right(h);
	store_get_status(h->store, &status);
	assert_int_equal(status.segments.total, 8);
	assert_int_equal(h->store->flash_capacity, KIB(64) * 8);
	for (unsigned n = 0; n < 20; n++)
		assert_true(write_one(h));
	count_right(h);
	assert_true(fidx_verify(h->store->index));
}

/* Is a search of the key to read the chain? */
static bool is_in_chain(struct harness *h, const char *key)
{
	uint64_t hash = store_hash(h->store, key, strlen(key));
	struct stripe *stripe = store_stripe(h->store, hash);
	struct frugal_found found;
	struct frugal_key k;
	bool is;

	frugal_key_of(h->store->frugal, hash, &k);
	lock_acquire(&stripe->lock);
	is = frugal_find(h->store->frugal, &k, UINT64_MAX, &found) == FRUGAL_CHAIN;
	lock_release(&stripe->lock);
	return is;
}

/* Counts the objects in segments of the smaller flash that the chain leads to, and tells which ones they are. */
static unsigned count_in_chain(struct harness *h, bool is[OBJECTS])
{
	unsigned count = 0;
	char key[KEY_BYTES];

	for (int n = 0; n < OBJECTS; n++) {
		name(key, n);
		is[n] = is_in_chain(h, key) && get(h, key).from_flash && segment_of(h, key) < 8;
		count += is[n];
	}
	return count;
}

static bool chain_is_in_the_tail(struct harness *h)
{
	bool is = false;

	for (uint32_t s = 8; s < store_segment_count(h->store); s++)
		is |= frugal_has_chain_in(h->store->frugal, s, seg_sequence(h->store->segments, s));
	return is;
}

/* The chain leads to segments that stay, and lies itself where the smaller flash has no room. */
static void a_smaller_flash_keeps_what_the_chain_leads_to(void **state)
{
	struct harness *h = *state;
	unsigned before = 0, after = 0;
	bool was[OBJECTS];
	char key[KEY_BYTES];

	h->config.index = STORE_INDEX_FRUGAL;
	h->config.frugal_memory = 13;
	harness_open(h);
	for (int n = 0; n < OBJECTS && before < 3; n++) {
		name(key, n);
		set_on_flash(h, key, key);
		before = chain_is_in_the_tail(h) ? count_in_chain(h, was) : 0;
	}
	assert_true(before >= 3);
	begin(h, KIB(64) * 9);
	step_to(h, STORE_MOVE_DONE);
	for (int n = 0; n < OBJECTS; n++) {
		name(key, n);
		after += was[n] && get(h, key).result == STORE_HIT;
	}
	assert_true(after + 1 >= before); /* the new chain takes a segment */
	count_right(h);
}

static void a_cancel_leaves_the_old_flash(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	assert_int_equal(store_move_cancel(h->store), FS_ENOTFOUND);
	fill(h);
	begin(h, 0);
	step_to(h, STORE_MOVE_COPYING);
	assert_int_equal(store_move_cancel(h->store), FS_OK);
	step_to(h, STORE_MOVE_CANCELLED);
	assert_int_equal(store_move_cancel(h->store), FS_ENOTFOUND);
	assert_int_not_equal(access(new_path, F_OK), 0);
	assert_string_equal(h->store->flash_path, h->path);
	assert_int_equal(count_right(h), OBJECTS);
	begin(h, 0);
	step_to(h, STORE_MOVE_DONE);
	assert_int_equal(count_right(h), OBJECTS);
}

static void what_cant_be_moved_is_told(void **state)
{
	struct harness *h = *state;
	char reason[256];

	harness_open(h);
	assert_int_equal(store_move_begin(h->store, &(struct store_move){ .path = "relative" }, reason), FS_EINVAL);
	assert_non_null(strstr(reason, "absolute"));
	begin(h, 0);
	assert_int_equal(store_move_begin(h->store, &(struct store_move){ .path = new_path }, reason), FS_EBUSY);
	assert_int_equal(store_move_cancel(h->store), FS_OK);
	step_to(h, STORE_MOVE_CANCELLED);
	assert_int_equal(store_move_begin(h->store, &(struct store_move){ .path = "/nonexistent/flash" }, reason),
			 FS_OK);
	step_to(h, STORE_MOVE_FAILED);
	assert_non_null(strstr(status_of(h).reason, strerror(ENOENT)));
	harness_close(h);
	h->config.flash_path = NULL;
	harness_open(h);
	assert_int_equal(store_move_begin(h->store, &(struct store_move){ .path = new_path }, reason), FS_EINVAL);
}

static void a_new_device_that_fails_ends_the_move(void **state)
{
	struct harness *h = *state;
	struct ram_device *ram;
	char reason[256];

	h->config.region_dir = NULL;
	harness_use_ram(h);
	harness_open(h);
	fill(h);
	ram = ram_device_create(h->config.flash_bytes, NULL);
	ram_fault_arm(ram, RAM_FAULT_write_enospc, FAULT_AFTER, 4);
	assert_int_equal(
		store_move_begin(h->store, &(struct store_move){ .path = "/ram", .device = &ram->dev }, reason), FS_OK);
	step_to(h, STORE_MOVE_FAILED);
	assert_string_equal(status_of(h).reason, strerror(ENOSPC));
	assert_int_equal(count_right(h), OBJECTS);
}

static void the_rate_bounds_the_copies(void **state)
{
	struct harness *h = *state;
	char reason[256];
	uint64_t bytes;

	harness_open(h);
	fill(h);
	while (seg_sequence(h->store->segments, 15) == 0)
		assert_true(write_one(h));
	assert_int_equal(store_move_begin(h->store, &(struct store_move){ .path = new_path, .rate = KIB(64) }, reason),
			 FS_OK);
	for (unsigned steps = 0; steps < 100; steps++)
		store_clean_step(h->store);
	bytes = status_of(h).bytes;
	assert_in_range(bytes, 0, KIB(64));
	seconds_pass(h, 4);
	for (unsigned steps = 0; steps < 100; steps++)
		store_clean_step(h->store);
	assert_in_range(status_of(h).bytes, bytes + KIB(64) * 3, bytes + KIB(64) * 6);
}

/* ---- restarts ---------------------------------------------------------------------------------- */

static void assert_start(struct harness *h, const char *path, uint64_t bytes, const char *word)
{
	struct store_status status;

	h->config.flash_path = path;
	h->config.flash_bytes = bytes;
	harness_open(h);
	store_claim(h->store, NAME);
	store_get_status(h->store, &status);
	assert_string_equal(status.start_word, word);
}

static void a_clean_stop_is_warm_in_the_new_flash(void **state)
{
	struct harness *h = *state;
	uint64_t bytes = h->config.flash_bytes;

	h->config.state_dir = folder;
	harness_open(h);
	store_claim(h->store, NAME);
	fill(h);
	begin(h, bytes + KIB(64) * 8);
	step_to(h, STORE_MOVE_DONE);
	assert_true(store_save(h->store));
	harness_close(h);
	/* All of it is used now: more segments than before. */
	assert_start(h, new_path, bytes + KIB(64) * 8, "warm");
	assert_int_equal(count_right(h), OBJECTS);
	assert_true(store_save(h->store));
	harness_close(h);
	/* The old one is empty, and its start removes what was saved of the new one. */
	assert_start(h, h->path, bytes, "new");
	harness_close(h);
	assert_start(h, new_path, bytes + KIB(64) * 8, "no_file");
}

#define SMALL (KIB(64) * 9) /* the superblock's 64 KiB, and eight segments */

/* All segments are in use, and those that have room on the smaller flash are its own. */
static void move_to_a_smaller_one(struct harness *h)
{
	harness_open(h);
	store_claim(h->store, NAME);
	fill(h);
	while (seg_sequence(h->store->segments, 15) == 0)
		assert_true(write_one(h));
	begin(h, SMALL);
	step_to(h, STORE_MOVE_DONE);
	fill(h); /* the objects of segments without room there are set again, and all lie in the new one */
}

/* The index goes on, and so does the ring, in the segments that there are. */
static void assert_small_and_right(struct harness *h)
{
	struct store_status status;

	assert_int_equal(count_right(h), OBJECTS);
	recount_finish(h->store);
	store_get_status(h->store, &status);
	assert_int_equal(status.segments.total, 8);
	assert_int_equal(h->store->flash_capacity, KIB(64) * 8);
	assert_true(fidx_verify(h->store->index));
}

static void a_clean_stop_is_warm_in_a_smaller_flash(void **state)
{
	struct harness *h = *state;
	uint64_t bytes = h->config.flash_bytes;

	h->config.state_dir = folder;
	move_to_a_smaller_one(h);
	for (unsigned starts = 0; starts < 3; starts++) {
		assert_true(store_save(h->store));
		harness_close(h);
		assert_start(h, new_path, SMALL, "warm");
		assert_small_and_right(h);
	}
	for (unsigned n = 0; n < 20; n++)
		assert_true(write_one(h));
	count_right(h);
	fill(h);
	/* It grows again, by some segments and to its former size. */
	for (unsigned segments = 12; segments <= 16; segments += 4) {
		uint64_t now = bytes - KIB(64) * (16 - segments);
		struct store_status status;

		assert_true(store_save(h->store));
		harness_close(h);
		assert_start(h, new_path, now, "warm");
		assert_int_equal(count_right(h), OBJECTS);
		store_get_status(h->store, &status);
		assert_int_equal(status.segments.total, seg_count_for(now, KIB(64)));
	}
}

static void move_to_a_smaller_one_and_change(struct harness *h)
{
	char key[KEY_BYTES];

	move_to_a_smaller_one(h);
	for (int n = 1; n < OBJECTS; n += 2) {
		name(key, n);
		set(h, key, "newer"); /* in memory, which is lost with the kill */
	}
}

static void a_kill_is_warm_in_a_smaller_flash(void **state)
{
	struct harness *h = *state;

	run_in_killed_child(h, move_to_a_smaller_one_and_change);
	for (unsigned starts = 0; starts < 3; starts++) {
		assert_start(h, new_path, SMALL, "attached");
		for (int n = 0; n < OBJECTS; n++) {
			char key[KEY_BYTES];

			name(key, n);
			if (n % 2)
				assert_int_equal(get(h, key).result, STORE_MISS);
			else
				assert_value(h, key, key);
		}
		recount_finish(h->store);
		assert_true(fidx_verify(h->store->index));
		harness_close(h); /* without a clean mark */
	}
	assert_start(h, new_path, SMALL, "attached");
	for (unsigned n = 0; n < 20; n++)
		assert_true(write_one(h));
	count_right(h);
	harness_close(h);
	/* Where no start may be warm, the index is made for what there is. */
	h->config.restart_max_downtime_us = 0;
	assert_start(h, new_path, SMALL, "off");
	assert_int_equal(h->store->index ? fidx_tag_bits(h->store->index) : 0, 21);
}

static void a_stop_in_the_midst_is_warm_in_the_old_flash(void **state)
{
	struct harness *h = *state;

	h->config.state_dir = folder;
	harness_open(h);
	fill(h);
	begin(h, 0);
	step_to(h, STORE_MOVE_COPYING);
	assert_true(store_save(h->store));
	harness_close(h);
	assert_int_not_equal(access(new_path, F_OK), 0);
	assert_start(h, h->path, h->config.flash_bytes, "warm");
	assert_int_equal(count_right(h), OBJECTS);
}

static unsigned kill_after;
static bool same_name; /* of both flashes, in two folders */
static uint64_t kill_size; /* of the new flash; 0: as the old one */

/* In a child, which a fault point may end before. */
static void move_under_kills(struct harness *h)
{
	harness_open(h);
	store_claim(h->store, NAME);
	fill(h);
	fault_arm(FAULT_killed_in_move, FAULT_AFTER, kill_after);
	begin(h, kill_size);
	step_to(h, STORE_MOVE_DONE);
}

static void move_and_be_killed(struct harness *h, unsigned after)
{
	kill_after = after;
	run_in_killed_child(h, move_under_kills);
}

/* The points are: noted, journal and region sealed, switched, renamed, confirmed; the last kill is behind the move. */
static void kill_at_each_step(struct harness *h, uint64_t size)
{
	uint64_t bytes = h->config.flash_bytes;

	kill_size = size;
	for (unsigned after = 0; after <= 6; after++) {
		bool old = after < 4;

		h->config.flash_bytes = bytes;
		move_and_be_killed(h, after);
		assert_start(h, old ? h->path : new_path, old || !size ? bytes : size, "attached");
		assert_int_equal(count_right(h), OBJECTS);
		harness_close(h);
		/* The other one is cold, and so is the warm one after that: it has missed a run. */
		h->config.flash_path = old ? new_path : h->path;
		harness_open(h);
		store_claim(h->store, NAME);
		assert_false(restart_is_warm(h->store));
		harness_close(h);
		h->config.flash_path = old ? h->path : new_path;
		harness_open(h);
		assert_false(restart_is_warm(h->store));
		harness_close(h);
		unlink(new_path);
		unlink(h->path);
		h->config.flash_path = h->path;
	}
}

static void a_kill_at_each_step_leaves_one_warm_flash(void **state)
{
	if (!HAVE_FAULTS)
		skip();
	kill_at_each_step(*state, 0);
}

static void so_it_does_when_the_new_flash_is_smaller(void **state)
{
	if (!HAVE_FAULTS)
		skip();
	kill_at_each_step(*state, SMALL);
}

/* The new flash first, with changes of all keys, and then the old one by mistake. */
static void a_kill_at_each_step_leaves_nothing_stale_in_the_old_flash(void **state)
{
	struct harness *h = *state;
	uint64_t bytes = h->config.flash_bytes;
	char command[300];

	if (!HAVE_FAULTS)
		skip();
	for (unsigned after = 0; after <= 6; after++) {
		char key[KEY_BYTES];

		h->config.flash_path = h->path;
		h->config.flash_bytes = bytes;
		move_and_be_killed(h, after);
		h->config.flash_path = new_path;
		harness_open(h);
		store_claim(h->store, NAME);
		for (int n = 0; n < OBJECTS; n++) {
			name(key, n);
			set(h, key, "newer");
		}
		harness_close(h);
		h->config.flash_path = h->path;
		harness_open(h);
		store_claim(h->store, NAME);
		for (int n = 0; n < OBJECTS; n++) {
			name(key, n);
			assert_int_equal(get(h, key).result, STORE_MISS);
		}
		harness_close(h);
		unlink(new_path);
		unlink(h->path);
		snprintf(command, sizeof(command), "rm -rf '%s'/*", folder);
		assert_int_equal(system(command), 0); /* NOLINT: the name is ours */
	}
}

/* ---- with a journal, and the machine goes down ---------------------------------------------------- */

static char state_folder[120];

/* What clients were told, in memory that outlives the child. */
static struct told {
	char value[OBJECTS][KEY_BYTES]; /* "": deleted */
} * told;

static void tell(struct harness *h, int n, const char *value)
{
	char key[KEY_BYTES];

	name(key, n);
	if (value[0])
		set(h, key, value);
	else
		run(h, STORE_DELETE, key);
	snprintf(told->value[n], KEY_BYTES, "%s", value);
}

/* Some objects are changed before, and some behind the move, if it comes to that. */
static void move_with_a_journal(struct harness *h)
{
	harness_open(h);
	store_claim(h->store, NAME);
	fill(h);
	for (int n = 0; n < OBJECTS; n++)
		name(told->value[n], n);
	for (int n = 1; n < OBJECTS; n += 4)
		tell(h, n, n % 8 == 1 ? "newer" : "");
	fault_arm(FAULT_killed_in_move, FAULT_AFTER, kill_after);
	begin(h, kill_size);
	step_to(h, STORE_MOVE_DONE);
	for (int n = 2; n < OBJECTS; n += 4)
		tell(h, n, n % 8 == 2 ? "newest" : "");
	for (unsigned n = 0; n < 3; n++)
		assert_true(write_one(h));
}

/* The machine comes up again, with the flash at that path. Returns how many objects are there; each is the last one. */
static unsigned boot_with(struct harness *h, const char *path, uint64_t bytes, enum store_start *how)
{
	static char boot[20];
	static unsigned boots;
	unsigned found = 0;

	snprintf(boot, sizeof(boot), "boot %u", ++boots);
	h->config.boot_id = boot;
	h->config.flash_path = path;
	h->config.flash_bytes = bytes;
	harness_open(h);
	store_claim(h->store, NAME);
	*how = h->store->start;
	for (unsigned steps = 0; steps < STEPS_MOST && h->store->rebuild; steps++)
		store_clean_step(h->store);
	assert_null(h->store->rebuild);
	assert_true(fidx_verify(h->store->index));
	for (int n = 0; n < OBJECTS; n++) {
		char key[KEY_BYTES];
		struct reply reply;

		name(key, n);
		reply = get(h, key);
		if (reply.result == STORE_MISS)
			continue;
		if (strcmp(reply.value, told->value[n]) != 0)
			fail_msg("%s is '%s', and was '%s'; killed after %u", key, reply.value, told->value[n],
				 kill_after);
		found++;
	}
	return found;
}

/* Its changes must hold against what the other flash still has. */
static void change_all_and_close(struct harness *h)
{
	for (int n = 0; n < OBJECTS; n++)
		tell(h, n, n % 2 ? "last" : "");
	harness_close(h);
}

static void crash_at_each_step(struct harness *h, uint64_t size, bool old_first)
{
	uint64_t bytes = h->config.flash_bytes, new_bytes = size ? size : bytes;
	char command[300];

	told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(told != MAP_FAILED);
	kill_size = size;
	for (kill_after = 0; kill_after <= 8; kill_after++) {
		/* Up to the switch the old one is the flash; then both are, until the old names of the journal are gone, or,
		   if these are the new ones, the file of the new epoch is begun. */
		bool old_is_warm = kill_after < (same_name ? 6 : 5), new_is_warm = kill_after >= 3;
		enum store_start how, first = STORE_START_REBUILT;
		unsigned found;

		h->config.boot_id = "the first";
		h->config.flash_path = h->path;
		h->config.flash_bytes = bytes;
		memset(told, 0, sizeof(*told));
		run_in_killed_child(h, move_with_a_journal);
		fault_disarm_all();
		found = boot_with(h, old_first ? h->path : new_path, old_first ? bytes : new_bytes, &how);
		if (old_first ? old_is_warm : new_is_warm) {
			assert_string_equal(store_start_word(how), store_start_word(first));
			assert_in_range(found, OBJECTS / 4, OBJECTS);
		} else {
			assert_string_not_equal(store_start_word(how), store_start_word(first));
			assert_int_equal(found, 0);
		}
		change_all_and_close(h);
		found = boot_with(h, old_first ? new_path : h->path, old_first ? new_bytes : bytes, &how);
		assert_string_not_equal(store_start_word(how), store_start_word(first));
		assert_int_equal(found, 0);
		harness_close(h);
		unlink(new_path);
		unlink(h->path);
		snprintf(command, sizeof(command), "rm -rf '%s'/*", state_folder);
		assert_int_equal(system(command), 0); /* NOLINT: the name is ours */
	}
	h->config.flash_bytes = bytes;
	h->config.flash_path = h->path;
	munmap(told, sizeof(*told));
}

static int setup_journal(void **state)
{
	struct harness *h;

	assert_int_equal(setup_folders(state), 0);
	h = *state;
	snprintf(state_folder, sizeof(state_folder), "%.80s.state-XXXXXX", h->path);
	assert_non_null(mkdtemp(state_folder));
	h->config.region_dir = NULL;
	h->config.state_dir = state_folder;
	h->config.journal = true;
	return 0;
}

static int teardown_journal(void **state)
{
	int result = teardown_folders(state);
	char command[300];

	snprintf(command, sizeof(command), "rm -rf '%s'", state_folder);
	return system(command) == 0 ? result : -1; /* NOLINT: the name is ours */
}

static void a_crash_at_each_step_is_rebuilt_in_the_old_flash(void **state)
{
	if (!HAVE_FAULTS)
		skip();
	crash_at_each_step(*state, 0, true);
}

static void a_crash_at_each_step_is_rebuilt_in_the_new_flash(void **state)
{
	if (!HAVE_FAULTS)
		skip();
	crash_at_each_step(*state, 0, false);
}

static void a_crash_at_each_step_of_a_move_to_a_smaller_one(void **state)
{
	if (!HAVE_FAULTS)
		skip();
	crash_at_each_step(*state, SMALL, true);
	crash_at_each_step(*state, SMALL, false);
}

/* The same name in another folder: then the files of the journal stay what they are. */
static void a_crash_at_each_step_of_a_move_to_a_file_of_that_name(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	snprintf(new_path, sizeof(new_path), "%.70s/%.40s", folder, strrchr(h->path, '/') + 1);
	same_name = true;
	crash_at_each_step(h, 0, true);
	crash_at_each_step(h, 0, false);
	same_name = false;
}

/* Without a second name for the journal there is no move. */
static void a_journal_that_cannot_be_shared_ends_the_move(void **state)
{
	struct harness *h = *state;
	char path[300], command[700];

	harness_open(h);
	store_claim(h->store, NAME);
	fill(h);
	/* A folder where a file of the journal should be. */
	snprintf(path, sizeof(path), "%s/%.80s.journal.1", state_folder, strrchr(new_path, '/') + 1);
	snprintf(command, sizeof(command), "mkdir -p '%s'", path);
	assert_int_equal(system(command), 0); /* NOLINT: the name is ours */
	begin(h, 0);
	step_to(h, STORE_MOVE_FAILED);
	assert_non_null(strstr(status_of(h).reason, "journal"));
	assert_int_equal(count_right(h), OBJECTS);
	snprintf(command, sizeof(command), "rmdir '%s'", path);
	assert_int_equal(system(command), 0); /* NOLINT: the name is ours */
	begin(h, 0);
	step_to(h, STORE_MOVE_DONE);
	assert_int_equal(count_right(h), OBJECTS);
}

static void a_clean_stop_with_a_journal_is_warm_in_the_new_flash(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	store_claim(h->store, NAME);
	fill(h);
	begin(h, 0);
	step_to(h, STORE_MOVE_DONE);
	assert_true(store_save(h->store));
	harness_close(h);
	assert_start(h, new_path, h->config.flash_bytes, "warm");
	assert_int_equal(count_right(h), OBJECTS);
}

static void with_all_kept_a_smaller_flash_is_refused(void **state)
{
	struct harness *h = *state;
	char key[KEY_BYTES];

	h->config.evict = false;
	harness_open(h);
	for (int n = 0; n < 12; n++) {
		name(key, n);
		set_on_flash(h, key, key);
	}
	begin(h, KIB(64) * 9);
	step_to(h, STORE_MOVE_FAILED);
	assert_non_null(strstr(status_of(h).reason, "-M"));
	for (int n = 0; n < 12; n++) {
		name(key, n);
		assert_value(h, key, key);
	}
}

/* What the old device could not read says nothing about the new one. */
static void bad_pages_left_behind_do_not_take_the_new_device_offline(void **state)
{
	struct harness *h = *state;
	struct ram_device *ram;
	char reason[256], key[KEY_BYTES];

	h->config.region_dir = NULL;
	harness_use_ram(h);
	harness_open(h);
	fill(h);
	ram = ram_device_create(h->config.flash_bytes, NULL);
	ram_fault_arm(h->ram, RAM_FAULT_read_eio, FAULT_ALWAYS, 0);
	assert_int_equal(
		store_move_begin(h->store, &(struct store_move){ .path = "/ram", .device = &ram->dev }, reason), FS_OK);
	step_to(h, STORE_MOVE_DONE);
	assert_true(status_of(h).unreadable_pages >= 16);
	for (int round = 0; round < 2; round++)
		for (int n = 0; n < OBJECTS; n++) {
			name(key, n);
			(void)get(h, key);
		}
	assert_false(seg_offline(h->store->segments));
}

#define MOVE_TEST(test) cmocka_unit_test_setup_teardown(test, setup_folders, teardown_folders)
#define JOURNAL_TEST(test) cmocka_unit_test_setup_teardown(test, setup_journal, teardown_journal)

int main(void)
{
	const struct CMUnitTest tests[] = {
		MOVE_TEST(objects_are_right_all_the_way),
		MOVE_TEST(a_read_over_the_switch_is_right),
		MOVE_TEST(a_smaller_flash_keeps_what_has_room),
		MOVE_TEST(a_smaller_flash_keeps_what_the_chain_leads_to),
		MOVE_TEST(a_cancel_leaves_the_old_flash),
		MOVE_TEST(what_cant_be_moved_is_told),
		MOVE_TEST(a_new_device_that_fails_ends_the_move),
		MOVE_TEST(the_rate_bounds_the_copies),
		MOVE_TEST(a_clean_stop_is_warm_in_the_new_flash),
		MOVE_TEST(a_clean_stop_is_warm_in_a_smaller_flash),
		MOVE_TEST(a_kill_is_warm_in_a_smaller_flash),
		MOVE_TEST(a_stop_in_the_midst_is_warm_in_the_old_flash),
		MOVE_TEST(a_kill_at_each_step_leaves_one_warm_flash),
		MOVE_TEST(so_it_does_when_the_new_flash_is_smaller),
		MOVE_TEST(a_kill_at_each_step_leaves_nothing_stale_in_the_old_flash),
		MOVE_TEST(with_all_kept_a_smaller_flash_is_refused),
		JOURNAL_TEST(a_crash_at_each_step_is_rebuilt_in_the_old_flash),
		JOURNAL_TEST(a_crash_at_each_step_is_rebuilt_in_the_new_flash),
		JOURNAL_TEST(a_crash_at_each_step_of_a_move_to_a_smaller_one),
		JOURNAL_TEST(a_crash_at_each_step_of_a_move_to_a_file_of_that_name),
		JOURNAL_TEST(a_journal_that_cannot_be_shared_ends_the_move),
		JOURNAL_TEST(a_clean_stop_with_a_journal_is_warm_in_the_new_flash),
		MOVE_TEST(bad_pages_left_behind_do_not_take_the_new_device_offline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
