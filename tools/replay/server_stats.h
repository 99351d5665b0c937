/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the server says of itself: "stats", "stats flash", "stats classifier" and "stats settings"
 * as name and value. A server that doesn't know one of them (plain memcached) leaves it empty.
 *
 * Threads: one at a time. Blocks for the server's answers. Ownership: fini frees the entries.
 */
#ifndef FS_TOOLS_REPLAY_SERVER_STATS_H
#define FS_TOOLS_REPLAY_SERVER_STATS_H

#include <stdbool.h>
#include <stddef.h>

enum stats_group { STATS_GENERAL, STATS_FLASH, STATS_CLASSIFIER, STATS_SETTINGS, STATS_GROUPS };

struct stats_entry {
	enum stats_group group;
	char name[64];
	char value[160];
};

struct server_stats {
	int fd; /* of a blocking connection of its own */
	struct stats_entry *entries;
	size_t count;
	size_t places;
};

/* Reads all groups anew. An unreachable server leaves nothing. */
void server_stats_read(struct server_stats *stats);
void server_stats_fini(struct server_stats *stats);

/* "version"; true if it is told: a proxy does that, although it has no stats. */
bool server_tells_version(int fd);
/* "flush_all"; true if the server did. */
bool server_flush(int fd);

/* The value's text, or NULL. */
const char *server_stats_text(const struct server_stats *stats, enum stats_group group, const char *name);

/* False where the server has no such number. */
bool server_stats_number(const struct server_stats *stats, enum stats_group group, const char *name, double *value);

/* What was added between two readings; false where one lacks it. */
bool server_stats_added(const struct server_stats *before, const struct server_stats *after, enum stats_group group,
			const char *name, double *value);

#endif
