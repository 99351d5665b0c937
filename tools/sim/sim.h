/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A trace against a cache policy in virtual time. The driver steps through the requests, asks the policy, and counts;
 * a policy is a table of functions over objects that have a number and a size, but no bytes.
 *
 *   spool -> schedule -> run (driver.c) --access--> policy (baselines, or the engine itself)
 *                             |                        |
 *                             +--- counts, series <----+--- bytes written, reads
 *
 * Replay is look-aside: a get that misses is followed by a set of the same object. Sets and deletes of the trace are
 * played as they are. Time is the trace's, from 0; warm-up is left out of all counts.
 *
 * Threads: a run has one thread, and one process, because the engine's counters belong to the process.
 */
#ifndef FS_TOOLS_SIM_SIM_H
#define FS_TOOLS_SIM_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "tools/common/spool.h"
#include "tools/sim/sample_set.h"

/* What a policy is told about a request. */
struct sim_access {
	uint32_t object; /* dense number of the key: key * copies + copy */
	uint32_t app; /* dense number of the application */
	uint32_t key_bytes; /* at least 1 */
	uint32_t value_bytes;
	uint64_t time_us; /* since the start; never goes back */
	uint64_t number; /* of the request, from 0 */
};

/* When an object that is in the cache gets the size of a request. The latter two are the referee's, for textbook policies:
   a set is an access like a get there, and leaves an object that is in the cache where it is. */
enum sim_sizes {
	SIM_SIZES_OF_SETS, /* a set writes the object anew */
	SIM_SIZES_KEPT, /* own-A: never */
	SIM_SIZES_OF_ACCESSES, /* own-B: at every access */
};

/* What a policy may use, and how it counts bytes. */
struct sim_space {
	uint64_t dram_bytes; /* for objects, by the charges below; 0 only where the policy has no DRAM */
	uint64_t memory_bytes; /* -m: every cost counted; 0: dram_bytes counts. The engine alone knows it */
	uint64_t flash_bytes; /* 0: a cache in DRAM alone */
	uint64_t segment_bytes; /* the unit of writing to flash; 0: the policy's own default */
	uint32_t dram_charge; /* beside the object's bytes, for each object in DRAM */
	uint32_t flash_charge; /* the same for flash: a record's header */
	bool value_bytes_only; /* an object's bytes are its value's, at least 1; else key and value */
	bool objects_only; /* every object has one byte: the sizes above are numbers of objects */
	enum sim_sizes sizes;
};

struct sim_config {
	struct sim_space space;
	double clwa; /* the byte budget: flash bytes written per byte that applications write; 0: none */
	bool has_clwa; /* it was given; else the engine takes its own */
	uint64_t train_us, horizon_us; /* of what learns; 0: the policy's defaults */
	uint64_t objects; /* object numbers are below */
	uint32_t apps;
	uint64_t seed;
	double parameter; /* of policies with one (ops->parameter) */
	bool reinsert; /* NAME:reinsert: what was read on flash is written again when its segment is reclaimed */
	/* The number of the object's next get, if neither a set nor a delete comes before it; else UINT64_MAX. NULL for
	   policies that don't ask (needs_future). */
	uint64_t (*next_get)(void *context, uint32_t object);
	void *context;
	const char *options; /* NAME=VALUE,... for the engine; NULL: none */
	const char *
		model_output; /* the engine writes each accepted model to this file, which isn't there yet; NULL: none */
};

/* Since the policy was made, warm-up included; the driver takes differences. */
struct sim_figures {
	uint64_t flash_bytes_written; /* as issued to the device, padding included */
	uint64_t flash_bytes_merged; /* of these: what was on flash before, and was written again by merges of slsm */
	uint64_t flash_reads, flash_hits;
	uint64_t flash_reads_missed; /* of flash_reads: those of gets that missed; the engine's and slsm's */
	/* The engine's alone; 0 under other policies. Of reads of keys; hits of records below 1 KiB with a read of their own, and
	   the pages of these reads; bytes read by reclaim. */
	uint64_t flash_pages, flash_key_bytes, small_hits, small_pages, reclaim_bytes;
	double segment_fill; /* of the segments now; 0 under other policies */
	uint64_t dram_objects, flash_objects; /* now */
	uint64_t fixed_bytes; /* of memory_bytes: what objects can't have */
	/* The engine's, now: DRAM for objects on flash, and large objects there. */
	uint64_t index_bytes, extents;
	uint64_t false_matches; /* of flash_reads: those that met another key's record; the engine's alone */
	double copy_share; /* of memory_bytes: what the engine's clean copies may take, now */
	bool has_model; /* the engine has a trained model in use; the next two are its own, on held-out samples */
	double precision, recall;
	const char
		*model_origin; /* the engine's model: where it comes from; NULL under other policies. Static storage */
	char model_reason[96]; /* why the last model is used or not; "" under other policies */
};

