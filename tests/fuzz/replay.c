/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a target on each file of the folders and files named, as a test: TAP on standard output, one test for all, as the
 * first input that fails ends the program. Its name is the last thing that is said.
 */
#include <dirent.h>
#include <limits.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

/* Of the sanitizers, where they are linked in. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static char current[PATH_MAX];
static unsigned inputs;

static void tell(void)
{
	static const char before[] = "input: ";

	if (write(STDERR_FILENO, before, sizeof(before) - 1) < 0 ||
	    write(STDERR_FILENO, current, strlen(current)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
		return;
}

static void on_abort(int number)
{
	tell();
	signal(number, SIG_DFL);
	raise(number);
}

static void fail(const char *path)
{
	printf("not ok 1 - ");
	fflush(stdout);
	perror(path);
	exit(1);
}

/* All of a file, in a block of its size. */
static uint8_t *read_file(const char *path, size_t *length)
{
	FILE *file = fopen(path, "rb");
	struct stat status;
	uint8_t *bytes;

	if (!file || fstat(fileno(file), &status) != 0)
		fail(path);
	*length = (size_t)status.st_size;
	bytes = malloc(*length + (*length == 0));
	if (!bytes || fread(bytes, 1, *length, file) != *length)
		fail(path);
	fclose(file);
	return bytes;
}

static void run_file(const char *path)
{
	size_t length;
	uint8_t *bytes = read_file(path, &length);

	snprintf(current, sizeof(current), "%s", path);
	(void)LLVMFuzzerTestOneInput(bytes, length);
	free(bytes);
	inputs++;
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void run(const char *path)
{
	struct dirent **entries;
	struct stat status;
	char name[PATH_MAX];
	int count;

	if (stat(path, &status) != 0)
		fail(path);
	if (!S_ISDIR(status.st_mode)) {
		run_file(path);
		return;
	}
	count = scandir(path, &entries, is_visible, alphasort);
	if (count < 0)
		fail(path);
	for (int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s/%s", path, entries[i]->d_name);
		run(name);
		free(entries[i]);
	}
	free(entries);
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/');

	printf("1..1\n");
	fflush(stdout);
	signal(SIGABRT, on_abort);
	if (&__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(tell);
	for (int i = 1; i < argc; i++)
		run(argv[i]);
	if (inputs == 0)
		printf("not ok 1 - no input\n");
	else
		printf("ok 1 - %s: %u inputs\n", slash ? slash + 1 : argv[0], inputs);
	return inputs == 0;
}
