/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal's files in a directory. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/store/state/journal.h"

static char folder[100], path[200];
static struct journal_medium *medium;

static int begin(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "%.60s/journal-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/flash.journal", folder);
	medium = journal_directory(path);
	return medium ? 0 : -1;
}

static int end(void **state)
{
	uint32_t number[8];
	int64_t count = medium->list(medium, number, 8);

	(void)state;
	for (int64_t i = 0; i < count; i++)
		assert_int_equal(medium->remove(medium, number[i]), 0);
	medium->close(medium);
	return rmdir(folder);
}

static void make_other(const char *suffix)
{
	char other[300];
	int fd;

	snprintf(other, sizeof(other), "%s%s", path, suffix);
	fd = open(other, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void remove_other(const char *suffix)
{
	char other[300];

	snprintf(other, sizeof(other), "%s%s", path, suffix);
	assert_int_equal(unlink(other), 0);
}

static void what_is_written_is_read(void **state)
{
	char bytes[1024], got[2048];
	struct stat info;
	char name[300];

	(void)state;
	memset(bytes, 'a', sizeof(bytes));
	assert_int_equal(medium->create(medium, 7), 0);
	assert_int_equal(medium->write(medium, 7, bytes, sizeof(bytes), 0), 0);
	assert_int_equal(medium->write(medium, 7, bytes, 512, 1024), 0);
	assert_int_equal(medium->sync(medium, 7), 0);
	assert_int_equal(medium->read(medium, 7, got, sizeof(got), 0), 1536);
	assert_int_equal(medium->read(medium, 7, got, 100, 1500), 36);
	assert_int_equal(medium->read(medium, 7, got, 100, 1536), 0);
	snprintf(name, sizeof(name), "%s.7", path);
	assert_int_equal(stat(name, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	assert_int_equal(medium->create(medium, 7), 0); /* anew, and empty */
	assert_int_equal(medium->read(medium, 7, got, 100, 0), 0);
}

static void a_deleted_file_can_not_be_synced(void **state)
{
	char bytes[512] = "";

	(void)state;
	assert_int_equal(medium->create(medium, 8), 0);
	remove_other(".8");
	assert_int_equal(medium->write(medium, 8, bytes, sizeof(bytes), 0), 0); /* it is still open */
	assert_int_equal(medium->sync(medium, 8), -ENOENT);
}

static void only_its_own_files_are_listed(void **state)
{
	static const char *const others[] = { ".", ".x", ".07", ".7x", "x.7", ".99999999999999999999" };
	uint32_t number[2];

	(void)state;
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		make_other(others[i]);
	for (uint32_t n = 1; n <= 3; n++)
		assert_int_equal(medium->create(medium, n), 0);
	assert_int_equal(medium->list(medium, number, 2), 3);
	for (uint32_t n = 1; n <= 3; n++)
		assert_int_equal(medium->remove(medium, n), 0);
	assert_int_equal(medium->remove(medium, 3), 0); /* there is none */
	assert_int_equal(medium->list(medium, number, 2), 0);
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		remove_other(others[i]);
}

static void errors_are_told(void **state)
{
	struct journal_medium *nowhere = journal_directory("/nonexistent-folder/journal");
	char bytes[512];
	uint32_t number;

	(void)state;
	assert_non_null(nowhere);
	assert_int_equal(nowhere->create(nowhere, 1), -ENOENT);
	assert_int_equal(nowhere->list(nowhere, &number, 1), -ENOENT);
	nowhere->close(nowhere);
	assert_int_equal(medium->read(medium, 5, bytes, sizeof(bytes), 0), -ENOENT);
	assert_int_equal(medium->sync(medium, 5), -ENOENT);
}

/* What is written by one name is read by the other; the first name may go. */
static void a_shared_file_has_two_names(void **state)
{
	char other_path[220], block[512] = "block";
	struct journal_medium *other, *same = journal_directory(path);

	(void)state;
	snprintf(other_path, sizeof(other_path), "%s/other.journal", folder);
	other = journal_directory(other_path);
	assert_non_null(other);
	assert_non_null(same);
	assert_true(medium->is_same(medium, same));
	assert_false(medium->is_same(medium, other));
	assert_int_equal(medium->share(medium, 7, other), -ENOENT);
	assert_int_equal(medium->create(medium, 7), 0);
	assert_int_equal(other->create(other, 7), 0); /* is replaced */
	assert_int_equal(medium->share(medium, 7, other), 0);
	assert_int_equal(medium->write(medium, 7, block, sizeof(block), 0), 0);
	assert_int_equal(medium->sync(medium, 7), 0);
	memset(block, 0, sizeof(block));
	assert_int_equal(other->read(other, 7, block, sizeof(block), 0), sizeof(block));
	assert_string_equal(block, "block");
	assert_int_equal(medium->remove(medium, 7), 0);
	assert_int_equal(other->sync(other, 7), 0);
	assert_int_equal(other->remove(other, 7), 0);
	other->close(other);
	same->close(same);
}

static uid_t user_of(const char *suffix)
{
	char file[300];
	struct stat st;

	snprintf(file, sizeof(file), "%s%s", path, suffix);
	assert_int_equal(stat(file, &st), 0);
	return st.st_uid;
}

/* What root makes is the user's that the process is going to be. A file with another name may be anything. */
static void files_get_their_owner(void **state)
{
	char first[300], second[300];

	(void)state;
	if (geteuid() != 0)
		skip();
	make_other(".1");
	make_other(".2");
	snprintf(first, sizeof(first), "%s.2", path);
	snprintf(second, sizeof(second), "%s/else", folder);
	assert_int_equal(link(first, second), 0);
	journal_directory_own(medium, 65534, 65534);
	assert_int_equal(medium->create(medium, 3), 0);
	assert_int_equal(user_of(".1"), 65534);
	assert_int_equal(user_of(".2"), 0);
	assert_int_equal(user_of(".3"), 65534);
	assert_int_equal(unlink(second), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_is_written_is_read, begin, end),
		cmocka_unit_test_setup_teardown(a_deleted_file_can_not_be_synced, begin, end),
		cmocka_unit_test_setup_teardown(only_its_own_files_are_listed, begin, end),
		cmocka_unit_test_setup_teardown(errors_are_told, begin, end),
		cmocka_unit_test_setup_teardown(a_shared_file_has_two_names, begin, end),
		cmocka_unit_test_setup_teardown(files_get_their_owner, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
