/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the worker is asked for, as JSON, and the runs that it becomes. flashield_sim.py writes it.
 *
 *   {"trace": {"path": text, "format": text, "copies": n, "limit": n}, "jobs": n, "seed": n, "runs": [run, ...]}
 *   run: {"policy": "NAME[:reinsert][:PARAMETER]",
 *         "dram_bytes": n | "memory_bytes": n | "capacity": share, "ratio": flash / DRAM; "flash_bytes": n,
 *         "segment_bytes": n, "clwa": x, "warmup_us": n, "train_us": n, "horizon_us": n, "sample": n,
 *         "accounting": "full" | "values" | "objects", "referee": "own-A" | "own-B",
 *         "changed_is_update": true, "options": "NAME=VALUE,...", "model_output": path}
 *
 * What is missing or null has its default. The trace decides about capacity and times, so a run is complete only then.
 *
 * Threads: one. Errors: each ends the program with a line that names the option of flashield-sim.
 */
#ifndef FS_TOOLS_SIM_SPEC_H
#define FS_TOOLS_SIM_SPEC_H

#include <jansson.h>

#include "tools/sim/sim.h"

struct spec {
	json_t *json; /* the texts below lie in it */
	struct spool_options trace;
	uint32_t copies;
	uint64_t limit; /* of the trace's requests; UINT64_MAX: none */
	unsigned jobs;
	size_t run_count;
};

/* Reads JSON from standard input and checks all that doesn't need the trace. fini frees. */
void spec_read(struct spec *spec);
void spec_fini(struct spec *spec);

/* The bytes of all keys' first values, and the keys, of one copy. */
struct spec_working_set {
	uint64_t bytes, keys;
};
struct spec_working_set spec_working_set(const struct spool *spool);

/* A run by its number. */
struct sim_run spec_run(const struct spec *spec, size_t number, const struct spool *spool,
			const struct spec_working_set *set);

/* Its policy as it was asked for. */
const char *spec_policy_name(const struct spec *spec, size_t number);

#endif
