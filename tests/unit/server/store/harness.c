/* SPDX-License-Identifier: BSD-3-Clause */
#include "harness.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "classifier/classifier_internal.h"
#include "segments/fill.h"
#include "server/store/state/bins_search.h"
#include "server/store/state/losses.h"

#define START_US 5000000000ull
#define WAIT_MS 120000 /* a disk may stall for long; a hang ends here */
#define EVERY_GROUP ((1u << GROUPS) - 1)

/* ---- the clock, with the hook ---------------------------------------------------------------- */

static bool written(struct harness *h)
{
	uint64_t sequence = seg_sequence(h->store->segments, h->writing);

	return sequence != 0 && sequence != h->old_sequence;
}

static void consider_hook(struct harness *h)
{
	enum seg_state state;

	if (!h->hook || h->in_hook || atomic_load(&h->store->plan_bytes) == 0)
		return;
	h->in_hook = true;
	if (!h->seen_gathered) {
		h->seen_gathered = true;
		if (seg_next(h->store->segments, &h->writing, &state) != FS_OK)
			h->phase = PHASE_NONE; /* the device has just gone offline */
		else
			h->old_sequence = seg_sequence(h->store->segments, h->writing);
		if (h->phase == PHASE_GATHERED)
			h->hook(h);
	} else if (h->phase == PHASE_WRITTEN && written(h)) {
		h->phase = PHASE_NONE;
		h->hook(h);
	}
	h->in_hook = false;
}

static uint64_t harness_now(const struct clk *clk)
{
	struct harness *h = (struct harness *)((uintptr_t)clk - offsetof(struct harness, clk));

	if (h->store && h->phase != PHASE_NONE)
		consider_hook(h);
	return atomic_load_explicit(&clk->scripted_us, memory_order_acquire) * 1000;
}

void seconds_pass(struct harness *h, uint64_t seconds)
{
	clk_scripted_advance(&h->clk, seconds * 1000000);
	for (unsigned i = 0; i < WORKERS && h->worker[i]; i++)
		store_worker_turn(h->worker[i]);
}

/* ---- life ------------------------------------------------------------------------------------ */

#define CHAIN_PER_CENT 13u /* two of the 16 segments: the third one that is written begins a merge */

/* Returns the number that the environment has under this name; 0: it has none. */
static uint64_t of_environment(const char *name)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 0) : 0;
}

static bool index_is(const char *name)
{
	const char *index = getenv("STORE_INDEX");

	return index && strcmp(index, name) == 0;
}

bool harness_is_frugal(void)
{
	return index_is("frugal") || index_is("chain");
}

void harness_init(struct harness *h)
{
	static unsigned number;

	log_set_level(LOG_LEVEL_ERROR);
	memset(h, 0, sizeof(*h));
	clk_scripted_init(&h->clk, START_US);
	h->clk.now_ns = harness_now;
	store_config_init(&h->config);
	snprintf(h->path, sizeof(h->path), "%.30s/flashield-%d-%u", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
		 (int)getpid(), number++);
	unlink(h->path);
	h->config.clock = &h->clk;
	h->config.memory_bytes = MIB(8);
	h->config.flash_path = h->path;
	h->config.flash_bytes = MIB(1) + KIB(64);
	h->config.flash_object_bytes = 34;
	h->config.segment_bytes = KIB(64);
	h->config.workers = WORKERS;
	h->config.seed = 4711;
	h->config.admission = CLF_ADMIT_ALL;
	h->config.index = harness_is_frugal() ? STORE_INDEX_FRUGAL : STORE_INDEX_SLOTS;
	h->config.frugal_memory = index_is("chain") ? CHAIN_PER_CENT : 100;
	h->config.frugal_kill_bytes = of_environment("STORE_KILL_BYTES");
	if (of_environment("STORE_OBJECT_BYTES"))
		h->config.flash_object_bytes = (uint32_t)of_environment("STORE_OBJECT_BYTES");
	h->config.placement = SEG_PLACE_PAPER; /* places the longest first: move() counts on it */
	h->config.read_timeout_ms = 1000;
}

int harness_try_open(struct harness *h)
{
	struct store *store = NULL;
	int result = store_open(&store, &h->config, h->reason);

	if (result == FS_OK)
		h->store = store;
	return result;
}

