/* SPDX-License-Identifier: BSD-3-Clause */
/* What a start of the daemon would do with this flash and what lies beside it, by the judgement of the start itself. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/parts.h"
#include "base/region.h"
#include "server/store/outlook.h"
#include "tools/common/args.h"
#include "tools/inspect/commands.h"
#include "tools/inspect/words.h"

#define IN_USE "a daemon has the flash in use now: a second one would not start"

static struct store_config config_of(const struct inspect_options *options)
{
	const struct inspect_start *start = &options->start;
	struct store_config config;

	store_config_init(&config);
	config.flash_path = options->path;
	config.state_dir = start->state_dir;
	config.region_dir = start->region_dir;
	config.memory_bytes = start->memory_bytes;
	config.flash_bytes = start->flash_bytes;
	config.segment_bytes = start->segment_bytes;
	config.flash_object_bytes = (uint32_t)start->object_bytes;
	config.restart_max_downtime_us = (uint64_t)start->max_downtime_us;
	config.tag_bits = start->tag_bits;
	config.functions = start->functions;
	config.journal = start->journal != 0;
	config.index = start->index ? STORE_INDEX_FRUGAL : STORE_INDEX_SLOTS;
	config.clock_mode = start->clock_mode ? FIDX_CLOCK_MFU : FIDX_CLOCK_LRU;
	return config;
}

/* A file that this user may not read says nothing about a start by the daemon's. */
static void check_rights(const struct outlook_file *file)
{
	if (file->code == FS_ESYS && (file->error == EACCES || file->error == EPERM))
		arg_die("%s: %s: try as root, or as the daemon's user", file->path, strerror(file->error));
}

