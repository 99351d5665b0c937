/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reports and commands for the operator: "stats" and its kin, and commands that act on the daemon as a whole. Names and
 * meanings are memcached's where it has the same, with the flash counted in. Flashield's own figures are in reports of
 * their own.
 *
 * Threads: any, except where a function says otherwise. Reports may take leaf locks and read /proc: they are not for
 * the hot path.
 */
#ifndef FS_SERVER_ADMIN_ADMIN_H
#define FS_SERVER_ADMIN_ADMIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "server/conn/server.h"

struct conn;

/* The receiver of a report's rows: a protocol, which gives them its form. Texts live until the call returns. */
struct stats_out {
	void (*row)(struct stats_out *out, const char *name, const char *value);
	/* Takes a line of a report that isn't made of rows ("cachedump", "detail dump"), line end included. NULL: such
	   lines are left out. */
	void (*line)(struct stats_out *out, const char *line, size_t length);
	void *context;
	const struct conn *asking; /* the connection that the report is for; NULL: none */
};

#define STATS_END "END\r\n"

/*
 * Starts counting by application, and the threads of watch and dump; sets server->watch and server->dump. FS_OK, or
 * FS_ESYS or FS_ENOMEM with a reason; call admin_destroy then too. Main thread, before the workers start.
 */
FS_MUST_CHECK int admin_start(struct server *server, char reason[256]);
/* Does the duties of each second. Main thread. */
void admin_second(void);
/* Gives all loans back and lends no more. Main thread, while the workers still run. */
void admin_stop(struct server *server);
/* Frees all that admin_start has made. Main thread, when no other thread runs. */
void admin_destroy(struct server *server);

/*
 * Makes the report that the words in [words, end) ask for ("" is the general one), row by row. Returns the line that
 * ends the answer, line end included: END, RESET, OK, or an error. It is constant text.
 */
const char *admin_stats(const struct server *server, const char *words, const char *end, struct stats_out *out);

/* "shutdown": asks the daemon to end, as a signal does. Returns at once. Any thread. */
void admin_shutdown(const struct server *server);

/* Does the daemon serve anything by TLS: clients, or /metrics? Any thread. */
bool admin_has_certificates(const struct server *server);
/*
 * "refresh_certs": reads certificates and keys again, those for clients and those of /metrics. Connections that are open keep
 * theirs. FS_OK, or a code with the first reason; what can't be read leaves the old ones in use. Either is logged. Only with
 * admin_has_certificates. Any thread; blocks on files.
 */
FS_MUST_CHECK int admin_refresh_certificates(const struct server *server, char reason[256]);

/* Gives out one row with a formatted value, cut at 1023 bytes. */
void stats_add(struct stats_out *out, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The reports (stats_*.c): each gives out all its rows. */
void stats_general(const struct server *server, struct stats_out *out);
void stats_settings(const struct server *server, struct stats_out *out);
void stats_flash(const struct server *server, struct stats_out *out);
void stats_classifier(const struct server *server, struct stats_out *out);
void stats_segments(const struct server *server, struct stats_out *out);
void stats_extstore(const struct server *server, struct stats_out *out);
/* Gives out for each row of latency.def: count, mean, 50th, 90th, 99th and 99.9th percentile and maximum in us, with
   decimals below 10. */
void stats_latency(const struct server *server, struct stats_out *out);
void stats_memory(const struct server *server, struct stats_out *out);
/* "stats reset": stats_latency begins anew. /metrics is not affected. */
void stats_latency_reset(void);
void stats_items(const struct server *server, struct stats_out *out);
void stats_slabs(const struct server *server, struct stats_out *out);
void stats_conns(const struct server *server, struct stats_out *out);
void stats_apps(const struct server *server, struct stats_out *out);
void stats_limits(const struct server *server, struct stats_out *out);
void stats_contents(const struct server *server, struct stats_out *out);
/* These return the line that ends the answer, as admin_stats does. */
const char *stats_slow(const struct server *server, const char *words, struct stats_out *out);
const char *stats_hotkeys(const struct server *server, const char *words, struct stats_out *out);
const char *stats_sizes(const struct server *server, bool enabled, struct stats_out *out);
const char *stats_cachedump(const struct server *server, const char *words, struct stats_out *out);

#endif
