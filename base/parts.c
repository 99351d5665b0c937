/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/parts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

#define FILE_MAGIC "FLSHSTAT"
#define NEW_SUFFIX ".new"
#define SEED 0x464c534854415445ull
#define ALIGN sizeof(uint64_t)
#define MOST_AT_ONCE (1u << 30) /* bytes of one read or write call */

struct file_head {
	char magic[8];
	uint32_t version;
	uint32_t head_bytes; /* of a part */
};

struct part_head {
	uint32_t kind, number;
	uint64_t position; /* 0, 1, ...: no part can take another's */
	uint64_t length;
	uint64_t bytes_checksum;
	uint64_t checksum; /* of the fields before */
};

struct parts_writer {
	int fd;
	int error; /* the first errno, or 0 */
	bool spoilt; /* the error is of more than the last part */
	bool ended; /* the end is written */
	uint64_t position, bytes; /* of the file's head and whole parts */
	uint64_t reached; /* bytes of the file */
	char path[PATH_MAX], path_new[PATH_MAX];
};

struct parts_reader {
	int fd;
	uint64_t position, left; /* bytes of the file behind the present position */
	bool pending; /* head's bytes are not read yet */
	struct part_head head;
};

static uint64_t head_checksum(const struct part_head *head)
{
	return hash64(head, offsetof(struct part_head, checksum), SEED);
}

