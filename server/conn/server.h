/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of the daemon share: one struct, filled by main() before any thread starts and
 * constant from then on.
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
	struct auth *auth; /* NULL: nobody has to authenticate */
	struct watch *watch;
	struct dump *dump;
	struct reload *reload; /* NULL before the daemon serves */
	struct metrics *metrics; /* NULL: off */
	int64_t started_seconds; /* of the wall clock; uptime comes from the store's own clock */
};

#endif
