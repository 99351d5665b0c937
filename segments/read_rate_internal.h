/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast the drive answers one reader, and what follows from it: how many reads the drive is given
 * at a time, how many more may wait for it, and whether it answers at all.
 *
 *   a request's patience   |<------------- --flash-read-timeout ------------------>|
 *   what may go by         |<-- waiting: 1/4 -->|<-- with the drive: 1/2 -->| spare |
 *
 * A drive that is given more than it can do keeps the surplus in a queue of its own, where nothing can
 * be taken out: each read is then answered, but too late, and the drive works for nobody. So the queue
 * is kept on our side. By Little's law a read that was sent as the n-th in flight and took a time t
 * says that the drive does n reads in t; the mean of t / n is the service time, and the depth is what
 * the drive does in half of the patience. A new request is taken while all that is ahead of it is done
 * within three quarters; one that has begun already (the other keys of a multiget, a change that must
 * know what it changes) within all of it.
 *
 * Nobody knows of an answer before the reader looks. Where the machine or a long piece of other work kept it from
 * that, the drive isn't blamed: of the time between two looks the part beyond READ_RATE_LOOK_NS, or beyond an eighth of
 * the patience, counts as nothing.
 *
 * Threads: the reader's owner. Pure arithmetic; the caller says what time it is.
 */
#ifndef FS_SEGMENTS_READ_RATE_INTERNAL_H
#define FS_SEGMENTS_READ_RATE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#define READ_RATE_LOOK_NS 10000000u
#define READ_RATE_DEPTH_LEAST 4u /* however slow the drive is: fewer would not keep its own queue busy */

struct read_rate {
	uint64_t patience_ns; /* 0: for ever, and nothing below has an effect */
	double service_ns; /* 0: nothing has been answered yet */
	uint64_t looked_ns; /* when the reader last took what the drive had answered */
	uint64_t late_since_ns; /* the first read that was late since one was answered in time; 0: none */
	/* Reads that were answered within the patience, and those that the drive had for longer: in the window that
	   began then, and in the one before. */
	uint64_t window_ns;
	uint32_t in_time[2], late[2];
};

/* What the reader has at the moment. */
struct read_queue {
	unsigned with_drive; /* sent and not answered, those included that are late */
	unsigned fresh; /* of these, those that aren't late */
	uint64_t oldest_ns; /* when the oldest fresh one was sent, and ... */
	unsigned company; /* ... how many were with the drive then, itself included; without one, anything */
	uint64_t waiting; /* not sent yet */
};

/* The drive has answered a read that was sent at sent_ns; company reads were with the drive then, this one included. */
void read_rate_answered(struct read_rate *rate, uint64_t sent_ns, unsigned company, uint64_t now_ns);
/* All that the drive has answered by now was told. */
void read_rate_looked(struct read_rate *rate, uint64_t now_ns);
/* The drive has had a read for as long as the patience: told once for each. */
void read_rate_late(struct read_rate *rate, uint64_t now_ns);

/* How many reads the drive may have at a time: READ_RATE_DEPTH_LEAST .. most. */
unsigned read_rate_depth(const struct read_rate *rate, unsigned most);
/* Will one read more be answered in time? begun: it belongs to a request that was taken. While all that the drive
   was given last is late, one is taken at a time. */
bool read_rate_admits(const struct read_rate *rate, const struct read_queue *queue, bool begun, uint64_t now_ns);
/* What a read that is sent now is expected to take. */
uint64_t read_rate_latency_ns(const struct read_rate *rate, const struct read_queue *queue, uint64_t now_ns);

/*
 * Is the drive of no use? At least half of the reads of the last one to two windows, and eight of them, were
 * late; or some was late, and for twice the patience and a second none was answered in time.
 */
bool read_rate_silent(struct read_rate *rate, uint64_t now_ns);
/* Forgets what was late: the drive is given another chance. */
void read_rate_forgive(struct read_rate *rate);

#endif
