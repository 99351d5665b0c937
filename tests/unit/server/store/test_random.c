/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random commands against the store and a dictionary, with so few tags, functions and segments that
 * every collision happens, and objects on their way to flash and back all the time. A command may
 * find less than the dictionary (a cache forgets), never anything else. STORE_SEED and
 * STORE_OPERATIONS in the environment replace seed and length.
 */
#include "asking.h"
#include "values.h"

#include "segments/segments_internal.h"

#define KEYS 900
#define FLIGHTS 12

/* Nearly all of it is one thread's work, which TSan makes ten times slower. */
#ifdef __SANITIZE_THREAD__
#define FEWER 10
#else
#define FEWER 1
#endif

struct entry {
	bool present;
	bool busy; /* a command on it is under way */
	uint64_t value_hash, cas, number;
	uint32_t length, flags, expiry; /* 0: never */
	bool is_number;
	bool stale, win_sent;
};

struct trial {
	struct harness *h;
	struct rng rng;
	struct entry entry[KEYS];
	struct flight flight[FLIGHTS];
	unsigned key[FLIGHTS]; /* whose flight it is */
	bool used[FLIGHTS];
	struct entry next[FLIGHTS]; /* what the key holds when it succeeds */
	bool read_errors; /* a get that misses may hit later */
	bool rules_change; /* of admission, and the threshold of worth */
	bool no_memory; /* allocations fail now and then: so may any command that makes an object or reads one */
	uint64_t hits, flash_hits, misses, lost, refused;
};

static char value[VALUE_MAX];

static uint32_t now(struct trial *t)
{
	return store_now_seconds(t->h->store, clk_now_us(&t->h->clk));
}

static bool alive(struct trial *t, const struct entry *e)
{
	return e->present && (e->expiry == 0 || e->expiry > now(t));
}

/* ---- what an answer says --------------------------------------------------------------------- */

static void forget(struct trial *t, struct entry *e)
{
	t->lost += e->present;
	e->present = false;
}

static void check_value(struct trial *t, const struct entry *e, const struct reply *reply)
{
	assert_true(alive(t, e));
	if (reply->value_hash != e->value_hash || reply->cas != e->cas)
		print_message("expected %s %llu of %u bytes with id %llu, met %.40s of %u bytes with id %llu, %s\n",
			      e->is_number ? "number" : "text", (unsigned long long)e->number, e->length,
			      (unsigned long long)e->cas, reply->value, reply->length, (unsigned long long)reply->cas,
			      reply->from_flash ? "from flash" : "from DRAM");
	assert_int_equal(reply->length, e->length);
	assert_int_equal(reply->value_hash, e->value_hash);
	assert_int_equal(reply->flags, e->flags);
	assert_int_equal(reply->cas, e->cas);
	t->hits++;
	t->flash_hits += reply->from_flash;
}

static void take_over(struct entry *e, const struct entry *next, const struct reply *reply)
{
	bool busy = e->busy;

	*e = *next;
	e->busy = busy;
	e->present = true;
	e->cas = reply->cas;
}

/* A GET made the object: empty, with its maker's win. */
static void settle_made(struct trial *t, struct entry *e, const struct entry *next, const struct reply *reply)
{
	struct entry made = { .value_hash = hash64("", 0, 0), .expiry = next->expiry, .win_sent = true };

	assert_int_equal(reply->length, 0);
	assert_true(reply->cas > e->cas);
	assert_false(reply->found.stale || reply->found.win_sent);
	t->lost += alive(t, e);
	take_over(e, &made, reply);
}

/* As if recache_seconds were for ever: whatever ends at all may be won. */
static void settle_extended(struct trial *t, const struct flight *f, struct entry *e, const struct entry *next)
{
	const struct store_options *options = &f->request.options;
	const struct store_found *found = &f->reply.found;

	if (f->request.op == STORE_DELETE) {
		assert_true(alive(t, e) && f->reply.cas > e->cas);
		e->cas = f->reply.cas;
		e->stale = true;
		e->win_sent = false;
	} else if (options->vivify && found->won && !found->stale && !options->recache) {
		settle_made(t, e, next, &f->reply);
	} else {
		check_value(t, e, &f->reply);
		if (options->touch)
			e->expiry = next->expiry;
		assert_int_equal(found->stale, e->stale);
		assert_int_equal(found->win_sent, e->win_sent);
		/* A touch without memory for the mark is answered all the same. */
		if (found->won || !t->no_memory || !options->touch)
			assert_int_equal(found->won, !e->win_sent && (e->stale || (options->recache && e->expiry)));
		e->win_sent = e->win_sent || found->won;
	}
}

