/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of the daemon: one struct, by which a connection, a report and a scrape reach them. main() fills it before
 * any other thread starts; it is constant from then on.
 */
#ifndef FS_SERVER_CONN_SERVER_H
#define FS_SERVER_CONN_SERVER_H

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

struct server {
	const struct conf *conf;
	struct store *store;
	struct net *net;
	struct service *service;
	struct auth *auth; /* NULL: nobody has to log in */
	struct watch *watch;
	struct dump *dump;
	struct reload *reload; /* NULL before the daemon serves */
	struct metrics *metrics; /* NULL: off */
	char *model; /* of --model, as a path from the root; NULL: none */
	int64_t started_seconds; /* wall clock; the uptime comes from the store's own clock */
};

#endif
