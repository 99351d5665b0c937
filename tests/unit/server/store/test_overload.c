/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A drive that is asked for more than it can do, that stops, and that comes back: by the scripted clock. The drive
 * reads one after the other at a fixed rate; clients ask again a while after they were answered.
 */
#include "harness.h"
#include "segments/segments_internal.h"

#define READS_PER_SECOND 5800u
#define TIMEOUT_MS 200u
#define STEP_US 500u
#define PAUSE_STEPS 8u /* between an answer and a client's next request */
#define KEYS 8000u
#define MULTIGET 20u
#define CLIENTS_MOST 480u

struct asking {
	struct store_fate fate;
	struct flight flight[MULTIGET];
	unsigned hits, open;
	uint64_t since_us, next_step;
};

struct outcome {
	uint64_t hits, misses, whole, slowest_us, lookups_most;
};

static struct asking *clients;

static void name(char key[16], unsigned n)
{
	snprintf(key, 16, "key:%u", n);
}

static void open_slow(struct harness *h)
{
	char key[16];

	h->config.memory_bytes = MIB(64);
	h->config.flash_bytes = MIB(2);
	h->config.read_timeout_ms = TIMEOUT_MS;
	harness_use_ram(h);
	harness_open(h);
	for (unsigned n = 0; n < KEYS; n++) {
		name(key, n);
		set(h, key, "value");
	}
	name(key, KEYS - 1);
	move(h, key);
	for (unsigned n = 0; n < KEYS; n++) {
		name(key, n);
		if (where(h, key) == DRAM)
			move(h, key);
	}
	keep_no_reads(h);
	h->ram->clock = &h->clk;
	h->ram->service_ns = 1000000000u / READS_PER_SECOND;
	clients = calloc(CLIENTS_MOST, sizeof(*clients));
	assert_non_null(clients);
}

static void ask_all(struct harness *h, struct asking *c, struct rng *rng)
{
	char key[16];

	c->fate = (struct store_fate){ false, false };
	c->hits = 0;
	c->since_us = clk_now_us(&h->clk);
	for (unsigned i = 0; i < MULTIGET; i++) {
		name(key, (unsigned)rng_below(rng, KEYS));
		flight_prepare(h, 0, &c->flight[i], STORE_GET, key);
		c->flight[i].request.fate = &c->fate;
		flight_execute(h, &c->flight[i]);
	}
	c->open = MULTIGET;
}

/* True: all of it was answered. */
static bool settle(struct harness *h, struct asking *c, struct outcome *out)
{
	for (unsigned i = 0; i < MULTIGET; i++)
		if (!c->flight[i].done)
			return false;
	for (unsigned i = 0; i < MULTIGET; i++) {
		c->hits += c->flight[i].reply.result == STORE_HIT;
		out->hits += c->flight[i].reply.result == STORE_HIT;
		out->misses += c->flight[i].reply.result == STORE_MISS;
	}
	out->whole += c->hits == MULTIGET;
	if (clk_now_us(&h->clk) - c->since_us > out->slowest_us)
		out->slowest_us = clk_now_us(&h->clk) - c->since_us;
	c->open = 0;
	return true;
}

static void load(struct harness *h, unsigned count, unsigned ms, struct outcome *out)
{
	struct rng rng;

	rng_init(&rng, 7);
	*out = (struct outcome){ 0 };
	for (uint64_t step = 0; step < ms * 1000 / STEP_US; step++) {
		for (unsigned i = 0; i < count; i++) {
			struct asking *c = &clients[i];

			if (c->open == 0 && step >= c->next_step)
				ask_all(h, c, &rng);
			if (c->open > 0 && settle(h, c, out))
				c->next_step = step + PAUSE_STEPS;
		}
		if (h->worker[0]->lookups > out->lookups_most)
			out->lookups_most = h->worker[0]->lookups;
		store_worker_flush(h->worker[0]);
		clk_scripted_advance(&h->clk, STEP_US);
		store_worker_turn(h->worker[0]);
		store_worker_poll(h->worker[0]);
	}
	for (unsigned i = 0; i < count; i++)
		clients[i].next_step = 0;
}

