/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's "stats", "stats flash", "stats classifier" and "stats settings" as names and values.
 * A group that the server doesn't know (plain memcached) stays empty.
 *
 * Threads: one at a time. Blocks for the server's answers. Ownership: fini frees the entries.
 */
#ifndef FS_TOOLS_REPLAY_SERVER_STATS_H
#define FS_TOOLS_REPLAY_SERVER_STATS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "tools/common/client.h"

enum stats_group { STATS_GENERAL, STATS_FLASH, STATS_CLASSIFIER, STATS_SETTINGS, STATS_GROUPS };

struct stats_entry {
	enum stats_group group;
	char name[64];
	char value[160];
};

struct server_stats {
	struct client *client; /* of its own, ready; borrowed */
	struct stats_entry *entries;
	size_t count;
	size_t room;
};

/* Reads all groups anew. The entries of an unreachable server are empty. fini frees the entries. */
void server_stats_read(struct server_stats *stats);
void server_stats_fini(struct server_stats *stats);

/* Asks for "version". True if the server tells it; a proxy does, although it has no stats. Otherwise said has the
   server's words, or why there are none. */
FS_MUST_CHECK bool server_tells_version(struct client *client, char said[CLIENT_ERROR_BYTES]);
/* Sends "flush_all". True if the server did it; else said is as above. */
FS_MUST_CHECK bool server_flush(struct client *client, char said[CLIENT_ERROR_BYTES]);

/* Returns the value's text, which belongs to stats, or NULL. */
const char *server_stats_text(const struct server_stats *stats, enum stats_group group, const char *name);

/* Stores the number in *value, or returns false if the server has none of this name, or a ratio of nothing. */
FS_MUST_CHECK bool server_stats_number(const struct server_stats *stats, enum stats_group group, const char *name,
				       double *value);

/* Stores the difference of two readings in *value, or returns false if one of them lacks it. */
FS_MUST_CHECK bool server_stats_added(const struct server_stats *before, const struct server_stats *after,
				      enum stats_group group, const char *name, double *value);

#endif
