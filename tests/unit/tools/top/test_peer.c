/* SPDX-License-Identifier: BSD-3-Clause */
/* A server that this test plays itself, on a unix socket, in the same thread; and the clock is a number. */
#include "tests/unit/tools/top/top_test.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "tools/top/peer.h"

#define TIMEOUT_US (2 * SECOND_US)

static char folder[] = "/tmp/flashield-top-XXXXXX";
static char path[64];
static int listener, connection;
static int64_t now_us;
static struct peer peer;
static const struct access plain;

static int begin(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)state;
	strcpy(folder + strlen(folder) - 6, "XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/socket", folder);
	strcpy(address.sun_path, path);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 8), 0);
	now_us = SECOND_US;
	connection = -1;
	peer_init(&peer, &plain, path, TIMEOUT_US);
	return 0;
}

static int end(void **state)
{
	(void)state;
	peer_fini(&peer);
	if (connection >= 0)
		close(connection);
	if (listener >= 0)
		close(listener);
	unlink(path);
	rmdir(folder);
	return 0;
}

/* Lets the peer do what it can without waiting. */
static bool go_on(void)
{
	bool sample = false;

	for (int i = 0; i < 20 && !sample; i++) {
		struct pollfd pollfd = { .fd = peer_events(&peer) ? peer.client.fd : -1, .events = peer_events(&peer) };

		poll(&pollfd, 1, 0);
		sample = peer_step(&peer, pollfd.revents, now_us);
	}
	return sample;
}

static void take_questions(void)
{
	char questions[1024];
	ssize_t got = read(connection, questions, sizeof(questions) - 1);

	assert_true(got > 0);
	questions[got] = 0;
	assert_memory_equal(questions, "stats\r\n", 7);
	assert_non_null(strstr(questions, "\r\nstats latency\r\n"));
}

static void meet(void)
{
	peer_ask(&peer, now_us);
	go_on();
	connection = accept(listener, NULL, NULL);
	assert_true(connection >= 0);
	assert_int_equal(peer.state, PEER_ASKING);
	take_questions();
}

static void answer(const char *text)
{
	assert_int_equal(write(connection, text, strlen(text)), strlen(text));
}

static const char rest_refused[] = "ERROR\r\nERROR\r\nERROR\r\nERROR\r\nERROR\r\nERROR\r\nERROR\r\nERROR\r\nERROR\r\n";

static void assert_failed(const char *word)
{
	assert_int_equal(peer.state, PEER_DOWN);
	assert_non_null(strstr(peer.error, word));
	assert_int_equal(peer.client.fd, -1);
}

static void garbage_ends_the_connection(void **state)
{
	(void)state;
	meet();
	answer("HTTP/1.1 200 \x1b[2J OK\r\n");
	assert_false(go_on());
	assert_failed("no memcached server: \"HTTP/1.1 200 ?[2J OK\"");
}

