/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns samples of a server into the changes between them, and several servers into their sum.
 *
 *   sample ──┐
 *   sample ──┴─> track ──> basis ──┐
 *                track ──> basis ──┴─> basis of all ──> figures (figures.def)
 *
 * A counter that went back ("stats reset") and a new process (restart) have no rate for one poll, because it would be
 * wrong. The base, if there is one, is dropped then.
 *
 * Threads: one owner. Nothing is allocated.
 */
#ifndef FS_TOOLS_TOP_TRACK_H
#define FS_TOOLS_TOP_TRACK_H

#include "tools/top/sample.h"

/* The input of all figures; NAN means unknown. */
struct basis {
	double value[FIELD_COUNT]; /* from the server's report */
	double rate[FIELD_COUNT]; /* counters: per second, since the poll before */
	double total[FIELD_COUNT]; /* counters: since the server's start or reset, or since the base */
	double timing[TIMINGS][TIMING_PARTS];
	double timing_rate[TIMINGS]; /* events per second */
	double timing_time[TIMINGS]; /* microseconds that these events took, per second: mean x rate */
	struct app app_rate[APPS_MAX];
	struct app app_total[APPS_MAX]; /* the same applications at the same indices */
	unsigned app_count;
};

enum track_event { TRACK_STEADY, TRACK_RESET, TRACK_RESTARTED };

struct track {
	struct sample now, before, base;
	bool has_now, has_before, has_base;
	enum track_event event; /* of the last sample */
};

/* Adds the next sample. A sample with another process id, or less uptime, comes from another process. */
void track_add(struct track *track, const struct sample *sample);

/* Makes totals count from the last sample; the server's own counters stay. */
void track_rebase(struct track *track);

/* Computes the basis of one server. */
void basis_of(const struct track *track, struct basis *basis);

/* Makes all values unknown. */
void basis_clear(struct basis *basis);
/* Adds a server to sum, which the caller clears before the first one: see AGGREGATE in fields.def. Of durations the sum
   has the worst. */
void basis_add(struct basis *sum, const struct basis *one);

#endif
