/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/records.h"

#include <inttypes.h>
#include <stdio.h>

#include "tools/common/args.h"
#include "tools/inspect/walk.h"
#include "tools/inspect/words.h"

struct printer {
	uint32_t segment;
	int64_t uptime_s;
	uint64_t printed;
};

static void ignore_failure(void *context, uint64_t offset, const char *text)
{
	(void)context;
	(void)offset;
	(void)text;
}

static void walk(const struct flash *flash, const struct segment *segment,
		 void (*record)(void *context, const struct format_record *record, bool good), struct printer *printer)
{
	const struct walk_events events = { .record = record, .failure = ignore_failure };
	struct walk_totals totals;
	struct window window;

	window_init(&window, flash);
	if (walk_segment(&flash->super, segment, &window, &events, printer, &totals) != FS_OK)
		arg_die("out of memory");
	window_fini(&window);
}

static void print_line(void *context, const struct format_record *record, bool good)
{
	const struct printer *printer = context;
	char text[WORDS_TIME_BYTES], key[WORDS_KEY_BYTES];

	printf("%9" PRIu64 "  %9u  %20" PRIu64 "  %10u  %-22s  %-6s  %s\n", record->offset, record->value_length,
	       record->cas, record->client_flags, words_expiry(record->expiry, printer->uptime_s, text),
	       !good            ? "BROKEN"
	       : record->extent ? "extent"
				: "ok",
	       words_key(record->key, record->key_length, key));
}

void records_print(const struct inspect_options *options, const struct flash *flash, const struct segment *segment)
{
	struct printer printer = { .segment = segment->number, .uptime_s = options->uptime_s };

	printf("\n%9s  %9s  %20s  %10s  %-22s  %-6s  %s\n", "offset", "value (B)", "CAS id", "flags", "expires",
	       "check", "key");
	walk(flash, segment, print_line, &printer);
}

static void print_object(void *context, const struct format_record *record, bool good)
{
	struct printer *printer = context;
	json_t *object = words_json_record(record, printer->segment, good);

	fputs(printer->printed++ ? ",\n    " : "\n    ", stdout);
	if (json_dumpf(object, stdout, JSON_COMPACT) != 0)
		arg_die("the output can't be written");
	json_decref(object);
}

void records_print_json(const struct flash *flash, const struct segment *segment, json_t *object)
{
	struct printer printer = { .segment = segment->number };

	putchar('{');
	json_dumpf(object, stdout, JSON_COMPACT | JSON_EMBED);
	json_decref(object);
	fputs(", \"records_listed\": [", stdout);
	walk(flash, segment, print_object, &printer);
	puts("]}");
}