void harness_workers(struct harness *h, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(store_worker_create(&h->worker[i], h->store), FS_OK);
}

void harness_use_ram(struct harness *h)
{
	h->ram = ram_device_create(h->config.flash_bytes, NULL);
	h->config.flash_device = &h->ram->dev;
}

void keep_no_reads(struct harness *h)
{
	for (unsigned i = 0; i < WORKERS && h->worker[i]; i++)
		reads_stop(&h->worker[i]->reads);
}

static bool never(void *context)
{
	(void)context;
	return false;
}

void harness_end_fill(struct harness *h)
{
	while (seg_fill_take(h->store->segments, losses_wall(h->store)) == FS_OK)
		;
	fill_look(h->store);
	assert_false(fill_is_on(h->store));
}

void harness_open(struct harness *h)
{
	int result;

	if (h->in_memory && h->config.flash_path)
		harness_use_ram(h);
	result = harness_try_open(h);
	if (result != FS_OK)
		fail_msg("%s: %s", fs_strerror(result), h->reason);
	while (h->store->segments && seg_allocate(h->store->segments, never, NULL))
		;
	harness_workers(h, WORKERS);
	if (!h->serves_nobody)
		store_serves(h->store);
}

void harness_close(struct harness *h)
{
	struct store *store = h->store;

	if (!store)
		return;
	for (unsigned i = 0; i < WORKERS && h->worker[i]; i++) {
		drain(h, i);
		assert_int_equal(store_worker_pending(h->worker[i]), 0);
		store_worker_destroy(h->worker[i]);
		h->worker[i] = NULL;
	}
	if (store->index)
		assert_true(fidx_verify(store->index));
	h->store = NULL;
	store_close(store);
}

void harness_fini(struct harness *h)
{
	/* A check has failed in the hook, and left the middle of a write. The close would abort, as gathered items are never
	   released, before cmocka has printed which check it was. */
	if (h->in_hook)
		h->store = NULL;
	harness_close(h);
	unlink(h->path);
	fault_disarm_all();
}

int setup(void **state)
{
	static struct harness h;

	harness_init(&h);
	*state = &h;
	return 0;
}

int setup_in_memory(void **state)
{
	int result = setup(state);

	((struct harness *)*state)->in_memory = true;
	return result;
}

int teardown(void **state)
{
	harness_fini(*state);
	return 0;
}

void assert_nothing_left(struct harness *h)
{
	for (unsigned i = 0; i < WORKERS && h->worker[i]; i++)
		context_settle(&h->worker[i]->context);
	context_settle(&h->store->cleaner->context);
	context_settle(&h->store->keeper->context);
	assert_int_equal(store_dram_items(h->store), 0);
	assert_int_equal(atomic_load(&h->store->item_bytes), 0);
	assert_int_equal(atomic_load(&h->store->plan_bytes), 0);
	assert_int_equal(atomic_load(&h->store->candidate_count), 0);
	assert_int_equal(candidate_total(h->store), 0);
}

/* ---- commands -------------------------------------------------------------------------------- */

static void collect(struct harness *h, struct flight *f)
{
	struct store_request *request = &f->request;
	struct reply *reply = &f->reply;
	uint32_t shown = request->value.length < REPLY_BYTES - 1 ? request->value.length : REPLY_BYTES - 1;

	f->done = true;
	reply->result = request->result;
	reply->number = request->number;
	reply->found = request->found;
	reply->cas = request->cas;
	if (!request->value.data)
		return;
	reply->from_flash = request->value.from_flash;
	reply->length = request->value.length;
	reply->flags = request->value.client_flags;
	reply->cas = request->value.cas;
	reply->value_hash = hash64(request->value.data, request->value.length, 0);
	memcpy(reply->value, request->value.data, shown);
	reply->value[shown] = '\0';
	store_value_release(h->worker[f->worker], &request->value);
}

static void on_done(struct store_request *request)
{
	collect(request->owner, (struct flight *)((char *)request - offsetof(struct flight, request)));
}

