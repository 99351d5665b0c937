/* SPDX-License-Identifier: BSD-3-Clause */
/* The accounts of memory that answers take: what is given back is what was taken. One worker, which runs in the test's thread. */
#include <string.h>
#include <unistd.h>

#include "tests/unit/server/net/one_worker.h"

#define VALUE_BYTES 300000u /* more than a socket takes at once */
#define FLASH_READ_BYTES 4096u /* by which the buffer of a read is longer than the value */

static struct conn *conn;

/* ---- a worker and one connection ------------------------------------------------------------- */

static void compose(struct reply *reply)
{
	reply->text_length = (uint16_t)(memcpy(reply->text, "END\r\n", 5), 5);
}

static void abandon(struct conn *gone)
{
	assert_ptr_equal(gone, conn);
}

static const struct protocol protocol = { .name = "test", .compose = compose, .abandon = abandon };

static int set_up(void **state)
{
	(void)state;
	conn = make_worker(&transport_plain, NULL, &protocol);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (!LIST_EMPTY(&worker.conns))
		conn_kill(conn);
	worker_fini(&worker);
	close(peer);
	return 0;
}

/* Memory that clients have made the worker take, without the connection itself. */
static uint64_t client_bytes(void)
{
	return atomic_load(&worker.client_bytes) - (LIST_EMPTY(&worker.conns) ? 0 : sizeof(struct socket_conn));
}

static void assert_held(uint64_t bytes)
{
	assert_int_equal(conn->output.held, bytes);
	assert_int_equal(worker.held, bytes);
}

static void put(uint64_t bytes)
{
	for (uint64_t left = bytes; left > 0;) {
		uint32_t piece = left < CONN_ROOM_BYTES ? (uint32_t)left : CONN_ROOM_BYTES;

		memset(conn_room(conn, piece), 'x', piece);
		conn_commit(conn, piece);
		left -= piece;
	}
	assert_false(conn->failed);
}

/* The peer reads all that is ready. Returns the number of bytes. */
static uint64_t send_all(void)
{
	static char bytes[65536];
	uint64_t total = 0;
	ssize_t got;

	do {
		conn->blocked = false;
		conn_flush(conn);
		while ((got = read(peer, bytes, sizeof(bytes))) > 0)
			total += (uint64_t)got;
	} while (conn->blocked);
	assert_false(conn->failed);
	return total;
}

/* ---- buffers and replies that are kept ------------------------------------------------------- */

static void buffers_beyond_the_spare_ones_are_given_back(void **state)
{
	char *buffers[SPARE_BUFFERS + 2];

	(void)state;
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned i = 0; i < SPARE_BUFFERS + 2; i++) {
			buffers[i] = worker_buffer_take(&worker);
			assert_non_null(buffers[i]);
		}
		assert_int_equal(client_bytes(), (SPARE_BUFFERS + 2) * CONN_BUFFER_BYTES);
		for (unsigned i = 0; i < SPARE_BUFFERS + 2; i++)
			worker_buffer_give(&worker, buffers[i]);
		assert_int_equal(client_bytes(), SPARE_BUFFERS * CONN_BUFFER_BYTES);
	}
}

static void replies_beyond_the_spare_ones_are_given_back(void **state)
{
	static struct reply *replies[SPARE_REPLIES + 2];

	(void)state;
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned i = 0; i < SPARE_REPLIES + 2; i++) {
			replies[i] = conn_reply_take(conn);
			assert_non_null(replies[i]);
			replies[i]->pending = false;
		}
		assert_int_equal(client_bytes(), (SPARE_REPLIES + 2) * sizeof(struct reply));
		for (unsigned i = 0; i < SPARE_REPLIES + 2; i++)
			conn_reply_give(conn, replies[i]);
		assert_int_equal(client_bytes(), SPARE_REPLIES * sizeof(struct reply));
	}
}

/* ---- answers --------------------------------------------------------------------------------- */

/* A spare buffer stays; each larger one is freed. */
static void an_answer_of_any_length_gives_back_what_it_took(void **state)
{
	(void)state;
	for (uint64_t bytes = 1; bytes <= 64 * CONN_BUFFER_BYTES; bytes *= 2) {
		for (uint64_t length = bytes; length <= bytes + 1; length++) {
			uint64_t capacity = CONN_BUFFER_BYTES;

			while (capacity < length)
				capacity *= 2;
			put(length);
			assert_held(capacity);
			assert_int_equal(client_bytes(),
					 capacity + (capacity > CONN_BUFFER_BYTES ? CONN_BUFFER_BYTES : 0));
			assert_int_equal(send_all(), length);
			assert_held(capacity);
			conn_shrink_output(conn);
			assert_held(0);
			assert_int_equal(client_bytes(), CONN_BUFFER_BYTES);
		}
	}
}

