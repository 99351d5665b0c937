/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to commands and answers to counts, without a server: the test is the server. */
#include "tests/unit/tools/tools_test.h"

#include <sys/socket.h>

#include "tools/common/value.h"
#include "tools/replay/play.h"

static struct spool_app app = { .name = "3", .number = 3 };
static struct spool spool = { .apps = &app, .app_count = 1, .keys = 10 };
static struct replay_options options;
static struct player player;
static struct conn conn;
static uint32_t keys[10];
static int peer;

static int set_up(void **state)
{
	struct client client;
	int ends[2];

	(void)state;
	value_init();
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	options = (struct replay_options){ .copies = 1, .depth = 8, .check_values = true };
	memset(keys, 0, sizeof(keys));
	player = (struct player){ .options = &options, .spool = &spool, .keys = keys };
	measure_init(&player.measure, 1);
	client = (struct client){ .fd = ends[0], .state = CLIENT_READY };
	conn_init(&conn, &client, options.depth);
	peer = ends[1];
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	conn_fini(&conn);
	close(peer);
	measure_fini(&player.measure);
	return 0;
}

static void request(enum trace_op op, uint32_t key, uint32_t value_size)
{
	struct spool_record record = { .key = key, .value_size = value_size, .op = (uint8_t)op, .key_size = 8 };
	struct schedule_item item = { .record = &record };

	play_request(&player, &conn, &item, true);
}

static int answer(const void *bytes, size_t length)
{
	int code;

	memcpy(buffer_reserve(&conn.in, length), bytes, length);
	conn.in.end += length;
	code = play_answers(&player, &conn);
	if (code == FS_OK)
		play_backlog(&player, &conn);
	return code;
}

static int answer_text(const char *text)
{
	return answer(text, strlen(text));
}

static int answer_value(uint32_t key, uint32_t version, uint32_t size)
{
	char text[KEY_MAX_BYTES], bytes[1000];
	size_t length = trace_key_write(text, 3, key, 8);
	int used = sprintf(bytes, "VALUE %.*s 0 %u\r\n", (int)length, text, size);

	value_write(bytes + used, size, trace_key_hash(text, length), version);
	memcpy(bytes + used + size, "\r\nEND\r\n", 7);
	return answer(bytes, (size_t)used + size + 7);
}

/* What was put out since the last call, as text. */
static const char *sent(void)
{
	static char text[4096];

	snprintf(text, sizeof(text), "%.*s", (int)(conn.out.end - conn.out.start), conn.out.bytes + conn.out.start);
	conn.out.start = conn.out.end = 0;
	return text;
}

static void what_is_no_answer_is_an_error(void **state)
{
	(void)state;
	assert_int_equal(answer_text("END\r\n"), FS_EINVAL); /* to no request */
	conn.in.start = conn.in.end = 0;
	request(TRACE_GET, 1, 20);
	assert_int_equal(answer_text("STORED\r\n"), FS_EINVAL);
	assert_non_null(strstr(player.error, "STORED"));
	conn.in.start = conn.in.end = 0;
	assert_int_equal(answer_text("VALUE app3:1-- 0 x\r\n"), FS_EINVAL);
	conn.in.start = conn.in.end = 0;
	assert_int_equal(answer_text("VALUE app3:1-- 0 2\r\nabEND\r\n   "), FS_EINVAL);
}

static void an_older_value_is_caught(void **state)
{
	(void)state;
	request(TRACE_SET, 1, 20);
	request(TRACE_SET, 1, 20);
	request(TRACE_GET, 1, 20);
	assert_int_equal(answer_text("STORED\r\nSTORED\r\n"), FS_OK);
	assert_int_equal(answer_value(1, 1, 20), FS_OK);
	assert_int_equal(player.measure.older, 1);
	assert_int_equal(player.measure.wrong, 0);
}

static void a_value_after_its_delete_is_caught(void **state)
{
	(void)state;
	request(TRACE_SET, 1, 20);
	request(TRACE_DELETE, 1, 0);
	request(TRACE_GET, 1, 20);
	assert_int_equal(answer_text("STORED\r\nDELETED\r\n"), FS_OK);
	assert_int_equal(answer_value(1, 1, 20), FS_OK);
	assert_int_equal(player.measure.older, 1);
}

