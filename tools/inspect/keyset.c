/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/keyset.h"

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "tools/common/args.h"

/* At two thirds full, linear probing takes two steps for a key of the set and five for a new key. */
static uint64_t slots_for(uint64_t n)
{
	return n + n / 2 + 1;
}

uint64_t keyset_bytes(uint64_t n)
{
	return slots_for(n) * sizeof(uint64_t);
}

void keyset_init(struct keyset *set, uint64_t n)
{
	set->capacity = slots_for(n);
	set->room = n;
	set->slots = mem_map(keyset_bytes(n));
	if (!set->slots)
		arg_die("no memory for the keys of %llu records: --no-live does without", (unsigned long long)n);
}

void keyset_fini(struct keyset *set)
{
	mem_unmap(set->slots, set->capacity * sizeof(*set->slots));
}

bool keyset_add(struct keyset *set, uint64_t hash)
{
	uint64_t stored = hash ? hash : 1;
	uint64_t at = reduce64(mix64(stored), set->capacity);

	while (set->slots[at] != 0) {
		if (set->slots[at] == stored)
			return false;
		at = at + 1 < set->capacity ? at + 1 : 0;
	}
	must(set->room > 0);
	set->slots[at] = stored;
	set->room--;
	return true;
}
