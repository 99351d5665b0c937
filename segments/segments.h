/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments: objects packed into large units that are written sequentially, in FIFO order, to a
 * preallocated file or a block device, and read back one record at a time.
 *
 *   device   | superblock | segment 0 | segment 1 | ... | segment n-1 |
 *   segment  | header page | extents (large objects) | data: hash-placed records | footer |
 *
 * FORMAT.md has every offset. Where a record lies in the data area is a function of the slot that
 * names it: position = f(place, function, segment sequence), in granules of the segment (seg_position).
 *
 * Life of a segment: FREE -> (seg_write_begin) WRITING -> (end) LIVE -> (seg_reclaim_begin)
 * RECLAIMING -> (seg_reclaim_end, waits for pins) FREE. A failed write makes it RETIRED: its
 * place is skipped until the device comes back from being offline, and then FREE. With all places RETIRED
 * the device is offline. Numbers are handed out strictly in FIFO order.
 *
 * Threads: one cleaner plans, writes, walks and reclaims. Readers (one per worker, each with its
 * own libaio context and eventfd) are used by their owner only. Pins are atomic and may be taken
 * and dropped by any thread. The segment table lies in the caller's region memory; states and
 * pins are process memory. LOCK_SEGMENT_TABLE is taken inside for state changes only.
 *
 * Errors: codes of base/error.h. Bytes from the device are never trusted.
 */
#ifndef FS_SEGMENTS_SEGMENTS_H
#define FS_SEGMENTS_SEGMENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "base/error.h"

#define SEG_PAGE 4096u
#define SEG_MAX_FUNCTIONS 16u
#define SEG_SIMULATED_FUNCTIONS 32u /* more than a slot can name: seg_plan_simulate only */
#define SEG_MIN_BYTES (64u << 10)
#define SEG_MAX_BYTES (512u << 20)
#define SEG_MAX_SEGMENTS 16383u

struct segments; /* all segments of one daemon, over its devices */
struct dev; /* a device (device_internal.h); tests and simulations make their own */

enum seg_placement { SEG_PLACE_SWEEP, SEG_PLACE_PAPER };
enum seg_direct { SEG_DIRECT_AUTO, SEG_DIRECT_OFF };

struct seg_owner {
	uid_t user;
	gid_t group;
};

struct seg_config {
	const struct clk *clock;
	const char *path; /* file (made when missing) or block device */
	struct dev *device; /* used in its place, and closed by seg_close; NULL: path is */
	uint64_t flash_bytes; /* file: size to preallocate; block device: 0 = all of it */
	uint64_t segment_bytes; /* multiple of SEG_PAGE, SEG_MIN_BYTES .. SEG_MAX_BYTES */
	unsigned functions; /* 1 .. 16 */
	enum seg_direct direct;
	/* Called by seg_open while it writes a file anew, every few MiB; NULL: nobody wants to know. */
	void (*progress)(void *context, uint64_t bytes, uint64_t of_bytes);
	void *progress_context;
	const struct seg_owner *owner; /* to whom a file that is made is given; NULL: it is the process's own */
	unsigned error_budget; /* errors within a minute before the device is taken offline; 0: 16 */
};

/* How many segments a flash of this size has (the superblock's area taken off). */
uint32_t seg_count_for(uint64_t flash_bytes, uint64_t segment_bytes);
/* Size of the flash at path: of the block device, or flash_bytes for a file (0: what a file has that
   is there, 0 again if none is). Negative code on error; FS_EINVAL: neither file nor block device. */
int64_t seg_flash_bytes(const char *path, uint64_t flash_bytes);

/* How many bytes a file of this size at path could have: what its file system has free, and what a start that was
   cut short has reserved for it already. UINT64_MAX where that is no question: a block device, a file that has its
   size, or a path of which seg_open will say what is wrong. */
uint64_t seg_free_bytes(const char *path, uint64_t flash_bytes);

uint64_t seg_region_bytes(uint32_t segments);

