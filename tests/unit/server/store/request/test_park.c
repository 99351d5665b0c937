/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers wait until what they depend on is durable. */
#include "tests/unit/server/store/crash.h"

/* A journal thread that doesn't come: nothing is written before the test says so. */
static void hold(struct crash *c, bool held)
{
	c->h.store->losses->writer.threaded = held;
}

static void write_down(struct crash *c)
{
	assert_true(journal_step(c->h.store->losses->journal));
}

static void an_answer_waits_for_its_loss(void **state)
{
	struct crash *c = *state;
	struct flight f;

	set_on_flash(&c->h, "key", "old");
	hold(c, true);
	assert_false(start_with(&c->h, 0, &f, .op = STORE_SET, .key = "key", .value = "new", .length = 3));
	assert_int_equal(store_worker_pending(c->h.worker[0]), 1);
	turn(&c->h, 0);
	assert_false(f.done);
	assert_false(store_worker_has_work(c->h.worker[0]));
	write_down(c);
	assert_true(wait_for_store(c->h.worker[0]));
	turn(&c->h, 0);
	assert_true(f.done);
	assert_int_equal(f.reply.result, STORE_STORED);
	assert_int_equal(store_worker_pending(c->h.worker[0]), 0);
	hold(c, false);
}

/* Nobody sees a new value, or that there is none, before the old one can't come back. */
static void so_does_every_answer_about_the_key(void **state)
{
	struct crash *c = *state;
	struct flight f[5];

	set_on_flash(&c->h, "key", "old");
	hold(c, true);
	assert_false(start(&c->h, 0, &f[0], STORE_DELETE, "key"));
	while (store_worker_pending(c->h.worker[0]) && where(&c->h, "key") == FLASH) /* its read */
		turn(&c->h, 0);
	assert_false(start(&c->h, 1, &f[1], STORE_GET, "key"));
	assert_false(start_with(&c->h, 1, &f[2], .op = STORE_SET, .key = "key", .value = "1", .length = 1));
	assert_false(start(&c->h, 0, &f[3], STORE_GET, "key"));
	for (unsigned i = 0; i < 4; i++)
		assert_false(f[i].done);
	write_down(c);
	for (unsigned i = 0; i < 2; i++)
		turn(&c->h, i);
	for (unsigned i = 0; i < 4; i++)
		assert_true(f[i].done);
	assert_int_equal(f[0].reply.result, STORE_DELETED);
	assert_int_equal(f[1].reply.result, STORE_MISS);
	assert_int_equal(f[3].reply.result, STORE_HIT);
	assert_true(start(&c->h, 0, &f[4], STORE_GET, "key"));
	hold(c, false);
}

static void other_keys_are_not_held_up(void **state)
{
	struct crash *c = *state;
	unsigned at_once = 0;
	struct flight f;
	struct flight held;

	set_on_flash(&c->h, "key", "old");
	hold(c, true);
	assert_false(start_with(&c->h, 0, &held, .op = STORE_SET, .key = "key", .value = "new", .length = 3));
	for (unsigned i = 0; i < 20; i++) {
		char key[16];

		snprintf(key, sizeof(key), "other-%u", i);
		if (start_with(&c->h, 1, &f, .op = STORE_SET, .key = key, .value = "1", .length = 1)) {
			at_once++;
			continue;
		}
		write_down(c); /* it has an innocent slot, or the tag of the key */
		turn(&c->h, 1);
	}
	assert_true(at_once >= 18);
	if (!held.done)
		write_down(c);
	turn(&c->h, 0);
	hold(c, false);
}

static void on_flushed(struct store_request *request)
{
	*(bool *)request->owner = true;
}

/* The worker doesn't wait for it, but whatever is asked meanwhile sees it, and is answered behind it. */
static void a_flush_is_answered_when_it_is_durable(void **state)
{
	struct crash *c = *state;
	bool flushed = false;
	struct store_request request = { .done = on_flushed, .owner = &flushed };
	struct flight f;

	set(&c->h, "key", "old");
	hold(c, true);
	for (int64_t exptime = 0; exptime <= 100; exptime += 100) {
		flushed = false;
		assert_false(store_flush(c->h.worker[0], &request, exptime));
		assert_int_equal(store_worker_pending(c->h.worker[0]), 1);
		assert_false(start(&c->h, 1, &f, STORE_GET, "key"));
		turn(&c->h, 0);
		turn(&c->h, 1);
		assert_false(flushed || f.done);
		write_down(c);
		turn(&c->h, 0);
		turn(&c->h, 1);
		assert_true(flushed && f.done);
		assert_int_equal(request.op, STORE_FLUSH);
		assert_int_equal(request.result, STORE_FLUSHED);
		assert_int_equal(f.reply.result, STORE_MISS);
	}
	hold(c, false);
	assert_true(start(&c->h, 0, &f, STORE_GET, "key"));
}

static void a_flush_without_a_journal_is_answered_at_once(void **state)
{
	struct crash *c = *state;
	struct store_request request = { .result = STORE_MISS };
	struct losses *losses = c->h.store->losses;

	set(&c->h, "key", "old");
	c->h.store->losses = NULL;
	assert_true(store_flush(c->h.worker[0], &request, 0));
	c->h.store->losses = losses;
	assert_int_equal(request.result, STORE_FLUSHED);
	assert_missing(&c->h, "key");
}

static void workers_are_woken_from_another_thread(void **state)
{
	struct crash *c = *state;
	struct flight f[2];

	set_on_flash(&c->h, "key", "old");
	set_on_flash(&c->h, "yek", "old");
	assert_int_equal(losses_start(c->h.store), FS_OK);
	start_with(&c->h, 0, &f[0], .op = STORE_SET, .key = "key", .value = "new", .length = 3);
	start_with(&c->h, 1, &f[1], .op = STORE_SET, .key = "yek", .value = "new", .length = 3);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(finish(&c->h, &f[i]).result, STORE_STORED);
	store_flush_all(c->h.store, 0);
	losses_stop(c->h.store);
	assert_missing(&c->h, "key");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, crash_setup, crash_teardown)
	const struct CMUnitTest tests[] = {
		CASE(an_answer_waits_for_its_loss),
		CASE(so_does_every_answer_about_the_key),
		CASE(other_keys_are_not_held_up),
		CASE(a_flush_is_answered_when_it_is_durable),
		CASE(a_flush_without_a_journal_is_answered_at_once),
		CASE(workers_are_woken_from_another_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
