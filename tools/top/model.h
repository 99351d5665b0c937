/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All servers, what they have said, and what it comes to: the figures of each, of all, and their histories.
 *
 * A round is one poll of every server. It ends when all have answered or failed, or when the next one begins; then
 * figures are made anew and histories gain a value (NAN where nothing is known).
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
	unsigned rounds; /* that have ended */
	bool in_round;
	bool based; /* totals count from a key's press */
};

struct model *model_create(const char *const *addresses, unsigned count, int64_t timeout_us);
void model_destroy(struct model *model);

/* Begins a round; one that still runs ends as it is. */
void model_ask(struct model *model, int64_t now_us);
/* After something has happened to a server; sample is what peer_step returned. True when the round has ended by it. */
bool model_step(struct model *model, struct server *server, bool sample);

/* Totals count from now, or (again) from the servers' start. */
void model_rebase(struct model *model);

/* Does the server answer? */
bool server_answers(const struct server *server);
/* The largest value of the last `width` ones; 0 if there is none. */
double history_most(const struct history *history, enum series series, int width);

#endif