void flight_prepare(struct harness *h, unsigned worker, struct flight *f, enum store_op op, const char *key)
{
	memset(f, 0, sizeof(*f));
	snprintf(f->key, sizeof(f->key), "%s", key);
	f->worker = worker;
	f->request.op = op;
	f->request.key = f->key;
	f->request.key_length = (uint8_t)strlen(f->key);
	f->request.hash = store_hash(h->store, f->key, f->request.key_length);
	f->request.done = on_done;
	f->request.owner = h;
}

bool flight_execute(struct harness *h, struct flight *f)
{
	store_worker_turn(h->worker[f->worker]);
	if (!store_execute(h->worker[f->worker], &f->request))
		return false;
	collect(h, f);
	return true;
}

bool start(struct harness *h, unsigned worker, struct flight *f, enum store_op op, const char *key)
{
	flight_prepare(h, worker, f, op, key);
	return flight_execute(h, f);
}

bool start_command(struct harness *h, unsigned worker, struct flight *f, const struct command *command)
{
	flight_prepare(h, worker, f, command->op, command->key);
	f->request.cas = command->cas;
	f->request.item =
		store_item_create(h->worker[worker], f->key, f->request.key_length, command->flags,
				  store_expiry(h->store, command->exptime), command->length, &f->reply.result);
	if (!f->request.item) {
		f->done = true;
		return true;
	}
	memcpy(store_item_value(f->request.item), command->value, command->length);
	return flight_execute(h, f);
}

bool start_delta(struct harness *h, unsigned worker, struct flight *f, enum store_op op, const char *key,
		 uint64_t delta)
{
	flight_prepare(h, worker, f, op, key);
	f->request.delta = delta;
	return flight_execute(h, f);
}

bool start_expiring(struct harness *h, unsigned worker, struct flight *f, enum store_op op, const char *key,
		    int64_t exptime)
{
	flight_prepare(h, worker, f, op, key);
	f->request.expiry = store_expiry(h->store, exptime);
	return flight_execute(h, f);
}

bool wait_for_store(struct store_worker *worker)
{
	struct store_worker_fds fds = store_worker_fds(worker);
	struct pollfd ready[2] = { { .fd = fds.completions, .events = POLLIN }, { .fd = fds.timer, .events = POLLIN } };
	eventfd_t events;

	if (store_worker_has_work(worker))
		return true;
	if (poll(ready, 2, WAIT_MS) < 1)
		return false;
	return !(ready[0].revents & POLLIN) || eventfd_read(fds.completions, &events) == 0;
}

static void wait_and_turn(struct harness *h, unsigned worker)
{
	struct store_worker *w = h->worker[worker];

	store_worker_flush(w);
	assert_true(wait_for_store(w));
	store_worker_poll(w);
}

void turn(struct harness *h, unsigned worker)
{
	store_worker_turn(h->worker[worker]);
	store_worker_poll(h->worker[worker]);
	store_worker_flush(h->worker[worker]);
}

void drain(struct harness *h, unsigned worker)
{
	while (store_worker_pending(h->worker[worker]) > 0) {
		store_worker_turn(h->worker[worker]);
		wait_and_turn(h, worker);
	}
}

struct reply finish(struct harness *h, struct flight *f)
{
	while (!f->done) {
		store_worker_turn(h->worker[f->worker]);
		wait_and_turn(h, f->worker);
	}
	return f->reply;
}

struct reply run(struct harness *h, enum store_op op, const char *key)
{
	struct flight f;

	start(h, 0, &f, op, key);
	return finish(h, &f);
}

struct reply run_command(struct harness *h, const struct command *command)
{
	struct flight f;

	start_command(h, 0, &f, command);
	return finish(h, &f);
}

struct reply run_with(struct harness *h, enum store_op op, const char *key, const char *value)
{
	return run_full(h, .op = op, .key = key, .value = value, .length = (uint32_t)strlen(value));
}

struct reply run_number(struct harness *h, enum store_op op, const char *key, uint64_t delta)
{
	struct flight f;

	start_delta(h, 0, &f, op, key, delta);
	return finish(h, &f);
}

struct reply run_expiry(struct harness *h, enum store_op op, const char *key, int64_t exptime)
{
	struct flight f;

	start_expiring(h, 0, &f, op, key, exptime);
	return finish(h, &f);
}

struct reply get(struct harness *h, const char *key)
{
	return run(h, STORE_GET, key);
}