/* All that is under way ends. */
static void quiet(struct harness *h, unsigned count)
{
	struct outcome none = { 0 };

	h->ram->hold = false;
	for (unsigned i = 0; i < count; i++) {
		while (clients[i].open > 0 && !settle(h, &clients[i], &none)) {
			clk_scripted_advance(&h->clk, STEP_US);
			turn(h, 0);
		}
	}
	while (seg_reader_in_flight(h->worker[0]->reader) > 0) {
		clk_scripted_advance(&h->clk, STEP_US);
		turn(h, 0);
	}
}

static int close_slow(void **state)
{
	struct harness *h = *state;

	if (h->store && clients)
		quiet(h, CLIENTS_MOST);
	h->ram->clock = NULL;
	free(clients);
	clients = NULL;
	return teardown(state);
}

/* ---- overload -------------------------------------------------------------------------------- */

static void hits_per_second_hold_at_sixteen_times_what_the_drive_can_do(void **state)
{
	struct harness *h = *state;
	struct outcome out;
	/* Clients that wait only for their pause would ask for so many times the drive's rate. */
	const unsigned once = READS_PER_SECOND * STEP_US * PAUSE_STEPS / 1000000 / MULTIGET + 1;

	open_slow(h);
	for (unsigned times = 1; times <= 16; times *= 2) {
		unsigned count = times * once * 4; /* they wait for the drive as well */

		if (count > CLIENTS_MOST)
			count = CLIENTS_MOST;
		load(h, count, 500, &out); /* it gets to know the drive */
		load(h, count, 2000, &out);
		assert_true(out.hits >= READS_PER_SECOND * 2 / 10 * 9);
		assert_true(out.slowest_us <= TIMEOUT_MS * 1100);
		quiet(h, count);
	}
	assert_true(ctr_sum(CTR_flash_reads_shed) > 0);
}

static void a_multiget_is_answered_whole_or_refused_whole(void **state)
{
	struct harness *h = *state;
	struct outcome out;

	open_slow(h);
	load(h, 300, 500, &out);
	load(h, 300, 2000, &out);
	assert_true(out.misses > 2 * out.hits);
	assert_true(out.whole * MULTIGET >= READS_PER_SECOND * 2 / 10 * 9);
	quiet(h, 300);
}

/* From a rate at which much is waiting. */
static void a_drive_that_drops_to_a_tenth_still_serves_what_it_can(void **state)
{
	struct harness *h = *state;
	struct outcome out;

	open_slow(h);
	load(h, 200, 1000, &out);
	h->ram->service_ns *= 10;
	load(h, 200, 1000, &out); /* it learns */
	load(h, 200, 3000, &out);
	assert_true(out.hits >= READS_PER_SECOND / 10 * 3 / 10 * 8);
	assert_true(out.slowest_us <= TIMEOUT_MS * 1100);
	h->ram->service_ns /= 10;
	load(h, 200, 500, &out);
	load(h, 200, 1000, &out);
	assert_true(out.hits >= READS_PER_SECOND / 10 * 9);
	quiet(h, 200);
}

static void what_waits_for_the_drive_is_bounded_and_in_the_account(void **state)
{
	struct harness *h = *state;
	struct outcome out;

	open_slow(h);
	h->worker[0]->lookups_most = 1000;
	load(h, CLIENTS_MOST, 50, &out); /* before anything is known of the drive */
	assert_true(out.lookups_most <= h->worker[0]->lookups_most);
	store_worker_flush(h->worker[0]);
	assert_true(h->worker[0]->lookups > 500);
	assert_true(atomic_load(&h->store->reader_bytes) >=
		    seg_reader_memory(h->worker[0]->reader) +
			    h->worker[0]->lookups * (sizeof(struct store_lookup) + sizeof(struct flash_read)));
	quiet(h, CLIENTS_MOST);
	store_worker_flush(h->worker[0]);
	assert_true(atomic_load(&h->store->reader_bytes) < 2u << 20);
}

