/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TLS of the metrics endpoint, by GnuTLS, which libmicrohttpd speaks TLS with: certificate, key, and the authorities that
 * sign clients' certificates (--metrics-tls-cert, --metrics-tls-key, --metrics-tls-ca).
 *
 *   files --certs_open, certs_reload--> set of credentials <--held-- each connection, from its start to its end
 *
 * A reload makes a new set. A connection that is open keeps the one that it began with, and the last that holds a set
 * frees it. A reload that fails leaves the set in use as it is.
 *
 * With authorities a client needs a certificate of theirs, for the purpose of a client: the handshake fails otherwise. The
 * oldest version is TLS 1.2.
 *
 * Threads: any, but certs_open and certs_close, which are the main thread's. Errors: codes of base/error.h, with a reason
 * that begins with the option and names the file.
 */
#ifndef FS_SERVER_METRICS_CERTS_H
#define FS_SERVER_METRICS_CERTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct certs;
struct certs_set;
struct conf;

/* GnuTLS' priorities: versions and ciphers. */
#define CERTS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:%SERVER_PRECEDENCE"

/* Reads the files that the options name, as the user who serves. FS_OK: *out is the caller's, NULL without
   --metrics-tls-cert. FS_EINVAL: a file can't be read or used. Blocks on files. */
FS_MUST_CHECK int certs_open(struct certs **out, const struct conf *conf, char reason[256]);
/* No connection holds a set any more. NULL is nothing. */
void certs_close(struct certs *certs);
/* Reads the files again. FS_OK, or FS_EINVAL with the reason. Blocks on files; takes a leaf lock. */
FS_MUST_CHECK int certs_reload(struct certs *certs, char reason[256]);

/* Gives a new connection the set that is in use. session: its gnutls_session_t, before the handshake. Returns the set, which
   the connection holds until certs_release; NULL: GnuTLS has refused, and the handshake will fail. Takes a leaf lock. */
struct certs_set *certs_hold(struct certs *certs, void *session);
void certs_release(struct certs_set *set); /* NULL is nothing */

/* Returns the wall clock's second at which the first certificate of the chain in use expires; 0: not known, and for NULL. */
int64_t certs_expire_at(const struct certs *certs);
/* Returns what libmicrohttpd asks for beside the sets: a function of the type gnutls_certificate_retrieve_function3, which is
   never called. */
typedef void certs_function(void);
certs_function *certs_placeholder(void);

#endif
