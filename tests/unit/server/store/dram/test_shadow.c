/* SPDX-License-Identifier: BSD-3-Clause */
/* A shadow tells how much has left since a key did, as long as it has room for the key. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "server/store/dram/shadow.h"

#define BUCKETS 64u

static int setup(void **state)
{
	static struct shadow shadow;

	shadow_init(&shadow, BUCKETS);
	*state = &shadow;
	return 0;
}

static int teardown(void **state)
{
	shadow_fini(*state);
	return 0;
}

static void an_unknown_key_has_never_left(void **state)
{
	struct shadow *shadow = *state;

	assert_true(shadow_since(shadow, shadow_key(1)) == SHADOW_NEVER);
	shadow_note(shadow, shadow_key(2), 640);
	assert_true(shadow_since(shadow, shadow_key(1)) == SHADOW_NEVER);
}

static void what_left_since_is_told_in_bytes(void **state)
{
	struct shadow *shadow = *state;

	shadow_note(shadow, shadow_key(1), 640);
	assert_int_equal(shadow_since(shadow, shadow_key(1)), 0);
	shadow_note(shadow, shadow_key(2), 1280);
	shadow_note(shadow, shadow_key(3), 64);
	assert_int_equal(shadow_since(shadow, shadow_key(1)), 1344);
	assert_int_equal(shadow_since(shadow, shadow_key(2)), 64);
	assert_int_equal(shadow_since(shadow, shadow_key(3)), 0);
}

static void a_key_that_leaves_again_begins_anew(void **state)
{
	struct shadow *shadow = *state;

	shadow_note(shadow, shadow_key(1), 640);
	shadow_note(shadow, shadow_key(2), 640);
	shadow_note(shadow, shadow_key(1), 640);
	assert_int_equal(shadow_since(shadow, shadow_key(1)), 0);
	assert_int_equal(shadow_since(shadow, shadow_key(2)), 640);
}

/* The marks of bytes have 32 bits of 64 B, which wrap. */
static void a_wrap_of_the_bytes_shows_nothing(void **state)
{
	struct shadow *shadow = *state;

	shadow_note(shadow, shadow_key(1), (64ull << 32) - 640);
	shadow_note(shadow, shadow_key(2), 6400);
	assert_int_equal(shadow_since(shadow, shadow_key(1)), 6400);
	assert_int_equal(shadow_since(shadow, shadow_key(2)), 0);
}

static void the_first_to_leave_makes_room(void **state)
{
	struct shadow *shadow = *state;
	unsigned keys = BUCKETS * SHADOW_WAYS, known = 0;

	for (unsigned n = 0; n < 4 * keys; n++)
		shadow_note(shadow, shadow_key(n), 64);
	for (unsigned n = 0; n < 2 * keys; n++)
		known += shadow_since(shadow, shadow_key(n)) != SHADOW_NEVER;
	assert_in_range(known, 0, keys / 10);
	known = 0;
	for (unsigned n = 4 * keys - keys / 2; n < 4 * keys; n++)
		known += shadow_since(shadow, shadow_key(n)) == (4 * keys - 1 - n) * 64ull;
	assert_in_range(known, keys / 2 * 9 / 10, keys / 2);
}

static void an_empty_shadow_knows_nobody(void **state)
{
	struct shadow *shadow = *state;

	shadow_note(shadow, shadow_key(1), 640);
	shadow_empty(shadow);
	assert_true(shadow_since(shadow, shadow_key(1)) == SHADOW_NEVER);
	shadow_note(shadow, shadow_key(2), 64);
	shadow_note(shadow, shadow_key(1), 64);
	assert_int_equal(shadow_since(shadow, shadow_key(2)), 64);
}

static void the_sample_has_its_share_of_the_keys(void **state)
{
	unsigned sampled[3] = { 0 };

	(void)state;
	for (uint64_t n = 0; n < 1u << 16; n++) {
		assert_true(shadow_samples(shadow_key(n), 0));
		for (unsigned shift = 1; shift <= 3; shift++)
			sampled[shift - 1] += shadow_samples(shadow_key(n), shift);
		/* A coarser sample is a part of a finer one. */
		assert_true(!shadow_samples(shadow_key(n), 3) || shadow_samples(shadow_key(n), 2));
	}
	for (unsigned shift = 1; shift <= 3; shift++)
		assert_in_range(sampled[shift - 1], (1u << 16 >> shift) * 95 / 100, (1u << 16 >> shift) * 105 / 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_unknown_key_has_never_left),        TEST(what_left_since_is_told_in_bytes),
		TEST(a_key_that_leaves_again_begins_anew),  TEST(a_wrap_of_the_bytes_shows_nothing),
		TEST(the_first_to_leave_makes_room),        TEST(an_empty_shadow_knows_nobody),
		TEST(the_sample_has_its_share_of_the_keys),
	};

	return cmocka_run_group_tests_name("store: shadows", tests, NULL, NULL);
}
