/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of server/metrics share: the answer to a scrape, as bytes, and the socket. */
#ifndef FS_SERVER_METRICS_METRICS_INTERNAL_H
#define FS_SERVER_METRICS_METRICS_INTERNAL_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct server;

/* Returns all figures in Prometheus' text format (version 0.0.4), of *length bytes. The caller frees them. NULL: memory
   is out. Any thread. */
FS_MUST_CHECK char *metrics_text(const struct server *server, size_t *length);

#define METRICS_ADDRESS_BYTES 300
/* Returns a socket that listens at "ADDR:PORT" or "[ADDR]:PORT"; without ADDR, or with "*", on all interfaces, over IPv6 and
   IPv4, as far as the machine has them. -1, with errno: the reason has the address. Main thread; may block on names. */
FS_MUST_CHECK int metrics_socket(const char *address, char reason[256]);
/* Writes the address of that socket: port 0 becomes the port that the kernel has chosen. */
void metrics_socket_name(int fd, const char *address, char out[METRICS_ADDRESS_BYTES]);

#ifdef __cplusplus
}
#endif

#endif
