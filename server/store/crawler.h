/* SPDX-License-Identifier: BSD-3-Clause */
/* The crawler through DRAM, part of store.h, which includes it. Any thread makes these calls. */
#ifndef FS_STORE_CRAWLER_H
#define FS_STORE_CRAWLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct store;

/*
 * The keeper looks through DRAM again and again, once a minute, and frees expired objects; an expired object on flash
 * is dropped when a request meets it. memcached's lru_crawler commands act on these passes.
 */
struct store_crawler {
	bool enabled; /* lru_crawler enable: passes begin by themselves. Rescoring for flash goes on without */
	/* lru_crawler sleep: a pause after each STORE_CRAWL_BATCH objects of a crawl that was asked for, or of a walk;
	   0 .. 1000000 */
	uint32_t sleep_us;
	/* lru_crawler tocrawl: how many objects of each size class a crawl that was asked for looks at; 0: all */
	uint32_t to_crawl;
};
#define STORE_CRAWL_BATCH 1000u
#define STORE_CRAWL_SLEEP_US 100u /* at the start, with the crawler enabled and a to_crawl of 0 */
#define STORE_CRAWL_SLEEP_MAX_US 1000000u
/* Fills out with the present values. */
void store_get_crawler(const struct store *store, struct store_crawler *out);
/* A sleep_us above the greatest counts as the greatest. Acts on crawls under way too, except for to_crawl. */
void store_set_crawler(struct store *store, const struct store_crawler *crawler);

/* For lru_crawler crawl: begins to look through all of DRAM for expired objects, in the background, also when the
   crawler is disabled. False: a crawl that was asked for is still under way, and this one doesn't begin. */
FS_MUST_CHECK bool store_crawl(struct store *store);

struct store_crawler_status {
	bool running; /* a crawl that was asked for is under way: lru_crawler_running */
	/* Counters of these names, since the start or the last reset: */
	uint64_t starts; /* lru_crawler_starts: passes begun, by themselves or asked for */
	uint64_t checked; /* crawler_items_checked */
	uint64_t reclaimed; /* crawler_reclaimed */
};
/* Fills out with the crawler's state and counters. */
void store_get_crawler_status(const struct store *store, struct store_crawler_status *out);

#endif
