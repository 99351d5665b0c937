/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks of one process exclude each other as those of two do: each is a description of its own. */
#include "server/store/daemon_lock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "server/store/state/instance.h"
#include "server/store/store.h"

static char folder[100];

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "%.60s/lock-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[200];

	(void)state;
	snprintf(command, sizeof(command), "rm -r '%s'", folder);
	return system(command); /* NOLINT(cert-env33-c): the folder is the test's own */
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* How often a start has waited, for whom, and the lock that is given back while it waits. */
static struct {
	unsigned times, most;
	pid_t holder;
	struct daemon_lock *ends;
} waits;

static bool wait_a_moment(void *context, pid_t holder)
{
	assert_ptr_equal(context, &waits);
	waits.times++;
	waits.holder = holder;
	if (waits.times < waits.most)
		return true;
	daemon_lock_release(waits.ends);
	waits.ends = NULL;
	return waits.times == waits.most;
}

static int try_lock(struct daemon_lock **out, const char *endpoints, char reason[256])
{
	const struct daemon_lock_config config = {
		.folder = folder, .endpoints = endpoints, .wait = wait_a_moment, .context = &waits
	};

	reason[0] = '\0';
	return daemon_lock_take(out, &config, reason);
}

/* A lock that nobody has. */
static struct daemon_lock *take(const char *endpoints)
{
	struct daemon_lock *lock;
	char reason[256];

	memset(&waits, 0, sizeof(waits));
	assert_int_equal(try_lock(&lock, endpoints, reason), FS_OK);
	assert_int_equal(waits.times, 0);
	return lock;
}

/* One start waits for the other, until that one ends. */
static void expect_to_wait(const char *runs, const char *starts)
{
	struct daemon_lock *lock, *first = take(runs);
	char reason[256];

	waits.most = 3;
	waits.ends = first;
	assert_int_equal(try_lock(&lock, starts, reason), FS_OK);
	assert_int_equal(waits.times, 3);
	assert_int_equal(waits.holder, getpid());
	daemon_lock_release(lock);
}

static void a_start_waits_for_the_same_daemon(void **state)
{
	(void)state;
	expect_to_wait("11211", "11211");
	expect_to_wait("unix:/a/sock", "unix:/a/sock");
	expect_to_wait("11211\nudp:11211", "11211");
}

static void a_start_waits_for_a_daemon_with_clients_in_common(void **state)
{
	(void)state;
	expect_to_wait("11211", "127.0.0.1:11211");
	expect_to_wait("127.0.0.1:11211", "11211");
	expect_to_wait("11212\nudp:11211", "udp:11211");
}

static void two_daemons_do_not_wait_for_each_other(void **state)
{
	struct daemon_lock *lock[] = { take("127.0.0.1:11211"), take("127.0.0.2:11211"), take("127.0.0.1:11212"),
				       take("unix:/a/sock"),    take("unix:/b/sock"),    take("udp:127.0.0.1:11211") };

	(void)state;
	for (unsigned i = 0; i < sizeof(lock) / sizeof(lock[0]); i++)
		daemon_lock_release(lock[i]);
}

static void the_wait_may_end_without_the_lock(void **state)
{
	struct daemon_lock *lock, *first = take("11211");
	char reason[256], expected[256];

	(void)state;
	assert_int_equal(try_lock(&lock, "11211", reason), FS_EBUSY);
	snprintf(expected, sizeof(expected), "process %ld, which serves the same clients with %s, has not ended",
		 (long)getpid(), folder);
	assert_memory_equal(reason, expected, strlen(expected));
	daemon_lock_release(first);
	daemon_lock_release(take("11211"));
}

/* A file that says nothing has a holder all the same. */
static void a_holder_that_is_unknown_is_another_process(void **state)
{
	static const char expected[] = "another process, which serves the same clients with ";
	struct daemon_lock *lock, *first = take("11211");
	char path[INSTANCE_PATH_BYTES], reason[256];

	(void)state;
	instance_lock_path(folder, "11211", path);
	assert_int_equal(truncate(path, 0), 0);
	assert_int_equal(try_lock(&lock, "11211", reason), FS_EBUSY);
	assert_int_equal(waits.holder, 0);
	assert_memory_equal(reason, expected, sizeof(expected) - 1);
	daemon_lock_release(first);
}

/* The holder's file is removed, the holder ends, and a third start makes the file anew. */
static bool remove_and_make_anew(void *context, pid_t holder)
{
	struct daemon_lock **has = context;
	char path[INSTANCE_PATH_BYTES];

	(void)holder;
	if (waits.times++ > 0)
		return false;
	instance_lock_path(folder, "11211", path);
	assert_int_equal(unlink(path), 0);
	daemon_lock_release(*has);
	*has = take("11211");
	waits.times = 1;
	return true;
}

static void a_file_that_is_made_anew_is_not_held_twice(void **state)
{
	struct daemon_lock *lock, *has = take("11211");
	const struct daemon_lock_config config = {
		.folder = folder, .endpoints = "11211", .wait = remove_and_make_anew, .context = (void *)&has
	};
	char reason[256];

	(void)state;
	assert_int_equal(daemon_lock_take(&lock, &config, reason), FS_EBUSY);
	assert_int_equal(waits.times, 2);
	daemon_lock_release(has);
}

/* ---- kin ------------------------------------------------------------------------------------- */

