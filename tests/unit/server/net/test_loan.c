/* SPDX-License-Identifier: BSD-3-Clause */
/* Loans: a small protocol that lends its connection at each 'l', echoes what else it reads, and closes at 'q'. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/unit/server/net/one_worker.h"

#define PATIENCE_MS 120000
#define LENT_BYTES (8u << 20) /* more than sockets hold */

/* ---- the protocol ---------------------------------------------------------------------------- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct loan *loan;
	unsigned taken, forgotten, refused;
} borrower = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void take(void *context, struct loan *loan)
{
	assert_ptr_equal(context, &borrower);
	pthread_mutex_lock(&borrower.lock);
	borrower.loan = loan;
	borrower.taken += loan != NULL;
	borrower.forgotten += loan == NULL;
	pthread_cond_broadcast(&borrower.changed);
	pthread_mutex_unlock(&borrower.lock);
}

static enum conn_verdict lender_input(struct conn *conn)
{
	struct input *input = &conn->input;

	while (input->start < input->end) {
		char letter = input->bytes[input->start++];

		if (letter == 'q')
			return CONN_CLOSE;
		if (letter == 'l' && conn_lend(conn, take, &borrower))
			return CONN_LEND;
		if (letter == 'B') { /* much before a loan */
			for (unsigned i = 0; i < LENT_BYTES / CONN_ROOM_BYTES; i++)
				conn_commit(conn, (memset(conn_room(conn, CONN_ROOM_BYTES), 'b', CONN_ROOM_BYTES),
						   CONN_ROOM_BYTES));
			continue;
		}
		borrower.refused += letter == 'l';
		conn_put(conn, &letter, 1);
	}
	return CONN_MORE;
}

static unsigned lender_foresee(const struct conn *conn, struct foreseen *out, unsigned most)
{
	(void)conn;
	(void)out;
	(void)most;
	return 0;
}

static void lender_abandon(struct conn *conn)
{
	(void)conn;
}

static const struct protocol lender = {
	.name = "lender", .input = lender_input, .foresee = lender_foresee, .abandon = lender_abandon
};

/* ---- a worker and one connection ------------------------------------------------------------- */

static ssize_t datagram_receive(struct socket_conn *sock, const struct iovec *pieces, unsigned count, bool *more)
{
	(void)count;
	*more = sock->transport_data != NULL;
	if (!*more)
		return 0;
	((char *)pieces[0].iov_base)[0] = 'l';
	sock->transport_data = NULL;
	return 1;
}

static ssize_t datagram_send(struct socket_conn *sock, const struct iovec *pieces, unsigned count)
{
	return count == 1 ? send(sock->fd, pieces->iov_base, pieces->iov_len, MSG_NOSIGNAL) : -1;
}

static void datagram_close(struct socket_conn *sock)
{
	close(sock->fd);
}

static const struct transport datagram = {
	.receive = datagram_receive, .send = datagram_send, .close = datagram_close, .datagram = true
};

static int set_up_with(const struct transport *transport)
{
	borrower.loan = NULL;
	borrower.taken = borrower.forgotten = borrower.refused = 0;
	(void)make_worker(transport, &borrower, &lender);
	assert_int_equal(worker_start(&worker), FS_OK);
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	return set_up_with(&transport_plain);
}

static int tear_down(void **state)
{
	(void)state;
	worker_stop(&worker);
	assert_true(LIST_EMPTY(&worker.conns));
	assert_int_equal(atomic_load(&net.connections), 0);
	worker_fini(&worker);
	if (peer >= 0)
		close(peer);
	peer = -1;
	return 0;
}

/* ---- the peer's side ------------------------------------------------------------------------- */

static void write_all(const char *bytes)
{
	assert_int_equal(send(peer, bytes, strlen(bytes), MSG_NOSIGNAL), strlen(bytes));
}

/* So many bytes, or fewer at the end. */
static size_t read_bytes(char *out, size_t wanted)
{
	size_t got = 0;

	while (got < wanted) {
		struct pollfd fd = { .fd = peer, .events = POLLIN };
		ssize_t n;

		assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
		n = read(peer, out + got, wanted - got);
		if (n < 0 && errno == ECONNRESET)
			n = 0; /* it had not read all of ours */
		assert_true(n >= 0);
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return got;
}

static void expect(const char *text)
{
	char got[64];

	assert_int_equal(read_bytes(got, strlen(text)), strlen(text));
	assert_memory_equal(got, text, strlen(text));
}

static void expect_end(void)
{
	char byte;

	assert_int_equal(read_bytes(&byte, 1), 0);
}

static void wait_until(const unsigned *what)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PATIENCE_MS / 1000;
	pthread_mutex_lock(&borrower.lock);
	while (*what == 0)
		assert_int_equal(pthread_cond_timedwait(&borrower.changed, &borrower.lock, &end), 0);
	pthread_mutex_unlock(&borrower.lock);
}