struct reply set(struct harness *h, const char *key, const char *value)
{
	return run_with(h, STORE_SET, key, value);
}

void assert_value_at(struct harness *h, const char *key, const char *text, const char *file, int line)
{
	struct reply reply = get(h, key);

	_assert_int_equal(reply.result, STORE_HIT, file, line);
	_assert_string_equal(reply.value, text, file, line);
}

/* ---- where an object lies -------------------------------------------------------------------- */

/* What DRAM says of the key, and its item's state: other threads may be at work. */
static bool in_dram(struct harness *h, const char *key, unsigned *item_state)
{
	size_t length = strlen(key);
	uint64_t hash = store_hash(h->store, key, length);
	struct stripe *stripe = store_stripe(h->store, hash);
	struct item *item;

	lock_acquire(&stripe->lock);
	item = stripe_find(stripe, hash, key, length);
	if (item)
		*item_state = item->state;
	lock_release(&stripe->lock);
	return item != NULL;
}

static void key_of(struct harness *h, const char *key, struct fidx_key *out)
{
	fidx_key_of(h->store->index, store_hash(h->store, key, strlen(key)), out);
}

/* Searches the frugal index, as far as its columns. False: it leads nowhere, or there is none. */
static bool bins_of(struct harness *h, const char *key, struct frugal_found *out)
{
	uint64_t hash = store_hash(h->store, key, strlen(key));
	struct stripe *stripe = store_stripe(h->store, hash);
	struct bins_searcher searcher;
	const struct seg_record *chain;
	enum frugal_answer answer;
	struct frugal_found place;
	struct frugal_key k;

	if (!h->store->frugal)
		return false;
	bins_searcher_init(&searcher, h->store, true);
	frugal_key_of(h->store->frugal, hash, &k);
	lock_acquire(&stripe->lock);
	answer = frugal_find(h->store->frugal, &k, UINT64_MAX, out);
	lock_release(&stripe->lock);
	if (answer == FRUGAL_CHAIN) {
		place = *out;
		answer = FRUGAL_NOTHING;
		if (bins_read_chain_record(&searcher, &place, k.partition, &chain)) {
			lock_acquire(&stripe->lock);
			answer = frugal_find_in(h->store->frugal, &k, UINT64_MAX, &place, chain->value,
						chain->value_length, out);
			lock_release(&stripe->lock);
		}
	}
	bins_searcher_fini(&searcher);
	return answer == FRUGAL_MATCH;
}

unsigned slots_of(struct harness *h, const char *key)
{
	struct frugal_found found;
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_extent extent;
	struct fidx_key k;

	key_of(h, key, &k);
	return fidx_lookup(h->store->index, &k, match) + (fidx_extent_find(h->store->index, &k, &extent) ? 1 : 0) +
	       (bins_of(h, key, &found) ? 1 : 0);
}

bool slot_of(struct harness *h, const char *key, struct fidx_match *match)
{
	struct fidx_match all[FIDX_MAX_MATCHES];
	struct fidx_key k;

	key_of(h, key, &k);
	if (fidx_lookup(h->store->index, &k, all) == 0)
		return false;
	*match = all[0];
	return true;
}

uint32_t segment_of(struct harness *h, const char *key)
{
	struct fidx_extent extent;
	struct frugal_found found;
	struct fidx_match match;
	struct fidx_key k;

	if (bins_of(h, key, &found))
		return found.segment;
	key_of(h, key, &k);
	if (fidx_extent_find(h->store->index, &k, &extent))
		return extent.segment;
	assert_true(slot_of(h, key, &match));
	return match.segment;
}

enum where where(struct harness *h, const char *key)
{
	unsigned item_state;

	if (in_dram(h, key, &item_state))
		return item_state & ITEM_PLANNED ? PLANNED : item_state & ITEM_CLEAN ? CLEAN_COPY : DRAM;
	return h->store->index && slots_of(h, key) ? FLASH : NOWHERE;
}

/* ---- movement -------------------------------------------------------------------------------- */

/*
 * Fillers are as small as a record can be with names that differ (two bytes above 127, used again
 * after 16,000): where all are longer than they, none waits for a place behind them.
 */
