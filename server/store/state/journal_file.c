/* SPDX-License-Identifier: BSD-3-Clause */
/* The files of a journal in a directory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/store/state/journal.h"

#define PATH_BYTES 8400

struct directory {
	struct journal_medium medium; /* first */
	char path[PATH_BYTES - 16]; /* of the files, without dot and number */
	char folder[PATH_BYTES - 16];
	const char *name; /* in path: behind the last slash */
	uint32_t open_number; /* 0: fd is not open */
	int fd; /* of the file that was used last */
	bool owned; /* journal_directory_own was called, with these */
	uid_t user;
	gid_t group;
};

static void path_of(const struct directory *directory, uint32_t number, char out[PATH_BYTES])
{
	snprintf(out, PATH_BYTES, "%s.%" PRIu32, directory->path, number);
}

static void forget(struct directory *directory)
{
	if (directory->open_number)
		close(directory->fd);
	directory->open_number = 0;
}

/* Opens the file, unless it is the one that was used last. 0 or a negative errno. */
static int use(struct directory *directory, uint32_t number, int flags)
{
	char path[PATH_BYTES];
	int fd;

	if (directory->open_number == number && !(flags & O_TRUNC))
		return 0;
	forget(directory);
	path_of(directory, number, path);
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	if (fd < 0)
		return -errno;
	directory->fd = fd;
	directory->open_number = number;
	return 0;
}