static void a_refused_get_is_a_miss_and_leaves_the_object(void **state)
{
	struct harness *h = *state;
	struct flight *flights = calloc(KEYS, sizeof(*flights));
	struct outcome out;
	unsigned n = 0;
	uint64_t shed;
	char key[16];

	open_slow(h);
	load(h, 1, 1000, &out); /* the drive is known, and has time */
	shed = ctr_sum(CTR_flash_reads_shed);
	do
		name(key, n);
	while (!start(h, 0, &flights[n], STORE_GET, key) && ++n < KEYS);
	assert_in_range(n, READS_PER_SECOND * TIMEOUT_MS / 2000, READS_PER_SECOND * TIMEOUT_MS / 1000);
	assert_int_equal(flights[n].reply.result, STORE_MISS);
	assert_int_equal(ctr_sum(CTR_flash_reads_shed), shed + 1);
	quiet(h, CLIENTS_MOST);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(flights[i].reply.result, STORE_HIT);
	h->ram->clock = NULL;
	assert_value(h, key, "value");
	free(flights);
}

/* ---- silence --------------------------------------------------------------------------------- */

static bool is_offline(const struct harness *h)
{
	return seg_offline(h->store->segments);
}

static void a_drive_that_hangs_goes_offline_and_comes_back(void **state)
{
	struct harness *h = *state;
	struct outcome out;
	uint64_t errors = ctr_sum(CTR_flash_read_errors);

	open_slow(h);
	load(h, 40, 1000, &out);
	h->ram->hold = true;
	load(h, 40, 1500, &out);
	assert_true(is_offline(h));
	assert_int_equal(ctr_sum(CTR_flash_read_errors), errors);
	load(h, 40, 1000, &out);
	assert_int_equal(out.hits, 0);
	assert_true(out.slowest_us <= TIMEOUT_MS * 1100);
	assert_true(h->worker[0]->lookups == 0);
	h->ram->hold = false;
	seconds_pass(h, 1);
	store_clean_step(h->store); /* which tries it */
	assert_false(is_offline(h));
	load(h, 40, 1000, &out);
	assert_true(out.hits >= READS_PER_SECOND / 10 * 9);
	quiet(h, 40);
}

static void while_it_is_offline_gets_miss_at_once_and_changes_stay_true(void **state)
{
	struct harness *h = *state;
	struct flight f;

	open_slow(h);
	health_silent(h->store->segments, TIMEOUT_MS);
	assert_true(start(h, 0, &f, STORE_GET, "key:1"));
	assert_int_equal(f.reply.result, STORE_MISS);
	assert_true(start(h, 0, &f, STORE_DELETE, "key:2"));
	assert_int_equal(f.reply.result, STORE_MISS);
	assert_true(start_with(h, 0, &f, .op = STORE_ADD, .key = "key:3", .value = "new", .length = 3));
	assert_int_equal(f.reply.result, STORE_STORED);
	seconds_pass(h, 1);
	store_clean_step(h->store);
	assert_false(is_offline(h));
	h->ram->clock = NULL;
	assert_value(h, "key:1", "value");
	assert_missing(h, "key:2");
	assert_value(h, "key:3", "new");
}

static void a_device_that_answers_its_probe_late_stays_offline(void **state)
{
	struct harness *h = *state;

	open_slow(h);
	health_silent(h->store->segments, TIMEOUT_MS);
	h->ram->clock = NULL;
	h->ram->slow_clock = &h->clk;
	h->ram->slow_us = TIMEOUT_MS * 1000;
	seconds_pass(h, 1);
	store_clean_step(h->store);
	assert_true(is_offline(h));
	h->ram->slow_us = 1000;
	for (unsigned n = 0; n < 4 && is_offline(h); n++) {
		seconds_pass(h, 1);
		store_clean_step(h->store);
	}
	assert_false(is_offline(h));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, close_slow)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hits_per_second_hold_at_sixteen_times_what_the_drive_can_do),
		TEST(a_multiget_is_answered_whole_or_refused_whole),
		TEST(a_drive_that_drops_to_a_tenth_still_serves_what_it_can),
		TEST(what_waits_for_the_drive_is_bounded_and_in_the_account),
		TEST(a_refused_get_is_a_miss_and_leaves_the_object),
		TEST(a_drive_that_hangs_goes_offline_and_comes_back),
		TEST(while_it_is_offline_gets_miss_at_once_and_changes_stay_true),
		TEST(a_device_that_answers_its_probe_late_stays_offline),
	};

	return cmocka_run_group_tests_name("store: a drive that can't", tests, NULL, NULL);
}
