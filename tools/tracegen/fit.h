/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fits a plan to its published hit ratio by a bisection of the Zipf exponent of its core keys. If no
 * exponent in range gives the ratio, the fit moves the share of keys born after the first day (first
 * requests alone cost too many misses, or too few), or it shortens the lives of the keys (the
 * allocation can't hold all keys that live at a time). A large plan is fitted on a part of it, with keys
 * and allocation reduced alike.
 */
#ifndef FS_TOOLS_TRACEGEN_FIT_H
#define FS_TOOLS_TRACEGEN_FIT_H

#include "tools/common/app_plan.h"

#define FIT_ALPHA_LOW 0.4
#define FIT_ALPHA_HIGH 1.3

/* Sets plan->alpha, late and pace. The plan stays as it is without a published figure, or if its allocation is too
   small at this scale. */
void fit_plan(struct plan *plan, const struct plan_shares *shares, uint64_t seed);

#endif
