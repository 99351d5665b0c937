/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/args.h"

static const char help[] =
	"Usage: flashield-top [OPTION]... [SERVER]...\n"
	"Shows live what cache servers do: hit ratios, requests, latencies, what goes to flash, segments,\n"
	"the model, applications. Works with flashield, and with memcached as far as its reports go.\n"
	"\n"
	"SERVER is HOST:PORT, HOST, or the path of a unix socket  (127.0.0.1:11211). Of several ones, at\n"
	"most 16, sums are shown, and each of them.\n"
	"\n"
	"  --interval T        from poll to poll, 100ms to 1m  (1s)\n"
	"  --timeout T         for an answer, before the server counts as gone, 100ms to 1m  (5s)\n"
	"  --view V            to begin with: overview, flash, model, latency, apps, servers, keys,\n"
	"                      slow, contents, limits  (overview)\n"
	"  --sort C            applications by name, get, set, hits, dram, flash, read, written  (get)\n"
	"  --ascii             no block characters; by default they are used where the locale is UTF-8\n"
	"  --once              no live view: two polls an interval apart, then a line for each figure on\n"
	"                      standard output; so it is too where that is no terminal\n" ACCESS_HELP
	"  --help  --version\n"
	"\n"
	"Times take us, ms, s, m, h, d; without a unit they are seconds.\n"
	"\n"
	"Keys\n"
	"  q quit              p pause and go on      + - longer, shorter interval\n"
	"  1 ... 9, 0, Tab, Shift-Tab  views          n next server, then all of them\n"
	"  r totals count from now on; the server's own counters stay\n"
	"  s sort applications by the next column; Up, Down, PgUp, PgDn scroll them\n"
	"  w hot keys of the last minute, or of the last ten minutes\n"
	"  h or ? help\n"
	"\n"
	"\"now\" is since the last poll, \"total\" since the server's start or its \"stats reset\". After a\n"
	"restart or a reset there is nothing to compare with for one poll: figures of now are \"-\" then.\n"
	"A server that goes away is connected to again after 0.5, 1, 2, 4, 8 s, and so on each 8 s.\n"
	"\n"
	"--once prints NAME VALUE lines: plain numbers whose unit is in the name, ratios from 0 to 1. Then\n"
	"\"latency KIND NAME=VALUE...\" in microseconds, \"application NAME NAME=VALUE...\", \"hot_key KEY\n"
	"NAME=VALUE...\" of the last minute, \"contents NAME NAME=VALUE...\" of an application in a tier by\n"
	"estimate, \"limit NAME NAME=VALUE...\" of an application with limits, and with several servers\n"
	"\"server ADDRESS NAME=VALUE...\". What the server doesn't tell is left out.\n"
	"\n"
	"Environment: TERM, the locale (LC_ALL, LC_CTYPE, LANG), NO_COLOR (set: no colours).\n"
	"Exit status: 0 left by q, Ctrl-C or SIGTERM, or --once printed all; 1 --once got no answer from\n"
	"some of the servers; 2 bad usage, an unknown terminal, or --once got no answer at all.\n";

/* In the order of enum view and enum app_column. */
static const char *const view_names[] = { "overview", "flash", "model",    "latency", "apps", "servers",
					  "keys",     "slow",  "contents", "limits",  NULL };
static const char *const sort_names[] = { "name", "get", "set", "hits", "dram", "flash", "read", "written", NULL };

void top_options_parse(int argc, char **argv, struct top_options *options)
{
	const struct arg_option rows[] = {
		ARG("interval", ARG_TIME_US, &options->interval_us, .low = INTERVAL_LEAST_US, .high = INTERVAL_MOST_US),
		ARG("timeout", ARG_TIME_US, &options->timeout_us, .low = 100000, .high = 60000000),
		ARG("view", ARG_WORD, &options->view, .words = view_names),
		ARG("sort", ARG_WORD, &options->sort, .words = sort_names),
		ARG("ascii", ARG_ON, &options->ascii),
		ARG("once", ARG_ON, &options->once),
		ACCESS_ARGS(&options->access),
		ARGS_END,
	};

	*options = (struct top_options){ .interval_us = 1000000, .timeout_us = 5000000, .sort = COLUMN_GETS };
	for (int i = args_parse(argc, argv, rows, help); i < argc; i++) {
		if (options->server_count == SERVERS_MAX)
			arg_die("more than %u servers", SERVERS_MAX);
		if (!*argv[i])
			arg_die("a server's name is empty");
		options->servers[options->server_count++] = argv[i];
	}
	access_open(&options->access);
	if (options->server_count == 0)
		options->servers[options->server_count++] = "127.0.0.1:11211";
}
