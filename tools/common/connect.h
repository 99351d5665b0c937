/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection to a server by its name. Threads: any. */
#ifndef FS_TOOLS_COMMON_CONNECT_H
#define FS_TOOLS_COMMON_CONNECT_H

#include <stdint.h>

#include "base/error.h"

/* Connects a socket, which does not block afterwards. server is HOST:PORT or the path of a unix socket. Returns 0, or a
   negative error with a message in error. Blocks for at most timeout_us per address. */
int connect_server(const char *server, uint64_t timeout_us, int *fd, char error[256]) FS_MUST_CHECK;

/* Copies HOST, without brackets, into the buffer and returns it; NULL for a unix socket or an empty host. */
const char *connect_host(const char *server, char host[256]);

#endif
