/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heaviest keys of a stream in bounded memory, by the space-saving algorithm (Metwally, Agrawal and El Abbadi,
 * "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005, section 3).
 *
 *   hash --> a set of 4 counters:  hash   at most   error   requests   bytes   reads   key
 *
 * A summary ranks its keys by one of three amounts: requests, bytes or flash reads. A key that has a counter adds to it. A new
 * key takes the least counter of its set, whose value becomes the new key's error. So each set is a space-saving summary of
 * the keys that fall into it, and these hold for each key (amounts by which the summary ranks):
 *
 *   counted:      amount <= its true amount <= amount + error
 *   not counted:  its true amount <= the least counter of its set, 0 while the set isn't full
 *
 * Summaries of two streams merge set by set into one that keeps this (Agarwal et al., "Mergeable Summaries", PODS 2012).
 *
 * A key's bytes are copied once its counter was taken from no other key, or at the second time that it is added: most
 * of the keys in a long tail come once and are never copied. A list has the heaviest counters whose keys are known.
 *
 * Threads: a summary and a list belong to one thread at a time. Errors: a key without memory for its copy stays unknown; a
 * summary aborts without memory, as it is made once for each thread.
 */
#ifndef FS_SERVER_COUNT_HEAVY_H
#define FS_SERVER_COUNT_HEAVY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum heavy_measure { HEAVY_REQUESTS, HEAVY_BYTES, HEAVY_READS, HEAVY_MEASURES };

#define HEAVY_WAYS 4u
#define HEAVY_SETS 256u

/* A key as it is added. keep: its bytes may be kept; otherwise only key_hash of it is. */
struct heavy_key {
	uint64_t hash; /* equal for equal keys, and not 0 */
	const char *text; /* length bytes, 1 .. 255 */
	size_t length;
	bool keep;
};

struct heavy;

/* Returns an empty summary that ranks by this measure. The caller owns it. */
struct heavy *heavy_create(enum heavy_measure by);
/* Frees it. NULL is allowed. */
void heavy_destroy(struct heavy *heavy);
/* Returns it to its state after heavy_create. */
void heavy_clear(struct heavy *heavy);

/* Adds these amounts to a key; amount[by] > 0. */
void heavy_add(struct heavy *heavy, const struct heavy_key *key, const uint64_t amount[HEAVY_MEASURES]);
/* Adds all of from to into, of the same measure, and clears from. */
void heavy_merge(struct heavy *into, struct heavy *from);
/* Returns the sum of all amounts that were added, by its measure. */
uint64_t heavy_total(const struct heavy *heavy);

/* ---- lists ------------------------------------------------------------------------------------ */

/* A key of a list, or of several together. */
struct heavy_row {
	uint64_t hash; /* as it was added */
	uint64_t amount[HEAVY_MEASURES]; /* since the key has a counter */
	uint64_t error; /* of the amount that ranks: at most so much more */
	uint64_t shown; /* key_hash */
	int64_t since; /* of the first list that has the key */
	unsigned char *key; /* its length in the first byte; NULL: not kept */
};

struct heavy_list {
	int64_t since; /* when counting began, in wall seconds */
	uint64_t total; /* heavy_total */
	uint64_t floor; /* a key that isn't in the list has at most so much */
	unsigned count;
	struct heavy_row rows[]; /* in the order of hashes */
};

/* Returns the heaviest keys of a summary, at most `most` of them, with copies of their keys; NULL without memory.
   heavy_list_free frees it. */
FS_MUST_CHECK struct heavy_list *heavy_list_create(const struct heavy *heavy, int64_t since, unsigned most);
/* Returns the heaviest keys of several lists together, at most `most` of them, in the order of hashes; a NULL among the lists
   is left out. since is that of the oldest. NULL without memory. */
FS_MUST_CHECK struct heavy_list *heavy_list_join(struct heavy_list *const *lists, unsigned count, enum heavy_measure by,
						 unsigned most);
/* Puts the heaviest keys first. */
void heavy_list_rank(struct heavy_list *list, enum heavy_measure by);
/* Frees a list and its keys. NULL is allowed. */
void heavy_list_free(struct heavy_list *list);

#endif
