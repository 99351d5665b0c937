/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/count/slow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/events.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/metrics/counters.h"
#include "server/conn/conn.h"
#include "server/count/key_hash.h"
#include "server/count/observe.h"

#define WAITING 64u /* requests that waited for flash and are about to be sent */

_Atomic uint64_t slow_threshold_ns;

/* A request that may prove slow once it is sent. */
struct noted {
	uint64_t since_ns; /* received */
	uint64_t start_ns, end_ns; /* executed at once: from when to when; both are end_ns for one that waited */
	uint64_t from_ns, to_ns; /* the drive had its reads; equal if it had none */
	struct slow_entry entry; /* without times and number; key points to the next field, or is NULL */
	unsigned char key[STORE_KEY_MAX + 1];
};

/* A thread's requests since its last slow_sent. */
struct noting {
	struct noting *next; /* constant once it is linked */
	unsigned epoch; /* slow_log.epoch at the last slow_turn: else the times below are old */
	uint64_t turn_ns, last_ns; /* the batch was received; the last request was executed, or that */
	uint32_t count; /* requests executed at once */
	unsigned waiting_count;
	struct noted slowest; /* of these, the one that took longest by itself */
	struct noted waiting[WAITING];
};

static struct {
	_Atomic bool keys;
	_Atomic unsigned epoch; /* counts calls of slow_set */
	struct noting *_Atomic all; /* of each thread */
	unsigned life; /* counts calls of slow_init */
	struct lock lock; /* covers the fields below */
	struct slow_entry *ring; /* SLOW_ENTRIES; entry n is at (n - 1) % SLOW_ENTRIES. NULL: the log was never on */
	uint64_t newest;
} slow_log = { .lock = LOCK_INITIALIZER(LOCK_LEAF) };

static _Thread_local struct {
	unsigned life; /* slow_log.life when the other field was set */
	struct noting *noting;
} own;

/* ---- life and settings -------------------------------------------------------------------------- */

void slow_init(void)
{
	slow_log.life++;
	slow_log.newest = 0;
	atomic_store(&slow_log.keys, false);
	atomic_store(&slow_log.all, NULL);
	atomic_store(&slow_threshold_ns, 0);
}

void slow_fini(void)
{
	struct noting *noting = atomic_load(&slow_log.all), *next;

	for (; noting; noting = next) {
		next = noting->next;
		mem_free(noting);
	}
	atomic_store(&slow_log.all, NULL);
	for (unsigned i = 0; slow_log.ring && i < SLOW_ENTRIES; i++)
		mem_free(slow_log.ring[i].key);
	mem_free(slow_log.ring);
	slow_log.ring = NULL;
}

static void make_ring(void)
{
	struct slow_entry *ring = mem_zalloc(SLOW_ENTRIES * sizeof(*ring));

	lock_acquire(&slow_log.lock);
	if (!slow_log.ring) {
		slow_log.ring = ring;
		ring = NULL;
	}
	lock_release(&slow_log.lock);
	mem_free(ring);
}

static void forget_keys(void)
{
	lock_acquire(&slow_log.lock);
	for (unsigned i = 0; slow_log.ring && i < SLOW_ENTRIES; i++) {
		mem_free(slow_log.ring[i].key);
		slow_log.ring[i].key = NULL;
	}
	lock_release(&slow_log.lock);
}

void slow_set(const struct slow_settings *settings)
{
	if (settings->threshold_us > 0)
		make_ring();
	atomic_store(&slow_log.keys, settings->keys);
	atomic_fetch_add(&slow_log.epoch, 1);
	atomic_store(&slow_threshold_ns, settings->threshold_us * 1000);
	if (!settings->keys)
		forget_keys();
}

void slow_get(struct slow_settings *out)
{
	*out = (struct slow_settings){ .threshold_us = atomic_load(&slow_threshold_ns) / 1000,
				       .keys = atomic_load(&slow_log.keys) };
}

/* NULL: there is no memory. */
static struct noting *__attribute__((cold, noinline)) begin_life(void)
{
	struct noting *noting = mem_zalloc(sizeof(*noting));

