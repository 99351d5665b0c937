/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to commands and answers to counts: the memcached text protocol as a client sees it,
 * without a system call.
 *
 * Order: a key stays on one connection, so what a get must find is settled when it is sent: the
 * version of the last write sent before it. Where a miss is followed by a fill, later requests on
 * a key that isn't known to be there wait for the get's answer, so that pipelining doesn't turn one
 * miss into several. Where the last answer found the key, gets go out without waiting.
 *
 * Threads: a player belongs to one worker. The key states are shared between workers, each key
 * used by one.
 */
#ifndef FS_TOOLS_REPLAY_PLAY_H
#define FS_TOOLS_REPLAY_PLAY_H

#include "tools/replay/conn.h"
#include "tools/replay/measure.h"
#include "tools/replay/options.h"
#include "tools/replay/schedule.h"

/* A key's state: the version of its last write, and */
#define KEY_UNRESOLVED (1u << 31) /* a request whose answer others wait for is under way */
#define KEY_PRESENT (1u << 30) /* the last answer found or stored it */
#define KEY_VERSION (KEY_PRESENT - 1)

struct player {
	const struct replay_options *options;
	const struct spool *spool;
	uint32_t *keys; /* state per ordinal (key * copies + copy) */
	struct measure measure;
	uint64_t answered; /* requests of the trace that have their answer */
	uint64_t now_ns; /* set by the worker: when what follows is sent or was received */
	char error[256];
};

/* Takes a request of the schedule over. The connection's backlog must have room. */
void play_request(struct player *player, struct conn *conn, const struct schedule_item *item, bool measured);

/* Sends from the backlog what may go now (into the output buffer). */
void play_backlog(struct player *player, struct conn *conn);

/* Takes all whole answers out of the input buffer. FS_EINVAL, and player->error, if the server
   sends what is no answer. */
int play_answers(struct player *player, struct conn *conn) FS_MUST_CHECK;

#endif
