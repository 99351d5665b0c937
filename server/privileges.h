/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Privileges beyond those of the user. The daemon gives them up once it has opened its sockets and its flash.
 *
 * Threads: each function acts on the calling thread and on the threads that it starts later. So the main thread calls
 * them, before any other thread starts.
 */
#ifndef FS_SERVER_PRIVILEGES_H
#define FS_SERVER_PRIVILEGES_H

#include <sys/types.h>

#include "base/error.h"

/* Changes from root to this user and its groups, and checks that there is no way back to root. Returns 0, or -1 with a
   reason. */
FS_MUST_CHECK int privileges_become(const char *name, uid_t uid, gid_t gid, char reason[256]);

/* Gives up all capabilities, whether root's or given by a service manager, and the right to get one by an exec. A
   process that is root on purpose (-u root) keeps its own. Returns 0, or -1 with a reason. */
FS_MUST_CHECK int privileges_drop(char reason[256]);

#endif