static void fill_small(struct harness *h, uint64_t objects)
{
	char key[3] = "";

	while (objects-- > 0) {
		uint32_t n = h->fillers++ % (127 * 127);

		key[0] = (char)(0x80 + n % 127);
		key[1] = (char)(0x80 + n / 127);
		assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = "").result, STORE_STORED);
	}
}

/* With a frugal index, small objects alone where there are no others, so that they lie in bins. */
static unsigned groups_to_write(const struct harness *h)
{
	int64_t small = atomic_load(&h->store->candidate_bytes[GROUP_SMALL]);

	return h->store->frugal && candidate_total(h->store) == (uint64_t)(small > 0 ? small : 0) ? 1u << GROUP_SMALL
												  : EVERY_GROUP;
}

/* Up to two segments of candidates, so that all that qualify are gathered, in whatever stripe they lie. */
bool write_one(struct harness *h)
{
	uint64_t candidates = candidate_total(h->store), segment = h->store->segment_bytes;

	if (candidates < 2 * segment)
		fill_small(h, (2 * segment - candidates) / seg_record_length(2, 0));
	if (write_segment(h->store, groups_to_write(h)))
		return true;
	fill_small(h, 2 * segment / seg_record_length(2, 0)); /* some candidates were dead */
	return write_segment(h->store, groups_to_write(h));
}

/* Of equal candidates for a bin those that are gathered first have room. */
static void gather_first(struct harness *h, const char *key)
{
	struct store *store = h->store;

	if (store->frugal)
		store->cleaner->gather_stripe =
			(uint32_t)(store_stripe(store, store_hash(store, key, strlen(key))) - store->stripes);
}

void move(struct harness *h, const char *key)
{
	for (int i = 0; i < 200; i++) {
		enum where at = where(h, key);

		if (at == FLASH)
			return;
		assert_int_equal(at, DRAM);
		gather_first(h, key);
		assert_true(write_one(h));
	}
	unsigned item_state = 0;
	in_dram(h, key, &item_state);
	fail_msg("%s doesn't go to flash: item state %#x, %llu bytes of candidates", key, item_state,
		 (unsigned long long)candidate_total(h->store));
}

void set_on_flash(struct harness *h, const char *key, const char *value)
{
	assert_int_equal(set(h, key, value).result, STORE_STORED);
	move(h, key);
}

void while_planned(struct harness *h, const char *key, enum phase phase, void (*hook)(struct harness *h))
{
	assert_int_equal(where(h, key), DRAM);
	h->hook = hook;
	h->phase = phase;
	h->seen_gathered = false;
	gather_first(h, key);
	assert_true(write_one(h));
	assert_true(h->phase == PHASE_NONE || phase == PHASE_GATHERED);
	h->phase = PHASE_NONE;
	h->hook = NULL;
}

void make_clean_copy(struct harness *h, const char *key)
{
	assert_int_equal(where(h, key), FLASH);
	fault_arm(FAULT_store_promote, FAULT_ALWAYS, 0);
	assert_true(get(h, key).from_flash);
	fault_arm(FAULT_store_promote, FAULT_OFF, 0);
	assert_int_equal(where(h, key), CLEAN_COPY);
}

void set_threshold(struct harness *h, double worth)
{
	atomic_store(&h->store->classifier->offers.threshold, (float)worth);
}

struct item *item_in_dram(struct harness *h, const char *key)
{
	uint64_t hash = store_hash(h->store, key, strlen(key));

	return stripe_find(store_stripe(h->store, hash), hash, key, strlen(key));
}

double worth_of(struct harness *h, const char *key)
{
	uint64_t now_ms = clk_now_ms(&h->clk);
	const struct item *item = item_in_dram(h, key);

	assert_non_null(item);
	const struct clf_features features = item_features(item);
	const struct clf_object object =
		item_as_clf_object(h->store, item, &features, store_hash(h->store, key, strlen(key)), now_ms);
	return (double)clf_worth(h->store->classifier, &object, now_ms);
}

void reclaim_of(struct harness *h, uint32_t segment)
{
	uint64_t sequence = seg_sequence(h->store->segments, segment);

	for (int i = 0; i < 1000 && seg_sequence(h->store->segments, segment) == sequence; i++)
		assert_true(write_one(h));
	assert_true(seg_sequence(h->store->segments, segment) != sequence);
}
