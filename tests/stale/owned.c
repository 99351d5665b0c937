/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys with one writer. A change takes the next version: a value for set and replace, nothing for delete and an expiry.
 * touch with a time keeps the version, and lets the value go when the time is over.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stale/stale.h"

#define HISTORY 8
#define EXPIRY_SCAN_NS 200000000ull

struct history {
	uint64_t ns, version;
	int exptime;
	enum op_kind kind;
	char answer[12];
};

/* The owner's. */
struct owned {
	uint64_t answered; /* the floor by the owner's own answers */
	uint64_t deadline_ns; /* 0: none, or unknown */
	uint64_t
		unsure_until_ns; /* until then a value of which it is unknown may have a time to live; 0: it is known */
	unsigned history_at;
	struct history history[HISTORY];
};

static struct owned *owned;

void owned_init(void)
{
	owned = calloc(options.keys[FAMILY_OWNED] + 1, sizeof(*owned));
	if (!owned)
		abort();
}

/* Key n belongs to thread n % threads. A few keys are changed often; a third is changed so seldom that an old value there
   has the time to come back. */
static uint32_t some_key(struct thread *thread)
{
	uint64_t each = options.keys[FAMILY_OWNED] / options.threads;
	uint64_t turn = rng_below(&thread->rng, 40);
	uint64_t most = turn == 0 ? each : turn < 8 ? each / 30 + 1 : each * 2 / 3 + 1;

	return (uint32_t)(rng_below(&thread->rng, most) * options.threads) + thread->number;
}

static uint64_t next_version(uint32_t number)
{
	struct key *key = key_of(number);
	uint64_t version = atomic_load(&key->issued) + 1;

	atomic_store(&key->issued, version);
	return version;
}

static void change(struct thread *thread, uint32_t number)
{
	uint64_t turn = rng_below(&thread->rng, 100);
	char name[KEY_NAME_MOST];
	struct op *op;

	key_name(number, name);
	if (turn < 76) {
		op = batch_add(thread, OP_SET, number);
		op->version = next_version(number);
		op->exptime = turn < 6 && !options.lasting ? 1 : 0;
		batch_value(thread, op, turn >= 70 ? "replace" : "set", value_length(&thread->rng), 0);
	} else if (turn < 88) {
		op = batch_add(thread, OP_DELETE, number);
		op->version = next_version(number);
		wire_print(&thread->wire, "delete %s\r\n", name);
	} else {
		op = batch_add(thread, OP_TOUCH, number);
		op->exptime = turn < 92 ? -1 : turn < 96 && !options.lasting ? 1 : 0;
		op->version = op->exptime < 0 ? next_version(number) : atomic_load(&key_of(number)->issued);
		wire_print(&thread->wire, "touch %s %d\r\n", name, op->exptime);
	}
}

void owned_change(struct thread *thread)
{
	uint32_t number = some_key(thread);
	uint64_t more = rng_below(&thread->rng, 8);

	change(thread, number);
	if (more == 0 && batch_room(thread)) /* again, without waiting for the answer */
		change(thread, number);
	if (more < 2 && batch_room(thread)) {
		char name[KEY_NAME_MOST];

		key_name(number, name);
		batch_add(thread, OP_GET, number);
		wire_print(&thread->wire, "get %s\r\n", name);
	}
}

/* ---- answers ------------------------------------------------------------------------------------ */

void owned_shown(struct thread *thread, const struct op *op, unsigned at, const struct shown *shown)
{
	uint32_t number = op->key[at];
	uint64_t floor = op->floor[at], version = value_read(op, number, shown);

	/* The answers to the owner's earlier commands have come before this one. */
	if (number % options.threads == thread->number && owned[number].answered > floor)
		floor = owned[number].answered;
	key_check(op, number, floor, version);
	key_is(number, version);
}

static void keep(uint32_t number, const struct op *op, const char *line)
{
	struct owned *own = &owned[number];
	struct history *history = &own->history[own->history_at++ % HISTORY];

	*history = (struct history){ now_ns(), op->version, op->exptime, op->kind, "" };
	snprintf(history->answer, sizeof(history->answer), "%s", line ? line : "lost");
}

