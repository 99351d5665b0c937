/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When was an id given? Every write gets an id, and ids rise, so that the id of an object tells the time of its last change,
 * in DRAM as well as on flash. A mark a second says which id came next then. The marks of longer ago are thinned out, so
 * that their distance grows with their age, and the time of any id is known to a few percent of its age.
 *
 *   marks:  |         |       |     |   |  | | |||||  now
 *
 * Threads: any; a leaf lock covers the marks.
 */
#ifndef FS_STORE_ID_TIMES_H
#define FS_STORE_ID_TIMES_H

#include "server/store/state/state.h"

/* Makes the marks, and begins them. */
void id_times_init(struct store *store);
void id_times_fini(struct store *store);
/* Forgets all marks but one for now: ids below the next one come from an earlier process. Before requests are served. */
void id_times_begin(struct store *store);
/* Sets a mark. About once a second. */
void id_times_note(struct store *store);
/* Returns the seconds since an id was given. *earlier: before id_times_begin; then it is the seconds since that. */
uint32_t id_age_seconds(const struct store *store, uint64_t id, uint64_t now_ms, bool *earlier);

#endif
