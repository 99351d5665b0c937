/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/args.h"
#include "tools/inspect/format.h"

#define THREADS_MOST 64

#define PATH_BYTES_MOST 4095u

static const struct inspect_start start_defaults = {
	.memory_bytes = 64ull << 20, .object_bytes = 400, .max_downtime_us = 60000000, .functions = 16
};

static const char help[] =
	"Usage: flashield-inspect [OPTION]... FILE [COMMAND]\n"
	"       flashield-inspect [OPTION]... state STATE_DIR FILE\n"
	"Shows and verifies a flash file or block device of flashield. Reads only, takes no lock: works "
	"on\n"
	"the file of a running daemon too, where what is written at that moment shows as \"being "
	"written\".\n"
	"\n"
	"  list                 superblock, and a line per segment; the default\n"
	"  verify               checks every byte: superblock, headers, footers, records, gaps\n"
	"  find KEY             every record of a key, youngest first\n"
	"  dump SEGMENT:OFFSET  a record: fields, key and value\n"
	"  dump --key KEY       the youngest record of a key\n"
	"  segment NUMBER       header, footer, record sizes and largest gap of a segment\n"
	"  state STATE_DIR FILE what a start of the daemon would do with flash and state directory, and why\n"
	"\n"
	"  --no-live            list: headers and footers only. Without it all records are read, to tell "
	"how\n"
	"                       many can still be live; takes 12 bytes of memory for each\n"
	"  --uptime T           the row flash_uptime of \"stats flash\", as expiry counts from there: list tells what\n"
	"                       has expired, find and dump when it will\n"
	"  --records            segment: list the records too\n"
	"  --raw                dump: the value's bytes alone, to standard output\n"
	"  --region-dir DIR     state: options of the daemon, as its start would have them: also -m, --memory-limit;\n"
	"                       --restart-max-downtime, --flash-size, --segment-size, --flash-object-size,\n"
	"                       --hash-functions, --tag-bits, --clock-mode, --index, --journal. Their defaults are the daemon's\n"
	"  -j, --threads N      that read and check  (2)\n"
	"  --json               for programs\n"
	"  --quiet              no progress, no notes\n"
	"  --help  --version\n"
	"\n"
	"OFFSET is in bytes from the segment's start, as all commands print it. Keys are printed with "
	"\\xNN\n"
	"for what is not text; $'...' of a shell turns that back.\n"
	"\n"
	"Exit status: 0 all is well; 1 something failed its check, or a start would not be warm; 2 it could\n"
	"not be done.\n";

static void set_key(void *to, const char *text)
{
	struct inspect_options *options = to;
	size_t length = strlen(text);

	if (length < 1 || length > FORMAT_KEY_MAX)
		arg_die("a key has 1 to %u bytes", FORMAT_KEY_MAX);
	options->key = text;
	options->key_length = (uint32_t)length;
}

/* ---- options of a start ------------------------------------------------------------------------ */

static bool is_auto(const char *text)
{
	return strcmp(text, "auto") == 0;
}

/* As the daemon's -m: a number alone is in MiB. */
static void set_memory(void *to, const char *text)
{
	size_t length = strlen(text);
	char with_unit[64];

	if (length > 0 && length < sizeof(with_unit) - 1 && text[length - 1] >= '0' && text[length - 1] <= '9') {
		snprintf(with_unit, sizeof(with_unit), "%sm", text);
		text = with_unit;
	}
	*(uint64_t *)to = arg_size("memory-limit", text, 1u << 20, 1ull << 50);
}

static void set_flash_size(void *to, const char *text)
{
	*(uint64_t *)to = is_auto(text) ? 0 : arg_size("flash-size", text, 256u << 10, 1ull << 54);
}

static void set_segment_size(void *to, const char *text)
{
	*(uint64_t *)to = is_auto(text) ? 0 : arg_size("segment-size", text, 64u << 10, 1u << 29);
}

static void set_object_size(void *to, const char *text)
{
	*(uint64_t *)to = arg_size("flash-object-size", text, 16, 1u << 20);
}

static void set_tag_bits(void *to, const char *text)
{
	*(uint32_t *)to = is_auto(text) ? 0 : (uint32_t)arg_count("tag-bits", text, 2, 24);
}

/* ---- the command ------------------------------------------------------------------------------- */

/* A number, also 0x..., up to most, that ends at `end`. */
static uint64_t parse_number(const char *what, const char *text, char end, uint64_t most)
{
	char *rest = NULL;
	uint64_t value = 0;

	if (*text >= '0' && *text <= '9')
		value = strtoull(text, &rest, 0);
	if (!rest || *rest != end || value > most)
		arg_die("%s: \"%s\" is not a number up to %" PRIu64, what, text, most);
	return value;
}

/* "SEGMENT:OFFSET" */
static void set_location(struct inspect_options *options, const char *text)
{
	const char *colon = strchr(text, ':');

	if (!colon)
		arg_die("dump: \"%s\" is not of the form SEGMENT:OFFSET", text);
	options->segment = (uint32_t)parse_number("dump: segment", text, ':', FORMAT_SEGMENTS_MOST);
	options->offset = parse_number("dump: offset", colon + 1, 0, FORMAT_SEGMENT_MOST);
}

static enum inspect_command find_command(const char *text)
{
	static const char *const names[] = {
		[COMMAND_LIST] = "list", [COMMAND_VERIFY] = "verify",   [COMMAND_FIND] = "find",
		[COMMAND_DUMP] = "dump", [COMMAND_SEGMENT] = "segment",
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0)
			return (enum inspect_command)i;
	arg_die("\"%s\" is not a command: list, verify, find, dump or segment; or \"state STATE_DIR FILE\"", text);
}

