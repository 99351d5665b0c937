/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/daemon_lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/log.h"
#include "server/store/state/endpoints.h"
#include "server/store/state/instance.h"
#include "server/store/store.h"

#define TEXT_BYTES (16u << 10) /* a longer file is not read to its end */
#define OPENINGS_MOST 16u /* of the own file, when others remove it each time */

struct daemon_lock {
	int fd; /* -1: there is none */
	char *name;
	struct store_kin *kin;
	unsigned kin_count;
};

/* ---- files ----------------------------------------------------------------------------------- */

/* Root follows no link of the directory's owner, and writes no file that has another name. */
static bool is_lock_file(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1;
}

/* Returns a descriptor, or -1 with errno, as the next one does. */
static int open_lock(const char *path)
{
	return open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

static int open_or_make_lock(const char *path, const struct seg_owner *owner)
{
	int fd = open_lock(path);

	if (fd >= 0 || errno != ENOENT)
		return fd;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno == EEXIST ? open_lock(path) : -1; /* another start was faster */
	if (owner && fchown(fd, owner->user, owner->group) != 0)
		log_warn("%s can't be given to the user: %s", path, strerror(errno));
	return fd;
}

/* Fills text with the endpoints. Returns the process's id, or 0. */
static pid_t read_lock(int fd, char text[TEXT_BYTES])
{
	ssize_t length = pread(fd, text, TEXT_BYTES - 1, 0);
	long pid;
	char *behind;

	text[length > 0 ? length : 0] = '\0';
	pid = strtol(text, &behind, 10);
	if (behind == text || *behind != '\n') {
		text[0] = '\0';
		return 0;
	}
	memmove(text, behind + 1, strlen(behind));
	return pid > 0 ? (pid_t)pid : 0;
}

/* What it says is read by other starts: a failure costs the id in their logs, and their knowledge of endpoints. */
static void write_lock(int fd, const char *path, const char *endpoints)
{
	size_t most = strlen(endpoints) + 32;
	char *text = mem_must_zalloc(most);
	int length = snprintf(text, most, "%ld\n%s", (long)getpid(), endpoints);

	if (pwrite(fd, text, (size_t)length, 0) != length || ftruncate(fd, length) != 0)
		log_warn("%s can't be written: %s", path, strerror(errno));
	mem_free(text);
}

void daemon_lock_holder(pid_t holder, char out[DAEMON_LOCK_HOLDER_BYTES])
{
	if (holder > 0)
		snprintf(out, DAEMON_LOCK_HOLDER_BYTES, "process %ld", (long)holder);
	else
		snprintf(out, DAEMON_LOCK_HOLDER_BYTES, "another process");
}

/* FS_OK; FS_EBUSY: wait() has enough; FS_ESYS: this file system has no such locks. */
static int wait_for_lock(const struct daemon_lock_config *config, int fd, int operation, char reason[256])
{
	char text[TEXT_BYTES], process[DAEMON_LOCK_HOLDER_BYTES];

	while (flock(fd, operation | LOCK_NB) != 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return FS_ESYS;
		pid_t holder = read_lock(fd, text);

		if (config->wait(config->context, holder))
			continue;
		daemon_lock_holder(holder, process);
		snprintf(reason, 256,
			 "%s, which serves the same clients with %.120s, has not ended: end it, or start later",
			 process, config->folder);
		return FS_EBUSY;
	}
	return FS_OK;
}

/* ---- kin ------------------------------------------------------------------------------------- */

static void add_kin(struct daemon_lock *lock, char *name, bool covers)
{
	for (unsigned i = 0; i < lock->kin_count; i++)
		if (strcmp(lock->kin[i].name, name) == 0) {
			mem_free(name);
			return;
		}
	lock->kin = mem_realloc(lock->kin, (lock->kin_count + 1) * sizeof(*lock->kin));
	must(lock->kin);
	lock->kin[lock->kin_count++] = (struct store_kin){ .name = name, .covers = covers };
}

/* One file of another daemon. FS_OK, also where it is no kin; FS_EBUSY. */
static int look_at_other(struct daemon_lock *lock, const struct daemon_lock_config *config, const char *path,
			 char reason[256])
{
	char text[TEXT_BYTES];
	int fd = open_lock(path), code = FS_OK;

	if (fd < 0)
		return FS_OK;
	if (is_lock_file(fd)) {
		read_lock(fd, text);
		if (endpoints_overlap(text, config->endpoints)) {
			code = wait_for_lock(config, fd, LOCK_SH, reason);
			add_kin(lock, endpoints_name(text), endpoints_cover(text, lock->name));
		}
	}
	close(fd);
	return code == FS_EBUSY ? FS_EBUSY : FS_OK;
}

static int look_at_others(struct daemon_lock *lock, const struct daemon_lock_config *config, char reason[256])
{
	char own[INSTANCE_PATH_BYTES], path[INSTANCE_PATH_BYTES];
	DIR *folder = opendir(config->folder);
	struct dirent *entry;
	int code = FS_OK;

	instance_lock_path(config->folder, lock->name, own);
	while (folder && code == FS_OK && (entry = readdir(folder))) {
		snprintf(path, sizeof(path), "%s/%s", config->folder, entry->d_name);
		if (instance_is_lock(entry->d_name) && strcmp(path, own) != 0)
			code = look_at_other(lock, config, path, reason);
	}
	if (folder)
		closedir(folder);
	return code;
}

/* An earlier version has left no file of its own, and had the port alone for its name, whatever its addresses. */
static void add_ports(struct daemon_lock *lock)
{
	struct endpoint endpoint;

	for (const char *at = lock->name; (at = endpoint_next(at, &endpoint));) {
		if (endpoint.local || endpoint.datagrams || endpoint.host_length == 0)
			continue;
		char *port = mem_must_zalloc(endpoint.port_length + 1);

		memcpy(port, endpoint.port, endpoint.port_length);
		add_kin(lock, port, endpoints_cover(port, lock->name));
	}
}

/* ---- the lock -------------------------------------------------------------------------------- */

/* A file that was removed while this start has waited may be there anew, and another start may have that one. */
static bool is_still_there(const char *path, int fd)
{
	struct stat opened, there;

	return fstat(fd, &opened) == 0 && lstat(path, &there) == 0 && opened.st_dev == there.st_dev &&
	       opened.st_ino == there.st_ino;
}

/* FS_OK; FS_EBUSY; FS_ESYS with errno. lock->fd is the file that was opened last, or -1. */
static int try_own(struct daemon_lock *lock, const struct daemon_lock_config *config, const char *path,
		   char reason[256])
{
	for (unsigned i = 0; i < OPENINGS_MOST; i++) {
		int code;

		if (lock->fd >= 0)
			close(lock->fd);
		lock->fd = open_or_make_lock(path, config->owner);
		if (lock->fd < 0)
			return FS_ESYS;
		if (!is_lock_file(lock->fd)) {
			errno = EINVAL;
			return FS_ESYS;
		}
		code = wait_for_lock(config, lock->fd, LOCK_EX, reason);
		if (code != FS_OK || is_still_there(path, lock->fd))
			return code;
	}
	errno = EAGAIN;
	return FS_ESYS;
}

static int take_own(struct daemon_lock *lock, const struct daemon_lock_config *config, char reason[256])
{
	char path[INSTANCE_PATH_BYTES];
	int code;

	instance_lock_path(config->folder, lock->name, path);
	code = try_own(lock, config, path, reason);
	if (code == FS_OK)
		write_lock(lock->fd, path, config->endpoints);
	if (code != FS_ESYS)
		return code;
	log_warn("%s can't be locked: %s: a run that has not ended may save objects which this one changes", path,
		 strerror(errno));
	return FS_OK;
}

int daemon_lock_take(struct daemon_lock **out, const struct daemon_lock_config *config, char reason[256])
{
	struct daemon_lock *lock = mem_must_zalloc(sizeof(*lock));
	int code = FS_OK;

	lock->fd = -1;
	lock->name = endpoints_name(config->endpoints);
	if (config->folder) {
		code = take_own(lock, config, reason);
		if (code == FS_OK)
			code = look_at_others(lock, config, reason);
		add_ports(lock);
	}
	if (code != FS_OK) {
		daemon_lock_release(lock);
		return code;
	}
	*out = lock;
	return FS_OK;
}

const char *daemon_lock_name(const struct daemon_lock *lock)
{
	return lock->name;
}

const struct store_kin *daemon_lock_kin(const struct daemon_lock *lock, unsigned *count)
{
	*count = lock->kin_count;
	return lock->kin;
}

void daemon_lock_release(struct daemon_lock *lock)
{
	if (!lock)
		return;
	for (unsigned i = 0; i < lock->kin_count; i++)
		mem_free(lock->kin[i].name);
	mem_free(lock->kin);
	mem_free(lock->name);
	if (lock->fd >= 0)
		close(lock->fd);
	mem_free(lock);
}
