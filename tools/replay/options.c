/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/replay/options.h"

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
	"  --skip N            begin behind the first N requests  (0)\n"
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
	"  --flush             flush_all before the start\n" ACCESS_HELP "\n"
	"Output\n"
	"  --json FILE         the report as JSON, - for standard output in place of the text\n"
	"  --quiet             no progress\n"
	"  --help  --version\n"
	"\n"
	"Counts take k, m, g (thousands), sizes k, m, g (powers of 1024), times us, ms, s, m, h, d.\n"
	"Exit status: 0 played to the end; 1 the server returned a wrong or an older value;\n"
	"2 bad usage, unreadable trace, or the server is gone.\n";

static const char *const mode_names[] = { "look-aside", "literal", "gets-only", NULL };
static const char *const ttl_names[] = { "auto", "none", "scaled", "real", NULL };

/* "0.15" is a share of the requests, "1d" and "90s" a time of the trace. */
static void parse_warmup(void *to, const char *text)
{
	struct replay_options *options = to;
	char *rest;

	options->warmup_fraction = 0;
	options->warmup_us = 0;
	(void)!strtod(text, &rest);
	if (*text && !*rest)
		options->warmup_fraction = arg_real("warmup", text, 0, 0.999);
	else
		options->warmup_us = (int64_t)arg_time_us("warmup", text, 0, 1ull << 50);
}

void replay_options_parse(int argc, char **argv, struct replay_options *options)
{
	int first;
	const struct arg_option rows[] = {
		ARG("format", ARG_WORD, &options->format, .words = trace_format_names),
		ARG("copies", ARG_COUNT32, &options->copies, .low = 1, .high = 4096),
		ARG("skip", ARG_COUNT, &options->skip, .low = 0, .high = 1e15),
		ARG("limit", ARG_COUNT, &options->limit, .low = 1),
		ARG("warmup", ARG_CALL, options, .call = parse_warmup),
		ARG("key-size", ARG_SIZE32, &options->default_key_size, .low = 1, .high = 250),
		ARG("value-size", ARG_SIZE32, &options->default_value_size, .low = 0, .high = TRACE_MAX_VALUE_BYTES),
		ARG("mode", ARG_WORD, &options->mode, .words = mode_names),
		ARG("speed", ARG_REAL, &options->speed, .low = 1e-3, .high = 1e9),
		ARG("ttl", ARG_WORD, &options->ttl, .words = ttl_names),
		ARG("no-check", ARG_OFF, &options->check_values),
		ARG("server", ARG_TEXT, &options->server),
		ARG("connections", ARG_COUNT32, &options->connections, .low = 1, .high = 10000),
		ARG("threads", ARG_COUNT32, &options->threads, .low = 1, .high = 64),
		ARG("depth", ARG_COUNT32, &options->depth, .low = 1, .high = 1024),
		ARG("timeout", ARG_TIME_US, &options->timeout_us, .low = 1000, .high = 3600e6),
		ARG("flush", ARG_ON, &options->flush_first),
		ARG("json", ARG_TEXT, &options->json_path),
		ARG("quiet", ARG_ON, &options->quiet),
		ACCESS_ARGS(&options->access),
		ARGS_END,
	};

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
	first = args_parse(argc, argv, rows, help);
	if (first + 1 != argc)
		arg_die(first == argc ? "no trace given; see --help" : "more than one trace given; see --help");
	options->trace_path = argv[first];
	if (options->threads > options->connections)
		arg_die("--threads: %u is more than the %u connections", options->threads, options->connections);
	access_open(&options->access);
	if (options->ttl == TTL_AUTO)
		options->ttl = options->speed > 0 ? TTL_SCALED : TTL_NONE;
	if (options->ttl == TTL_SCALED && !(options->speed > 0))
		arg_die("--ttl: scaled needs --speed");
}
