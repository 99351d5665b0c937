/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection to a server, plain or with TLS, on which a tool has logged in where a user is given.
 *
 *   socket connected ──> TLS handshake ──> a question ──> login ──> READY
 *                                          "version": does this server want a login?
 *
 * A server without -Y would store the login as an object, so it is only sent where the question is refused.
 *
 * Threads: one owner. Sockets don't block: functions either return FS_EAGAIN, or say that they block.
 */
#ifndef FS_TOOLS_COMMON_CLIENT_H
#define FS_TOOLS_COMMON_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "tools/common/access.h"

#define CLIENT_ERROR_BYTES 256

struct ssl_st;

enum client_state { CLIENT_HANDSHAKE, CLIENT_ASKS, CLIENT_LOGS_IN, CLIENT_READY };

struct client {
	int fd; /* -1: closed */
	enum client_state state;
	const struct access *access; /* borrowed */
	struct ssl_st *ssl; /* NULL: plain */
	short wants; /* the events that a state before READY waits for */
	size_t sent; /* of the question or the login */
	size_t length; /* of the line */
	char line[CLIENT_ERROR_BYTES]; /* the answer to the question or the login, as far as it has come */
	char error[CLIENT_ERROR_BYTES]; /* why the last function failed; printable */
};

/* A connection that is closed. */
#define CLIENT_CLOSED ((struct client){ .fd = -1 })

/* Takes over a connected socket that doesn't block. host is the name that the certificate must have, unless --tls-name
   gives one; NULL on a unix socket. The access outlives the client. FS_OK: client_proceed has the next step; FS_ENOMEM.
   In both cases client_close closes the socket. */
FS_MUST_CHECK int client_start(struct client *client, const struct access *access, int fd, const char *host);

/* Goes on with handshake and login. FS_OK: the connection is ready; FS_EAGAIN: client->wants is what poll() is to wait
   for; FS_ESYS, FS_EINVAL: client->error has the reason, in the server's own words where it gave some. */
FS_MUST_CHECK int client_proceed(struct client *client);

/* Connects to HOST:PORT or the path of a unix socket, and proceeds until the connection is ready. Blocks for at most
   timeout_us for each address and for what follows. FS_OK, or an error with the reason in error; the client is closed then. */
FS_MUST_CHECK int client_open(struct client *client, const struct access *access, const char *server,
			      uint64_t timeout_us, char error[CLIENT_ERROR_BYTES]);
/* Closes the connection, if there is one. */
void client_close(struct client *client);

/* Send and receive as send() and recv() do: -1 with EAGAIN when poll() is to be asked, 0 at the end of the stream. After
   any other -1, and 0, client_why has the reason. The connection is ready. */
FS_MUST_CHECK ssize_t client_send(struct client *client, const void *bytes, size_t length);
FS_MUST_CHECK ssize_t client_receive(struct client *client, void *bytes, size_t room);
/* True if bytes wait in the client that poll() doesn't know of. */
bool client_has_more(const struct client *client);
/* Returns why the last send or receive failed: "closed the connection", "Connection reset by peer", an alert of TLS.
   Valid until the next call. */
const char *client_why(const struct client *client);

/* Copies what a server said to out, of `room` bytes, with '?' for what can't be printed. */
void client_quote(const char *line, size_t length, char *out, size_t room);

#endif