static void settle(struct trial *t, unsigned n)
{
	struct flight *f = &t->flight[n];
	struct entry *e = &t->entry[t->key[n]], *next = &t->next[n];
	bool needs = f->request.op != STORE_SET && f->request.op != STORE_ADD;

	t->used[n] = false;
	e->busy = false;
	if (f->request.has_options && (f->reply.result == STORE_HIT || f->reply.result == STORE_DELETED)) {
		settle_extended(t, f, e, next);
		return;
	}
	switch (f->reply.result) {
	case STORE_HIT:
		if (f->request.op == STORE_GET || f->request.op == STORE_GAT)
			check_value(t, e, &f->reply);
		if (f->request.op == STORE_GAT)
			e->expiry = next->expiry;
		if (f->request.op == STORE_INCR || f->request.op == STORE_DECR) {
			assert_true(alive(t, e) && e->is_number);
			assert_int_equal(f->reply.number, next->number);
			assert_true(f->reply.cas > e->cas);
			take_over(e, next, &f->reply);
		}
		break;
	case STORE_STORED:
		assert_true(!needs || alive(t, e));
		assert_true(!e->present || f->reply.cas > e->cas);
		take_over(e, next, &f->reply);
		break;
	case STORE_MISS:
		t->misses++;
		if (f->request.op != STORE_GET || !t->read_errors)
			forget(t, e);
		break;
	case STORE_NOT_STORED: /* add: it is there; the others: it is not */
		assert_true(f->request.op != STORE_ADD || alive(t, e));
		if (f->request.op != STORE_ADD)
			forget(t, e);
		break;
	case STORE_EXISTS:
		assert_true(alive(t, e) && f->request.cas != e->cas);
		break;
	case STORE_DELETED:
		assert_true(alive(t, e));
		e->present = false;
		break;
	case STORE_TOUCHED:
		assert_true(alive(t, e));
		e->expiry = next->expiry;
		break;
	case STORE_NOT_NUMBER:
		assert_true(alive(t, e) && !e->is_number);
		break;
	case STORE_NO_MEMORY: /* nothing has changed */
		assert_true(t->no_memory);
		t->refused++;
		break;
	case STORE_TOO_LARGE:
		assert_true(f->request.op == STORE_APPEND || f->request.op == STORE_PREPEND);
		break;
	default:
		fail_msg("unexpected result %d of op %d", (int)f->reply.result, (int)f->request.op);
	}
}

/* ---- starting one ---------------------------------------------------------------------------- */

static int64_t random_exptime(struct trial *t)
{
	return rng_below(&t->rng, 4) ? 0 : 1 + (int64_t)rng_below(&t->rng, 400);
}

static bool start_storing(struct trial *t, unsigned n, enum store_op op, const char *name)
{
	const struct entry *e = &t->entry[t->key[n]];
	struct entry *next = &t->next[n];
	int64_t exptime = random_exptime(t);
	uint64_t cas = op == STORE_CAS ? e->cas + (rng_below(&t->rng, 3) == 0) : 0;

	*next = (struct entry){ .flags = rng_below(&t->rng, 2) ? (uint32_t)rng_next(&t->rng) : 0,
				.expiry = store_expiry(t->h->store, exptime) };
	next->is_number = rng_below(&t->rng, 4) == 0;
	if (next->is_number) {
		next->number = rng_below(&t->rng, 2000);
		next->length = (uint32_t)snprintf(value, sizeof(value), "%llu", (unsigned long long)next->number);
	} else {
		next->length = make_value(&t->rng, t->key[n], value);
	}
	next->value_hash = hash64(value, next->length, 0);
	return start_with(t->h, n % WORKERS, &t->flight[n], .op = op, .key = name, .value = value,
			  .length = next->length, .flags = next->flags, .exptime = exptime, .cas = cas);
}

