/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections, and how they break. A connection that was reset with commands under way becomes a
 * zombie: the server may still carry them out. Its keys are in quarantine until the server counts
 * no more connections than we have open.
 */
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/model/model.h"
#include "tests/model/options.h"

#define ZOMBIE_NS_MIN 1500000000ull /* a slow flash read of a connection that is gone may go on */
#define LAZY_NS_MAX 200000000
#define ZOMBIE_POLL_NS 250000000ull

static _Atomic int alive; /* open, and known to the server */
static _Atomic unsigned changes; /* of alive */
static _Atomic uint32_t last_serial;
static long others; /* connections that the server counts beside ours */

/* ---- opening --------------------------------------------------------------------------------- */

static void open_wire(struct wire *wire)
{
	if (!wire_open(wire, options.host, options.port))
		violation(NULL, NULL, 0, "no connection to %s:%u", options.host, options.port);
	atomic_fetch_add(&alive, 1);
	atomic_fetch_add(&changes, 1);
}

static void close_wire(struct wire *wire, bool abrupt)
{
	atomic_fetch_add(&changes, 1);
	atomic_fetch_sub(&alive, 1);
	wire_close(wire, abrupt);
	atomic_fetch_add(&changes, 1);
}

void conn_open(struct conn *conn)
{
	open_wire(&conn->wire);
	if (rng_below(&conn->thread->rng, 6) == 0)
		wire_narrow(&conn->wire, 16384 << rng_below(&conn->thread->rng, 3));
	conn->lazy_until_ns = 0;
	conn->head = conn->count = 0;
	conn->quitting = false;
	conn->progress_ns = now_ns();
}

static void find_current(void *context, const char *name, const char *value)
{
	if (strcmp(name, "curr_connections") == 0)
		*(long *)context = strtol(value, NULL, 10);
}

static long server_counts(struct wire *control)
{
	long count = -1;

	if (!wire_stats(control, "stats\r\n", find_current, &count))
		violation(NULL, NULL, 0, "stats was not answered");
	return count;
}

void server_prepare(void)
{
	struct wire control = { .fd = -1 };
	char line[64];

	open_wire(&control);
	if (!wire_ask(&control, "flush_all\r\n", line, sizeof(line)) || strcmp(line, "OK") != 0)
		violation(NULL, NULL, 0, "flush_all was not answered with OK");
	others = server_counts(&control) - 1;
	close_wire(&control, false);
	wire_fini(&control);
}

/* ---- zombies --------------------------------------------------------------------------------- */

static void bury(struct zombie *zombie, uint32_t code, uint64_t version)
{
	if (zombie->count == zombie->room) {
		zombie->room = zombie->room * 2 + 64;
		zombie->codes = realloc(zombie->codes, zombie->room * sizeof(*zombie->codes));
		zombie->versions = realloc(zombie->versions, zombie->room * sizeof(*zombie->versions));
		if (!zombie->codes || !zombie->versions)
			abort();
	}
	zombie->codes[zombie->count] = code;
	zombie->versions[zombie->count++] = version;
}

static void lose(struct conn *conn, const struct op *op, struct zombie *zombie)
{
	zombie->flushes += op->versions != NULL;
	for (uint32_t i = 0; i < options.shared_keys && op->versions; i++)
		if (op->versions[i])
			bury(zombie, key_code(AREA_SHARED, i), op->versions[i]);
	for (uint32_t i = 0; i < op->count && op->kind != OP_QUIT && op->kind != OP_FLUSH; i++) {
		uint32_t code = op->codes ? op->codes[i] : op->code;

		if (key_area(code) == AREA_OWNED) {
			owned_lost(conn, op, code);
			owned_find(conn, code)->quarantine = zombie->serial;
			bury(zombie, code, 0);
		} else if (op->version && op->kind != OP_GET) {
			bury(zombie, code, op->version);
		}
	}
	free(op->codes);
	free(op->versions);
}

static struct conn *conn_of(struct thread *thread, uint32_t code)
{
	unsigned number = key_number(code) % (options.threads * options.connections);

	return &thread->conn[number % options.connections];
}

static void release(struct thread *thread, struct zombie *zombie)
{
	for (size_t i = 0; i < zombie->count; i++) {
		uint32_t code = zombie->codes[i];
		struct owned_key *key;

		switch (key_area(code)) {
		case AREA_OWNED:
			key = owned_find(conn_of(thread, code), code);
			if (key->quarantine == zombie->serial)
				key->quarantine = 0;
			break;
		case AREA_SHARED:
			shared_lost(code, zombie->versions[i], now_ns());
			break;
		case AREA_COUNTER:
			counter_end(code);
			break;
		}
	}
	while (zombie->flushes-- > 0)
		flush_over();
	free(zombie->codes);
	free(zombie->versions);
	free(zombie);
}

