/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon and its service manager: systemd's protocol of readiness, watchdog, inherited sockets, and the journal.
 * Without a service manager each of these does nothing.
 *
 *   environment (NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS, JOURNAL_STREAM) --service_open--> struct service
 *   start:  service_progress ... service_ready          READY=1 when clients are served, not before
 *   then:   service_second, once a second               STATUS=, and WATCHDOG=1 only while all is alive
 *   SIGHUP: service_reloading, service_ready            RELOADING=1, READY=1
 *   stop:   service_stopping, service_stage ...         STOPPING=1, and more time while it goes on
 *
 * A service manager that can't be reached is no reason to stop: the log has a line about it, once.
 *
 * Threads: the main thread; log lines to the journal from any.
 */
#ifndef FS_SERVER_SERVICE_H
#define FS_SERVER_SERVICE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct net_socket;
struct server;
struct service;
struct store_status;

/*
 * Reads the environment, and takes from it what isn't for children; before a fork, as the sockets and the watchdog are
 * the process's that was started. Log lines go to the journal with their fields from here on, where standard error is the
 * journal. FS_EINVAL with a reason: LISTEN_FDS or WATCHDOG_USEC make no sense.
 */
FS_MUST_CHECK int service_open(struct service **out, char reason[256]);
void service_close(struct service *service); /* NULL is nothing; the sockets are whose they were given to */

/* ---- sockets handed over ---------------------------------------------------------------------- */

/*
 * The sockets that the service manager has bound, for net_listen. Returns their number, 0 for NULL. *out is their array; it and
 * the names in it live as long as the service. A name is FileDescriptorName= of the unit, "" or "unknown" where it has none. All
 * descriptors are closed on exec; nothing else is known of them.
 */
unsigned service_sockets(const struct service *service, const struct net_socket **out);

/* ---- what the service manager is told ---------------------------------------------------------- */

/* A step of the start or of the stop that may take minutes goes on: it gets another two. of_bytes 0: unknown. */
void service_progress(struct service *service, const char *what, uint64_t bytes, uint64_t of_bytes);
/* The same for a step that can't tell how far it is. */
void service_stage(struct service *service, const char *what);
void service_ready(struct service *service, const struct server *server);
void service_reloading(struct service *service);
void service_stopping(struct service *service);
/* -d: the parent, which the service manager takes for the daemon, names the child that serves. */
void service_hand_over(pid_t child);

/* Seconds within which the workers must have come round for service_second's alive; 0: nobody asks. */
uint32_t service_patience_seconds(const struct service *service);
/* Once a second. alive: main loop, workers and cleaner do their work; while they don't, the watchdog isn't fed. */
void service_second(struct service *service, const struct server *server, bool alive);

/* ---- the line of state (service_status.c) ------------------------------------------------------ */

/* What it is made from. */
struct service_figures {
	const struct store_status *store;
	bool flash_wanted; /* --flash-path */
	bool accepting; /* not at -c */
	uint64_t hits, gets; /* since the last line */
};
/* "1234 objects, 1000 in DRAM and 234 on flash; hit ratio 93.2 %; flash 12 % full"; first, after "Degraded: ", what doesn't
   work. One line, cut at size. */
void service_status_text(const struct service_figures *figures, char *out, size_t size);

#endif
