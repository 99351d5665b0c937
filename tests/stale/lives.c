/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lives of keys with many writers. `issued` of such a key is its newest life, and each version has its life in the upper
 * half. One thread at a time makes a life, so that lives are carried out in the order of their numbers.
 */
#include <string.h>

#include "tests/stale/stale.h"

uint64_t life_begin(uint32_t number)
{
	struct key *key = key_of(number);

	if (!atomic_load(&key->missed) || atomic_exchange(&key->making, true))
		return 0;
	atomic_store(&key->missed, false);
	return (atomic_fetch_add(&key->issued, 1) + 1) << 32;
}

void life_missed(uint32_t number)
{
	atomic_store(&key_of(number)->missed, true);
}

void life_end(struct thread *thread, const struct op *op, const char *line)
{
	uint32_t number = op->key[0];

	if (line && strcmp(line, "STORED") == 0)
		key_is(number, op->version);
	else if (line && strcmp(line, "NOT_STORED") == 0)
		atomic_fetch_sub(&key_of(number)->issued, 1); /* this life never was */
	else if (line && strncmp(line, "SERVER_ERROR", 12) == 0)
		atomic_fetch_add(&thread->refused, 1);
	else if (line)
		violation(op, number, "the answer was \"%s\"", line);
	atomic_store(&key_of(number)->making, false);
}

void life_deleted(struct thread *thread, const struct op *op, const char *line)
{
	if (line && (strcmp(line, "DELETED") == 0 || strcmp(line, "NOT_FOUND") == 0)) {
		key_gone(op->key[0], op->over);
		life_missed(op->key[0]);
	} else if (line && strncmp(line, "SERVER_ERROR", 12) == 0) {
		atomic_fetch_add(&thread->refused, 1);
	} else if (line) {
		violation(op, op->key[0], "the answer was \"%s\"", line);
	}
}
