/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The twenty applications of the week-long Memcachier trace, as published: request and key
 * counts, operation mix, mean value and allocation from the statistics beside the authors'
 * program (github utah-scs/lsm-sim), hit ratios from the Flashield paper's tables 5 (LRU) and
 * 6 (victim cache, an LRU over DRAM and flash), shares from its table 2 and figure 2.
 *
 * Threads: any, as all is constant.
 */
#ifndef FS_TOOLS_COMMON_APPS_H
#define FS_TOOLS_COMMON_APPS_H

#include <stdbool.h>
#include <stdint.h>

#define APP_COUNT 20

/* The published figures of the whole trace, in the paper's accounting. It looks at the gets with a known size only:
   the first get of a key counts as a write, a get with another size than before as an update, all others as reads. */
#define PUBLISHED_WRITE_SHARE 0.095
#define PUBLISHED_UPDATE_SHARE 0.005
#define PUBLISHED_UNREAD_SHARE 0.606 /* of the writes */
#define PUBLISHED_OBJECT_BYTES 257.0 /* mean key + value of written objects */
#define PUBLISHED_SMALL_SHARE 0.8067 /* of written objects below 1 KB */
#define PUBLISHED_SPAN_S 604800.0
#define PUBLISHED_REQUESTS 1615047950.0
#define PUBLISHED_KEYS 121073693.0

struct app {
	uint32_t id;
	double requests_m; /* millions */
	double keys;
	double get, set, delete, add, incr; /* percent of the requests; what is left over: stats and others */
	double mean_value; /* bytes, over all rows with a value */
	double allocation; /* bytes that the customer had */
	double hit; /* percent, LRU at that allocation; 0 = not published */
	/* Not published; assumptions of ours: */
	double late; /* share of the keys born after the first day, where no hit ratio decides it */
	double refill; /* share of the sets beyond one per key that follow a miss */
	double size_sigma; /* of the log-normal value sizes */
	uint32_t key_low, key_high; /* key sizes */
	bool one_shots; /* takes its part of the keys that are read once only */
};

extern const struct app app_table[APP_COUNT];

/* Returns the index of an id in app_table, or -1. */
int app_find(uint32_t id);

#endif
