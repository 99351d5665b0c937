/* SPDX-License-Identifier: BSD-3-Clause */
/* The size of a stripe's table. */
#include "tests/unit/server/store/dram/held.h"

static void an_empty_table_is_one_line_and_keeps_it(void **state)
{
	struct held held = hold_first(*state);
	uint64_t bytes = held.store->table_bytes;

	assert_int_equal(stripe_lines(held.stripe), 1);
	stripe_shrink(held.store, held.stripe);
	assert_int_equal(stripe_lines(held.stripe), 1);
	link_many(&held, LINE_LINKS - 1);
	assert_int_equal(stripe_lines(held.stripe), 1);
	assert_int_equal(held.store->table_bytes, bytes);
	let_go(&held, 0, LINE_LINKS - 1);
}

/* Each size but the first ones is at most a quarter larger than the one before, and used to at least three quarters. */
static void the_table_grows_in_small_steps_and_each_link_is_still_found(void **state)
{
	struct held held = hold_first(*state);
	uint64_t bytes = held.store->table_bytes;
	uint32_t lines = 1, sizes = 1;
	char key[24];

	for (unsigned n = 0; n < MANY; n++) {
		name(n, key);
		link(&held, key);
		if (stripe_lines(held.stripe) == lines)
			continue;
		if (lines >= 4)
			assert_in_range(stripe_lines(held.stripe), lines + 1, lines + lines / 4);
		lines = stripe_lines(held.stripe);
		sizes++;
		if (lines > 16)
			assert_in_range(n, lines * LINE_LINKS * 7 / 10, lines * LINE_LINKS * 15 / 16);
		assert_int_equal(held.store->table_bytes, bytes + (lines - 1) * sizeof(struct link_line));
		check_lines(&held);
		for (unsigned i = 0; i <= n; i++) {
			name(i, key);
			assert_non_null(find(&held, key));
		}
	}
	assert_in_range(sizes, 25, 40);
	assert_int_equal(held.stripe->count, MANY);
	let_go(&held, 0, MANY);
}

static void the_table_shrinks_when_it_is_asked_and_few_links_are_left(void **state)
{
	struct held held = hold_first(*state);
	uint64_t bytes = held.store->table_bytes;
	char key[24];

	link_many(&held, MANY);
	uint32_t full = stripe_lines(held.stripe), left = MANY;
	while (left * 8 / 3 >= full * LINE_LINKS) {
		stripe_shrink(held.store, held.stripe);
		assert_int_equal(stripe_lines(held.stripe), full);
		name(--left, key);
		take_out(&held, key);
	}
	assert_int_equal(stripe_lines(held.stripe), full); /* not before somebody asks */
	stripe_shrink(held.store, held.stripe);
	assert_in_range(stripe_lines(held.stripe) * LINE_LINKS, left * 4 / 3, left * 5 / 3);
	check_lines(&held);
	for (unsigned n = 0; n < left; n++) {
		name(n, key);
		assert_non_null(find(&held, key));
	}
	for (; left > 0; left--) {
		name(left - 1, key);
		take_out(&held, key);
	}
	stripe_shrink(held.store, held.stripe); /* all at once */
	assert_int_equal(stripe_lines(held.stripe), 1);
	assert_int_equal(held.store->table_bytes, bytes);
	lock_release(&held.stripe->lock);
}

static void without_memory_a_full_table_refuses_a_link_and_loses_none(void **state)
{
	struct held held = hold_first(*state);
	struct item *item;
	unsigned linked = 0;
	char key[24];

	if (!HAVE_FAULTS) {
		lock_release(&held.stripe->lock);
		skip();
	}
	link_many(&held, MANY);
	uint32_t lines = stripe_lines(held.stripe);
	for (;; linked++) {
		name(MANY + linked, key);
		item = make(&held, key);
		fault_arm(FAULT_memory_alloc, FAULT_ALWAYS, 0);
		bool fits = stripe_link(held.store, held.stripe, hash_of(&held, key), item);
		fault_disarm_all();
		if (!fits)
			break;
	}
	assert_int_equal(stripe_lines(held.stripe), lines);
	assert_int_equal(held.stripe->count, MANY + linked);
	assert_true(held.stripe->count > lines * LINE_LINKS * 15 / 16);
	assert_false(item->state & ITEM_LINKED);
	check_lines(&held);
	assert_true(stripe_link(held.store, held.stripe, hash_of(&held, key), item)); /* there is some again */
	assert_true(stripe_lines(held.stripe) > lines);
	check_lines(&held);
	let_go(&held, 0, MANY + linked + 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_empty_table_is_one_line_and_keeps_it),
		TEST(the_table_grows_in_small_steps_and_each_link_is_still_found),
		TEST(the_table_shrinks_when_it_is_asked_and_few_links_are_left),
		TEST(without_memory_a_full_table_refuses_a_link_and_loses_none),
	};

	return cmocka_run_group_tests_name("store: the DRAM table's size", tests, NULL, NULL);
}
