/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread's connection: commands are gathered, sent without waiting, and their answers taken in order. */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stale/stale.h"

struct op *batch_add(struct thread *thread, enum op_kind kind, uint32_t key)
{
	struct op *op = &thread->op[thread->ops++];

	op->kind = kind;
	op->keys = 1;
	op->next = 0;
	op->key[0] = key;
	op->version = 0;
	op->exptime = 0;
	op->over = atomic_load(&key_of(key)->over);
	op->floor[0] = atomic_load(&key_of(key)->floor);
	return op;
}

void batch_value(struct thread *thread, const struct op *op, const char *command, uint32_t length, uint64_t id)
{
	char name[KEY_NAME_MOST];

	key_name(op->key[0], name);
	wire_print(&thread->wire, "%s %s %" PRIu32 " %d %" PRIu32, command, name, value_flags(op->version), op->exptime,
		   length);
	if (id)
		wire_print(&thread->wire, " %" PRIu64, id);
	wire_put(&thread->wire, "\r\n", 2);
	value_make(op->key[0], op->version, length, wire_room(&thread->wire, length));
	wire_put(&thread->wire, "\r\n", 2);
}

bool thread_connect(struct wire *wire)
{
	if (wire_open(wire, "127.0.0.1", options.port))
		return true;
	wire_close(wire, false);
	return false;
}

/* ---- waiting ------------------------------------------------------------------------------------ */

/* Sends what goes, and waits until more has come. However long it takes, that is no failure: the driver judges it. */
static bool wait_more(struct wire *wire)
{
	size_t before = wire_available(wire);

	while (wire_available(wire) == before) {
		struct pollfd poller = { .fd = wire->fd, .events = POLLIN };

		if (!wire_send(wire) || wire->ended)
			return false;
		if (wire_unsent(wire) > 0)
			poller.events |= POLLOUT;
		if (poll(&poller, 1, 1000) > 0 && poller.revents & ~POLLOUT && !wire_receive(wire))
			return false;
	}
	return true;
}

const char *wait_line(struct wire *wire)
{
	size_t length;
	const char *line;
	char *end;

	while (!(line = wire_line(wire, 0, &length)))
		if (!wait_more(wire))
			return NULL;
	end = wire->in + wire->in_at + length;
	wire_consume(wire, length + 2);
	*end = '\0';
	return line;
}

static bool wait_bytes(struct wire *wire, size_t bytes)
{
	while (wire_available(wire) < bytes)
		if (!wait_more(wire))
			return false;
	return true;
}

/* ---- answers ------------------------------------------------------------------------------------ */

static void show(struct thread *thread, const struct op *op, unsigned at, const struct shown *shown)
{
	atomic_fetch_add_explicit(&thread->hits, 1, memory_order_relaxed);
	switch (key_of(op->key[at])->family) {
	case FAMILY_OWNED:
		owned_shown(thread, op, at, shown);
		break;
	case FAMILY_CHAIN:
		chain_shown(thread, op, shown);
		break;
	case FAMILY_COUNTER:
		counter_shown(op, shown);
		break;
	default:
		log_shown(op, shown);
	}
}

/* "VALUE name flags length [id]", with the end of the line replaced by a zero. */
static bool take_value(struct thread *thread, struct op *op, const char *line)
{
	struct wire *wire = &thread->wire;
	char name[KEY_NAME_MOST];
	struct shown shown = { 0 };
	uint32_t number;
	unsigned at;

	if (sscanf(line, "VALUE %129s %" SCNu32 " %zu %" SCNu64, name, &shown.flags, &shown.length, &shown.cas) < 3)
		violation(op, op->key[0], "the answer was \"%.60s\"", line);
	number = key_find(name, strlen(name));
	for (at = op->next; at < op->keys && op->key[at] != number; at++)
		;
	if (at == op->keys)
		violation(op, op->key[0], "a value of \"%.40s\", which was not asked for", name);
	atomic_fetch_add_explicit(&thread->misses, at - op->next, memory_order_relaxed);
	op->next = at + 1;
	if (!wait_bytes(wire, shown.length + 2))
		return false;
	shown.data = wire_at(wire, 0);
	if (memcmp(shown.data + shown.length, "\r\n", 2) != 0)
		violation(op, number, "a value of %zu bytes has no end", shown.length);
	show(thread, op, at, &shown);
	wire_consume(wire, shown.length + 2);
	return true;
}

static bool take_get(struct thread *thread, struct op *op)
{
	const char *line;

	while ((line = wait_line(&thread->wire))) {
		if (strcmp(line, "END") == 0) {
			atomic_fetch_add_explicit(&thread->misses, op->keys - op->next, memory_order_relaxed);
			if (op->next < op->keys)
				life_missed(op->key[0]);
			return true;
		}
		if (strncmp(line, "SERVER_ERROR", 12) == 0) {
			atomic_fetch_add(&thread->refused, 1);
			return true;
		}
		if (!take_value(thread, op, line))
			return false;
	}
	return false;
}

static void answer(struct thread *thread, const struct op *op, const char *line)
{
	if (line)
		atomic_fetch_add_explicit(&thread->changes, 1, memory_order_relaxed);
	switch (key_of(op->key[0])->family) {
	case FAMILY_OWNED:
		owned_answer(thread, op, line);
		break;
	case FAMILY_CHAIN:
		chain_answer(thread, op, line);
		break;
	case FAMILY_COUNTER:
		counter_answer(thread, op, line);
		break;
	default:
		log_answer(thread, op, line);
	}
}

static bool is_get(const struct op *op)
{
	return op->kind == OP_GET || op->kind == OP_GETS;
}

static bool take_one(struct thread *thread, struct op *op)
{
	const char *line;

	if (is_get(op))
		return take_get(thread, op);
	line = wait_line(&thread->wire);
	if (!line)
		return false;
	answer(thread, op, line);
	return true;
}

void batch_run(struct thread *thread)
{
	for (thread->answered = 0; thread->answered < thread->ops; thread->answered++) {
		struct op *op = &thread->op[thread->answered];

		if (thread->connected && !take_one(thread, op)) {
			thread->connected = false;
			wire_close(&thread->wire, false);
		}
		if (!thread->connected) {
			atomic_fetch_add(&thread->lost, 1);
			if (!is_get(op))
				answer(thread, op, NULL);
		}
		atomic_fetch_add_explicit(&thread->commands, 1, memory_order_relaxed);
	}
	thread->ops = 0;
}
