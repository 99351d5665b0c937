/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memcached text protocol of a client: turns requests into commands and answers into counts. It
 * makes no system call.
 *
 * Order: a key stays on one connection, so a get must find the version of the last write sent before it.
 * In modes that fill after a miss, later requests on a key that isn't known to be there wait for the
 * get's answer; otherwise pipelining would turn one miss into several. If the last answer found the key,
 * gets go out without waiting.
 *
 * Threads: a player belongs to one worker. The key states are shared between workers, each key
 * used by one.
 */
#ifndef FS_TOOLS_REPLAY_PLAY_H
#define FS_TOOLS_REPLAY_PLAY_H

#include "tools/common/schedule.h"
#include "tools/replay/conn.h"
#include "tools/replay/measure.h"
#include "tools/replay/options.h"

/* A key's state: the version of its last write, and two flags. */
#define KEY_UNRESOLVED (1u << 31) /* a request is under way, and others wait for its answer */
#define KEY_PRESENT (1u << 30) /* the last answer found or stored it */
#define KEY_VERSION (KEY_PRESENT - 1)

struct player {
	const struct replay_options *options;
	const struct spool *spool;
	uint32_t *keys; /* state per ordinal (key * copies + copy) */
	struct measure measure;
	uint64_t answered; /* requests of the trace that have their answer */
	uint64_t now_ns; /* set by the worker: the time of the following sends or answers */
	char error[256];
};

/* Puts a request of the schedule into the connection's backlog, which must have room. */
void play_request(struct player *player, struct conn *conn, const struct schedule_item *item, bool measured);

/* Moves the requests that may go now from the backlog into the output buffer. */
void play_backlog(struct player *player, struct conn *conn);

/* Takes all whole answers out of the input buffer. FS_EINVAL, with a text in player->error, if the server sends bytes
   that are no answer. */
int play_answers(struct player *player, struct conn *conn) FS_MUST_CHECK;

#endif
