/* SPDX-License-Identifier: BSD-3-Clause */
/* Promotion: which objects get a clean copy in DRAM when they are read on flash. Part of the store's configuration. */
#ifndef FS_STORE_PROMOTION_H
#define FS_STORE_PROMOTION_H

enum store_promote {
	STORE_PROMOTE_OFF,
	STORE_PROMOTE_SKETCH, /* objects that are hot by a weighted Count-Min sketch (SpotKV, III.B) */
	STORE_PROMOTE_LRU /* every object */
};

/* Constant after open. Without flash, and with evict = false, nothing is promoted. */
struct store_promotion {
	enum store_promote rule;
	double share; /* of memory_bytes that copies may take: above 0, at most 0.5; default 0.02 */
	unsigned width; /* counters in each of the sketch's rows: 16 .. 1048576, default 256 */
	double threshold; /* hotness of a sketch in percent, see sketch_add: 0 .. 25, default 0.19 */
};

#endif
