/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/spec.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/common/args.h"
#include "tools/sim/policies.h"

#define HEADER_BYTES 32 /* of a record on flash */
#define ITEM_BYTES 36 /* of an object in DRAM: its header and its part of the table */
#define KEY_BYTES 30 /* where a trace doesn't know */
#define VALUE_BYTES 100
#define SHARE_OF_SPAN 7 /* warm-up and training */
#define HORIZON_OF_SPAN 168
#define OBJECTS_MOST (UINT32_MAX - 1)

static const char *const accountings[] = { "full", "values", "objects", NULL };
static const char *const referees[] = { "none", "own-A", "own-B", NULL };

/* ---- values ---------------------------------------------------------------------------------- */

static bool has(const json_t *from, const char *name)
{
	const json_t *value = json_object_get(from, name);

	return value && !json_is_null(value);
}

static double real_of(const json_t *from, const char *name, double otherwise)
{
	return has(from, name) ? json_number_value(json_object_get(from, name)) : otherwise;
}

static uint64_t count_of(const json_t *from, const char *name, uint64_t otherwise)
{
	double value = real_of(from, name, (double)otherwise);

	if (!has(from, name))
		return otherwise;
	if (!(value >= 0 && value < 0x1p63))
		arg_die("%s: %g is no number from 0 to 2^63", name, value);
	return (uint64_t)value;
}

static const char *text_of(const json_t *from, const char *name, const char *otherwise)
{
	const char *text = json_string_value(json_object_get(from, name));

	return text ? text : otherwise;
}

/* ---- before the trace ------------------------------------------------------------------------ */

static json_t *run_of(const struct spec *spec, size_t number)
{
	return json_array_get(json_object_get(spec->json, "runs"), number);
}

const char *spec_policy_name(const struct spec *spec, size_t number)
{
	return text_of(run_of(spec, number), "policy", "");
}

static void check_run(const struct spec *spec, size_t number)
{
	const json_t *run = run_of(spec, number);
	const struct sim_policy_ops *policy;
	bool reinsert;
	double parameter;
	char reason[256];

	if (sim_policy_parse(spec_policy_name(spec, number), &policy, &reinsert, &parameter, reason) != FS_OK)
		arg_die("--policy: %s", reason);
	if (has(run, "memory_bytes") && policy != &sim_engine)
		arg_die("--memory: %s has no other costs than its objects'; give --dram", policy->name);
	if (has(run, "referee") && !policy->textbook)
		arg_die("--referee: %s is none of the policies with one tier (lru, fifo, clock1 to clock3)",
			policy->name);
	if (has(run, "options") && policy != &sim_engine)
		arg_die("--option: %s has none, only %s has", policy->name, sim_engine.name);
}

void spec_read(struct spec *spec)
{
	json_error_t why;
	json_t *json = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, &why), *trace = json_object_get(json, "trace");

	if (!json)
		arg_die("standard input: %s", why.text);
	*spec = (struct spec){
		.json = json,
		.copies = (uint32_t)count_of(trace, "copies", 1),
		.limit = count_of(trace, "limit", UINT64_MAX),
		.jobs = (unsigned)count_of(json, "jobs", 1),
		.run_count = json_array_size(json_object_get(json, "runs")),
	};
	spec->trace = (struct spool_options){
		.path = text_of(trace, "path", "-"),
		.format = (enum trace_format)arg_word("format", text_of(trace, "format", "auto"), trace_format_names),
		.limit = spec->limit,
		.default_key_size = KEY_BYTES,
		.default_value_size = VALUE_BYTES,
	};
	for (size_t i = 0; i < spec->run_count; i++)
		check_run(spec, i);
}

void spec_fini(struct spec *spec)
{
	json_decref(spec->json);
}

/* ---- with the trace -------------------------------------------------------------------------- */

struct spec_working_set spec_working_set(const struct spool *spool)
{
	bool *seen = mem_must_zalloc((size_t)spool->keys + 1);
	struct spec_working_set set = { 0 };

	for (uint64_t i = 0; i < spool->count; i++) {
		const struct spool_record *record = &spool->records[i];

		if (seen[record->key] || record->value_size == SPOOL_UNKNOWN_SIZE)
			continue;
		seen[record->key] = true;
		set.keys++;
		set.bytes += record->value_size ? record->value_size : 1;
	}
	mem_free(seen);
	return set;
}

