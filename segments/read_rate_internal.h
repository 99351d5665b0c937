/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rate at which the drive answers one reader decides how many reads the drive is given at a time, how many
 * more may wait for it, and whether it answers at all.
 *
 *   a request's patience   |<------------- --flash-read-timeout ------------------>|
 *   its use                |<-- waiting: 1/4 -->|<-- with the drive: 1/2 -->| spare |
 *
 * A drive that is given more than it can do keeps the surplus in a queue of its own, from which nothing can
 * be taken out: each read is then answered, but too late, and the drive works for nobody. So the queue
 * is kept on our side. By Little's law, a read that was sent as the n-th in flight and took a time t
 * says that the drive does n reads in t; the mean of t / n is the service time, and the depth is the number of
 * reads that the drive does in half of the patience. A new request is taken while the drive does all reads ahead of
 * it within three quarters of the patience; one that has begun already (the other keys of a multiget, a change
 * that must know the old object) while it does them within all of it.
 *
 * An answer is unknown until the reader looks. When the machine or a long piece of other work kept the reader from
 * looking, the drive isn't blamed: of the time between two looks, the part beyond READ_RATE_LOOK_NS, or beyond an
 * eighth of the patience, doesn't count.
 *
 * Threads: the reader's owner only. Pure arithmetic without locks; the caller passes the time. All times are in
 * nanoseconds of one clock.
 */
#ifndef FS_SEGMENTS_READ_RATE_INTERNAL_H
#define FS_SEGMENTS_READ_RATE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#define READ_RATE_LOOK_NS 10000000u
#define READ_RATE_DEPTH_LEAST 4u /* even for a slow drive: fewer reads would not keep its own queue busy */

struct read_rate {
	uint64_t patience_ns; /* 0: for ever, and nothing below has an effect */
	double service_ns; /* 0: nothing has been answered yet */
	uint64_t looked_ns; /* the reader last took the drive's answers then */
	uint64_t late_since_ns; /* time of the first late read since one was answered in time; 0: none */
	/* Reads that were answered within the patience, and reads that the drive had for longer: in the window that
	   began at window_ns, and in the one before. */
	uint64_t window_ns;
	uint32_t in_time[2], late[2];
};

/* The reads of a reader at the moment. */
struct read_queue {
	unsigned with_drive; /* sent and not answered, late ones included */
	unsigned fresh; /* of these, the ones that aren't late */
	uint64_t oldest_ns; /* the oldest fresh one was sent then, ... */
	unsigned company; /* ... with so many with the drive, itself included. Without a fresh one: anything */
	uint64_t waiting; /* not sent yet */
};

/* Notes that the drive has answered a read that was sent at sent_ns, when company reads (1 or more, this one included)
   were with the drive. */
void read_rate_answered(struct read_rate *rate, uint64_t sent_ns, unsigned company, uint64_t now_ns);
/* Notes that the reader has reported all answers up to now_ns. */
void read_rate_looked(struct read_rate *rate, uint64_t now_ns);
/* Notes that the drive has had a read for as long as the patience. Once for each such read. */
void read_rate_late(struct read_rate *rate, uint64_t now_ns);

/* Returns the number of reads that the drive may have at a time: READ_RATE_DEPTH_LEAST .. most, or most when that is
   less. */
unsigned read_rate_depth(const struct read_rate *rate, unsigned most);
/* Will one more read be answered in time? begun: it belongs to a request that was taken already. While the drive's
   last reads are all late, one is taken at a time. */
bool read_rate_admits(const struct read_rate *rate, const struct read_queue *queue, bool begun, uint64_t now_ns);
/* Returns the expected duration of a read that is sent now. */
uint64_t read_rate_latency_ns(const struct read_rate *rate, const struct read_queue *queue, uint64_t now_ns);

/*
 * Is the drive of no use? Either at least half of the reads of the last one to two windows were late, and at least
 * eight of them. Or some read was late, and for twice the patience plus a second none was answered in time.
 */
bool read_rate_silent(struct read_rate *rate, uint64_t now_ns);
/* Forgets late reads: the drive is given another chance. */
void read_rate_forgive(struct read_rate *rate);

#endif
