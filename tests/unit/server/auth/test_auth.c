/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may log in: the password file, its reload, and SASL sessions. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/rng.h"
#include "conf/conf.h"
#include "server/auth/auth_internal.h"

static char folder[] = "/tmp/flashield-auth-XXXXXX", path[64], sasl_conf[64];

/* In place of the function of libcrypto: the random bytes of the kernel, or none. */
static bool without_random_bytes;

int RAND_bytes(unsigned char *bytes, int count);
int RAND_bytes(unsigned char *bytes, int count)
{
	if (!without_random_bytes)
		rng_secret(bytes, (size_t)count);
	return without_random_bytes ? 0 : 1;
}

static void write_file(const char *name, const char *text, size_t length)
{
	FILE *file = fopen(name, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(text, 1, length, file), length);
	assert_int_equal(fclose(file), 0);
}

static int open_file(struct auth **out, const char *text, size_t length, char reason[256])
{
	struct conf conf;
	int code;

	conf_init(&conf);
	write_file(path, text, length);
	conf.auth_file = path;
	code = auth_open(out, &conf, reason);
	conf.auth_file = NULL;
	conf_free(&conf);
	return code;
}

static struct auth *must_open(const char *text)
{
	char reason[256] = "";
	struct auth *auth;

	if (open_file(&auth, text, strlen(text), reason) != FS_OK)
		fail_msg("%s", reason);
	assert_non_null(auth);
	return auth;
}

static bool may(struct auth *auth, const char *user, const char *password)
{
	return auth_check(auth, user, strlen(user), password, strlen(password));
}

static void malformed_files_are_refused_by_line(void **state)
{
	static const struct {
		const char *text;
		int line;
	} bad[] = { { "nocolon", 1 },        { "\n", 1 },           { "\r\n", 1 }, { "a:b\n\nc:d\n", 2 },
		    { "# users\na:b\n", 1 }, { "a:b\nc:d\ne\n", 3 } };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char reason[256] = "", line[32];
		struct auth *auth;

		if (open_file(&auth, bad[i].text, strlen(bad[i].text), reason) != FS_EINVAL)
			fail_msg("\"%s\" was accepted", bad[i].text);
		assert_null(auth);
		snprintf(line, sizeof(line), "(line %d)", bad[i].line);
		assert_non_null(strstr(reason, line));
		assert_non_null(strstr(reason, "malformed entry. Should be 'user:password'"));
	}
}

static void a_reason_holds_no_secret(void **state)
{
	static const char text[] = "user:hunter2\nhunter3\n";
	char reason[256] = "";
	struct auth *auth;

	(void)state;
	assert_int_equal(open_file(&auth, text, sizeof(text) - 1, reason), FS_EINVAL);
	assert_null(strstr(reason, "hunter"));
}

static void files_that_cannot_be_read(void **state)
{
	char reason[256] = "", missing[] = "/nonexistent/users";
	struct conf conf;
	struct auth *auth;

	(void)state;
	conf_init(&conf);
	conf.auth_file = missing;
	assert_int_equal(auth_open(&auth, &conf, reason), FS_ESYS);
	assert_string_equal(
		reason, "Could not open authfile [/nonexistent/users] for reading, error No such file or directory");
	conf.auth_file = folder;
	assert_int_equal(auth_open(&auth, &conf, reason), FS_ESYS);
	assert_non_null(strstr(reason, "Is a directory"));
	conf.auth_file = NULL;
	conf_free(&conf);
}

static void without_random_bytes_nothing_is_opened_and_the_reason_says_so(void **state)
{
	char reason[256] = "";
	struct auth *auth;
	int code;

	(void)state;
	without_random_bytes = true;
	code = open_file(&auth, "user:secret\n", 12, reason);
	without_random_bytes = false;
	assert_int_equal(code, FS_ESYS);
	assert_null(auth);
	assert_non_null(strstr(reason, "no random bytes"));
}