static bool takes_argument(const struct inspect_options *options)
{
	return options->command == COMMAND_SEGMENT ||
	       ((options->command == COMMAND_FIND || options->command == COMMAND_DUMP) && !options->key);
}

/* Takes the words after the file. Returns the number of words taken. */
static int parse_command(struct inspect_options *options, char **words, int count)
{
	if (count == 0)
		return 0;
	options->command = find_command(words[0]);
	if (!takes_argument(options))
		return 1;
	if (count < 2)
		arg_die("%s: of what? See --help", words[0]);
	if (options->command == COMMAND_FIND)
		set_key(options, words[1]);
	else if (options->command == COMMAND_DUMP)
		set_location(options, words[1]);
	else
		options->segment = (uint32_t)parse_number("segment", words[1], 0, FORMAT_SEGMENTS_MOST);
	return 2;
}

/* "state STATE_DIR FILE": the only command in front of the file, because the folder comes first. */
static bool parse_state(struct inspect_options *options, char **words, int count)
{
	if (strcmp(words[0], "state") != 0 || (count > 1 && count != 3))
		return false;
	if (count != 3)
		arg_die("state: of which folder and file? See --help");
	options->command = COMMAND_STATE;
	options->start.state_dir = words[1];
	options->path = words[2];
	if (strlen(words[1]) > PATH_BYTES_MOST || strlen(words[2]) > PATH_BYTES_MOST)
		arg_die("state: a path has at most %u bytes", PATH_BYTES_MOST);
	return true;
}

static bool are_defaults(const struct inspect_start *start)
{
	const struct inspect_start *own = &start_defaults;

	return !start->region_dir && start->memory_bytes == own->memory_bytes &&
	       start->flash_bytes == own->flash_bytes && start->segment_bytes == own->segment_bytes &&
	       start->object_bytes == own->object_bytes && start->max_downtime_us == own->max_downtime_us &&
	       start->tag_bits == own->tag_bits && start->functions == own->functions &&
	       start->clock_mode == own->clock_mode && start->index == own->index && start->journal == own->journal;
}

/* Rejects an option that the command doesn't know. */
static void check_options(const struct inspect_options *options)
{
	if (options->raw && options->command != COMMAND_DUMP)
		arg_die("--raw: only dump has it");
	if (options->raw && options->json)
		arg_die("--raw and --json: one of them");
	if (options->records && options->command != COMMAND_SEGMENT)
		arg_die("--records: only segment has it");
	if (!options->live && options->command != COMMAND_LIST)
		arg_die("--no-live: only list has it");
	if (options->command != COMMAND_STATE && !are_defaults(&options->start))
		arg_die("an option of the daemon: only state has it");
	if (options->key && options->command != COMMAND_DUMP && options->command != COMMAND_FIND)
		arg_die("--key: only dump has it");
}

void inspect_options_parse(int argc, char **argv, struct inspect_options *options)
{
	static const char *const journals[] = { "off", "sync", NULL };
	static const char *const clock_modes[] = { "lru", "mfu", NULL }, *const indexes[] = { "slots", "frugal", NULL };
	struct inspect_start *start = &options->start;
	int64_t uptime_us = -1;
	int first, taken;
	const struct arg_option rows[] = {
		ARG("key", ARG_CALL, options, .call = set_key),
		ARG("no-live", ARG_OFF, &options->live),
		ARG("uptime", ARG_TIME_US, &uptime_us, .low = 0, .high = 3153600000e6),
		ARG("records", ARG_ON, &options->records),
		ARG("raw", ARG_ON, &options->raw),
		ARG("threads", ARG_COUNT32, &options->threads, .low = 1, .high = THREADS_MOST, .letter = 'j'),
		ARG("json", ARG_ON, &options->json),
		ARG("quiet", ARG_ON, &options->quiet),
		ARG("region-dir", ARG_TEXT, &start->region_dir),
		ARG("restart-max-downtime", ARG_TIME_US, &start->max_downtime_us, .low = 0, .high = 30.0 * 86400 * 1e6),
		ARG("memory-limit", ARG_CALL, &start->memory_bytes, .call = set_memory, .letter = 'm'),
		ARG("flash-size", ARG_CALL, &start->flash_bytes, .call = set_flash_size),
		ARG("segment-size", ARG_CALL, &start->segment_bytes, .call = set_segment_size),
		ARG("flash-object-size", ARG_CALL, &start->object_bytes, .call = set_object_size),
		ARG("hash-functions", ARG_COUNT32, &start->functions, .low = 1, .high = 16),
		ARG("tag-bits", ARG_CALL, &start->tag_bits, .call = set_tag_bits),
		ARG("journal", ARG_WORD, &start->journal, .words = journals),
		ARG("clock-mode", ARG_WORD, &start->clock_mode, .words = clock_modes),
		ARG("index", ARG_WORD, &start->index, .words = indexes),
		ARGS_END,
	};

	*options = (struct inspect_options){ .live = true, .threads = 2, .uptime_s = -1 };
	memcpy(start, &start_defaults, sizeof(*start));
	first = args_parse(argc, argv, rows, help);
	if (uptime_us >= 0)
		options->uptime_s = uptime_us / 1000000;
	if (first == argc)
		arg_die("no file given; see --help");
	if (parse_state(options, argv + first, argc - first))
		return check_options(options);
	options->path = argv[first++];
	taken = parse_command(options, argv + first, argc - first);
	if (first + taken != argc)
		arg_die("\"%s\" is one argument too many; see --help", argv[first + taken]);
	check_options(options);
}
