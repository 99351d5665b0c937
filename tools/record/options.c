/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/record/options.h"

#include <string.h>

#include "tools/common/args.h"

static const char help[] =
	"Usage: flashield-record [OPTION]... --output FILE\n"
	"Writes the requests of a running memcached or Flashield as a trace, with hashes in place of\n"
	"keys, for flashield-sim and flashield-replay. It ends at SIGINT, SIGTERM, --duration, --limit or\n"
	"with the server, and the file is whole whenever that happens.\n"
	"\n"
	"  --output FILE      - is standard output; a name that ends in .gz is compressed\n"
	"  --server S         HOST:PORT, or the path of a unix socket  (127.0.0.1:11211)\n"
	"  --duration T       end after this time\n"
	"  --limit N          end after N requests\n"
	"  --sample S         record all requests of this share of the keys, such as 1/16  (1)\n"
	"  --salt TEXT        the same salt names a key the same way in every recording; who knows it can\n"
	"                     test guesses of keys  (a random secret, which nobody keeps)\n"
	"  --apps A           what stands for the application, the part of the key before the delimiter:\n"
	"                     hash; name: as it is; none: all keys are of one  (hash)\n"
	"  --delimiter C      one character  (:)\n"
	"  --fill-window T    a set that comes so soon after a get missed its key is taken for the answer\n"
	"                     to the miss and becomes part of the get; 0: write every set  (1s)\n"
	"  --timeout T        for a connection and for the server's answer  (5s)\n"
	"  --quiet            no progress and no summary; lost lines are told nevertheless\n" ACCESS_HELP
	"  --help  --version\n"
	"\n"
	"Counts take k, m, g (thousands), times us, ms, s, m, h, d.\n"
	"Exit status: 0 ended as it was told to; 2 bad usage, the server refused or went away, or the\n"
	"file could not be written: it holds what came before.\n";

static void parse_delimiter(void *to, const char *text)
{
	if (strlen(text) != 1)
		arg_die("--delimiter: \"%s\" is not one character", text);
	*(char *)to = text[0];
}

void record_options_parse(int argc, char **argv, struct record_options *options)
{
	static const char *const apps[] = { "hash", "name", "none", NULL };
	int choice = APPS_HASH, first;
	const struct arg_option rows[] = {
		ARG("output", ARG_TEXT, &options->output),
		ARG("server", ARG_TEXT, &options->server),
		ARG("duration", ARG_TIME_US, &options->duration_us, .low = 1e3, .high = 31622400e6),
		ARG("limit", ARG_COUNT, &options->limit, .low = 1),
		ARG("sample", ARG_REAL, &options->sample, .low = 1e-6, .high = 1),
		ARG("salt", ARG_TEXT, &options->salt),
		ARG("apps", ARG_WORD, &choice, .words = apps),
		ARG("delimiter", ARG_CALL, &options->delimiter, .call = parse_delimiter),
		ARG("fill-window", ARG_TIME_US, &options->fill_window_us, .high = 60e6),
		ARG("timeout", ARG_TIME_US, &options->timeout_us, .low = 1e3, .high = 3600e6),
		ARG("quiet", ARG_ON, &options->quiet),
		ACCESS_ARGS(&options->access),
		ARGS_END,
	};

	*options = (struct record_options){
		.server = "127.0.0.1:11211",
		.fill_window_us = 1000000,
		.timeout_us = 5000000,
		.limit = UINT64_MAX,
		.sample = 1,
		.delimiter = ':',
	};
	first = args_parse(argc, argv, rows, help);
	if (first != argc)
		arg_die("\"%s\" is one argument too many; see --help", argv[first]);
	options->apps = (enum record_apps)choice;
	access_open(&options->access);
	if (!options->output)
		arg_die("--output: no file given (- is standard output); see --help");
}
