/* SPDX-License-Identifier: BSD-3-Clause */
/* The DRAM table of a stripe: what is linked is found, whichever of its lines it lies in, and links move. */
#include "tests/unit/server/store/dram/held.h"

/* ---- finding --------------------------------------------------------------------------------- */

static void nothing_is_found_but_the_very_key(void **state)
{
	struct held held = hold_first(*state);

	assert_null(find(&held, "key"));
	struct item *item = link(&held, "key");
	/* The same link, by the hash of the linked key. */
	assert_null(stripe_find(held.stripe, hash_of(&held, "key"), "ke", 2));
	assert_null(stripe_find(held.stripe, hash_of(&held, "key"), "keys", 4));
	assert_null(stripe_find(held.stripe, hash_of(&held, "key"), "kez", 3));
	assert_ptr_equal(find(&held, "key"), item);
	take_out(&held, "key");
	assert_null(find(&held, "key"));
	lock_release(&held.stripe->lock);
}

/* Both lines of a hash have 20 links, and no table is large enough for one more. */
#define ALIKE 20u

static void objects_of_one_hash_are_told_apart_until_both_lines_are_full(void **state)
{
	struct held held = hold_first(*state);
	struct item *item[ALIKE];
	unsigned count = 0;
	char key[24];

	link_many(&held, 200); /* some of which must leave these lines */
	for (; count < ALIKE; count++) {
		name(1000 + count, key);
		item[count] = make(&held, key);
		if (!stripe_link(held.store, held.stripe, 4711, item[count]))
			break;
	}
	assert_in_range(count, LINE_LINKS, ALIKE); /* fewer than 20 where a line is its own other one */
	if (count < ALIKE) {
		assert_false(item[count]->state & ITEM_LINKED);
		item_release(held.context, item[count]);
	}
	assert_int_equal(held.stripe->count, 200 + count);
	for (unsigned first = 0; first < count; first++) {
		for (unsigned i = 0; i < count; i++) {
			name(1000 + i, key);
			assert_ptr_equal(stripe_find(held.stripe, 4711, key, strlen(key)), i < first ? NULL : item[i]);
		}
		stripe_unlink(held.store, held.stripe, 4711, item[first]);
		item_release(held.context, item[first]);
	}
	let_go(&held, 0, 200);
}

static void a_clean_copy_is_found_by_its_hash_alone_and_others_are_not(void **state)
{
	struct held held = hold_first(*state);
	uint64_t hash = hash_of(&held, "key");
	struct item *item = link(&held, "key");

	assert_null(stripe_find_copy(held.store, held.stripe, hash));
	stripe_unlink(held.store, held.stripe, hash, item);
	item->state |= ITEM_CLEAN;
	assert_true(stripe_link(held.store, held.stripe, hash, item));
	assert_ptr_equal(stripe_find_copy(held.store, held.stripe, hash), item);
	assert_null(stripe_find_copy(held.store, held.stripe, hash + (1ull << 63)));
	assert_int_equal(copies_count(held.store), 1);
	take_out(&held, "key");
	assert_int_equal(copies_count(held.store), 0);
	lock_release(&held.stripe->lock);
}

/* ---- replacing ------------------------------------------------------------------------------- */

static void a_replaced_item_is_its_caller_s_and_the_count_stays(void **state)
{
	struct held held = hold_first(*state);
	struct item *old = link(&held, "key"), *new = make(&held, "key");

	candidate_set(held.store, held.stripe, old);
	stripe_replace(held.store, held.stripe, hash_of(&held, "key"), old, new);
	assert_ptr_equal(find(&held, "key"), new);
	assert_int_equal(held.stripe->count, 1);
	assert_int_equal(old->state & (ITEM_LINKED | ITEM_CANDIDATE), 0);
	assert_int_equal(new->state &(ITEM_LINKED | ITEM_CANDIDATE), ITEM_LINKED);
	assert_int_equal(held.stripe->candidates, 0);
	assert_int_equal(candidate_total(held.store), 0);
	assert_int_equal(old->refs, 1);
	item_release(held.context, old);
	take_out(&held, "key");
	lock_release(&held.stripe->lock);
}

static void what_is_replaced_leaves_its_neighbours_linked(void **state)
{
	static const char *const keys[] = { "a", "b", "c" };
	struct held held = hold_first(*state);
	struct item *item[3];

	for (unsigned i = 0; i < 3; i++) {
		item[i] = make(&held, keys[i]);
		assert_true(stripe_link(held.store, held.stripe, 4711, item[i]));
	}
	for (unsigned i = 0; i < 3; i++) {
		struct item *new = make(&held, keys[i]);

		stripe_replace(held.store, held.stripe, 4711, item[i], new);
		item_release(held.context, item[i]);
		item[i] = new;
		for (unsigned j = 0; j < 3; j++)
			assert_ptr_equal(stripe_find(held.stripe, 4711, keys[j], 1), item[j]);
	}
	for (unsigned i = 0; i < 3; i++) {
		stripe_unlink(held.store, held.stripe, 4711, item[i]);
		item_release(held.context, item[i]);
	}
	lock_release(&held.stripe->lock);
}

