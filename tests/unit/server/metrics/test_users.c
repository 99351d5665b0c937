/* SPDX-License-Identifier: BSD-3-Clause */
/* Users of the metrics endpoint: what is no line of the file, who is let in, and how often bcrypt runs for it. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/rng.h"
#include "server/metrics/users_internal.h"

/* Of the least cost. */
#define OF_SECRET "$2b$04$I1Ek.FiLHV0wkq04yGFGoexbeKRjmTWB2an0Wt6tCSOfoPU1Zk2Jy"
#define OF_OTHER "$2b$04$0NSqERGTQnqX3aG1SEExRe85SG4EavW5P3pu6m7X/j6m6N5sD17Ba"
#define SECOND_US 1000000u

static char path[] = "/tmp/flashield-users-XXXXXX";
static struct clk clock_now;

/* In place of the function of libcrypto: the random bytes of the kernel, or none. */
static bool without_random_bytes;

int RAND_bytes(unsigned char *bytes, int count);
int RAND_bytes(unsigned char *bytes, int count)
{
	if (!without_random_bytes)
		rng_secret(bytes, (size_t)count);
	return without_random_bytes ? 0 : 1;
}

static void write_users(const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static struct users *opened(const char *text, const struct clk *clock)
{
	char reason[256] = "";
	struct users *users;

	write_users(text);
	if (users_open(&users, path, clock, reason) != FS_OK)
		fail_msg("%s", reason);
	return users;
}

static int begin(void **state)
{
	clk_scripted_init(&clock_now, 5 * SECOND_US);
	*state = opened("prom:" OF_SECRET "\nadmin:" OF_OTHER "\n", &clock_now);
	return 0;
}

static int end(void **state)
{
	users_close(*state);
	return 0;
}

static enum users_check ask_from(struct users *users, const char *address, const char *name, const char *password)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };
	struct sockaddr_in four = { .sin_family = AF_INET };

	if (inet_pton(AF_INET, address, &four.sin_addr) == 1)
		return users_check(users, name, password, (struct sockaddr *)&four);
	assert_int_equal(inet_pton(AF_INET6, address, &six.sin6_addr), 1);
	return users_check(users, name, password, (struct sockaddr *)&six);
}

/* From an address that has not been refused before. */
static enum users_check ask(struct users *users, const char *name, const char *password)
{
	static unsigned host;
	char address[32];

	snprintf(address, sizeof(address), "10.0.%u.%u", host / 250, host % 250 + 1);
	host++;
	return ask_from(users, address, name, password);
}

/* ---- the file */

static void what_is_no_line_is_refused_with_its_number(void **state)
{
#define NO_HASH "the password is not a bcrypt hash, as \"htpasswd -nB NAME\" makes one"
#define NO_LINE "the line is not \"name:hash\", with a name of 1 to 255 bytes"
	static const struct {
		const char *text, *line, *why;
	} cases[] = {
		{ "prom", "1", NO_LINE },
		{ ":" OF_SECRET, "1", NO_LINE },
		{ "prom:", "1", NO_HASH },
		{ "prom:secret", "1", NO_HASH },
		{ "a:" OF_SECRET "\n# no user\n\nprom:secret\n", "4", NO_HASH },
		{ "prom:" OF_SECRET "x", "1", NO_HASH },
		{ "prom:" OF_SECRET " ", "1", NO_HASH },
		{ "prom:$2x$04$I1Ek.FiLHV0wkq04yGFGoexbeKRjmTWB2an0Wt6tCSOfoPU1Zk2Jy", "1", NO_HASH },
		{ "prom:$2b$4.$I1Ek.FiLHV0wkq04yGFGoexbeKRjmTWB2an0Wt6tCSOfoPU1Zk2Jy", "1", NO_HASH },
		{ "prom:$2b$04$I1Ek.FiLHV0wkq04yGFGoexbeKRjmTWB2an0Wt6tCSOfoPU1Zk2J!", "1", NO_HASH },
		{ "prom:$apr1$I1Ek.FiL$abcdefghijklmnopqrstuv", "1", NO_HASH },
		{ "prom:$2b$03$I1Ek.FiLHV0wkq04yGFGoexbeKRjmTWB2an0Wt6tCSOfoPU1Zk2Jy", "1",
		  "the cost of the hash is 3, and not from 4 to 14" },
		{ "prom:$2b$15$I1Ek.FiLHV0wkq04yGFGoexbeKRjmTWB2an0Wt6tCSOfoPU1Zk2Jy", "1",
		  "the cost of the hash is 15, and not from 4 to 14" },
		{ "prom:" OF_SECRET "\nprom:" OF_OTHER "\n", "2", "the name is there a second time" },
	};
	char reason[256], expected[256], name[400];
	struct users_list list;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(users_text_read("FILE", cases[i].text, strlen(cases[i].text), &list, reason),
				 FS_EINVAL);
		assert_null(list.user);
		snprintf(expected, sizeof(expected), "--metrics-auth-file: FILE:%s: %s", cases[i].line, cases[i].why);
		assert_string_equal(reason, expected);
		assert_null(strstr(reason, "secret"));
	}
	memset(name, 'n', 256);
	snprintf(name + 256, sizeof(name) - 256, ":" OF_SECRET);
	assert_int_equal(users_text_read("FILE", name, strlen(name), &list, reason), FS_EINVAL);
	assert_int_equal(users_text_read("FILE", "a\0:b", 4, &list, reason), FS_EINVAL);
	assert_string_equal(reason, "--metrics-auth-file: FILE:1: the line has a byte 0");
	assert_int_equal(users_text_read("FILE", "#\n\n", 3, &list, reason), FS_EINVAL);
	assert_string_equal(reason, "--metrics-auth-file: FILE: there is no user in it");
}

