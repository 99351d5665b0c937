/* SPDX-License-Identifier: BSD-3-Clause */
/* Events come out in the server's order, and none before what may still come. */
#include "tests/unit/tools/tools_test.h"

#include "base/rng.h"
#include "tools/record/order.h"

static void add(struct order *order, uint64_t gid, int64_t time_us)
{
	struct event event = { .gid = gid, .time_us = time_us };

	order_add(order, &event);
}

static void an_event_waits_for_older_ones(void **state)
{
	struct order order;
	struct event event;

	(void)state;
	order_init(&order);
	assert_false(order_next(&order, true, &event));
	add(&order, 2, 1000);
	add(&order, 3, 1000 + ORDER_HOLD_US - 1);
	assert_false(order_next(&order, false, &event));
	add(&order, 1, 900); /* another thread's */
	add(&order, 4, 1000 + ORDER_HOLD_US);
	for (uint64_t gid = 1; gid <= 2; gid++) {
		assert_true(order_next(&order, false, &event));
		assert_int_equal(event.gid, gid);
	}
	assert_false(order_next(&order, false, &event));
	assert_true(order_next(&order, true, &event));
	assert_int_equal(event.gid, 3);
	order_fini(&order);
}

static void blocks_of_threads_are_merged(void **state)
{
	const uint64_t count = 20000;
	struct rng rng;
	struct order order;
	struct event event;
	uint64_t *gids = calloc(count, sizeof(*gids));

	(void)state;
	rng_init(&rng, 3);
	for (uint64_t i = 0; i < count; i++)
		gids[i] = i + 1;
	for (uint64_t i = count - 1; i > 0; i--) {
		uint64_t j = rng_below(&rng, i + 1), other = gids[j];

		gids[j] = gids[i];
		gids[i] = other;
	}
	order_init(&order);
	for (uint64_t i = 0; i < count; i++)
		add(&order, gids[i], (int64_t)gids[i]);
	for (uint64_t i = 0; i < count; i++) {
		assert_true(order_next(&order, true, &event));
		assert_int_equal(event.gid, i + 1);
		assert_int_equal(event.time_us, i + 1);
	}
	assert_false(order_next(&order, true, &event));
	order_fini(&order);
	free(gids);
}

static void a_full_heap_gives_its_oldest(void **state)
{
	struct order order;
	struct event event;

	(void)state;
	order_init(&order);
	for (uint64_t i = 0; i < ORDER_EVENTS_MAX; i++) {
		assert_false(order_next(&order, false, &event));
		add(&order, i + 1, 1000);
	}
	assert_true(order_next(&order, false, &event));
	assert_int_equal(event.gid, 1);
	assert_false(order_next(&order, false, &event));
	order_fini(&order);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_waits_for_older_ones),
		cmocka_unit_test(blocks_of_threads_are_merged),
		cmocka_unit_test(a_full_heap_gives_its_oldest),
	};

	return cmocka_run_group_tests_name("record: order", tests, NULL, NULL);
}
