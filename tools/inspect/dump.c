/* SPDX-License-Identifier: BSD-3-Clause */
/* flashield-inspect FILE dump: one record, field by field, with its value. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/common/args.h"
#include "tools/common/text.h"
#include "tools/inspect/commands.h"
#include "tools/inspect/window.h"
#include "tools/inspect/words.h"

/* The part of a value that is shown; --raw writes all of it. */
#define TEXT_SHOWN 4096u
#define HEX_SHOWN 512u

struct dump {
	const struct inspect_options *options;
	const struct flash *flash;
	struct find_location location;
	struct segment segment;
	struct window window;
	struct format_record record;
	bool good;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct dump *dump, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fprintf(stderr, "flashield-inspect: segment %u offset %" PRIu64 ": %s\n", dump->location.segment,
		dump->location.offset, text);
	return EXIT_WRONG;
}

/* Fills dump->record, which points into the window. Returns 0, or an exit status after a message. */
static int read_record(struct dump *dump)
{
	uint64_t offset = dump->location.offset, end = dump->segment.header.footer_offset, length;
	const uint8_t *bytes;

	if (offset < FORMAT_PAGE || offset > end || end - offset < FORMAT_RECORD_BYTES)
		return refuse(dump, "no record can be there: they lie from %u to %" PRIu64, FORMAT_PAGE, end);
	window_open(&dump->window, dump->location.segment);
	bytes = window_at(&dump->window, offset, FORMAT_RECORD_BYTES);
	if (!bytes)
		arg_die("out of memory");
	length = format_record_parse(bytes, &dump->record);
	if (length == 0 || length > end - offset)
		return refuse(dump, "no record: a key of %u and a value of %u bytes can't be", dump->record.key_length,
			      dump->record.value_length);
	bytes = window_at(&dump->window, offset, length);
	if (!bytes)
		arg_die("out of memory");
	format_record_parse(bytes, &dump->record);
	dump->record.offset = offset;
	dump->record.extent = offset < dump->segment.header.data_offset;
	dump->good = format_record_good(&dump->flash->super, dump->segment.header.sequence, bytes, &dump->record);
	if (dump->window.unread.pages)
		return refuse(dump, "can't be read: %s", strerror(dump->window.unread.error));
	return 0;
}

static int look(struct dump *dump)
{
	int rc = segment_look(dump->flash, dump->location.segment, 0, &dump->segment);

	if (rc != FS_OK)
		arg_die("%s", fs_strerror(rc));
	/* A segment without its tail may have good records too. */
	if (dump->segment.header_good)
		return 0;
	fprintf(stderr, "flashield-inspect: segment %u is %s%s%s\n", dump->location.segment,
		segment_state_text(dump->segment.state), dump->segment.why[0] ? ": " : "", dump->segment.why);
	return segment_failed(&dump->segment) ? EXIT_WRONG : EXIT_TROUBLE;
}

/* ---- showing --------------------------------------------------------------------------------- */

static void print_value(const struct format_record *record)
{
	bool text = words_are_text(record->value, record->value_length, true);
	uint32_t most = text ? TEXT_SHOWN : HEX_SHOWN;
	uint32_t shown = record->value_length < most ? record->value_length : most;

	if (record->value_length == 0)
		return;
	puts("value:");
	if (text) {
		fwrite(record->value, 1, shown, stdout);
		if (record->value[shown - 1] != '\n')
			putchar('\n');
	} else {
		words_print_hex(record->value, shown);
	}
	if (shown < record->value_length)
		printf("... %u more bytes; --raw writes all\n", record->value_length - shown);
}

static void print_text(const struct dump *dump)
{
	const struct format_record *record = &dump->record;
	char text[WORDS_TIME_BYTES], key[WORDS_KEY_BYTES];

	printf("segment         %u, %s, sequence %" PRIu64 ", written %s\n", dump->segment.number,
	       segment_state_text(dump->segment.state), dump->segment.header.sequence,
	       words_time(dump->segment.header.written_s, text));
	printf("offset          %" PRIu64 ", %u bytes%s\n", record->offset,
	       FORMAT_RECORD_BYTES + record->key_length + record->value_length, record->extent ? ", an extent" : "");
	printf("check           0x%08x, %s\n", record->check,
	       dump->good ? "ok" : "FAILS: what follows is not what was written, or no record");
	printf("CAS id          %" PRIu64 "\n", record->cas);
	printf("client flags    %u\n", record->client_flags);
	printf("item flags      0x%02x%s\n", record->item_flags, record->item_flags & 1 ? " (has been read)" : "");
	printf("expires         %s\n", words_expiry(record->expiry, dump->options->uptime_s, text));
	printf("classifier      ");
	for (unsigned i = 0; i < FORMAT_CLASSIFIER_BYTES; i++)
		printf("%02x", record->classifier[i]);
	printf("\nkey             %s (%u bytes)\n", words_key(record->key, record->key_length, key),
	       record->key_length);
	printf("value           %u bytes\n", record->value_length);
	print_value(record);
}

static void print_json(const struct dump *dump)
{
	const struct format_record *record = &dump->record;
	json_t *object = words_json_record(record, dump->segment.number, dump->good);

	json_object_set_new(object, "sequence", json_integer((json_int_t)dump->segment.header.sequence));
	words_json_bytes(object, "value", record->value, record->value_length);
	words_print_json(object);
}

static int show(const struct dump *dump)
{
	if (dump->options->json)
		print_json(dump);
	else if (!dump->options->raw)
		print_text(dump);
	else if (!dump->good)
		return refuse(dump, "the record fails its check: its value is not written");
	else
		fwrite(dump->record.value, 1, dump->record.value_length, stdout);
	return dump->good ? 0 : EXIT_WRONG;
}

int command_dump(const struct inspect_options *options, const struct flash *flash)
{
	struct dump dump = { .options = options, .flash = flash, .location = { options->segment, options->offset } };
	int status;

	if (options->key && !find_youngest(options, flash, &dump.location))
		arg_die("no record of this key in %s", options->path);
	if (dump.location.segment >= flash->super.segments)
		arg_die("the flash has segments 0 to %u", flash->super.segments - 1);
	window_init(&dump.window, flash);
	status = look(&dump);
	if (status == 0)
		status = read_record(&dump);
	if (status == 0)
		status = show(&dump);
	window_fini(&dump.window);
	return status;
}