/*
 * Opens, locks against a second daemon (FS_EBUSY), preallocates by writing where the file is new
 * or too small (FS_ESYS with errno ENOSPC when it doesn't fit: nothing is left behind that was not
 * there), reads or makes the superblock. FS_EFOREIGN, with a log line that says how to go on: something
 * that is not a cache lies there (FORMAT.md); it is as it was. Every start is cold today: all segments
 * start FREE and a present superblock gives UUID, secret, hash seed, next sequence and the CAS reserve; a
 * broken or unknown one is reported and replaced.
 * table: zeroed region memory of seg_region_bytes().
 */
FS_MUST_CHECK int seg_open(struct segments **out, const struct seg_config *config, void *table);
void seg_close(struct segments *seg);

struct seg_info {
	uint32_t segments;
	uint64_t segment_bytes, flash_bytes;
	uint64_t hash_seed; /* of keys: for the life of the flash file */
	uint8_t uuid[16];
	bool direct, block_device, offline;
	uint64_t staging_bytes; /* what a segment write holds in DRAM at the most */
};
void seg_get_info(const struct segments *seg, struct seg_info *out);

/* Reserves the CAS ids from *first to below *end (count of them) durably (two page writes) before
   it returns; each call gives a range that no call gave before, in this life of the flash or an earlier
   one. FS_EIO: nothing may be given out, call again. FS_ERANGE: count is 0, or 2^63 is reached. Before
   other threads run, or the cleaner only. */
FS_MUST_CHECK int seg_reserve_cas(struct segments *seg, uint64_t count, uint64_t *first, uint64_t *end);

/* ---- records --------------------------------------------------------------------------------- */

/* What a record carries beside key and value. */
struct seg_record {
	const char *key;
	const char *value;
	uint32_t value_length;
	uint8_t key_length;
	uint8_t item_flags; /* 5 bits, the store's */
	uint32_t client_flags;
	uint32_t expiry; /* the store's seconds; 0 = never */
	uint64_t cas;
	uint8_t features[7]; /* quantised features of the classifier: what 32 bytes of header leave */
};

#define SEG_RECORD_HEADER 32u
static inline uint64_t seg_record_length(unsigned key_length, uint64_t value_length)
{
	return SEG_RECORD_HEADER + key_length + value_length;
}

/*
 * Reads the record at offset of the segment with that sequence from available bytes. FS_OK: checked
 * (keyed check over sequence, offset, header, key and value), out points into bytes. FS_ESHORT:
 * *needed bytes from offset would do (header plausible, not checked); when the key lies within the
 * bytes it is filled in (key_length > 0), so that another key's record needs no second read.
 * FS_ECORRUPT otherwise (a gap, an older life, a forged or broken record; the caller counts it, and reports
 * it with seg_report_corrupt when a slot or an extent said that a record is there).
 */
FS_MUST_CHECK int seg_record_read(const struct segments *seg, uint32_t segment, uint64_t sequence, uint64_t offset,
				  const void *bytes, uint64_t available, struct seg_record *out, uint64_t *needed);

/* ---- placement ------------------------------------------------------------------------------- */

/* A candidate of a plan; item is the caller's. */
struct seg_candidate {
	void *item;
	uint64_t place; /* of the key, from the index */
	uint32_t length; /* of the whole record */
	uint32_t extent; /* 1: a large object, goes to the extents area */
};

/* Where it goes. */
struct seg_placed {
	uint32_t candidate; /* index into the candidates */
	uint32_t offset; /* from the segment's start, bytes */
	uint8_t function; /* 0 for extents */
};

struct seg_plan_stats {
	uint64_t candidates, candidate_bytes;
	uint64_t placed, placed_bytes, placed_extents;
	uint64_t hashes; /* positions tried or computed for the placed ones, paper 5.3: 8.2 each */
	uint32_t granule, longest_999; /* L: covers 99.9 % of the hash-placed objects */
	double fill; /* placed bytes / bytes of the areas they may lie in */
};

struct seg_plan {
	uint64_t sequence;
	uint64_t data_offset, data_bytes; /* hash-placed area: what positions are computed over */
	uint64_t footer_bytes; /* up to the segment's end; may reach into the data area's unused tail */
	uint32_t granule, longest_999;
	uint32_t count; /* placed */
	uint32_t extents; /* of these, the first ones, in the extents area */
	struct seg_placed *placed; /* in order of offset */
	struct seg_plan_stats stats;
};

