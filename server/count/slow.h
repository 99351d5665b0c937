/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The slow log: requests that took a threshold or longer, the last SLOW_ENTRIES of them, with the parts of their time.
 *
 *   received ---- executed ------------------- answered to the kernel      at once: queue, run, send
 *      | queue       | run     | send             |
 *   received -------- the drive has the read ---- answered ---- sent       by flash: queue, flash, send
 *      | queue          | flash                      | send        |
 *
 * The time of a request is that of base/metrics/latency.h: from receiving its bytes to giving its answer to the kernel.
 * Requests that are received together are answered together. When such a batch is slow, all of its requests are, as all of
 * them waited; they are counted (slow_requests), and the log gets the one that took longest by itself, with their number. A
 * request that waited for flash is an entry of its own. With --journal=sync the wait for the journal is part of send.
 *
 * While the log is off, requests pay nothing. While it is on, each one pays a reading of the clock.
 *
 * Keys are clients' data: an entry has a hash of its key (key_hash.h), and the key itself only if slow_set was told so. All
 * of it lies in the heap, which core dumps leave out.
 *
 * Threads: slow_turn, slow_note, slow_note_waited and slow_sent belong to the worker of the connection; they take a leaf lock
 * for a slow request. slow_set, slow_copy and the rest: any thread. slow_init and slow_fini run alone. Errors: without
 * memory an entry is lost, or its key.
 */
#ifndef FS_SERVER_COUNT_SLOW_H
#define FS_SERVER_COUNT_SLOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define SLOW_ENTRIES 1024u
#define SLOW_PEER_BYTES 128u

struct conn;
struct store_request;
struct store_worker;

enum slow_tier { SLOW_NOWHERE, SLOW_DRAM, SLOW_FLASH };

struct slow_entry {
	uint64_t number; /* 1 for the first since the start, then one more each */
	int64_t at; /* when it was sent, in wall seconds */
	uint64_t total_us, queue_us, run_us, flash_us, send_us; /* total: with what is in none of the others */
	uint64_t hash; /* key_hash */
	uint64_t bytes; /* of the value that was found or stored */
	const char *command, *result; /* static text */
	enum slow_tier tier; /* where the object was found, or stored */
	uint32_t together; /* requests of its batch, itself included; 1 if it waited for flash */
	uint32_t reads; /* flash reads that were made for it */
	int conn; /* conn_number */
	char peer[SLOW_PEER_BYTES]; /* conn_peer; "" if it wasn't known to be slow while it was executed */
	unsigned char *key; /* its length in the first byte; NULL: not kept */
};

struct slow_settings {
	uint64_t threshold_us; /* 0: off */
	bool keys; /* entries have keys */
};

/* The threshold in ns; 0: the log is off. Written by slow_set alone. */
extern _Atomic uint64_t slow_threshold_ns;

/* Is the log on? */
static inline bool slow_is_on(void)
{
	return atomic_load_explicit(&slow_threshold_ns, memory_order_relaxed) != 0;
}

/* Begins with the log off and empty. */
void slow_init(void);
/* Frees all, when no thread notes any more. */
void slow_fini(void);
/* Sets threshold and keys from now on. Switching keys off forgets the keys of all entries. */
void slow_set(const struct slow_settings *settings);
/* Fills out with the present settings. */
void slow_get(struct slow_settings *out);

/* A turn of the worker begins at now_ns, when what is executed next was received. */
void slow_turn(uint64_t now_ns);
/* A request has just been executed at once. Its value must not have been given back yet. */
void slow_note(const struct conn *conn, const struct store_request *request);
/* A request that was received at since_ns and waited for flash or the journal has just been done. */
void slow_note_waited(const struct conn *conn, const struct store_request *request, uint64_t since_ns);
/* The answers of all that was noted were given to the kernel. Reads the clock if something was. */
void slow_sent(const struct store_worker *store);

/* Copies the newest entries, the newest first, at most `most`, with copies of their keys. Returns their number; out[i].key is
   to be freed by mem_free. *newest is the number of the newest entry that there ever was; 0: none. */
unsigned slow_copy(struct slow_entry *out, unsigned most, uint64_t *newest);

#endif
