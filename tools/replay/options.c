/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/replay/options.h"
#include "conf/version.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/args.h"

static const char help[] =
	"Usage: flashield-replay [OPTION]... TRACE\n"
	"Plays a request trace against a memcached server over real connections and reports hit\n"
	"ratio, latencies and what the server wrote. TRACE is a file, plain or .gz, or - .\n"
	"\n"
	"Trace\n"
	"  --format F          auto, flashield, memcachier, twitter or meta  (auto: by header and "
	"columns)\n"
	"  --copies N          play N copies with keys of their own, evenly shifted in time  (1)\n"
	"  --limit N           stop after N requests\n"
	"  --warmup X          leave out of all counts: a share below 1 of the requests (0.15), or a\n"
	"                      trace time with its unit (1d)  (0)\n"
	"  --key-size BYTES    where the trace doesn't know it  (24)\n"
	"  --value-size BYTES  of a set whose size the trace doesn't know  (257)\n"
	"\n"
	"How it is played\n"
	"  --mode M            look-aside: as the trace says, and a get that misses is followed by a set;\n"
	"                      literal: exactly as the trace says;\n"
	"                      gets-only: only gets of known size, filled on a miss, which is how the\n"
	"                      paper's figures for Memcachier were made  (look-aside)\n"
	"  --speed F           F seconds of trace per second; without it as fast as it can\n"
	"  --ttl T             none, scaled (divided by --speed), real  (scaled if paced, else none)\n"
	"  --no-check          don't check values; by default each proves its key and version\n"
	"\n"
	"Server\n"
	"  --server S          HOST:PORT, or the path of a unix socket  (127.0.0.1:11211)\n"
	"  --connections N     spread over the threads; a key stays on its connection  (8)\n"
	"  --threads N         (1)\n"
	"  --depth N           requests under way per connection (pipelining)  (16)\n"
	"  --timeout T         for an answer, before the server counts as gone  (30s)\n"
	"  --flush             flush_all before the start\n"
	"\n"
	"Output\n"
	"  --json FILE         the report as JSON, - for standard output in place of the text\n"
	"  --quiet             no progress\n"
	"  --help  --version\n"
	"\n"
	"Counts take k, m, g (thousands), sizes k, m, g (powers of 1024), times us, ms, s, m, h, d.\n"
	"Exit status: 0 played to the end; 1 the server returned a wrong or an older value;\n"
	"2 bad usage, unreadable trace, or the server is gone.\n";

enum {
	OPTION_FORMAT = 256,
	OPTION_COPIES,
	OPTION_LIMIT,
	OPTION_WARMUP,
	OPTION_KEY_SIZE,
	OPTION_VALUE_SIZE,
	OPTION_MODE,
	OPTION_SPEED,
	OPTION_TTL,
	OPTION_NO_CHECK,
	OPTION_SERVER,
	OPTION_CONNECTIONS,
	OPTION_THREADS,
	OPTION_DEPTH,
	OPTION_TIMEOUT,
	OPTION_FLUSH,
	OPTION_JSON,
	OPTION_QUIET,
	OPTION_HELP,
	OPTION_VERSION,
};

static const struct option long_options[] = {
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "copies", required_argument, NULL, OPTION_COPIES },
	{ "limit", required_argument, NULL, OPTION_LIMIT },
	{ "warmup", required_argument, NULL, OPTION_WARMUP },
	{ "key-size", required_argument, NULL, OPTION_KEY_SIZE },
	{ "value-size", required_argument, NULL, OPTION_VALUE_SIZE },
	{ "mode", required_argument, NULL, OPTION_MODE },
	{ "speed", required_argument, NULL, OPTION_SPEED },
	{ "ttl", required_argument, NULL, OPTION_TTL },
	{ "no-check", no_argument, NULL, OPTION_NO_CHECK },
	{ "server", required_argument, NULL, OPTION_SERVER },
	{ "connections", required_argument, NULL, OPTION_CONNECTIONS },
	{ "threads", required_argument, NULL, OPTION_THREADS },
	{ "depth", required_argument, NULL, OPTION_DEPTH },
	{ "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "flush", no_argument, NULL, OPTION_FLUSH },
	{ "json", required_argument, NULL, OPTION_JSON },
	{ "quiet", no_argument, NULL, OPTION_QUIET },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ NULL, 0, NULL, 0 },
};