static void too_large_a_file_is_refused(void **state)
{
	size_t length = 2u << 20;
	char *text = malloc(length), reason[256] = "";
	struct auth *auth;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', length);
	memcpy(text, "user:", 5);
	assert_int_equal(open_file(&auth, text, length, reason), FS_ESYS);
	free(text);
}

static void nothing_is_opened_where_nothing_is_asked_for(void **state)
{
	char reason[256] = "";
	struct conf conf;
	struct auth *auth;

	(void)state;
	conf_init(&conf);
	assert_int_equal(auth_open(&auth, &conf, reason), FS_OK);
	assert_null(auth);
	auth_close(auth);
	conf_free(&conf);
}

static void only_the_right_pair_may(void **state)
{
	struct auth *auth = must_open("user:secret\nother:word\r\ncolons:a:b\n:nameless\nlast:line");

	(void)state;
	assert_true(auth_has_passwords(auth));
	assert_false(auth_has_sasl(auth));
	assert_false(may(auth, "user", "word"));
	assert_false(may(auth, "other", "secret"));
	assert_false(may(auth, "user", "secre"));
	assert_false(may(auth, "user", "secrets"));
	assert_false(may(auth, "use", "rsecret"));
	assert_false(may(auth, "user:", "secret"));
	assert_false(may(auth, "User", "secret"));
	assert_false(may(auth, "user", ""));
	assert_false(may(auth, "", ""));
	assert_false(may(auth, "other", "word\r"));
	assert_false(may(auth, "colons", "a"));
	assert_false(auth_check(auth, "user\0x", 6, "secret", 6));
	assert_true(may(auth, "user", "secret"));
	assert_true(may(auth, "other", "word"));
	assert_true(may(auth, "colons", "a:b"));
	assert_true(may(auth, "", "nameless"));
	assert_true(may(auth, "last", "line"));
	auth_close(auth);
}

static int warnings;
static char last_warning[256];

static bool count_warnings(const struct log_record *record)
{
	if (record->priority == LOG_WARNING) {
		warnings++;
		snprintf(last_warning, sizeof(last_warning), "%s", record->text);
	}
	return true;
}

static void an_empty_password_is_taken_with_a_warning(void **state)
{
	static const char *const texts[] = { "a:b\nuser:\n", "a:b\nuser:\r\n", "a:b\nuser:" };

	(void)state;
	log_set_sink(count_warnings);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct auth *auth;

		warnings = 0;
		auth = must_open(texts[i]);
		assert_int_equal(warnings, 1);
		assert_non_null(strstr(last_warning, "line 2 has an empty password"));
		assert_false(may(auth, "user", "b"));
		assert_false(may(auth, "user", "\r"));
		assert_false(may(auth, "a", ""));
		assert_false(may(auth, "", ""));
		assert_true(may(auth, "user", ""));
		auth_close(auth);
	}
	log_set_sink(NULL);
}

static void an_empty_file_lets_nobody_in(void **state)
{
	struct auth *auth = must_open("");

	(void)state;
	assert_false(may(auth, "", ""));
	assert_false(may(auth, "user", "secret"));
	auth_close(auth);
}

static void entries_that_are_freed_are_none(void **state)
{
	static const unsigned char key[AUTH_KEY_BYTES];
	struct auth_entries entries;
	char reason[256];

	(void)state;
	write_file(path, "user:secret\n", 12);
	assert_int_equal(auth_file_read(path, key, &entries, reason), FS_OK);
	assert_int_equal(entries.count, 1);
	for (unsigned i = 0; i < 2; i++) {
		auth_entries_free(&entries);
		assert_null(entries.entry);
		assert_int_equal(entries.count, 0);
	}
}

static void a_reload_takes_all_or_nothing(void **state)
{
	struct auth *auth = must_open("user:old\ngone:word\n");
	char reason[256] = "";

	(void)state;
	write_file(path, "user:new\nbad\n", 13);
	assert_int_equal(auth_reload(auth, reason), FS_EINVAL);
	assert_true(may(auth, "user", "old"));
	assert_false(may(auth, "user", "new"));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(auth_reload(auth, reason), FS_ESYS);
	assert_true(may(auth, "user", "old"));
	write_file(path, "user:new\n", 9);
	assert_int_equal(auth_reload(auth, reason), FS_OK);
	assert_false(may(auth, "user", "old"));
	assert_false(may(auth, "gone", "word"));
	assert_true(may(auth, "user", "new"));
	auth_close(auth);
}

