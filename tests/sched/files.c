/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sched/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/sched/fibers.h"
#include "tests/sched/finding.h"

#define SECTOR 512u
#define MILLION 1000000u
#define PATH_ROOM 320

int __real_fsync(int fd);
ssize_t __real_pwrite(int fd, const void *bytes, size_t length, off_t offset);
ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset);
int __wrap_fsync(int fd);
int __wrap_fdatasync(int fd);

static struct files *the_files; /* NULL: nobody syncs here */

/* ---- folders --------------------------------------------------------------------------------- */

static void make(const char *folder)
{
	if (mkdir(folder, 0700) != 0)
		finding("%s can't be made: %s", folder, strerror(errno));
}

static void empty(const char *folder)
{
	DIR *dir = opendir(folder);
	char path[PATH_ROOM + 256];

	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && unlink(path) != 0) {
			empty(path);
			rmdir(path);
		}
	}
	if (dir)
		closedir(dir);
}

void files_make(struct files *files, const char *folder)
{
	make(folder);
	snprintf(files->state, sizeof(files->state), "%s/state", folder);
	snprintf(files->region, sizeof(files->region), "%s/region", folder);
	snprintf(files->durable, sizeof(files->durable), "%s/durable", folder);
	snprintf(files->after, sizeof(files->after), "%s/after", folder);
	make(files->state);
	make(files->region);
	make(files->durable);
	make(files->after);
}

void files_remove(const char *folder)
{
	empty(folder);
	rmdir(folder);
}

void files_begin(struct files *files)
{
	the_files = files;
	files->armed = false;
}

/* ---- names and contents ---------------------------------------------------------------------- */

/* Fills out with the regular files of the state directory as they are, and returns how many there are. */
static unsigned list(const struct files *files, struct file_name out[FILES_MOST])
{
	DIR *dir = opendir(files->state);
	unsigned count = 0;

	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		if (entry->d_type != DT_REG)
			continue;
		if (count == FILES_MOST || strlen(entry->d_name) >= sizeof(out->name))
			finding("the state directory has too many files, or a name that is too long");
		snprintf(out[count].name, sizeof(out->name), "%.95s", entry->d_name);
		out[count++].inode = entry->d_ino;
	}
	if (dir)
		closedir(dir);
	return count;
}

static void durable_path(const struct files *files, uint64_t inode, char path[PATH_ROOM])
{
	snprintf(path, PATH_ROOM, "%s/%" PRIu64, files->durable, inode);
}

/* Reads a whole file into memory that the caller frees. A file that isn't there is empty. */
static uint8_t *slurp(int fd, uint64_t *length)
{
	struct stat st = { .st_size = 0 };
	uint8_t *bytes;

	if (fd >= 0 && fstat(fd, &st) != 0)
		finding("a file can't be read: %s", strerror(errno));
	*length = (uint64_t)st.st_size;
	bytes = calloc(1, *length + 1);
	if (!bytes || (*length && pread(fd, bytes, *length, 0) != (ssize_t)*length))
		finding("a file can't be read in full");
	return bytes;
}

static uint8_t *slurp_path(const char *path, uint64_t *length)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *bytes = slurp(fd, length);

	if (fd >= 0)
		close(fd);
	return bytes;
}

static void spill(const char *path, const uint8_t *bytes, uint64_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (fd < 0 || __real_pwrite(fd, bytes, length, 0) != (ssize_t)length)
		finding("%s can't be written: %s", path, strerror(errno));
	close(fd);
}

/* ---- what has changed ------------------------------------------------------------------------ */

/* Of files that are written by pwrite alone: from where on a copy of this life may differ. A journal grows to some MiB, and is
   synced at each turn. */
static struct dirty {
	uint64_t inode, from;
	bool copied;
} dirty[FILES_MOST];

static struct dirty *dirty_of(uint64_t inode, bool make_one)
{
	for (unsigned i = 0; i < FILES_MOST; i++) {
		if (dirty[i].inode == inode)
			return &dirty[i];
		if (dirty[i].inode == 0 && make_one) {
			dirty[i] = (struct dirty){ .inode = inode };
			return &dirty[i];
		}
		if (dirty[i].inode == 0)
			return NULL;
	}
	return NULL;
}

ssize_t __wrap_pwrite(int fd, const void *bytes, size_t length, off_t offset)
{
	struct dirty *there;
	struct stat st;

	if (the_files && fstat(fd, &st) == 0 && (there = dirty_of(st.st_ino, true)) != NULL &&
	    (uint64_t)offset < there->from)
		there->from = (uint64_t)offset;
	return __real_pwrite(fd, bytes, length, offset);
}

/* True: the copy is what the file is, by its end alone. */
static bool copy_end(int from, const char *path, const struct stat *st)
{
	struct dirty *there = dirty_of(st->st_ino, false);
	uint64_t bytes;
	uint8_t *end;
	int to;

	if (!there)
		return false;
	if (!there->copied || (uint64_t)st->st_size < there->from) {
		there->copied = true;
		there->from = (uint64_t)st->st_size;
		return false;
	}
	bytes = (uint64_t)st->st_size - there->from;
	end = malloc(bytes + 1);
	to = open(path, O_WRONLY | O_CLOEXEC);
	if (!end || to < 0 || pread(from, end, bytes, (off_t)there->from) != (ssize_t)bytes ||
	    __real_pwrite(to, end, bytes, (off_t)there->from) != (ssize_t)bytes)
		finding("the end of a file can't be copied");
	close(to);
	free(end);
	there->from = (uint64_t)st->st_size;
	return true;
}

