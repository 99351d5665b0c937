/* SPDX-License-Identifier: BSD-3-Clause */
/* Accepting connections, and the limit on them. Sockets come from bind.c. */
#include "server/net/net_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/metrics/counters.h"
#include "conf/conf.h"

#define ACCEPTS 64 /* per event */
#define RETRY_MS 100 /* after descriptors ran out, if no connection closes before */
#define WARN_US 60000000u /* between two lines that say so */
#define SPARE_FDS 128 /* beside the connections: flash, libevent, log, ... */
#define WORKER_FDS 16

/* ---- accepting ------------------------------------------------------------------------------- */

static bool at_limit(const struct net *net)
{
	return atomic_load(&net->connections) >= (unsigned)net->server->conf->conn_limit;
}

/* Accepts no more until a connection closes. One that closed just now has not seen `waiting`, so the caller looks again
   (listen_resume). */
static void stop_accepting(struct net *net)
{
	must(net->accepting);
	for (struct listener *l = net->listeners; l; l = l->next)
		event_del(&l->event);
	net->accepting = false;
	atomic_store(&net->accepting_shown, false);
	net->stopped_us = clk_now_us(clk_boot());
	ctr_add(CTR_listen_disabled_num, 1);
	atomic_store(&net->waiting, true);
}

void listen_resume(struct net *net)
{
	if (net->accepting || at_limit(net))
		return;
	atomic_store(&net->waiting, false);
	event_del(&net->retry);
	for (struct listener *l = net->listeners; l; l = l->next)
		event_add(&l->event, NULL);
	net->accepting = true;
	atomic_store(&net->accepting_shown, true);
	atomic_fetch_add(&net->not_accepting_us, clk_now_us(clk_boot()) - net->stopped_us);
}

/* Descriptors or memory are out. Other processes may have them, so only a later attempt can tell whether there are some
   again. */
static void wait_for_want(struct net *net)
{
	const struct timeval retry = { .tv_usec = RETRY_MS * 1000 };

	if (net->accepting) /* not where the limit has stopped it in this very turn, and a connection closed since */
		stop_accepting(net);
	event_add(&net->retry, &retry);
}

static void on_retry(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	listen_resume(context);
}

/* Accepting is tried ten times a second: not each failure is worth a line. */
static void warn_of_want(int error)
{
	static uint64_t warned_us; /* the main thread's */
	uint64_t now_us = clk_now_us(clk_boot());

	if (warned_us != 0 && now_us - warned_us < WARN_US)
		return;
	warned_us = now_us;
	log_warn("no more connections for now: accept4(): %s", strerror(error));
}

