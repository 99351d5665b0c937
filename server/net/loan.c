/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loans (conn.h): a connection that a thread of its own writes to for a while.
 *
 *   conn_lend     finishing: nothing more is read, and what was answered is sent
 *   loan_take     nothing is left: out of the loop's and the lists' sight, but for the list of all
 *   loan_return   into the worker's queue, from any thread
 *   loan_collect  the worker has it again, as if it had just come
 */
#include "server/net/net_internal.h"

#include <poll.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/metrics/counters.h"

struct loan {
	struct socket_conn *sock;
	void (*take)(void *context, struct loan *loan);
	void *context;
	struct loan *next; /* in the worker's queue */
	bool close;
};

bool conn_lend(struct conn *conn, void (*take)(void *context, struct loan *loan), void *context)
{
	struct socket_conn *sock = (struct socket_conn *)conn;

	must(!sock->loan && conn->pending == 0);
	if (sock->transport->datagram)
		return false;
	sock->loan = mem_alloc(sizeof(*sock->loan));
	if (!sock->loan)
		return false;
	*sock->loan = (struct loan){ .sock = sock, .take = take, .context = context };
	conn->finishing = true;
	return true;
}

void loan_take(struct socket_conn *sock)
{
	struct loan *loan = sock->loan;

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

	sock->loan = NULL;
	loan->take(loan->context, NULL);
	mem_free(loan);
}

/* ---- the borrower's thread ------------------------------------------------------------------- */

ssize_t loan_send(struct loan *loan, const char *bytes, size_t length)
{
	const struct iovec piece = { (void *)(uintptr_t)bytes, length };
	ssize_t sent = loan->sock->transport->send(loan->sock, &piece, 1);

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

	loan->close = close;
	lock_acquire(&worker->lock);
	loan->next = worker->returned;
	worker->returned = loan;
	worker_ring(worker); /* under the lock: a worker that has taken it back may end, and its descriptor be closed */
	lock_release(&worker->lock);
}

/* ---- the worker again ------------------------------------------------------------------------ */

static void take_loan_back(struct worker *worker, struct socket_conn *sock, bool close)
{
	sock->loan = NULL;
	sock->lent = false;
	sock->conn.finishing = false;
	if (close || atomic_load(&worker->stopping)) {
		conn_kill(&sock->conn);
		return;
	}
	atomic_store_explicit(&sock->state, CONN_STATE_NEW_COMMAND, memory_order_relaxed);
	sock->more = true; /* no event tells of what TLS has decrypted before */
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

		take_loan_back(worker, loan->sock, loan->close);
		mem_free(loan);
		loan = next;
	}
}
