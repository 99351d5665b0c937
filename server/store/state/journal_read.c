/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a journal: finds its last file, judges each block by its check, and tells a torn end from damage. */
#include <stdlib.h>

#include "base/alloc.h"
#include "server/store/state/journal_internal.h"

#define FILES_LOOKED_AT 4096u
#define BLOCK_MOST \
	(sizeof(struct journal_block) + JOURNAL_BLOCK_ENTRIES * sizeof(struct journal_entry) + JOURNAL_SECTOR)

struct reading {
	struct journal_medium *medium;
	const uint8_t *uuid;
	uint32_t number; /* of the file that is being read */
	uint64_t at, block_number; /* the next block */
	uint64_t epoch; /* of the file */
	struct journal_block *block; /* BLOCK_MOST bytes */
	void (*visit)(void *context, const struct journal_entry *entry);
	void *context;
};

static const struct journal_entry *entries_of(const struct journal_block *block)
{
	return (const struct journal_entry *)(block + 1);
}

/* Reads the block at an offset. FS_OK; FS_ENOTFOUND: there is no whole one of this file; FS_EIO. */
static int block_at(struct reading *reading, uint64_t offset)
{
	struct journal_block *block = reading->block;
	int64_t got = reading->medium->read(reading->medium, reading->number, block, JOURNAL_SECTOR, offset);
	uint64_t bytes;

	if (got < 0)
		return FS_EIO;
	if (got < (int64_t)JOURNAL_SECTOR || memcmp(block->magic, JOURNAL_MAGIC, sizeof(block->magic)) != 0 ||
	    block->file != reading->number || block->entries > JOURNAL_BLOCK_ENTRIES ||
	    memcmp(block->uuid, reading->uuid, sizeof(block->uuid)) != 0)
		return FS_ENOTFOUND;
	bytes = journal_block_bytes(block->entries);
	if (bytes > JOURNAL_SECTOR) {
		got = reading->medium->read(reading->medium, reading->number, (char *)block + JOURNAL_SECTOR,
					    bytes - JOURNAL_SECTOR, offset + JOURNAL_SECTOR);
		if (got < 0)
			return FS_EIO;
		if ((uint64_t)got < bytes - JOURNAL_SECTOR)
			return FS_ENOTFOUND;
	}
	return block->check == journal_block_check(block) ? FS_OK : FS_ENOTFOUND;
}

/* Reads the next block of the file; FS_ENOTFOUND: the file has no further whole one. */
static int next_block(struct reading *reading)
{
	int result = block_at(reading, reading->at);

	if (result != FS_OK)
		return result;
	if (reading->block->number != reading->block_number ||
	    (reading->block_number > 0 && reading->block->epoch != reading->epoch))
		return FS_ECORRUPT;
	reading->epoch = reading->block->epoch;
	reading->at += journal_block_bytes(reading->block->entries);
	reading->block_number++;
	return FS_OK;
}

/* Does a whole block lie behind the end of the file's blocks? Then the block before it was durable, and is damaged now. */
static int judge_end(struct reading *reading)
{
	for (uint64_t at = reading->at + JOURNAL_SECTOR;; at += JOURNAL_SECTOR) {
		char magic[8];
		int64_t got = reading->medium->read(reading->medium, reading->number, magic, sizeof(magic), at);
		int result;

		if (got < 0)
			return FS_EIO;
		if (got < (int64_t)sizeof(magic))
			return FS_OK;
		if (memcmp(magic, JOURNAL_MAGIC, sizeof(magic)) != 0)
			continue;
		result = block_at(reading, at);
		if (result != FS_ENOTFOUND)
			return result == FS_OK ? FS_ECORRUPT : result;
	}
}

static void begin_file(struct reading *reading, uint32_t number)
{
	reading->number = number;
	reading->at = reading->block_number = reading->epoch = 0;
}

/* Hands the block's dead records and changed keys on, and notes the newest segment that they name. */
static void visit_block(struct reading *reading, struct journal_file_state *file)
{
	const struct journal_entry *entry = entries_of(reading->block);

	for (uint32_t i = 0; i < reading->block->entries; i++) {
		uint64_t names = journal_entry_names(&entry[i]);

		file->newest = names > file->newest ? names : file->newest;
		if (names && reading->visit)
			reading->visit(reading->context, &entry[i]);
	}
}

/* Takes the last file's block into the state. False: it has an entry that no writer makes, or says that another file
   follows. */
