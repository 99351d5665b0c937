/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/parts.h"
#include "base/region.h"
#include "segments/path.h"
#include "server/store/state/journal.h"

#define STATE_SUFFIX ".state"
#define JOURNAL_SUFFIX ".journal"
#define NOTE_PREFIX "instance-"
#define IDS_SUFFIX ".ids"
#define LOCK_SUFFIX ".lock"
#define NOTE_OF_NONE "\n" /* of a run without a flash */
#define NOTE_SEED UINT64_C(0x666c617368206f66)

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

void instance_state_path(const char *state_dir, const char *flash_path, char out[INSTANCE_PATH_BYTES])
{
	snprintf(out, INSTANCE_PATH_BYTES, "%s/%s" STATE_SUFFIX, state_dir, last_part(flash_path));
}

static void instance_path(const char *state_dir, const char *name, const char *suffix, char out[INSTANCE_PATH_BYTES])
{
	snprintf(out, INSTANCE_PATH_BYTES, "%s/" NOTE_PREFIX "%016" PRIx64 "%s", state_dir,
		 hash64(name, strlen(name), NOTE_SEED), suffix);
}

void instance_ids_path(const char *state_dir, const char *name, char out[INSTANCE_PATH_BYTES])
{
	instance_path(state_dir, name, IDS_SUFFIX, out);
}

void instance_lock_path(const char *state_dir, const char *name, char out[INSTANCE_PATH_BYTES])
{
	instance_path(state_dir, name, LOCK_SUFFIX, out);
}

static bool is_named(const char *file_name, const char *suffix)
{
	return strncmp(file_name, NOTE_PREFIX, sizeof(NOTE_PREFIX) - 1) == 0 &&
	       strcmp(file_name + strcspn(file_name, "."), suffix) == 0;
}

bool instance_is_ids(const char *file_name)
{
	return is_named(file_name, IDS_SUFFIX);
}

bool instance_is_lock(const char *file_name)
{
	return is_named(file_name, LOCK_SUFFIX);
}

void instance_journal_path(const char *state_dir, const char *flash_path, char out[INSTANCE_PATH_BYTES])
{
	snprintf(out, INSTANCE_PATH_BYTES, "%s/%s" JOURNAL_SUFFIX, state_dir, last_part(flash_path));
}

void instance_remove_journal(const char *state_dir, const char *flash_path)
{
	char path[INSTANCE_PATH_BYTES];
	struct journal_medium *medium;
	int error = -ENOMEM;

	instance_journal_path(state_dir, flash_path, path);
	medium = journal_directory(path);
	if (medium) {
		error = journal_remove(medium);
		medium->close(medium);
	}
	if (error != 0)
		log_warn(
			"flash: %s.* can't be removed: %s: don't start with %s again before --restart-max-downtime is over",
			path, strerror(-error), flash_path);
}

bool instance_read(const char *path, char note[INSTANCE_NOTE_BYTES])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t length;

	if (fd < 0)
		return false;
	length = read(fd, note, INSTANCE_NOTE_BYTES - 1);
	close(fd);
	note[length > 0 ? length : 0] = '\0';
	return length >= 0;
}

/* Makes the name of a note durable, as far as that goes. */
static void sync_folder_of(const char *path)
{
	char folder[INSTANCE_PATH_BYTES];
	int fd;

	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) != 0)
		log_warn("flash: %s can't be synced: %s", folder, strerror(errno));
	if (fd >= 0)
		close(fd);
}

