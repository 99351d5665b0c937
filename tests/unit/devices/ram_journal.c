/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/devices/ram_journal.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

struct ram_file *ram_journal_file(struct ram_journal *journal, uint32_t number)
{
	for (unsigned i = 0; i < RAM_JOURNAL_FILES; i++)
		if (journal->file[i].number == number)
			return &journal->file[i];
	return NULL;
}

struct ram_file *ram_journal_last(struct ram_journal *journal)
{
	struct ram_file *last = NULL;

	for (unsigned i = 0; i < RAM_JOURNAL_FILES; i++)
		if (journal->file[i].number && (!last || journal->file[i].number > last->number))
			last = &journal->file[i];
	return last;
}

unsigned ram_journal_count(const struct ram_journal *journal)
{
	unsigned count = 0;

	for (unsigned i = 0; i < RAM_JOURNAL_FILES; i++)
		count += journal->file[i].number != 0;
	return count;
}

static void event(struct ram_journal *journal)
{
	if (journal->on_event)
		journal->on_event(journal);
}

static void forget(struct ram_file *file)
{
	mem_free(file->bytes);
	mem_free(file->durable);
	memset(file, 0, sizeof(*file));
}

static void reserve(struct ram_file *file, uint64_t length)
{
	uint64_t room = file->room ? file->room : 4096;

	while (room < length)
		room *= 2;
	if (room == file->room)
		return;
	file->bytes = mem_realloc(file->bytes, room);
	file->durable = mem_realloc(file->durable, room);
	must(file->bytes && file->durable);
	memset(file->bytes + file->room, 0, room - file->room);
	memset(file->durable + file->room, 0, room - file->room);
	file->room = room;
}

static int ram_create(struct journal_medium *medium, uint32_t number)
{
	struct ram_journal *journal = (struct ram_journal *)medium;
	struct ram_file *file;

	event(journal);
	if (journal->fail_create)
		return journal->fail_create;
	file = ram_journal_file(journal, number);
	if (file)
		forget(file);
	else
		file = ram_journal_file(journal, 0);
	must(file);
	file->number = number;
	return 0;
}

static int ram_write(struct journal_medium *medium, uint32_t number, const void *bytes, uint64_t length,
		     uint64_t offset)
{
	struct ram_journal *journal = (struct ram_journal *)medium;
	struct ram_file *file = ram_journal_file(journal, number);

	journal->writes++;
	must(file && offset % RAM_SECTOR == 0 && length % RAM_SECTOR == 0 && offset == file->durable_length);
	if (journal->fail_write)
		return journal->fail_write;
	reserve(file, offset + length);
	memcpy(file->bytes + offset, bytes, length);
	file->length = offset + length;
	event(journal); /* written, not synced */
	return 0;
}

static int ram_sync(struct journal_medium *medium, uint32_t number)
{
	struct ram_journal *journal = (struct ram_journal *)medium;
	struct ram_file *file = ram_journal_file(journal, number);

	journal->syncs++;
	must(file);
	if (journal->fail_sync)
		return journal->fail_sync;
	memcpy(file->durable + file->durable_length, file->bytes + file->durable_length,
	       file->length - file->durable_length);
	file->durable_length = file->length;
	event(journal); /* durable, and nobody knows */
	return 0;
}

static int ram_remove(struct journal_medium *medium, uint32_t number)
{
	struct ram_journal *journal = (struct ram_journal *)medium;
	struct ram_file *file = ram_journal_file(journal, number);

	event(journal);
	if (journal->fail_remove)
		return journal->fail_remove;
	if (file && number)
		forget(file);
	return 0;
}

/* There is one place. */
static int ram_share(struct journal_medium *medium, uint32_t number, struct journal_medium *other)
{
	(void)number;
	must(medium == other);
	return 0;
}

static bool ram_is_same(const struct journal_medium *medium, const struct journal_medium *other)
{
	return medium == other;
}

static int64_t ram_read(struct journal_medium *medium, uint32_t number, void *bytes, uint64_t length, uint64_t offset)
{
	const struct ram_file *file = ram_journal_file((struct ram_journal *)medium, number);

	if (!file || number == 0)
		return -ENOENT;
	if (offset >= file->length)
		return 0;
	length = length < file->length - offset ? length : file->length - offset;
	memcpy(bytes, file->bytes + offset, length);
	return (int64_t)length;
}

static int64_t ram_list(struct journal_medium *medium, uint32_t *out, uint32_t most)
{
	const struct ram_journal *journal = (const struct ram_journal *)medium;
	uint32_t count = 0;

	for (unsigned i = 0; i < RAM_JOURNAL_FILES; i++)
		if (journal->file[i].number) {
			if (count < most)
				out[count] = journal->file[i].number;
			count++;
		}
	return count;
}

static void ram_close(struct journal_medium *medium)
{
	(void)medium;
}

void ram_journal_init(struct ram_journal *journal)
{
	memset(journal, 0, sizeof(*journal));
	journal->medium = (struct journal_medium){ .create = ram_create,
						   .write = ram_write,
						   .sync = ram_sync,
						   .remove = ram_remove,
						   .share = ram_share,
						   .is_same = ram_is_same,
						   .read = ram_read,
						   .list = ram_list,
						   .close = ram_close };
}

void ram_journal_fini(struct ram_journal *journal)
{
	for (unsigned i = 0; i < RAM_JOURNAL_FILES; i++)
		forget(&journal->file[i]);
}

void ram_mix_sectors(struct rng *rng, uint8_t *bytes, const uint8_t *now, uint64_t length)
{
	for (uint64_t at = 0; at < length; at += RAM_SECTOR)
		if (rng_below(rng, 2))
			memcpy(bytes + at, now + at, RAM_SECTOR);
}

void ram_journal_cut(const struct ram_journal *journal, struct rng *rng, struct ram_journal *out)
{
	for (unsigned i = 0; i < RAM_JOURNAL_FILES; i++) {
		const struct ram_file *from = &journal->file[i];
		struct ram_file *to = &out->file[i];

		if (!from->number)
			continue;
		to->number = from->number;
		if (!from->room)
			continue;
		reserve(to, from->room);
		memcpy(to->bytes, from->durable, from->durable_length);
		to->length = from->durable_length;
		if (from->length > from->durable_length && rng_below(rng, 4)) {
			ram_mix_sectors(rng, to->bytes + from->durable_length, from->bytes + from->durable_length,
					from->length - from->durable_length);
			to->length = from->length - RAM_SECTOR * rng_below(rng, 2);
		}
		memcpy(to->durable, to->bytes, to->length);
		to->durable_length = to->length;
	}
}