static void a_moved_item_is_found_at_its_new_address(void **state)
{
	struct held held = hold_first(*state);
	struct item *item, *moved = NULL;

	link_many(&held, 50);
	for (uint32_t line = 0; line < stripe_lines(held.stripe) && !moved; line++)
		for (unsigned at = 0; at < LINE_LINKS && !moved; at++) {
			item = stripe_item(held.stripe, line, at);
			if (!item || !item_is(item, "object:17", 9))
				continue;
			moved = mem_alloc(item_allocated_bytes(item));
			memcpy((void *)moved, item, item_allocated_bytes(item));
			stripe_moved(held.stripe, line, at, moved);
			mem_free(item);
		}
	assert_non_null(moved);
	assert_ptr_equal(find(&held, "object:17"), moved);
	let_go(&held, 0, 50);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void the_other_line_of_the_other_line_is_the_own_one(void **state)
{
	(void)state;
	for (uint32_t lines = 1; lines < 2000; lines += 1 + lines / 5)
		for (unsigned tag = 0; tag < 256; tag++)
			for (uint32_t line = 0; line < lines; line += 1 + lines / 50) {
				uint32_t other = line_other(line, (uint8_t)tag, lines);

				assert_true(other < lines);
				assert_int_equal(line_other(other, (uint8_t)tag, lines), line);
			}
}

static void shapes_have_four_sizes_for_each_doubling_and_lines_in_the_order_of_hashes(void **state)
{
	static const uint32_t shapes[] = { SHAPE(1u, 0u), SHAPE(3u, 0u), SHAPE(4u, 0u), SHAPE(7u, 0u),
					   SHAPE(4u, 1u), SHAPE(5u, 2u), SHAPE(7u, 5u), SHAPE(6u, 10u) };
	static const uint32_t lines[] = { 1, 3, 4, 7, 8, 20, 224, 6144 };

	(void)state;
	for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
		assert_int_equal(shape_lines(shapes[i]), lines[i]);
		assert_int_equal(shape_own_line(shapes[i], 0), 0);
		assert_int_equal(shape_own_line(shapes[i], UINT32_MAX), lines[i] - 1);
		for (uint32_t line = 0; line < lines[i]; line++) {
			assert_int_equal(shape_own_line(shapes[i], shape_least_bits(shapes[i], line)), line);
			assert_int_equal(shape_own_line(shapes[i], shape_least_bits(shapes[i], line + 1) - 1), line);
		}
	}
}

static void links_come_go_and_move_and_each_is_found(void **state)
{
	struct held held = hold_first(*state);
	unsigned guests = 0;
	struct rng rng;
	char key[24];

	rng_init(&rng, 7);
	link_many(&held, MANY);
	for (unsigned n = 0; n < 20 * MANY; n++) { /* at the highest load, as the table has just grown or not */
		unsigned old = (unsigned)rng_below(&rng, MANY);

		name(old, key);
		take_out(&held, key);
		if (n % 1000 == 0)
			guests += check_lines(&held);
		link(&held, key);
	}
	assert_true(guests > 0);
	for (unsigned n = 0; n < MANY; n++) {
		name(n, key);
		assert_non_null(find(&held, key));
		name(MANY + n, key);
		assert_null(find(&held, key));
	}
	let_go(&held, 0, MANY);
}

/* ---- the number of lines --------------------------------------------------------------------- */

/* ---- walks ----------------------------------------------------------------------------------- */

static bool count_item(void *context, struct item *item)
{
	unsigned *seen = context, number = 0;

	for (size_t i = strlen("object:"); i < item->key_length; i++)
		number = 10 * number + (unsigned)(item_key(item)[i] - '0');
	assert_true(number < MANY);
	seen[number]++;
	return true;
}

static bool stop_at_third(void *context, struct item *item)
{
	(void)item;
	return ++*(unsigned *)context < 3;
}

static void every_link_belongs_to_one_own_line(void **state)
{
	struct held held = hold_first(*state);
	unsigned seen[MANY] = { 0 }, met = 0;

	link_many(&held, MANY);
	assert_true(check_lines(&held) > 0);
	for (uint32_t line = 0; line < stripe_lines(held.stripe); line++)
		assert_true(stripe_meet_own(held.stripe, line, count_item, seen));
	for (unsigned n = 0; n < MANY; n++)
		assert_int_equal(seen[n], 1);
	assert_false(stripe_meet_own(held.stripe, 0, stop_at_third, &met));
	assert_int_equal(met, 3);
	let_go(&held, 0, MANY);
}

static void a_position_holds_while_the_table_has_its_size(void **state)
{
	struct held held = hold_first(*state);
	struct line_position position = { 0 };

	assert_int_equal(position_line(&position, held.stripe), 0);
	link_many(&held, 100);
	position_set(&position, held.stripe, 5);
	assert_int_equal(position_line(&position, held.stripe), 5);
	position_set(&position, held.stripe, stripe_lines(held.stripe));
	assert_int_equal(position_line(&position, held.stripe), 0);
	position_set(&position, held.stripe, 5);
	for (unsigned n = 100; stripe_lines(held.stripe) == position.lines; n++) {
		char key[24];

		name(n, key);
		link(&held, key);
	}
	assert_int_equal(position_line(&position, held.stripe), 0);
	let_go(&held, 0, held.stripe->count);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_found_but_the_very_key),
		TEST(objects_of_one_hash_are_told_apart_until_both_lines_are_full),
		TEST(a_clean_copy_is_found_by_its_hash_alone_and_others_are_not),
		TEST(a_replaced_item_is_its_caller_s_and_the_count_stays),
		TEST(what_is_replaced_leaves_its_neighbours_linked),
		TEST(a_moved_item_is_found_at_its_new_address),
		TEST(the_other_line_of_the_other_line_is_the_own_one),
		TEST(shapes_have_four_sizes_for_each_doubling_and_lines_in_the_order_of_hashes),
		TEST(links_come_go_and_move_and_each_is_found),
		TEST(every_link_belongs_to_one_own_line),
		TEST(a_position_holds_while_the_table_has_its_size),
	};

	return cmocka_run_group_tests_name("store: the DRAM table", tests, NULL, NULL);
}
