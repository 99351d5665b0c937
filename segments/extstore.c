/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that memcached's extstore has left. Each of its pages begins with an item as it lies in memcached's memory on
 * machines with 64 bits:
 *
 *   links 24 | hash 4 | check 4 | value length 4 | references 2 | flags 2 | class 1 | key length 1 | 0 6 |
 *   CAS id 8, with FLAG_CAS | key, and a zero byte | client flags, with FLAG_CLIENT_FLAGS | value
 *
 * The check is the CRC-32C of all from the value's length on. Releases before 1.6.30 never write page 0, so that the file
 * begins with a hole; a page has some MiB.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "segments/device_internal.h"
#include "segments/path.h"

#define CHUNK_BYTES (256u << 10)
#define PAGES_BEGIN_AT (1u << 20) /* each page begins at a multiple of this */
#define KEY_MOST 250u
#define VALUE_MOST (1u << 30)
#define CHECKED_FROM offsetof(struct ext_item, value_bytes)

struct ext_item {
	uint64_t links[3];
	uint32_t hash, check, value_bytes;
	uint16_t references, flags;
	uint8_t size_class, key_bytes, zeros[6];
};
_Static_assert(sizeof(struct ext_item) == 48 && offsetof(struct ext_item, value_bytes) == 32 &&
		       offsetof(struct ext_item, key_bytes) == 41,
	       "as memcached lays it out");

enum { FLAG_CAS = 2, FLAG_CLIENT_FLAGS = 256 };

static uint32_t crc32c(uint32_t crc, const uint8_t *bytes, uint64_t length)
{
	for (crc = ~crc; length > 0; length--) {
		crc ^= *bytes++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

/* Reads a chunk of the file; what lies behind its end, or can't be read, is left out. Returns the bytes. */
static uint64_t read_chunk(int fd, uint8_t *chunk, uint64_t offset)
{
	ssize_t n;

	do
		n = pread(fd, chunk, CHUNK_BYTES, (off_t)offset);
	while (n < 0 && errno == EINTR);
	return n > 0 ? (uint64_t)n : 0;
}

/* Is the check of an item of so many bytes right? The chunk is overwritten. */
static bool check_is_right(int fd, uint64_t start, uint64_t bytes, uint32_t check, uint8_t *chunk)
{
	uint64_t at = CHECKED_FROM, got;
	uint32_t crc = 0;

	for (uint64_t from = 0; from < bytes; from += got) {
		got = read_chunk(fd, chunk, start + from);
		if (got == 0 || (got < CHUNK_BYTES && from + got < bytes))
			return false;
		got = got < bytes - from ? got : bytes - from;
		crc = crc32c(crc, chunk + at, got - at);
		at = 0;
	}
	return crc == check;
}

static bool item_lies_at(int fd, uint64_t start, uint8_t *chunk)
{
	struct ext_item item;
	uint64_t bytes;

	if (read_chunk(fd, chunk, start) < sizeof(item))
		return false;
	memcpy(&item, chunk, sizeof(item));
	if (item.key_bytes == 0 || item.key_bytes > KEY_MOST || item.value_bytes > VALUE_MOST)
		return false;
	bytes = sizeof(item) + (item.flags & FLAG_CAS ? 8 : 0) + item.key_bytes + 1 + item.value_bytes;
	if (!(item.flags & FLAG_CLIENT_FLAGS))
		return check_is_right(fd, start, bytes, item.check, chunk);
	/* Some builds have client flags of 64 bits. */
	return check_is_right(fd, start, bytes + 4, item.check, chunk) ||
	       check_is_right(fd, start, bytes + 8, item.check, chunk);
}

bool extstore_left(int fd)
{
	off_t data = lseek(fd, 0, SEEK_DATA);
	uint8_t *chunk;
	struct stat st;
	bool found;

	if (data < 0 || data % PAGES_BEGIN_AT != 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	chunk = mem_aligned(SEG_PAGE, CHUNK_BYTES); /* the file may be open O_DIRECT */
	found = chunk && item_lies_at(fd, (uint64_t)data, chunk);
	mem_free(chunk);
	return found;
}

int seg_empty_extstore(const char *path)
{
	int fd, result, error;
	struct stat st;

	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return FS_OK;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return FS_OK;
	result = file_lock(fd); /* first, so that what is recognised is what is emptied */
	if (result == FS_OK && extstore_left(fd)) {
		if (ftruncate(fd, 0) != 0)
			result = FS_ESYS;
		else
			log_notice(
				"flash: %s is what memcached's extstore has left: it is emptied, as memcached does at its start",
				path);
	}
	error = errno;
	close(fd);
	errno = error;
	return result;
}
