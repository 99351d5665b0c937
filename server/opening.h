/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A start that is ended while it opens the store, also where it waits for the run before it, or for a drive that doesn't
 * answer. A thread takes
 * SIGINT, SIGTERM and SIGUSR1 for as long as the start only looks at what the last run has left: the process ends at
 * once then, with exit code 0, and the next start finds all of it. Behind opening_settle a signal is one of stop.h's: the
 * start goes on until it can be stopped cleanly.
 *
 *   stop_take_signals | opening_begin | daemon_lock_take | store_open: looks, opening_settle, takes over | opening_end | threads, clients
 *
 * A kernel that lets nothing end a process that waits for its drive delays the end, as it would delay a SIGKILL.
 *
 * Main thread.
 */
#ifndef FS_SERVER_OPENING_H
#define FS_SERVER_OPENING_H

#include "conf/conf.h"
#include "server/service.h"

/* Starts the thread; without one, signals wait until the store is open. conf and service are used until opening_end. */
void opening_begin(const struct conf *conf, struct service *service);
/* From here on the start goes on, as it changes what the last run has left. Doesn't return if a signal ends it. It may be
   called again. A hook of the store. */
void opening_settle(void);
/* Ends the thread; signals are taken as before opening_begin, those that came meanwhile too. errno stays. */
void opening_end(void);

#endif
