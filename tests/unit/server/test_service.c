/* SPDX-License-Identifier: BSD-3-Clause */
/* The line of state that a service manager shows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/service.h"
#include "server/store/store.h"

static struct store_status store;
static struct service_figures figures;
static char text[512];

static int begin(void **state)
{
	(void)state;
	store = (struct store_status){
		.curr_items = 1234, .dram_items = 1000, .flash = true, .segments = { .total = 200, .live = 25 }
	};
	figures = (struct service_figures){ .store = &store, .flash_wanted = true, .accepting = true };
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

static void a_flash_that_is_wanted_and_missing_is_said_first(void **state)
{
	(void)state;
	store.flash = false;
	figures.gets = 4;
	figures.hits = 1;
	assert_string_equal(shown(), "Degraded: no flash, objects are in DRAM only; 1234 objects; hit ratio 25.0 %");
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
	figures.accepting = false;
	assert_string_equal(shown(), "Degraded: 3 segments can't be written, no further connections are accepted (-c); "
				     "1234 objects, 1000 in DRAM and 234 on flash; flash 12 % full");
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
		cmocka_unit_test_setup(without_flash_there_is_no_word_of_it, begin),
		cmocka_unit_test_setup(a_flash_that_is_wanted_and_missing_is_said_first, begin),
		cmocka_unit_test_setup(an_offline_flash_is_said_with_its_reason, begin),
		cmocka_unit_test_setup(all_that_does_not_work_is_said, begin),
		cmocka_unit_test_setup(more_objects_in_dram_than_in_all_are_not_shown, begin),
		cmocka_unit_test_setup(when_all_is_well_there_are_figures_alone, begin),
		cmocka_unit_test_setup(a_line_that_does_not_fit_is_cut, begin),
	};

	return cmocka_run_group_tests_name("service", tests, NULL, NULL);
}
