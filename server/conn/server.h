/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of the daemon: one struct, by which a connection, a report and a scrape reach them. main() fills it before
 * any other thread starts; it is constant from then on.
 */
#ifndef FS_SERVER_CONN_SERVER_H
#define FS_SERVER_CONN_SERVER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct auth;
struct conf;
struct dump;
struct metrics;
struct net;
struct service;
struct reload;
struct store;
struct watch;

/* How reloads (SIGHUP) went. Any thread. */
struct reload_status {
	_Atomic bool failed; /* the last one could not take over all */
	_Atomic uint64_t failures; /* since the start */
	_Atomic unsigned restart_options; /* options that need a restart; 0 for a moment while a reading is under way */
};

struct server {
	const struct conf *conf;
	struct store *store;
	struct net *net;
	struct service *service;
	struct auth *auth; /* NULL: nobody has to log in */
	struct watch *watch;
	struct dump *dump;
	struct reload *reload; /* NULL before the daemon serves */
	const struct reload_status *reload_status; /* likewise */
	struct metrics *metrics; /* NULL: off */
	const char *metrics_address; /* that is served; NULL: none */
	const char *metrics_trouble; /* why it isn't served, though it was asked for; NULL: it is */
	char *model; /* of --model, as a path from the root; NULL: none */
	int64_t started_seconds; /* wall clock; the uptime comes from the store's own clock */
};

#endif
