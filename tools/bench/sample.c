/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/sample.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "tools/bench/tasks.h"

#define SECONDS_LEAST 0.02

void sample_columns(struct figures *figures)
{
	figures_column(figures, "cpu_us", "us CPU /op", -1);
	figures_column(figures, "instructions", "instr. /op", -1);
	figures_column(figures, "ops_s", "ops/s", -1);
	figures_column(figures, "p50_us", "p50 us", -1);
	figures_column(figures, "p99_us", "p99 us", -1);
	figures_column(figures, "p999_us", "p99.9 us", -1);
	figures_column(figures, "server_percent", "server CPU %", 0);
	figures_column(figures, "load_percent", "load CPU %", 0);
	figures_column(figures, "wait_percent", "CPU wait %", 0);
	figures_column(figures, "cpu_ratio", "CPU ratio", 3);
	figures_column(figures, "instructions_ratio", "instr. ratio", 3);
	figures_column(figures, "ops_ratio", "ops/s ratio", 2);
	figures_column(figures, "p50_ratio", "p50 ratio", 2);
	figures_column(figures, "p99_ratio", "p99 ratio", 2);
	figures_column(figures, "p999_ratio", "p99.9 ratio", 2);
}

double sample_seconds(const struct bench *bench, double seconds)
{
	return fmax(seconds * bench->options->scale, SECONDS_LEAST);
}

static double quantile_us(const struct load_result *result, double quantile)
{
	struct hist *both;
	double us;

	if (!result->set_latency->count || !result->get_latency->count)
		return (double)hist_quantile(result->get_latency->count ? result->get_latency : result->set_latency,
					     quantile) /
		       1e3;
	both = hist_create();
	hist_merge(both, result->get_latency);
	hist_merge(both, result->set_latency);
	us = (double)hist_quantile(both, quantile) / 1e3;
	hist_destroy(both);
	return us;
}

static struct sample sample_of(const struct load_result *result)
{
	double operations = (double)result->operations;

	return (struct sample){
		.cpu_us = (double)result->server_cpu_ns / 1e3 / operations,
		.instructions = result->has_instructions ? (double)result->server_instructions / operations : NAN,
		.ops_s = operations / result->seconds,
		.p50_us = quantile_us(result, 0.5),
		.p99_us = quantile_us(result, 0.99),
		.p999_us = quantile_us(result, 0.999),
		.operations = result->operations,
		.gets = result->gets,
		.hits = result->hits,
	};
}

static void add(struct figures *figures, const char *study, const char *row, const struct load_result *result,
		const struct sample *sample)
{
	double percent_per_ns = 100 / (result->seconds * 1e9);

	figures_add(figures, study, row, "cpu_us", sample->cpu_us);
	if (isnan(sample->instructions))
		figures_note(figures, study, "This machine doesn't count instructions.");
	else
		figures_add(figures, study, row, "instructions", sample->instructions);
	figures_add(figures, study, row, "ops_s", sample->ops_s);
	figures_add(figures, study, row, "p50_us", sample->p50_us);
	figures_add(figures, study, row, "p99_us", sample->p99_us);
	figures_add(figures, study, row, "p999_us", sample->p999_us);
	figures_add(figures, study, row, "server_percent", (double)result->server_cpu_ns * percent_per_ns);
	figures_add(figures, study, row, "load_percent", (double)result->load_cpu_ns * percent_per_ns);
}

/* What went otherwise than the load meant it to. */
static int judge(struct figures *figures, const char *study, const char *row, const struct load_spec *spec,
		 const struct load_result *result)
{
	if (result->errors)
		figures_note(figures, study, "%s: %" PRIu64 " operations failed, the first with: %s", row,
			     result->errors, result->first_error);
	if (!spec->expect_misses && result->hits < result->gets)
		figures_note(figures, study, "%s: %" PRIu64 " of %" PRIu64 " gets missed.", row,
			     result->gets - result->hits, result->gets);
	if (!result->wrong)
		return FS_OK;
	fprintf(stderr, "flashield-bench: %s: %" PRIu64 " wrong values\n", row, result->wrong);
	figures_note(figures, study, "%s: %" PRIu64 " WRONG VALUES", row, result->wrong);
	return FS_ECORRUPT;
}

int sample_load(const struct bench *bench, const char *study, const char *row, const struct load_spec *spec,
		struct server *server, struct sample *out)
{
	uint64_t start_us = clk_now_us(clk_boot()), waited_ns = tasks_waited_ns(server->pid);
	struct load_result result;
	struct sample sample;
	int code = load_run(spec, server, &result);

	if (code != FS_OK)
		goto out;
	waited_ns = tasks_waited_ns(server->pid) - waited_ns;
	if (result.operations == 0) {
		fprintf(stderr, "flashield-bench: %s: no operation was done\n", row);
		code = FS_ESYS;
		goto out;
	}
	sample = sample_of(&result);
	add(bench->figures, study, row, &result, &sample);
	figures_add(bench->figures, study, row, "wait_percent",
		    (double)waited_ns / 10 / (double)(clk_now_us(clk_boot()) - start_us));
	code = judge(bench->figures, study, row, spec, &result);
	if (out)
		*out = sample;
out:
	load_result_fini(&result);
	return code;
}

void sample_ratio(struct figures *figures, const char *study, const char *row, const struct sample *ours,
		  const struct sample *theirs)
{
	figures_add(figures, study, row, "cpu_ratio", ours->cpu_us / theirs->cpu_us);
	if (!isnan(ours->instructions) && !isnan(theirs->instructions))
		figures_add(figures, study, row, "instructions_ratio", ours->instructions / theirs->instructions);
	figures_add(figures, study, row, "ops_ratio", ours->ops_s / theirs->ops_s);
	figures_add(figures, study, row, "p50_ratio", ours->p50_us / theirs->p50_us);
	figures_add(figures, study, row, "p99_ratio", ours->p99_us / theirs->p99_us);
	figures_add(figures, study, row, "p999_ratio", ours->p999_us / theirs->p999_us);
}