static void check_folder(const char *folder)
{
	struct stat st;

	if (stat(folder, &st) != 0)
		arg_die("%s: %s", folder, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		arg_die("%s: is not a directory", folder);
}

/* All that lies beside the flash. */
struct beside {
	struct outlook_files files;
	struct outlook_file journal; /* path "": the superblock can't be read, so nobody knows whose it is */
	struct outlook_ids ids;
};

/* ---- the files --------------------------------------------------------------------------------- */

/* Returns why a head wasn't read, or NULL. */
static const char *trouble(const struct outlook_file *file)
{
	switch (file->code) {
	case FS_OK:
		return NULL;
	case FS_ENOTFOUND:
		return "there is none";
	case FS_EVERSION:
		return "of another format version";
	case FS_ECORRUPT:
	case FS_ESHORT:
		return "damaged";
	case FS_ESYS:
		return file->why[0] ? file->why : strerror(file->error);
	default:
		return file->why[0] ? file->why : fs_strerror(file->code);
	}
}

static double age_s(const struct outlook_file *file)
{
	return ((double)clk_now_us(clk_boot()) - (double)file->time_us) / 1e6;
}

static void print_file(const char *name, const struct outlook_file *file, const char *what, unsigned version,
		       const struct flash *flash)
{
	const char *none = trouble(file);

	printf("%-15s ", name);
	if (!file->path[0]) {
		puts("not asked for: --region-dir wasn't given");
		return;
	}
	printf("%s: ", file->path);
	if (none) {
		puts(none);
		return;
	}
	printf("format version %u, ", version);
	if (file->counted)
		printf("up to %" PRIu64 " objects, ", file->objects);
	printf("of start %" PRIu64 " of %s flash", file->epoch,
	       memcmp(file->uuid, flash->super.uuid, sizeof(file->uuid)) == 0 ? "this" : "another");
	if (file->this_boot)
		printf("; %s %.1f s ago\n", what, age_s(file));
	else
		puts("; before the machine was booted");
}

static double journal_age_s(const struct outlook_file *journal)
{
	return (double)clk_wall_seconds() - (double)journal->time_us / 1e6;
}

static void print_journal(const struct outlook_file *journal)
{
	if (!journal->path[0])
		return;
	printf("%-15s %s.*: ", "journal", journal->path);
	if (journal->code == FS_ENOTFOUND)
		puts("there is none of this flash");
	else if (journal->code != FS_OK)
		puts(trouble(journal));
	else
		printf("of start %" PRIu64 " of this flash; alive %.0f s ago\n", journal->epoch,
		       journal_age_s(journal));
}

static void print_ids(const struct outlook_ids *ids)
{
	printf("%-15s ", "notes of ids");
	if (ids->notes == 0) {
		puts("there is none");
		return;
	}
	printf("%u", ids->notes);
	if (ids->damaged > 0)
		printf(", of which %u are damaged", ids->damaged);
	if (ids->end > 0)
		printf("; CAS ids below %" PRIu64 " may have been given", ids->end);
	putchar('\n');
}

static void print_beside(const struct flash *flash, const struct beside *beside)
{
	const struct outlook_files *files = &beside->files;
	const struct outlook_file *region = &files->region;

	print_file("state file", &files->state, "stopped", PARTS_VERSION, flash);
	if (region->path[0] && region->code == FS_OK && !region->sealed)
		printf("%-15s %s: format version %u, of no run\n", "region", region->path, REGION_VERSION);
	else
		print_file("region", region, "alive", REGION_VERSION, flash);
	print_file("saved objects", &files->items, "stopped", PARTS_VERSION, flash);
	print_journal(&beside->journal);
	print_ids(&beside->ids);
}

static void print_outlook(const struct outlook *outlook)
{
	puts("\nA start with these options:");
	if (outlook->refused) {
		printf("%-15s %s\n", "refused", outlook->reason);
		return;
	}
	printf("%-15s %s", "flash", outlook->text);
	if (outlook->warm && outlook->objects > 0) /* a start may know only later how many there are */
		printf(", with %" PRIu64 " objects", outlook->objects);
	printf("\n%-15s %s\n", "memory", outlook->dram_text);
}

/* ---- JSON -------------------------------------------------------------------------------------- */

static json_t *file_json(const struct outlook_file *file)
{
	const char *none = trouble(file);
	char uuid[WORDS_UUID_BYTES];
	json_t *object;

	if (!file->path[0])
		return json_null();
	object = json_pack("{s:b, s:s*}", "readable", none == NULL, "problem", none);
	words_json_bytes(object, "path", (const uint8_t *)file->path, strlen(file->path));
	if (none)
		return object;
	json_object_update_new(object, json_pack("{s:s, s:I, s:b}", "uuid", words_uuid(file->uuid, uuid), "epoch",
						 (json_int_t)file->epoch, "this_boot", file->this_boot));
	if (file->counted)
		json_object_set_new(object, "objects_most", json_integer((json_int_t)file->objects));
	if (file->this_boot)
		json_object_set_new(object, "age_s", json_real(age_s(file)));
	return object;
}

static json_t *journal_json(const struct outlook_file *journal)
{
	const char *none = trouble(journal);
	json_t *object;

	if (!journal->path[0])
		return json_null();
	object = json_pack("{s:b, s:s*}", "readable", none == NULL, "problem", none);
	words_json_bytes(object, "path", (const uint8_t *)journal->path, strlen(journal->path));
	if (!none)
		json_object_update_new(object, json_pack("{s:I, s:f}", "epoch", (json_int_t)journal->epoch, "age_s",
							 journal_age_s(journal)));
	return object;
}

static json_t *outlook_json(const struct outlook *outlook)
{
	if (outlook->refused)
		return json_pack("{s:b, s:s}", "refused", 1, "reason", outlook->reason);
	return json_pack("{s:b, s:{s:b, s:s, s:s, s:I}, s:{s:b, s:s, s:s}}", "refused", 0, "flash", "warm",
			 outlook->warm, "word", outlook->word, "text", outlook->text, "objects",
			 (json_int_t)outlook->objects, "memory", "warm", outlook->dram_warm, "word", outlook->dram_word,
			 "text", outlook->dram_text);
}

static void print_json(const struct flash *flash, const char *problem, bool in_use, const struct beside *beside,
		       const struct outlook *outlook)
{
	const struct outlook_files *files = &beside->files;
	json_t *ids = json_pack("{s:i, s:i, s:I}", "notes", (int)beside->ids.notes, "damaged", (int)beside->ids.damaged,
				"end", (json_int_t)beside->ids.end);

	words_print_json(json_pack("{s:o, s:s*, s:b, s:o, s:o, s:o, s:o, s:o, s:o}", "flash",
				   problem[0] ? json_null() : superblock_json(flash, in_use), "problem",
				   problem[0] ? problem : NULL, "in_use", in_use, "state_file",
				   file_json(&files->state), "region", file_json(&files->region), "saved_objects",
				   file_json(&files->items), "journal", journal_json(&beside->journal), "ids", ids,
				   "start", outlook_json(outlook)));
}

/* ---- the command ------------------------------------------------------------------------------- */

int command_state(const struct inspect_options *options, const struct flash *flash, const char *problem)
{
	const struct store_config config = config_of(options);
	bool in_use = flash_in_use(flash);
	struct beside beside = { 0 };
	struct outlook outlook = { .refused = true, .reason = IN_USE };

	log_set_level(LOG_LEVEL_ERROR);
	check_folder(config.state_dir);
	outlook_find(&config, &beside.files);
	check_rights(&beside.files.state);
	check_rights(&beside.files.region);
	check_rights(&beside.files.items);
	if (!problem[0])
		outlook_find_journal(&config, flash->super.uuid,
				     flash->super.index_segments ? flash->super.index_segments : flash->super.segments,
				     &beside.journal);
	outlook_find_ids(&config, &beside.ids);
	if (!in_use)
		outlook_judge(&config, &outlook);
	if (options->json) {
		print_json(flash, problem, in_use, &beside, &outlook);
	} else {
		if (problem[0])
			printf("flash           %s: %s\n", options->path, problem);
		else
			superblock_print(options, flash, in_use);
		print_beside(flash, &beside);
		print_outlook(&outlook);
	}
	/* Without saved objects of DRAM, as after a kill, the rest may be well. */
	return outlook.refused || !outlook.warm || (beside.files.items.code != FS_ENOTFOUND && !outlook.dram_warm)
		       ? EXIT_WRONG
		       : 0;
}
