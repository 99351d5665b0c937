/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counting per request, beside the store's own counters: "stats apps", "stats detail", and the events of "watch
 * fetchers" and "watch mutations".
 *
 *   store_execute or its done() --> observe(conn, request) --+--> the application's counters      always
 *                                                            +--> the prefix's counters           stats detail on
 *                                                            +--> events                          somebody watches
 *
 * The application of a request is the part of its key before the first delimiter, or, with --app-source=user, the user
 * who has logged in.
 *
 * Threads: observe() runs on the worker of the connection, takes no lock for an application that the thread knows, and
 * a leaf lock for a new one. observe_init and observe_fini run alone. All other functions from any thread.
 */
#ifndef FS_SERVER_COUNT_OBSERVE_H
#define FS_SERVER_COUNT_OBSERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "server/store/store.h"

#define OBSERVE_NAME_MAX 250u /* bytes of an application's name */
#define APPS_MAX 64u /* further applications share index 0 */
#define DETAIL_PREFIXES_MAX 65535u

struct conf;
struct conn;

/* Makes the tables; aborts when memory is out. Before any thread counts. */
void observe_init(const struct conf *conf);
/* Frees them, when no thread counts any more. The names of struct observe_app are freed with them. */
void observe_fini(void);
/* Returns the bytes of the tables that are not resident yet. Reads the kernel's page map: not for the hot path. */
uint64_t observe_untouched(void);

/* Counts a request that is done; its value must not have been given back yet. */
void observe(const struct conn *conn, const struct store_request *request);
/* Does the same for a request whose done was called, as it waited for flash or for the journal; it was received at
   since_ns of the store's clock. */
void observe_waited(const struct conn *conn, const struct store_request *request, uint64_t since_ns);

/* ---- words about a request that is done, for log and reports ------------------------------------- */

/* Returns the command that has made it, as "get". Static text. */
const char *observe_command_word(const struct store_request *request);
/* Returns its result, as "found" or "not_found". Static text. */
const char *observe_status_word(enum store_result result);
/* Returns the bytes of the value that was found or stored. */
uint64_t observe_moved_bytes(const struct store_request *request);

/* ---- the slow log ------------------------------------------------------------------------------- */

struct slow_settings;
/* Sets the slow log's threshold and keys (slow.h). */
void observe_set_slow(const struct slow_settings *settings);

/* ---- stats detail ------------------------------------------------------------------------------ */

/* Switches "stats detail" on or off. */
void observe_switch_detail(bool on);
/* Returns true if it is on. */
bool observe_detail(void);
/* Writes the line of the next prefix that was counted since the last observe_reset into out: "PREFIX <name> get <n>
   hit <n> set <n> del <n>" and a line end. Returns its length, or 0 after the last prefix. *at must be 0 at the first
   call; each call moves it on. */
unsigned observe_detail_line(unsigned *at, char out[512]);

/* ---- applications ------------------------------------------------------------------------------ */

/* The counts of an application's requests. */
struct observe_app {
	/* It comes from clients' keys, so it may have any byte except the delimiter, or it is a user's name: escape it
	   before it is shown. No 0 ends it. It lives until observe_fini. It is empty for requests without an
	   application and for those of applications beyond the first APPS_MAX. */
	const char *name;
	size_t name_length; /* 0 .. OBSERVE_NAME_MAX bytes */
	uint64_t dram_hits, flash_hits, misses; /* of get and gat */
	uint64_t sets; /* storage commands, stored or not */
	uint64_t deletes;
	uint64_t others; /* incr, decr and touch */
	uint64_t read_bytes; /* value bytes of the hits */
	uint64_t written_bytes; /* key and value bytes of the objects that sets stored */
};

/* Fills out with the counts since the start, whatever was reset. Index 0 has the empty name; the others follow in the
   order in which they came. Returns false if there is no such index. */
FS_MUST_CHECK bool observe_app(unsigned index, struct observe_app *out);
/* Does the same for the counts since the last observe_reset. */
FS_MUST_CHECK bool observe_app_since_reset(unsigned index, struct observe_app *out);
/* Returns how many applications have a name, 0 .. APPS_MAX: the largest index. */
unsigned observe_app_count(void);

/* "stats reset": observe_app_since_reset and observe_detail_line begin at 0 again. */
void observe_reset(void);

#endif
