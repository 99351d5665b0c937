/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One threshold for scores, moved so that flash is written at a share of the bytes that applications write.
 *
 * The bytes offered are counted by score, in 512 classes an eighth of a power of two wide, and halved from window to window.
 * At a window's end the threshold becomes the class from which on the offers are as large as the budget. In that class
 * itself an offer is taken while less was written than is allowed.
 *
 * Threads: one.
 */
#ifndef FS_TOOLS_SIM_BUDGET_H
#define FS_TOOLS_SIM_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_CLASSES 512

struct budget {
	double share; /* 0: everything is taken */
	double window_bytes, window_left; /* of applications' writes */
	double offered[BUDGET_CLASSES], earned; /* of late */
	double balance; /* allowed, and not written */
	unsigned threshold; /* a class */
};

/* window_bytes: more than 0. */
void budget_init(struct budget *budget, double share, double window_bytes);

/* Applications wrote so many bytes. */
void budget_earn(struct budget *budget, uint64_t bytes);

/* Is an object with this score (at least 0) and size to be written? If so, its bytes count as written. A score of 0 is
   refused, unless there is no budget. */
bool budget_admit(struct budget *budget, double score, uint64_t bytes);

#endif
