/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys that all connections write: is what they saw linearisable?
 *
 * Every version of a key has a zone. Let first be the earliest end of its write and of the reads
 * that saw it, and last the latest start of these. With first < last the key held this version all
 * the time between; else it held it at some point between last and first. Two zones conflict just
 * if each one's first lies before the other's last: then one value was seen, or written, while the
 * other was there before and after. (P. Gibbons, E. Korach: Testing shared memories, 1997.)
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/model/model.h"
#include "tests/model/options.h"

#define ZONES 128

enum zone_state {
	ZONE_FREE,
	ZONE_PENDING, /* the write was not answered yet */
	ZONE_DONE,
	ZONE_VOID, /* surely not carried out */
	ZONE_MAYBE /* of a broken connection, and nobody saw it so far */
};

struct zone {
	uint64_t version, written, first, last;
	uint64_t ended; /* of MAYBE: not carried out after it */
	uint64_t cas;
	enum zone_state state;
	bool is_delete, seen;
};

struct shared_key {
	pthread_mutex_t lock; /* covers all below */
	uint64_t next; /* version */
	uint64_t forgotten_ns; /* when a zone was last given up */
	struct zone zone[ZONES];
};

static struct shared_key *keys;

void shared_init(uint32_t count)
{
	keys = calloc(count, sizeof(*keys));
	if (!keys)
		abort();
	for (uint32_t i = 0; i < count; i++) {
		pthread_mutex_init(&keys[i].lock, NULL);
		keys[i].next = 1;
	}
}

static struct shared_key *acquire(uint32_t code)
{
	struct shared_key *key = &keys[key_number(code)];

	pthread_mutex_lock(&key->lock);
	return key;
}

static struct zone *zone_of(struct shared_key *key, uint64_t version)
{
	struct zone *zone = &key->zone[version % ZONES];

	return zone->version == version && zone->state != ZONE_FREE ? zone : NULL;
}

/* May it be forgotten? Only if no command sent from now on can meet it. */
static bool superseded(const struct shared_key *key, const struct zone *zone, uint64_t now)
{
	uint64_t over = zone->state == ZONE_MAYBE ? zone->ended : zone->first;

	if (zone->state == ZONE_FREE || zone->state == ZONE_VOID)
		return true;
	if (zone->state == ZONE_PENDING)
		return false;
	for (unsigned i = 0; i < ZONES; i++) {
		const struct zone *other = &key->zone[i];

		if (other->state == ZONE_DONE && other->written > over && other->first < now)
			return true;
	}
	return false;
}

uint64_t shared_begin(uint32_t code, bool is_delete, uint64_t start)
{
	struct shared_key *key = acquire(code);
	struct zone *zone = &key->zone[key->next % ZONES];
	uint64_t version = 0;

	if (superseded(key, zone, start)) {
		if (zone->state != ZONE_FREE)
			key->forgotten_ns = now_ns();
		version = key->next++;
		*zone = (struct zone){ .version = version,
				       .written = start,
				       .first = UINT64_MAX,
				       .last = start,
				       .state = ZONE_PENDING,
				       .is_delete = is_delete };
	}
	pthread_mutex_unlock(&key->lock);
	return version;
}

static bool counts(const struct zone *zone)
{
	return zone->state == ZONE_DONE || zone->state == ZONE_PENDING;
}

static void conflict(const struct conn *conn, const struct op *op, uint32_t code, const struct zone *a,
		     const struct zone *b, const char *what)
{
	violation(conn, op, code,
		  "%s: version %" PRIu64 "%s (there by %.6f, still at %.6f) and version %" PRIu64
		  "%s (there by %.6f, still at %.6f)",
		  what, a->version, a->is_delete ? " (a delete)" : "", (double)(a->first - start_ns) / 1e9,
		  (double)(a->last - start_ns) / 1e9, b->version, b->is_delete ? " (a delete)" : "",
		  (double)(b->first - start_ns) / 1e9, (double)(b->last - start_ns) / 1e9);
}

static void check(const struct conn *conn, const struct op *op, uint32_t code, const struct shared_key *key,
		  const struct zone *zone)
{
	for (unsigned i = 0; i < ZONES; i++) {
		const struct zone *other = &key->zone[i];

		if (other == zone || !counts(other))
			continue;
		if (zone->first < other->last && other->first < zone->last)
			conflict(conn, op, code, zone, other, "an older value was seen after a newer one");
		if (!zone->cas || !other->cas)
			continue;
		if (zone->cas == other->cas || (zone->first < other->written && zone->cas > other->cas) ||
		    (other->first < zone->written && other->cas > zone->cas))
			conflict(conn, op, code, zone, other, "ids do not increase");
	}
}

void shared_end(const struct conn *conn, const struct op *op, uint32_t code, uint64_t version, bool effective,
		uint64_t end)
{
	struct shared_key *key = acquire(code);
	struct zone *zone = zone_of(key, version);

	if (zone && !effective) {
		if (zone->seen)
			violation(conn, op, code, "version %" PRIu64 " was seen, but not stored", version);
		zone->state = ZONE_VOID;
	} else if (zone) {
		zone->state = ZONE_DONE;
		if (end < zone->first)
			zone->first = end;
		check(conn, op, code, key, zone);
	}
	pthread_mutex_unlock(&key->lock);
}

