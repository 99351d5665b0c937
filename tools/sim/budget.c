/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/budget.h"

#include <math.h>

#define CLASSES_PER_POWER 8
#define CLASS_OF_ONE 384 /* scores are hits per byte: most are far below 1 */
#define FORGET 0.5 /* what a window leaves of the counts before it */
#define REPAY 0.5 /* the share of the balance that the next window makes up for */

void budget_init(struct budget *budget, double share, double window_bytes)
{
	*budget = (struct budget){ .share = share, .window_bytes = window_bytes, .window_left = window_bytes };
}

static unsigned class_of(double score)
{
	double row = floor(log2(score) * CLASSES_PER_POWER) + CLASS_OF_ONE;

	return row < 0 ? 0 : row >= BUDGET_CLASSES ? BUDGET_CLASSES - 1 : (unsigned)row;
}

static void end_window(struct budget *budget)
{
	double target = budget->earned * budget->share + budget->balance * REPAY, taken = 0;
	unsigned row = BUDGET_CLASSES;

	while (row > 0 && taken < target)
		taken += budget->offered[--row];
	/* What is offered is less than the budget: everything is taken. */
	budget->threshold = taken < target ? 0 : row;
	for (row = 0; row < BUDGET_CLASSES; row++)
		budget->offered[row] *= FORGET;
	budget->earned *= FORGET;
	/* What nobody could use is not saved up for ever. */
	if (budget->balance > budget->window_bytes * budget->share)
		budget->balance = budget->window_bytes * budget->share;
	budget->window_left = budget->window_bytes;
}

void budget_earn(struct budget *budget, uint64_t bytes)
{
	budget->earned += (double)bytes;
	budget->balance += (double)bytes * budget->share;
	budget->window_left -= (double)bytes;
	if (budget->window_left <= 0) /* a write larger than windows ends one */
		end_window(budget);
}

/* Who is in debt by a window's budget is asked for twice the score, so that no burst waits for the window's end. */
static unsigned threshold_now(const struct budget *budget)
{
	double windows = -budget->balance / (budget->window_bytes * budget->share);

	if (windows <= 0)
		return budget->threshold;
	return budget->threshold + (unsigned)(windows < BUDGET_CLASSES ? windows * CLASSES_PER_POWER : BUDGET_CLASSES);
}

bool budget_admit(struct budget *budget, double score, uint64_t bytes)
{
	unsigned row;

	if (budget->share <= 0)
		return true;
	if (!(score > 0))
		return false;
	row = class_of(score);
	budget->offered[row] += (double)bytes;
	if (row < threshold_now(budget) || (row == budget->threshold && budget->balance <= 0))
		return false;
	budget->balance -= (double)bytes;
	return true;
}
