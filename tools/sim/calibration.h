/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine's labelled samples of a run say: how far its expectations came true, and how its features go
 * with the accesses that followed.
 *
 * Expectations are in units of aged counts. The samples that a model may be trained with tell how many accesses such a unit
 * stands for; the held-out ones, whose keys it has never seen, are compared. Each was judged by the model in use soon after its label. A sample has 64 accesses at most, as in training.
 *
 * Threads: one. Aborts when memory is out (a tool). The JSON that is returned is the caller's.
 */
#ifndef FS_TOOLS_SIM_CALIBRATION_H
#define FS_TOOLS_SIM_CALIBRATION_H

#include <jansson.h>

#include "tools/sim/sample_set.h"

/*
 * {"samples": held-out ones, "model": [row, ...] or null, "count": [row, ...]}, for expectations by the model in use and by
 * the count, each with a row for each tenth of the samples, the least worth first:
 * {"samples": n, "worth": mean, "expected": accesses for each sample, "observed": likewise}.
 * "model" has those that were labelled while one was in use. null: fewer than ten samples are there, or, for all, no sample
 * to train with saw an access.
 */
json_t *calibration_json(const struct sample_set *set);

/*
 * [{"feature": name, "rows": [row, ...]}, ...]: the samples by each feature, in up to twelve rows of about equally many and
 * of different values: {"samples": n, "value": median, "accesses": mean, "read": share with an access or more,
 * "read_often": share with more than ten}. Gaps: of objects that were read. null: there are no samples.
 */
json_t *features_json(const struct sample_set *set);

#endif
