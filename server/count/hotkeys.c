/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/count/hotkeys.h"

#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/rng.h"
#include "server/count/key_hash.h"
#include "server/store/store.h"

#define PANE_MS 10000u
#define TENS 6u /* panes of the last minute */
#define MINUTES 10u
#define LISTED 128u /* keys that a list keeps */
#define OFF_GAP 4096 /* requests after which a thread asks again whether anything is counted */
#define OFF_BYTES (1ll << 20)
#define MEAN_WEIGHT 64 /* samples that the mean of a request's bytes follows */
#define STRIDE_LEAST 512u

/*
 * A thread's summaries. Who uses one takes its pointer, leaves NULL, and puts it, or an empty one, back. A thread that finds
 * NULL drops its sample: collect() is exchanging the summary just then. Other fields are the thread's own.
 */
struct sampler {
	struct heavy *_Atomic heavy[HEAVY_MEASURES];
	struct sampler *next; /* constant once it is linked */
	struct rng rng;
	double mean_bytes; /* of a request */
	uint64_t stride; /* bytes between two samples, on average */
	int32_t until_reads; /* requests that waited for flash, until the next is sampled */
};

/* The lists of a measure, the newest first; those that aren't there yet are NULL. */
struct history {
	struct heavy *present, *spare;
	struct heavy_list *tens[TENS], *minutes[MINUTES];
};

static struct {
	atomic_int shown;
	struct sampler *_Atomic samplers;
	unsigned life; /* counts calls of hotkeys_init: threads outlive what it makes */
	struct lock lock; /* covers all fields below */
	struct history history[HEAVY_MEASURES];
	uint64_t pane_began_ms;
	int64_t pane_since; /* the same in wall seconds */
	unsigned tens; /* panes that ended since the last minute did */
} hot = { .lock = LOCK_INITIALIZER(LOCK_STATE) };

static _Thread_local struct {
	unsigned life; /* hot.life when the other field was set */
	struct sampler *sampler;
} own;

/* ---- life ------------------------------------------------------------------------------------- */

enum hotkeys_shown hotkeys_allowed(enum hotkeys_shown asked, bool may_dump)
{
	return asked == HOTKEYS_KEYS && !may_dump ? HOTKEYS_HASHES : asked;
}

void hotkeys_init(enum hotkeys_shown shown, uint64_t now_ms)
{
	key_hash_init();
	atomic_store(&hot.shown, shown);
	atomic_store(&hot.samplers, NULL);
	hot.life++;
	for (enum heavy_measure m = 0; m < HEAVY_MEASURES; m++)
		hot.history[m] =
			(struct history){ .present = heavy_create(m), .spare = heavy_create(m), .tens = { NULL } };
	hot.pane_began_ms = now_ms;
	hot.pane_since = clk_wall_seconds();
	hot.tens = 0;
}

static void forget_lists(struct history *history)
{
	for (unsigned i = 0; i < TENS; i++)
		heavy_list_free(history->tens[i]);
	for (unsigned i = 0; i < MINUTES; i++)
		heavy_list_free(history->minutes[i]);
	memset(history->tens, 0, sizeof(history->tens));
	memset(history->minutes, 0, sizeof(history->minutes));
}

void hotkeys_fini(void)
{
	struct sampler *sampler = atomic_load(&hot.samplers), *next;

	for (; sampler; sampler = next) {
		next = sampler->next;
		for (enum heavy_measure m = 0; m < HEAVY_MEASURES; m++)
			heavy_destroy(atomic_load(&sampler->heavy[m]));
		mem_free(sampler);
	}
	atomic_store(&hot.samplers, NULL);
	for (enum heavy_measure m = 0; m < HEAVY_MEASURES; m++) {
		forget_lists(&hot.history[m]);
		heavy_destroy(hot.history[m].present);
		heavy_destroy(hot.history[m].spare);
		hot.history[m] = (struct history){ .present = NULL };
	}
}

enum hotkeys_shown hotkeys_are_shown(void)
{
	return (enum hotkeys_shown)atomic_load_explicit(&hot.shown, memory_order_relaxed);
}

/* ---- sampling --------------------------------------------------------------------------------- */

