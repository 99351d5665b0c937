/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/tracegen/options.h"
#include "conf/version.h"

#include <getopt.h>
#include <stdio.h>
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

enum {
	OPTION_OUTPUT = 256,
	OPTION_FORMAT,
	OPTION_SCALE,
	OPTION_REQUESTS,
	OPTION_APPS,
	OPTION_DURATION,
	OPTION_SEED,
	OPTION_NO_FIT,
	OPTION_QUIET,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{ "output", required_argument, NULL, OPTION_OUTPUT }, { "format", required_argument, NULL, OPTION_FORMAT },
	{ "scale", required_argument, NULL, OPTION_SCALE },   { "requests", required_argument, NULL, OPTION_REQUESTS },
	{ "apps", required_argument, NULL, OPTION_APPS },     { "duration", required_argument, NULL, OPTION_DURATION },
	{ "seed", required_argument, NULL, OPTION_SEED },     { "no-fit", no_argument, NULL, OPTION_NO_FIT },
	{ "quiet", no_argument, NULL, OPTION_QUIET },         { "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },     { NULL, 0, NULL, 0 },
};

static void parse_apps(struct tracegen_options *options, const char *text)
{
	memset(options->chosen, 0, sizeof(options->chosen));
	if (strcmp(text, "all") == 0) {
		memset(options->chosen, 1, sizeof(options->chosen));
		return;
	}
	for (;;) {
		char *rest;
		unsigned long id = strtoul(text, &rest, 10);
		int place = rest == text || id > UINT32_MAX ? -1 : app_find((uint32_t)id);

		if (place < 0 || (*rest && *rest != ','))
			arg_die("--apps: \"%s\" does not begin with one of the published applications; see "
				"--help",
				text);
		options->chosen[place] = true;
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

static void set_option(struct tracegen_options *options, int option, const char *text, uint64_t *requests)
{
	static const char *const formats[] = { "flashield", "memcachier", NULL };

	switch (option) {
	case OPTION_OUTPUT:
		options->output = text;
		break;
	case OPTION_FORMAT:
		options->format = arg_word("format", text, formats) ? TRACE_MEMCACHIER : TRACE_FLASHIELD;
		break;
	case OPTION_SCALE:
		options->scale = arg_real("scale", text, 1e-6, 1);
		break;
	case OPTION_REQUESTS:
		*requests = arg_count("requests", text, 1000, 1615000000);
		break;
	case OPTION_APPS:
		parse_apps(options, text);
		break;
	case OPTION_DURATION:
		options->span_s = (double)arg_time_us("duration", text, 1000000, 31622400000000u) / 1e6;
		break;
	case OPTION_SEED:
		options->seed = arg_count("seed", text, 0, UINT64_MAX);
		break;
	case OPTION_NO_FIT:
		options->fit = false;
		break;
	case OPTION_QUIET:
		options->quiet = true;
		break;
	case OPTION_HELP:
		fputs(help, stdout);
		exit(0);
	case OPTION_VERSION:
		puts("flashield-tracegen (Flashield) " FS_VERSION);
		exit(0);
	default:
		arg_die("see --help");
	}
}

void tracegen_options_parse(int argc, char **argv, struct tracegen_options *options)
{
	uint64_t requests = 0;
	int option;

	*options = (struct tracegen_options){
		.scale = 1e-3,
		.seed = 1,
		.span_s = PUBLISHED_SPAN_S,
		.format = TRACE_FLASHIELD,
		.fit = true,
	};
	memset(options->chosen, 1, sizeof(options->chosen));
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
		set_option(options, option, optarg, &requests);
	if (optind != argc)
		arg_die("\"%s\" is one argument too many; see --help", argv[optind]);
	if (!options->output)
		arg_die("--output: no file given (- is standard output); see --help");
	if (requests)
		options->scale = (double)requests / chosen_requests(options);
	if (options->scale > 1)
		arg_die("--requests: the chosen applications have %.0f requests", chosen_requests(options));
}
