/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/dump/options.h"

#include <stddef.h>
#include <stdint.h>

static const char help[] =
	"Usage: flashield-dump [OPTION]... --output FILE\n"
	"Writes the objects of a running memcached or Flashield to a file, for flashield-load: those that\n"
	"were read since they were stored first, and of these the latest read first.\n"
	"\n"
	"  --output FILE        - is standard output; the file is readable by its owner alone\n"
	"  --server S           HOST:PORT, or the path of a unix socket  (127.0.0.1:11211)\n"
	"  --limit N            the first N objects\n"
	"  --limit-size SIZE    so many bytes of keys and values\n"
	"  --rate N             objects a second at most; 0: any  (50k)\n"
	"  --bandwidth SIZE     bytes of keys and values a second at most; 0: any  (0)\n"
	"  --timeout T          for an answer, before the server counts as gone  (60s)\n"
	"  --quiet              no progress and no summary\n" ACCESS_HELP "  --help  --version\n"
	"\n"
	"Counts take k, m, g (thousands), sizes k, m, g (powers of 1024), times us, ms, s, m, h, d.\n"
	"SIGINT and SIGTERM end it early, with a whole file.\n"
	"Exit status: 0 written; 2 bad usage, the server refused or went away, or the file could not be\n"
	"written.\n";

static void parse_size(void *to, const char *text)
{
	*(uint64_t *)to = arg_size("limit-size", text, 1, UINT64_MAX / 2);
}

static void parse_bandwidth(void *to, const char *text)
{
	*(double *)to = (double)arg_size("bandwidth", text, 0, 1ull << 40);
}

void dump_options_parse(int argc, char **argv, struct dump_options *options)
{
	uint64_t rate = 50000;
	int first;
	const struct arg_option rows[] = {
		ARG("output", ARG_TEXT, &options->output),
		ARG("server", ARG_TEXT, &options->server),
		ARG("limit", ARG_COUNT, &options->limit, .low = 1, .high = 1e12),
		ARG("limit-size", ARG_CALL, &options->limit_bytes, .call = parse_size),
		ARG("rate", ARG_COUNT, &rate, .low = 0, .high = 1e9),
		ARG("bandwidth", ARG_CALL, &options->bandwidth, .call = parse_bandwidth),
		ARG("timeout", ARG_TIME_US, &options->timeout_us, .low = 1e3, .high = 3600e6),
		ARG("quiet", ARG_ON, &options->quiet),
		ACCESS_ARGS(&options->access),
		ARGS_END,
	};

	*options = (struct dump_options){
		.server = "127.0.0.1:11211",
		.limit = UINT64_MAX,
		.limit_bytes = UINT64_MAX,
		.timeout_us = 60000000,
	};
	first = args_parse(argc, argv, rows, help);
	if (first != argc)
		arg_die("\"%s\" is one argument too many; see --help", argv[first]);
	if (!options->output)
		arg_die("--output: no file given (- is standard output); see --help");
	options->rate = (double)rate;
	access_open(&options->access);
}
