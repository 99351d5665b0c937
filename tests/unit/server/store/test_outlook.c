/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a start would do is told by a start that changes nothing. Each trial leaves a flash with its files, changes
 * something, asks for the outlook, and then starts: the two must agree, and no byte may have changed before the start.
 * Among the changes are older and newer format versions of each file, which are cold, each with its own word.
 */
#include "server/store/outlook.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segments/layout.h"
#include "server/store/cleaner/saved_items.h"
#include "server/store/state/attach.h"
#include "server/store/state/instance.h"
#include "server/store/state/losses.h"
#include "server/store/state/recount.h"
#include "tests/unit/server/store/killed_child.h"

#define MINUTE_US 60000000ull
#define OBJECTS 20
#define KEY_BYTES 24
#define VERSION_OFFSET 8 /* in each file */

enum left { STOPPED, KILLED, JOURNALED };

static char state_dir[100], region_dir[100], state_path[200], items_path[200], region_path[200];

static const struct clk *scripted;

/* The wall clock goes with the scripted one. */
static int64_t wall(void)
{
	return 1700000000 + (int64_t)(clk_now_us(scripted) / 1000000);
}

/* Calls visit for each file of the journal. */
static void each_of_journal(void (*visit)(const char *path, void *context), void *context)
{
	DIR *files = opendir(state_dir);
	struct dirent *entry;
	char path[400];

	assert_non_null(files);
	while ((entry = readdir(files))) {
		snprintf(path, sizeof(path), "%s/%s", state_dir, entry->d_name);
		if (strstr(entry->d_name, ".journal."))
			visit(path, context);
	}
	closedir(files);
}

static void remove_it(const char *path, void *context)
{
	(void)context;
	unlink(path);
}

static int setup_folders(void **state)
{
	struct harness *h;
	const char *name;

	assert_int_equal(setup(state), 0);
	h = *state;
	name = strrchr(h->path, '/') + 1;
	snprintf(region_dir, sizeof(region_dir), "/dev/shm/flashield-outlook-XXXXXX");
	assert_non_null(mkdtemp(region_dir));
	snprintf(state_dir, sizeof(state_dir), "%.60s/outlook-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(state_dir));
	snprintf(state_path, sizeof(state_path), "%s/%.80s.state", state_dir, name);
	snprintf(items_path, sizeof(items_path), "%s/%.80s.items", state_dir, name);
	snprintf(region_path, sizeof(region_path), "%s/%.80s.region", region_dir, name);
	return 0;
}

static int teardown_folders(void **state)
{
	unlink(state_path);
	unlink(items_path);
	unlink(region_path);
	each_of_journal(remove_it, NULL);
	return teardown(state) == 0 && rmdir(state_dir) == 0 && rmdir(region_dir) == 0 ? 0 : -1;
}

/* ---- what is left ---------------------------------------------------------------------------- */

static void fill(struct harness *h)
{
	char key[KEY_BYTES];

	for (int n = 0; n < OBJECTS; n++) {
		snprintf(key, sizeof(key), "object-%d", n);
		set(h, key, key);
	}
	for (int n = 0; n < OBJECTS; n++) {
		snprintf(key, sizeof(key), "object-%d", n);
		if (where(h, key) != FLASH)
			move(h, key);
	}
	set(h, "in memory", "x");
}

static void open_and_fill(struct harness *h)
{
	harness_open(h);
	fill(h);
	while (h->store->losses && losses_step(h->store->losses))
		;
	if (h->store->losses) { /* a further block */
		(void)run(h, STORE_DELETE, "object-0");
		(void)losses_step(h->store->losses);
	}
}

static void leave(struct harness *h, enum left left)
{
	unlink(h->path);
	unlink(state_path);
	unlink(items_path);
	unlink(region_path);
	each_of_journal(remove_it, NULL);
	scripted = &h->clk;
	h->config.wall_seconds = wall;
	h->config.state_dir = state_dir;
	h->config.region_dir = left == KILLED ? region_dir : NULL;
	h->config.journal = left == JOURNALED;
	h->config.restart_max_downtime_us = MINUTE_US;
	h->config.boot_id = "one boot";
	if (left != STOPPED) {
		run_in_killed_child(h, open_and_fill);
		return;
	}
	open_and_fill(h);
	(void)store_save_items(h->store, &(struct store_end){ .deadline_us = UINT64_MAX });
	assert_true(store_save(h->store));
	harness_close(h);
	assert_int_equal(access(state_path, F_OK), 0);
	assert_int_equal(access(items_path, F_OK), 0);
}

/* A number that changes with any byte, or the size, of a file. 0: there is none. */
static uint64_t sum_of(const char *path)
{
	uint64_t sum = 0;
	char *bytes;
	struct stat st;
	int fd = open(path, O_RDONLY);

	if (fd < 0)
		return 0;
	assert_int_equal(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size + 1);
	assert_non_null(bytes);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	sum = hash64(bytes, (size_t)st.st_size, 1);
	free(bytes);
	close(fd);
	return sum;
}

static void add_sum(const char *path, void *context)
{
	*(uint64_t *)context += sum_of(path);
}

static uint64_t sum_of_journal(void)
{
	uint64_t sum = 0;

	each_of_journal(add_sum, &sum);
	return sum;
}

struct sums {
	uint64_t flash, state, items, region, journal;
};

static struct sums sums_now(const struct harness *h)
{
	return (struct sums){ sum_of(h->path), sum_of(state_path), sum_of(items_path), sum_of(region_path),
			      sum_of_journal() };
}

/* ---- trials ---------------------------------------------------------------------------------- */

static void word_put(const char *path, off_t offset, uint32_t word)
{
	int fd = open(path, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, &word, sizeof(word), offset), sizeof(word));
	close(fd);
}

