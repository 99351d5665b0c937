/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Walks segments with several threads and gives the caller each segment's outcome in the requested
 * order. An overwrite by a daemon is no damage: a segment with failures counts as being written when its
 * header has changed since the first look. On a flash in use a failed segment is walked a second time, a
 * moment later, before a failure counts.
 *
 * Threads: scan_run makes and joins its own. `record` is called on them, each segment's on one thread
 * at a time with a state of its own; `begin`, `drop` likewise; `end` on the caller's thread alone.
 * Errors: the program ends when memory is out (exit status 2).
 */
#ifndef FS_TOOLS_INSPECT_SCAN_H
#define FS_TOOLS_INSPECT_SCAN_H

#include "tools/inspect/segment.h"
#include "tools/inspect/walk.h"

/* Failures kept of one segment; more are counted only. */
#define SCAN_FAILURES_KEPT 1000u
#define SCAN_TEXT_BYTES 160

struct scan_failure {
	uint64_t offset; /* within the segment */
	char text[SCAN_TEXT_BYTES];
};

struct scan_outcome {
	struct segment segment; /* its present state */
	bool walked; /* the segment was complete; totals and state are of its records */
	struct walk_totals totals;
	uint64_t failures; /* all of it; a segment that is broken as a whole counts one */
	struct scan_failure *kept;
	uint32_t kept_count;
	void *state; /* from begin; NULL unless walked */
};

struct scan_ops {
	/* Returns a state for one walk of a segment; the callback may be NULL. */
	void *(*begin)(void *context, const struct segment *segment);
	void (*record)(void *state, const struct format_record *record, bool good); /* or NULL */
	/* Gets the outcome, whose arrays are freed after the call. The callee owns the state. */
	void (*end)(void *context, const struct scan_outcome *outcome);
	/* Frees the state of a walk without an outcome. */
	void (*drop)(void *state);
};

struct scan_request {
	const struct flash *flash;
	const uint32_t *numbers; /* of the segments, in the order of end() */
	uint32_t count;
	uint64_t newest; /* from segment_look_at_all */
	unsigned threads;
	bool quiet; /* no progress on standard error */
	const char *note; /* for the progress line */
};

/* Returns when all outcomes were given to ops->end. Returns the bytes read, footers and second walks included. */
uint64_t scan_run(const struct scan_request *request, const struct scan_ops *ops, void *context);

#endif
