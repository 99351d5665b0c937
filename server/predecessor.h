/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A start waits for the run before it, which still answers or saves: the lock of the state directory is its own until it has
 * ended (store/daemon_lock.h). Log and service manager are told, and a signal ends the start (opening.h).
 *
 * The wait has an end, as the other one may hang: what that run may take to save by the options of this one, which are its own
 * as a rule, and a minute for what it does before and behind that. Then the start fails, and the service manager tries again.
 * Serving all the same would bring back what this run changes: the other one may still save.
 *
 * Main thread.
 */
#ifndef FS_SERVER_PREDECESSOR_H
#define FS_SERVER_PREDECESSOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "conf/conf.h"
#include "server/service.h"

struct predecessor {
	const struct conf *conf;
	struct service *service;
	/* Zeroed by the caller. */
	uint64_t began_us, told_us; /* of the boot-time clock; 0: not yet */
	bool logged;
};

/* Sleeps for some milliseconds: daemon_lock_config.wait, with a struct predecessor. False: the patience is over. */
bool predecessor_wait(void *context, pid_t holder);

#endif
