/* SPDX-License-Identifier: BSD-3-Clause */
/* The line of state that a service manager shows. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/service.h"
#include "server/store/move.h"
#include "server/store/store.h"

static struct store_status store;
static struct store_move_status move;
static struct service_figures figures;
static char text[512];

static int begin(void **state)
{
	(void)state;
	store = (struct store_status){
		.curr_items = 1234, .dram_items = 1000, .flash = true, .segments = { .total = 200, .live = 25 }
	};
	move = (struct store_move_status){ .state = STORE_MOVE_DONE, .path = "/new" };
	figures = (struct service_figures){ .store = &store, .move = &move, .flash_wanted = true, .accepting = true };
	return 0;
}

static const char *shown(void)
{
	service_status_text(&figures, text, sizeof(text));
	return text;
}

static void without_flash_there_is_no_word_of_it(void **state)
{
	(void)state;
	store.flash = figures.flash_wanted = false;
	assert_string_equal(shown(), "1234 objects");
}

static void a_move_shows_how_far_it_is(void **state)
{
	(void)state;
	assert_null(strstr(shown(), "/new"));
	move.state = STORE_MOVE_COPYING;
	move.segments = 25;
	move.segments_copied = 7;
	assert_non_null(strstr(shown(), "; the flash moves to /new, 7 of 25 segments are there"));
}

static void a_fill_shows_how_long_it_takes(void **state)
{
	(void)state;
	store.fill_seconds = 9000;
	assert_null(strstr(shown(), "all of it"));
	store.hold = STORE_HOLD_FILLING;
	assert_non_null(strstr(shown(), "; flash 12 % full, all of it in 2.5 h"));
	store.fill_seconds = NAN;
	assert_null(strstr(shown(), "all of it"));
}

static void a_flash_that_is_wanted_and_missing_is_said_first(void **state)
{
	(void)state;
	store.flash = false;
	figures.gets = 4;
	figures.hits = 1;
	assert_string_equal(shown(), "Degraded: no flash, objects are in DRAM only; 1234 objects; hit ratio 25.0 %");
}

static void a_file_that_is_away_is_said(void **state)
{
	(void)state;
	snprintf(store.segments.away_reason, sizeof(store.segments.away_reason), "the flash file was moved away");
	assert_string_equal(shown(), "Degraded: the flash file was moved away, and is lost when the daemon ends; "
				     "1234 objects, 1000 in DRAM and 234 on flash; flash 12 % full");
}

static void an_endpoint_that_is_not_served_is_said(void **state)
{
	(void)state;
	figures.metrics_trouble = "127.0.0.1:9151: Address already in use";
	store.flash = figures.flash_wanted = false;
	assert_string_equal(shown(), "Degraded: no /metrics, 127.0.0.1:9151: Address already in use; 1234 objects");
}

static void a_file_that_is_being_made_is_said(void **state)
{
	(void)state;
	store.info.flash_bytes = 3ull << 30;
	store.segments.allocated_bytes = 1ull << 30;
	assert_string_equal(shown(), "1234 objects, 1000 in DRAM and 234 on flash; flash 12 % full; "
				     "1.00 GiB of 3.00 GiB of the flash file are made");
	store.segments.allocate_error = ENOSPC;
	assert_string_equal(shown(), "Degraded: the flash file can't be made longer: No space left on device; "
				     "1234 objects, 1000 in DRAM and 234 on flash; flash 12 % full; "
				     "1.00 GiB of 3.00 GiB of the flash file are made");
}

static void a_flash_smaller_than_asked_is_said(void **state)
{
	(void)state;
	store.segments.allocated_bytes = store.info.flash_bytes = 3ull << 30;
	store.flash_asked_bytes = 4ull << 30;
	assert_string_equal(shown(), "Degraded: the flash has 3.00 GiB in place of 4.00 GiB, for lack of room; "
				     "1234 objects, 1000 in DRAM and 234 on flash; flash 12 % full");
	store.flash_asked_bytes = store.info.flash_bytes;
	assert_string_equal(shown(), "1234 objects, 1000 in DRAM and 234 on flash; flash 12 % full");
}

static void a_rebuild_is_said_until_it_is_over(void **state)
{
	(void)state;
	store.rebuild_segments = 200;
	store.rebuilt_segments = 25;
	assert_string_equal(shown(), "1234 objects, 1000 in DRAM and 234 on flash; flash 12 % full; "
				     "25 of 200 segments of the index are rebuilt");
	store.rebuilt_segments = 200;
	assert_string_equal(shown(), "1234 objects, 1000 in DRAM and 234 on flash; flash 12 % full");
}

static void a_broken_journal_is_said(void **state)
{
	(void)state;
	store.journal_broken = true;
	assert_string_equal(shown(), "Degraded: the journal can't be written; "
				     "1234 objects, 1000 in DRAM and 234 on flash; flash 12 % full");
}

static void an_offline_flash_is_said_with_its_reason(void **state)
{
	(void)state;
	store.segments.offline = true;
	snprintf(store.segments.offline_reason, sizeof(store.segments.offline_reason),
		 "a write failed: Input/output error");
	assert_string_equal(shown(), "Degraded: flash offline: a write failed: Input/output error; "
				     "1234 objects, 1000 in DRAM and 234 on flash");
}

static void all_that_does_not_work_is_said(void **state)
{
	(void)state;
	store.segments.retired = 3;
	store.segments.bad = 2;
	figures.accepting = false;
	assert_string_equal(shown(),
			    "Degraded: 3 segments can't be written, "
			    "2 segments are lost to bad pages of the drive, no further connections are accepted (-c); "
			    "1234 objects, 1000 in DRAM and 234 on flash; flash 12 % full");
}

static void ports_that_the_kernel_has_chosen_are_said(void **state)
{
	(void)state;
	store.flash = figures.flash_wanted = false;
	figures.port = 40001;
	figures.metrics_address = "127.0.0.1:40002";
	assert_string_equal(shown(), "1234 objects; port 40001; metrics at 127.0.0.1:40002");
}

static void a_reload_that_failed_is_said_first(void **state)
{
	(void)state;
	store.flash = figures.flash_wanted = false;
	figures.reload_trouble = "options stay as they were: f:1: there is no option \"x\"";
	assert_string_equal(shown(),
			    "Degraded: the last reload failed, options stay as they were: f:1: there is no option "
			    "\"x\"; 1234 objects");
}

static void options_that_need_a_restart_are_said_next(void **state)
{
	(void)state;
	store.flash = figures.flash_wanted = false;
	figures.restart_options = "";
	assert_string_equal(shown(), "1234 objects");
	figures.restart_options = "threads, conn-limit";
	assert_string_equal(shown(), "A restart is needed for threads, conn-limit; 1234 objects");
	figures.metrics_trouble = "x";
	assert_string_equal(shown(),
			    "Degraded: no /metrics, x; A restart is needed for threads, conn-limit; 1234 objects");
}

/* Figures are read one after the other, while objects come and go. */
static void more_objects_in_dram_than_in_all_are_not_shown(void **state)
{
	(void)state;
	store.dram_items = 1300;
	assert_string_equal(shown(), "1234 objects, 1234 in DRAM and 0 on flash; flash 12 % full");
}