static struct sampler *__attribute__((cold, noinline)) begin_life(void)
{
	struct sampler *sampler = mem_must_zalloc(sizeof(*sampler));
	uint64_t seed;

	for (enum heavy_measure m = 0; m < HEAVY_MEASURES; m++)
		atomic_init(&sampler->heavy[m], heavy_create(m));
	sampler->stride = STRIDE_LEAST;
	rng_secret(&seed, sizeof(seed));
	rng_init(&sampler->rng, seed);
	sampler->next = atomic_load(&hot.samplers);
	while (!atomic_compare_exchange_weak(&hot.samplers, &sampler->next, sampler))
		;
	own.sampler = sampler;
	own.life = hot.life;
	return sampler;
}

static inline struct sampler *own_sampler(void)
{
	return own.life == hot.life ? own.sampler : begin_life();
}

/* What is kept of keys is asked once the summary is taken: after hotkeys_show no key that it forbids is added. */
static inline void add_sample(struct sampler *sampler, enum heavy_measure by, const struct store_request *request,
			      const uint64_t amount[HEAVY_MEASURES])
{
	struct heavy *heavy = atomic_exchange_explicit(&sampler->heavy[by], NULL, memory_order_acquire);
	enum hotkeys_shown shown = hotkeys_are_shown();
	const struct heavy_key key = { .hash = request->hash | 1,
				       .text = request->key,
				       .length = request->key_length,
				       .keep = shown == HOTKEYS_KEYS };

	if (!heavy)
		return;
	if (shown != HOTKEYS_OFF)
		heavy_add(heavy, &key, amount);
	atomic_store_explicit(&sampler->heavy[by], heavy, memory_order_release);
}

/* A gap whose mean is `mean`. */
static uint64_t random_gap(struct sampler *sampler, uint64_t mean)
{
	return 1 + rng_below(&sampler->rng, 2 * mean - 1);
}

int32_t hotkeys_sample_request(const struct store_request *request, uint64_t bytes)
{
	struct sampler *sampler = own_sampler();
	const uint64_t amount[HEAVY_MEASURES] = {
		[HEAVY_REQUESTS] = HOTKEYS_EACH, [HEAVY_BYTES] = bytes * HOTKEYS_EACH
	};

	if (hotkeys_are_shown() == HOTKEYS_OFF)
		return OFF_GAP;
	sampler->mean_bytes += ((double)bytes - sampler->mean_bytes) / MEAN_WEIGHT;
	add_sample(sampler, HEAVY_REQUESTS, request, amount);
	return (int32_t)random_gap(sampler, HOTKEYS_EACH) - 1;
}

/* The bytes until this sample were drawn by the stride of the last one, which is therefore what the sample stands for. */
int64_t hotkeys_sample_bytes(const struct store_request *request, uint64_t bytes, int64_t left)
{
	struct sampler *sampler = own_sampler();
	uint64_t stride = sampler->stride, weight;
	uint64_t amount[HEAVY_MEASURES] = { 0 };

	must(left < 0);
	if (hotkeys_are_shown() == HOTKEYS_OFF || bytes == 0)
		return OFF_BYTES;
	weight = ((uint64_t)-left / stride + 1) * stride; /* a large value is several samples at once */
	left = -(int64_t)((uint64_t)-left % stride);
	sampler->stride = STRIDE_LEAST + (uint64_t)(sampler->mean_bytes * HOTKEYS_EACH);
	for (left += (int64_t)random_gap(sampler, sampler->stride); left < 0;
	     left += (int64_t)random_gap(sampler, sampler->stride))
		weight += sampler->stride;
	amount[HEAVY_BYTES] = weight;
	amount[HEAVY_REQUESTS] = (weight + bytes / 2) / bytes;
	add_sample(sampler, HEAVY_BYTES, request, amount);
	return left;
}

void hotkeys_note_reads(const struct store_request *request, uint64_t bytes, unsigned reads)
{
	struct sampler *sampler = own_sampler();
	const uint64_t amount[HEAVY_MEASURES] = { [HEAVY_REQUESTS] = HOTKEYS_READS_EACH,
						  [HEAVY_BYTES] = bytes * HOTKEYS_READS_EACH,
						  [HEAVY_READS] = (uint64_t)reads * HOTKEYS_READS_EACH };

	if (--sampler->until_reads >= 0)
		return;
	sampler->until_reads = (int32_t)random_gap(sampler, HOTKEYS_READS_EACH) - 1;
	if (reads > 0)
		add_sample(sampler, HEAVY_READS, request, amount);
}

