/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TLS as a transport. The handshake is part of the first reads: until it is done, receive() returns EAGAIN.
 *
 *   receive   reads ahead of the record that it decrypts, so that a request costs one recv. *more tells of bytes left
 *             over in OpenSSL, as the socket doesn't
 *   send      sends a record at a time; short pieces are copied into one
 *
 * A record that OpenSSL could not send must be offered again, from the same byte on and no shorter. It is, as the
 * output is always sent from its front. Nothing is sent before the handshake is done.
 */
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include "base/events.h"
#include "base/log.h"
#include "base/metrics/counters.h"
#include "conf/conf.h"
#include "server/net/net_internal.h"

#define RECORD_BYTES SCRATCH_RECORD_BYTES
#define TURN_BYTES (256u << 10) /* received, or sent, before others get their turn */

static bool tls_open(struct socket_conn *sock)
{
	const struct listener *listener = sock->conn.listener;
	SSL *ssl = certificates_session(sock->conn.worker->net->certificates,
					listener ? listener->reception.verify : VERIFY_AS_SET);

	if (!ssl || SSL_set_fd(ssl, sock->fd) != 1) {
		SSL_free(ssl);
		ERR_clear_error();
		return false;
	}
	SSL_set_accept_state(ssl);
	sock->transport_data = ssl;
	return true;
}

static void __attribute__((cold)) note_failure(const struct socket_conn *sock, SSL *ssl)
{
	char cause[160] = "the client has closed the connection";
	bool protocol = ERR_peek_error() != 0;

	if (protocol)
		ERR_error_string_n(ERR_peek_error(), cause, sizeof(cause));
	/* SSL_is_init_finished() would be false after every error that OpenSSL takes for fatal. */
	if (SSL_get_state(ssl) != TLS_ST_OK) {
		ctr_add(CTR_ssl_handshake_errors, 1);
		log_limited(LOG_LEVEL_INFO, "<%d TLS handshake failed: %s", sock->fd, cause);
	} else {
		ctr_add(CTR_ssl_proto_errors, protocol);
		log_limited(LOG_LEVEL_INFO, "<%d TLS failed: %s", sock->fd, cause);
	}
	if (events_on(EVENT_CONNEVENTS))
		events_emit(EVENT_CONNEVENTS, "type=conntlserr fd=%d msg=%s", sock->fd, cause);
	SSL_set_quiet_shutdown(ssl, 1); /* no close_notify after an error */
	ERR_clear_error();
}

/* Finds out why nothing was received. Returns 0 or -1, with errno and *more as struct transport says. */
static ssize_t explain_receive(struct socket_conn *sock, SSL *ssl, bool *more)
{
	switch (SSL_get_error(ssl, 0)) {
	case SSL_ERROR_WANT_READ:
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_WANT_WRITE:
		*more = true;
		errno = EAGAIN;
		return -1;
	case SSL_ERROR_ZERO_RETURN:
		if (!SSL_is_init_finished(ssl))
			note_failure(sock, ssl);
		return 0;
	default:
		note_failure(sock, ssl);
		errno = ECONNRESET;
		return -1;
	}
}

/* Fills one piece, and adds its bytes to *total. False: SSL_read had nothing more. */
static bool fill_from_tls(SSL *ssl, const struct iovec *piece, size_t *total)
{
	size_t at = 0, got;

	while (at < piece->iov_len && *total < TURN_BYTES) {
		if (SSL_read_ex(ssl, (char *)piece->iov_base + at, piece->iov_len - at, &got) != 1)
			return false;
		at += got;
		*total += got;
		if (!SSL_has_pending(ssl))
			break;
	}
	return true;
}