static void another_keys_value_is_caught(void **state)
{
	(void)state;
	request(TRACE_GET, 1, 20);
	assert_int_equal(answer_value(2, 1, 20), FS_OK);
	assert_int_equal(player.measure.wrong, 1);
}

static void a_miss_is_filled_once_and_others_wait_for_it(void **state)
{
	(void)state;
	request(TRACE_GET, 1, 20);
	request(TRACE_GET, 1, 20);
	request(TRACE_GET, 2, 20);
	assert_string_equal(sent(), "get app3:1--\r\nget app3:2--\r\n");
	assert_int_equal(answer_text("END\r\n"), FS_OK);
	assert_memory_equal(sent(), "set app3:1-- 0 0 20\r\n", 21);
	assert_int_equal(conn_backlog(&conn), 0);
	assert_int_equal(answer_text("END\r\nSTORED\r\n"), FS_OK);
	assert_int_equal(answer_value(1, 1, 20), FS_OK);
	assert_int_equal(player.measure.checked, 1);
	assert_int_equal(player.measure.all.gets, 3);
	assert_int_equal(player.measure.all.hits, 1);
	assert_int_equal(player.measure.fills, 1);
}

static void literal_fills_nothing(void **state)
{
	(void)state;
	options.mode = MODE_LITERAL;
	request(TRACE_GET, 1, 20);
	request(TRACE_GET, 1, 20);
	assert_string_equal(sent(), "get app3:1--\r\nget app3:1--\r\n");
	assert_int_equal(answer_text("END\r\nEND\r\n"), FS_OK);
	assert_string_equal(sent(), "");
	assert_int_equal(player.measure.all.hits, 0);
}

static void a_get_of_unknown_size_is_not_filled(void **state)
{
	(void)state;
	request(TRACE_GET, 1, SPOOL_UNKNOWN_SIZE);
	(void)sent();
	assert_int_equal(answer_text("END\r\n"), FS_OK);
	assert_string_equal(sent(), "");
}

static void too_large_is_counted_and_goes_on(void **state)
{
	(void)state;
	request(TRACE_SET, 1, 20);
	request(TRACE_SET, 2, 20);
	request(TRACE_SET, 3, 20);
	assert_int_equal(answer_text("SERVER_ERROR object too large for cache\r\n"
				     "SERVER_ERROR out of memory storing object\r\nERROR\r\n"),
			 FS_OK);
	assert_int_equal(player.measure.too_large, 1);
	assert_int_equal(player.measure.out_of_memory, 1);
	assert_int_equal(player.measure.client_errors, 1);
}

static void an_add_of_a_present_key_changes_nothing(void **state)
{
	(void)state;
	request(TRACE_SET, 1, 20);
	request(TRACE_ADD, 1, 20);
	request(TRACE_GET, 1, 20);
	assert_int_equal(answer_text("STORED\r\nNOT_STORED\r\n"), FS_OK);
	assert_int_equal(answer_value(1, 1, 20), FS_OK);
	assert_int_equal(player.measure.checked, 1);
	assert_int_equal(player.measure.not_stored, 1);
}

static void answers_may_come_byte_by_byte(void **state)
{
	static const char text[] = "STORED\r\nEND\r\n";

	(void)state;
	options.mode = MODE_LITERAL;
	request(TRACE_SET, 1, 20);
	request(TRACE_GET, 2, 20);
	for (size_t i = 0; i < strlen(text); i++)
		assert_int_equal(answer(text + i, 1), FS_OK);
	assert_int_equal(player.answered, 2);
}

int main(void)
{
#define PLAY_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		PLAY_TEST(what_is_no_answer_is_an_error),
		PLAY_TEST(an_older_value_is_caught),
		PLAY_TEST(a_value_after_its_delete_is_caught),
		PLAY_TEST(another_keys_value_is_caught),
		PLAY_TEST(a_miss_is_filled_once_and_others_wait_for_it),
		PLAY_TEST(literal_fills_nothing),
		PLAY_TEST(a_get_of_unknown_size_is_not_filled),
		PLAY_TEST(too_large_is_counted_and_goes_on),
		PLAY_TEST(an_add_of_a_present_key_changes_nothing),
		PLAY_TEST(answers_may_come_byte_by_byte),
	};

	return cmocka_run_group_tests_name("play", tests, NULL, NULL);
}
