/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The note of a state directory, which says with which flash the last run of a daemon served. Whatever it says, only files
 * of that flash go: by name, in the state directory and in the folder that the note names. Afterwards it says what this
 * run serves with, and a second call changes nothing.
 *
 * Input: a byte of options, and the note.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "server/store/state/instance.h"
#include "tests/fuzz/fixed.h"
#include "tests/fuzz/fuzz.h"

#define NOTE_MOST 9000u
#define OTHER "other"
#define OWN "own"

static char folder[64], region_dir[80], note_path[400];

/* ---- files ----------------------------------------------------------------------------------- */

static void touch_at(const char *in, const char *name)
{
	char path[200];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", in, name);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	require(fd >= 0);
	close(fd);
}

static bool is_at(const char *in, const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", in, name);
	return access(path, F_OK) == 0;
}

static void remove_folder(void)
{
	char command[120];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command) != 0) /* NOLINT: the name is ours */
		fprintf(stderr, "%s is left\n", folder);
}

static bool ends_with(const char *path, size_t length, const char *suffix)
{
	size_t bytes = strlen(suffix);

	return length >= bytes && memcmp(path + length - bytes, suffix, bytes) == 0;
}

/* Is it a name by which a file of some flash may be removed? Those outside of our folder are not removed at all. */
static bool may_unlink(const char *path)
{
	size_t length = strlen(path), end = length;
	bool ours = strncmp(path, folder, strlen(folder)) == 0 && !strstr(path, "/../");

	if (length >= PATH_MAX) /* a note of nonsense; no system call takes such a path */
		return false;
	while (end > 0 && path[end - 1] >= '0' && path[end - 1] <= '9')
		end--;
	require(ends_with(path, length, ".state") || ends_with(path, length, ".new") ||
		ends_with(path, length, ".region") || (end < length && ends_with(path, end, ".journal.")));
	require(ours || ends_with(path, length, ".region"));
	return ours;
}

/* Where the one note of the folder is. */
static void find_note(void)
{
	DIR *entries = opendir(folder);
	const struct dirent *entry;

	require(entries);
	while ((entry = readdir(entries)))
		if (strncmp(entry->d_name, "instance-", 9) == 0)
			snprintf(note_path, sizeof(note_path), "%s/%s", folder, entry->d_name);
	closedir(entries);
	require(note_path[0]);
}

static void make_folder(void)
{
	if (folder[0])
		return;
	log_set_level(LOG_LEVEL_ERROR);
	snprintf(folder, sizeof(folder), "%s/flashield-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	require(mkdtemp(folder));
	atexit(remove_folder);
	snprintf(region_dir, sizeof(region_dir), "%s/regions", folder);
	require(mkdir(region_dir, 0700) == 0);
	instance_note(folder, region_dir, "11211", "/mnt/" OWN);
	find_note();
}

/* The note of a daemon that serves with this flash now. */
static void note_flash(const char *regions, const char *flash)
{
	fixed_on_unlink(may_unlink);
	instance_note(folder, regions, "11211", flash);
	fixed_on_unlink(NULL); /* libFuzzer removes files too */
}

/* ---- the target ------------------------------------------------------------------------------ */

/* "@" stands for our folder, which has another name in each process. */
static void write_note(const uint8_t *bytes, size_t length)
{
	int fd = open(note_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	require(fd >= 0);
	for (size_t i = 0; i < length; i++)
		if (bytes[i] == '@')
			require(write(fd, folder, strlen(folder)) > 0);
		else
			require(write(fd, &bytes[i], 1) == 1);
	close(fd);
}

static void read_note(char note[NOTE_MOST])
{
	int fd = open(note_path, O_RDONLY | O_CLOEXEC);
	ssize_t length = read(fd, note, NOTE_MOST - 1);

	require(fd >= 0 && length >= 0);
	close(fd);
	note[length] = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const flashes[4] = { "/mnt/" OWN, "", OWN, "/mnt/" OTHER };
	struct taking from = { data, data + size };
	unsigned options = (unsigned)take_number(&from, 1);
	const char *flash = flashes[options % 4], *regions = options & 4 ? region_dir : NULL;
	char note[NOTE_MOST], wanted[300];

	make_folder();
	if (left_of(&from) > 600)
		return 0;
	touch_at(folder, OWN ".state");
	touch_at(folder, OWN ".items");
	touch_at(folder, OTHER ".state");
	touch_at(folder, OTHER ".journal.7");
	touch_at(region_dir, OTHER ".region");
	write_note(from.at, left_of(&from));
	note_flash(regions, flash);
	snprintf(wanted, sizeof(wanted), "%s\n%s", flash, regions && flash[0] ? regions : "");
	read_note(note);
	require(strcmp(note, wanted) == 0);
	require(is_at(folder, OWN ".items"));
	if (strcmp(flash, "/mnt/" OTHER) != 0 && left_of(&from) > sizeof("/mnt/" OTHER) &&
	    memcmp(from.at, "/mnt/" OTHER "\n", sizeof("/mnt/" OTHER)) == 0)
		require(!is_at(folder, OTHER ".state") && !is_at(folder, OTHER ".journal.7"));
	touch_at(folder, OTHER ".state");
	note_flash(regions, flash);
	read_note(note);
	require(is_at(folder, OTHER ".state") && strcmp(note, wanted) == 0);
	return 0;
}