static void set_charges(struct sim_space *space, const json_t *run)
{
	int accounting = arg_word("accounting", text_of(run, "accounting", "full"), accountings);
	int referee = arg_word("referee", text_of(run, "referee", "none"), referees);

	space->value_bytes_only = accounting == 1;
	space->objects_only = accounting == 2;
	space->sizes = (enum sim_sizes)referee;
	if (accounting == 0) {
		space->dram_charge = ITEM_BYTES;
		space->flash_charge = HEADER_BYTES;
	}
}

static void set_sizes(struct sim_space *space, const json_t *run, uint32_t sample, uint64_t working_set)
{
	space->flash_bytes = count_of(run, "flash_bytes", 0);
	space->dram_bytes = count_of(run, "dram_bytes", 0);
	space->memory_bytes = count_of(run, "memory_bytes", 0);
	space->segment_bytes = count_of(run, "segment_bytes", 0) / sample;
	if (has(run, "capacity")) {
		uint64_t all = (uint64_t)(real_of(run, "capacity", 0) * (double)working_set + 1e-6);

		space->dram_bytes = (uint64_t)((double)all / (1 + real_of(run, "ratio", 0)));
		space->flash_bytes = all - space->dram_bytes;
	}
	space->dram_bytes /= sample;
	space->memory_bytes /= sample;
	space->flash_bytes /= sample;
}

static uint64_t span_share(const struct spool *spool, const json_t *run, const char *name, unsigned share)
{
	return count_of(run, name, (uint64_t)spool->span_us / share);
}

/* The paper's hour of a week, for its own mode; in mode full the engine measures how far to look ahead. */
static uint64_t horizon_of(const struct spool *spool, const json_t *run)
{
	const char *options = text_of(run, "options", NULL);
	bool is_paper = options && strstr(options, "label-mode=paper");

	return count_of(run, "horizon_us", is_paper ? (uint64_t)spool->span_us / HORIZON_OF_SPAN : 0);
}

struct sim_run spec_run(const struct spec *spec, size_t number, const struct spool *spool,
			const struct spec_working_set *set)
{
	const json_t *spec_of_run = run_of(spec, number);
	char reason[256];
	struct sim_run run = {
		.spool = spool,
		.copies = spec->copies,
		.limit = spool->requests > spec->limit ? spec->limit * spec->copies : UINT64_MAX,
		.warmup_us = has(spec_of_run, "referee") && !has(spec_of_run, "warmup_us") ?
				     0 :
				     span_share(spool, spec_of_run, "warmup_us", SHARE_OF_SPAN),
		.changed_is_update = json_is_true(json_object_get(spec_of_run, "changed_is_update")),
		.sample = (uint32_t)count_of(spec_of_run, "sample", 1),
		.config = {
			.clwa = real_of(spec_of_run, "clwa", 0),
			.has_clwa = has(spec_of_run, "clwa"),
			.train_us = span_share(spool, spec_of_run, "train_us", SHARE_OF_SPAN),
			.horizon_us = horizon_of(spool, spec_of_run),
			.objects = (uint64_t)spool->keys * spec->copies,
			.apps = spool->app_count,
			.seed = count_of(spec->json, "seed", 1),
			.options = text_of(spec_of_run, "options", NULL),
			.model_output = text_of(spec_of_run, "model_output", NULL),
		},
	};

	if (run.config.objects > OBJECTS_MOST)
		arg_die("--copies: %u copies of %u keys are more than 4294967294 objects", spec->copies, spool->keys);
	if (run.warmup_us >= (uint64_t)spool->span_us)
		arg_die("--warmup: %.6g s are as long as the trace, which spans %.6g s", (double)run.warmup_us * 1e-6,
			(double)spool->span_us * 1e-6);
	if (sim_policy_parse(spec_policy_name(spec, number), &run.policy, &run.config.reinsert, &run.config.parameter,
			     reason) != FS_OK)
		arg_die("--policy: %s", reason);
	set_charges(&run.config.space, spec_of_run);
	set_sizes(&run.config.space, spec_of_run, run.sample ? run.sample : 1,
		  spec->copies * (run.config.space.objects_only ? set->keys : set->bytes));
	return run;
}
