/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the operator sees: the reports behind "stats". Names and meanings are memcached's where it
 * has them, with the flash counted in; what is Flashield's own is in reports of its own.
 *
 * Threads: any. May lock leaves and read /proc; not for the hot path.
 */
#ifndef FS_SERVER_ADMIN_ADMIN_H
#define FS_SERVER_ADMIN_ADMIN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "server/conn/server.h"

/* Where rows go: the protocol gives them its form. */
struct stats_out {
	void (*row)(struct stats_out *out, const char *name, const char *value);
	/* Reports that are no rows ("cachedump", "detail dump"): a line, line end included. NULL: they are left out. */
	void (*line)(struct stats_out *out, const char *line, size_t length);
	void *context;
};

#define STATS_END "END\r\n"

/*
 * Starts what reports need beside the daemon's own threads: counts by application, watch and dump. FS_ESYS with a
 * reason. Main thread. admin_stop gives all loans back while the workers still run; admin_destroy, also after
 * an admin_start that failed, when no other thread runs any more.
 */
FS_MUST_CHECK int admin_start(struct server *server, char reason[256]);
void admin_stop(struct server *server);
void admin_destroy(struct server *server);

/*
 * The report that the words in [words, end) ask for ("" is the general one), row by row. Returns the
 * line to end the answer with, line end included: END, RESET, OK, or an error.
 */
const char *admin_stats(const struct server *server, const char *words, const char *end, struct stats_out *out);

/* "shutdown": asks the daemon to end, as a signal does. Returns at once. Any thread. */
void admin_shutdown(const struct server *server);

/*
 * "refresh_certs": reads certificates and keys again. Connections that are open keep theirs. FS_OK, or a code with the
 * reason; the old ones stay in use then. Any thread; blocks on files.
 */
FS_MUST_CHECK int admin_refresh_certificates(const struct server *server, char reason[256]);

/* One row with a formatted value. */
void stats_add(struct stats_out *out, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The reports (stats_*.c). */
void stats_general(const struct server *server, struct stats_out *out);
void stats_settings(const struct server *server, struct stats_out *out);
void stats_flash(const struct server *server, struct stats_out *out);
void stats_classifier(const struct server *server, struct stats_out *out);
void stats_segments(const struct server *server, struct stats_out *out);
/* Of each row of latency.def: count, mean, 50th, 90th, 99th and 99.9th percentile and maximum in us, with decimals below 10. */
void stats_latency(const struct server *server, struct stats_out *out);
void stats_memory(const struct server *server, struct stats_out *out);
void stats_latency_reset(void); /* they begin anew; /metrics goes on */
void stats_items(const struct server *server, struct stats_out *out);
void stats_slabs(const struct server *server, struct stats_out *out);
void stats_conns(const struct server *server, struct stats_out *out);
void stats_apps(const struct server *server, struct stats_out *out);
/* These return the line to end with, as admin_stats does. */
const char *stats_sizes(const struct server *server, bool enabled, struct stats_out *out);
const char *stats_cachedump(const struct server *server, const char *words, struct stats_out *out);

#endif
