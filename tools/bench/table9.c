/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/table9.h"

#include <math.h>
#include <stddef.h>

#define STUDY "table9"

enum { SSD_HITS, DRAM_HITS, MISSES, THEIR_HITS, THEIR_MISSES };

/* The paper's figures, and the rows of this run that they are compared with: the rate with 50 connections,
   the latency with one. */
static const struct line {
	const char *row;
	double ops_s, latency_us;
	const char *study, *rate_row, *latency_row;
} lines[] = {
	[SSD_HITS] = { "flashield, SSD hits", 150264, 106, "flash", "257 B c50 flashield", "257 B c1 flashield" },
	[DRAM_HITS] = { "flashield, DRAM hits", 270437, 13.5, "ops", "get 257 B c50 flashield",
			"get 257 B c1 flashield" },
	[MISSES] = { "flashield, misses", 239191, 19, "ops", "miss 257 B c50 flashield", "miss 257 B c1 flashield" },
	[THEIR_HITS] = { "memcached, hits", 275379, 13, "ops", "get 257 B c50 memcached", "get 257 B c1 memcached" },
	[THEIR_MISSES] = { "memcached, misses", 286718, 12, "ops", "miss 257 B c50 memcached",
			   "miss 257 B c1 memcached" },
};

static void add(struct figures *figures, const char *row, double paper_ops_s, double paper_us, double here_ops_s,
		double here_us)
{
	figures_add(figures, STUDY, row, "paper_ops_s", paper_ops_s);
	figures_add(figures, STUDY, row, "here_ops_s", here_ops_s);
	figures_add(figures, STUDY, row, "paper_us", paper_us);
	figures_add(figures, STUDY, row, "here_us", here_us);
}

static double rate_of(const struct figures *figures, const struct line *line)
{
	return figures_median(figures, line->study, line->rate_row, "ops_s");
}

static double latency_of(const struct figures *figures, const struct line *line)
{
	return figures_median(figures, line->study, line->latency_row, "p50_us");
}

static void add_ratio(struct figures *figures, const char *row, const struct line *of, const struct line *to)
{
	add(figures, row, of->ops_s / to->ops_s, of->latency_us / to->latency_us,
	    rate_of(figures, of) / rate_of(figures, to), latency_of(figures, of) / latency_of(figures, to));
}

static const char explanation[] =
	"Here: 257 B values, -t 1; the rate with 50 connections, the p50 with one. The paper: "
	"memcached 1.4.15, four cores at 3.4 GHz, an Intel 535 drive; mean latency. Rate times "
	"latency gives 3.6 requests under way for its hits and 16 for its SSD hits.";

void table9(struct figures *figures)
{
	size_t measured = 0;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		measured += !isnan(rate_of(figures, &lines[i]));
	if (!measured)
		return;
	figures_study(figures, STUDY, "the paper's table 9 beside this run", explanation);
	figures_column(figures, "paper_ops_s", "paper ops/s", -1);
	figures_column(figures, "here_ops_s", "here ops/s", -1);
	figures_column(figures, "paper_us", "paper us", -1);
	figures_column(figures, "here_us", "here us", -1);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		add(figures, lines[i].row, lines[i].ops_s, lines[i].latency_us, rate_of(figures, &lines[i]),
		    latency_of(figures, &lines[i]));
	add_ratio(figures, "SSD hits / DRAM hits", &lines[SSD_HITS], &lines[DRAM_HITS]);
	add_ratio(figures, "flashield / memcached, hits", &lines[DRAM_HITS], &lines[THEIR_HITS]);
	add_ratio(figures, "flashield / memcached, misses", &lines[MISSES], &lines[THEIR_MISSES]);
}