enum super_field { SUPER_VERSION, SUPER_HEAD_BYTES, SUPER_INCOMPATIBLE, SUPER_READ_ONLY };

/* Both copies are whole, and say something else. */
static void super_put(struct harness *h, enum super_field field, uint64_t value)
{
	struct layout_super *super = aligned_alloc(SEG_PAGE, SEG_PAGE);
	int fd = open(h->path, O_RDWR);

	assert_true(fd >= 0 && super);
	for (off_t copy = 0; copy < LAYOUT_SUPER_COPIES; copy++) {
		off_t at = copy * LAYOUT_SUPER_COPY_OFFSET;

		assert_int_equal(pread(fd, super, SEG_PAGE, at), SEG_PAGE);
		if (field == SUPER_VERSION)
			super->version = (uint32_t)value;
		else if (field == SUPER_HEAD_BYTES)
			super->header_bytes = (uint32_t)value;
		else if (field == SUPER_INCOMPATIBLE)
			super->features.incompatible = value;
		else
			super->features.ro_compatible = value;
		super->checksum = hash64(super, offsetof(struct layout_super, checksum), LAYOUT_CHECK_SEED);
		assert_int_equal(pwrite(fd, super, SEG_PAGE, at), SEG_PAGE);
	}
	close(fd);
	free(super);
}

static void nothing(struct harness *h)
{
	(void)h;
}

static void super_older(struct harness *h)
{
	super_put(h, SUPER_VERSION, LAYOUT_VERSION - 1);
}

static void super_newer(struct harness *h)
{
	super_put(h, SUPER_VERSION, LAYOUT_VERSION + 1);
}

static void super_longer(struct harness *h)
{
	super_put(h, SUPER_HEAD_BYTES, 2 * SEG_PAGE);
}

static void super_incompatible(struct harness *h)
{
	super_put(h, SUPER_INCOMPATIBLE, 1);
}

static void super_read_only(struct harness *h)
{
	super_put(h, SUPER_READ_ONLY, 1ull << 63);
}

static void state_older(struct harness *h)
{
	(void)h;
	word_put(state_path, VERSION_OFFSET, PARTS_VERSION - 1);
}

static void state_newer(struct harness *h)
{
	(void)h;
	word_put(state_path, VERSION_OFFSET, PARTS_VERSION + 1);
}