/* Appends to numbers only: their bytes can be made again. */
static bool start_joining(struct trial *t, unsigned n, const char *name)
{
	const struct entry *e = &t->entry[t->key[n]];
	struct entry *next = &t->next[n];

	if (!e->is_number || e->number == 0 || e->length > 15 || digits_of(e->number) != e->length)
		return start(t->h, n % WORKERS, &t->flight[n], STORE_GET, name);
	*next = *e;
	next->number = e->number * 10 + 7;
	next->length = e->length + 1;
	next->stale = next->win_sent = false;
	next->value_hash = hash_number(next->number, next->length);
	return start_with(t->h, n % WORKERS, &t->flight[n], .op = STORE_APPEND, .key = name, .value = "7", .length = 1);
}

static bool start_counting(struct trial *t, unsigned n, enum store_op op, const char *name)
{
	const struct entry *e = &t->entry[t->key[n]];
	struct entry *next = &t->next[n];
	uint64_t delta = rng_below(&t->rng, 300);

	*next = *e;
	if (!e->is_number)
		return start_delta(t->h, n % WORKERS, &t->flight[n], op, name, delta);
	next->number = op == STORE_INCR ? e->number + delta : e->number > delta ? e->number - delta : 0;
	if (digits_of(next->number) > next->length) {
		next->length = digits_of(next->number);
		next->stale = next->win_sent = false;
	}
	next->value_hash = hash_number(next->number, next->length);
	return start_delta(t->h, n % WORKERS, &t->flight[n], op, name, delta);
}

static bool start_extended(struct trial *t, unsigned n, const char *name)
{
	uint64_t dice = rng_below(&t->rng, 10);
	struct asked asked = { .op = STORE_GET, .exptime = random_exptime(t) };

	t->next[n].expiry = store_expiry(t->h->store, asked.exptime);
	if (dice < 2) {
		asked.op = STORE_DELETE;
		asked.options.invalidate = true;
	} else if (dice < 5) {
		asked.options.vivify = true;
		asked.options.touch = dice == 4;
		asked.options.vivify_expiry = t->next[n].expiry;
	} else {
		asked.options.recache = dice % 2;
		asked.options.recache_seconds = UINT32_MAX;
		asked.options.touch = dice > 7;
	}
	return start_asking(t->h, n % WORKERS, &t->flight[n], name, asked);
}

static bool start_random(struct trial *t, unsigned n, const char *name)
{
	uint64_t dice = rng_below(&t->rng, 100);
	struct harness *h = t->h;
	int64_t exptime;

	if (dice < 8)
		return start_extended(t, n, name);
	if (dice < 45)
		return start(h, n % WORKERS, &t->flight[n], STORE_GET, name);
	if (dice < 65)
		return start_storing(t, n, STORE_SET, name);
	if (dice < 80) {
		static const enum store_op ops[] = { STORE_ADD, STORE_REPLACE, STORE_CAS };

		return start_storing(t, n, ops[dice % 3], name);
	}
	if (dice < 84)
		return start(h, n % WORKERS, &t->flight[n], STORE_DELETE, name);
	if (dice < 88)
		return start_joining(t, n, name);
	if (dice < 94)
		return start_counting(t, n, dice % 2 ? STORE_INCR : STORE_DECR, name);
	exptime = random_exptime(t);
	t->next[n].expiry = store_expiry(h->store, exptime);
	return start_expiring(h, n % WORKERS, &t->flight[n], dice % 2 ? STORE_TOUCH : STORE_GAT, name, exptime);
}

/* ---- the trial ------------------------------------------------------------------------------- */

static void collect_done(struct trial *t)
{
	for (unsigned n = 0; n < FLIGHTS; n++)
		if (t->used[n] && t->flight[n].done)
			settle(t, n);
}

static void land_all(struct trial *t)
{
	for (unsigned i = 0; i < WORKERS; i++)
		drain(t->h, i);
	collect_done(t);
}

