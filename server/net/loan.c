/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loans (conn/conn.h): another thread writes to a connection for a while.
 *
 *   conn_lend     the connection is finishing: nothing more is read, and its answers are sent
 *   loan_take     all is sent: the connection leaves the loop and the worker's lists, except for the list of all
 *   loan_return   any thread puts it into the worker's queue
 *   loan_collect  the worker has it again, as if it had just been opened
 */
#include "server/net/net_internal.h"

#include <poll.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/metrics/counters.h"

#define LOAN_MAGIC 0x6c6f616eu /* "loan" */
#define LOAN_FREED 0x676f6e65u /* "gone" */

/* The worker's until take() is called, then the borrower's until loan_return. */
struct loan {
	uint32_t magic; /* LOAN_MAGIC; checked when the borrower brings it back */
	struct socket_conn *sock;
	void (*take)(void *context, struct loan *loan);
	void *context;
	struct loan *next; /* in the worker's queue; covered by the worker's lock */
	bool close;
};

static void free_loan(struct loan *loan)
{
	must(loan->magic == LOAN_MAGIC);
	loan->magic = LOAN_FREED;
	mem_free(loan);
}

bool conn_lend(struct conn *conn, void (*take)(void *context, struct loan *loan), void *context)
{
	struct socket_conn *sock = sock_of(conn);

	must(!sock->loan && !sock->lent && conn->pending == 0);
	if (sock->transport->datagram)
		return false;
	sock->loan = mem_alloc(sizeof(*sock->loan));
	if (!sock->loan)
		return false;
	*sock->loan = (struct loan){ .magic = LOAN_MAGIC, .sock = sock, .take = take, .context = context };
	conn->finishing = true;
	return true;
}

void loan_take(struct socket_conn *sock)
{
	struct loan *loan = sock->loan;

	must(loan && !sock->lent && sock->conn.pending == 0 && conn_output_is_empty(&sock->conn));
	event_del(&sock->readable);
	event_del(&sock->writable);
	sock->reading = false;
	worker_unmake_ready(sock);
	sock->lent = true;
	atomic_store_explicit(&sock->state, CONN_STATE_WATCH, memory_order_relaxed);
	loan->take(loan->context, loan);
}

void loan_forget(struct socket_conn *sock)
{
	struct loan *loan = sock->loan;

	must(loan && !sock->lent);
	sock->loan = NULL;
	loan->take(loan->context, NULL);
	free_loan(loan);
}

/* ---- the borrower's thread ------------------------------------------------------------------- */

ssize_t loan_send(struct loan *loan, const char *bytes, size_t length)
{
	const struct iovec piece = { (void *)(uintptr_t)bytes, length };
	ssize_t sent;

	must(loan->magic == LOAN_MAGIC && loan->sock->lent);
	sent = loan->sock->transport->send(loan->sock, &piece, 1);

	if (sent > 0)
		ctr_add(CTR_bytes_written, (uint64_t)sent);
	return sent;
}

int loan_fd(const struct loan *loan)
{
	return loan->sock->fd;
}

bool loan_peer_gone(struct loan *loan)
{
	struct pollfd fd = { .fd = loan->sock->fd, .events = POLLRDHUP };

	return poll(&fd, 1, 0) > 0 && (fd.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL));
}

void loan_return(struct loan *loan, bool close)
{
	struct worker *worker = loan->sock->conn.worker;

	must(loan->magic == LOAN_MAGIC && loan->sock->lent);
	loan->close = close;
	lock_acquire(&worker->lock);
	loan->next = worker->returned;
	worker->returned = loan;
	worker_ring(worker); /* under the lock: once the worker has the loan it may end, and close its wake_fd */
	lock_release(&worker->lock);
}

/* ---- the worker again ------------------------------------------------------------------------ */

static void take_loan_back(struct worker *worker, struct socket_conn *sock, bool close)
{
	must(sock->magic == SOCKET_CONN_MAGIC && sock->lent && sock->loan);
	sock->loan = NULL;
	sock->lent = false;
	sock->conn.finishing = false;
	if (close || atomic_load(&worker->stopping)) {
		conn_kill(&sock->conn);
		return;
	}
	atomic_store_explicit(&sock->state, CONN_STATE_READ, memory_order_relaxed);
	sock->more = true; /* no event tells of bytes that TLS has already decrypted */
	atomic_store_explicit(&sock->active_seconds, worker->now_seconds, memory_order_relaxed);
	worker_make_ready(sock);
}

void loan_collect(struct worker *worker)
{
	struct loan *loan;

	lock_acquire(&worker->lock);
	loan = worker->returned;
	worker->returned = NULL;
	lock_release(&worker->lock);
	while (loan) {
		struct loan *next = loan->next;

		must(loan->sock->loan == loan);
		take_loan_back(worker, loan->sock, loan->close);
		free_loan(loan);
		loan = next;
	}
}
