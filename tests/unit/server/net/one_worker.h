/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker of no listener, with a store in DRAM and one connection, whose other end is the test's. For tests of server/net in its own process. */
#ifndef FS_TESTS_NET_ONE_WORKER_H
#define FS_TESTS_NET_ONE_WORKER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/net/net_internal.h"

extern struct server server;
extern struct net net;
extern struct worker worker;
extern int peer; /* the connection's other end, which doesn't block */

/* cmocka's fixtures of a group: server.store is open for all of its tests. */
int open_store(void **state);
int close_store(void **state);

/* Makes the worker and its connection, and returns the latter. The caller ends them by worker_fini and close(peer); it may start the
   worker's thread before. */
struct conn *make_worker(const struct transport *transport, void *transport_data, const struct protocol *protocol);

#endif
