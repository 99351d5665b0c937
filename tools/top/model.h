/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All servers with their samples, the figures of each and of all, and the histories of figures.
 *
 * A round is one poll of every server. It ends when all have answered or failed, or when the next round begins. Then
 * the figures are computed anew and the histories gain a value (NAN if it is unknown).
 *
 * Threads: one owner. Ownership: destroy frees all.
 */
#ifndef FS_TOOLS_TOP_MODEL_H
#define FS_TOOLS_TOP_MODEL_H

#include "tools/top/figures.h"
#include "tools/top/peer.h"

#define SERVERS_MAX 16u
#define HISTORY_VALUES 1000u

enum series { SERIES_HITS, SERIES_REQUESTS, SERIES_WRITTEN, SERIES_READ, SERIES_COUNT };

struct history {
	float values[SERIES_COUNT][HISTORY_VALUES]; /* the oldest first */
	size_t count;
};

/* The figures of a server, or of all. */
struct summary {
	struct basis basis;
	double figures[FIG_COUNT];
	struct history history;
};

struct server {
	struct peer peer;
	struct track track;
	struct summary summary;
	bool pending; /* the round waits for it */
};

struct model {
	struct server *servers;
	unsigned count;
	struct summary all;
	unsigned rounds; /* ended ones */
	bool in_round;
	bool based; /* totals count from the moment of a key */
};

/* Makes a model of at most SERVERS_MAX servers. access and addresses are borrowed. Ends the program when memory is out. */
struct model *model_create(const struct access *access, const char *const *addresses, unsigned count,
			   int64_t timeout_us);
void model_destroy(struct model *model);

/* Begins a round. A round that still runs ends with its answers so far. */
void model_ask(struct model *model, int64_t now_us);
/* Call it after each peer_step, with its result as sample. True when the round has ended. */
bool model_step(struct model *model, struct server *server, bool sample);

/* Makes totals count from now on. A server that restarts or resets its counters loses this base. */
void model_rebase(struct model *model);

/* Returns whether the server answers. */
bool server_answers(const struct server *server);
/* Returns the largest of the last `width` values; 0 if there is none. */
double history_most(const struct history *history, enum series series, int width);

#endif