static void state_longer_heads(struct harness *h)
{
	(void)h;
	word_put(state_path, VERSION_OFFSET + 4, 48);
}

static void state_damaged(struct harness *h)
{
	(void)h;
	word_put(state_path, 200, 0x5a5a5a5a);
}

static void state_gone(struct harness *h)
{
	(void)h;
	unlink(state_path);
}

static void items_older(struct harness *h)
{
	(void)h;
	word_put(items_path, VERSION_OFFSET, PARTS_VERSION - 1);
}

static void items_newer(struct harness *h)
{
	(void)h;
	word_put(items_path, VERSION_OFFSET, PARTS_VERSION + 1);
}

static void items_damaged(struct harness *h)
{
	(void)h;
	word_put(items_path, 100, 0x5a5a5a5a);
}

static void region_older(struct harness *h)
{
	(void)h;
	word_put(region_path, VERSION_OFFSET, REGION_VERSION - 1);
}

static void region_newer(struct harness *h)
{
	(void)h;
	word_put(region_path, VERSION_OFFSET, REGION_VERSION + 1);
}

static void region_more_areas(struct harness *h)
{
	(void)h;
	word_put(region_path, VERSION_OFFSET + 4, REGION_AREAS + 1);
}

static void region_damaged(struct harness *h)
{
	(void)h;
	word_put(region_path, 0, 0x5a5a5a5a);
}

static void region_gone(struct harness *h)
{
	(void)h;
	unlink(region_path);
}

static void journal_gone(struct harness *h)
{
	(void)h;
	each_of_journal(remove_it, NULL);
}

static void damage_it(const char *path, void *context)
{
	(void)context;
	word_put(path, 600, 0x5a5a5a5a); /* a block behind which others follow */
}

static void journal_damaged(struct harness *h)
{
	(void)h;
	each_of_journal(damage_it, NULL);
}

static void journal_not_asked_for(struct harness *h)
{
	h->config.journal = false;
}

static void clock_set_back(struct harness *h)
{
	atomic_fetch_sub(&h->clk.scripted_us, 2000000);
}

static void region_not_asked_for(struct harness *h)
{
	h->config.region_dir = NULL;
}

static void region_on_a_disk(struct harness *h)
{
	h->config.region_dir = "/proc";
}

static void time_passes(struct harness *h)
{
	clk_scripted_advance(&h->clk, MINUTE_US + 1500000);
}

static void boot(struct harness *h)
{
	h->config.boot_id = "another boot";
}

static void no_downtime(struct harness *h)
{
	h->config.restart_max_downtime_us = 0;
}

static void other_tags(struct harness *h)
{
	h->config.tag_bits = 5;
}

static void other_threads(struct harness *h)
{
	h->config.workers += 3;
}

static void other_object_size(struct harness *h)
{
	h->config.flash_object_bytes *= 3;
}

static void other_clock_mode(struct harness *h)
{
	h->config.clock_mode = h->config.clock_mode == FIDX_CLOCK_LRU ? FIDX_CLOCK_MFU : FIDX_CLOCK_LRU;
}

static void other_functions(struct harness *h)
{
	h->config.functions = h->config.functions == 8 ? 4 : 8;
}

static void larger_flash(struct harness *h)
{
	h->config.flash_bytes += h->config.flash_bytes / 2;
}

static void smaller_flash(struct harness *h)
{
	h->config.flash_bytes /= 2;
}

static void larger_segments(struct harness *h)
{
	h->config.segment_bytes *= 2;
}

static void tiny_segments(struct harness *h)
{
	h->config.segment_bytes = 4096;
}

static void little_memory(struct harness *h)
{
	h->config.memory_bytes = KIB(260);
}

static void more_memory(struct harness *h)
{
	h->config.memory_bytes *= 2;
}

static void end_cut_off(struct harness *h)
{
	assert_int_equal(truncate(h->path, 70001), 0);
}

static void second_copy_lost(struct harness *h)
{
	assert_int_equal(truncate(h->path, 5000), 0);
}

