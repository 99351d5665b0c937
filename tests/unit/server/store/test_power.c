/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Power is cut at each write of device and journal of a run in turn: what was not flushed is lost, or there in part. Each
 * start after that must serve nothing older than what was acknowledged before the cut: no overwritten value, none that
 * was deleted, none that was flushed. With the journal the flash is warm; without it, it is empty.
 */
#include "server/store/state/losses.h"
#include "tests/unit/devices/ram_journal.h"
#include "tests/unit/server/store/harness.h"

#define KEYS 48
#define ROUNDS 22
#define VALUE_BYTES 500
#define FILLERS 400 /* two segments of them */

/* The last change of a key that was acknowledged, and the last that was begun. */
struct key_state {
	uint32_t acknowledged, begun;
};

struct power {
	struct harness *h;
	struct ram_journal journal, after_journal; /* as it is; as the cut has left it */
	uint8_t *durable, *after; /* the device at its last flush; as the cut has left it */
	uint64_t events, cut_at; /* the cut comes at this event; 0: at the end of the run */
	bool cut;
	struct rng rng;
	struct key_state key[KEYS], after_key[KEYS];
	uint32_t flushed, after_flushed; /* changes up to this number are flushed */
	uint32_t changes, fillers;
	bool with_journal;
};

static struct power *the_power; /* the device's hooks have no context */

/* ---- the cut --------------------------------------------------------------------------------- */

static void cut_now(struct power *p, const void *buffer, uint64_t bytes, uint64_t offset)
{
	uint64_t size = p->h->config.flash_bytes;
	uint8_t *now = malloc(size);

	assert_non_null(now);
	memcpy(now, p->h->ram->bytes, size);
	if (bytes)
		memcpy(now + offset, buffer, bytes);
	memcpy(p->after, p->durable, size);
	ram_mix_sectors(&p->rng, p->after, now, size);
	free(now);
	ram_journal_cut(&p->journal, &p->rng, &p->after_journal);
	memcpy(p->after_key, p->key, sizeof(p->key));
	p->after_flushed = p->flushed;
	p->cut = true;
}

static void device_event(struct ram_device *ram, const void *buffer, uint64_t bytes, uint64_t offset)
{
	(void)ram;
	if (!the_power->cut && ++the_power->events == the_power->cut_at)
		cut_now(the_power, buffer, bytes, offset);
}

static void device_flushed(struct ram_device *ram)
{
	memcpy(the_power->durable, ram->bytes, the_power->h->config.flash_bytes);
	device_event(ram, NULL, 0, 0);
}

static void journal_event(struct ram_journal *journal)
{
	struct power *p = journal->context;

	if (!p->cut && ++p->events == p->cut_at)
		cut_now(p, NULL, 0, 0);
}

/* ---- the run --------------------------------------------------------------------------------- */

static void key_name(char out[16], unsigned k)
{
	snprintf(out, 16, "the-key-%03u", k);
}

static void set_key(struct power *p, unsigned k)
{
	char key[16], value[VALUE_BYTES];
	uint32_t change = ++p->changes;

	key_name(key, k);
	memset(value, 'x', sizeof(value));
	snprintf(value, sizeof(value), "%u %u", k, change);
	p->key[k].begun = change;
	assert_int_equal(run_full(p->h, .op = STORE_SET, .key = key, .value = value, .length = VALUE_BYTES - k).result,
			 STORE_STORED);
	p->key[k].acknowledged = change;
}

static void delete_key(struct power *p, unsigned k)
{
	char key[16];
	uint32_t change = ++p->changes;

	key_name(key, k);
	p->key[k].begun = change;
	(void)run(p->h, STORE_DELETE, key);
	p->key[k].acknowledged = change;
}

static void touch_key(struct power *p, unsigned k)
{
	char key[16];

	key_name(key, k);
	(void)run_expiry(p->h, STORE_TOUCH, key, 100000);
}

static void flush_all(struct power *p)
{
	uint32_t change = p->changes;

	store_flush_all(p->h->store, 0);
	p->flushed = change;
}

/* Sets so many keys that are never set again; they are shorter than ours, which are placed first. */
static void set_fillers(struct power *p, unsigned count)
{
	while (count-- > 0) {
		char key[24], value[300] = "filler";

		snprintf(key, sizeof(key), "filler-%u", p->fillers++);
		assert_int_equal(
			run_full(p->h, .op = STORE_SET, .key = key, .value = value, .length = sizeof(value)).result,
			STORE_STORED);
	}
}