/* expected: "NAME" or "NAME+" for one that covers, separated by blanks, in any order. */
static void expect_kin(const char *endpoints, const char *name, const char *expected)
{
	struct daemon_lock *lock = take(endpoints);
	unsigned count;
	const struct store_kin *kin = daemon_lock_kin(lock, &count);
	size_t length = 0;

	assert_string_equal(daemon_lock_name(lock), name);
	for (unsigned i = 0; i < count; i++) {
		char word[100];

		length += (size_t)snprintf(word, sizeof(word), "%s%s", kin[i].name, kin[i].covers ? "+" : "") + 1;
		assert_non_null(strstr(expected, word));
	}
	assert_int_equal(length, *expected ? strlen(expected) + 1 : 0);
	daemon_lock_release(lock);
}

static void kin_are_the_daemons_with_clients_in_common(void **state)
{
	(void)state;
	expect_kin("11211", "11211", "");
	expect_kin("11211\nudp:11212", "11211", "");
	expect_kin("127.0.0.1:11211", "127.0.0.1:11211", "11211+");
	expect_kin("127.0.0.2:11211", "127.0.0.2:11211", "11211+");
	expect_kin("11212", "11212", "");
	expect_kin("11211", "11211", "127.0.0.1:11211 127.0.0.2:11211");
	expect_kin("unix:/a/sock", "unix:/a/sock", "");
	expect_kin("udp:11212", "udp:11212", ""); /* the last run of 11211 had no UDP */
}

/* It had no locks, and the port for a name, whatever the addresses. */
static void a_daemon_of_an_earlier_version_is_kin_by_its_port(void **state)
{
	(void)state;
	expect_kin("127.0.0.1:11211\n127.0.0.2:11211", "127.0.0.1:11211\n127.0.0.2:11211", "11211+");
	expect_kin("127.0.0.3:11211\n127.0.0.3:11212", "127.0.0.3:11211\n127.0.0.3:11212", "11211 11212");
	expect_kin("udp:127.0.0.1:11213", "udp:127.0.0.1:11213", ""); /* the port was that of TCP */
}

/* ---- files ----------------------------------------------------------------------------------- */

static void expect_no_lock(const char *path)
{
	struct daemon_lock *one = take("11211"), *other = take("11211");

	(void)path;
	daemon_lock_release(one);
	daemon_lock_release(other);
}

static void without_a_file_the_start_goes_on(void **state)
{
	char path[INSTANCE_PATH_BYTES], other[INSTANCE_PATH_BYTES + 8];
	char real[100];

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	instance_lock_path(folder, "11211", path);
	snprintf(other, sizeof(other), "%s/other", folder);
	assert_int_equal(symlink(other, path), 0); /* it is not followed */
	expect_no_lock(path);
	assert_int_equal(access(other, F_OK), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	expect_no_lock(path);
	assert_int_equal(rmdir(path), 0);
	daemon_lock_release(take("11211"));
	assert_int_equal(link(path, other), 0); /* whose file it is, is not known */
	expect_no_lock(path);
	assert_int_equal(unlink(other), 0);
	memcpy(real, folder, sizeof(real));
	snprintf(folder, sizeof(folder), "/nowhere/at/all");
	expect_no_lock(path);
	memcpy(folder, real, sizeof(real));
	log_set_level(LOG_LEVEL_NOTICE);
}

static void what_a_file_says_is_not_believed(void **state)
{
	static const char *const texts[] = { "", "\n", "11211", "x\n11211", "-5\n127.0.0.1:11211", "1\n", "1\n:::\n[" };
	char path[INSTANCE_PATH_BYTES], command[2 * INSTANCE_PATH_BYTES + 100];

	(void)state;
	daemon_lock_release(take("127.0.0.1:11211"));
	instance_lock_path(folder, "127.0.0.1:11211", path);
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		FILE *file = fopen(path, "w");

		assert_non_null(file);
		fputs(texts[i], file);
		assert_int_equal(fclose(file), 0);
		expect_kin("11211", "11211", i == 4 ? "127.0.0.1:11211" : "");
	}
	snprintf(command, sizeof(command), "rm '%s' && mkfifo '%s'", path, path);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
	expect_kin("11211", "11211", "");
}

static void without_a_folder_there_is_a_name_and_no_more(void **state)
{
	const struct daemon_lock_config config = { .endpoints = "127.0.0.1:11211\nudp:11211" };
	struct daemon_lock *lock;
	char reason[256];
	unsigned count;

	(void)state;
	assert_int_equal(daemon_lock_take(&lock, &config, reason), FS_OK);
	assert_string_equal(daemon_lock_name(lock), "127.0.0.1:11211");
	(void)daemon_lock_kin(lock, &count);
	assert_int_equal(count, 0);
	daemon_lock_release(lock);
	daemon_lock_release(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_a_file_the_start_goes_on),
		TEST(what_a_file_says_is_not_believed),
		TEST(without_a_folder_there_is_a_name_and_no_more),
		TEST(a_start_waits_for_the_same_daemon),
		TEST(a_start_waits_for_a_daemon_with_clients_in_common),
		TEST(two_daemons_do_not_wait_for_each_other),
		TEST(the_wait_may_end_without_the_lock),
		TEST(a_holder_that_is_unknown_is_another_process),
		TEST(a_file_that_is_made_anew_is_not_held_twice),
		TEST(kin_are_the_daemons_with_clients_in_common),
		TEST(a_daemon_of_an_earlier_version_is_kin_by_its_port),
	};

	return cmocka_run_group_tests_name("store: the daemon's lock", tests, NULL, NULL);
}