#define SEG_PLAN_BYTES 16

/*
 * Plans the next segment (with the sequence that seg_write will use: a plan is written before the next
 * one is written, or thrown away). Candidates in order of rank, best first; what finds no place waits
 * for the next one. The sweep covers the most bytes it can, which prefers the longer of two that fit;
 * rank decides among equals. Records over 1 MiB that are no extents find no place. At most 2^27 - 1
 * candidates. filter_bytes_for(n): footer room for a filter over n keys (asked with the most that may be
 * placed; seg_write takes a filter of up to what it said for plan->count); may be NULL for none.
 * FS_EINVAL, FS_ENOMEM. Deterministic. CPU: see README. Memory meanwhile: SEG_PLAN_BYTES per candidate,
 * and afterwards what is in *out. Pure computation, no I/O; the
 * cleaner's thread. The caller calls seg_plan_fini after success.
 */
FS_MUST_CHECK int seg_plan_make(const struct segments *seg, enum seg_placement placement,
				const struct seg_candidate *candidates, uint32_t count,
				uint64_t (*filter_bytes_for)(void *context, uint64_t n), void *context,
				struct seg_plan *out);
void seg_plan_fini(struct seg_plan *plan);

/* What a long computation calls every some ten microseconds, so that others may have the CPU. */
struct seg_step {
	void (*call)(void *context); /* NULL: nothing */
	void *context;
};
/* From now on seg_plan_make calls it: a plan of 512 MiB takes seconds. The cleaner's. */
void seg_set_step(struct segments *seg, const struct seg_step *step);
/* The same without a seg, for studies: segment size and sequence given; 1 .. SEG_SIMULATED_FUNCTIONS. */
FS_MUST_CHECK int seg_plan_simulate(uint64_t segment_bytes, uint64_t sequence, unsigned functions,
				    enum seg_placement placement, const struct seg_candidate *candidates,
				    uint32_t count, uint64_t (*filter_bytes_for)(void *context, uint64_t n),
				    void *context, struct seg_plan *out);

/* The offset within the segment where a slot's record begins. segment must be LIVE or RECLAIMING
   with that sequence (pinned, or by the cleaner). */
uint64_t seg_position(const struct segments *seg, uint32_t segment, uint64_t place, unsigned function);
/* The other way round: the least function from `from` on that leads the place to this offset;
   SEG_MAX_FUNCTIONS: none. */
unsigned seg_function_at(const struct segments *seg, uint32_t segment, uint64_t place, uint64_t offset, unsigned from);
/* L of the segment: how many bytes to read from a position. */
uint32_t seg_read_length(const struct segments *seg, uint32_t segment);

/* ---- writing --------------------------------------------------------------------------------- */

/* The segment that comes next in FIFO order: *state tells whether it must be reclaimed first
   (SEG_LIVE) or may be written (SEG_FREE). Skips retired ones. FS_EOFFLINE when none is left: it
   tries the device again when its time has come, after which they are FREE. The cleaner's. */
enum seg_state { SEG_FREE, SEG_WRITING, SEG_LIVE, SEG_RECLAIMING, SEG_RETIRED };
FS_MUST_CHECK int seg_next(struct segments *seg, uint32_t *segment, enum seg_state *state);
/* The one that was written first of those that are LIVE; false: none. It may be reclaimed before its turn.
   The cleaner's. */
FS_MUST_CHECK bool seg_oldest(const struct segments *seg, uint32_t *segment);

/* True while the device is online. Offline: tries it when its time has come, which may take as long as the
   device hangs. The cleaner's. */
bool seg_online(struct segments *seg);
/* Is it offline? Reads fail at once then. Any thread, no lock. */
bool seg_offline(const struct segments *seg);
/* For how long the cleaner has been waiting for the device, one millisecond at least; 0: it isn't. Any thread. */
uint64_t seg_busy_ms(const struct segments *seg);

