/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys with many writers and cas. A writer replaces the version that it was shown by the next one, with the id that it was
 * shown: of several that do so, one is STORED, and that one replaced just this version.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stale/stale.h"

/* What a thread was shown last. */
struct last {
	uint64_t version, id;
};

static struct last *lasts; /* [thread][key of the family] */

void chains_init(void)
{
	lasts = calloc((size_t)THREADS_MOST * options.keys[FAMILY_CHAIN] + 1, sizeof(*lasts));
	if (!lasts)
		abort();
}

static struct last *last_of(const struct thread *thread, uint32_t number)
{
	return &lasts[(size_t)thread->number * options.keys[FAMILY_CHAIN] + number - family_first(FAMILY_CHAIN)];
}

static bool make(struct thread *thread, uint32_t number)
{
	uint64_t version = life_begin(number);
	struct op *op;

	if (version == 0)
		return false;
	op = batch_add(thread, OP_ADD, number);
	op->version = version;
	batch_value(thread, op, "add", value_length(&thread->rng), 0);
	return true;
}

void chain_command(struct thread *thread)
{
	uint32_t number = family_first(FAMILY_CHAIN) + (uint32_t)rng_below(&thread->rng, options.keys[FAMILY_CHAIN]);
	struct last *last = last_of(thread, number);
	uint64_t turn = rng_below(&thread->rng, 100);
	char name[KEY_NAME_MOST];

	key_name(number, name);
	if (make(thread, number))
		return;
	if (turn < 50 && last->id) {
		struct op *op = batch_add(thread, OP_CAS, number);

		op->version = last->version + 1;
		batch_value(thread, op, "cas", value_length(&thread->rng), last->id);
		last->id = 0;
	} else if (turn < 52) {
		batch_add(thread, OP_DELETE, number);
		wire_print(&thread->wire, "delete %s\r\n", name);
	} else {
		batch_add(thread, OP_GETS, number);
		wire_print(&thread->wire, "gets %s\r\n", name);
	}
}

void chain_shown(struct thread *thread, const struct op *op, const struct shown *shown)
{
	uint32_t number = op->key[0];
	uint64_t version = value_read(op, number, shown);

	key_check(op, number, op->floor[0], version);
	key_is(number, version);
	if (op->kind == OP_GETS)
		*last_of(thread, number) = (struct last){ version, shown->cas };
}

void chain_answer(struct thread *thread, const struct op *op, const char *line)
{
	uint32_t number = op->key[0];

	if (op->kind == OP_ADD) {
		life_end(thread, op, line);
	} else if (op->kind == OP_DELETE) {
		life_deleted(thread, op, line);
	} else if (!line) {
		return;
	} else if (strcmp(line, "STORED") == 0) {
		if (op->version <= op->floor[0])
			violation(op, number,
				  "STALE: a cas replaced version %" PRIu64 ", but the key was at %" PRIu64 " before",
				  op->version - 1, op->floor[0]);
		key_is(number, op->version);
	} else if (strncmp(line, "SERVER_ERROR", 12) == 0) {
		atomic_fetch_add(&thread->refused, 1);
	} else if (strcmp(line, "NOT_FOUND") == 0) {
		life_missed(number);
	} else if (strcmp(line, "EXISTS") != 0) {
		violation(op, number, "the answer was \"%s\"", line);
	}
}
