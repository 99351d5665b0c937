/* SPDX-License-Identifier: BSD-3-Clause */
/* The HTTP side: libmicrohttpd's thread answers GET and HEAD of three pages, by TLS and with a login where they are asked for. */
#include "server/metrics/metrics.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "conf/conf.h"
#include "server/conn/server.h"
#include "server/metrics/certs.h"
#include "server/metrics/metrics_internal.h"
#include "server/metrics/users.h"
#include "server/store/store.h"

/* A silent client holds a connection until PATIENCE_SECONDS are over; with CONNECTIONS of them the next one waits. */
#define CONNECTIONS 64u
#define PATIENCE_SECONDS 3u
/* For each connection: request line, headers and what is left of an answer's header. */
#define CONNECTION_BYTES 16384
#define TEXT "text/plain; charset=utf-8"
#define PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"
#define REALM "flashield"

struct metrics {
	/* Constant once it is started: */
	const struct server *server;
	struct MHD_Daemon *http;
	struct certs *certs; /* NULL: no TLS */
	struct users *users; /* NULL: nobody has to log in */
	char address[METRICS_ADDRESS_BYTES];
	/* Any thread: */
	_Atomic int serving; /* enum metrics_serving */
	_Atomic bool renewal_failed; /* the last one */
	_Atomic uint64_t renewal_failures;
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

/* ---- logging in --------------------------------------------------------------------------------- */

static void wipe(char *text)
{
	if (text)
		OPENSSL_cleanse(text, strlen(text));
	MHD_free(text);
}

static enum users_check check_login(const struct metrics *metrics, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *from = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	char *password = NULL, *name;
	enum users_check result = USERS_WRONG;

	if (!metrics->users)
		return USERS_RIGHT;
	name = MHD_basic_auth_get_username_password(connection, &password);
	if (name && password)
		result = users_check(metrics->users, name, password, from ? from->client_addr : NULL);
	wipe(password);
	wipe(name);
	return result;
}

static enum MHD_Result refuse_login(struct MHD_Connection *connection, enum users_check why)
{
	static const char later[] = "too many passwords to check, come again in a second\n", wrong[] = "log in\n";
	const char *text = why == USERS_LATER ? later : wrong;
	struct MHD_Response *response =
		MHD_create_response_from_buffer(strlen(text), (char *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result result = MHD_NO;

	if (!response)
		return MHD_NO;
	if (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, TEXT) == MHD_YES) {
		if (why == USERS_WRONG)
			result = MHD_queue_basic_auth_fail_response(connection, REALM, response);
		else if (MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "1") == MHD_YES)
			result = MHD_queue_response(connection, MHD_HTTP_TOO_MANY_REQUESTS, response);
	}
	MHD_destroy_response(response);
	return result;
}

/* ---- pages of the daemon ------------------------------------------------------------------------ */

static enum MHD_Result show_metrics(const struct metrics *metrics, struct MHD_Connection *connection)
{
	enum users_check login = check_login(metrics, connection);
	size_t length = 0;
	char *text;

	if (login != USERS_RIGHT)
		return refuse_login(connection, login);
	text = metrics_text(metrics->server, &length);
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

	/* A probe doesn't log in. What the flash is like is for users alone. */
	if (check_login(metrics, connection) == USERS_RIGHT) {
		describe_flash(metrics->server, flash, sizeof(flash));
		snprintf(text, sizeof(text), "%s\nflash: %s\n", words[serving], flash);
	} else {
		snprintf(text, sizeof(text), "%s\n", words[serving]);
	}
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

/* ---- start and stop --------------------------------------------------------------------------- */

/* Gives each connection the certificates that are in use at its start. */
static void on_connection(void *context, struct MHD_Connection *connection, void **held,
			  enum MHD_ConnectionNotificationCode what)
{
	struct metrics *metrics = context;
	const union MHD_ConnectionInfo *info;

	if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
		certs_release(*held);
		*held = NULL;
		return;
	}
	info = metrics->certs ? MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION) : NULL;
	*held = info && info->tls_session ? certs_hold(metrics->certs, info->tls_session) : NULL;
}

/* The thread inherits the mask: signals are the main thread's. */
static struct MHD_Daemon *start_http(struct metrics *metrics, int fd)
{
	const unsigned tls = metrics->certs ? MHD_USE_TLS : 0;
	const struct MHD_OptionItem of_tls[] = {
		{ MHD_OPTION_HTTPS_PRIORITIES, 0, (char *)(uintptr_t)CERTS_PRIORITIES },
		{ MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, (void *)(uintptr_t)certs_placeholder() },
		{ MHD_OPTION_END, 0, NULL },
	};
	sigset_t all, before;
	struct MHD_Daemon *http;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	http = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_USE_ERROR_LOG | tls, 0, NULL, NULL,
				on_request, metrics, MHD_OPTION_EXTERNAL_LOGGER, on_message, NULL,
				MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS,
				MHD_OPTION_CONNECTION_TIMEOUT, PATIENCE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				(size_t)CONNECTION_BYTES, MHD_OPTION_NOTIFY_CONNECTION, on_connection, metrics,
				MHD_OPTION_ARRAY, tls ? of_tls : of_tls + 2, MHD_OPTION_END);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return http;
}

