/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench/server_internal.h"

#define EXTSTORE_PAGE_MB 16
#define EXTSTORE_PAGES_LEAST 8

/* One more word. What doesn't fit is found by command_build at the end: used is then beyond the text. */
static void add(struct command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct command *command, const char *format, ...)
{
	size_t room = command->used < COMMAND_BYTES ? COMMAND_BYTES - command->used : 0;
	char *word = command->text + (room ? command->used : 0);
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(word, room, format, arguments);
	va_end(arguments);
	command->used += (size_t)length + 1;
	if (command->count < COMMAND_WORDS)
		command->words[command->count] = word;
	command->count++;
}

static void add_wrapper(struct command *command, const char *wrapper)
{
	while (*wrapper) {
		size_t length = strcspn(wrapper, " ");

		if (length)
			add(command, "%.*s", (int)length, wrapper);
		wrapper += length + strspn(wrapper + length, " ");
	}
}

static void add_slow_drive(struct command *command, const struct server *server, const struct bench_options *options)
{
	add(command, "LD_PRELOAD=%s", options->slowdrive);
	add(command, "SLOWDRIVE_FILE=%s", server->flash_path);
	add(command, "SLOWDRIVE_CONTROL=%s", server->drive_path);
	command->environment = command->count;
}

static void add_watchdog(struct command *command, const struct server *server)
{
	add(command, "NOTIFY_SOCKET=%s", server->watchdog_name);
	add(command, "WATCHDOG_USEC=%u000000", server->spec.watchdog_seconds);
	command->environment = command->count;
}

/* What flashield takes from memcached's options means the same there. */
static void add_common(struct command *command, const struct server *server)
{
	const struct server_spec *spec = &server->spec;

	add(command, "-l");
	add(command, "127.0.0.1");
	add(command, "-p");
	add(command, "%u", server->port);
	add(command, "-U");
	add(command, "0");
	add(command, "-m");
	add(command, "%llu", (unsigned long long)spec->memory_mb);
	add(command, "-t");
	add(command, "%u", spec->threads ? spec->threads : 1);
	add(command, "-c");
	add(command, "%u", spec->max_connections ? spec->max_connections : 2048);
	/* Both refuse to run as root unless told whom to become. Staying root keeps the flash file's folder
	   usable, and the kernel forgets PR_SET_PDEATHSIG when a process changes its user. */
	if (geteuid() == 0) {
		add(command, "-u");
		add(command, "root");
	}
}

/*
 * What differs from extstore's defaults, and why. Figures: 257 B values, keys of 30 B, filled as fast as it
 * goes, -t 1, memcached 1.6.18.
 *
 * - ext_item_age=0: an object goes to flash as soon as it is cold, not when memory is short. By default all
 *   memory has been given to the values' slab class by the time that the headers of objects on flash need
 * some, and they evict each other: of 400,000 objects under -m 64 45 % were left, and 4 % were on flash.
 * (Moving slab pages faster, slab_automove_window=3 and freeratio=0.05, gave 99 % at 20,000 sets per
 * second.) With it all 400,000 are on flash, and of 3 M under -m 256 2.23 M: as many as there is memory for
 * headers.
 * - ext_item_size=128 instead of 512, or a value of 257 B would never leave DRAM. It is compared with the
 *   slab class of the whole item: the header that stays in DRAM for each object on flash is 99 B with a
 *   key of 30 B, in chunks of 120 B, and must not be in a class that is searched for objects to write.
 *   What is 121 B or more in all goes to flash: with the bench's keys, values from 32 B on (tried).
 * - ext_page_size=16 instead of 64: extstore keeps a quarter of its pages free and wants several; with
 *   pages of 64 MiB a flash file of the bench's size would have too few of them.
 * - ext_threads=1 (the default) stands here so that the report shows it: blocking reads, one at a time.
 *   Studies that want more depth add ext_threads by `extra`; memcached takes -o several times.
 */
static void add_extstore(struct command *command, const struct server *server)
{
	uint64_t mb = server->spec.flash_bytes >> 20;

	if (mb < (uint64_t)EXTSTORE_PAGES_LEAST * EXTSTORE_PAGE_MB)
		mb = (uint64_t)EXTSTORE_PAGES_LEAST * EXTSTORE_PAGE_MB;
	add(command, "-o");
	add(command, "ext_page_size=%d,ext_path=%s:%llum,ext_item_size=128,ext_item_age=0,ext_threads=1",
	    EXTSTORE_PAGE_MB, server->flash_path, (unsigned long long)mb);
}

static void add_flash(struct command *command, const struct server *server)
{
	if (server->spec.kind == SERVER_EXTSTORE) {
		add_extstore(command, server);
	} else if (server->spec.kind == SERVER_FLASHIELD) {
		add(command, "--flash-path");
		add(command, "%s", server->flash_path);
		add(command, "--flash-size");
		add(command, "%llu", (unsigned long long)server->spec.flash_bytes);
	}
}

int command_build(struct command *command, const struct server *server, const struct bench_options *options)
{
	const struct server_spec *spec = &server->spec;

	command->count = 0;
	command->used = 0;
	command->environment = 0;
	if (spec->slow_drive)
		add_slow_drive(command, server, options);
	if (spec->watchdog_seconds)
		add_watchdog(command, server);
	if (spec->wrapper)
		add_wrapper(command, spec->wrapper);
	add(command, "%s", spec->kind == SERVER_FLASHIELD ? options->flashield : options->memcached);
	add_common(command, server);
	if (spec->kind == SERVER_FLASHIELD)
		add(command, "--metrics-listen=off");
	if (server->flash_path[0])
		add_flash(command, server);
	for (const char *const *word = spec->extra; word && *word; word++)
		add(command, "%s", *word);
	if (command->count > COMMAND_WORDS || command->used > COMMAND_BYTES)
		return FS_EINVAL;
	command->words[command->count] = NULL;
	return 0;
}

void command_describe(const struct command *command, char *out, size_t out_bytes)
{
	size_t used = 0;

	out[0] = '\0';
	for (unsigned i = 0; i < command->count && used < out_bytes; i++)
		used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", i ? " " : "", command->words[i]);
}