struct checking {
	struct auth *auth;
	atomic_bool stop;
	atomic_ulong wrong, checks;
};

/* One of the two passwords is right at each moment, and the third never is. */
static void *check_all_the_time(void *context)
{
	struct checking *checking = context;

	while (!atomic_load(&checking->stop)) {
		if (may(checking->auth, "user", "never") || !may(checking->auth, "always", "there"))
			atomic_fetch_add(&checking->wrong, 1);
		atomic_fetch_add(&checking->checks, 1);
	}
	return NULL;
}

static void checks_go_on_while_the_file_is_read(void **state)
{
	struct checking checking = { .auth = must_open("user:a\nalways:there\n") };
	char reason[256] = "";
	pthread_t threads[2];

	(void)state;
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, check_all_the_time, &checking), 0);
	for (unsigned i = 0; i < 200 || atomic_load(&checking.checks) < 200; i++) {
		const char *text = i % 2 ? "user:a\nalways:there\n" : "always:there\nmore:lines\nuser:b\n";

		write_file(path, text, strlen(text));
		assert_int_equal(auth_reload(checking.auth, reason), FS_OK);
	}
	atomic_store(&checking.stop, true);
	for (unsigned i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&checking.wrong), 0);
	auth_close(checking.auth);
}

/* ---- without memory --------------------------------------------------------------------------- */

/* Lets each allocation of auth_open fail, one after the other. The first one is that of struct auth. */
static void expect_reasons_without_memory(const struct conf *conf)
{
	bool fired = true;

	for (unsigned n = 0; fired; n++) {
		char reason[256] = "";
		struct auth *auth;
		int code;

		fault_arm(FAULT_memory_alloc, FAULT_AFTER, n);
		code = auth_open(&auth, conf, reason);
		fired = fault_fired(FAULT_memory_alloc) > 0;
		fault_disarm_all();
		assert_int_equal(code == FS_OK, !fired);
		if (code == FS_OK) {
			auth_close(auth);
			continue;
		}
		assert_null(auth);
		assert_true(*reason);
		if (n > 0)
			continue;
		assert_int_equal(code, FS_ENOMEM);
		assert_string_equal(reason, fs_strerror(FS_ENOMEM));
	}
}

static void without_memory_the_file_is_not_read(void **state)
{
	struct conf conf;

	(void)state;
	write_file(path, "user:secret\n", 12);
	conf_init(&conf);
	conf.auth_file = path;
	expect_reasons_without_memory(&conf);
	conf.auth_file = NULL;
	conf_free(&conf);
}

static void without_memory_a_reload_keeps_the_old_entries(void **state)
{
	struct auth *auth = must_open("user:old\n");
	bool fired = true;

	(void)state;
	write_file(path, "user:new\n", 9);
	for (unsigned n = 0; fired; n++) {
		char reason[256] = "";
		int code;

		fault_arm(FAULT_memory_alloc, FAULT_AFTER, n);
		code = auth_reload(auth, reason);
		fired = fault_fired(FAULT_memory_alloc) > 0;
		fault_disarm_all();
		assert_int_equal(code == FS_OK, !fired);
		assert_int_equal(*reason != 0, fired);
		assert_int_equal(may(auth, "user", "old"), fired);
		assert_int_equal(may(auth, "user", "new"), !fired);
	}
	auth_close(auth);
}

/* ---- SASL, with a mechanism list of ours and no password database ------------------------------ */

static enum auth_sasl_result step(struct auth *auth, struct auth_sasl **sasl, const char *mechanism, const char *data,
				  size_t length)
{
	const char *challenge;
	size_t challenge_length;

	return auth_sasl_step(auth, sasl, mechanism, data, length, &challenge, &challenge_length);
}