struct sim_policy; /* each policy's own */

struct sim_policy_ops {
	const char *name;
	const char *help; /* a line: what it does, and where it comes from */
	bool needs_future; /* asks next_get */
	bool textbook; /* one tier of dram_bytes + flash_bytes in DRAM; plays by the referee's rules too */
	bool reinserts; /* knows NAME:reinsert */
	const char *parameter; /* what NAME:NUMBER is, and its range; NULL: there is none */
	double parameter_default, parameter_low, parameter_high;
	/* FS_OK, or FS_EINVAL or FS_ENOMEM with a sentence in reason. */
	int (*create)(struct sim_policy **out, const struct sim_config *config, char reason[256]);
	/* A get. True: a hit. */
	bool (*get)(struct sim_policy *policy, const struct sim_access *access);
	/* The object is written: by the trace, or after a get that missed (filled). */
	void (*set)(struct sim_policy *policy, const struct sim_access *access, bool filled);
	void (*remove)(struct sim_policy *policy, const struct sim_access *access);
	void (*figures)(const struct sim_policy *policy, struct sim_figures *out);
	/* The labelled samples that it has now; their number, or a code. The caller frees *out by mem_free. NULL: the policy
	   takes no samples. */
	long (*samples)(struct sim_policy *policy, struct clf_labelled **out);
	void (*destroy)(struct sim_policy *policy);
};

/* All policies, NULL at the end. */
extern const struct sim_policy_ops *const sim_policies[];

/* Reads NAME[:reinsert][:PARAMETER]. FS_OK, with the parameter's default where none is given; FS_EINVAL with a sentence
   in reason. */
FS_MUST_CHECK int sim_policy_parse(const char *text, const struct sim_policy_ops **policy, bool *reinsert,
				   double *parameter, char reason[256]);

/* An object's bytes by the rules of the space, without a charge. */
static inline uint64_t sim_object_bytes(const struct sim_space *space, const struct sim_access *access)
{
	uint64_t bytes =
		space->value_bytes_only ? access->value_bytes : (uint64_t)access->key_bytes + access->value_bytes;

	return bytes && !space->objects_only ? bytes : 1;
}

/* ---- a run ----------------------------------------------------------------------------------- */

struct sim_counts {
	uint64_t requests, gets, hits, sets, deletes;
	uint64_t get_bytes, hit_bytes; /* of objects asked for, and found */
	uint64_t app_bytes_written; /* key and value of every set, filled ones too */
};

#define SIM_SERIES 200 /* points over the trace */

struct sim_point {
	uint64_t time_us; /* its end */
	struct sim_counts counts; /* from the start to it, warm-up included */
	uint64_t flash_bytes_written;
};

struct sim_result {
	struct sim_counts all; /* after warm-up */
	struct sim_counts *apps; /* of each application, after warm-up */
	struct sim_figures begin, end; /* at the end of warm-up, and at the end */
	struct sim_point series[SIM_SERIES];
	uint32_t points;
	struct sample_set samples; /* after warm-up, of policies that take some */
	double cpu_seconds;
};

struct sim_run {
	const struct sim_policy_ops *policy;
	struct sim_config config;
	const struct spool *spool;
	uint32_t copies; /* at least 1 */
	uint64_t limit; /* requests; UINT64_MAX: all */
	uint64_t warmup_us; /* of trace time */
	bool changed_is_update; /* a get with another size than the object's is a miss and a set, as in the paper's accounting */
	uint32_t sample; /* one object of so many is played, by a hash of its number; 0 and 1: all are */
	/* Called now and then with the share that is done. NULL: not called. */
	void (*progress)(void *context, double share);
	void *progress_context;
};

/* Plays the trace. config.next_get is the driver's. FS_OK; else a code of create with its reason. The caller frees
   out->apps by mem_free, and out->samples by sample_set_fini. */
FS_MUST_CHECK int sim_play(const struct sim_run *run, struct sim_result *out, char reason[256]);

#endif
