/* SPDX-License-Identifier: BSD-3-Clause */
/* A reclaim under way; reclaim.c and reclaim_bins.c share it. All of it is the cleaner's. */
#ifndef FS_STORE_RECLAIM_INTERNAL_H
#define FS_STORE_RECLAIM_INTERNAL_H

#include "server/store/cleaner/cleaner_internal.h"

#define RECLAIM_STEP_OBJECTS 32u /* between looks at the time */

struct reclaim_walk {
	struct store *store;
	uint32_t segment;
	uint64_t sequence, written_ms;
	uint32_t now_seconds;
	uint64_t records, reinserted, dropped;
	bool broken; /* a fault point */
	/* The record that is wanted: */
	uint64_t hash;
	struct fidx_key key;
	struct fidx_match match;
	bool kept; /* its object is worth to be kept ... */
	bool for_floor; /* ... as its application's floor needs it */
	bool asked; /* its worth was asked for, and again has the features for the stay that begins */
	struct clf_features again;
};

/* For the record of walk->hash, and of walk->match (ghost and read_on_flash): */

/* May the rule keep that live record? A quick answer, without an offer to the classifier: a record that may be kept is offered by
   reclaim_item; one that may not is offered now. No stripe is held. */
FS_MUST_CHECK bool reclaim_is_worthy(struct reclaim_walk *walk, const struct seg_record *record);
/* Returns the record as an item for DRAM, if the rule keeps it; NULL: it doesn't, or there is no memory. No stripe is held. */
struct item *reclaim_item(struct reclaim_walk *walk, const struct seg_record *record);
/* The flash object of a clean copy goes, and the copy becomes the object itself. Without effect on other items. The stripe is
   held. */
void copy_becomes_original(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item);
/* Links an item that goes back into DRAM, and takes it over. False: there was no memory, and nothing has changed. The stripe is
   held. */
FS_MUST_CHECK bool reclaim_link(struct reclaim_walk *walk, struct stripe *stripe, struct item *item, unsigned clock);
/* At fault points: true if the walk is to end here, as if the rest could not be read. */
FS_MUST_CHECK bool reclaim_walk_fails(struct reclaim_walk *walk);

/* reclaim_bins.c. Walks over a segment of bins, which is open: what is worth it goes back into DRAM. A code of seg_walk. */
FS_MUST_CHECK int reclaim_bins(struct reclaim_walk *walk);

#endif
