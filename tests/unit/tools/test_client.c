/* SPDX-License-Identifier: BSD-3-Clause */
/* Logging in, without TLS: the test is the server, at the other end of a pair of sockets. */
#include "tests/unit/tools/tools_test.h"

#include <poll.h>
#include <sys/socket.h>

#include "tools/common/client.h"

static struct access access_;
static struct client client;
static int peer;

static int set_up(void **state)
{
	int ends[2];

	(void)state;
	access_ = (struct access){ .login = "set login 0 0 11\r\nuser secret\r\n" };
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	peer = ends[1];
	assert_int_equal(client_start(&client, &access_, ends[0], NULL), FS_OK);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	client_close(&client);
	assert_int_equal(client.fd, -1);
	if (peer >= 0)
		close(peer);
	return 0;
}

static void says(const char *text)
{
	assert_int_equal(write(peer, text, strlen(text)), strlen(text));
}

static void assert_got(const char *text)
{
	char got[256] = "";

	assert_int_equal(read(peer, got, sizeof(got) - 1), strlen(text));
	assert_string_equal(got, text);
}

static void begin(void)
{
	assert_int_equal(client_proceed(&client), FS_EAGAIN);
	assert_int_equal(client.wants, POLLIN);
	assert_got("version\r\n");
}

static void a_server_that_closes_is_told(void **state)
{
	(void)state;
	begin();
	close(peer);
	peer = -1;
	assert_int_equal(client_proceed(&client), FS_ESYS);
	assert_string_equal(client_why(&client), "closed the connection");
}

static void a_line_without_end_is_no_answer(void **state)
{
	(void)state;
	begin();
	for (int i = 0; i < CLIENT_ERROR_BYTES / 4; i++)
		says("long");
	assert_int_equal(client_proceed(&client), FS_EINVAL);
	assert_string_equal(client_why(&client), "does not answer as a memcached server");
}

static void a_refusal_is_repeated_without_what_cannot_be_printed(void **state)
{
	(void)state;
	begin();
	says("CLIENT_ERROR unauthenticated\r\n");
	assert_int_equal(client_proceed(&client), FS_EAGAIN);
	assert_got(access_.login);
	says("CLIENT_ERROR authentication\x1b[2J failure\r\n");
	assert_int_equal(client_proceed(&client), FS_EINVAL);
	assert_string_equal(client_why(&client), "CLIENT_ERROR authentication?[2J failure");
}

static void no_password_goes_where_none_is_wanted(void **state)
{
	static const char *const answers[] = { "VERSION 1.6.45\r\n", "ERROR\n",
					       "CLIENT_ERROR unauthenticated perhaps\r\n" };

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		char byte;

		begin();
		says(answers[i]);
		assert_int_equal(client_proceed(&client), FS_OK);
		assert_int_equal(client.state, CLIENT_READY);
		assert_int_equal(read(peer, &byte, 1), -1);
		tear_down(state);
		set_up(state);
	}
}

/* Byte by byte, and what follows the answer stays in the socket. */
static void a_login_is_ready_behind_its_answer(void **state)
{
	static const char first[] = "CLIENT_ERROR unauthenticated\r\n";
	char rest[8];

	(void)state;
	begin();
	for (const char *at = first; *at; at++) {
		assert_int_equal(write(peer, at, 1), 1);
		assert_int_equal(client_proceed(&client), FS_EAGAIN);
	}
	assert_got(access_.login);
	says("STORED\r\nrest");
	assert_int_equal(client_proceed(&client), FS_OK);
	assert_int_equal(client.state, CLIENT_READY);
	assert_int_equal(client_receive(&client, rest, sizeof(rest)), 4);
	assert_memory_equal(rest, "rest", 4);
	assert_false(client_has_more(&client));
}

static void without_a_user_nothing_is_sent(void **state)
{
	int fd = dup(client.fd);
	char byte;

	(void)state;
	client_close(&client);
	access_.login[0] = 0;
	assert_int_equal(client_start(&client, &access_, fd, NULL), FS_OK);
	assert_int_equal(client_proceed(&client), FS_OK);
	assert_int_equal(read(peer, &byte, 1), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_server_that_closes_is_told, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_line_without_end_is_no_answer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_refusal_is_repeated_without_what_cannot_be_printed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(no_password_goes_where_none_is_wanted, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_login_is_ready_behind_its_answer, set_up, tear_down),
		cmocka_unit_test_setup_teardown(without_a_user_nothing_is_sent, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