static void a_file_that_can_not_be_read_is_told(void **state)
{
	char reason[256] = "";
	struct users *users;

	(void)state;
	clk_scripted_init(&clock_now, 0);
	assert_int_equal(users_open(&users, "/nonexistent/users", &clock_now, reason), FS_EINVAL);
	assert_null(users);
	assert_string_equal(reason, "--metrics-auth-file: /nonexistent/users: No such file or directory");
	assert_int_equal(users_open(&users, "/dev/zero", &clock_now, reason), FS_EINVAL);
	assert_string_equal(reason, "--metrics-auth-file: /dev/zero: File too large");
}

static void without_random_bytes_nothing_is_opened_and_the_reason_says_so(void **state)
{
	char reason[256] = "";
	struct users *users;
	int code;

	(void)state;
	write_users("prom:" OF_SECRET "\n");
	without_random_bytes = true;
	code = users_open(&users, path, &clock_now, reason);
	without_random_bytes = false;
	assert_int_equal(code, FS_ESYS);
	assert_null(users);
	assert_memory_equal(reason, "--metrics-auth-file: ", strlen("--metrics-auth-file: "));
	assert_non_null(strstr(reason, "no random bytes"));
}

static void lines_may_end_as_elsewhere(void **state)
{
	static const char text[] = "# made by htpasswd\r\n\r\na:" OF_SECRET "\r\nb:" OF_OTHER;
	char reason[256] = "";
	struct users_list list;

	(void)state;
	assert_int_equal(users_text_read("FILE", text, strlen(text), &list, reason), FS_OK);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.user[0].name, "a");
	assert_string_equal(list.user[0].hash, OF_SECRET);
	assert_string_equal(list.user[1].hash, OF_OTHER);
	users_list_free(&list);
}

/* ---- who is let in */

static void nobody_else_is_let_in(void **state)
{
	struct users *users = *state;

	assert_int_equal(ask(users, "prom", "other"), USERS_WRONG);
	assert_int_equal(ask(users, "admin", "secret"), USERS_WRONG);
	assert_int_equal(ask(users, "prom", ""), USERS_WRONG);
	assert_int_equal(ask(users, "prom", "secret "), USERS_WRONG);
	assert_int_equal(ask(users, "prom", OF_SECRET), USERS_WRONG);
	/* The first user's hash is checked in vain, also with its own password. */
	assert_int_equal(ask(users, "nobody", "secret"), USERS_WRONG);
	assert_int_equal(ask(users, "", "secret"), USERS_WRONG);
	assert_int_equal(users_bcrypt_runs(users), 7);
}

static void bcrypt_runs_once_for_what_is_asked_again(void **state)
{
	struct users *users = *state;

	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(ask(users, "prom", "secret"), USERS_RIGHT);
		assert_int_equal(ask(users, "admin", "other"), USERS_RIGHT);
		assert_int_equal(ask(users, "admin", "old"), USERS_WRONG);
		assert_int_equal(users_bcrypt_runs(users), 3);
	}
	/* What the first user may is remembered for that name alone. */
	assert_int_equal(ask(users, "none", "secret"), USERS_WRONG);
	assert_int_equal(ask(users, "", "secret"), USERS_WRONG);
	/* Name and password are told apart: "ab" and "c" are not "a" and "bc". */
	assert_int_equal(ask(users, "pro", "msecret"), USERS_WRONG);
}

static void guesses_push_no_right_password_out(void **state)
{
	struct users *users = *state;
	char guess[16];

	assert_int_equal(ask(users, "prom", "secret"), USERS_RIGHT);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(guess, sizeof(guess), "%u", i);
		assert_int_equal(ask(users, "prom", guess), USERS_WRONG);
	}
	assert_int_equal(users_bcrypt_runs(users), 101);
	assert_int_equal(ask(users, "prom", "secret"), USERS_RIGHT);
	assert_int_equal(users_bcrypt_runs(users), 101);
}