static const char *const mode_names[] = { "look-aside", "literal", "gets-only", NULL };
static const char *const ttl_names[] = { "auto", "none", "scaled", "real", NULL };

/* "0.15" is a share of the requests, "1d" and "90s" a time of the trace. */
static void parse_warmup(struct replay_options *options, const char *text)
{
	char *rest;

	options->warmup_fraction = 0;
	options->warmup_us = 0;
	(void)!strtod(text, &rest);
	if (*text && !*rest)
		options->warmup_fraction = arg_real("warmup", text, 0, 0.999);
	else
		options->warmup_us = (int64_t)arg_time_us("warmup", text, 0, 1ull << 50);
}

/* The option's value into its field. False for the options that have none of their own here. */
static void set_option(struct replay_options *options, int option, const char *text)
{
	const char *name = long_options[option - OPTION_FORMAT].name;

	switch (option) {
	case OPTION_FORMAT:
		options->format = (enum trace_format)arg_word(name, text, trace_format_names);
		break;
	case OPTION_COPIES:
		options->copies = (uint32_t)arg_count(name, text, 1, 4096);
		break;
	case OPTION_LIMIT:
		options->limit = arg_count(name, text, 1, UINT64_MAX);
		break;
	case OPTION_WARMUP:
		parse_warmup(options, text);
		break;
	case OPTION_KEY_SIZE:
		options->default_key_size = (uint32_t)arg_size(name, text, 1, 250);
		break;
	case OPTION_VALUE_SIZE:
		options->default_value_size = (uint32_t)arg_size(name, text, 0, TRACE_MAX_VALUE_BYTES);
		break;
	case OPTION_MODE:
		options->mode = (enum replay_mode)arg_word(name, text, mode_names);
		break;
	case OPTION_SPEED:
		options->speed = arg_real(name, text, 1e-3, 1e9);
		break;
	case OPTION_TTL:
		options->ttl = (enum replay_ttl)arg_word(name, text, ttl_names);
		break;
	case OPTION_CONNECTIONS:
		options->connections = (uint32_t)arg_count(name, text, 1, 10000);
		break;
	case OPTION_THREADS:
		options->threads = (uint32_t)arg_count(name, text, 1, 64);
		break;
	case OPTION_DEPTH:
		options->depth = (uint32_t)arg_count(name, text, 1, 1024);
		break;
	case OPTION_TIMEOUT:
		options->timeout_us = arg_time_us(name, text, 1000, 3600000000u);
		break;
	default:
		break;
	}
}

static void set_plain(struct replay_options *options, int option, const char *text)
{
	switch (option) {
	case OPTION_NO_CHECK:
		options->check_values = false;
		break;
	case OPTION_SERVER:
		options->server = text;
		break;
	case OPTION_FLUSH:
		options->flush_first = true;
		break;
	case OPTION_JSON:
		options->json_path = text;
		break;
	case OPTION_QUIET:
		options->quiet = true;
		break;
	case OPTION_HELP:
		fputs(help, stdout);
		exit(0);
	case OPTION_VERSION:
		puts("flashield-replay (Flashield) " FS_VERSION);
		exit(0);
	default:
		set_option(options, option, text);
	}
}

void replay_options_parse(int argc, char **argv, struct replay_options *options)
{
	int option;

	*options = (struct replay_options){
		.server = "127.0.0.1:11211",
		.copies = 1,
		.connections = 8,
		.threads = 1,
		.depth = 16,
		.limit = UINT64_MAX,
		.timeout_us = 30000000,
		.default_key_size = 24,
		.default_value_size = 257,
		.check_values = true,
	};
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == '?')
			arg_die("see --help");
		set_plain(options, option, optarg);
	}
	if (optind + 1 != argc)
		arg_die(optind == argc ? "no trace given; see --help" : "more than one trace given; see --help");
	options->trace_path = argv[optind];
	if (options->threads > options->connections)
		arg_die("--threads: %u is more than the %u connections", options->threads, options->connections);
	if (options->ttl == TTL_AUTO)
		options->ttl = options->speed > 0 ? TTL_SCALED : TTL_NONE;
	if (options->ttl == TTL_SCALED && !(options->speed > 0))
		arg_die("--ttl: scaled needs --speed");
}