	if (!noting)
		return NULL;
	noting->next = atomic_load(&slow_log.all);
	while (!atomic_compare_exchange_weak(&slow_log.all, &noting->next, noting))
		;
	own.noting = noting;
	own.life = slow_log.life;
	return noting;
}

static inline struct noting *own_noting(void)
{
	return own.life == slow_log.life ? own.noting : begin_life();
}

/* ---- the log -------------------------------------------------------------------------------------- */

static const char *const tier_words[] = { [SLOW_NOWHERE] = "none", [SLOW_DRAM] = "DRAM", [SLOW_FLASH] = "flash" };

static void tell_log(const struct slow_entry *entry)
{
	log_limited(LOG_LEVEL_NOTICE,
		    "slow: %s, %s, of the key with hash %016" PRIx64 " (%s, %" PRIu64 " bytes) took %" PRIu64
		    " us: queue %" PRIu64 ", run %" PRIu64 ", flash %" PRIu64 ", send %" PRIu64
		    "; \"stats slow\" has more",
		    entry->command, entry->result, entry->hash, tier_words[entry->tier], entry->bytes, entry->total_us,
		    entry->queue_us, entry->run_us, entry->flash_us, entry->send_us);
}

static unsigned char *copy_key(const unsigned char *key)
{
	unsigned char *copy = key ? mem_alloc(1u + key[0]) : NULL;

	if (copy)
		memcpy(copy, key, 1u + key[0]);
	return copy;
}

/* A key is kept only if that is still allowed once the lock is held: after slow_set no key comes that it forbids. */
static void add_entry(struct slow_entry *entry)
{
	unsigned char *key = copy_key(entry->key), *old = NULL;

	lock_acquire(&slow_log.lock);
	if (slow_log.ring) {
		struct slow_entry *to = &slow_log.ring[slow_log.newest % SLOW_ENTRIES];

		entry->number = ++slow_log.newest;
		old = to->key;
		*to = *entry;
		to->key = NULL;
		if (atomic_load(&slow_log.keys)) {
			to->key = key;
			key = NULL;
		}
	}
	lock_release(&slow_log.lock);
	mem_free(old);
	mem_free(key);
}

static uint64_t us_between(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (to_ns - from_ns) / 1000 : 0;
}

/* Logs a request that was sent at now_ns, if it is slow. */
static void judge(struct noted *noted, uint32_t together, uint64_t now_ns)
{
	uint64_t threshold_ns = atomic_load_explicit(&slow_threshold_ns, memory_order_relaxed);
	struct slow_entry *entry = &noted->entry;

	if (threshold_ns == 0 || now_ns - noted->since_ns < threshold_ns)
		return;
	entry->at = clk_wall_seconds();
	entry->together = together;
	entry->total_us = us_between(noted->since_ns, now_ns);
	entry->queue_us = us_between(noted->since_ns, noted->start_ns);
	entry->run_us = us_between(noted->start_ns, noted->end_ns);
	entry->flash_us = us_between(noted->from_ns, noted->to_ns);
	entry->send_us = us_between(noted->to_ns, now_ns);
	add_entry(entry);
	tell_log(entry);
	ctr_add(CTR_slow_requests, together);
}

/* ---- noting --------------------------------------------------------------------------------------- */

static void fill(struct noted *noted, const struct conn *conn, const struct store_request *request)
{
	struct slow_entry *entry = &noted->entry;

	*entry = (struct slow_entry){ .hash = key_hash(request->key, request->key_length),
				      .bytes = observe_moved_bytes(request),
				      .command = observe_command_word(request),
				      .result = observe_status_word(request->result),
				      .conn = conn_number(conn) };
	if (request->result != STORE_MISS && request->result != STORE_NOT_STORED)
		entry->tier = SLOW_DRAM;
	if (!atomic_load_explicit(&slow_log.keys, memory_order_relaxed))
		return;
	noted->key[0] = request->key_length;
	memcpy(noted->key + 1, request->key, request->key_length);
	entry->key = noted->key;
}

