/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The words in front of an address of -l, as memcached 1.6.45 has them (its --help, -l):
 *
 *   notls: | btls: | mtls:   with -Z: plain; TLS without a client's certificate; TLS with one that is verified
 *   proto[ascii]:            or proto[binary]:, proto[negotiating]: the listener's protocol instead of -B's
 *   tag_NAME_:               or tag[NAME]:, 1 to 8 characters; only memcached's proxy reads it, so it has no effect
 *
 * They come in this order, and each may be missing. Threads: any; no shared state.
 */
#ifndef FS_CONF_LISTEN_H
#define FS_CONF_LISTEN_H

#include "conf/conf.h"

enum conf_listen_tls {
	CONF_LISTEN_TLS_BY_Z, /* as -Z and -o ssl_verify_mode say */
	CONF_LISTEN_TLS_OFF,
	CONF_LISTEN_TLS_NO_PEER, /* no client is asked for a certificate */
	CONF_LISTEN_TLS_PEER /* each client needs a certificate that -o ssl_ca_cert vouches for */
};

struct conf_listen {
	enum conf_listen_tls tls;
	enum conf_protocol protocol;
	const char *address; /* the rest of the text */
};

#define CONF_LISTEN_WHY_BYTES 128

/* Reads the words. text has one address, and need not be terminated at length. FS_OK: *out is set. FS_EINVAL: why says which
   word is wrong, or contradicts -Z, -S or -Y; out->address is then behind the words that were understood. */
FS_MUST_CHECK int conf_listen_read(const struct conf *conf, const char *text, size_t length, struct conf_listen *out,
				   char why[CONF_LISTEN_WHY_BYTES]);

#endif
