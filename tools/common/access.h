/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a tool reaches servers: the options for TLS and for logging in, and what they name.
 *
 * The certificate of a server is verified always: its chain up to an authority of --tls-ca, else of the system, and the
 * host's name or address in it. A certificate that is itself in --tls-ca needs no chain.
 *
 * Threads: the main thread reads the options; then the access is constant, and connections of any thread may share it.
 */
#ifndef FS_TOOLS_COMMON_ACCESS_H
#define FS_TOOLS_COMMON_ACCESS_H

#include <stdbool.h>

#include "tools/common/args.h"

#define ACCESS_PASSWORD "FLASHIELD_PASSWORD" /* the environment's variable */
#define ACCESS_LOGIN_BYTES 1024

struct ssl_ctx_st;

struct access {
	/* The options; texts are borrowed from argv, NULL: not given. */
	const char *user, *password_file;
	const char *tls_ca, *tls_cert, *tls_key, *tls_name;
	bool tls;
	/* Made by access_open: */
	struct ssl_ctx_st *context; /* NULL: plain connections */
	char login[ACCESS_LOGIN_BYTES]; /* the command that logs in; empty: there is no user */
};

/* The rows of args_parse. */
#define ACCESS_ARGS(access) \
	ARG("user", ARG_TEXT, &(access)->user), ARG("password-file", ARG_TEXT, &(access)->password_file), \
		ARG("tls", ARG_ON, &(access)->tls), ARG("tls-ca", ARG_TEXT, &(access)->tls_ca), \
		ARG("tls-cert", ARG_TEXT, &(access)->tls_cert), ARG("tls-key", ARG_TEXT, &(access)->tls_key), \
		ARG("tls-name", ARG_TEXT, &(access)->tls_name)

#define ACCESS_HELP \
	"  --user NAME          log in to a server with -Y; the password is in the environment variable\n" \
	"                       FLASHIELD_PASSWORD or in a file\n" \
	"  --password-file FILE its first line is the password\n" \
	"  --tls                speak TLS; the server's certificate is verified\n" \
	"  --tls-ca FILE        authorities to trust, or the server's own certificate, as PEM  (the system's)\n" \
	"  --tls-cert FILE      our own certificate, as PEM, with its chain\n" \
	"  --tls-key FILE       its key  (in the file of --tls-cert)\n" \
	"  --tls-name NAME      the name in the server's certificate  (HOST)\n"

/* Reads what the options name. An option that begins with "tls-" switches TLS on, and with TLS SIGPIPE is ignored. Ends the program, with the option and
   the file in the message, where something can't be used. close frees all. */
void access_open(struct access *access);
void access_close(struct access *access);

#endif
