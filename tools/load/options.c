/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/load/options.h"

#include <stddef.h>
#include <stdint.h>

static const char help[] =
	"Usage: flashield-load [OPTION]... FILE\n"
	"Stores the objects of a file of flashield-dump in a running memcached or Flashield, with their\n"
	"flags and with what is left of their time to live. FILE - is standard input. An object that the\n"
	"server has already stays as it is.\n"
	"\n"
	"  --server S           HOST:PORT, or the path of a unix socket  (127.0.0.1:11211)\n"
	"  --overwrite          store objects that the server has, too\n"
	"  --max-ttl T          no object lives longer than this from now on  (as in the file)\n"
	"  --rate N             objects a second at most; 0: any  (50k)\n"
	"  --bandwidth SIZE     bytes of keys and values a second at most; 0: any  (0)\n"
	"  --timeout T          for an answer, before the server counts as gone  (60s)\n"
	"  --verify             read the file and check it, without a server\n"
	"  --quiet              no progress and no summary\n" ACCESS_HELP "  --help  --version\n"
	"\n"
	"Of a damaged or cut file all parts before the damage are stored, and the offset is told.\n"
	"Counts take k, m, g (thousands), sizes k, m, g (powers of 1024), times us, ms, s, m, h, d.\n"
	"Exit status: 0 done; 1 the file is damaged, or the server refused an object; 2 bad usage, no file\n"
	"of flashield-dump, or the server went away.\n";

static void parse_bandwidth(void *to, const char *text)
{
	*(double *)to = (double)arg_size("bandwidth", text, 0, 1ull << 40);
}

void load_options_parse(int argc, char **argv, struct load_options *options)
{
	uint64_t rate = 50000;
	int first;
	const struct arg_option rows[] = {
		ARG("server", ARG_TEXT, &options->server),
		ARG("overwrite", ARG_ON, &options->overwrite),
		ARG("max-ttl", ARG_TIME_US, &options->max_ttl_us, .low = 1e6, .high = 3600e6 * 24 * 3650),
		ARG("rate", ARG_COUNT, &rate, .low = 0, .high = 1e9),
		ARG("bandwidth", ARG_CALL, &options->bandwidth, .call = parse_bandwidth),
		ARG("timeout", ARG_TIME_US, &options->timeout_us, .low = 1e3, .high = 3600e6),
		ARG("verify", ARG_ON, &options->verify),
		ARG("quiet", ARG_ON, &options->quiet),
		ACCESS_ARGS(&options->access),
		ARGS_END,
	};

	*options = (struct load_options){ .server = "127.0.0.1:11211", .timeout_us = 60000000 };
	first = args_parse(argc, argv, rows, help);
	if (first + 1 != argc)
		arg_die(first == argc ? "no file given; see --help" : "more than one file given; see --help");
	options->input = argv[first];
	options->rate = (double)rate;
	access_open(&options->access);
}
