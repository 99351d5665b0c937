/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The labelled samples of a whole run. The engine keeps the latest ones only; they are taken from it now and then, and each
 * is kept once, as it was when it came first.
 *
 * Threads: one. Aborts when memory is out (a tool).
 */
#ifndef FS_TOOLS_SIM_SAMPLE_SET_H
#define FS_TOOLS_SIM_SAMPLE_SET_H

#include <stddef.h>

#include "classifier/classifier.h"

struct sample_set {
	struct clf_labelled *sample; /* by id */
	size_t count;
};

/* Adds those that are not there yet. A zeroed set is empty. */
void sample_set_add(struct sample_set *set, const struct clf_labelled *samples, size_t count);
void sample_set_fini(struct sample_set *set);

#endif