/* ---- panes ------------------------------------------------------------------------------------ */

/* Takes a thread's summary, and gives it an empty one. The thread has it for some hundred instructions at most. */
static struct heavy *take_summary(struct heavy *_Atomic *from, struct heavy *empty)
{
	struct heavy *full;

	while (!(full = atomic_exchange_explicit(from, NULL, memory_order_acquire)))
		sched_yield();
	atomic_store_explicit(from, empty, memory_order_release);
	return full;
}

/* Moves what all threads have into the present pane. The lock is held. */
static void collect(void)
{
	for (struct sampler *sampler = atomic_load(&hot.samplers); sampler; sampler = sampler->next) {
		for (enum heavy_measure m = 0; m < HEAVY_MEASURES; m++) {
			struct history *history = &hot.history[m];
			struct heavy *full = take_summary(&sampler->heavy[m], history->spare);

			heavy_merge(history->present, full);
			history->spare = full;
		}
	}
}

void hotkeys_show(enum hotkeys_shown shown)
{
	lock_acquire(&hot.lock);
	if (atomic_exchange(&hot.shown, shown) != (int)shown) {
		collect();
		for (enum heavy_measure m = 0; m < HEAVY_MEASURES; m++) {
			heavy_clear(hot.history[m].present);
			forget_lists(&hot.history[m]);
		}
		hot.pane_since = clk_wall_seconds();
		hot.tens = 0;
	}
	lock_release(&hot.lock);
}

/* Puts a list in front of the others; the oldest goes. */
static void push_list(struct heavy_list **lists, unsigned most, struct heavy_list *list)
{
	heavy_list_free(lists[most - 1]);
	memmove(lists + 1, lists, (most - 1) * sizeof(struct heavy_list *));
	lists[0] = list;
}

/* The lock is held. */
static void end_pane(enum heavy_measure by, bool minute)
{
	struct history *history = &hot.history[by];

	push_list(history->tens, TENS, heavy_list_create(history->present, hot.pane_since, LISTED));
	heavy_clear(history->present);
	if (minute)
		push_list(history->minutes, MINUTES, heavy_list_join(history->tens, TENS, by, LISTED));
}

void hotkeys_tick(uint64_t now_ms)
{
	bool minute;

	lock_acquire(&hot.lock);
	if (now_ms - hot.pane_began_ms >= PANE_MS && hotkeys_are_shown() != HOTKEYS_OFF) {
		collect();
		minute = ++hot.tens == TENS;
		for (enum heavy_measure m = 0; m < HEAVY_MEASURES; m++)
			end_pane(m, minute);
		if (minute)
			hot.tens = 0;
		hot.pane_began_ms = now_ms;
		hot.pane_since = clk_wall_seconds();
	}
	lock_release(&hot.lock);
}

struct heavy_list *hotkeys_read(enum heavy_measure by, enum hotkeys_window window, unsigned most)
{
	struct heavy_list *lists[MINUTES + TENS + 1], *result = NULL, *present;
	const struct history *history = &hot.history[by];
	unsigned count = 0;

	must(most > 0 && most <= HOTKEYS_MOST);
	lock_acquire(&hot.lock);
	if (hotkeys_are_shown() != HOTKEYS_OFF) {
		collect();
		present = heavy_list_create(history->present, hot.pane_since, LISTED);
		lists[count++] = present;
		for (unsigned i = 0; i < (window == HOTKEYS_MINUTE ? TENS : hot.tens); i++)
			lists[count++] = history->tens[i];
		for (unsigned i = 0; i < MINUTES && window == HOTKEYS_TEN_MINUTES; i++)
			lists[count++] = history->minutes[i];
		if (present)
			result = heavy_list_join(lists, count, by, most);
		heavy_list_free(present);
	}
	lock_release(&hot.lock);
	if (result)
		heavy_list_rank(result, by);
	return result;
}
