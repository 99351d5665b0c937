/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGHUP: reads options, users and certificates again.
 *
 * Options with CONF_RELOAD take their new value at once. struct conf stays constant, as all threads read it: each new
 * value goes into an atomic of the part that it concerns (the log, the store). A file that can't be used changes
 * nothing. Any other option that has changed is named, as one that needs a restart. Users and certificates that can't
 * be used leave the old ones in use. The log has a line for each change.
 *
 * A value that a client has set meanwhile ("verbosity", "cache_memlimit") stays, unless the file's value has changed.
 *
 * Threads: the main thread, except for reload_show and reload_shown.
 */
#ifndef FS_SERVER_ADMIN_RELOAD_H
#define FS_SERVER_ADMIN_RELOAD_H

#include "server/conn/server.h"

struct reload;

/* The caller owns the result. argc and argv are main's; both they and the server must outlive it. Aborts when memory is
   out. */
struct reload *reload_create(const struct server *server, int argc, char **argv);
void reload_destroy(struct reload *reload); /* NULL is nothing */
/* Reads all again. Blocks on files. */
void reload_all(struct reload *reload);
/* Returns why the last reading could not take all, or "" if it could, or none was asked for. Main thread; the text lives
   until the next reading. */
const char *reload_trouble(const struct reload *reload);
/* Returns the names of the options that need a restart by the last reading of the options that succeeded, separated by
   ", ", the last ones cut off where they are many; "" if none does. Main thread; the text lives until the next reading. */
const char *reload_restart_options(const struct reload *reload);
/* Returns both as figures, for server->reload_status. They live as long as reload. */
const struct reload_status *reload_status(const struct reload *reload);
/* Sets the fields of a copy of the options to the values in force, app_limit to NULL where there is no memory for it;
   reload_shown frees those that are the copy's own. Any thread. */
void reload_show(const struct server *server, struct conf *copy);
/* Frees what reload_show has made for the copy. Any thread. */
void reload_shown(const struct server *server, struct conf *copy);

#endif
