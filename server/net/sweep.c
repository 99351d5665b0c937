/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that last too long: idle ones, and ones that don't take their answers while others wait for memory. */
#include "base/log.h"
#include "base/metrics/counters.h"
#include "conf/conf.h"
#include "server/net/net_internal.h"

#define STUCK_SECONDS 10u
#define SWEEPS 10u /* for each idle timeout ... */
#define SWEEP_MOST 60u /* ... and at most so many seconds between two */

void sweep_ring(struct net *net)
{
	bool all = net->server->conf->idle_timeout_seconds > 0 || net->hooks->beats;

	for (unsigned i = 0; i < net->worker_count; i++) {
		struct worker *worker = &net->workers[i];

		if (!all && !atomic_load_explicit(&worker->starving, memory_order_relaxed))
			continue;
		atomic_store_explicit(&worker->second_passed, true, memory_order_relaxed);
		worker_ring(worker);
	}
}

/* ---- idle connections ------------------------------------------------------------------------ */

/* A connection that waits for flash, doesn't take its answers, or is lent is not idle. As in memcached, neither is one in the
   middle of a value, and one of a UNIX socket never is. */
static bool is_idle(const struct socket_conn *sock, uint32_t timeout_seconds)
{
	const struct conn *conn = &sock->conn;
	uint32_t active = atomic_load_explicit(&sock->active_seconds, memory_order_relaxed);
	bool in_value = conn->session.state == SESSION_BODY || conn->session.state == SESSION_SWALLOW;

	return !in_value && conn->worker->now_seconds - active > timeout_seconds && conn->pending == 0 &&
	       conn_output_is_empty(conn) && conn->wait == CONN_WAIT_NONE && !sock->lent && conn->listener &&
	       !conn->listener->local;
}

static void close_idle(struct worker *worker, uint32_t timeout_seconds)
{
	struct socket_conn *sock, *next;

	for (sock = LIST_FIRST(&worker->conns); sock; sock = next) {
		next = LIST_NEXT(sock, link);
		if (!is_idle(sock, timeout_seconds))
			continue;
		ctr_add(CTR_idle_kicks, 1);
		log_debug("<%d was idle and is closed", sock->fd);
		sock->conn.reason = CONN_REASON_IDLE;
		conn_kill(&sock->conn);
	}
}

/* A tenth of the timeout is exact enough. */
static bool idle_is_due(struct worker *worker, uint32_t timeout_seconds)
{
	uint32_t pause = timeout_seconds / SWEEPS < SWEEP_MOST ? timeout_seconds / SWEEPS : SWEEP_MOST;

	if (worker->now_seconds - worker->swept_seconds < pause)
		return false;
	worker->swept_seconds = worker->now_seconds;
	return true;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Closes connections until half of the memory is there again. If it were just enough for one answer, the next of many
   clients that don't read would take it at once, and the clients that read would wait for all of them. */
static void close_stuck(struct worker *worker)
{
	struct socket_conn *sock, *next;

	for (sock = LIST_FIRST(&worker->conns); sock && worker->held > worker->held_most / 2; sock = next) {
		next = LIST_NEXT(sock, link);
		if (sock->blocked_seconds == 0 || sock->conn.output.held <= CONN_SHARE_BYTES ||
		    worker->now_seconds - sock->blocked_seconds < STUCK_SECONDS)
			continue;
		log_limited(LOG_LEVEL_INFO,
			    "<%d is closed: it doesn't take its answers, %llu bytes, while others wait for memory",
			    sock->fd, (unsigned long long)sock->conn.output.held);
		conn_kill(&sock->conn);
	}
}

void sweep_feed(struct worker *worker)
{
	struct socket_conn *sock;

	if (worker->held > worker->held_most)
		return;
	atomic_store_explicit(&worker->starving, false, memory_order_relaxed);
	LIST_FOREACH(sock, &worker->conns, link)
	if (sock->conn.wait == CONN_WAIT_MEMORY)
		worker_make_ready(sock);
}

void sweep(struct worker *worker)
{
	int timeout_seconds = worker->net->server->conf->idle_timeout_seconds;

	atomic_store_explicit(&worker->beat_seconds, worker->now_seconds, memory_order_relaxed);
	if (timeout_seconds > 0 && idle_is_due(worker, (uint32_t)timeout_seconds))
		close_idle(worker, (uint32_t)timeout_seconds);
	if (atomic_load_explicit(&worker->starving, memory_order_relaxed))
		close_stuck(worker);
}