static void both_copies_lost(struct harness *h)
{
	assert_int_equal(truncate(h->path, 2000), 0);
}

static const struct trial {
	enum left left;
	void (*change)(struct harness *h);
	const char *flash, *memory; /* NULL: the start is refused */
} trials[] = {
	{ STOPPED, nothing, "warm", "warm" },
	{ STOPPED, super_older, "new", "other_flash" },
	{ STOPPED, super_newer, "new", "other_flash" },
	{ STOPPED, super_longer, "new", "other_flash" },
	{ STOPPED, super_incompatible, "new", "other_flash" },
	{ STOPPED, super_read_only, "new", "other_flash" },
	{ STOPPED, state_older, "version", "warm" },
	{ STOPPED, state_newer, "version", "warm" },
	{ STOPPED, state_longer_heads, "version", "warm" },
	{ STOPPED, state_damaged, "damaged", "warm" },
	{ STOPPED, state_gone, "no_file", "warm" },
	{ STOPPED, items_older, "warm", "version" },
	{ STOPPED, items_newer, "warm", "version" },
	{ STOPPED, items_damaged, "warm", "damaged" },
	{ STOPPED, time_passes, "downtime", "downtime" },
	{ STOPPED, boot, "boot", "boot" },
	{ STOPPED, no_downtime, "off", "off" },
	{ STOPPED, other_tags, "options", "warm" },
	{ STOPPED, other_threads, "warm", "warm" },
	{ STOPPED, other_object_size, "warm", "warm" },
	{ STOPPED, other_clock_mode, "options", "warm" },
	{ STOPPED, other_functions, "layout", "warm" },
	{ STOPPED, larger_flash, "warm", "warm" },
	{ STOPPED, smaller_flash, "layout", "warm" },
	{ STOPPED, larger_segments, "layout", "warm" },
	{ STOPPED, tiny_segments, NULL, NULL },
	{ STOPPED, little_memory, NULL, NULL },
	{ STOPPED, more_memory, "warm", "warm" },
	{ STOPPED, end_cut_off, "truncated", "warm" },
	{ STOPPED, second_copy_lost, "truncated", "warm" },
	{ STOPPED, both_copies_lost, "new", "other_flash" },
	{ KILLED, nothing, "attached", "no_file" },
	{ KILLED, super_newer, "new", "no_file" },
	{ KILLED, region_older, "region_version", "no_file" },
	{ KILLED, region_newer, "region_version", "no_file" },
	{ KILLED, region_more_areas, "region_version", "no_file" },
	{ KILLED, region_damaged, "region_damaged", "no_file" },
	{ KILLED, region_gone, "region_none", "no_file" },
	{ KILLED, region_not_asked_for, "unclean", "no_file" },
	{ KILLED, region_on_a_disk, NULL, NULL },
	{ KILLED, time_passes, "downtime", "no_file" },
	{ KILLED, boot, "boot", "no_file" },
	{ KILLED, other_tags, "options", "no_file" },
	{ KILLED, other_threads, "attached", "no_file" },
	{ KILLED, other_object_size, "attached", "no_file" },
	{ KILLED, other_clock_mode, "options", "no_file" },
	{ KILLED, other_functions, "layout", "no_file" },
	{ KILLED, larger_flash, "layout", "no_file" },
	{ KILLED, smaller_flash, "layout", "no_file" },
	{ KILLED, little_memory, NULL, NULL },
	{ KILLED, more_memory, "attached", "no_file" },
	{ KILLED, end_cut_off, "truncated", "no_file" },
	{ JOURNALED, nothing, "rebuilt", "no_file" },
	{ JOURNALED, boot, "rebuilt", "no_file" },
	{ JOURNALED, journal_gone, "no_journal", "no_file" },
	{ JOURNALED, journal_damaged, "journal", "no_file" },
	{ JOURNALED, journal_not_asked_for, "unclean", "no_file" },
	{ JOURNALED, time_passes, "downtime", "no_file" },
	{ JOURNALED, clock_set_back, "clock", "no_file" },
	{ JOURNALED, no_downtime, "off", "off" },
	{ JOURNALED, other_tags, "options", "no_file" },
	{ JOURNALED, other_threads, "rebuilt", "no_file" },
	{ JOURNALED, other_object_size, "rebuilt", "no_file" },
	{ JOURNALED, other_clock_mode, "rebuilt", "no_file" },
	{ JOURNALED, larger_flash, "layout", "no_file" },
	{ JOURNALED, smaller_flash, "layout", "no_file" },
};

