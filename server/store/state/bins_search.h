/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Searches in segments of bins by a thread that may wait for the device: the cleaner, for the records of a segment that is
 * reclaimed, and walks. (Requests don't wait: request/lookup_bins.c.)
 *
 * Threads: a searcher belongs to one. No stripe is held at a call.
 */
#ifndef FS_STORE_BINS_SEARCH_H
#define FS_STORE_BINS_SEARCH_H

#include <string.h>

#include "segments/bins.h"
#include "server/store/state/state.h"

/* Bytes of chain records and bins that are read one at a time. */
struct bins_searcher {
	struct store *store;
	bool cleaner; /* the cleaner's: its waits are told (seg_busy_ms) */
	uint8_t *pages; /* room bytes; NULL before the first read */
	uint64_t room;
	uint64_t bytes; /* of bins that were asked for so far */
	struct frugal_found chain_at; /* the chain record that was read last; sequence 0: none */
	struct seg_record chain; /* its contents, in chain_pages */
	uint8_t *chain_pages;
	uint64_t chain_room;
};

/* A record in a segment of bins. */
struct bins_record {
	const char *key;
	uint8_t key_length;
	uint64_t hash; /* of the key */
	uint32_t segment;
	uint64_t sequence;
};

/* Begins without memory. cleaner: the caller is the cleaner. */
void bins_searcher_init(struct bins_searcher *searcher, struct store *store, bool cleaner);
/* Frees what the searcher has. */
void bins_searcher_fini(struct bins_searcher *searcher);

/* Does the record count as its key's, as far as flash tells: is there neither a newer one nor a kill? False too if that can't
   be read, as then nothing older counts. since: noted at the beginning, for frugal_is_true. */
FS_MUST_CHECK bool bins_is_current(struct bins_searcher *searcher, const struct bins_record *record,
				   struct frugal_since *since);
/* Reads a chain record. False: it can't be read, or is damaged. Its contents are valid until the next call. */
FS_MUST_CHECK bool bins_read_chain_record(struct bins_searcher *searcher, const struct frugal_found *at,
					  uint32_t partition, const struct seg_record **out);

/* The key of a partition's chain record. */
#define BINS_CHAIN_KEY_BYTES 8u
static inline void bins_chain_key(char out[BINS_CHAIN_KEY_BYTES], const char name[4], uint32_t number)
{
	memcpy(out, name, 4);
	memcpy(out + 4, &number, sizeof(number));
}
#define BINS_CHAIN_PARTITION "FLCH"
#define BINS_CHAIN_COLUMNS "FLCO"
#define BINS_CHAIN_COLUMN_BYTES 24u /* as frugal_merge_columns tells */

/* Is that the record of this partition, with a value as frugal_find_in asks for? */
static inline bool bins_is_chain_record(const struct seg_record *record, uint32_t partition)
{
	char key[BINS_CHAIN_KEY_BYTES];

	bins_chain_key(key, BINS_CHAIN_PARTITION, partition);
	return record->key_length == sizeof(key) && memcmp(record->key, key, sizeof(key)) == 0 &&
	       (uintptr_t)record->value % sizeof(uint64_t) == 0;
}

#endif