static ssize_t tls_receive(struct socket_conn *sock, const struct iovec *pieces, unsigned count, bool *more)
{
	SSL *ssl = sock->transport_data;
	size_t total = 0;

	must(ssl);
	*more = false;
	ERR_clear_error();
	for (unsigned i = 0; i < count; i++) {
		size_t before = total;

		if (!fill_from_tls(ssl, &pieces[i], &total)) {
			if (total == 0)
				return explain_receive(sock, ssl, more);
			*more = SSL_get_error(ssl, 0) != SSL_ERROR_WANT_READ; /* told by the next call */
			return (ssize_t)total;
		}
		if (total - before < pieces[i].iov_len)
			break;
	}
	/* Behind a full record more mostly follows. */
	*more = total >= RECORD_BYTES || SSL_has_pending(ssl);
	return (ssize_t)total;
}

/* ---- sending --------------------------------------------------------------------------------- */

struct cursor {
	const struct iovec *pieces;
	unsigned count;
	size_t skip; /* of the first */
};

static void advance_cursor(struct cursor *at, size_t bytes)
{
	while (at->count > 0 && bytes >= at->pieces->iov_len - at->skip) {
		must(at->skip <= at->pieces->iov_len);
		bytes -= at->pieces->iov_len - at->skip;
		at->skip = 0;
		at->pieces++;
		at->count--;
	}
	at->skip += bytes;
}

/* Sets *out to the bytes of the next record, which are those of one piece, or of short ones copied together. Returns
   their number, 0 at the end. */
static size_t next_record(struct cursor at, size_t wanted, char copy[RECORD_BYTES], const char **out)
{
	size_t length = 0;

	if (at.count == 0)
		return 0;
	if (at.count == 1 || at.pieces->iov_len - at.skip >= wanted) {
		length = at.pieces->iov_len - at.skip;
		*out = (const char *)at.pieces->iov_base + at.skip;
		return length < RECORD_BYTES ? length : RECORD_BYTES;
	}
	while (at.count > 0 && length < wanted) {
		size_t left = at.pieces->iov_len - at.skip, take = left < wanted - length ? left : wanted - length;

		memcpy(copy + length, (const char *)at.pieces->iov_base + at.skip, take);
		length += take;
		advance_cursor(&at, take);
	}
	*out = copy;
	return length;
}

static size_t record_bytes(const struct socket_conn *sock)
{
	uint64_t wanted = sock->conn.server->conf->ssl_wbuf_size_bytes;

	return wanted > 0 && wanted < RECORD_BYTES ? (size_t)wanted : RECORD_BYTES;
}

static ssize_t explain_send(struct socket_conn *sock, SSL *ssl)
{
	if (SSL_get_error(ssl, 0) == SSL_ERROR_WANT_WRITE) {
		errno = EAGAIN;
		return -1;
	}
	/* WANT_READ too: OpenSSL needs the end of a message of the peer before it can send. */
	note_failure(sock, ssl);
	errno = ECONNRESET;
	return -1;
}

static ssize_t tls_send(struct socket_conn *sock, const struct iovec *pieces, unsigned count)
{
	SSL *ssl = sock->transport_data;
	struct cursor at = { .pieces = pieces, .count = count };
	size_t total = 0, sent, length, wanted = record_bytes(sock);
	char *copy = sock->conn.worker->scratch->record;
	const char *bytes;

	advance_cursor(&at, 0); /* passes over empty pieces at the front */
	ERR_clear_error();
	while (total < TURN_BYTES && (length = next_record(at, wanted, copy, &bytes)) > 0) {
		if (SSL_write_ex(ssl, bytes, length, &sent) != 1)
			return total > 0 ? (ssize_t)total : explain_send(sock, ssl);
		advance_cursor(&at, sent);
		total += sent;
	}
	return (ssize_t)total;
}

static void tls_close(struct socket_conn *sock)
{
	SSL *ssl = sock->transport_data;

	if (ssl) {
		if (SSL_is_init_finished(ssl))
			SSL_shutdown(ssl); /* sends close_notify; its answer is not waited for */
		SSL_free(ssl);
		ERR_clear_error();
	}
	close(sock->fd);
}

const struct transport transport_tls = {
	.open = tls_open,
	.receive = tls_receive,
	.send = tls_send,
	.close = tls_close,
};
