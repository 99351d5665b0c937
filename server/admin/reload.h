/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGHUP: options, users and certificates are read again.
 *
 * Of the options those with CONF_RELOAD take their new value at once. struct conf stays constant, as all threads read it:
 * each new value is an atomic of whom it concerns (the log, the store). A file that can't be used changes nothing;
 * any other option that has changed is named, as one that needs a restart. Users and certificates that can't be used
 * leave the old ones in use. All is told in the log, each change a line.
 *
 * What a client has set meanwhile ("verbosity", "cache_memlimit") stays, unless the file's value has changed.
 *
 * Threads: the main thread, but for reload_show.
 */
#ifndef FS_SERVER_ADMIN_RELOAD_H
#define FS_SERVER_ADMIN_RELOAD_H

#include "server/conn/server.h"

struct reload;

/* argc and argv are main's; both they and the server outlive it. */
struct reload *reload_create(const struct server *server, int argc, char **argv);
void reload_destroy(struct reload *reload); /* NULL is nothing */
/* Blocks on files. */
void reload_all(struct reload *reload);
/* Sets the fields of a copy of the options to what is in force now. Any thread. */
void reload_show(const struct server *server, struct conf *copy);

#endif