static void one_command(struct trial *t)
{
	unsigned n = (unsigned)rng_below(&t->rng, FLIGHTS), key;
	char name[24];

	if (t->used[n]) {
		finish(t->h, &t->flight[n]);
		collect_done(t);
	}
	do /* some keys are asked for much more often */
		key = (unsigned)(rng_below(&t->rng, KEYS) * rng_below(&t->rng, KEYS) / KEYS);
	while (t->entry[key].busy);
	snprintf(name, sizeof(name), "key:%u", key);
	t->key[n] = key;
	t->used[n] = true;
	t->entry[key].busy = true;
	if (start_random(t, n, name))
		settle(t, n);
}

static struct trial *in_hook;

static void commands_while_planned(struct harness *h)
{
	(void)h;
	for (int i = 0; i < 30; i++)
		one_command(in_hook);
	land_all(in_hook); /* the place may have to be reclaimed yet */
}

/* Will the next segment take the place of another one, or that one's slots? With the frugal index also its memory; and a
   segment of the chain may follow. */
static bool may_reclaim(struct store *store)
{
	struct fidx_status status;
	enum seg_state state;
	uint32_t segment;

	fidx_get_status(store->index, &status);
	return store->frugal || seg_next(store->segments, &segment, &state) != FS_OK || state != SEG_FREE ||
	       status.used + store->segment_bytes / (2 * SEG_RECORD_HEADER) > status.slots * 9 / 10;
}

/* Segments of bins take small objects alone, of which there are too few. These are never asked for. */
static unsigned prepare_bins(struct trial *t)
{
	const struct store *store = t->h->store;
	char key[16];

	if (!store->frugal || rng_below(&t->rng, 4) == 0)
		return (1u << GROUPS) - 1;
	for (unsigned n = 0;
	     n < 4000 && atomic_load(&store->candidate_bytes[GROUP_SMALL]) < (int64_t)store->segment_bytes; n++) {
		snprintf(key, sizeof(key), "f-%u", (unsigned)rng_below(&t->rng, 10000));
		(void)run_full(t->h, .op = STORE_SET, .key = key, .value = "filler", .length = 6);
	}
	return 1u << GROUP_SMALL;
}

/* A reclaim waits for the reads that it meets: none may be this thread's. */
static void one_segment(struct trial *t)
{
	unsigned groups = prepare_bins(t);

	if (may_reclaim(t->h->store))
		land_all(t);
	in_hook = t;
	t->h->hook = commands_while_planned;
	t->h->phase = rng_below(&t->rng, 2) ? PHASE_GATHERED : PHASE_WRITTEN;
	t->h->seen_gathered = false;
	write_segment(t->h->store, groups);
	t->h->phase = PHASE_NONE;
	t->h->hook = NULL;
}

/* Segments go out of turn when the flash moves to a smaller device; kills are listed without a segment when they are many. */
static void keep_bins_busy(struct trial *t)
{
	struct store *store = t->h->store;
	uint32_t segment = (uint32_t)rng_below(&t->rng, store_segment_count(store));

	if (!store->frugal)
		return;
	land_all(t);
	if (rng_below(&t->rng, 2))
		assert_true(frugal_take_kills(store->frugal) == FS_OK || t->no_memory);
	else if (seg_sequence(store->segments, segment) != 0)
		assert_true(reclaim_segment(store, segment));
}

static void housekeeping(struct trial *t)
{
	struct harness *h = t->h;
	uint64_t dice = rng_below(&t->rng, 1000), visited;

	if (dice < 15)
		one_segment(t);
	else if (dice < 18)
		evict_dram(&h->store->cleaner->context, 20000, 200, EVICT_AT_ZERO, false, &visited);
	else if (dice < 25)
		fidx_hand(h->store->index, 300, 8000, &visited);
	else if (dice < 30)
		seconds_pass(h, rng_below(&t->rng, 3) ? 0 : 1 + rng_below(&t->rng, 20));
	else if (dice == 30 && rng_below(&t->rng, 20) == 0) {
		land_all(t);
		store_flush_all(h->store, 0);
		for (unsigned i = 0; i < KEYS; i++)
			t->entry[i].present = false;
	} else if (dice == 31) {
		land_all(t);
		store_clean_step(h->store);
	} else if (dice >= 50 && dice < 54) {
		keep_bins_busy(t);
	} else if (t->rules_change && dice < 45) {
		evict_dram(&h->store->cleaner->context, 20000, 200, EVICT_SPARE_CANDIDATES, false, &visited);
	} else if (t->rules_change && dice == 45) {
		clf_set_admission(h->store->classifier, (enum clf_admission)rng_below(&t->rng, CLF_ADMIT_LAST + 1));
		set_threshold(h, -15 + 20 * rng_real(&t->rng)); /* from nearly nothing refused to everything */
	}
}

