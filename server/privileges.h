/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a daemon may beyond its user: nothing, once it has opened its sockets and its flash.
 *
 * Threads: each function acts on the calling thread and on those it starts later: the main thread, before others start.
 */
#ifndef FS_SERVER_PRIVILEGES_H
#define FS_SERVER_PRIVILEGES_H

#include <sys/types.h>

/* From root to this user and its groups, for good; that root can't be had back is tried. 0 or -1 with a reason. */
int privileges_become(const char *name, uid_t uid, gid_t gid, char reason[256]);

/* No capabilities, neither those of root nor what a service manager gave, and none to be had by an exec. A process
   that is root on purpose (-u root) keeps its own. 0 or -1 with a reason. */
int privileges_drop(char reason[256]);

#endif