static void a_line_without_end_ends_it_too(void **state)
{
	(void)state;
	meet();
	for (int i = 0; i < 30; i++)
		answer("STAT aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	assert_false(go_on());
	assert_failed("a line of more than");
}

static void a_long_line_with_an_end_as_well(void **state)
{
	(void)state;
	meet();
	answer("STAT a ");
	for (int i = 0; i < 60; i++)
		answer("0123456789012345678901234567890123456789");
	answer("\r\nEND\r\n");
	assert_false(go_on());
	assert_failed("a line of more than");
}

static void a_report_without_end_is_bounded(void **state)
{
	(void)state;
	meet();
	for (unsigned i = 0; i <= ANSWER_ROWS && peer.state == PEER_ASKING; i++) {
		answer("STAT a 1\r\n");
		if (i % 100 == 0)
			assert_false(go_on());
	}
	assert_false(go_on());
	assert_failed("a report of more than");
}

static void more_than_was_asked_for_is_no_answer(void **state)
{
	(void)state;
	meet();
	answer("STAT pid 3\r\nEND\r\n");
	answer(rest_refused);
	answer("END\r\n");
	assert_false(go_on());
	assert_failed("more answers");
}

static void a_refused_first_report_tells_why(void **state)
{
	(void)state;
	meet();
	answer("CLIENT_ERROR unauthenticated\r\n");
	assert_false(go_on());
	assert_failed("CLIENT_ERROR unauthenticated");
}

static void silence_ends_at_the_deadline_even_if_bytes_drip(void **state)
{
	(void)state;
	meet();
	now_us += TIMEOUT_US - 1;
	answer("STAT pid 3\r\n");
	assert_false(go_on());
	assert_int_equal(peer.state, PEER_ASKING);
	now_us += 1;
	answer("STAT pid 3\r\n");
	assert_false(go_on());
	assert_failed("no answer within");
}

static void waits_grow_and_have_an_end(void **state)
{
	static const int64_t waits_us[] = { 500000, 1000000, 2000000, 4000000, 8000000, 8000000 };

	(void)state;
	close(listener);
	listener = -1;
	for (size_t i = 0; i < sizeof(waits_us) / sizeof(waits_us[0]); i++) {
		peer_ask(&peer, now_us);
		go_on();
		assert_failed(strerror(ECONNREFUSED));
		assert_int_equal(peer_due_us(&peer), now_us + waits_us[i]);
		peer_ask(&peer, now_us); /* asks as often as it likes: the wait stays */
		assert_int_equal(peer.failures, i + 1);
		now_us = peer_due_us(&peer);
	}
}

static void a_server_that_comes_back_is_asked_at_once(void **state)
{
	(void)state;
	meet();
	close(connection);
	go_on();
	assert_failed("closed the connection");
	now_us = peer_due_us(&peer);
	go_on();
	connection = accept(listener, NULL, NULL);
	assert_int_equal(peer.state, PEER_ASKING);
	answer("STAT pid 3\r\nEND\r\n");
	answer(rest_refused);
	assert_true(go_on());
	assert_int_equal(peer.failures, 0);
	assert_string_equal(peer.error, "");
}

static void an_idle_connection_that_was_closed_is_opened_anew(void **state)
{
	(void)state;
	meet();
	answer("STAT pid 3\r\nEND\r\n");
	answer(rest_refused);
	assert_true(go_on());
	close(connection);
	connection = -1;
	peer_ask(&peer, now_us);
	assert_false(go_on());
	assert_int_equal(peer.state, PEER_ASKING);
	assert_int_equal(peer.failures, 0);
	connection = accept(listener, NULL, NULL);
	answer("STAT pid 4\r\nEND\r\n");
	answer(rest_refused);
	assert_true(go_on());
	assert_number(peer.sample.value[FIELD_pid], 4);
}

static void answers_in_pieces_make_one_sample(void **state)
{
	static const char whole[] =
		"STAT pid 3\r\nSTAT version 1.6.18\r\nEND\r\nSTAT flash_hits 5\r\nEND\r\n"
		"STAT reason as good as it gets\r\nEND\r\nSTAT a:get_count 6\r\nEND\r\nERROR\r\nEND\r\n"
		"STAT bytes:1m:1 key=k bytes=9\r\nEND\r\nSTAT 1 cmd=get\r\nEND\r\n"
		"STAT shop:dram:objects 8\r\nEND\r\nSTAT applications 1\r\nSTAT shop:dram_floor 9\r\nEND\r\n";

	(void)state;
	meet();
	for (size_t i = 0; i < sizeof(whole) - 1; i++) {
		assert_int_equal(write(connection, whole + i, 1), 1);
		assert_int_equal(go_on(), i == sizeof(whole) - 2);
	}
	assert_number(peer.sample.value[FIELD_flash_hits], 5);
	assert_string_equal(peer.sample.version, "1.6.18");
	assert_string_equal(peer.sample.reason, "as good as it gets");
	assert_number(peer.sample.apps[0].count[APP_GETS], 6);
	assert_string_equal(peer.sample.hot[HOT_BYTES][HOT_MINUTE].key[0].name, "k");
	assert_number(peer.sample.contents[0].amount[TIER_DRAM][CONTENT_OBJECTS], 8);
	assert_number(peer.sample.limited[0].amount[LIMIT_DRAM_FLOOR], 9);
	assert_false(peer.sample.has[REPORT_LATENCY]);
	assert_int_equal(peer.sample.at_us, now_us);
	assert_int_equal(peer.state, PEER_IDLE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(garbage_ends_the_connection),
		TEST(a_line_without_end_ends_it_too),
		TEST(a_long_line_with_an_end_as_well),
		TEST(a_report_without_end_is_bounded),
		TEST(more_than_was_asked_for_is_no_answer),
		TEST(a_refused_first_report_tells_why),
		TEST(silence_ends_at_the_deadline_even_if_bytes_drip),
		TEST(waits_grow_and_have_an_end),
		TEST(a_server_that_comes_back_is_asked_at_once),
		TEST(an_idle_connection_that_was_closed_is_opened_anew),
		TEST(answers_in_pieces_make_one_sample),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