struct seg_writer_ops {
	/* Fills *out with the record of plan->placed[n]; the bytes it points to stay valid until the
	   next call. Called in order of offset. */
	void (*record)(void *context, uint32_t n, struct seg_record *out);
	/* Called between chunks with the bytes just issued: may sleep to pace. May be NULL. */
	void (*pace)(void *context, uint64_t bytes);
};

/*
 * Streams the planned segment out: header, extents, data, footer (record offsets, filter), with
 * several aligned chunks in flight (staging_bytes at the most), and returns when all of it is
 * written. A block device's range is discarded first; ops->pace is called with 0 between the steps.
 * 0: the segment is LIVE with plan->sequence and readable. FS_EIO: it is RETIRED (or still FREE when
 * *written is 0 and seg_next names it again); FS_EOFFLINE: it is FREE, nothing was tried. The objects
 * stay with the caller, as after FS_ENOMEM and FS_ESYS (FREE). FS_EINVAL: not the segment that seg_next names, not FREE, another sequence than
 * the next, or the filter is larger than the plan has room for. *written: bytes issued. filter may be
 * NULL. Offline, this is also what tries the device again when its time has come.
 */
FS_MUST_CHECK int seg_write(struct segments *seg, uint32_t segment, const struct seg_plan *plan, const void *filter,
			    uint64_t filter_length, const struct seg_writer_ops *ops, void *context, uint64_t *written);
/* From pace(), before a pause: waits until all that was issued is written. Else what a chunk took (LAT_flash_write, which
   counts until it is seen to be written) would be the pause. */
void seg_write_wait(struct segments *seg);

/* ---- reclaim --------------------------------------------------------------------------------- */

/*
 * seg_walk: every record of a LIVE or RECLAIMING segment in order of offset, read in large pieces
 * (bounded buffer). The footer's offsets step over bad records. visit returns false to stop.
 * Result: FS_OK when count and all checks agree with header and footer; FS_ECORRUPT / FS_EIO when
 * something was skipped (visit was called for all good ones); *visited counts. By the cleaner, or by any thread that
 * has pinned the segment; visit may let the pin go, and must stop then unless it got it back. The record's
 * bytes are the walk's own, pinned or not.
 */
FS_MUST_CHECK int seg_walk(struct segments *seg, uint32_t segment,
			   bool (*visit)(void *context, uint64_t offset, bool extent, const struct seg_record *record),
			   void *context, uint64_t *visited);

void seg_reclaim_begin(struct segments *seg, uint32_t segment);
/* All slots that named it are gone. No new pin is given; waits until the last reader let go, at
   most timeout_ms of real time (FS_EBUSY then: call again). After 0 it is FREE. */
FS_MUST_CHECK int seg_reclaim_end(struct segments *seg, uint32_t segment, unsigned timeout_ms);
uint64_t seg_written_at_ms(const struct segments *seg, uint32_t segment);

/* ---- reading --------------------------------------------------------------------------------- */

/* The sequence of what the segment holds while it may be pinned; 0 otherwise. Any thread, no lock:
   what a reader that followed a slot hands to seg_pin. */
uint64_t seg_sequence(const struct segments *seg, uint32_t segment);

/* Pins while sequence is what the segment holds and it is LIVE or RECLAIMING-not-ended: true, and it will not
   be overwritten until seg_unpin. False: gone. Any thread, no lock. */
bool seg_pin(struct segments *seg, uint32_t segment, uint64_t sequence);
void seg_unpin(struct segments *seg, uint32_t segment);

/*
 * A read in flight. The reader owns the buffer until seg_read_release. Embed or allocate; freed
 * by the caller after release.
 */
struct seg_read {
	/* set by the caller */
	uint32_t segment; /* pinned by the caller, unpinned by the caller after done */
	uint64_t offset; /* within the segment, any byte */
	uint64_t length; /* wanted bytes from offset; clipped to the segment's end */
	uint64_t expires_ns; /* by the seg's clock: nobody waits for it after that; 0: somebody always does */
	void (*done)(struct seg_read *read); /* on the reader's thread, from seg_reader_poll */
	void *context;
	/* set by the reader before done */
	int result; /* 0 or FS_EIO, FS_EOFFLINE, FS_ENOMEM, FS_EINVAL (outside the segment), FS_ELATE (not sent:
				  the drive would not have answered before it expires) */
	const uint8_t *bytes; /* at offset */
	uint64_t available; /* valid bytes from there, >= length unless clipped; 0 after an error */
	unsigned pages;
	/* the reader's own */
	void *buffer;
	uint64_t buffer_bytes;
	struct seg_read *next, *prev;
	struct seg_reader *reader;
	uint32_t company; /* reads with the drive when it was sent, itself included */
	uint8_t list; /* the one of the reader's lists that holds it */
	uint64_t io[18];
};