static struct loan *borrow(void)
{
	struct loan *loan;

	wait_until(&borrower.taken);
	pthread_mutex_lock(&borrower.lock);
	loan = borrower.loan;
	borrower.taken = 0;
	pthread_mutex_unlock(&borrower.lock);
	return loan;
}

static void lend_all(struct loan *loan, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t sent = loan_send(loan, bytes, length);

		if (sent < 0) {
			struct pollfd fd = { .fd = loan_fd(loan), .events = POLLOUT };

			assert_true(errno == EAGAIN || errno == EWOULDBLOCK);
			assert_int_equal(poll(&fd, 1, PATIENCE_MS), 1);
			continue;
		}
		bytes += sent;
		length -= (size_t)sent;
	}
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void a_datagram_is_not_lent(void **state)
{
	(void)state;
	expect("l");
	expect_end();
	assert_int_equal(borrower.refused, 1);
	assert_int_equal(borrower.taken, 0);
}

static void a_peer_that_goes_is_seen(void **state)
{
	struct loan *loan;

	(void)state;
	write_all("l");
	loan = borrow();
	assert_false(loan_peer_gone(loan));
	write_all("x"); /* bytes alone are no end */
	assert_false(loan_peer_gone(loan));
	close(peer);
	peer = -1;
	assert_true(loan_peer_gone(loan));
	assert_int_equal(loan_send(loan, "y", 1), -1);
	assert_int_equal(errno, EPIPE);
	loan_return(loan, true);
}

static void a_peer_that_goes_before_the_loan_ends_it(void **state)
{
	(void)state;
	write_all("Bl"); /* the answers before it are never read */
	close(peer);
	peer = -1;
	wait_until(&borrower.forgotten);
	assert_int_equal(borrower.taken, 0);
}

static void what_was_answered_before_comes_first(void **state)
{
	char *got = malloc(LENT_BYTES);
	struct loan *loan;

	(void)state;
	write_all("aBl");
	expect("a");
	assert_int_equal(read_bytes(got, LENT_BYTES), LENT_BYTES);
	loan = borrow();
	assert_int_equal(loan_send(loan, "lent", 4), 4);
	expect("lent");
	loan_return(loan, true);
	expect_end();
	free(got);
}

static void what_comes_meanwhile_is_answered_after(void **state)
{
	struct loan *loan;

	(void)state;
	write_all("al12");
	expect("a");
	loan = borrow();
	write_all("34");
	assert_int_equal(loan_send(loan, "-", 1), 1);
	loan_return(loan, false);
	expect("-1234");
	write_all("lz");
	loan = borrow();
	loan_return(loan, false);
	expect("z");
	write_all("q");
	expect_end();
}

static void more_than_sockets_hold(void **state)
{
	char *sent = malloc(LENT_BYTES), *got = malloc(LENT_BYTES);
	size_t at = 0;
	struct loan *loan;

	(void)state;
	for (unsigned i = 0; i < LENT_BYTES; i++)
		sent[i] = (char)(i * 2654435761u >> 24);
	write_all("l");
	loan = borrow();
	for (;;) { /* until it would block */
		ssize_t n = loan_send(loan, sent + at, LENT_BYTES - at);

		if (n < 0)
			break;
		at += (size_t)n;
	}
	assert_true(errno == EAGAIN || errno == EWOULDBLOCK);
	assert_true(at < LENT_BYTES);
	assert_int_equal(read_bytes(got, at), at);
	while (at < LENT_BYTES) {
		size_t piece = LENT_BYTES - at < 4096 ? LENT_BYTES - at : 4096;

		lend_all(loan, sent + at, piece);
		assert_int_equal(read_bytes(got + at, piece), piece);
		at += piece;
	}
	assert_memory_equal(sent, got, LENT_BYTES);
	loan_return(loan, true);
	expect_end();
	free(sent);
	free(got);
}

static void *return_it(void *context)
{
	while (!atomic_load(&worker.stopping))
		sched_yield();
	loan_return(context, false);
	return NULL;
}

/* A worker that stops waits for what it has lent, whatever the order. */
static void a_worker_waits_for_its_loans(void **state)
{
	pthread_t thread;

	(void)state;
	write_all("l");
	assert_int_equal(pthread_create(&thread, NULL, return_it, borrow()), 0);
	worker_stop(&worker);
	pthread_join(thread, NULL);
	expect_end();
}

static int set_up_datagram(void **state)
{
	int code;

	(void)state;
	code = set_up_with(&datagram);
	return code;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_datagram_is_not_lent, set_up_datagram, tear_down),
		cmocka_unit_test_setup_teardown(a_peer_that_goes_is_seen, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_peer_that_goes_before_the_loan_ends_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_answered_before_comes_first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_comes_meanwhile_is_answered_after, set_up, tear_down),
		cmocka_unit_test_setup_teardown(more_than_sockets_hold, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_worker_waits_for_its_loans, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("loan", tests, open_store, close_store);
}