/* Once the store is open: what the device does wrong, or the allocator. */
static void (*misbehave)(struct harness *h);
static bool lacks_memory;

/* Of those armed in the device in memory, if it is one. Which of its writes fail is the seed's and the timing's choice. */
static bool each_fault_has_fired(struct harness *h)
{
	for (unsigned fault = 0; h->ram && fault < RAM_FAULTS; fault++)
		if (h->ram->faults.state[fault].mode != FAULT_OFF &&
		    ram_fault_fired(h->ram, (enum ram_fault)fault) == 0)
			return false;
	return true;
}

static void run_trial(struct harness *h, bool read_errors, bool rules_change)
{
	static struct trial t;
	uint64_t seed = number_in_environment("STORE_SEED", 20261120 + read_errors);
	uint64_t operations = number_in_environment("STORE_OPERATIONS", (misbehave ? 40000 : 100000) / FEWER);

	print_message("seed %llu, %llu operations\n", (unsigned long long)seed, (unsigned long long)operations);
	memset(&t, 0, sizeof(t));
	t.h = h;
	t.read_errors = read_errors;
	t.rules_change = rules_change;
	rng_init(&t.rng, seed);
	h->config.read_timeout_ms = 3600 * 1000;
	h->config.reinsertion = seed % 2 ? STORE_REINSERT_READ : STORE_REINSERT_LIVE;
	h->config.max_item_bytes = 1 << 16;
	harness_open(h);
	if (misbehave)
		misbehave(h);
	t.no_memory = lacks_memory;
	for (uint64_t i = 0; i < operations || (!each_fault_has_fired(h) && i < 100 * operations); i++) {
		one_command(&t);
		housekeeping(&t);
	}
	land_all(&t);
	fault_disarm_all();
	print_message("%llu hits, %llu of them on flash, %llu misses, %llu objects lost, %llu segments written\n",
		      (unsigned long long)t.hits, (unsigned long long)t.flash_hits, (unsigned long long)t.misses,
		      (unsigned long long)t.lost, (unsigned long long)ctr_sum(CTR_segments_written));
	struct fidx_status status;
	fidx_get_status(h->store->index, &status);
	print_message("%llu of %llu slots used, %llu dropped\n", (unsigned long long)status.used,
		      (unsigned long long)status.slots, (unsigned long long)ctr_sum(CTR_index_drops));
	if (h->store->frugal) {
		struct frugal_status frugal;

		frugal_get_status(h->store->frugal, &frugal);
		print_message("%llu objects in bins of %u segments, %llu kills, %llu watermarks\n",
			      (unsigned long long)frugal.objects, frugal.segments,
			      (unsigned long long)ctr_sum(CTR_frugal_kills), (unsigned long long)frugal.watermarks);
	}
	assert_true(t.hits > operations / 20);
	assert_true(t.flash_hits > operations / 200);
	assert_int_equal(t.refused > 0, lacks_memory);
	for (uint32_t i = 0; i < h->store->stripe_count; i++)
		assert_int_equal(h->store->stripes[i].frozen, 0);
	assert_true(fidx_verify(h->store->index));
}

static void be_narrow(struct harness *h)
{
	h->config.tag_bits = 2;
	h->config.functions = 2;
	h->config.filter_bits = 0;
	h->config.flash_bytes = 4 * KIB(64) + KIB(64);
	h->config.flash_object_bytes = 60;
	h->config.placement = SEG_PLACE_SWEEP;
}