static bool take_block(struct reading *reading, struct journal_found *found)
{
	const struct journal_entry *entry = entries_of(reading->block);

	for (uint32_t i = 0; i < reading->block->entries; i++) {
		if (entry[i].zero || entry[i].kind == 0 || entry[i].kind >= JOURNAL_KINDS ||
		    entry[i].kind == JOURNAL_NEXT)
			return false;
		if (entry[i].kind == JOURNAL_DEAD || entry[i].kind == JOURNAL_CHANGED)
			continue;
		if (entry[i].kind == JOURNAL_FILE) {
			if (reading->block_number != 1 || found->files >= JOURNAL_FILES_MOST)
				return false;
			found->file[found->files++] =
				(struct journal_file_state){ .number = entry[i].small, .blocks = entry[i].value };
		} else if (!journal_state_take(&found->state, &entry[i])) {
			return false;
		}
	}
	found->epoch = reading->block->epoch;
	found->wall_s = reading->block->wall_s;
	found->store_s = reading->block->store_s;
	return true;
}

/* Reads the last file, whose head is whole. */
static int read_last(struct reading *reading, struct journal_found *found)
{
	struct journal_file_state last = { .number = reading->number };
	int result = FS_OK;

	while ((result = next_block(reading)) == FS_OK) {
		if (!take_block(reading, found))
			return FS_ECORRUPT;
		visit_block(reading, &last);
	}
	if (result == FS_ENOTFOUND)
		result = judge_end(reading);
	last.blocks = reading->block_number;
	last.bytes = reading->at;
	found->file[found->files++] = last;
	return result;
}

/* Reads an older file that the last one's head names: it must have all its blocks. */
static int read_older(struct reading *reading, struct journal_file_state *file)
{
	begin_file(reading, file->number);
	while (reading->block_number < file->blocks) {
		int result = next_block(reading);

		if (result != FS_OK)
			return result == FS_ENOTFOUND ? FS_ECORRUPT : result;
		visit_block(reading, file);
	}
	file->bytes = reading->at;
	return FS_OK;
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Finds the file that counts: the one with the highest number, unless its head was never finished. */
static int find_last(struct reading *reading, const uint32_t *number, uint32_t count)
{
	for (uint32_t i = count; i > 0; i--) {
		int result;

		begin_file(reading, number[i - 1]);
		result = block_at(reading, 0);
		if (result == FS_OK)
			return reading->block->number == 0 ? FS_OK : FS_ECORRUPT;
		if (result != FS_ENOTFOUND)
			return result;
		result = judge_end(reading); /* blocks without a head: its head is damaged */
		if (result != FS_OK)
			return result;
		if (i < count) /* two files without a head: no crash leaves that */
			return FS_ENOTFOUND;
	}
	return FS_ENOTFOUND;
}

static int list_files(struct journal_medium *medium, uint32_t *number, uint32_t *count)
{
	int64_t listed = medium->list(medium, number, FILES_LOOKED_AT);

	if (listed < 0)
		return FS_EIO;
	*count = listed < FILES_LOOKED_AT ? (uint32_t)listed : FILES_LOOKED_AT;
	qsort(number, *count, sizeof(*number), compare_numbers);
	return listed > FILES_LOOKED_AT ? FS_ECORRUPT : FS_OK;
}

static int read_files(struct reading *reading, const uint32_t *number, uint32_t count, struct journal_found *out)
{
	int result = find_last(reading, number, count);

	if (result == FS_OK)
		result = read_last(reading, out);
	for (unsigned i = 0; i + 1 < out->files && result == FS_OK; i++) {
		if (out->file[i].number >= out->file[i + 1].number)
			return FS_ECORRUPT;
		result = read_older(reading, &out->file[i]);
	}
	return result;
}

int journal_read(struct journal_medium *medium, const uint8_t uuid[16], uint32_t segments,
		 void (*visit)(void *context, const struct journal_entry *entry), void *context,
		 struct journal_found *out)
{
	struct reading reading = { .medium = medium, .uuid = uuid, .visit = visit, .context = context };
	uint32_t *number = mem_alloc(FILES_LOOKED_AT * sizeof(*number)), count = 0;
	int result;

	*out = (struct journal_found){ .epoch = 0 };
	reading.block = mem_alloc(BLOCK_MOST);
	result = number && reading.block ? journal_state_init(&out->state, segments) : FS_ENOMEM;
	if (result == FS_OK)
		result = list_files(medium, number, &count);
	if (count > 0)
		out->highest = number[count - 1];
	if (result == FS_OK)
		result = read_files(&reading, number, count, out);
	if (result != FS_OK)
		journal_found_fini(out);
	mem_free(number);
	mem_free(reading.block);
	return result;
}

void journal_found_fini(struct journal_found *found)
{
	journal_state_fini(&found->state);
	found->files = 0;
}
