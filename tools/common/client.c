/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/connect.h"

/* memcached closes a connection for a line as short as "mn" before a login. */
static const char question[] = "version\r\n";
static const char login_wanted[] = "CLIENT_ERROR unauthenticated";

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void client_quote(const char *line, size_t length, char *out, size_t room)
{
	size_t kept = length < room - 1 ? length : room - 1;

	for (size_t i = 0; i < kept; i++)
		out[i] = (char)(line[i] >= ' ' && line[i] < 127 ? line[i] : '?');
	out[kept] = 0;
}

/* ---- bytes ------------------------------------------------------------------------------------- */

static void note(struct client *client, const char *why)
{
	snprintf(client->error, sizeof(client->error), "%s", why);
}

/* Finds out why TLS moved no byte, and sets errno and the wanted events. Returns 0 or -1, as send() and recv() do. */
static ssize_t explain_tls(struct client *client, int result)
{
	long verified = SSL_get_verify_result(client->ssl);
	const char *reason;
	int cause;

	switch (SSL_get_error(client->ssl, result)) {
	case SSL_ERROR_WANT_READ:
		client->wants = POLLIN;
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_WANT_WRITE:
		client->wants = POLLOUT;
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		note(client, "closed the connection");
		return 0;
	default:
		break;
	}
	cause = errno;
	reason = ERR_reason_error_string(ERR_peek_error());
	if (verified != X509_V_OK)
		snprintf(client->error, sizeof(client->error), "TLS: its certificate is not accepted: %s",
			 X509_verify_cert_error_string(verified));
	else if (reason)
		snprintf(client->error, sizeof(client->error), "TLS: %s", reason);
	else
		note(client, cause ? strerror(cause) : "closed the connection");
	ERR_clear_error();
	errno = EPROTO;
	return -1;
}

static ssize_t explain_plain(struct client *client, ssize_t moved, short wants)
{
	if (moved < 0 && errno == EAGAIN)
		client->wants = wants;
	else if (moved <= 0)
		note(client, moved < 0 ? strerror(errno) : "closed the connection");
	return moved;
}

ssize_t client_send(struct client *client, const void *bytes, size_t length)
{
	ssize_t sent;
	size_t done;
	int result;

	if (client->ssl) {
		ERR_clear_error();
		errno = 0;
		result = SSL_write_ex(client->ssl, bytes, length, &done);
		return result == 1 ? (ssize_t)done : explain_tls(client, result);
	}
	do
		sent = send(client->fd, bytes, length, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent > 0 ? sent : explain_plain(client, sent, POLLOUT);
}

ssize_t client_receive(struct client *client, void *bytes, size_t room)
{
	ssize_t got;
	size_t done;
	int result;

	if (client->ssl) {
		ERR_clear_error();
		errno = 0;
		result = SSL_read_ex(client->ssl, bytes, room, &done);
		return result == 1 ? (ssize_t)done : explain_tls(client, result);
	}
	do
		got = recv(client->fd, bytes, room, 0);
	while (got < 0 && errno == EINTR);
	return got > 0 ? got : explain_plain(client, got, POLLIN);
}

bool client_has_more(const struct client *client)
{
	return client->ssl && SSL_has_pending(client->ssl);
}

const char *client_why(const struct client *client)
{
	return client->error;
}

/* ---- from a socket to a connection that is ready -------------------------------------------------- */

static bool set_name(SSL *ssl, const char *name)
{
	unsigned char address[16];

	if (!name)
		return true;
	if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
	/* The macro SSL_set_tlsext_host_name casts const away, which clang warns of. */
	return SSL_set1_host(ssl, name) == 1 &&
	       SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, (void *)(uintptr_t)name) == 1;
}

int client_start(struct client *client, const struct access *access, int fd, const char *host)
{
	*client = (struct client){ .fd = fd, .access = access };
	client->state = access->login[0] ? CLIENT_ASKS : CLIENT_READY;
	client->wants = POLLOUT;
	if (!access->context)
		return FS_OK;
	client->state = CLIENT_HANDSHAKE;
	client->ssl = SSL_new(access->context);
	if (client->ssl && SSL_set_fd(client->ssl, fd) == 1 &&
	    set_name(client->ssl, access->tls_name ? access->tls_name : host)) {
		SSL_set_connect_state(client->ssl);
		return FS_OK;
	}
	note(client, "TLS: no memory for a connection");
	return FS_ENOMEM;
}

