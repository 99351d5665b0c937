/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker's flash reads, each shared by all lookups that want the same bytes.
 *
 *   reads_ask: is the record being read, or was it read just now? --yes--> the lookup joins
 *                     | no
 *                     v
 *              a read of its own --> segments --> reads_done(each lookup that waits)
 *                                                      |
 *   the last user lets go: the bytes are kept for a while, for the next lookup that wants them
 *
 * Bytes on flash never change while their segment keeps its sequence number, so bytes that were read once are right
 * for every lookup whose slot leads to this segment, sequence and offset. A hot object on flash costs one read, not
 * one for each client.
 *
 * A read holds a pin of its own on its segment from reads_ask until the drive has answered, because lookups come and go
 * meanwhile. Kept bytes need no pin.
 *
 * Memory: a read that waits takes 450 bytes; a read that the drive has, or that is kept, takes its buffer too.
 * reads_memory() returns all of it. kept_most of reads_init bounds the kept bytes; the least recently used go first.
 *
 * Threads: everything is the worker's. Nothing waits for the drive.
 */
#ifndef FS_STORE_READS_H
#define FS_STORE_READS_H

#include "segments/segments.h"

struct store_lookup;

/* The bytes that a lookup wants: at least length of them from offset. */
struct reads_wanted {
	uint64_t sequence, offset, length;
	uint64_t expires_ns; /* from then on nobody waits for them */
	uint32_t segment;
};

struct flash_read {
	struct seg_read read; /* first: result and bytes are there once it is done */
	uint64_t sequence;
	struct flash_read *chain; /* next in its bucket of the table, or among the free ones */
	struct flash_read *newer, *older; /* neighbours among the kept ones, by their last use */
	struct store_lookup *first, *last; /* lookups that wait, in order of arrival */
	struct reads *reads;
	unsigned users; /* lookups that wait or hold it, and values that are being sent */
	bool listed; /* in the table: other lookups may join */
	bool done; /* the drive has answered */
};

struct reads {
	struct segments *segments;
	struct seg_reader *reader;
	struct flash_read **table; /* by segment and offset; table_mask + 1 buckets, NULL before the first read */
	uint32_t table_mask;
	unsigned count; /* all reads that are not free */
	struct flash_read *newest, *oldest; /* kept */
	uint64_t kept_bytes, kept_most;
	struct flash_read *free;
	unsigned free_count;
};

/* Makes an empty set of reads. kept_most: bytes of reads that nobody uses, buffers included, at the most. */
void reads_init(struct reads *reads, struct segments *segments, struct seg_reader *reader, uint64_t kept_most);
/* Drops all kept bytes and keeps none from now on, so that the reader can be destroyed. */
void reads_stop(struct reads *reads);
/* Frees the rest, after reads_stop and the reader's end, when no read is in use. */
void reads_fini(struct reads *reads);

enum reads_answer { READS_WAIT, READS_THERE, READS_NONE };
/*
 * Gets the bytes for a lookup that has the segment pinned. READS_WAIT: seg_reader_poll calls reads_done(lookup) later.
 * READS_THERE: the bytes are there. In both cases the lookup uses lookup->read until reads_leave or reads_pass_on, and
 * *made says whether a read was begun for it. READS_NONE: memory is out.
 */
FS_MUST_CHECK enum reads_answer reads_ask(struct reads *reads, struct store_lookup *lookup,
					  const struct reads_wanted *wanted, bool *made);
/* Would reads_ask begin a read? */
bool reads_would_read(const struct reads *reads, const struct reads_wanted *wanted);
/* Takes the lookup off its read, as it waits no longer or has looked at the bytes. True: the read was still unsent and
   won't be sent. */
bool reads_leave(struct store_lookup *lookup);
/* Passes the lookup's finished read on to the caller, who gives it back by reads_release. */
struct flash_read *reads_pass_on(struct store_lookup *lookup);
/* Gives a read back that was passed on. */
void reads_release(struct flash_read *read);
/* Notes that the bytes are wrong: no other lookup gets them. */
void reads_distrust(struct flash_read *read);

/* lookup.c. Goes on with a lookup whose read is done. May free the lookup. */
void reads_done(struct store_lookup *lookup);

/* Returns the bytes of all reads, the reader's buffers included. */
uint64_t reads_memory(const struct reads *reads);

#endif
