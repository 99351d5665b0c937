/* SPDX-License-Identifier: BSD-3-Clause */
/* flush_all, part of store.h, which includes it. */
#ifndef FS_STORE_FLUSH_H
#define FS_STORE_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct store;
struct store_request;
struct store_worker;

/* For flush_all: everything that was stored before now is gone (exptime <= 0), or will be when that time comes (exptime
   as in store_expiry). A later call replaces a pending one. With --journal=sync it is in force when this returns, and
   durable later. */
void store_flush_all(struct store *store, int64_t exptime);
/*
 * Does the same for a client's request, of which done, owner and fate are set. True: it may be answered, and the result is
 * STORE_FLUSHED (done is not called). False: the journal doesn't have it yet, and store_worker_poll calls done(request)
 * later. The worker's thread, as for store_execute.
 */
FS_MUST_CHECK bool store_flush(struct store_worker *worker, struct store_request *request, int64_t exptime);

#endif