static int shake_hands(struct client *client)
{
	int result;

	ERR_clear_error();
	errno = 0;
	result = SSL_do_handshake(client->ssl);
	if (result != 1)
		return explain_tls(client, result) < 0 && errno == EAGAIN ? FS_EAGAIN : FS_ESYS;
	client->state = client->access->login[0] ? CLIENT_ASKS : CLIENT_READY;
	return FS_OK;
}

/* Sends the text and takes a line of answer, without its end. */
static int exchange(struct client *client, const char *text)
{
	size_t bytes = strlen(text);
	ssize_t moved;

	while (client->sent < bytes) {
		moved = client_send(client, text + client->sent, bytes - client->sent);
		if (moved <= 0)
			return moved < 0 && errno == EAGAIN ? FS_EAGAIN : FS_ESYS;
		client->sent += (size_t)moved;
	}
	while (client->length == 0 || client->line[client->length - 1] != '\n') {
		if (client->length == sizeof(client->line)) {
			note(client, "does not answer as a memcached server");
			return FS_EINVAL;
		}
		/* Byte by byte: nothing behind the line is taken. */
		moved = client_receive(client, client->line + client->length, 1);
		if (moved <= 0)
			return moved < 0 && errno == EAGAIN ? FS_EAGAIN : FS_ESYS;
		client->length++;
	}
	client->length -= client->length > 1 && client->line[client->length - 2] == '\r' ? 2 : 1;
	client->line[client->length] = 0;
	return FS_OK;
}

int client_proceed(struct client *client)
{
	int code = FS_OK;

	while (code == FS_OK && client->state != CLIENT_READY) {
		if (client->state == CLIENT_HANDSHAKE) {
			code = shake_hands(client);
			continue;
		}
		code = exchange(client, client->state == CLIENT_ASKS ? question : client->access->login);
		if (code != FS_OK)
			break;
		if (client->state == CLIENT_LOGS_IN && strcmp(client->line, "STORED") != 0) {
			client_quote(client->line, client->length, client->error, sizeof(client->error));
			code = FS_EINVAL;
		} else if (client->state == CLIENT_ASKS && strcmp(client->line, login_wanted) == 0) {
			client->state = CLIENT_LOGS_IN;
		} else {
			client->state = CLIENT_READY;
		}
		client->sent = client->length = 0;
	}
	return code;
}

static int proceed_within(struct client *client, uint64_t timeout_us)
{
	int64_t deadline_us = now_us() + (int64_t)timeout_us;
	int code;

	while ((code = client_proceed(client)) == FS_EAGAIN) {
		struct pollfd pollfd = { .fd = client->fd, .events = client->wants };
		int64_t left_us = deadline_us - now_us();

		if (left_us <= 0) {
			note(client, "no answer in time");
			return FS_ELATE;
		}
		if (poll(&pollfd, 1, (int)(left_us / 1000) + 1) < 0 && errno != EINTR) {
			note(client, strerror(errno));
			return FS_ESYS;
		}
	}
	return code;
}

int client_open(struct client *client, const struct access *access, const char *server, uint64_t timeout_us,
		char error[CLIENT_ERROR_BYTES])
{
	char host[256];
	int fd, code = connect_server(server, timeout_us, &fd, error);

	*client = CLIENT_CLOSED;
	if (code != FS_OK)
		return code;
	code = client_start(client, access, fd, connect_host(server, host));
	if (code == FS_OK)
		code = proceed_within(client, timeout_us);
	if (code == FS_OK)
		return FS_OK;
	snprintf(error, CLIENT_ERROR_BYTES, "the server at %.80s: %s%.140s", server,
		 client->state == CLIENT_LOGS_IN ? "login: " : "", client->error);
	client_close(client);
	return code;
}

void client_close(struct client *client)
{
	if (client->ssl) {
		if (client->state != CLIENT_HANDSHAKE)
			SSL_shutdown(client->ssl);
		ERR_clear_error();
		SSL_free(client->ssl);
	}
	if (client->fd >= 0)
		close(client->fd);
	client->ssl = NULL;
	client->fd = -1;
}
