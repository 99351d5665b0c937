/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The HTTP side: libmicrohttpd's thread answers GET and HEAD of three pages.
 */
#include "server/metrics/metrics.h"

#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "conf/conf.h"
#include "server/conn/server.h"
#include "server/metrics/metrics_internal.h"
#include "server/store/store.h"

/* A silent client holds a connection until PATIENCE_SECONDS are over; with CONNECTIONS of them the next one waits. */
#define CONNECTIONS 64u
#define PATIENCE_SECONDS 3u
#define BACKLOG 64
/* For each connection: request line, headers and what is left of an answer's header. */
#define CONNECTION_BYTES 16384
#define TEXT "text/plain; charset=utf-8"
#define PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"

struct metrics {
	const struct server *server; /* constant */
	struct MHD_Daemon *http; /* constant once it is started */
	_Atomic int serving; /* enum metrics_serving; any thread */
	char address[300]; /* constant once it is started */
};

/* ---- the pages -------------------------------------------------------------------------------- */

/* Answers, and takes the text over where it is allocated. False: the connection is to be closed. */
static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type, char *text,
			      size_t length, enum MHD_ResponseMemoryMode memory)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(length, text, memory);
	enum MHD_Result result = MHD_NO;

	if (!response) {
		if (memory == MHD_RESPMEM_MUST_FREE)
			free(text);
		return MHD_NO;
	}
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type) == MHD_YES &&
	    (status != MHD_HTTP_METHOD_NOT_ALLOWED ||
	     MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD") == MHD_YES))
		result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result say(struct MHD_Connection *connection, unsigned status, const char *text)
{
	return answer(connection, status, TEXT, (char *)(uintptr_t)text, strlen(text), MHD_RESPMEM_MUST_COPY);
}

static enum MHD_Result show_metrics(const struct metrics *metrics, struct MHD_Connection *connection)
{
	size_t length = 0;
	char *text = metrics_text(metrics->server, &length);

	if (!text)
		return say(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "memory is out\n");
	return answer(connection, MHD_HTTP_OK, PROMETHEUS, text, length, MHD_RESPMEM_MUST_FREE);
}

/* What a probe's reader wants to know of the flash. */
static void describe_flash(const struct server *server, char *out, size_t size)
{
	struct store_status store;

	store_get_status(server->store, &store);
	if (!store.flash)
		snprintf(out, size, "%s", server->conf->flash_path ? "can't be used" : "none");
	else if (store.segments.offline)
		snprintf(out, size, "offline: %s", store.segments.offline_reason);
	else
		snprintf(out, size, "online");
}

static enum MHD_Result show_ready(struct metrics *metrics, struct MHD_Connection *connection)
{
	static const char *const words[] = { "starting", "ready", "stopping" };
	const int serving = atomic_load_explicit(&metrics->serving, memory_order_relaxed);
	char flash[512], text[600];

	describe_flash(metrics->server, flash, sizeof(flash));
	snprintf(text, sizeof(text), "%s\nflash: %s\n", words[serving], flash);
	return say(connection, serving == METRICS_SERVES ? MHD_HTTP_OK : MHD_HTTP_SERVICE_UNAVAILABLE, text);
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *path,
				  const char *method, const char *version, const char *body, size_t *body_bytes,
				  void **request)
{
	struct metrics *metrics = context;

	(void)version;
	(void)body;
	(void)body_bytes;
	(void)request;
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are allowed\n");
	if (strcmp(path, "/metrics") == 0)
		return show_metrics(metrics, connection);
	if (strcmp(path, "/healthz") == 0)
		return say(connection, MHD_HTTP_OK, "alive\n");
	if (strcmp(path, "/ready") == 0)
		return show_ready(metrics, connection);
	return say(connection, MHD_HTTP_NOT_FOUND, "there are /metrics, /healthz and /ready\n");
}

__attribute__((format(printf, 2, 0))) static void on_message(void *context, const char *format, va_list arguments)
{
	char text[256];

	(void)context;
	vsnprintf(text, sizeof(text), format, arguments);
	text[strcspn(text, "\n")] = 0;
	log_debug("--metrics-listen: %s", text);
}

/* ---- the socket ------------------------------------------------------------------------------- */

/* Listens on one of the addresses that a name has. The socket, or -1 with errno. */
static int listen_on(const struct addrinfo *found)
{
	const int one = 1;
	int fd = -1, error = EADDRNOTAVAIL;

	for (; found && fd < 0; found = found->ai_next) {
		fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0 &&
		    bind(fd, found->ai_addr, found->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
			break;
		error = errno;
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	errno = error;
	return fd;
}

/* "ADDR:PORT" or "[ADDR]:PORT" -> a socket that listens, or -1 with the reason. */
static int open_socket(const char *address, char reason[256])
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	const char *colon = strrchr(address, ':');
	const bool brackets = address[0] == '[';
	struct addrinfo *found = NULL;
	char host[256];
	int code, fd;

	snprintf(host, sizeof(host), "%.*s", (int)(colon - address - 2 * brackets), address + brackets);
	code = getaddrinfo(host, colon + 1, &hints, &found);
	if (code != 0) {
		snprintf(reason, 256, "%s: %s", address, code == EAI_SYSTEM ? strerror(errno) : gai_strerror(code));
		return -1;
	}
	fd = listen_on(found);
	if (fd < 0)
		snprintf(reason, 256, "%s: %s", address, strerror(errno));
	freeaddrinfo(found);
	return fd;
}

/* Port 0 becomes the port that the kernel has chosen. */
static void name_address(struct metrics *metrics, const char *address, int fd)
{
	const char *colon = strrchr(address, ':');
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	char port[NI_MAXSERV];

	if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0 ||
	    getnameinfo((struct sockaddr *)&bound, length, NULL, 0, port, sizeof(port), NI_NUMERICSERV) != 0)
		snprintf(port, sizeof(port), "%s", colon + 1);
	snprintf(metrics->address, sizeof(metrics->address), "%.*s:%s", (int)(colon - address), address, port);
}

/* ---- start and stop --------------------------------------------------------------------------- */

/* The thread inherits the mask: signals are the main thread's. */
static struct MHD_Daemon *start_http(struct metrics *metrics, int fd)
{
	sigset_t all, before;
	struct MHD_Daemon *http;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	http = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG, 0, NULL, NULL,
				on_request, metrics, MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL,
				MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
				MHD_OPTION_CONNECTION_TIMEOUT, PATIENCE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				(size_t)CONNECTION_BYTES, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return http;
}

int metrics_start(struct metrics **out, const struct server *server, const char *address, char reason[256])
{
	struct metrics *metrics;
	int fd;

	*out = NULL;
	if (strcmp(address, "off") == 0)
		return FS_OK;
	fd = open_socket(address, reason);
	if (fd < 0)
		return FS_ESYS;
	metrics = mem_must_zalloc(sizeof(*metrics));
	metrics->server = server;
	name_address(metrics, address, fd);
	metrics->http = start_http(metrics, fd);
	if (!metrics->http) {
		snprintf(reason, 256, "%s: the HTTP server does not start: %s", address, strerror(errno));
		close(fd);
		mem_free(metrics);
		return FS_ESYS;
	}
	*out = metrics;
	return FS_OK;
}

const char *metrics_address(const struct metrics *metrics)
{
	return metrics ? metrics->address : NULL;
}

void metrics_set_serving(struct metrics *metrics, enum metrics_serving serving)
{
	if (metrics)
		atomic_store_explicit(&metrics->serving, serving, memory_order_relaxed);
}

void metrics_stop(struct metrics *metrics)
{
	if (!metrics)
		return;
	MHD_stop_daemon(metrics->http); /* it closes the socket and all connections */
	mem_free(metrics);
}