static void metrics_free(struct metrics *metrics)
{
	certs_close(metrics->certs);
	users_close(metrics->users);
	mem_free(metrics);
}

/* What the options ask for beside an address. */
static int open_access(struct metrics *metrics, const struct conf *conf, char reason[256])
{
	int code = certs_open(&metrics->certs, conf, reason);

	if (code == FS_OK && conf->metrics_auth_file)
		code = users_open(&metrics->users, conf->metrics_auth_file, clk_boot(), reason);
	return code;
}

static bool is_loopback(const char *address)
{
	return strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]", 5) == 0 ||
	       strncmp(address, "localhost:", 10) == 0;
}

static int start_at(struct metrics *metrics, const char *address, char reason[256])
{
	int fd = metrics_socket(address, reason);

	if (fd < 0)
		return FS_ESYS;
	metrics_socket_name(fd, address, metrics->address);
	metrics->http = start_http(metrics, fd);
	if (metrics->http)
		return FS_OK;
	snprintf(reason, 256, "%s: the HTTP server does not start: %s", address, strerror(errno));
	close(fd);
	return FS_ESYS;
}

int metrics_start(struct metrics **out, const struct server *server, const char *address, char reason[256])
{
	struct metrics *metrics;
	int code;

	*out = NULL;
	if (strcmp(address, "off") == 0)
		return FS_OK;
	*out = metrics = mem_must_zalloc(sizeof(*metrics)); /* before the thread looks for it */
	metrics->server = server;
	code = open_access(metrics, server->conf, reason);
	if (code == FS_OK)
		code = start_at(metrics, address, reason);
	if (code != FS_OK) {
		*out = NULL;
		metrics_free(metrics);
		return code;
	}
	if (metrics->users && !metrics->certs && !is_loopback(address))
		log_warn("--metrics-auth-file: passwords for %s come in plain text, as there is no --metrics-tls-cert",
			 metrics->address);
	return FS_OK;
}

void metrics_check(const struct conf *conf, metrics_fault_fn *fault, void *context)
{
	struct certs *certs = NULL;
	struct users *users = NULL;
	char reason[256] = "";

	if (strcmp(conf->metrics_listen, "off") == 0)
		return;
	if (certs_open(&certs, conf, reason) != FS_OK)
		fault(context, reason);
	if (conf->metrics_auth_file && users_open(&users, conf->metrics_auth_file, clk_boot(), reason) != FS_OK)
		fault(context, reason);
	certs_close(certs);
	users_close(users);
}

/* ---- while it serves ---------------------------------------------------------------------------- */

const char *metrics_address(const struct metrics *metrics)
{
	return metrics ? metrics->address : NULL;
}

void metrics_set_serving(struct metrics *metrics, enum metrics_serving serving)
{
	if (metrics)
		atomic_store_explicit(&metrics->serving, serving, memory_order_relaxed);
}

bool metrics_has_certificates(const struct metrics *metrics)
{
	return metrics && metrics->certs;
}

int metrics_refresh_certificates(struct metrics *metrics, char reason[256])
{
	int code = certs_reload(metrics->certs, reason);

	atomic_store(&metrics->renewal_failed, code != FS_OK);
	if (code == FS_OK) {
		log_notice("certificates and keys of /metrics were read again");
		return FS_OK;
	}
	atomic_fetch_add(&metrics->renewal_failures, 1);
	log_warn("certificates and keys of /metrics stay as they were: %s", reason);
	return code;
}

int metrics_reload_users(struct metrics *metrics, char reason[256])
{
	int code = metrics && metrics->users ? users_reload(metrics->users, reason) : FS_OK;

	if (code != FS_OK)
		log_warn("users of /metrics stay as they were: %s", reason);
	else if (metrics && metrics->users)
		log_notice("users of /metrics were read again");
	return code;
}

void metrics_get_status(const struct metrics *metrics, struct metrics_status *out)
{
	*out = (struct metrics_status){ 0 };
	if (!metrics)
		return;
	out->certificates_expire_at = certs_expire_at(metrics->certs);
	out->renewal_failed = atomic_load(&metrics->renewal_failed);
	out->renewal_failures = atomic_load(&metrics->renewal_failures);
	out->password_checks = metrics->users ? users_bcrypt_runs(metrics->users) : 0;
}

void metrics_stop(struct metrics *metrics)
{
	if (!metrics)
		return;
	MHD_stop_daemon(metrics->http); /* it closes the socket and all connections */
	metrics_free(metrics);
}