static unsigned padding(uint64_t length)
{
	return (unsigned)(-length % ALIGN);
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Fills in the name under which a file is written. FS_OK, or FS_ESYS: it is too long. */
static int path_of_new(const char *path, char out[PATH_MAX])
{
	if ((size_t)snprintf(out, PATH_MAX, "%s" NEW_SUFFIX, path) < PATH_MAX)
		return FS_OK;
	errno = ENAMETOOLONG;
	return FS_ESYS;
}

/* Makes the names in the folder of path durable. 0, or -1 with errno. */
static int sync_folder(const char *path)
{
	char folder[PATH_MAX] = ".";
	const char *slash = strrchr(path, '/');
	int fd, result, error;

	if (slash)
		snprintf(folder, sizeof(folder), "%.*s", slash == path ? 1 : (int)(slash - path), path);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	result = fsync(fd);
	error = errno;
	close(fd);
	errno = error;
	return result;
}

/* 0, or -1 with errno; a file that isn't there is no error. *removed: there was one. */
static int remove_one(const char *path, bool *removed)
{
	if (unlink(path) == 0) {
		*removed = true;
		return 0;
	}
	return errno == ENOENT ? 0 : -1;
}

int parts_remove(const char *path)
{
	char path_new[PATH_MAX];
	bool removed = false;

	if (path_of_new(path, path_new) != FS_OK || remove_one(path, &removed) != 0 ||
	    remove_one(path_new, &removed) != 0)
		return FS_ESYS;
	return !removed || sync_folder(path) == 0 ? FS_OK : FS_ESYS;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_bytes(struct parts_writer *writer, const void *bytes, uint64_t length)
{
	const uint8_t *at = bytes;

	while (writer->error == 0 && length > 0) {
		ssize_t done = write(writer->fd, at, length < MOST_AT_ONCE ? length : MOST_AT_ONCE);

		if (done < 0 && errno != EINTR)
			writer->error = errno;
		if (done > 0) {
			at += done;
			length -= (uint64_t)done;
			writer->reached += (uint64_t)done;
		}
	}
}

int parts_create(struct parts_writer **out, const char *path)
{
	const struct file_head head = { .magic = FILE_MAGIC,
					.version = PARTS_VERSION,
					.head_bytes = sizeof(struct part_head) };
	struct parts_writer *writer = mem_zalloc(sizeof(*writer));

	*out = NULL;
	if (!writer)
		return FS_ENOMEM;
	writer->fd = -1;
	if (path_of_new(path, writer->path_new) == FS_OK) {
		snprintf(writer->path, sizeof(writer->path), "%s", path);
		if (unlink(writer->path_new) == 0 || errno == ENOENT)
			writer->fd = open(writer->path_new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	}
	if (writer->fd < 0) {
		int error = errno;

		mem_free(writer);
		errno = error;
		return FS_ESYS;
	}
	write_bytes(writer, &head, sizeof(head));
	writer->spoilt = writer->error != 0;
	writer->bytes = writer->reached;
	*out = writer;
	return FS_OK;
}

void parts_put(struct parts_writer *writer, enum parts_kind kind, uint32_t number, const void *bytes, uint64_t length)
{
	static const uint8_t zeros[ALIGN];
	struct part_head head = { .kind = kind, .number = number, .position = writer->position, .length = length };

	head.bytes_checksum = hash64(length ? bytes : "", length, SEED);
	head.checksum = head_checksum(&head);
	write_bytes(writer, &head, sizeof(head));
	write_bytes(writer, bytes, length);
	write_bytes(writer, zeros, padding(length));
	if (writer->error != 0)
		return;
	writer->position++;
	writer->bytes = writer->reached;
}

/* Whatever a failed sync has lost may lie anywhere in the file. */
void parts_sync(struct parts_writer *writer)
{
	if (writer->error != 0 || fdatasync(writer->fd) == 0)
		return;
	writer->error = errno;
	writer->spoilt = true;
}

bool parts_healthy(const struct parts_writer *writer)
{
	return writer->error == 0;
}

struct parts_mark parts_mark(const struct parts_writer *writer)
{
	return (struct parts_mark){ .bytes = writer->bytes, .position = writer->position };
}

uint64_t parts_reached(const struct parts_writer *writer)
{
	return writer->reached;
}

bool parts_lacks_room(const struct parts_writer *writer)
{
	return !writer->spoilt && (writer->error == ENOSPC || writer->error == EDQUOT || writer->error == EFBIG);
}

void parts_cut(struct parts_writer *writer, const struct parts_mark *mark)
{
	if (writer->error != 0 && !parts_lacks_room(writer))
		return;
	writer->error = 0;
	writer->ended = false;
	writer->bytes = writer->reached = mark->bytes;
	writer->position = mark->position;
	if (ftruncate(writer->fd, (off_t)mark->bytes) == 0 && lseek(writer->fd, (off_t)mark->bytes, SEEK_SET) >= 0)
		return;
	writer->error = errno;
	writer->spoilt = true;
}

void parts_end(struct parts_writer *writer)
{
	if (!writer->ended)
		parts_put(writer, PARTS_END, 0, NULL, 0);
	writer->ended = true;
}

int parts_finish(struct parts_writer *writer)
{
	int error;

	parts_end(writer);
	if (writer->error == 0 && fsync(writer->fd) != 0)
		writer->error = errno;
	if (close(writer->fd) != 0 && writer->error == 0)
		writer->error = errno;
	if (writer->error == 0 && rename(writer->path_new, writer->path) != 0)
		writer->error = errno;
	if (writer->error == 0 && sync_folder(writer->path) != 0)
		writer->error = errno;
	else if (writer->error != 0)
		unlink(writer->path_new);
	error = writer->error;
	mem_free(writer);
	errno = error;
	return error == 0 ? FS_OK : FS_ESYS;
}

/* ---- reading --------------------------------------------------------------------------------- */

static int read_bytes(struct parts_reader *reader, void *bytes, uint64_t length)
{
	uint8_t *at = bytes;

	if (length > reader->left)
		return FS_ESHORT;
	reader->left -= length;
	while (length > 0) {
		ssize_t done = read(reader->fd, at, length < MOST_AT_ONCE ? length : MOST_AT_ONCE);

		if (done < 0 && errno != EINTR)
			return FS_ESYS;
		if (done == 0)
			return FS_ESHORT;
		if (done > 0) {
			at += done;
			length -= (uint64_t)done;
		}
	}
	return FS_OK;
}

static int read_file_head(struct parts_reader *reader)
{
	struct file_head head;
	int result = read_bytes(reader, &head, sizeof(head));

	if (result != FS_OK)
		return result;
	if (memcmp(head.magic, FILE_MAGIC, sizeof(head.magic)) != 0)
		return FS_ECORRUPT;
	return head.version == PARTS_VERSION && head.head_bytes == sizeof(struct part_head) ? FS_OK : FS_EVERSION;
}

int parts_open(struct parts_reader **out, const char *path)
{
	struct parts_reader *reader = mem_zalloc(sizeof(*reader));
	struct stat status;
	int result = FS_ESYS, error;

	*out = NULL;
	if (!reader)
		return FS_ENOMEM;
	reader->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (reader->fd < 0 && errno == ENOENT)
		result = FS_ENOTFOUND;
	if (reader->fd >= 0 && fstat(reader->fd, &status) == 0) {
		reader->left = S_ISREG(status.st_mode) ? (uint64_t)status.st_size : 0;
		(void)posix_fadvise(reader->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
		result = S_ISREG(status.st_mode) ? read_file_head(reader) : FS_ECORRUPT;
	}
	if (result == FS_OK) {
		*out = reader;
		return FS_OK;
	}
	error = errno;
	parts_close(reader);
	errno = error;
	return result;
}

int parts_next(struct parts_reader *reader, enum parts_kind kind, uint32_t number, uint64_t *length)
{
	struct part_head *head = &reader->head;
	int result;

	must(!reader->pending);
	result = read_bytes(reader, head, sizeof(*head));
	if (result != FS_OK)
		return result;
	if (head->checksum != head_checksum(head) || head->position != reader->position ||
	    head->kind != (uint32_t)kind || head->number != number)
		return FS_ECORRUPT;
	if (head->length > reader->left || padding(head->length) > reader->left - head->length)
		return FS_ESHORT;
	if (kind == PARTS_END && (head->length > 0 || reader->left > 0))
		return FS_ECORRUPT;
	reader->position++;
	reader->pending = kind != PARTS_END;
	*length = head->length;
	return FS_OK;
}

int parts_get(struct parts_reader *reader, void *bytes)
{
	uint64_t zeros = 0;
	int result;

	must(reader->pending);
	reader->pending = false;
	result = read_bytes(reader, bytes, reader->head.length);
	if (result == FS_OK)
		result = read_bytes(reader, &zeros, padding(reader->head.length));
	if (result != FS_OK)
		return result;
	return zeros == 0 && hash64(reader->head.length ? bytes : "", reader->head.length, SEED) ==
				       reader->head.bytes_checksum
		       ? FS_OK
		       : FS_ECORRUPT;
}

int parts_take(struct parts_reader *reader, enum parts_kind kind, uint32_t number, void *bytes, uint64_t length)
{
	uint64_t found;
	int result = parts_next(reader, kind, number, &found);

	if (result != FS_OK)
		return result;
	return found == length ? parts_get(reader, bytes) : FS_ECORRUPT;
}

void parts_close(struct parts_reader *reader)
{
	if (!reader)
		return;
	if (reader->fd >= 0)
		close(reader->fd);
	mem_free(reader);
}
