/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fits a plan to its published hit ratio: the Zipf exponent of its core keys by bisection. Where no
 * exponent in range gives it, the share of the keys that are born after the first day is moved (if
 * first requests alone cost too many misses, or too few), or the lives of the keys are shortened (if
 * the allocation can't hold what is alive at a time). Large plans are fitted on a part of theirs, keys and
 * allocation reduced alike.
 */
#ifndef FS_TOOLS_TRACEGEN_FIT_H
#define FS_TOOLS_TRACEGEN_FIT_H

#include "tools/common/app_plan.h"

#define FIT_ALPHA_LOW 0.4
#define FIT_ALPHA_HIGH 1.3

/* Sets plan->alpha, late and pace. Without a published figure, or with an allocation too small at
   this scale, the plan stays as it is. */
void fit_plan(struct plan *plan, const struct plan_shares *shares, uint64_t seed);

#endif