/* After a flush most candidates are dead, so that it takes two tries. */
static void write_some(struct power *p)
{
	for (unsigned tries = 0; tries < 2 && !p->cut; tries++) {
		set_fillers(p, tries ? FILLERS : FILLERS / 2);
		if (write_segment(p->h->store, p->h->store->frugal ? 1u << GROUP_SMALL : (1u << GROUPS) - 1))
			return;
	}
}

/* Sets, deletes, touches, and moves to flash as in life, with reclaims; the same at each call. */
static void live(struct power *p, unsigned rounds, unsigned seed)
{
	struct rng rng;

	rng_init(&rng, seed);
	for (unsigned round = 0; round < rounds && !p->cut; round++) {
		for (unsigned n = 0; n < 20 && !p->cut; n++) {
			unsigned k = (unsigned)rng_below(&rng, KEYS), what = (unsigned)rng_below(&rng, 10);

			if (what < 6)
				set_key(p, k);
			else if (what < 9)
				delete_key(p, k);
			else
				touch_key(p, k);
		}
		if (!p->cut && !p->h->store->rebuild) /* the cleaner writes nothing meanwhile */
			write_some(p);
		if (rounds > 2 && round == rounds / 3 && !p->cut)
			flush_all(p);
	}
}

/* ---- the check ------------------------------------------------------------------------------- */

/* Returns the hits. */
static unsigned check(struct power *p)
{
	unsigned hits = 0;

	for (unsigned k = 0; k < KEYS; k++) {
		unsigned found_key, change;
		struct reply reply;
		char key[16];

		key_name(key, k);
		reply = get(p->h, key);
		if (reply.result != STORE_HIT)
			continue;
		hits++;
		assert_int_equal(sscanf(reply.value, "%u %u", &found_key, &change), 2);
		assert_int_equal(found_key, k);
		if (change < p->key[k].acknowledged || change > p->key[k].begun || change <= p->flushed)
			fail_msg("cut at event %llu: key %u has change %u; acknowledged %u, begun %u, flushed %u",
				 (unsigned long long)p->cut_at, k, change, p->key[k].acknowledged, p->key[k].begun,
				 p->flushed);
	}
	return hits;
}

static void open_store(struct power *p)
{
	harness_use_ram(p->h);
	p->h->ram->on_write = device_event;
	p->h->ram->on_flush = device_flushed;
	p->journal.on_event = journal_event;
	p->journal.context = p;
	p->h->config.journal = p->with_journal;
	p->h->config.journal_medium = p->with_journal ? &p->journal.medium : NULL;
}

/* The next life begins with what the cut has left. */
static void lose_power(struct power *p)
{
	if (!p->cut)
		cut_now(p, NULL, 0, 0);
	harness_close(p->h);
	ram_journal_fini(&p->journal);
	p->journal = p->after_journal;
	ram_journal_init(&p->after_journal);
	memcpy(p->key, p->after_key, sizeof(p->key));
	p->flushed = p->after_flushed;
	memcpy(p->durable, p->after, p->h->config.flash_bytes);
	p->cut = false;
	p->events = p->cut_at = 0;
}

static enum store_start power_returns(struct power *p)
{
	open_store(p);
	memcpy(p->h->ram->bytes, p->after, p->h->config.flash_bytes);
	assert_int_equal(harness_try_open(p->h), FS_OK);
	harness_workers(p->h, WORKERS);
	return p->h->store->start;
}

static void rebuild_all(struct power *p)
{
	for (unsigned i = 0; i < 100 && p->h->store->rebuild; i++)
		(void)cleaner_step(p->h->store);
	assert_null(p->h->store->rebuild);
}

static void power_init(struct power *p, struct harness *h, bool with_journal)
{
	memset(p, 0, sizeof(*p));
	p->h = h;
	p->with_journal = with_journal;
	p->durable = calloc(1, h->config.flash_bytes);
	p->after = calloc(1, h->config.flash_bytes);
	rng_init(&p->rng, 17);
	ram_journal_init(&p->journal);
	ram_journal_init(&p->after_journal);
	h->config.state_dir = "/nowhere";
	h->config.restart_max_downtime_us = 60000000;
	h->config.boot_id = "boot";
	the_power = p;
	open_store(p);
	assert_int_equal(harness_try_open(h), FS_OK);
	harness_workers(h, WORKERS);
	p->events = 0;
}