void shared_lost(uint32_t code, uint64_t version, uint64_t end)
{
	struct shared_key *key = acquire(code);
	struct zone *zone = zone_of(key, version);

	if (zone) {
		zone->state = zone->is_delete ? ZONE_VOID : zone->seen ? ZONE_DONE : ZONE_MAYBE;
		zone->ended = end;
	}
	pthread_mutex_unlock(&key->lock);
}

/* Between start and end it was there. */
static void observe(struct conn *conn, const struct op *op, uint32_t code, struct shared_key *key, struct zone *zone,
		    uint64_t end)
{
	if (zone->state == ZONE_VOID || zone->is_delete)
		violation(conn, op, code, "version %" PRIu64 " was seen, but not stored", zone->version);
	if (zone->state == ZONE_MAYBE) {
		zone->state = ZONE_DONE;
		if (zone->ended < zone->first)
			zone->first = zone->ended;
	}
	zone->seen = true;
	if (end < zone->first)
		zone->first = end;
	if (op->sent_ns > zone->last)
		zone->last = op->sent_ns;
	check(conn, op, code, key, zone);
}

uint64_t shared_shown(struct conn *conn, const struct op *op, uint32_t code, const struct shown *shown)
{
	uint64_t version, end = now_ns();
	struct shared_key *key;
	struct zone *zone;

	if (!shared_value_parse(code, shown->data, shown->length, &version))
		violation(conn, op, code, "torn, or another key's: %zu bytes: %.40s", shown->length, shown->data);
	if (shown->flags != (uint32_t)version)
		violation(conn, op, code, "version %" PRIu64 " came with flags %u", version, shown->flags);
	key = acquire(code);
	zone = zone_of(key, version);
	if (zone) {
		if (shown->cas && zone->cas && shown->cas != zone->cas)
			violation(conn, op, code, "id of version %" PRIu64 " was %" PRIu64 " and is %" PRIu64, version,
				  zone->cas, shown->cas);
		if (shown->cas)
			zone->cas = shown->cas;
		observe(conn, op, code, key, zone, end);
	} else if (version >= key->next || op->sent_ns > key->forgotten_ns) {
		violation(conn, op, code, "version %" PRIu64 " is long overwritten (next is %" PRIu64 ")", version,
			  key->next);
	} else {
		conn->thread->unverifiable++;
	}
	pthread_mutex_unlock(&key->lock);
	return version;
}

void shared_cas_stored(struct conn *conn, const struct op *op, uint64_t end)
{
	struct shared_key *key = acquire(op->code);
	struct zone *zone = zone_of(key, op->seen);

	if (zone)
		observe(conn, op, op->code, key, zone, end);
	pthread_mutex_unlock(&key->lock);
}

bool shared_cas_of(uint32_t code, struct rng *rng, uint64_t *version, uint64_t *cas)
{
	struct shared_key *key = acquire(code);
	unsigned back = rng_below(rng, 4) ? 0 : (unsigned)rng_below(rng, ZONES);
	bool found = false;

	for (unsigned i = back + 1; i <= ZONES && !found && i < key->next; i++) {
		const struct zone *zone = zone_of(key, key->next - i);

		if (!zone || !zone->cas || zone->state != ZONE_DONE)
			continue;
		*version = zone->version;
		*cas = zone->cas;
		found = true;
	}
	pthread_mutex_unlock(&key->lock);
	return found;
}

static _Atomic int flushes_under_way;
static _Atomic uint64_t flush_ended_ns;

bool flush_since(uint64_t sent_ns)
{
	return atomic_load(&flushes_under_way) > 0 || atomic_load(&flush_ended_ns) >= sent_ns;
}

void flush_over(void)
{
	atomic_store(&flush_ended_ns, now_ns());
	atomic_fetch_sub(&flushes_under_way, 1);
}

uint64_t *shared_flush_begin(uint64_t start)
{
	uint64_t *versions = calloc(options.shared_keys, sizeof(*versions));

	if (!versions)
		abort();
	atomic_fetch_add(&flushes_under_way, 1);
	for (uint32_t i = 0; i < options.shared_keys; i++)
		versions[i] = shared_begin(key_code(AREA_SHARED, i), true, start);
	return versions;
}

void shared_flush_end(const struct conn *conn, const struct op *op, const uint64_t *versions, uint64_t end)
{
	for (uint32_t i = 0; i < options.shared_keys; i++)
		if (versions[i])
			shared_end(conn, op, key_code(AREA_SHARED, i), versions[i], true, end);
	flush_over();
}

/* The lock is held by the thread that prints, or by nobody who matters any more. */
void shared_print(uint32_t code)
{
	static const char *const states[] = { "free", "pending", "done", "void", "maybe" };
	const struct shared_key *key = &keys[key_number(code)];

	fprintf(stderr, "  versions of shared key %u (written, there by, still at):\n", key_number(code));
	for (uint64_t v = key->next > 24 ? key->next - 24 : 1; v < key->next; v++) {
		const struct zone *zone = &key->zone[v % ZONES];

		if (zone->version == v)
			fprintf(stderr, "    %" PRIu64 "%s %s%s id %" PRIu64 "  %.6f  %.6f  %.6f\n", v,
				zone->is_delete ? " delete" : "", states[zone->state], zone->seen ? " seen" : "",
				zone->cas, (double)(zone->written - start_ns) / 1e9,
				zone->first == UINT64_MAX ? -1 : (double)(zone->first - start_ns) / 1e9,
				(double)(zone->last - start_ns) / 1e9);
	}
}
