/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is told of each finished request on a key, beside the store's own counters: "stats apps", "stats detail", and the
 * events of "watch fetchers" and "watch mutations".
 *
 *   store_execute or its done() --> observe(conn, request) --+--> the application's counters      always
 *                                                            +--> the prefix's counters           stats detail on
 *                                                            +--> events                          somebody watches
 *
 * An application is what stands before the first delimiter in the key, or, with --app-source=user, who has authenticated.
 *
 * Threads: observe() from the worker of the connection; the rest from any.
 */
#ifndef FS_SERVER_COUNT_OBSERVE_H
#define FS_SERVER_COUNT_OBSERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBSERVE_NAME_MAX 250u /* bytes of an application's name */
#define APPS_MAX 64u /* the others share one */
#define DETAIL_PREFIXES_MAX 65535u

struct conf;
struct conn;
struct store_request;

void observe_init(const struct conf *conf); /* before any thread counts */
void observe_fini(void); /* when none does any more */
uint64_t observe_untouched(void); /* of its tables, the bytes that are not resident yet */

/* The request is done and its value not yet given back. */
void observe(const struct conn *conn, const struct store_request *request);

/* stats detail on, off. */
void observe_switch_detail(bool on);
bool observe_detail(void);
/* stats detail dump: "PREFIX <name> get <n> hit <n> set <n> del <n>" for each prefix. The line's length; 0: that was all.
   *at: 0 at first. */
unsigned observe_detail_line(unsigned *at, char out[512]);

/* What an application has asked for since the start, whatever was reset. */
struct observe_app {
	/* From clients' keys, so any bytes but a delimiter, or a user's name: whoever shows it escapes it. Not ended by a 0; until
	   observe_fini. Empty: of requests without an application, and of applications beyond the first APPS_MAX; what
	   word stands for these may be an application's name too. */
	const char *name;
	size_t name_length; /* 0 .. 250 */
	uint64_t dram_hits, flash_hits, misses; /* of get and gat */
	uint64_t sets; /* storage commands, stored or not */
	uint64_t deletes;
	uint64_t others; /* incr, decr and touch */
	uint64_t read_bytes; /* value bytes of the hits */
	uint64_t written_bytes; /* key and value bytes of what the sets stored */
};
/* index 0: the empty name; then in the order in which they came. False: there are no more. Any thread. */
bool observe_app(unsigned index, struct observe_app *out);
bool observe_app_since_reset(unsigned index, struct observe_app *out);
unsigned observe_app_count(void);

void observe_reset(void); /* stats reset */

#endif