void slow_turn(uint64_t now_ns)
{
	struct noting *noting = own_noting();

	if (!noting)
		return;
	noting->epoch = atomic_load_explicit(&slow_log.epoch, memory_order_relaxed);
	noting->turn_ns = noting->last_ns = now_ns;
	noting->count = noting->waiting_count = 0;
}

void slow_note(const struct conn *conn, const struct store_request *request)
{
	struct noting *noting = own_noting();
	uint64_t now_ns = store_worker_now_ns(conn->store), took_ns;
	struct noted *slowest;

	if (!noting || noting->epoch != atomic_load_explicit(&slow_log.epoch, memory_order_relaxed))
		return; /* the log was switched on within this turn */
	slowest = &noting->slowest;
	took_ns = now_ns - noting->last_ns;
	if (noting->count == 0 || took_ns > slowest->end_ns - slowest->start_ns) {
		fill(slowest, conn, request);
		slowest->since_ns = noting->turn_ns;
		slowest->start_ns = noting->last_ns;
		slowest->end_ns = slowest->from_ns = slowest->to_ns = now_ns;
		if (now_ns - noting->turn_ns >= atomic_load_explicit(&slow_threshold_ns, memory_order_relaxed))
			conn_peer(conn, slowest->entry.peer);
	}
	noting->count++;
	noting->last_ns = now_ns;
}

static void judge_waiting(struct noting *noting, uint64_t now_ns)
{
	for (unsigned i = 0; i < noting->waiting_count; i++)
		judge(&noting->waiting[i], 1, now_ns);
	noting->waiting_count = 0;
}

/* One that is far from slow by now could only be made slow by this turn, which is then told by its own requests. */
void slow_note_waited(const struct conn *conn, const struct store_request *request, uint64_t since_ns)
{
	uint64_t threshold_ns = atomic_load_explicit(&slow_threshold_ns, memory_order_relaxed);
	uint64_t now_ns = store_worker_now_ns(conn->store);
	struct noting *noting = own_noting();
	struct noted *noted;

	if (!noting || now_ns - since_ns < threshold_ns / 2)
		return;
	if (noting->waiting_count == WAITING)
		judge_waiting(noting, now_ns);
	must(noting->waiting_count < WAITING);
	noted = &noting->waiting[noting->waiting_count++];
	fill(noted, conn, request);
	noted->since_ns = noted->start_ns = noted->end_ns = since_ns;
	noted->from_ns = noted->to_ns = since_ns;
	if (request->flash_from_ns != 0) {
		noted->from_ns = request->flash_from_ns < since_ns ? since_ns
				 : request->flash_from_ns < now_ns ? request->flash_from_ns
								   : now_ns;
		noted->to_ns = request->flash_to_ns < noted->from_ns ? noted->from_ns
			       : request->flash_to_ns < now_ns       ? request->flash_to_ns
								     : now_ns;
		noted->start_ns = noted->end_ns = noted->from_ns;
		noted->entry.reads = request->flash_reads;
		if (noted->entry.tier == SLOW_DRAM)
			noted->entry.tier = SLOW_FLASH;
	}
	conn_peer(conn, noted->entry.peer);
}

void slow_sent(const struct store_worker *store)
{
	struct noting *noting = own_noting();
	uint64_t now_ns;

	if (!noting || (noting->count == 0 && noting->waiting_count == 0))
		return;
	now_ns = store_worker_now_ns(store);
	judge_waiting(noting, now_ns);
	if (noting->count > 0)
		judge(&noting->slowest, noting->count, now_ns);
	noting->count = 0;
	noting->turn_ns = noting->last_ns = now_ns;
}

/* ---- reading -------------------------------------------------------------------------------------- */

unsigned slow_copy(struct slow_entry *out, unsigned most, uint64_t *newest)
{
	unsigned count = 0;

	lock_acquire(&slow_log.lock);
	*newest = slow_log.newest;
	for (uint64_t n = slow_log.newest; n > 0 && count < most && slow_log.newest - n < SLOW_ENTRIES; n--, count++) {
		out[count] = slow_log.ring[(n - 1) % SLOW_ENTRIES];
		out[count].key = copy_key(out[count].key);
	}
	lock_release(&slow_log.lock);
	return count;
}
