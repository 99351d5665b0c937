/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/tracegen/options.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/args.h"

static const char help[] =
	"Usage: flashield-tracegen [OPTION]... --output FILE\n"
	"Makes a trace with the published statistics of the Memcachier trace, and prints those it\n"
	"reached beside the published ones. The same options and seed give the same trace.\n"
	"\n"
	"  --output FILE    - is standard output; a name that ends in .gz is compressed\n"
	"  --format F       flashield or memcachier: our columns or theirs  (flashield)\n"
	"  --scale S        of the published 1615 M requests, 121 M keys and of the allocations, as a\n"
	"                   number or a fraction  (1/1000)\n"
	"  --requests N     in place of --scale: the scale that gives about N requests\n"
	"  --apps LIST      of the twenty: 1,3,19,18,20,6,5,8,59,227,29,10,13,94,7,23,2,53,31,11  (all)\n"
	"  --duration T     that the trace spans  (7d)\n"
	"  --seed N         (1)\n"
	"  --no-fit         keep the first guess of the popularity: faster, hit ratios are not fitted\n"
	"  --quiet          print no statistics\n"
	"  --help  --version\n"
	"\n"
	"Counts take k, m, g (thousands), times s, m, h, d.\n";

static void parse_apps(void *to, const char *text)
{
	struct tracegen_options *options = to;

	memset(options->chosen, 0, sizeof(options->chosen));
	if (strcmp(text, "all") == 0) {
		memset(options->chosen, 1, sizeof(options->chosen));
		return;
	}
	for (;;) {
		char *rest;
		unsigned long id = strtoul(text, &rest, 10);
		int index = rest == text || id > UINT32_MAX ? -1 : app_find((uint32_t)id);

		if (index < 0 || (*rest && *rest != ','))
			arg_die("--apps: \"%s\" does not begin with one of the published applications; see "
				"--help",
				text);
		options->chosen[index] = true;
		if (!*rest)
			return;
		text = rest + 1;
	}
}

static double chosen_requests(const struct tracegen_options *options)
{
	double requests = 0;

	for (int i = 0; i < APP_COUNT; i++)
		requests += options->chosen[i] ? app_table[i].requests_m * 1e6 : 0;
	return requests;
}

void tracegen_options_parse(int argc, char **argv, struct tracegen_options *options)
{
	static const char *const formats[] = { "flashield", "memcachier", NULL };
	int64_t span_us = (int64_t)(PUBLISHED_SPAN_S * 1e6);
	uint64_t requests = 0;
	int format = 0, first;
	const struct arg_option rows[] = {
		ARG("output", ARG_TEXT, &options->output),
		ARG("format", ARG_WORD, &format, .words = formats),
		ARG("scale", ARG_REAL, &options->scale, .low = 1e-6, .high = 1),
		ARG("requests", ARG_COUNT, &requests, .low = 1000, .high = 1615000000),
		ARG("apps", ARG_CALL, options, .call = parse_apps),
		ARG("duration", ARG_TIME_US, &span_us, .low = 1e6, .high = 31622400e6),
		ARG("seed", ARG_COUNT, &options->seed),
		ARG("no-fit", ARG_OFF, &options->fit),
		ARG("quiet", ARG_ON, &options->quiet),
		ARGS_END,
	};

	*options = (struct tracegen_options){
		.scale = 1e-3,
		.seed = 1,
		.fit = true,
	};
	memset(options->chosen, 1, sizeof(options->chosen));
	first = args_parse(argc, argv, rows, help);
	if (first != argc)
		arg_die("\"%s\" is one argument too many; see --help", argv[first]);
	options->format = format ? TRACE_MEMCACHIER : TRACE_FLASHIELD;
	options->span_s = (double)span_us / 1e6;
	if (!options->output)
		arg_die("--output: no file given (- is standard output); see --help");
	if (requests)
		options->scale = (double)requests / chosen_requests(options);
	if (options->scale > 1)
		arg_die("--requests: the chosen applications have %.0f requests", chosen_requests(options));
}