static void without_memory_sasl_is_not_there(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf);
	conf.enable_sasl = true;
	expect_reasons_without_memory(&conf);
	conf_free(&conf);
}

static void sasl_refuses_what_is_out_of_order(void **state)
{
	char reason[256] = "";
	struct auth_sasl *sasl = NULL;
	struct auth *auth;
	struct conf conf;

	(void)state;
	conf_init(&conf);
	conf.enable_sasl = true;
	if (auth_open(&auth, &conf, reason) != FS_OK)
		fail_msg("%s", reason);
	assert_true(auth_has_sasl(auth));
	assert_false(auth_has_passwords(auth));
	assert_string_equal(auth_sasl_mechanisms(auth), "PLAIN");
	auth_sasl_free(NULL);
	assert_int_equal(step(auth, &sasl, NULL, "\0user\0secret", 12), AUTH_SASL_REFUSED);
	assert_int_equal(step(auth, &sasl, "NOSUCH", "x", 1), AUTH_SASL_REFUSED);
	assert_int_equal(step(auth, &sasl, "CRAM-MD5", "", 0), AUTH_SASL_REFUSED); /* there, but not in the list */
	assert_int_equal(step(auth, &sasl, "PLAIN", "malformed", 9), AUTH_SASL_REFUSED);
	assert_int_equal(step(auth, &sasl, "PLAIN", "\0user\0secret", 12), AUTH_SASL_REFUSED);
	assert_int_equal(step(auth, &sasl, NULL, "\0user\0secret", 12), AUTH_SASL_REFUSED);
	assert_string_equal(auth_sasl_user(sasl), "");
	assert_int_equal(step(auth, &sasl, "PLAIN", "", 0), AUTH_SASL_CONTINUE);
	assert_int_equal(step(auth, &sasl, NULL, "\0user\0secret", 12), AUTH_SASL_REFUSED);
	assert_int_equal(step(auth, &sasl, NULL, "\0user\0secret", 12), AUTH_SASL_REFUSED);
	auth_sasl_free(sasl);
	auth_close(auth);
	conf_free(&conf);
}

static int make_folder(void **state)
{
	char text[256];
	FILE *file;

	(void)state;
	if (!mkdtemp(folder))
		return -1;
	snprintf(path, sizeof(path), "%s/users", folder);
	snprintf(sasl_conf, sizeof(sasl_conf), "%s/memcached.conf", folder);
	snprintf(text, sizeof(text),
		 "mech_list: plain\npwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: %s/none\n", folder);
	file = fopen(sasl_conf, "w");
	if (!file || fputs(text, file) < 0 || fclose(file) != 0)
		return -1;
	return setenv("SASL_CONF_PATH", folder, 1);
}

static int remove_folder(void **state)
{
	(void)state;
	unlink(path);
	unlink(sasl_conf);
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(malformed_files_are_refused_by_line),
		cmocka_unit_test(a_reason_holds_no_secret),
		cmocka_unit_test(files_that_cannot_be_read),
		cmocka_unit_test(without_random_bytes_nothing_is_opened_and_the_reason_says_so),
		cmocka_unit_test(too_large_a_file_is_refused),
		cmocka_unit_test(nothing_is_opened_where_nothing_is_asked_for),
		cmocka_unit_test(only_the_right_pair_may),
		cmocka_unit_test(an_empty_password_is_taken_with_a_warning),
		cmocka_unit_test(an_empty_file_lets_nobody_in),
		cmocka_unit_test(entries_that_are_freed_are_none),
		cmocka_unit_test(a_reload_takes_all_or_nothing),
		cmocka_unit_test(checks_go_on_while_the_file_is_read),
		cmocka_unit_test(without_memory_the_file_is_not_read),
		cmocka_unit_test(without_memory_a_reload_keeps_the_old_entries),
		cmocka_unit_test(without_memory_sasl_is_not_there),
		cmocka_unit_test(sasl_refuses_what_is_out_of_order),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