static uint64_t deadline(int exptime)
{
	return exptime > 0 ? now_ns() + (uint64_t)exptime * 1000000000 + SLACK_NS : 0;
}

/* Nobody knows whether the change was carried out: the value has the time to live that it had, that of the change, or
   none. */
static void is_unsure(struct owned *own, const struct op *op)
{
	uint64_t until = deadline(op->exptime);

	if (until < own->deadline_ns)
		until = own->deadline_ns;
	if (own->unsure_until_ns < until)
		own->unsure_until_ns = until;
	own->deadline_ns = 0;
}

static void is_sure(struct owned *own, uint64_t deadline_ns)
{
	own->deadline_ns = deadline_ns;
	own->unsure_until_ns = 0;
}

static void is_gone(uint32_t number, uint64_t version)
{
	owned[number].answered = version + 1;
	is_sure(&owned[number], 0);
	key_over(number, version);
	key_gone(number, version);
}

static bool is(const char *line, const char *word)
{
	return strcmp(line, word) == 0;
}

static void unexpected(struct thread *thread, const struct op *op, const char *line)
{
	if (strncmp(line, "SERVER_ERROR", 12) != 0)
		violation(op, op->key[0], "the answer was \"%s\"", line);
	atomic_fetch_add(&thread->refused, 1);
	key_over(op->key[0], op->version);
}

void owned_answer(struct thread *thread, const struct op *op, const char *line)
{
	uint32_t number = op->key[0];
	struct owned *own = &owned[number];

	keep(number, op, line);
	if (!line) { /* carried out or not: both are possible until the next answer */
		is_unsure(own, op);
		key_over(number, op->version);
	} else if (op->kind == OP_SET && is(line, "STORED")) {
		own->answered = op->version;
		is_sure(own, deadline(op->exptime));
		key_is(number, op->version);
	} else if (op->kind == OP_SET && is(line, "NOT_STORED")) {
		key_over(number, op->version);
	} else if (op->kind == OP_DELETE && (is(line, "DELETED") || is(line, "NOT_FOUND"))) {
		is_gone(number, op->version);
	} else if (op->kind == OP_TOUCH && is(line, "TOUCHED")) {
		if (op->exptime < 0)
			is_gone(number, op->version);
		else
			is_sure(own, deadline(op->exptime));
	} else if (op->kind == OP_TOUCH && is(line, "NOT_FOUND")) {
		key_over(number, op->version);
	} else {
		is_unsure(own, op);
		unexpected(thread, op, line);
	}
}

void owned_expire(struct thread *thread)
{
	uint64_t now = now_ns();

	if (now < thread->next_expiry_ns)
		return;
	thread->next_expiry_ns = now + EXPIRY_SCAN_NS;
	for (uint32_t n = thread->number; n < options.keys[FAMILY_OWNED]; n += options.threads) {
		if (owned[n].deadline_ns == 0 || now < owned[n].deadline_ns)
			continue;
		keep(n, &(struct op){ .kind = OP_TOUCH, .version = next_version(n), .exptime = -2 }, "is over");
		is_gone(n, atomic_load(&key_of(n)->issued));
	}
}

bool owned_may_expire(uint32_t number)
{
	return owned[number].deadline_ns != 0 || owned[number].unsure_until_ns > now_ns();
}

void owned_print(uint32_t number)
{
	const struct owned *own = &owned[number];

	printf("\n  owner's floor %" PRIu64 ", deadline %.3f s; its last changes:", own->answered,
	       (double)own->deadline_ns / 1e9);
	for (unsigned i = 0; i < HISTORY; i++) {
		const struct history *history = &own->history[(own->history_at + i) % HISTORY];

		if (history->ns)
			printf("\n    %.3f s  %-6s version %" PRIu64 ", exptime %d: %s", (double)history->ns / 1e9,
			       OP_NAMES[history->kind], history->version, history->exptime, history->answer);
	}
}
