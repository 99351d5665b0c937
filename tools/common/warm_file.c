/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/warm_file.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

enum { HEAD_BYTES = 32, OBJECT_BYTES = 24, CHECKED_BYTES = 24 };

#define PART_MOST ((uint64_t)WARM_PART_BYTES + OBJECT_BYTES + WARM_KEY_BYTES + WARM_VALUE_BYTES)

static const char file_magic[8] = "FSWARM\r\n";
static const char part_magic[4] = "PART", last_magic[4] = "LAST";

static void put32(char *out, uint32_t value)
{
	value = htole32(value);
	memcpy(out, &value, sizeof(value));
}

static void put64(char *out, uint64_t value)
{
	value = htole64(value);
	memcpy(out, &value, sizeof(value));
}

static uint32_t take32(const char *in)
{
	uint32_t value;

	memcpy(&value, in, sizeof(value));
	return le32toh(value);
}

static uint64_t take64(const char *in)
{
	uint64_t value;

	memcpy(&value, in, sizeof(value));
	return le64toh(value);
}

static uint64_t check_of(const void *bytes, size_t length)
{
	return hash64(bytes, length, 0);
}

static bool reserve(struct warm_buffer *buffer, size_t bytes)
{
	size_t room = buffer->room ? buffer->room : 2 * (size_t)WARM_PART_BYTES;
	char *moved;

	while (room - buffer->used < bytes)
		room *= 2;
	if (room == buffer->room)
		return true;
	moved = mem_realloc(buffer->bytes, room);
	if (!moved)
		return false;
	buffer->bytes = moved;
	buffer->room = room;
	return true;
}

/* ---- writing ------------------------------------------------------------------------------------ */

static int write_bytes(FILE *file, const void *bytes, size_t length)
{
	if (length == 0) /* bytes may be NULL then */
		return FS_OK;
	return fwrite(bytes, 1, length, file) == length ? FS_OK : FS_ESYS;
}

int warm_writer_init(struct warm_writer *writer, FILE *file, int64_t created)
{
	char head[HEAD_BYTES] = "";

	*writer = (struct warm_writer){ .file = file };
	memcpy(head, file_magic, sizeof(file_magic));
	put32(head + 8, WARM_VERSION);
	put64(head + 16, (uint64_t)created);
	put64(head + CHECKED_BYTES, check_of(head, CHECKED_BYTES));
	return write_bytes(file, head, sizeof(head));
}

static int write_part(struct warm_writer *writer, const char magic[4])
{
	char head[HEAD_BYTES];
	int code;

	memcpy(head, magic, 4);
	put32(head + 4, writer->parts);
	put32(head + 8, writer->objects);
	put32(head + 12, (uint32_t)writer->part.used);
	put64(head + 16, check_of(writer->part.used ? writer->part.bytes : "", writer->part.used));
	put64(head + CHECKED_BYTES, check_of(head, CHECKED_BYTES));
	code = write_bytes(writer->file, head, sizeof(head));
	if (code == FS_OK)
		code = write_bytes(writer->file, writer->part.bytes, writer->part.used);
	writer->parts++;
	writer->objects = 0;
	writer->part.used = 0;
	return code;
}

int warm_writer_add(struct warm_writer *writer, const struct warm_object *object)
{
	size_t bytes = OBJECT_BYTES + (size_t)object->key_bytes + object->value_bytes;
	char *out;

	must(object->key_bytes >= 1 && object->key_bytes <= WARM_KEY_BYTES && object->value_bytes <= WARM_VALUE_BYTES);
	if (!reserve(&writer->part, bytes))
		return FS_ENOMEM;
	out = writer->part.bytes + writer->part.used;
	put64(out, object->client_flags);
	put64(out + 8, (uint64_t)object->expires);
	put32(out + 16, object->value_bytes);
	put32(out + 20, object->key_bytes);
	memcpy(out + OBJECT_BYTES, object->key, object->key_bytes);
	memcpy(out + OBJECT_BYTES + object->key_bytes, object->value, object->value_bytes);
	writer->part.used += bytes;
	writer->objects++;
	return writer->part.used >= WARM_PART_BYTES ? write_part(writer, part_magic) : FS_OK;
}

int warm_writer_end(struct warm_writer *writer)
{
	int code = writer->objects ? write_part(writer, part_magic) : FS_OK;

	if (code == FS_OK)
		code = write_part(writer, last_magic);
	return code == FS_OK && fflush(writer->file) != 0 ? FS_ESYS : code;
}

void warm_writer_fini(struct warm_writer *writer)
{
	mem_free(writer->part.bytes);
}

/* ---- reading ------------------------------------------------------------------------------------ */

static int damaged(struct warm_reader *reader, uint64_t offset, const char *what)
{
	snprintf(reader->error, sizeof(reader->error), "part %" PRIu32 " at offset %" PRIu64 ": %s", reader->parts,
		 offset, what);
	return FS_ECORRUPT;
}