static int sync_folder(const struct directory *directory)
{
	int fd = open(directory->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = 0;

	if (fd < 0)
		return -errno;
	if (fsync(fd) != 0)
		error = -errno;
	close(fd);
	return error;
}

/* A process that starts as root makes files for the user that it is going to be. A file with another name is somebody's
   whom we don't know. */
static void own(const struct directory *directory, uint32_t number)
{
	struct stat st;

	if (directory->owned && fstat(directory->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1 &&
	    st.st_uid != directory->user && fchown(directory->fd, directory->user, directory->group) != 0)
		log_debug("journal: %s.%" PRIu32 " stays user %u's: %s", directory->path, number, (unsigned)st.st_uid,
			  strerror(errno));
}

static int directory_create(struct journal_medium *medium, uint32_t number)
{
	struct directory *directory = (struct directory *)medium;
	int error = use(directory, number, O_CREAT | O_TRUNC);

	if (error == 0)
		own(directory, number);
	return error ? error : sync_folder(directory);
}

static int directory_write(struct journal_medium *medium, uint32_t number, const void *bytes, uint64_t length,
			   uint64_t offset)
{
	struct directory *directory = (struct directory *)medium;
	int error = use(directory, number, 0);

	for (uint64_t done = 0; error == 0 && done < length;) {
		ssize_t wrote =
			pwrite(directory->fd, (const char *)bytes + done, length - done, (off_t)(offset + done));

		if (wrote > 0)
			done += (uint64_t)wrote;
		else if (wrote == 0 || errno != EINTR)
			error = wrote == 0 ? -ENOSPC : -errno;
	}
	return error;
}

static int directory_sync(struct journal_medium *medium, uint32_t number)
{
	struct directory *directory = (struct directory *)medium;
	int error = use(directory, number, 0);
	struct stat st;

	if (error)
		return error;
	if (fdatasync(directory->fd) != 0 || fstat(directory->fd, &st) != 0)
		return -errno;
	return st.st_nlink == 0 ? -ENOENT : 0;
}

static int directory_remove(struct journal_medium *medium, uint32_t number)
{
	struct directory *directory = (struct directory *)medium;
	char path[PATH_BYTES];

	if (directory->open_number == number)
		forget(directory);
	path_of(directory, number, path);
	if (unlink(path) != 0 && errno != ENOENT)
		return -errno;
	return sync_folder(directory);
}

static int directory_share(struct journal_medium *medium, uint32_t number, struct journal_medium *other)
{
	const struct directory *directory = (const struct directory *)medium;
	struct directory *second = (struct directory *)other;
	char from[PATH_BYTES], to[PATH_BYTES];

	if (second->open_number == number)
		forget(second);
	path_of(directory, number, from);
	path_of(second, number, to);
	if (unlink(to) != 0 && errno != ENOENT)
		return -errno;
	if (link(from, to) != 0)
		return -errno;
	return sync_folder(second);
}

static bool directory_is_same(const struct journal_medium *medium, const struct journal_medium *other)
{
	return strcmp(((const struct directory *)medium)->path, ((const struct directory *)other)->path) == 0;
}

static int64_t directory_read(struct journal_medium *medium, uint32_t number, void *bytes, uint64_t length,
			      uint64_t offset)
{
	struct directory *directory = (struct directory *)medium;
	uint64_t done = 0;
	int error = use(directory, number, 0);

	if (error)
		return error;
	while (done < length) {
		ssize_t got = pread(directory->fd, (char *)bytes + done, length - done, (off_t)(offset + done));

		if (got == 0)
			break;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got > 0)
			done += (uint64_t)got;
	}
	return (int64_t)done;
}

/* Returns the number behind the journal's name and a dot; 0: the name is another one. */
static uint32_t number_of(const struct directory *directory, const char *name)
{
	size_t length = strlen(directory->name);
	unsigned long number;
	char *end;

	if (strncmp(name, directory->name, length) != 0 || name[length] != '.' || name[length + 1] < '1' ||
	    name[length + 1] > '9')
		return 0;
	errno = 0;
	number = strtoul(name + length + 1, &end, 10);
	return *end == '\0' && errno == 0 && number < UINT32_MAX ? (uint32_t)number : 0;
}

static int64_t directory_list(struct journal_medium *medium, uint32_t *out, uint32_t most)
{
	struct directory *directory = (struct directory *)medium;
	DIR *folder = opendir(directory->folder);
	const struct dirent *entry;
	int64_t count = 0;

	if (!folder)
		return -errno;
	errno = 0;
	while ((entry = readdir(folder)) != NULL) {
		uint32_t number = number_of(directory, entry->d_name);

		if (number && count < most)
			out[count] = number;
		count += number != 0;
		errno = 0;
	}
	if (errno != 0)
		count = -errno;
	closedir(folder);
	return count;
}

#define OWNED_AT_ONCE 1024u

void journal_directory_own(struct journal_medium *medium, uid_t user, gid_t group)
{
	struct directory *directory = (struct directory *)medium;
	uint32_t *number = mem_must_zalloc(OWNED_AT_ONCE * sizeof(*number));
	int64_t count = directory_list(medium, number, OWNED_AT_ONCE);

	directory->owned = true;
	directory->user = user;
	directory->group = group;
	for (int64_t i = 0; i < count && i < OWNED_AT_ONCE; i++)
		if (use(directory, number[i], 0) == 0)
			own(directory, number[i]);
	mem_free(number);
}

static void directory_close(struct journal_medium *medium)
{
	forget((struct directory *)medium);
	mem_free(medium);
}

struct journal_medium *journal_directory(const char *path)
{
	struct directory *directory = mem_zalloc(sizeof(*directory));
	char *slash;

	if (!directory)
		return NULL;
	directory->medium = (struct journal_medium){ .create = directory_create,
						     .write = directory_write,
						     .sync = directory_sync,
						     .remove = directory_remove,
						     .share = directory_share,
						     .is_same = directory_is_same,
						     .read = directory_read,
						     .list = directory_list,
						     .close = directory_close };
	snprintf(directory->path, sizeof(directory->path), "%s", path);
	snprintf(directory->folder, sizeof(directory->folder), "%s", path);
	slash = strrchr(directory->folder, '/');
	if (slash)
		*slash = '\0';
	else
		snprintf(directory->folder, sizeof(directory->folder), ".");
	directory->name = slash ? directory->path + (slash - directory->folder) + 1 : directory->path;
	return &directory->medium;
}