static void assert_start_agrees(struct harness *h, const struct outlook *outlook)
{
	struct store_status status;
	bool served;

	harness_open(h);
	store_get_status(h->store, &status);
	assert_string_equal(outlook->word, status.start_word);
	assert_string_equal(outlook->text, status.start_text);
	assert_string_equal(outlook->dram_word, status.dram_start_word);
	assert_string_equal(outlook->dram_text, status.dram_start_text);
	recount_finish(h->store);
	store_get_status(h->store, &status);
	assert_int_equal(outlook->objects, status.index.used + status.index.extents_used - status.index.ghosts);
	for (int step = 0; step < 1000 && h->store->rebuild; step++)
		(void)cleaner_step(h->store);
	served = where(h, "object-1") == FLASH;
	assert_int_equal(served, outlook->warm);
	harness_close(h);
}

static void try(struct harness *h, const struct trial *trial)
{
	const struct store_config before = h->config;
	struct outlook outlook;
	struct sums sums, after;

	leave(h, trial->left);
	trial->change(h);
	sums = sums_now(h);
	for (int turn = 0; turn < 2; turn++) {
		outlook_judge(&h->config, &outlook);
		after = sums_now(h);
		assert_memory_equal(&sums, &after, sizeof(sums));
	}
	assert_int_equal(outlook.refused, trial->flash == NULL);
	if (outlook.refused) {
		assert_int_not_equal(harness_try_open(h), FS_OK);
		assert_string_equal(outlook.reason, h->reason);
		after = sums_now(h);
		assert_memory_equal(&sums, &after, sizeof(sums)); /* a start that is refused changes nothing either */
	} else {
		assert_string_equal(outlook.word, trial->flash);
		assert_string_equal(outlook.dram_word, trial->memory);
		assert_start_agrees(h, &outlook);
	}
	h->config = before;
}

static void outlook_and_start_agree(void **state)
{
	for (size_t n = 0; n < sizeof(trials) / sizeof(trials[0]); n++) {
		print_message("trial %zu: %s\n", n, trials[n].flash ? trials[n].flash : "refused");
		try(*state, &trials[n]);
	}
}

/* ---- heads ----------------------------------------------------------------------------------- */

static void heads_of_a_stopped_daemon_are_found(void **state)
{
	struct harness *h = *state;
	struct outlook_files files;

	leave(h, STOPPED);
	outlook_find(&h->config, &files);
	assert_string_equal(files.state.path, state_path);
	assert_int_equal(files.state.code, FS_OK);
	assert_int_equal(files.state.epoch, 1);
	assert_true(files.state.this_boot);
	assert_int_equal(files.state.time_us, clk_now_us(&h->clk));
	assert_string_equal(files.items.path, items_path);
	assert_int_equal(files.items.code, FS_OK);
	assert_true(files.items.counted);
	assert_memory_equal(files.items.uuid, files.state.uuid, sizeof(files.items.uuid));
	assert_string_equal(files.region.path, "");
	boot(h);
	state_newer(h);
	items_damaged(h);
	outlook_find(&h->config, &files);
	assert_int_equal(files.state.code, FS_EVERSION);
	assert_int_equal(files.items.code, FS_ECORRUPT);
	unlink(items_path);
	state_gone(h);
	outlook_find(&h->config, &files);
	assert_int_equal(files.state.code, FS_ENOTFOUND);
	assert_int_equal(files.items.code, FS_ENOTFOUND);
}