bool instance_write(const char *path, const char *note)
{
	char path_new[INSTANCE_PATH_BYTES + 8];
	ssize_t length = (ssize_t)strlen(note);
	bool written;
	int fd, error;

	snprintf(path_new, sizeof(path_new), "%s.new", path);
	(void)!unlink(path_new);
	fd = open(path_new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	written = write(fd, note, (size_t)length) == length && fsync(fd) == 0;
	if (close(fd) == 0 && written && rename(path_new, path) == 0) {
		sync_folder_of(path);
		return true;
	}
	error = errno;
	(void)!unlink(path_new);
	errno = error;
	return false;
}

static void region_path(const char *region_dir, const char *flash_path, char out[INSTANCE_PATH_BYTES])
{
	snprintf(out, INSTANCE_PATH_BYTES, "%s/%s" INSTANCE_REGION_SUFFIX, region_dir, last_part(flash_path));
}

void instance_remove_region(const char *region_dir, const char *flash_path)
{
	char path[INSTANCE_PATH_BYTES];

	region_path(region_dir, flash_path, path);
	if (!region_is_in_use(path) && unlink(path) != 0 && errno != ENOENT && errno != ENOTDIR)
		log_warn(
			"flash: %s can't be removed: %s: don't start with %s again before --restart-max-downtime is over",
			path, strerror(errno), flash_path);
}

/* Does another process serve with the flash at flash_path? The region of the own flash, of the same name but elsewhere, is
   this process's. */
static bool is_served(const char *region_dir, const char *flash_path, const char *own)
{
	char path[INSTANCE_PATH_BYTES];

	if (seg_is_locked(flash_path))
		return true;
	region_path(region_dir, flash_path, path);
	return region_dir[0] && strcmp(last_part(flash_path), last_part(own)) != 0 && region_is_in_use(path);
}

/* Removes what runs with the flash at flash_path have left. A daemon that serves with it now keeps its journal and its region;
   the file of the state is of a run that has ended, and goes always. own: the flash of this one. */
static void forget(const char *state_dir, const char *region_dir, const char *flash_path, const char *own)
{
	char state[INSTANCE_PATH_BYTES];

	instance_state_path(state_dir, flash_path, state);
	if (access(state, F_OK) == 0 || region_dir[0])
		log_notice("flash: what was saved of %s is removed: this run serves without that flash", flash_path);
	if (parts_remove(state) != FS_OK)
		log_warn(
			"flash: %s can't be removed: %s: don't start with %s again before --restart-max-downtime is over",
			state, strerror(errno), flash_path);
	if (is_served(region_dir, flash_path, own))
		return;
	if (region_dir[0])
		instance_remove_region(region_dir, flash_path);
	instance_remove_journal(state_dir, flash_path);
}

static void make_note(const char *region_dir, const char *flash_path, const char *other, char note[INSTANCE_NOTE_BYTES])
{
	snprintf(note, INSTANCE_NOTE_BYTES, "%s\n%s%s%s", flash_path, region_dir && flash_path[0] ? region_dir : "",
		 other ? "\n" : "", other ? other : "");
}

bool instance_note_move(const char *state_dir, const char *region_dir, const char *name, const char *flash_path,
			const char *other)
{
	char path[INSTANCE_PATH_BYTES], note[INSTANCE_NOTE_BYTES];

	instance_path(state_dir, name, "", path);
	make_note(region_dir, flash_path, other, note);
	return instance_write(path, note);
}

/* Removes what runs with other flashes have left that this note names; cuts the note up. */
static void forget_noted(const char *state_dir, char last[INSTANCE_NOTE_BYTES], const char *flash_path)
{
	char *last_dir, *other;

	last_dir = last + strcspn(last, "\n");
	if (*last_dir)
		*last_dir++ = '\0';
	other = last_dir + strcspn(last_dir, "\n");
	if (*other)
		*other++ = '\0';
	if (last[0] && strcmp(last, flash_path) != 0)
		forget(state_dir, last_dir, last, flash_path);
	if (other[0] && strcmp(other, flash_path) != 0)
		forget(state_dir, last_dir, other, flash_path);
}

void instance_forget(const char *state_dir, const char *name, const char *flash_path)
{
	char path[INSTANCE_PATH_BYTES], last[INSTANCE_NOTE_BYTES];

	instance_path(state_dir, name, "", path);
	if (!instance_read(path, last) || strcmp(last, NOTE_OF_NONE) == 0)
		return;
	forget_noted(state_dir, last, flash_path);
	if (!instance_write(path, NOTE_OF_NONE))
		log_warn("flash: %s can't be written: %s", path, strerror(errno));
}

void instance_note(const char *state_dir, const char *region_dir, const char *name, const char *flash_path)
{
	char path[INSTANCE_PATH_BYTES], last[INSTANCE_NOTE_BYTES], note[INSTANCE_NOTE_BYTES];

	instance_path(state_dir, name, "", path);
	make_note(region_dir, flash_path, NULL, note);
	if (!instance_read(path, last))
		last[0] = '\0';
	if (strcmp(last, note) == 0)
		return;
	forget_noted(state_dir, last, flash_path);
	if (!instance_write(path, note))
		log_warn("flash: %s can't be written: %s", path, strerror(errno));
}
