/* SPDX-License-Identifier: BSD-3-Clause */
/* CAS ids over runs whose flash is gone, or that have none: the state directory knows which were given. */
#include "server/store/state/ids_note.h"

#include <sys/stat.h>
#include <unistd.h>

#include "server/store/state/ids.h"
#include "server/store/state/instance.h"
#include "tests/unit/server/store/harness.h"

#define IDS_END (1ull << 53)

static char folder[100], note_path[INSTANCE_PATH_BYTES];

static int setup_folder(void **state)
{
	struct harness *h;

	assert_int_equal(setup(state), 0);
	h = *state;
	snprintf(folder, sizeof(folder), "%.60s/ids-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(folder));
	instance_ids_path(folder, "daemon", note_path);
	h->config.state_dir = folder;
	h->config.restart_max_downtime_us = 60000000;
	h->config.boot_id = "one boot";
	return 0;
}

static int setup_dram(void **state)
{
	struct harness *h;

	assert_int_equal(setup_folder(state), 0);
	h = *state;
	h->config.flash_path = NULL;
	return 0;
}

static int teardown_folder(void **state)
{
	int result = teardown(state);
	char command[200];

	snprintf(command, sizeof(command), "rm -r '%s'", folder);
	return system(command) == 0 ? result : -1; /* NOLINT: the name is ours */
}

/* A run that ends cleanly, or by a kill. Returns its last id; *first: the id before. */
static uint64_t run_once(struct harness *h, const char *name, bool clean, uint64_t *first)
{
	uint64_t last;

	harness_open(h);
	store_claim(h->store, name);
	*first = set(h, "key", "value").cas;
	last = set(h, "key", "value").cas;
	assert_int_equal(last, *first + 1);
	if (clean)
		(void)store_save(h->store);
	harness_close(h);
	return last;
}

static void write_note(const char *text)
{
	FILE *file = fopen(note_path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void a_flash_that_is_gone_repeats_no_id(void **state)
{
	struct harness *h = *state;
	uint64_t first, last;

	last = run_once(h, "daemon", true, &first);
	assert_int_equal(first, 1);
	unlink(h->path);
	last = run_once(h, "daemon", true, &first);
	assert_int_equal(first, 3);
	/* Zeroed, after a kill. */
	last = run_once(h, "daemon", false, &first);
	assert_int_equal(first, 5);
	unlink(h->path);
	run_once(h, "daemon", true, &first);
	assert_true(first > last && first <= last + IDS_RESERVE);
}

/* The superblock's reserve and the note are the same one: a kill costs no more than without the note. */
static void a_kill_costs_the_flash_s_reserve_once(void **state)
{
	struct harness *h = *state;
	uint64_t first, last = 0;

	for (int n = 0; n < 5; n++) {
		last = run_once(h, "daemon", false, &first);
		assert_int_equal(first, 1 + (uint64_t)n * IDS_RESERVE);
	}
	assert_true(last > 4 * IDS_RESERVE);
}

static void kin_repeat_no_id(void **state)
{
	char one[] = "one", two[] = "two";
	const struct store_kin kin[] = { { .name = one }, { .name = two, .covers = true } };
	struct harness *h = *state;
	uint64_t first, last;

	h->config.flash_path = NULL;
	run_once(h, "one", true, &first);
	run_once(h, "two", true, &first);
	assert_int_equal(first, 1);
	last = run_once(h, "two", true, &first);
	h->config.kin = kin;
	h->config.kin_count = 2;
	run_once(h, "daemon", true, &first);
	assert_int_equal(first, last + 1);
}

static void what_the_cleaner_reserves_is_noted(void **state)
{
	struct harness *h = *state;
	uint64_t first, last;

	harness_open(h);
	store_claim(h->store, "daemon");
	atomic_store(&h->store->cas_next, IDS_RESERVE / 2);
	assert_true(ids_reserve(h->store));
	atomic_store(&h->store->cas_next, IDS_RESERVE + 77);
	last = set(h, "key", "value").cas;
	harness_close(h);
	unlink(h->path);
	run_once(h, "daemon", true, &first);
	assert_true(first > last);
}

static void runs_with_and_without_flash_share_no_id(void **state)
{
	struct harness *h = *state;
	uint64_t first, last;

	last = run_once(h, "daemon", true, &first);
	h->config.flash_path = NULL;
	run_once(h, "daemon", true, &first);
	assert_int_equal(first, last + 1);
	last = run_once(h, "daemon", false, &first);
	h->config.flash_path = h->path;
	run_once(h, "daemon", true, &first);
	assert_true(first > last);
}

static void without_flash_a_clean_end_costs_none(void **state)
{
	struct harness *h = *state;
	uint64_t first, last = 0;

	for (int n = 0; n < 5; n++) {
		uint64_t before = last;

		last = run_once(h, "daemon", true, &first);
		assert_int_equal(first, before + 1);
	}
}

static void without_flash_a_kill_costs_the_reserve(void **state)
{
	struct harness *h = *state;
	uint64_t first;

	run_once(h, "daemon", false, &first);
	assert_int_equal(first, 1);
	run_once(h, "daemon", false, &first);
	assert_int_equal(first, 1 + IDS_NOTE_WITHOUT_FLASH);
	/* Another daemon has ids of its own. */
	run_once(h, "another", false, &first);
	assert_int_equal(first, 1);
}

static void a_damaged_note_is_as_a_lost_reserve(void **state)
{
	static const char *const damaged[] = { "", "x", "12", "12\n3", "0\n", "-1\n", "9007199254740992\n" };
	struct harness *h = *state;

	for (unsigned n = 0; n < sizeof(damaged) / sizeof(damaged[0]); n++) {
		uint64_t first, clock = seg_clock_cas();

		write_note(damaged[n]);
		run_once(h, "daemon", true, &first);
		assert_true(first >= clock && first < IDS_END);
	}
}

static void near_the_end_they_begin_anew(void **state)
{
	struct harness *h = *state;
	uint64_t first;

	write_note("9007199254740991\n");
	run_once(h, "daemon", true, &first);
	assert_int_equal(first, 1);
}

static void a_folder_that_takes_no_note_is_no_hindrance(void **state)
{
	struct harness *h = *state;
	uint64_t first;

	h->config.state_dir = "/nowhere/at/all";
	run_once(h, "daemon", false, &first);
	assert_int_equal(first, 1);
}

#define WITH_FLASH(test) cmocka_unit_test_setup_teardown(test, setup_folder, teardown_folder)
#define IN_DRAM(test) cmocka_unit_test_setup_teardown(test, setup_dram, teardown_folder)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FLASH(a_flash_that_is_gone_repeats_no_id),
		WITH_FLASH(a_kill_costs_the_flash_s_reserve_once),
		WITH_FLASH(kin_repeat_no_id),
		WITH_FLASH(what_the_cleaner_reserves_is_noted),
		WITH_FLASH(runs_with_and_without_flash_share_no_id),
		IN_DRAM(without_flash_a_clean_end_costs_none),
		IN_DRAM(without_flash_a_kill_costs_the_reserve),
		IN_DRAM(a_damaged_note_is_as_a_lost_reserve),
		IN_DRAM(near_the_end_they_begin_anew),
		IN_DRAM(a_folder_that_takes_no_note_is_no_hindrance),
	};

	return cmocka_run_group_tests_name("ids_note", tests, NULL, NULL);
}
