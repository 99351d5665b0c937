/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/damage.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"

#define CHANGES 64u
#define COPY_MOST 512u
#define REALS 10u
#define BEYOND 16u /* the end of a file */

/* Of base/parts.c. */
#define PARTS_SEED 0x464c534854415445ull
#define PARTS_FILE_HEAD 16u
#define PARTS_HEAD 40u
enum { HEAD_LENGTH = 16, HEAD_BYTES_CHECKSUM = 24, HEAD_CHECKSUM = 32 };

struct damaged damaged_copy(const void *bytes, uint64_t length, uint64_t room)
{
	struct damaged file = { .bytes = malloc(room), .length = length, .room = room };

	require(file.bytes && length <= room);
	memcpy(file.bytes, bytes, length);
	return file;
}

uint64_t damaged_number(const struct damaged *file, uint64_t at, unsigned bytes)
{
	uint64_t number = 0;

	if (at <= file->length && bytes <= file->length - at)
		memcpy(&number, file->bytes + at, bytes);
	return number;
}

void damaged_put(struct damaged *file, uint64_t at, uint64_t number, unsigned bytes)
{
	if (at <= file->length && bytes <= file->length - at)
		memcpy(file->bytes + at, &number, bytes);
}

/* ---- files ----------------------------------------------------------------------------------- */

struct damaged damaged_read(const char *path, uint64_t room)
{
	struct damaged file = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat status;

	if (fd < 0)
		return file;
	require(fstat(fd, &status) == 0);
	file = damaged_copy("", 0, (uint64_t)status.st_size + room);
	file.length = (uint64_t)status.st_size;
	require(read(fd, file.bytes, file.length) == (ssize_t)file.length);
	close(fd);
	return file;
}

void damaged_write(const char *path, const struct damaged *file)
{
	int fd;

	if (!file->bytes) {
		unlink(path);
		return;
	}
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	require(fd >= 0 && ftruncate(fd, (off_t)file->length) == 0);
	require(pwrite(fd, file->bytes, file->length, 0) == (ssize_t)file->length);
	close(fd);
}

/* ---- changes --------------------------------------------------------------------------------- */

/* Moves bytes within the file, as a part of it that stands at another place. */
static void copy_within(struct damaged *file, uint64_t at, uint64_t from, uint64_t length)
{
	if (at < file->length && from < file->length && length <= file->length - at && length <= file->length - from)
		memmove(file->bytes + at, file->bytes + from, length);
}

/* Cuts the file, or lets zeros follow it. */
static void set_length(struct damaged *file, uint64_t length)
{
	if (length > file->room)
		return;
	if (length > file->length)
		memset(file->bytes + file->length, 0, length - file->length);
	file->length = length;
}

static void change(struct damaged *file, unsigned kind, uint64_t at, uint32_t value)
{
	static const unsigned widths[4] = { 1, 2, 4, 8 };
	static const double reals[REALS] = { NAN, INFINITY, -INFINITY, 0, -1, 1e18, 1e300, -1e300, 1e-300, 64 };
	uint64_t number;

	switch (kind % 11) {
	case 0:
	case 1:
	case 2:
	case 3:
		damaged_put(file, at, value, widths[kind % 11]);
		break;
	case 4:
		damaged_put(file, at, (uint64_t)(int64_t)(int32_t)value, 8);
		break;
	case 5: /* around a power of two, with or without the number that stands there */
		damaged_put(file, at,
			    (1ull << value % 64) + (uint64_t)(int8_t)(value >> 8) +
				    (value >> 16 & 1 ? damaged_number(file, at, 8) : 0),
			    8);
		break;
	case 6:
		damaged_put(file, at, damaged_number(file, at, 1) ^ 1u << value % 8, 1);
		break;
	case 7:
		damaged_put(file, at, damaged_number(file, at, 8) + (uint64_t)(int64_t)(int32_t)value, 8);
		break;
	case 8:
		copy_within(file, at, at + (uint64_t)(int64_t)(int16_t)(value >> 16), value % COPY_MOST);
		break;
	case 9:
		set_length(file, at);
		break;
	default:
		memcpy(&number, &reals[value % REALS], sizeof(number));
		damaged_put(file, at, number, 8);
	}
}

void damage(struct taking *from, const struct damage_place *places, unsigned count)
{
	for (unsigned i = 0; i < CHANGES && left_of(from) > 0; i++) {
		unsigned kind = (unsigned)take_number(from, 1);
		const struct damage_place *place = &places[take_number(from, 1) % count];
		uint64_t offset = take_number(from, 2), length = place->file->length;
		uint64_t behind = (length > place->at ? length - place->at : 0) + BEYOND;

		change(place->file, kind, place->at + offset % behind, (uint32_t)take_number(from, 4));
	}
}

bool damaged_differs(const struct damaged *a, const struct damaged *b)
{
	return a->length != b->length || (a->length > 0 && memcmp(a->bytes, b->bytes, a->length) != 0);
}

/* ---- state files ----------------------------------------------------------------------------- */

unsigned parts_seal(struct damaged *file, struct damage_place *places, unsigned most)
{
	unsigned count = 0;

	for (uint64_t at = PARTS_FILE_HEAD; at + PARTS_HEAD <= file->length;) {
		uint64_t length = damaged_number(file, at + HEAD_LENGTH, 8), bytes = at + PARTS_HEAD;
		bool whole = length <= file->length - bytes;

		for (unsigned i = 0; i < 2 && places && count < most; i++)
			places[count++] = (struct damage_place){ file, i ? bytes : at };
		if (whole)
			damaged_put(file, at + HEAD_BYTES_CHECKSUM, hash64(file->bytes + bytes, length, PARTS_SEED), 8);
		damaged_put(file, at + HEAD_CHECKSUM, hash64(file->bytes + at, HEAD_CHECKSUM, PARTS_SEED), 8);
		if (!whole)
			break;
		at = bytes + length + (-length & 7);
	}
	return count;
}