static void when_all_is_well_there_are_figures_alone(void **state)
{
	(void)state;
	figures.gets = 1000;
	figures.hits = 999;
	assert_string_equal(shown(), "1234 objects, 1000 in DRAM and 234 on flash; hit ratio 99.9 %; flash 12 % full");
}

static void a_line_that_does_not_fit_is_cut(void **state)
{
	char small[12];

	(void)state;
	service_status_text(&figures, small, sizeof(small));
	assert_string_equal(small, "1234 object");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(ports_that_the_kernel_has_chosen_are_said, begin),
		cmocka_unit_test_setup(a_reload_that_failed_is_said_first, begin),
		cmocka_unit_test_setup(options_that_need_a_restart_are_said_next, begin),
		cmocka_unit_test_setup(without_flash_there_is_no_word_of_it, begin),
		cmocka_unit_test_setup(a_file_that_is_being_made_is_said, begin),
		cmocka_unit_test_setup(a_file_that_is_away_is_said, begin),
		cmocka_unit_test_setup(an_endpoint_that_is_not_served_is_said, begin),
		cmocka_unit_test_setup(a_move_shows_how_far_it_is, begin),
		cmocka_unit_test_setup(a_fill_shows_how_long_it_takes, begin),
		cmocka_unit_test_setup(a_flash_that_is_wanted_and_missing_is_said_first, begin),
		cmocka_unit_test_setup(a_flash_smaller_than_asked_is_said, begin),
		cmocka_unit_test_setup(a_rebuild_is_said_until_it_is_over, begin),
		cmocka_unit_test_setup(a_broken_journal_is_said, begin),
		cmocka_unit_test_setup(an_offline_flash_is_said_with_its_reason, begin),
		cmocka_unit_test_setup(all_that_does_not_work_is_said, begin),
		cmocka_unit_test_setup(more_objects_in_dram_than_in_all_are_not_shown, begin),
		cmocka_unit_test_setup(when_all_is_well_there_are_figures_alone, begin),
		cmocka_unit_test_setup(a_line_that_does_not_fit_is_cut, begin),
	};

	return cmocka_run_group_tests_name("service", tests, NULL, NULL);
}
