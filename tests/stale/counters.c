/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys with many writers and incr by 1: the number is the version, and no number is answered below an earlier one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stale/stale.h"

static bool make(struct thread *thread, uint32_t number, const char *name)
{
	uint64_t version = life_begin(number);
	char text[32];
	struct op *op;
	int length;

	if (version == 0)
		return false;
	op = batch_add(thread, OP_ADD, number);
	op->version = version;
	length = snprintf(text, sizeof(text), "%" PRIu64, version);
	wire_print(&thread->wire, "add %s 0 0 %d\r\n%s\r\n", name, length, text);
	return true;
}

void counter_command(struct thread *thread)
{
	uint32_t number =
		family_first(FAMILY_COUNTER) + (uint32_t)rng_below(&thread->rng, options.keys[FAMILY_COUNTER]);
	uint64_t turn = rng_below(&thread->rng, 100);
	char name[KEY_NAME_MOST];

	key_name(number, name);
	if (make(thread, number, name))
		return;
	if (turn < 45) {
		batch_add(thread, OP_INCR, number);
		wire_print(&thread->wire, "incr %s 1\r\n", name);
	} else if (turn < 47) {
		batch_add(thread, OP_DELETE, number);
		wire_print(&thread->wire, "delete %s\r\n", name);
	} else {
		batch_add(thread, OP_GET, number);
		wire_print(&thread->wire, "get %s\r\n", name);
	}
}

void counter_shown(const struct op *op, const struct shown *shown)
{
	uint32_t number = op->key[0];
	char text[32];
	uint64_t version;

	if (shown->length >= sizeof(text))
		violation(op, number, "torn: %zu bytes: %.40s", shown->length, shown->data);
	snprintf(text, sizeof(text), "%.*s", (int)shown->length, shown->data);
	version = strtoull(text, NULL, 10);
	key_check(op, number, op->floor[0], version);
	key_is(number, version);
}

void counter_answer(struct thread *thread, const struct op *op, const char *line)
{
	uint32_t number = op->key[0];
	uint64_t version;

	if (op->kind == OP_ADD) {
		life_end(thread, op, line);
	} else if (op->kind == OP_DELETE) {
		life_deleted(thread, op, line);
	} else if (!line) {
		return;
	} else if (line[0] >= '0' && line[0] <= '9') {
		version = strtoull(line, NULL, 10);
		if (version <= op->floor[0])
			violation(op, number, "STALE: incr answered %" PRIu64 ", but the number was %" PRIu64 " before",
				  version, op->floor[0]);
		key_check(op, number, op->floor[0], version);
		key_is(number, version);
	} else if (strncmp(line, "SERVER_ERROR", 12) == 0) {
		atomic_fetch_add(&thread->refused, 1);
	} else if (strcmp(line, "NOT_FOUND") == 0) {
		life_missed(number);
	} else {
		violation(op, number, "the answer was \"%s\"", line);
	}
}
