/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's lookups: memory that is used again, room for matches, and the lists of running and of ready ones. */
#include "server/store/request/lookup_internal.h"
#include "tests/unit/server/store/harness.h"

#define IDLE_MOST 64u

static struct store_worker *open_worker(struct harness *h)
{
	harness_open(h);
	assert_null(h->worker[0]->free);
	return h->worker[0];
}

static struct store_lookup *make(struct store_worker *worker, unsigned matches)
{
	struct store_lookup *lookup = lookup_new(worker, matches);

	assert_non_null(lookup);
	return lookup;
}

static void make_running(struct store_worker *worker, struct store_lookup *lookup[3])
{
	for (unsigned i = 0; i < 3; i++) {
		lookup[i] = make(worker, 1);
		lookup_run(lookup[i]);
	}
}

/* ---- the pool -------------------------------------------------------------------------------- */

static void a_new_lookup_has_nothing_of_the_one_before(void **state)
{
	struct harness *h = *state;
	struct store_worker *worker = open_worker(h);
	struct store_lookup *lookup = make(worker, 1);

	lookup->at = 3;
	lookup->reads = lookup->rounds = 7;
	lookup->made = lookup->unread = lookup->extent_done = true;
	lookup->what = LOOKUP_EXTENT;
	lookup_free(lookup);
	assert_int_equal(lookup->magic, 0); /* it stays in the pool */
	assert_int_equal(worker->free_count, 1);
	assert_ptr_equal(make(worker, 1), lookup);
	assert_int_equal(worker->free_count, 0);
	assert_int_equal(lookup->magic, LOOKUP_MAGIC);
	assert_ptr_equal(lookup->worker, worker);
	assert_int_equal(lookup->at | lookup->reads | lookup->rounds | lookup->matches, 0);
	assert_false(lookup->made || lookup->unread || lookup->extent_done || lookup->what != LOOKUP_SLOT);
	assert_false(lookup->running || lookup->ready || lookup->waits || lookup->frozen || lookup->has_extent);
	assert_null(lookup->read);
	lookup_free(lookup);
}

static void a_bounded_number_of_idle_lookups_is_kept(void **state)
{
	struct harness *h = *state;
	struct store_worker *worker = open_worker(h);
	struct store_lookup *lookup[IDLE_MOST + 10];

	for (unsigned i = 0; i < IDLE_MOST + 10; i++)
		lookup[i] = make(worker, 1);
	for (unsigned i = 0; i < IDLE_MOST + 10; i++) {
		lookup_free(lookup[i]);
		assert_int_equal(worker->free_count, i + 1 < IDLE_MOST ? i + 1 : IDLE_MOST);
	}
}

static void few_matches_need_no_memory_of_their_own_and_more_get_some(void **state)
{
	struct harness *h = *state;
	struct store_worker *worker = open_worker(h);
	struct store_lookup *lookup = make(worker, LOOKUP_FEW);

	assert_ptr_equal(lookup->match, lookup->few);
	lookup_free(lookup);
	lookup = make(worker, LOOKUP_FEW + 1);
	assert_ptr_not_equal(lookup->match, lookup->few);
	memset(lookup->match, 0xff, FIDX_MAX_MATCHES * sizeof(*lookup->match)); /* there is room for the most */
	lookup_free(lookup);
	lookup = make(worker, 0); /* the same one again, without that memory */
	assert_ptr_equal(lookup->match, lookup->few);
	lookup_free(lookup);
}

static void room_is_made_once_and_kept(void **state)
{
	struct harness *h = *state;
	struct store_worker *worker = open_worker(h);
	struct store_lookup *lookup = make(worker, 1);

	assert_true(lookup_make_room(lookup, LOOKUP_FEW));
	assert_ptr_equal(lookup->match, lookup->few);
	assert_true(lookup_make_room(lookup, LOOKUP_FEW + 1));
	struct fidx_match *own = lookup->match;
	assert_ptr_not_equal(own, lookup->few);
	assert_true(lookup_make_room(lookup, FIDX_MAX_MATCHES));
	assert_true(lookup_make_room(lookup, 1));
	assert_ptr_equal(lookup->match, own);
	lookup_free(lookup);
}

/* ---- running ones ---------------------------------------------------------------------------- */

static void a_running_lookup_may_end_before_older_ones_and_the_others_keep_their_order(void **state)
{
	struct harness *h = *state;
	struct store_worker *worker = open_worker(h);

	for (unsigned first = 0; first < 3; first++) {
		struct store_lookup *lookup[3], *left[2];

		make_running(worker, lookup);
		assert_int_equal(worker->lookups, 3);
		assert_ptr_equal(worker->oldest, lookup[0]);
		assert_ptr_equal(worker->newest, lookup[2]);
		left[0] = lookup[first == 0 ? 1 : 0];
		left[1] = lookup[first == 2 ? 1 : 2];
		lookup_unrun(lookup[first]);
		assert_int_equal(worker->lookups, 2);
		assert_ptr_equal(worker->oldest, left[0]);
		assert_ptr_equal(worker->newest, left[1]);
		assert_ptr_equal(left[0]->next, left[1]);
		assert_ptr_equal(left[1]->prev, left[0]);
		assert_null(left[0]->prev);
		assert_null(left[1]->next);
		lookup_unrun(left[1]);
		lookup_unrun(left[0]);
		assert_null(worker->oldest);
		assert_null(worker->newest);
		assert_int_equal(worker->lookups, 0);
		for (unsigned i = 0; i < 3; i++)
			lookup_free(lookup[i]);
	}
}

/* ---- ready ones ------------------------------------------------------------------------------ */

static void ready_lookups_are_taken_in_the_order_in_which_they_became_so(void **state)
{
	struct harness *h = *state;
	struct store_worker *worker = open_worker(h);
	struct store_lookup *lookup[3];

	make_running(worker, lookup);
	assert_false(store_worker_has_work(worker));
	lookup_make_ready(lookup[2]);
	lookup_make_ready(lookup[0]);
	assert_true(store_worker_has_work(worker));
	assert_ptr_equal(lookup_take_ready(worker), lookup[2]);
	assert_false(lookup[2]->ready);
	lookup_make_ready(lookup[1]); /* while others wait */
	assert_ptr_equal(lookup_take_ready(worker), lookup[0]);
	assert_ptr_equal(lookup_take_ready(worker), lookup[1]);
	assert_false(store_worker_has_work(worker));
	lookup_make_ready(lookup[1]); /* after the list was empty */
	assert_ptr_equal(lookup_take_ready(worker), lookup[1]);
	assert_false(store_worker_has_work(worker));
	for (unsigned i = 0; i < 3; i++) {
		lookup_unrun(lookup[i]);
		lookup_free(lookup[i]);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_in_memory, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_lookup_has_nothing_of_the_one_before),
		TEST(a_bounded_number_of_idle_lookups_is_kept),
		TEST(few_matches_need_no_memory_of_their_own_and_more_get_some),
		TEST(room_is_made_once_and_kept),
		TEST(a_running_lookup_may_end_before_older_ones_and_the_others_keep_their_order),
		TEST(ready_lookups_are_taken_in_the_order_in_which_they_became_so),
	};

	return cmocka_run_group_tests_name("store: the pool of lookups", tests, NULL, NULL);
}