static void power_fini(struct power *p)
{
	harness_close(p->h);
	ram_journal_fini(&p->journal);
	ram_journal_fini(&p->after_journal);
	free(p->durable);
	free(p->after);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static void after_a_cut_at_the_end_flash_is_warm(void **state)
{
	struct harness *h = *state;
	unsigned hits, before;
	struct power p;

	if (harness_is_frugal()) /* which refuses a journal */
		skip();
	power_init(&p, h, true);
	live(&p, 8, 1);
	before = check(&p);
	lose_power(&p);
	assert_int_equal(power_returns(&p), STORE_START_REBUILT);
	assert_int_equal(check(&p), 0); /* before the walk: misses */
	rebuild_all(&p);
	hits = check(&p);
	assert_true(hits > 0);
	assert_true(hits <= before);
	assert_true(fidx_verify(h->store->index));
	power_fini(&p);
}

static void without_a_journal_it_is_cold(void **state)
{
	struct harness *h = *state;
	struct power p;

	power_init(&p, h, false);
	live(&p, 8, 1);
	lose_power(&p);
	assert_int_equal(power_returns(&p), STORE_START_UNCLEAN);
	assert_int_equal(check(&p), 0);
	power_fini(&p);
}

/* How many events has the run? */
static uint64_t count_events(struct harness *h, bool with_journal)
{
	struct power p;
	uint64_t events;

	power_init(&p, h, with_journal);
	live(&p, ROUNDS, 1);
	events = p.events;
	power_fini(&p);
	return events;
}

static void enumerate(struct harness *h, bool with_journal, uint64_t step)
{
	uint64_t events = count_events(h, with_journal), hits = 0, warm = 0, runs = 0;

	print_message("%llu events\n", (unsigned long long)events);
	assert_true(events > 100);
	for (uint64_t at = 1; at <= events; at += step) {
		struct power p;
		enum store_start start;

		power_init(&p, h, with_journal);
		p.cut_at = at;
		live(&p, ROUNDS, 1);
		lose_power(&p);
		start = power_returns(&p);
		p.cut_at = 0;
		runs++;
		warm += start == STORE_START_REBUILT;
		if (with_journal)
			assert_int_equal(start, STORE_START_REBUILT);
		else
			assert_int_equal(start, STORE_START_UNCLEAN);
		(void)cleaner_step(h->store);
		(void)check(&p);
		live(&p, 1, 2); /* commands during the rebuild */
		rebuild_all(&p);
		hits += check(&p);
		/* And again, after what the rebuild and those commands have left. */
		lose_power(&p);
		start = power_returns(&p);
		if (with_journal)
			assert_int_equal(start, STORE_START_REBUILT);
		rebuild_all(&p);
		(void)check(&p);
		power_fini(&p);
	}
	print_message("%llu cuts of %llu events, %llu warm starts, %llu hits\n", (unsigned long long)runs,
		      (unsigned long long)events, (unsigned long long)warm, (unsigned long long)hits);
	/* What is durable at a cut depends on where it is; a quarter of the keys and more are found on average. */
	assert_true(!with_journal || hits > runs * KEYS / 4);
}

/* POWER_STEP=1 tries each event; without it every few. */
static uint64_t step_of(uint64_t usual)
{
	const char *given = getenv("POWER_STEP");

	return given ? strtoull(given, NULL, 10) : usual;
}

static void each_cut_with_the_journal_leaves_nothing_stale(void **state)
{
	if (harness_is_frugal()) /* which refuses a journal */
		skip();
	enumerate(*state, true, step_of(9));
}

static void each_cut_without_it_leaves_nothing(void **state)
{
	enumerate(*state, false, step_of(11));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(after_a_cut_at_the_end_flash_is_warm, setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_journal_it_is_cold, setup, teardown),
		cmocka_unit_test_setup_teardown(each_cut_with_the_journal_leaves_nothing_stale, setup, teardown),
		cmocka_unit_test_setup_teardown(each_cut_without_it_leaves_nothing, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