static void who_guesses_waits_a_second(void **state)
{
	struct users *users = *state;

	assert_int_equal(ask_from(users, "192.0.2.1", "prom", "1"), USERS_WRONG);
	assert_int_equal(ask_from(users, "192.0.2.1", "prom", "2"), USERS_LATER);
	assert_int_equal(ask_from(users, "::ffff:192.0.2.1", "prom", "secret"), USERS_LATER);
	assert_int_equal(ask_from(users, "192.0.2.1", "prom", "1"), USERS_WRONG); /* remembered */
	assert_int_equal(ask_from(users, "192.0.2.2", "prom", "secret"), USERS_RIGHT);
	assert_int_equal(ask_from(users, "192.0.2.1", "prom", "secret"), USERS_RIGHT); /* so is this now */
	assert_int_equal(ask_from(users, "192.0.2.1", "admin", "other"), USERS_LATER);
	clk_scripted_advance(&clock_now, SECOND_US - 1);
	assert_int_equal(ask_from(users, "192.0.2.1", "admin", "other"), USERS_LATER);
	clk_scripted_advance(&clock_now, 1);
	assert_int_equal(ask_from(users, "192.0.2.1", "admin", "other"), USERS_RIGHT);
	assert_int_equal(users_bcrypt_runs(users), 3);
}

/* A network has 2^64 addresses. */
static void addresses_of_a_network_are_one(void **state)
{
	struct users *users = *state;

	assert_int_equal(ask_from(users, "2001:db8::1", "prom", "1"), USERS_WRONG);
	assert_int_equal(ask_from(users, "2001:db8::ffff:2", "prom", "2"), USERS_LATER);
	assert_int_equal(ask_from(users, "2001:db8:0:1::1", "prom", "2"), USERS_WRONG);
}

/* A clock that goes on by 10 ms at each look, so that a check takes so long. */
static uint64_t ticking(const struct clk *clk)
{
	struct clk *own = (struct clk *)(uintptr_t)clk;

	return atomic_fetch_add(&own->scripted_us, 10000) * 1000;
}

static void checks_take_a_part_of_the_time(void **state)
{
	struct clk ticks = { .now_ns = ticking };
	struct users *users;
	unsigned looked = 0;
	char guess[16];

	(void)state;
	atomic_init(&ticks.scripted_us, 1000000);
	users = opened("prom:" OF_SECRET "\n", &ticks);
	/* A guess that isn't checked looks once at the clock, one that is checked twice. */
	for (; atomic_load(&ticks.scripted_us) < 3000000; looked++) {
		snprintf(guess, sizeof(guess), "%u", looked);
		(void)!ask(users, "prom", guess);
	}
	/* Of 10 ms each in 2 s: 1 s in hand, and a quarter of the time. */
	assert_in_range(users_bcrypt_runs(users), 100, 150);
	for (; atomic_load(&ticks.scripted_us) < 103000000; looked++) {
		snprintf(guess, sizeof(guess), "%u", looked);
		(void)!ask(users, "prom", guess);
	}
	assert_in_range(users_bcrypt_runs(users), 2500, 2700); /* 25 s in 102 s, beside the first one */
	users_close(users);
}

/* ---- reload */

static void a_reload_forgets_who_is_no_user_any_more(void **state)
{
	struct users *users = *state;
	char reason[256] = "";

	assert_int_equal(ask(users, "prom", "secret"), USERS_RIGHT);
	write_users("prom:plain\n");
	assert_int_equal(users_reload(users, reason), FS_EINVAL);
	assert_int_equal(ask(users, "prom", "secret"), USERS_RIGHT);
	write_users("prom:" OF_OTHER "\n");
	assert_int_equal(users_reload(users, reason), FS_OK);
	assert_int_equal(ask(users, "prom", "secret"), USERS_WRONG);
	assert_int_equal(ask(users, "prom", "other"), USERS_RIGHT);
	assert_int_equal(ask(users, "admin", "other"), USERS_WRONG);
}

static int make_path(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd >= 0 ? close(fd) : -1;
}

static int remove_path(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_line_is_refused_with_its_number),
		cmocka_unit_test(a_file_that_can_not_be_read_is_told),
		cmocka_unit_test(without_random_bytes_nothing_is_opened_and_the_reason_says_so),
		cmocka_unit_test(lines_may_end_as_elsewhere),
		cmocka_unit_test_setup_teardown(nobody_else_is_let_in, begin, end),
		cmocka_unit_test_setup_teardown(bcrypt_runs_once_for_what_is_asked_again, begin, end),
		cmocka_unit_test_setup_teardown(guesses_push_no_right_password_out, begin, end),
		cmocka_unit_test_setup_teardown(who_guesses_waits_a_second, begin, end),
		cmocka_unit_test_setup_teardown(addresses_of_a_network_are_one, begin, end),
		cmocka_unit_test(checks_take_a_part_of_the_time),
		cmocka_unit_test_setup_teardown(a_reload_forgets_who_is_no_user_any_more, begin, end),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