static void the_head_of_a_region_is_found(void **state)
{
	struct harness *h = *state;
	struct outlook_files files;

	leave(h, KILLED);
	outlook_find(&h->config, &files);
	assert_string_equal(files.region.path, region_path);
	assert_int_equal(files.region.code, FS_OK);
	assert_true(files.region.sealed && files.region.this_boot);
	assert_int_equal(files.region.epoch, 1);
	assert_int_equal(files.state.code, FS_ENOTFOUND);
	boot(h);
	outlook_find(&h->config, &files);
	assert_false(files.region.this_boot);
	region_newer(h);
	outlook_find(&h->config, &files);
	assert_int_equal(files.region.code, FS_EVERSION);
	region_damaged(h);
	outlook_find(&h->config, &files);
	assert_int_equal(files.region.code, FS_ECORRUPT);
	region_gone(h);
	outlook_find(&h->config, &files);
	assert_int_equal(files.region.code, FS_ENOTFOUND);
	assert_int_not_equal(access(region_path, F_OK), 0);
	region_on_a_disk(h);
	outlook_find(&h->config, &files);
	assert_int_equal(files.region.code, FS_EINVAL);
	assert_non_null(strstr(files.region.why, "--region-dir"));
}

static void put_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void journal_and_notes_of_ids_are_found(void **state)
{
	static const char *const texts[] = { "5000\n", "77\n", "nothing" };
	struct harness *h = *state;
	struct outlook_file journal;
	struct outlook_ids ids;
	struct seg_info info;
	char path[INSTANCE_PATH_BYTES], name[16];

	leave(h, JOURNALED);
	h->config.look_only = true;
	assert_int_equal(harness_try_open(h), FS_OK);
	seg_get_info(h->store->segments, &info);
	store_close(h->store);
	h->store = NULL;
	h->config.look_only = false;
	time_passes(h);
	outlook_find_journal(&h->config, info.uuid, info.segments, &journal);
	assert_int_equal(journal.code, FS_OK);
	assert_int_equal(journal.epoch, 1);
	assert_in_range(wall() - (int64_t)(journal.time_us / 1000000), 61, 62);
	info.uuid[0] ^= 1; /* another flash's */
	outlook_find_journal(&h->config, info.uuid, info.segments, &journal);
	assert_int_equal(journal.code, FS_ENOTFOUND);
	info.uuid[0] ^= 1;
	journal_damaged(h);
	outlook_find_journal(&h->config, info.uuid, info.segments, &journal);
	assert_int_equal(journal.code, FS_ECORRUPT);

	outlook_find_ids(&h->config, &ids);
	assert_true(ids.notes == 0 && ids.end == 0);
	for (int n = 0; n < 3; n++) {
		snprintf(name, sizeof(name), "%d", n);
		instance_ids_path(state_dir, name, path);
		put_text(path, texts[n]);
	}
	outlook_find_ids(&h->config, &ids);
	assert_true(ids.notes == 3 && ids.damaged == 1 && ids.end == 5000);
	for (int n = 0; n < 3; n++) {
		snprintf(name, sizeof(name), "%d", n);
		instance_ids_path(state_dir, name, path);
		unlink(path);
	}
}

static void a_daemon_that_runs_is_not_disturbed(void **state)
{
	struct harness *h = *state;
	struct outlook outlook;

	leave(h, STOPPED);
	harness_open(h);
	outlook_judge(&h->config, &outlook);
	assert_false(outlook.warm);
	assert_int_equal(where(h, "object-1"), FLASH);
	move(h, "object-2"); /* it still writes */
	assert_true(store_save(h->store));
	harness_close(h);
	harness_open(h);
	assert_true(restart_is_warm(h->store));
	harness_close(h);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_folders, teardown_folders)
	const struct CMUnitTest tests[] = {
		TEST(outlook_and_start_agree),
		TEST(heads_of_a_stopped_daemon_are_found),
		TEST(the_head_of_a_region_is_found),
		TEST(journal_and_notes_of_ids_are_found),
		TEST(a_daemon_that_runs_is_not_disturbed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