static void common_faults(void)
{
	fault_arm(FAULT_index_force_relocation, FAULT_EVERY, 3);
	fault_arm(FAULT_store_promote, FAULT_EVERY, 4);
	fault_arm(FAULT_store_revalidation_fails, FAULT_EVERY, 5);
	fault_arm(FAULT_device_read_again, FAULT_EVERY, 7);
}

static void may_miss_never_wrong(void **state)
{
	struct harness *h = *state;

	h->config.placement = SEG_PLACE_SWEEP;
	h->config.flash_object_bytes = 400;
	run_trial(h, false, false);
}

static void may_miss_never_wrong_with_two_tag_bits_two_functions_and_four_segments(void **state)
{
	struct harness *h = *state;

	be_narrow(h);
	common_faults();
	run_trial(h, false, false);
}

/* Whose oldest segments go before the flash is full, so that hardly a slot is dropped for want of room. */
static void may_miss_never_wrong_with_filters_and_an_index_too_small_for_the_flash(void **state)
{
	struct harness *h = *state;
	uint64_t drops = ctr_sum(CTR_index_drops), inserts = ctr_sum(CTR_index_inserts);

	be_narrow(h);
	h->config.filter_bits = 4;
	h->config.flash_object_bytes = 20000;
	common_faults();
	run_trial(h, false, false);
	drops = ctr_sum(CTR_index_drops) - drops;
	assert_true(drops <= (ctr_sum(CTR_index_inserts) - inserts) / 50);
}

static void may_miss_never_wrong_while_reads_and_walks_fail(void **state)
{
	struct harness *h = *state;

	be_narrow(h);
	common_faults();
	fault_arm(FAULT_device_read_corrupt, FAULT_PROBABILITY, 10);
	fault_arm(FAULT_reclaim_walk_fails, FAULT_EVERY, 200);
	run_trial(h, true, false);
}

static void may_miss_never_wrong_while_the_rule_of_admission_changes(void **state)
{
	struct harness *h = *state;

	be_narrow(h);
	common_faults();
	run_trial(h, false, true);
}

/* Errors are forgiven sooner than they take the device offline for good. */
static void be_a_bad_device(struct harness *h)
{
	static const char *const faults[] = { "read_eio=prob:3",   "read_flip=prob:3",  "read_short=prob:3",
					      "read_old=prob:3",   "write_eio=prob:2",  "write_flip=prob:2",
					      "write_lost=prob:2", "write_short=prob:2" };

	for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		assert_int_equal(ram_fault_arm_text(h->ram, faults[i]), FS_OK);
	h->store->segments->health.budget = 64;
}

static void may_miss_never_wrong_while_the_device_loses_tears_and_flips(void **state)
{
	struct harness *h = *state;

	be_narrow(h);
	h->config.flash_bytes = 16 * KIB(64) + KIB(64);
	common_faults();
	misbehave = be_a_bad_device;
	run_trial(h, true, false);
	misbehave = NULL;
	assert_true(each_fault_has_fired(h));
}

static void lack_memory(struct harness *h)
{
	(void)h;
	lacks_memory = true;
	fault_arm(FAULT_memory_alloc, FAULT_PROBABILITY, 10);
	fault_arm(FAULT_region_commit, FAULT_EVERY, 2);
}

static void may_miss_never_wrong_while_memory_is_out_now_and_then(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	be_narrow(h);
	common_faults();
	misbehave = lack_memory;
	run_trial(h, true, false);
	misbehave = NULL;
	lacks_memory = false;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(may_miss_never_wrong),
		TEST(may_miss_never_wrong_with_two_tag_bits_two_functions_and_four_segments),
		TEST(may_miss_never_wrong_with_filters_and_an_index_too_small_for_the_flash),
		TEST(may_miss_never_wrong_while_reads_and_walks_fail),
		TEST(may_miss_never_wrong_while_the_rule_of_admission_changes),
		cmocka_unit_test_setup_teardown(may_miss_never_wrong_while_the_device_loses_tears_and_flips,
						setup_in_memory, teardown),
		TEST(may_miss_never_wrong_while_memory_is_out_now_and_then),
	};

	cmocka_set_test_filter(getenv("STORE_TEST"));
	return cmocka_run_group_tests_name("store: random commands", tests, NULL, NULL);
}
