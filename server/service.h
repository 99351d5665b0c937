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
 * Reads the service manager's variables of the environment, and removes those that aren't meant for children. Call it
 * before a fork: the sockets and the watchdog are meant for the process that was started. From here on log lines go to
 * the journal with their fields, if standard error is the journal. FS_OK: *out is the caller's. FS_EINVAL with a
 * reason: LISTEN_FDS or WATCHDOG_USEC make no sense.
 */
FS_MUST_CHECK int service_open(struct service **out, char reason[256]);
/* Frees it. NULL is nothing. The sockets stay open: they belong to the network. */
void service_close(struct service *service);

/* ---- sockets handed over ---------------------------------------------------------------------- */

/*
 * Sets *out to the array of the sockets that the service manager has bound, for net_listen, and returns their number, 0
 * for NULL. The array and its names live as long as the service. A name is FileDescriptorName= of the unit; "" or
 * "unknown" where it has none. All descriptors are closed on exec; nothing else about them has been checked.
 */
unsigned service_sockets(const struct service *service, const struct net_socket **out);

/* ---- messages to the service manager ----------------------------------------------------------- */

/* None of these blocks: a message that the manager's queue has no room for is left out. */

/* Tells that the step `what` of the start or of the stop goes on, and asks for two more minutes. bytes of of_bytes are
   done; of_bytes 0: their number is unknown. */
void service_progress(struct service *service, const char *what, uint64_t bytes, uint64_t of_bytes);
/* Does the same for a step that doesn't know how far it is. */
void service_stage(struct service *service, const char *what);
/* Tells that clients are served, for the first time or after a reload. service_second repeats it until the manager
   takes it. */
void service_ready(struct service *service, const struct server *server);
/* For SIGHUP: tells that the configuration is being read again. */
void service_reloading(struct service *service);
/* Tells that clients are served no more. */
void service_stopping(struct service *service);
/* For -d: the parent, which the service manager takes for the daemon, names the child that serves. */
void service_hand_over(pid_t child);

/* Sends lines of the protocol at once, also before service_open; errors are passed over. */
void service_tell_early(const char *text);

/* Returns the seconds within which each worker must have come round for service_second's alive; 0: there is no
   watchdog. */
uint32_t service_patience_seconds(const struct service *service);
/* Call it once a second: sends the line of state, and feeds the watchdog while alive. alive: main loop, workers and
   cleaner do their work. */
void service_second(struct service *service, const struct server *server, bool alive);

/* ---- the line of state (service_status.c) ------------------------------------------------------ */

/* The figures that the line is made from. */
struct service_figures {
	const struct store_status *store;
	const struct store_move_status *move;
	bool flash_wanted; /* --flash-path */
	bool accepting; /* fewer connections than -c are open */
	uint64_t hits, gets; /* since the last line */
	const char *metrics_address; /* --metrics-listen has asked for any port; NULL: it hasn't */
	const char *metrics_trouble; /* why nothing is served there; NULL: it is, or --metrics-listen is off */
	int port; /* -p -1 has asked for any; 0: it hasn't */
	const char *reload_trouble; /* why the last SIGHUP failed; NULL or "": it didn't */
	const char *restart_options; /* what needs a restart since a SIGHUP; NULL or "": nothing */
};
/* Writes the line, cut at size bytes, into out: "1234 objects, 1000 in DRAM and 234 on flash; hit ratio 93.2 %; flash
   12 % full". If something doesn't work the line begins with "Degraded: " and that; options that need a restart come
   next. Any thread. */
void service_status_text(const struct service_figures *figures, char *out, size_t size);

#endif
