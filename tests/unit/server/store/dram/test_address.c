/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses in five bytes: what can't be kept is refused, and the rest comes back. Nothing is ever read there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/store/dram/address.h"

#define WINDOW (1ull << ADDRESS_WINDOW_BITS)

static void *at(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static void assert_kept(uint64_t address)
{
	assert_true(address_learn(at(address)));
	assert_true(address_is_known(at(address)));
	assert_int_not_equal(address_window(at(address)), 0);
	assert_true(address_of(address_window(at(address)), address_low(at(address))) == at(address));
}

static void nothing_is_an_address_of_its_own(void **state)
{
	(void)state;
	assert_null(address_of(0, 0));
}

static void an_address_beyond_48_bits_is_refused(void **state)
{
	(void)state;
	assert_false(address_learn(at(1ull << 48)));
	assert_false(address_learn(at(UINT64_MAX - 15)));
	assert_kept((1ull << 48) - 16);
	assert_false(address_is_known(at((1ull << 49) - 16)));
}

/* A program under valgrind has its heap there. */
static void an_address_in_the_first_window_is_known_once_it_was_learned(void **state)
{
	(void)state;
	assert_false(address_is_known(at(64)));
	assert_kept(64);
}

static void each_sixteenth_byte_of_a_window_comes_back(void **state)
{
	(void)state;
	for (uint64_t address = 5 * WINDOW; address < 6 * WINDOW; address += WINDOW / 1024 - 16)
		assert_kept(address);
	assert_kept(6 * WINDOW - 16);
	assert_kept(6 * WINDOW);
	assert_int_not_equal(address_window(at(6 * WINDOW - 16)), address_window(at(6 * WINDOW)));
}

/* As the last test, because the numbers stay. */
static void there_are_numbers_for_255_windows(void **state)
{
	unsigned learned = 0;

	(void)state;
	for (uint64_t window = 0; window < 4096; window++)
		learned += address_learn(at(window * WINDOW + 64));
	assert_int_equal(learned, ADDRESS_WINDOWS - 1);
	assert_kept((1ull << 48) - 16);
	assert_kept(5 * WINDOW + 160);
	assert_false(address_learn(at(4094 * WINDOW)));
	assert_int_equal(address_window(at(4094 * WINDOW)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_an_address_of_its_own),
		cmocka_unit_test(an_address_beyond_48_bits_is_refused),
		cmocka_unit_test(an_address_in_the_first_window_is_known_once_it_was_learned),
		cmocka_unit_test(each_sixteenth_byte_of_a_window_comes_back),
		cmocka_unit_test(there_are_numbers_for_255_windows),
	};

	return cmocka_run_group_tests_name("addresses", tests, NULL, NULL);
}
