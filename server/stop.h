/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A clean stop, as far as it saves what DRAM holds: its deadline, and a second signal that cuts it short.
 *
 *   stop_take_signals   before the store takes over what the last run has saved; the network takes them then, and gives them
 *                       back at its end
 *   stop_asked_early    one came before the network took them
 *   stop_begins         the first signal: the deadline runs
 *   stop_save           all threads have ended: objects are saved, and the service manager is told how far it is
 *
 * Main thread, except for stop_cut.
 */
#ifndef FS_SERVER_STOP_H
#define FS_SERVER_STOP_H

#include <stdbool.h>

#include "conf/conf.h"
#include "server/service.h"
#include "server/store/store.h"

/* Returns how long saving may take. */
uint64_t stop_saving_us(const struct conf *conf);
/* From here on SIGINT, SIGTERM and SIGUSR1 call stop_cut, while the network has not taken them. */
void stop_take_signals(void);
/* Notes the deadline of --stop-deadline from now on. Also for a start that fails. */
void stop_begins(const struct conf *conf);
/* Makes the deadline now. Any thread, and in a signal handler. */
void stop_cut(void);
/* Did a signal come before the network took them? It is taken for the first one then, and nothing is cut. */
FS_MUST_CHECK bool stop_was_early(void);
/* Saves what DRAM holds, and then the state of the flash, after store_stop. */
void stop_save(struct store *store, struct service *service);

#endif