static int read_bytes(struct warm_reader *reader, void *bytes, size_t length)
{
	size_t got = fread(bytes, 1, length, reader->file);

	reader->offset += got;
	if (got == length)
		return FS_OK;
	if (ferror(reader->file)) {
		snprintf(reader->error, sizeof(reader->error), "offset %" PRIu64 ": %s", reader->offset,
			 strerror(errno));
		return FS_ESYS;
	}
	snprintf(reader->error, sizeof(reader->error), "the file is cut off at offset %" PRIu64, reader->offset);
	return FS_ECORRUPT;
}

int warm_reader_init(struct warm_reader *reader, FILE *file)
{
	char head[HEAD_BYTES];
	int code;

	*reader = (struct warm_reader){ .file = file };
	code = read_bytes(reader, head, sizeof(head));
	if (code == FS_ESYS)
		return code;
	if (reader->offset < sizeof(file_magic) || memcmp(head, file_magic, sizeof(file_magic)) != 0) {
		snprintf(reader->error, sizeof(reader->error), "this is no file of flashield-dump");
		return FS_EFOREIGN;
	}
	if (code != FS_OK)
		return code;
	if (take64(head + CHECKED_BYTES) != check_of(head, CHECKED_BYTES)) {
		snprintf(reader->error, sizeof(reader->error), "the head at offset 0 is damaged");
		return FS_ECORRUPT;
	}
	if (take32(head + 8) != WARM_VERSION) {
		snprintf(reader->error, sizeof(reader->error), "version %" PRIu32 " is not known, only %u",
			 take32(head + 8), WARM_VERSION);
		return FS_EVERSION;
	}
	reader->created = (int64_t)take64(head + 16);
	return FS_OK;
}

/* Reads a part whole. FS_ENOTFOUND: it was the end. */
static int read_part(struct warm_reader *reader)
{
	uint64_t start = reader->offset;
	char head[HEAD_BYTES];
	uint32_t bytes;
	int code = read_bytes(reader, head, sizeof(head));
	bool last;

	if (code != FS_OK)
		return code;
	last = memcmp(head, last_magic, sizeof(last_magic)) == 0;
	bytes = take32(head + 12);
	if ((!last && memcmp(head, part_magic, sizeof(part_magic)) != 0) ||
	    take64(head + CHECKED_BYTES) != check_of(head, CHECKED_BYTES))
		return damaged(reader, start, "its head is damaged");
	if (take32(head + 4) != reader->parts || bytes > PART_MOST || (last && bytes > 0))
		return damaged(reader, start, "it does not belong here");
	if (last)
		return fgetc(reader->file) == EOF ? FS_ENOTFOUND
						  : damaged(reader, reader->offset, "bytes follow the end");
	reader->part.used = 0;
	if (!reserve(&reader->part, bytes))
		return FS_ENOMEM;
	code = read_bytes(reader, reader->part.bytes, bytes);
	if (code != FS_OK)
		return code;
	if (take64(head + 16) != check_of(reader->part.bytes, bytes))
		return damaged(reader, start, "its objects are damaged");
	reader->part.used = bytes;
	reader->left = take32(head + 8);
	reader->at = 0;
	if (reader->left == 0)
		return damaged(reader, start, "it has no object");
	return FS_OK;
}

int warm_reader_next(struct warm_reader *reader, struct warm_object *object)
{
	const char *in;
	size_t left;
	int code = reader->left ? FS_OK : read_part(reader);

	if (code != FS_OK)
		return code;
	in = reader->part.bytes + reader->at;
	left = reader->part.used - reader->at;
	if (left < OBJECT_BYTES)
		return damaged(reader, reader->offset, "its objects are longer than it is");
	*object = (struct warm_object){
		.client_flags = take64(in),
		.expires = (int64_t)take64(in + 8),
		.value_bytes = take32(in + 16),
		.key = in + OBJECT_BYTES,
	};
	if (take32(in + 20) < 1 || take32(in + 20) > WARM_KEY_BYTES ||
	    left - OBJECT_BYTES < (uint64_t)take32(in + 20) + object->value_bytes)
		return damaged(reader, reader->offset, "an object has an impossible length");
	object->key_bytes = (uint16_t)take32(in + 20);
	object->value = object->key + object->key_bytes;
	reader->at += OBJECT_BYTES + (size_t)object->key_bytes + object->value_bytes;
	if (--reader->left == 0) {
		if (reader->at != reader->part.used)
			return damaged(reader, reader->offset, "bytes are left behind its objects");
		reader->parts++;
	}
	return FS_OK;
}

void warm_reader_fini(struct warm_reader *reader)
{
	mem_free(reader->part.bytes);
}