/* All connections that the server counts are alive: those closed before are dead to it. */
static bool only_the_living(struct thread *thread)
{
	unsigned before = atomic_load(&changes);
	int living = atomic_load(&alive);
	long counted;

	if (thread->control.fd < 0) {
		open_wire(&thread->control);
		before = atomic_load(&changes);
		living = atomic_load(&alive);
	}
	counted = server_counts(&thread->control);
	return counted == others + living && atomic_load(&changes) == before;
}

void zombies_poll(struct thread *thread)
{
	uint64_t now = now_ns();
	struct zombie **link = &thread->zombies;

	if (!thread->zombies || now < thread->zombies_polled_ns + ZOMBIE_POLL_NS)
		return;
	thread->zombies_polled_ns = now;
	for (struct zombie *zombie = thread->zombies; zombie; zombie = zombie->next)
		if ((double)(now - zombie->closed_ns) / 1e9 > options.patience * 2)
			violation(NULL, NULL, 0, "the server still counts a connection that was reset %.0f s ago",
				  (double)(now - zombie->closed_ns) / 1e9);
	if (!only_the_living(thread))
		return;
	while (*link) {
		struct zombie *zombie = *link;

		if (zombie->closed_ns + ZOMBIE_NS_MIN > now) {
			link = &zombie->next;
			continue;
		}
		*link = zombie->next;
		release(thread, zombie);
	}
}

/* ---- breaking -------------------------------------------------------------------------------- */

/* Now and then a command is cut off: its value never comes whole, so it must never be seen. */
static void send_half(struct conn *conn)
{
	char name[KEY_NAME_MAX + 1];

	key_name(key_code(AREA_SHARED, (uint32_t)rng_below(&conn->thread->rng, options.shared_keys)), name);
	wire_print(&conn->wire, "set %s 0 0 1000\r\nhalf a value", name);
	wire_send(&conn->wire);
}

void conn_break(struct conn *conn)
{
	struct thread *thread = conn->thread;
	struct zombie *zombie = calloc(1, sizeof(*zombie));

	if (!zombie)
		abort();
	if (rng_below(&thread->rng, 3) == 0 && wire_unsent(&conn->wire) == 0)
		send_half(conn);
	zombie->serial = atomic_fetch_add(&last_serial, 1) + 1;
	zombie->closed_ns = now_ns();
	close_wire(&conn->wire, rng_below(&thread->rng, 2));
	for (unsigned i = 0; i < conn->count; i++)
		lose(conn, &conn->queue[(conn->head + i) % QUEUE], zombie);
	zombie->next = thread->zombies;
	thread->zombies = zombie;
	thread->drops++;
	conn_open(conn);
}

/* ---- running --------------------------------------------------------------------------------- */

static void reopen(struct conn *conn)
{
	close_wire(&conn->wire, false);
	conn_open(conn);
}

static bool too_fast(const struct thread *thread)
{
	double allowed = options.rate * (double)(now_ns() - start_ns) / 1e9;

	return options.rate > 0 && (double)thread->ops > allowed;
}

/* Does the connection do what it should? */
static void look_after(const struct conn *conn, bool broke)
{
	const struct op *op = conn->count ? &conn->queue[conn->head] : NULL;

	if (broke)
		violation(conn, op, op ? op->code : 0, "the connection broke");
	if (op && (double)(now_ns() - conn->progress_ns) / 1e9 > options.patience)
		violation(conn, op, op->code, "no answer for %.0f s", options.patience);
}

/* Commands come in pieces now and then, and answers wait to be read. */
static void be_difficult(struct conn *conn)
{
	struct rng *rng = &conn->thread->rng;

	conn->wire.chunk = rng_below(rng, 12) ? 0 : wire_unsent(&conn->wire) / (1 + rng_below(rng, 40)) + 1;
	if (rng_below(rng, 300) == 0)
		conn->lazy_until_ns = now_ns() + rng_below(rng, LAZY_NS_MAX);
}

void conn_run(struct conn *conn, short events)
{
	bool broke = false;

	if (events & ~POLLOUT)
		broke = !wire_receive(&conn->wire);
	if (!broke)
		broke = !wire_send(&conn->wire);
	if (!check_answers(conn)) {
		reopen(conn);
		return;
	}
	look_after(conn, broke);
	if (conn->draining || conn->quitting || too_fast(conn->thread))
		return;
	if (conn->count <= conn->depth / 2) {
		if (conn->count == 0)
			conn->progress_ns = now_ns();
		gen_batch(conn);
		be_difficult(conn);
		if (!wire_send(&conn->wire))
			return; /* seen again in the next turn */
		if (options.drops && rng_below(&conn->thread->rng, 3000) == 0)
			conn_break(conn);
	}
}
