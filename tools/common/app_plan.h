/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The counts of each kind of key and request in an application's share of the trace.
 *
 *   keys   = silent (seen by a miss alone) + unread (one get of known size) + core (two or more)
 *   gets   = births (misses) + refills (misses) + known
 *   sets   = births + refills + overwrites
 *
 * The shares of silent and unread keys are not published per application. They are chosen, once
 * for all twenty, so that the whole has the published shares of writes and unread writes.
 *
 * Threads: any, as the functions are pure.
 */
#ifndef FS_TOOLS_COMMON_APP_PLAN_H
#define FS_TOOLS_COMMON_APP_PLAN_H

#include <stdint.h>

#include "tools/common/apps.h"

/* Shares that hold for the whole trace. */
struct plan_shares {
	double silent; /* of the keys of every application */
	double unread; /* of the other keys, in the applications that take the one-shots */
	double unread_rest; /* the same in the others */
	double small_unread; /* value size of an unread key, relative to a core key's */
	double update; /* gets that find another size than before, where an application has room for them */
};

struct plan {
	const struct app *app;
	double scale;
	double span_s;
	uint64_t keys, silent, unread, core;
	uint64_t birth_sets; /* keys whose life starts with a miss and a set; the others are present from the start */
	uint64_t known; /* gets with a known size */
	uint64_t refills, overwrites, deletes;
	uint64_t adds, incrs, others;
	uint64_t allocation;
	double small_unread;
	double update; /* share of the known gets that are to find another size than the one before */
	/* These are fitted: */
	double alpha; /* of the core keys' popularity */
	double late; /* share of the keys born after the first seventh of the span */
	double pace; /* length of the keys' lives: 1 = hours to days of a week */
};

/* Fits the shares to the published table. */
void plan_shares(struct plan_shares *shares);

/* Fills in all counts for an application at a scale (1 = as published) over span_s seconds. alpha, late and pace
   get first values, which a fit may change. */
void plan_make(struct plan *plan, const struct app *app, const struct plan_shares *shares, double scale, double span_s);

#endif
