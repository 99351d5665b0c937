/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of a journal's blocks, for its writer (journal.c) and its reader (journal_read.c). */
#ifndef FS_STORE_JOURNAL_INTERNAL_H
#define FS_STORE_JOURNAL_INTERNAL_H

#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "server/store/state/journal.h"

#define JOURNAL_MAGIC "FLSHJRN1"
#define JOURNAL_SECTOR 512u
#define JOURNAL_BLOCK_ENTRIES 32768u /* at most */
#define JOURNAL_CHECK_SEED 0x4a4f55524e414c31ull

struct journal_block {
	char magic[8];
	uint64_t check; /* of all that follows, padding included */
	uint8_t uuid[16];
	uint64_t epoch;
	uint64_t number; /* of the block in its file, from 0 */
	uint32_t file;
	uint32_t entries;
	uint64_t wall_s, store_s;
	uint64_t reserved;
};
_Static_assert(sizeof(struct journal_block) == 80 && sizeof(struct journal_block) % sizeof(struct journal_entry) == 0,
	       "as on disk");

/* Returns the bytes of a block with so many entries, padding included. */
static inline uint64_t journal_block_bytes(uint64_t entries)
{
	uint64_t bytes = sizeof(struct journal_block) + entries * sizeof(struct journal_entry);

	return (bytes + JOURNAL_SECTOR - 1) / JOURNAL_SECTOR * JOURNAL_SECTOR;
}

/* Returns the check of a whole block: of its identity, its numbers, its entries and its padding. */
static inline uint64_t journal_block_check(const struct journal_block *block)
{
	size_t skip = offsetof(struct journal_block, uuid);

	return hash64((const char *)block + skip, journal_block_bytes(block->entries) - skip, JOURNAL_CHECK_SEED);
}

/* Returns the sequence up to which an entry of CHANGED counts. */
static inline uint64_t journal_changed_up_to(const struct journal_entry *entry)
{
	return (uint64_t)entry->segment << 32 | entry->small;
}

/* Returns the highest sequence that an entry names; 0: none. */
static inline uint64_t journal_entry_names(const struct journal_entry *entry)
{
	switch (entry->kind) {
	case JOURNAL_DEAD:
		return entry->value;
	case JOURNAL_CHANGED:
		return journal_changed_up_to(entry);
	default:
		return 0; /* each head repeats the others */
	}
}

#endif
