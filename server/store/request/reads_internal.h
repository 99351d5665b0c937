/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker's flash reads, each shared by all lookups that want the same bytes.
 *
 *   reads_ask: is the record being read, or was it just now? --yes--> the lookup joins
 *                     | no
 *                     v
 *              a read of its own --> segments --> reads_done(each lookup that waits)
 *                                                      |
 *   the last user lets go: the bytes are kept for a while, for whoever wants them next
 *
 * Bytes on flash never change while their segment keeps its sequence number, so bytes that were read once
 * are right for every lookup that a slot leads to this segment, sequence and offset. A hot object that
 * lies on flash costs one read, not one for each client.
 *
 * A read holds a pin of its own on its segment from reads_ask until the drive has answered: lookups come
 * and go meanwhile. Kept bytes need no pin.
 *
 * Memory: a read that waits takes 450 bytes, one that is with the drive or kept its buffer too. All of it is in
 * reads_memory(). What is kept is bounded by reads_init's bytes, least recently used first.
 *
 * Threads: the worker's.
 */
#ifndef FS_STORE_READS_H
#define FS_STORE_READS_H

#include "segments/segments.h"

struct store_lookup;

/* What a lookup wants to read: at least length bytes from offset. */
struct reads_wanted {
	uint64_t sequence, offset, length;
	uint64_t expires_ns; /* when nobody waits for it any more */
	uint32_t segment;
};

struct flash_read {
	struct seg_read read; /* first: result and bytes are there once it is done */
	uint64_t sequence;
	struct flash_read *chain; /* next in its place of the table, or among the free ones */
	struct flash_read *newer, *older; /* kept ones, by when they were used last */
	struct store_lookup *first, *last; /* who waits, in order of arrival */
	struct reads *reads;
	unsigned users; /* lookups that wait or hold it, and values that are being sent */
	bool listed; /* in the table: others may join */
	bool done;
};

struct reads {
	struct segments *segments;
	struct seg_reader *reader;
	struct flash_read **table; /* by segment and offset; table_mask + 1 places, NULL before the first read */
	uint32_t table_mask;
	unsigned count; /* all that are not free */
	struct flash_read *newest, *oldest; /* kept */
	uint64_t kept_bytes, kept_most;
	struct flash_read *free;
	unsigned free_count;
};

/* kept_most: bytes of buffers that nobody uses. */
void reads_init(struct reads *reads, struct segments *segments, struct seg_reader *reader, uint64_t kept_most);
/* From now on nothing is kept, so that the reader can be destroyed. */
void reads_stop(struct reads *reads);
/* After reads_stop and the reader's end. */
void reads_fini(struct reads *reads);

/*
 * READS_WAIT: reads_done(lookup) comes, from seg_reader_poll. READS_THERE: the bytes are there. In both cases the lookup
 * uses lookup->read until reads_leave or reads_pass_on, and *made says whether a read was begun for it. READS_NONE:
 * no memory, or the segment is gone.
 */
enum reads_answer { READS_WAIT, READS_THERE, READS_NONE };
FS_MUST_CHECK enum reads_answer reads_ask(struct reads *reads, struct store_lookup *lookup,
					  const struct reads_wanted *wanted, bool *made);
/* Would reads_ask begin a read? */
bool reads_would_read(const struct reads *reads, const struct reads_wanted *wanted);
/* The lookup waits no longer, or has looked at the bytes. True: its read was still unsent and is not going to be sent. */
bool reads_leave(struct store_lookup *lookup);
/* What reads_ask gave to the lookup is the caller's from now on, to be given back by reads_release. */
struct flash_read *reads_pass_on(struct store_lookup *lookup);
void reads_release(struct flash_read *read);
/* The bytes are not what they should be: nobody else is to get them. */
void reads_distrust(struct flash_read *read);

/* lookup.c: the lookup's read is done. */
void reads_done(struct store_lookup *lookup);

uint64_t reads_memory(const struct reads *reads); /* all of it, the reader's buffers included */

#endif