/* A client that expects TLS would not understand the line. */
static void refuse_client(const struct listener *listener, int fd)
{
	static const char text[] = "ERROR Too many open connections\r\n";

	ctr_add(CTR_rejected_connections, 1);
	if (listener->reception.transport == &transport_plain &&
	    send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		log_debug("a connection was refused, and the line that says so could not be sent: %m");
	close(fd);
}

static void admit_client(struct net *net, const struct listener *listener, int fd)
{
	const struct opening opening = { .fd = fd, .listener = listener, .transport = listener->reception.transport };
	unsigned open = atomic_fetch_add(&net->connections, 1) + 1;
	struct worker *worker;

	must(net->next_worker < net->worker_count);
	worker = &net->workers[net->next_worker];

	if (open > atomic_load(&net->connection_peak))
		atomic_store(&net->connection_peak, open);
	ctr_add(CTR_total_connections, 1);
	net->next_worker = (net->next_worker + 1) % net->worker_count;
	if (!worker_give(worker, &opening)) {
		net_connection_closed(net);
		close(fd);
	}
}

/* With "-o no_maxconns_fast" clients beyond the limit wait in the kernel's queue until one closes. */
static bool clients_must_wait(const struct net *net)
{
	return !net->server->conf->maxconns_fast && at_limit(net);
}

static int accept_client(int fd)
{
	if (fault_fires(FAULT_net_accept)) {
		errno = EMFILE;
		return -1;
	}
	return accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static void on_connection(evutil_socket_t fd, short what, void *context)
{
	struct listener *listener = context;
	struct net *net = listener->net;

	(void)what;
	atomic_store_explicit(&listener->active_seconds, atomic_load_explicit(&net->now_seconds, memory_order_relaxed),
			      memory_order_relaxed);
	if (clients_must_wait(net)) {
		stop_accepting(net);
		listen_resume(net);
	}
	for (unsigned i = 0; i < ACCEPTS && !clients_must_wait(net); i++) {
		int client = accept_client(fd);

		if (client < 0) {
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
				warn_of_want(errno);
				wait_for_want(net);
			}
			return;
		}
		if (at_limit(net))
			refuse_client(listener, client);
		else
			admit_client(net, listener, client);
	}
}

void net_connection_closed(struct net *net)
{
	unsigned before = atomic_fetch_sub(&net->connections, 1);

	must(before > 0);
	if (__builtin_expect(atomic_load(&net->waiting), 0))
		net_wake(net);
}

/* ---- the port file --------------------------------------------------------------------------- */

static const char *family_name(int family)
{
	return family == AF_INET6 ? "INET6" : "INET";
}

/* The stream remembers an error until write_ports looks at it. */
static void write_udp(void *context, int family, unsigned port)
{
	fprintf(context, "UDP %s: %u\n", family_name(family), port);
}

static bool write_ports(const struct net *net, FILE *file)
{
	for (const struct listener *l = net->listeners; l; l = l->next)
		if (!l->local)
			fprintf(file, "TCP %s: %u\n", family_name(l->family), l->port);
	udp_each_address(net, write_udp, file);
	return !ferror(file);
}

/* MEMCACHED_PORT_FILENAME: a program that starts the daemon with "-p -1" learns the ports from this file. The file
   appears complete, when clients can connect. */
static void write_port_file(const struct net *net)
{
	const char *path = getenv("MEMCACHED_PORT_FILENAME");
	char made[4096];
	FILE *file;
	bool ok;

	if (!path || net->server->conf->unix_socket)
		return;
	if ((size_t)snprintf(made, sizeof(made), "%s.lck", path) >= sizeof(made)) {
		log_warn("the file name in MEMCACHED_PORT_FILENAME is too long");
		return;
	}
	file = fopen(made, "we");
	if (!file) {
		log_warn("Failed to open \"%s\": %m", made);
		return;
	}
	ok = write_ports(net, file);
	ok = fclose(file) == 0 && ok;
	if (!ok || rename(made, path) != 0)
		log_warn("Failed to write \"%s\": %m", path);
}

/* ---- start and stop -------------------------------------------------------------------------- */

int listen_open(struct net *net, char reason[256])
{
	return bind_all(net, reason);
}

void listen_shut(struct net *net)
{
	listen_stop(net);
	for (const struct listener *l = net->listeners; l && net->inherited_count == 0; l = l->next)
		(void)shutdown(l->fd, SHUT_RDWR); /* the descriptor stays, as "stats conns" may look at it now */
}

void listen_close(struct net *net)
{
	struct stat found;

	/* The file goes before its socket, so that a successor never takes it for one that was left behind. */
	if (net->unix_path && lstat(net->unix_path, &found) == 0 && found.st_dev == net->unix_device &&
	    found.st_ino == net->unix_inode)
		unlink(net->unix_path);
	free(net->unix_path);
	net->unix_path = NULL;
	while (net->listeners) {
		struct listener *listener = net->listeners;

		net->listeners = listener->next;
		close(listener->fd);
		mem_free(listener);
	}
}

/* The sockets were bound long before, so that a port in use is the first error of a start. They listen only now:
   clients that connect while a large flash file is being made are refused, and don't wait. */
int listen_start(struct net *net)
{
	uint32_t now_seconds = atomic_load(&net->now_seconds);

	for (struct listener *l = net->listeners; l; l = l->next)
		if (listen(l->fd, net->server->conf->listen_backlog) != 0)
			return FS_ESYS;
	for (struct listener *l = net->listeners; l; l = l->next) {
		atomic_store(&l->active_seconds, now_seconds);
		if (event_assign(&l->event, net->base, l->fd, EV_READ | EV_PERSIST, on_connection, l) != 0 ||
		    event_add(&l->event, NULL) != 0)
			return FS_ENOMEM;
	}
	if (event_assign(&net->retry, net->base, -1, 0, on_retry, net) != 0)
		return FS_ENOMEM;
	net->accepting = true;
	atomic_store(&net->accepting_shown, true);
	ctr_add(CTR_total_connections, net->listener_count);
	write_port_file(net);
	return FS_OK;
}

void listen_stop(struct net *net)
{
	for (struct listener *l = net->listeners; l; l = l->next)
		if (event_initialized(&l->event))
			event_del(&l->event);
	if (event_initialized(&net->retry))
		event_del(&net->retry);
	net->accepting = false;
}

void listen_raise_limit(const struct net *net)
{
	const struct conf *conf = net->server->conf;
	rlim_t wanted = (rlim_t)conf->conn_limit + (rlim_t)conf->threads * WORKER_FDS + SPARE_FDS;
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = wanted;
	if (limit.rlim_max < wanted)
		limit.rlim_max = wanted;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
			log_warn("%d connections (-c) need %lu open files, but the limit is %lu (ulimit -n)",
				 conf->conn_limit, (unsigned long)wanted, (unsigned long)limit.rlim_max);
	}
}
