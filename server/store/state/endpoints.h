/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a daemon listens to, as text: by it one is told from the others that share a state directory. A line for each
 * endpoint, sorted, with no line end behind the last one:
 *
 *   11211                 the port at all addresses of the machine
 *   127.0.0.1:11211       at one address, or at all of a family: 0.0.0.0:11211, [::]:11211
 *   udp:127.0.0.1:11211   datagrams, in either form
 *   unix:/run/cache/sock  a UNIX socket, from the root
 *
 * Two daemons that run at the same time have no endpoint in common. So those of two runs which overlap without being the
 * same are one daemon whose options have changed: clients of the one have reached the other.
 *
 * Pure functions. Text of another form is compared, and never believed: its ports and paths are those of nobody.
 */
#ifndef FS_STORE_ENDPOINTS_H
#define FS_STORE_ENDPOINTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct endpoint {
	bool datagrams, local; /* UDP; a UNIX socket: host is its path then */
	const char *host; /* in the text it was read from; no bytes: all addresses */
	size_t host_length;
	const char *port; /* to the end of the line */
	size_t port_length;
};

/* Reads the line at `at`. Returns where the next one begins; NULL: there is no line at `at`. */
const char *endpoint_next(const char *at, struct endpoint *out);
/* Returns the daemon's name, which its files have: the endpoints of TCP and UNIX sockets, or those of UDP where it has no
   others. So UDP beside TCP changes nothing. To be freed with mem_free. */
char *endpoints_name(const char *endpoints);
/* May a client of one have reached the other? */
FS_MUST_CHECK bool endpoints_overlap(const char *one, const char *other);
/* Has each client of `some` reached `all`? */
FS_MUST_CHECK bool endpoints_cover(const char *all, const char *some);

#endif
