/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended requests: as the meta and binary protocols make them, in one line each, and objects put
 * where they are to be met: in DRAM, as a clean copy, on flash, on their way there.
 */
#ifndef FS_TESTS_STORE_ASKING_H
#define FS_TESTS_STORE_ASKING_H

#include "harness.h"

struct asked {
	enum store_op op;
	struct store_options options;
	const char *value; /* of ops that take an object */
	uint32_t flags;
	int64_t exptime; /* of the object, or of the touch */
	uint64_t cas, delta;
};

/* True when it finished at once. */
bool start_asking(struct harness *h, unsigned worker, struct flight *f, const char *key, struct asked asked);
struct reply ask(struct harness *h, const char *key, struct asked asked);
/* A GET with t options, options in braces: ASK(h, "key", .vivify = true). */
#define ASK(h, key, ...) ask(h, key, (struct asked){ .op = STORE_GET, .options = { __VA_ARGS__ } })

/* Runs act on a key that holds "10" with flags 77, id cas and a life of 100 seconds, for each place where
   it may lie; the store is opened anew for each. */
void in_every_place(struct harness *h, void (*act)(struct harness *h, const char *key, uint64_t cas));
/* Runs act on a key that isn't there: never was, deleted or expired in DRAM or on flash, flushed on flash. */
void in_every_absence(struct harness *h, void (*act)(struct harness *h, const char *key));

/* Marks as an extended look finds them. */
#define assert_marks(h, key, stale, win_sent) assert_marks_at(h, key, stale, win_sent, __FILE__, __LINE__)
void assert_marks_at(struct harness *h, const char *key, bool stale, bool win_sent, const char *file, int line);

#endif