static void answer_with_a_value(const char *key)
{
	struct reply *reply = conn_reply_take(conn);

	assert_non_null(reply);
	reply->request.op = STORE_GET;
	reply->request.key = key;
	reply->request.key_length = (uint8_t)strlen(key);
	reply->request.hash = store_hash(server.store, key, strlen(key));
	reply->request.has_options = false;
	assert_true(store_execute(worker.store, &reply->request));
	assert_int_equal(reply->request.result, STORE_HIT);
	reply->pending = reply->ordered = false;
	reply->has_value = true;
	reply->tail_length = 2;
	reply->text_length = (uint16_t)(memcpy(reply->text, "VALUE\r\n", 7), 7);
	conn_queue(conn, reply);
}

static void store_value(const char *key)
{
	enum store_result why;
	struct store_request request = { .op = STORE_SET,
					 .key = key,
					 .key_length = (uint8_t)strlen(key),
					 .hash = store_hash(server.store, key, strlen(key)),
					 .item = store_item_create(worker.store, key, strlen(key), 0, 0, VALUE_BYTES,
								   &why) };

	assert_non_null(request.item);
	memset(store_item_value(request.item), 'v', VALUE_BYTES);
	assert_true(store_execute(worker.store, &request));
	assert_int_equal(request.result, STORE_STORED);
}

static void an_answer_holds_its_value_until_all_of_it_is_sent(void **state)
{
	const uint64_t each = sizeof(struct reply) + VALUE_BYTES;
	static char bytes[VALUE_BYTES];

	(void)state;
	store_value("key");
	put(CONN_BUFFER_BYTES + 1);
	answer_with_a_value("key");
	answer_with_a_value("key");
	assert_held(2 * CONN_BUFFER_BYTES + 2 * each);
	assert_int_equal(conn->output.value_bytes, 2 * (7 + VALUE_BYTES + 2));
	conn_flush(conn);
	assert_true(conn->blocked);
	assert_held(2 * CONN_BUFFER_BYTES + 2 * each);
	for (uint64_t sent = 0; conn->output.held > 2 * CONN_BUFFER_BYTES + each; sent += VALUE_BYTES) {
		assert_true(sent < 4 * VALUE_BYTES);
		assert_true(read(peer, bytes, VALUE_BYTES) > 0);
		conn->blocked = false;
		conn_flush(conn);
	}
	assert_held(2 * CONN_BUFFER_BYTES + each);
	(void)send_all();
	assert_held(2 * CONN_BUFFER_BYTES);
	assert_int_equal(conn->output.value_bytes, 0);
	conn_shrink_output(conn);
	assert_held(0);
	assert_int_equal(client_bytes(), CONN_BUFFER_BYTES + 2 * sizeof(struct reply));
}

/* While it is pending an answer holds what a read from flash is expected to take, and then what it takes. */
static void an_answer_that_is_pending_holds_what_is_expected(void **state)
{
	struct reply *reply = conn_reply_take(conn);

	(void)state;
	assert_non_null(reply);
	reply->request.op = STORE_FLUSH; /* no key is counted */
	reply->has_value = reply->ordered = false;
	reply->text_length = 0;
	reply->pending = true;
	conn_queue(conn, reply);
	assert_int_equal(conn->pending, 1);
	assert_held(sizeof(*reply) + worker.flash_value_bytes + FLASH_READ_BYTES);
	worker.flash_value_bytes *= 2; /* others were longer meanwhile */
	reply->request.done(&reply->request);
	assert_int_equal(conn->pending, 0);
	assert_held(sizeof(*reply));
	assert_int_equal(send_all(), 5);
	assert_held(0);
	assert_int_equal(client_bytes(), sizeof(*reply));
}

static void a_connection_that_goes_gives_all_back(void **state)
{
	(void)state;
	store_value("key");
	put(5 * CONN_BUFFER_BYTES);
	answer_with_a_value("key");
	put(1);
	assert_true(worker.held > 0);
	conn_kill(conn);
	assert_int_equal(worker.held, 0);
	assert_int_equal(client_bytes(), CONN_BUFFER_BYTES + sizeof(struct reply));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(buffers_beyond_the_spare_ones_are_given_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(replies_beyond_the_spare_ones_are_given_back, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_answer_of_any_length_gives_back_what_it_took, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_answer_holds_its_value_until_all_of_it_is_sent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_answer_that_is_pending_holds_what_is_expected, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_connection_that_goes_gives_all_back, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, open_store, close_store);
}
