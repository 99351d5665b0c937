/* SPDX-License-Identifier: BSD-3-Clause */
/* Promotion: which objects get a clean copy in DRAM when they are read on flash. Part of the store's configuration. */
#ifndef FS_STORE_PROMOTION_H
#define FS_STORE_PROMOTION_H

enum store_promote {
	STORE_PROMOTE_OFF,
	STORE_PROMOTE_SKETCH, /* objects that are hot by a weighted Count-Min sketch (SpotKV, III.B) */
	STORE_PROMOTE_LRU, /* every object */
	STORE_PROMOTE_SECOND /* an object that was read before since it lies on flash */
};

/* Constant after open. Without flash, and with evict = false, nothing is promoted. */
struct store_promotion {
	enum store_promote rule;
	/* Of memory_bytes that copies may take: above 0, at most 0.5. 0, the default: it moves by itself (dram/share.h). */
	double share;
	double miss_cost; /* with share 0: the flash reads that a miss is worth; 0 .. 1000000, default 50 */
	unsigned width; /* counters in each of the sketch's rows: 16 .. 1048576, default 256 */
	double threshold; /* hotness of a sketch in percent, see sketch_add: 0 .. 25, default 0.19 */
};

#endif