struct seg_reader;

/* depth: I/Os in flight at most, more wait in order inside. */
FS_MUST_CHECK int seg_reader_create(struct seg_reader **out, struct segments *seg, unsigned depth);
/* So many bytes of buffers are kept for the next reads, at the most SEG_READER_IDLE_MOST, which is the default. */
#define SEG_READER_IDLE_MOST (1u << 20)
void seg_reader_set_idle(struct seg_reader *reader, uint64_t bytes);
/* Waits for what is in flight, however long the device takes, and runs done for it. Every read must
   have been released when the last done returns. */
void seg_reader_destroy(struct seg_reader *reader);
/* An eventfd that is added to after each completion, and that seg_reader_poll doesn't read: watched
   edge-triggered, or read by the owner before each poll, it tells when there is more to poll. */
int seg_reader_fd(const struct seg_reader *reader);

/*
 * How long whoever asks waits for a read (0, as at first: for ever). From then on the drive is given no more
 * reads at a time than it answers in half of that, reads that would come too late are not sent (FS_ELATE), and
 * a drive that doesn't answer in that time goes offline (read_rate_internal.h).
 */
void seg_reader_set_patience(struct seg_reader *reader, uint64_t ns);
/* Would a read that is submitted now be answered within the patience? begun: it is part of something that other
   reads were made for already. Cheap; an advice, seg_read_submit takes any. */
bool seg_reader_admits(const struct seg_reader *reader, bool begun, uint64_t now_ns);

/* Queues; nothing is submitted before the flush, so that a batch costs one system call. Never
   blocks: what the kernel would block on goes to the submitter thread. done is never called from
   here. Buffers come from a pool of the reader (bounded idle share), 4 KiB aligned. */
void seg_read_submit(struct seg_reader *reader, struct seg_read *read);
void seg_reader_flush(struct seg_reader *reader);
/* Takes a read out that the drive has not been given: true, and it is as if released; done will not be called.
   False: the drive has it, or had it; done will be called. */
bool seg_read_cancel(struct seg_reader *reader, struct seg_read *read);
/* Runs done of all that has completed. Returns how many. No system call while nothing waits to be submitted,
   so it may be called at every turn; while reads are in flight it is to be called at least every half of the
   patience, as it looks for late ones too. Not from within done; seg_read_submit and seg_reader_flush may be
   called there. */
unsigned seg_reader_poll(struct seg_reader *reader);
void seg_read_release(struct seg_reader *reader, struct seg_read *read); /* gives the buffer back */
uint64_t seg_reader_memory(const struct seg_reader *reader); /* buffers, in use and idle */
unsigned seg_reader_in_flight(const struct seg_reader *reader); /* submitted, done not run yet */

/* What was read at that offset of the segment fails its check although it should hold a record: counts in
   the device's error budget, and a warning says so, at most once a minute, with the number since the last
   one. Any thread; takes a leaf lock and may log, so no lock may be held. */
void seg_report_corrupt(struct segments *seg, uint32_t segment, uint64_t offset);

/* ---- figures --------------------------------------------------------------------------------- */

struct seg_status {
	uint32_t total, free, live, retired;
	uint64_t newest_sequence;
	double fill; /* mean over live segments */
	uint64_t records_live; /* records in live segments, dead ones included */
	uint64_t record_bytes_live;
	uint64_t residence_ms; /* last measured: write to reclaim; 0 before the first */
	uint64_t busy_ms; /* seg_busy_ms */
	bool offline;
	char offline_reason[128];
};
void seg_get_status(const struct segments *seg, struct seg_status *out);

#endif