/* ---- syncs ----------------------------------------------------------------------------------- */

static bool is_folder(const struct files *files, const struct stat *st)
{
	struct stat folder;

	return stat(files->state, &folder) == 0 && folder.st_ino == st->st_ino && folder.st_dev == st->st_dev;
}

static void keep(struct files *files, int fd, const struct stat *st)
{
	char path[PATH_ROOM];
	uint64_t length;
	uint8_t *bytes;

	if (S_ISDIR(st->st_mode)) {
		if (is_folder(files, st))
			files->names = list(files, files->name);
		return;
	}
	durable_path(files, st->st_ino, path);
	if (copy_end(fd, path, st))
		return;
	/* It may be open for writing alone. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	bytes = slurp_path(path, &length);
	durable_path(files, st->st_ino, path);
	spill(path, bytes, length);
	free(bytes);
}

static int sync_one(int fd)
{
	struct files *files = the_files;
	struct stat st;

	if (!files || fstat(fd, &st) != 0)
		return __real_fsync(fd);
	fiber_sleep_until(fiber_now_ns() + files->latency_ns / 2 + rng_below(&files->rng, files->latency_ns + 1));
	files->syncs++;
	if (files->armed && files->fails && rng_below(&files->rng, MILLION) < files->fails) {
		errno = EIO;
		return -1;
	}
	keep(files, fd, &st);
	return 0;
}

int __wrap_fsync(int fd)
{
	return sync_one(fd);
}

int __wrap_fdatasync(int fd)
{
	return sync_one(fd);
}

/* ---- the power cut --------------------------------------------------------------------------- */

/* Of what isn't durable each sector is there, or not. */
static void mix(struct rng *rng, uint8_t *durable, uint64_t *length, const uint8_t *now, uint64_t now_length)
{
	for (uint64_t at = 0; at < now_length; at += SECTOR)
		if (rng_below(rng, 2))
			memcpy(durable + at, now + at, now_length - at < SECTOR ? now_length - at : SECTOR);
	if (now_length > *length && rng_below(rng, 2))
		*length = now_length - (rng_below(rng, 2) ? 0 : rng_below(rng, now_length - *length));
	else if (now_length < *length && rng_below(rng, 2))
		*length = now_length;
}

/* What becomes of the file, whose present content may be read by a name; NULL: by none any more. */
static void leave_file(struct files *files, const struct file_name *name, const char *now_path)
{
	char path[PATH_ROOM];
	uint64_t length, now_length = 0, room;
	uint8_t *durable, *now = NULL;

	durable_path(files, name->inode, path);
	durable = slurp_path(path, &length);
	if (now_path)
		now = slurp_path(now_path, &now_length);
	room = now_length > length ? now_length : length;
	durable = realloc(durable, room + 1);
	if (!durable)
		finding("no memory for a file");
	memset(durable + length, 0, room + 1 - length);
	if (now)
		mix(&files->rng, durable, &length, now, now_length);
	snprintf(path, sizeof(path), "%s/%s", files->after, name->name);
	spill(path, durable, length);
	free(durable);
	free(now);
}

static void leave_all(struct files *files, const struct file_name *left, unsigned count,
		      const struct file_name *present, unsigned presents)
{
	for (unsigned i = 0; i < count; i++) {
		char path[PATH_ROOM];
		bool is_there = false;

		for (unsigned j = 0; j < presents && !is_there; j++) {
			is_there = present[j].inode == left[i].inode;
			snprintf(path, sizeof(path), "%s/%s", files->state, present[j].name);
		}
		leave_file(files, &left[i], is_there ? path : NULL);
	}
}

/* All that is there is durable now. */
static void settle(struct files *files)
{
	empty(files->durable);
	files->names = list(files, files->name);
	for (unsigned i = 0; i < files->names; i++) {
		char path[PATH_ROOM];
		uint64_t length;
		uint8_t *bytes;

		snprintf(path, sizeof(path), "%s/%s", files->state, files->name[i].name);
		bytes = slurp_path(path, &length);
		durable_path(files, files->name[i].inode, path);
		spill(path, bytes, length);
		free(bytes);
	}
}

void files_power_cut(struct files *files)
{
	static struct file_name present[FILES_MOST];
	unsigned presents = list(files, present);

	the_files = NULL;
	empty(files->region);
	empty(files->after);
	if (rng_below(&files->rng, 2))
		leave_all(files, present, presents, present, presents);
	else
		leave_all(files, files->name, files->names, present, presents);
	empty(files->state);
	if (rmdir(files->state) != 0 || rename(files->after, files->state) != 0)
		finding("the state directory can't be replaced: %s", strerror(errno));
	make(files->after);
	settle(files);
}
