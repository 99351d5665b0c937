/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From samples of a server to what happened between them, and from several servers to their sum.
 *
 *   sample ──┐
 *   sample ──┴─> track ──> basis ──┐
 *                track ──> basis ──┴─> basis of all ──> figures (figures.def)
 *
 * A counter that has gone back ("stats reset"), or a process that is another one (restart), has no rate for that one poll,
 * rather than a wrong one; the base, if there was one, is then forgotten.
 *
 * Threads: one owner. Nothing is allocated.
 */
#ifndef FS_TOOLS_TOP_TRACK_H
#define FS_TOOLS_TOP_TRACK_H

#include "tools/top/sample.h"

/* What figures are computed from; NAN where it isn't known. */
struct basis {
	double value[FIELD_COUNT]; /* as the server says */
	double rate[FIELD_COUNT]; /* counters: per second, since the poll before */
	double total[FIELD_COUNT]; /* counters: since the server's start or reset, or since the base */
	double timing[TIMINGS][TIMING_PARTS];
	double timing_rate[TIMINGS]; /* events per second */
	double timing_time[TIMINGS]; /* microseconds that these took, per second: mean x rate */
	struct app app_rate[APPS_MAX];
	struct app app_total[APPS_MAX]; /* the same applications in the same places */
	unsigned app_count;
};

enum track_event { TRACK_STEADY, TRACK_RESET, TRACK_RESTARTED };

struct track {
	struct sample now, before, base;
	bool has_now, has_before, has_base;
	enum track_event event; /* what the last sample brought */
};

/* The next sample. One with another process id, or less uptime, comes from another process. */
void track_add(struct track *track, const struct sample *sample);

/* From now on totals count from the last sample; the server's own counters stay. */
void track_rebase(struct track *track);

void basis_of(const struct track *track, struct basis *basis);

/* Nothing is known. */
void basis_clear(struct basis *basis);
/* Into sum, which has been cleared, one after the other: see AGGREGATE in fields.def. Durations: the worst. */
void basis_add(struct basis *sum, const struct basis *one);

#endif
