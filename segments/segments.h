/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments: objects packed into large units that are written sequentially, in FIFO order, to a
 * preallocated file or a block device, and read back one record at a time.
 *
 *   device   | superblock | segment 0 | segment 1 | ... | segment n-1 |
 *   segment  | header page | extents (large objects) | data: hash-placed records | footer |
 *
 * FORMAT.md has every offset. The slot that names a record determines the record's position in the data
 * area: position = f(place, function, segment sequence), counted in granules of the segment (seg_position).
 *
 * Life of a segment: FREE -> (seg_write begins) WRITING -> (seg_write ends) LIVE -> (seg_reclaim_begin)
 * RECLAIMING -> (seg_reclaim_end, waits for pins) FREE. A failed write makes the segment RETIRED: it is passed
 * over until the device comes back from being offline, and then it is FREE. A segment whose reads fail is copied to
 * another home, and leaves its number with another segment that stays RETIRED (rescue.h). With all segments RETIRED the
 * device is offline. Segments are written strictly in FIFO order of their numbers.
 *
 * Threads: one cleaner plans, writes, walks and reclaims. Each worker has a reader of its own (libaio context
 * and eventfd), which no other thread uses. Pins are atomic: any thread may take and drop them. The segment
 * table lies in the caller's region memory; states and pins are process memory. A call that changes a state
 * takes LOCK_SEGMENT_TABLE inside. Unless its comment says otherwise, a call of this header belongs to the
 * cleaner, or to the only thread while there is only one.
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
#include "base/parts.h"

#define SEG_PAGE 4096u
#define SEG_MAX_FUNCTIONS 16u
#define SEG_SIMULATED_FUNCTIONS 32u /* more than a slot can name: seg_plan_simulate only */
#define SEG_MIN_BYTES (64u << 10)
#define SEG_MAX_BYTES (512u << 20)
#define SEG_MAX_SEGMENTS 16383u

struct segments; /* all segments of one daemon, over its device */
struct dev; /* a device (device_internal.h) */

enum seg_placement { SEG_PLACE_SWEEP, SEG_PLACE_PAPER };
/* What lies in a segment's data area: records that slots name; bins, or records of a chain (bins.h). */
enum seg_kind { SEG_SLOTS, SEG_BINS, SEG_CHAIN, SEG_KINDS };
enum seg_direct { SEG_DIRECT_AUTO, SEG_DIRECT_OFF };
/* Reads of records begin and end at the device's logical blocks, as far as it tells them and they are smaller than a page;
   or at pages. */
enum seg_read_unit { SEG_READ_BLOCK, SEG_READ_PAGE };

struct seg_owner {
	uid_t user;
	gid_t group;
};

struct seg_config {
	const struct clk *clock;
	const char *path; /* of a file (made when missing) or a block device */
	struct dev *device; /* used instead of path, and closed by seg_close; NULL: path is used */
	uint64_t flash_bytes; /* file: size to preallocate; block device: 0 = all of it */
	uint64_t segment_bytes; /* multiple of SEG_PAGE, SEG_MIN_BYTES .. SEG_MAX_BYTES */
	unsigned functions; /* 1 .. SEG_MAX_FUNCTIONS */
	/* The index and the table are made for so many segments, the first of which lie on the device: they go on from a larger
	   one (seg_read_shape). 0, or not more than there are: for as many as lie there. */
	uint32_t index_segments;
	uint64_t
		index_flash_bytes; /* the size of the flash that index and region are made for; the superblock keeps it, and that is all */
	uint64_t
		asked_bytes; /* of which flash_bytes are all or what had room; the superblock keeps it, and that is all */
	enum seg_direct direct;
	enum seg_read_unit read_unit;
	const struct seg_owner *owner; /* of a file that is made; NULL: the process's own user and group */
	uint64_t
		seed; /* of UUID, secret and hashes of a new flash; 0: from the kernel, as anything but a simulation needs */
	bool crossings; /* keep in memory which pages have a record that crosses their end, so that reads take fewer pages */
	bool look_only; /* for seg_look and seg_close alone: the flash is neither made nor changed nor locked */
	unsigned error_budget; /* errors within a minute before the device is taken offline; 0: 16 */
};

/* Returns the number of segments on a flash of this size, the superblock's area taken off: 0 .. SEG_MAX_SEGMENTS. Any
   thread. */
uint32_t seg_count_for(uint64_t flash_bytes, uint64_t segment_bytes);
/* Returns the bytes of region memory that the segment table takes. With crossings it has the pages' crossing maps too
   (seg_config): half a byte for each page of a segment of segment_bytes. */
uint64_t seg_region_bytes(uint32_t segments, uint64_t segment_bytes, bool crossings);

/*
 * Opens the flash, locks it against a second daemon, reserves the space of a new or too small file, and
 * reads or makes the superblock. All segments start FREE; seg_load may fill them after that. A present superblock
 * gives UUID, secret, hash seed, next sequence and the CAS reserve; a broken or unknown one is reported in
 * the log and replaced. The attach epoch is raised and the clean mark erased, durably, before this returns. Blocks
 * on the device. Blocks beyond the first 16 MiB are left to seg_allocate.
 *
 * table: zeroed region memory of seg_region_bytes() for these segments and crossings, not owned. On success the caller closes *out by
 * seg_close; on failure *out is NULL and config->device, if given, is closed.
 *
 * FS_EBUSY: another daemon has it. FS_ESYS: a system call failed (errno); with errno ENOSPC the file doesn't
 * fit, and a file that this call made is removed again. FS_EFOREIGN: something else than a cache lies there
 * (FORMAT.md), what memcached's extstore has left included; it stays untouched, and a log line says how to go on. FS_EINVAL, FS_ERANGE: a value of config
 * is out of range. FS_EIO, FS_ENOMEM.
 */
FS_MUST_CHECK int seg_open(struct segments **out, const struct seg_config *config, void *table);

/*
 * The same in two steps, for a start that first judges what the last run has left. seg_look opens the flash and only
 * reads: with the codes of seg_open, and without a look at the table. Then the caller fills the table by one of
 * seg_attach, seg_load and seg_forget, and calls seg_take_over before anything else is done with the segments.
 *
 * seg_take_over makes the flash this start's, by one write of the superblock, which is durable when it returns: the
 * attach epoch is raised, the clean mark erased, the first sequence numbers are reserved. keeps: segments of earlier
 * starts are live, which readers like flashield-inspect learn from it. region_id: a random number of the region in which
 * the index lies from now on; 0: in none that outlives the process. FS_OK; FS_EIO with errno, FS_ENOMEM: the flash may
 * be this start's, or still the last one's.
 */
FS_MUST_CHECK int seg_look(struct segments **out, const struct seg_config *config, void *table);
FS_MUST_CHECK int seg_take_over(struct segments *seg, bool keeps, uint64_t region_id);
/* Closes device and handle; NULL does nothing. No reader exists and no other thread uses seg any more. */
void seg_close(struct segments *seg);

/*
 * A file is made by writing zeros, in order of offset. A segment is written once all of its bytes have been, so that the
 * flash comes into use bit by bit; the cleaner does it beside its other work. A file that was cut in between, by a stop
 * or a kill, is continued. A complete file and a block device have nothing to do.
 */

/* Writes zeros until one more segment may be written, all are there, or stop, asked after each 4 MiB, returns true. Does
   nothing while the device is offline. True: there is more to do at once. After an error false, and it tries again in a
   minute: without room (a log line tells) the allocated segments are used meanwhile. The cleaner; waits for the device. */
FS_MUST_CHECK bool seg_allocate(struct segments *seg, bool (*stop)(void *context), void *context);
/* Returns the number of segments, from the first one on, that may be written. Any thread, no lock. */
uint32_t seg_allocated(const struct segments *seg);
/* Returns the bytes that may be written, from the beginning of the flash; flash_bytes when it is complete. Any thread. */
uint64_t seg_allocated_bytes(const struct segments *seg);

/* A device in memory whose requests are done as soon as they are submitted, for simulations: seg_config.device. Its
   bytes are zeros and take memory once they are written. NULL: there is no memory. seg_open, or seg_close later, frees
   it. */
FS_MUST_CHECK struct dev *dev_memory_create(uint64_t bytes);

/* What seg_open has found on the flash. */
enum seg_found {
	SEG_FOUND_NONE, /* no flash, or one whose superblock this version can't use */
	SEG_FOUND_LAYOUT, /* a flash with other segments or functions; it has a new UUID now */
	SEG_FOUND_UNCLEAN, /* a flash of this layout, whose last start didn't call seg_end_clean */
	/* A flash of this layout, or with fewer segments of the same size, whose last start ended with seg_end_clean. */
	SEG_FOUND_CLEAN
};

struct seg_info {
	uint32_t segments; /* numbers, those without room on a smaller device included */
	uint64_t segment_bytes, flash_bytes;
	uint64_t hash_seed; /* of keys: for the life of the flash file */
	uint8_t uuid[16];
	uint8_t found_uuid[16]; /* that the flash had before this start; zeros: it is new */
	uint64_t attach_epoch; /* of the last start; of this one from seg_take_over on */
	uint64_t region_id; /* of that start's region; 0: none */
	uint64_t cas_end; /* CAS ids below may have been given out */
	enum seg_found found;
	bool direct, block_device, offline, crossings; /* crossings: as in seg_config */
	uint32_t read_unit; /* bytes of which reads of records are multiples */
	uint64_t staging_bytes; /* DRAM that a segment write takes at the most */
};
/* Fills out. All fields but offline and cas_end are constant after seg_open or seg_take_over, unless the flash is moved
   (move.h). Any thread, no lock. */
void seg_get_info(const struct segments *seg, struct seg_info *out);

/* Reserves count CAS ids, from *first to below *end, durably (two page writes) before it returns. No two
   calls reserve the same id, in this life of the flash or an earlier one. FS_ENOMEM, FS_EIO: no id of the
   range may be given out, call again. FS_ERANGE: count is 0, or 2^53 is reached. Waits for the device. The
   cleaner, or before other threads run. */
FS_MUST_CHECK int seg_reserve_cas(struct segments *seg, uint64_t count, uint64_t *first, uint64_t *end);
/* Lets the next reservation begin at this id, because those between were given out without one. The cleaner. */
void seg_skip_cas(struct segments *seg, uint64_t to);
/* Gives back the reserved ids from this one on, durably: none of them was given out, and none will be before the flash
   is opened again. When the write fails, they are lost or not. Waits for the device. The only thread. */
void seg_return_cas(struct segments *seg, uint64_t from);
/* Returns the first id of this second's 2^20 of the wall clock, for ids without a reservation. It is below 2^53 until
   the year 2242. Any thread. */
uint64_t seg_clock_cas(void);

/* ---- restart --------------------------------------------------------------------------------- */

/*
 * A clean end, in this order, when no other thread uses seg any more: seg_save into a state file, parts_finish, then
 * seg_end_clean. A start that finds SEG_FOUND_CLEAN and a state file with the same UUID and epoch may call seg_load
 * before seg_take_over. After any other end it may call seg_attach, if the region is that run's.
 */

/* Writes the table of LIVE segments into a state file. Segments in any other state are left out: they are free
   after seg_load. */
void seg_save(const struct segments *seg, struct parts_writer *writer);
/* Writes the clean mark durably. Nothing else may be done with seg after that than seg_close. FS_OK; FS_EIO, FS_ENOMEM:
   whether the mark is there is unknown. Waits for the device. */
FS_MUST_CHECK int seg_end_clean(struct segments *seg);
/* Makes LIVE the segments that seg_save has written. All segments are FREE before; those that the flash has grown by
   stay so, and come next. FS_OK; FS_ECORRUPT: a value is out of
   its range; codes of parts_get: the caller then calls seg_forget. FS_ENOMEM. */
FS_MUST_CHECK int seg_load(struct segments *seg, struct parts_reader *reader);
/* Do all LIVE segments lie within the bytes that the file had when it was opened? False: its end was cut off since they
   were written. */
FS_MUST_CHECK bool seg_file_is_whole(const struct segments *seg);
/* Makes LIVE the segments that have a row in the table, which lies in the region of the last run; only reads it. FS_OK;
   FS_ECORRUPT: a value is out of its range; the caller then calls seg_forget, once the region may be written to. */
FS_MUST_CHECK int seg_attach(struct segments *seg);
/* After seg_attach and seg_take_over: a LIVE segment is FREE, and its row is empty. */
void seg_drop(struct segments *seg, uint32_t segment);
/* Makes all segments FREE and the table empty, when a start is cold, or a step of it has failed. */
void seg_forget(struct segments *seg);

/* ---- after a crash of the host (adopt.c), and filters of the last run (filter.c) --------------- */

/* From now on a segment is LIVE only once all of it is durable, which seg_write waits for. Before the first write. */
void seg_set_durable(struct segments *seg);
/* All segments are FREE, and some will be adopted; this one is the newest of them. FS_OK; FS_EINVAL: there is no such
   segment, or its sequence was never given out. Before the cleaner runs. */
FS_MUST_CHECK int seg_adopt_begin(struct segments *seg, uint32_t newest, uint64_t sequence);

struct seg_adopted {
	uint32_t objects, extents;
	uint64_t record_bytes;
	void *filter; /* as seg_write got it; mem_free frees it. NULL: none, or it can't be read */
	size_t filter_length;
};
/*
 * Makes a FREE segment LIVE if header and footer on flash are whole and have this sequence. FS_OK. FS_ECORRUPT: they are
 * not, or belong to another sequence; FS_EIO, FS_ENOMEM: they can't be read. It is FREE then. The cleaner; waits for the
 * device.
 */
FS_MUST_CHECK int seg_adopt(struct segments *seg, uint32_t segment, uint64_t sequence, struct seg_adopted *out);
/*
 * Reads the filter of a LIVE segment from its footer. FS_OK: *filter is as seg_write got it, and the caller frees it by
 * mem_free, or it is NULL, with *length 0: the segment was written without one. FS_ECORRUPT: footer or filter is damaged;
 * FS_EIO, FS_ENOMEM. *filter is NULL after these. The cleaner; waits for the device.
 */
FS_MUST_CHECK int seg_read_filter(struct segments *seg, uint32_t segment, void **filter, size_t *length);
/* Reads length bytes, at least one, at that offset of the filter into part. They are not checked: the footer has one sum
   for all of the filter. FS_OK; FS_ECORRUPT: the footer is damaged, or the filter ends before; FS_EIO, FS_ENOMEM. The
   cleaner; waits for the device. */
FS_MUST_CHECK int seg_read_filter_part(struct segments *seg, uint32_t segment, uint64_t offset, void *part,
				       size_t length);
/* Notes the length of a record that a walk of an adopted segment has met, in order of offset, for seg_read_length. The
   cleaner; other threads may read from the segment meanwhile. */
void seg_note_record(struct segments *seg, uint32_t segment, uint64_t offset, uint64_t length);
/* Raises the attach epoch durably, so that whatever names the present one is of an earlier run. FS_OK, FS_EIO, FS_ENOMEM.
   The cleaner; waits for the device. */
FS_MUST_CHECK int seg_raise_epoch(struct segments *seg);

/* ---- records --------------------------------------------------------------------------------- */

/* The contents of a record. key and value are not owned. */
struct seg_record {
	const char *key;
	const char *value;
	uint32_t value_length;
	uint8_t key_length;
	uint8_t item_flags; /* 4 bits, the store's */
	uint32_t client_flags;
	uint32_t expiry; /* the store's seconds; 0 = never */
	uint64_t cas;
	uint8_t features[7]; /* quantised features of the classifier, the rest of the 32 bytes of header */
};

#define SEG_RECORD_HEADER 32u
/* Returns the bytes of a whole record. */
static inline uint64_t seg_record_length(unsigned key_length, uint64_t value_length)
{
	return SEG_RECORD_HEADER + key_length + value_length;
}

/*
 * Reads the record at that offset of the segment with that sequence from `available` bytes. The segment is pinned, or
 * the caller is the cleaner. Pure computation, no lock.
 *
 * FS_OK: the keyed check over sequence, offset, header, key and value is right; out points into bytes.
 * FS_ESHORT: the header is plausible, but *needed bytes from offset are required. When the whole key lies within
 * the bytes, out is filled in (key_length > 0) unchecked, so that another key's record needs no second read.
 * FS_ECORRUPT: a gap, a record of an earlier life, a forged or a broken one. The caller counts it, and calls
 * seg_report_corrupt when a slot or an extent leads to a record there.
 */
FS_MUST_CHECK int seg_record_read(const struct segments *seg, uint32_t segment, uint64_t sequence, uint64_t offset,
				  const void *bytes, uint64_t available, struct seg_record *out, uint64_t *needed);
/*
 * Reads one record of a LIVE segment, which begins at offset and has about length bytes (seg_read_length, or an extent's), and
 * checks it. FS_OK: *out is filled, and points into *memory, which the caller frees by mem_free. FS_ECORRUPT: there is no
 * such record; FS_EIO: counted as an error of the device; FS_ENOMEM. Then *memory is NULL. The cleaner; waits for the device.
 */
FS_MUST_CHECK int seg_read_record(struct segments *seg, uint32_t segment, uint64_t offset, uint64_t length,
				  struct seg_record *out, void **memory);

/* ---- placement ------------------------------------------------------------------------------- */

/* A candidate of a plan; item is the caller's. */
struct seg_candidate {
	void *item;
	uint64_t place; /* of the key, from the index */
	uint32_t length; /* of the whole record */
	uint32_t extent; /* 1: a large object, goes to the extents area */
};

/* The location of a placed candidate. */
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
	uint64_t data_offset, data_bytes; /* hash-placed area: positions are computed over it */
	uint64_t footer_bytes; /* up to the segment's end; may reach into the data area's unused tail */
	uint32_t granule, longest_999;
	enum seg_kind kind;
	uint32_t bin_bytes; /* of SEG_BINS; else 0 */
	uint32_t count; /* of placed */
	uint32_t extents; /* of these, the first ones, in the extents area */
	struct seg_placed *placed; /* in order of offset */
	struct seg_plan_stats stats;
};

#define SEG_PLAN_BYTES 16 /* of a candidate, for any kind */

/*
 * Plans the next segment, with the sequence that seg_write will use: a plan is written before another segment
 * is, or thrown away. The cleaner; pure computation without I/O (CPU: see README), and deterministic.
 *
 * candidates: count of them, at most 2^27 - 1, in order of rank, the best first. One that finds no position
 * waits for the next plan. The sweep covers as many bytes as it can, which prefers the longer of two that fit;
 * rank decides among equals. A record over 1 MiB that is no extent finds no position.
 * filter_bytes_for(context, n): bytes of a filter over n keys, for the footer's room. seg_plan_make asks with the
 * most records that may be placed; seg_write takes a filter of up to filter_bytes_for(context, plan->count)
 * bytes. NULL: no filter.
 *
 * After FS_OK the caller calls seg_plan_fini. FS_EINVAL, FS_ENOMEM: there is nothing to free. The call takes
 * SEG_PLAN_BYTES of memory per candidate, and leaves that of *out.
 */
FS_MUST_CHECK int seg_plan_make(const struct segments *seg, enum seg_placement placement,
				const struct seg_candidate *candidates, uint32_t count,
				uint64_t (*filter_bytes_for)(void *context, uint64_t n), void *context,
				struct seg_plan *out);
/* Frees the memory of the plan; it may be called again. */
void seg_plan_fini(struct seg_plan *plan);

/* A long computation calls it every some ten microseconds, to let others have the CPU. */
struct seg_step {
	void (*call)(void *context); /* NULL: nothing */
	void *context;
};
/* From now on seg_plan_make calls step: a plan of 512 MiB takes seconds. *step is copied. The cleaner. */
void seg_set_step(struct segments *seg, const struct seg_step *step);
/* Does what seg_plan_make does, without a flash, for studies: the caller gives segment size and sequence, and 1 to
   SEG_SIMULATED_FUNCTIONS functions. Any thread. */
FS_MUST_CHECK int seg_plan_simulate(uint64_t segment_bytes, uint64_t sequence, unsigned functions,
				    enum seg_placement placement, const struct seg_candidate *candidates,
				    uint32_t count, uint64_t (*filter_bytes_for)(void *context, uint64_t n),
				    void *context, struct seg_plan *out);

/* Returns the offset within the segment at which a slot's record begins. The segment is LIVE or RECLAIMING, and pinned
   or the caller is the cleaner. Any thread, no lock. */
uint64_t seg_position(const struct segments *seg, uint32_t segment, uint64_t place, unsigned function);
/* The inverse of seg_position: returns the least function, not below `from`, that leads the place to this offset;
   SEG_MAX_FUNCTIONS when there is none. Called like seg_position. */
unsigned seg_function_at(const struct segments *seg, uint32_t segment, uint64_t place, uint64_t offset, unsigned from);
/* Returns the length of a first read from a position, in bytes: L of the segment, or less where the segment's crossing map
   says so. Nearly always it covers the record. Called like seg_position. */
uint64_t seg_read_length(const struct segments *seg, uint32_t segment, uint64_t offset);

/* ---- writing --------------------------------------------------------------------------------- */

enum seg_state { SEG_FREE, SEG_WRITING, SEG_LIVE, SEG_RECLAIMING, SEG_RETIRED };
/* Finds the segment that comes next in FIFO order. *state: SEG_FREE when it may be written, SEG_LIVE when it must be
   reclaimed first. Retired ones are passed over. FS_EOFFLINE: none is left. Then the call tries the device again when
   the next try is due, and waits for it; if the device answers, the segments are FREE. The cleaner. */
FS_MUST_CHECK int seg_next(struct segments *seg, uint32_t *segment, enum seg_state *state);
/*
 * seg_note_content notes of a segment that was just written the newest CAS id in it and the latest expiry, as its records
 * have them; 0: some record never expires, or it isn't known. A restart forgets both.
 * seg_next_hold_nothing: are the next n segments in FIFO order free, or is all in them expired, or flushed by its CAS
 * ids? Not if fewer can be written. n is at most the number of segments. Both are the cleaner's.
 */
void seg_note_content(struct segments *seg, uint32_t segment, uint64_t newest_cas, uint32_t latest_expiry);
bool seg_next_hold_nothing(const struct segments *seg, unsigned n, uint64_t flush_cas, uint32_t now_seconds);
/* Finds the LIVE segment that was written first, which may be reclaimed before its turn. False: none is LIVE. The
   cleaner. */
FS_MUST_CHECK bool seg_oldest(const struct segments *seg, uint32_t *segment);

/* Returns true while the device is online. Offline, it tries the device when the next try is due, which may take as
   long as the device hangs. The cleaner. */
FS_MUST_CHECK bool seg_online(struct segments *seg);
/* Is the device offline? Reads fail at once then. Any thread, no lock. */
bool seg_offline(const struct segments *seg);
/* Returns the milliseconds, at least one, since the cleaner began to wait for the device; 0: it doesn't wait. Any
   thread, no lock. */
uint64_t seg_busy_ms(const struct segments *seg);

struct seg_writer_ops {
	/* Fills *out with the record of plan->placed[n]; the bytes it points to stay valid until the
	   next call. Called in order of offset. */
	void (*record)(void *context, uint32_t n, struct seg_record *out);
	/* Called between chunks with the bytes just issued: may sleep to pace. May be NULL. */
	void (*pace)(void *context, uint64_t bytes);
};

/*
 * Streams the planned segment out: header, extents, data, footer (record offsets, filter), with several aligned
 * chunks in flight (staging_bytes at the most). Returns when all of it is written; waits for the device. A block
 * device's range is discarded first, in steps, with ops->pace called with 0 after each. *written: bytes issued.
 * filter may be NULL. Offline, it tries the device first when the next try is due. The cleaner.
 *
 * FS_OK: the segment is LIVE with plan->sequence and readable.
 * FS_EIO: it is RETIRED, or still FREE when *written is 0 and seg_next names it again.
 * FS_EOFFLINE, FS_ENOMEM, FS_ESYS: it is FREE, and nothing was written to it.
 * FS_EINVAL: segment is not the one that seg_next names or not FREE, the plan's sequence is not the next, or the
 * filter is larger than the plan has room for.
 * After an error the objects stay with the caller.
 */
FS_MUST_CHECK int seg_write(struct segments *seg, uint32_t segment, const struct seg_plan *plan, const void *filter,
			    uint64_t filter_length, const struct seg_writer_ops *ops, void *context, uint64_t *written);
/* Called by pace() before it sleeps: waits until all that was issued is written. The duration of a chunk
   (LAT_flash_write) ends when the writer notices, and would contain the sleep otherwise. */
void seg_write_wait(struct segments *seg);

/* ---- reclaim --------------------------------------------------------------------------------- */

/*
 * Calls visit for every record of a LIVE or RECLAIMING segment in order of offset; visit returns false to stop.
 * Reads in large pieces through a bounded buffer of the walk's own, and steps over bad records by the footer's
 * offsets. *visited: number of calls. Waits for the device.
 *
 * The cleaner, or any thread that has pinned the segment. visit may unpin the segment, and stops the walk then
 * unless it has pinned it again. record points into the walk's buffer, pinned or not, until visit returns.
 *
 * FS_OK: count and all checks agree with header and footer. FS_ECORRUPT, FS_EIO: something was skipped; visit was
 * called for every good record.
 */
FS_MUST_CHECK int seg_walk(struct segments *seg, uint32_t segment,
			   bool (*visit)(void *context, uint64_t offset, bool extent, const struct seg_record *record),
			   void *context, uint64_t *visited);

/*
 * Does what seg_walk does, and leaves records out. want is called for every record first, with its header and key unchecked,
 * which a flipped bit may have changed, and a value that need not be there. If it returns false, the record counts as
 * visited, and its value is not checked, and not read either where it is long (64 KiB). visit is called for the others,
 * checked, before want is called for the next record.
 */
FS_MUST_CHECK int seg_walk_wanted(struct segments *seg, uint32_t segment,
				  bool (*want)(void *context, uint64_t offset, bool extent,
					       const struct seg_record *head),
				  bool (*visit)(void *context, uint64_t offset, bool extent,
						const struct seg_record *record),
				  void *context, uint64_t *visited);

/* Makes a LIVE segment RECLAIMING. It may still be pinned. The cleaner. */
void seg_reclaim_begin(struct segments *seg, uint32_t segment);
/* Ends the reclaim of a RECLAIMING segment that no slot names any more. From this call on it can't be pinned.
   Waits for its last reader, at most timeout_ms of real time. FS_OK: it is FREE. FS_EBUSY: it is still pinned,
   call again. The cleaner. */
FS_MUST_CHECK int seg_reclaim_end(struct segments *seg, uint32_t segment, unsigned timeout_ms);
/* Returns the clock's milliseconds at the end of the segment's write. Called like seg_position. */
uint64_t seg_written_at_ms(const struct segments *seg, uint32_t segment);

/* ---- reading --------------------------------------------------------------------------------- */

/* Returns the sequence of the segment while it may be pinned; 0 otherwise. A reader that followed a slot hands it to
   seg_pin. Any thread, no lock. */
uint64_t seg_sequence(const struct segments *seg, uint32_t segment);

/* Pins the segment if it has this sequence: it is not overwritten until seg_unpin. False: it has been reclaimed, and is
   not pinned. Any thread; takes no lock but a leaf. */
FS_MUST_CHECK bool seg_pin(struct segments *seg, uint32_t segment, uint64_t sequence);
/* Takes one more pin on a segment that the caller has pinned. It can't fail: reclaim waits for the first pin, although
   the segment's sequence may be gone already. Any thread; takes no lock. */
void seg_pin_again(struct segments *seg, uint32_t segment);
/* Takes one pin back. Any thread; takes a leaf lock when a reclaim may be waiting for it. */
void seg_unpin(struct segments *seg, uint32_t segment);

/* A read in flight. The caller provides the memory, and may free it after seg_read_release or seg_read_cancel. */
struct seg_read {
	/* set by the caller */
	uint32_t segment; /* the caller pins it, and unpins it after done */
	uint64_t offset; /* within the segment, any byte */
	uint64_t length; /* wanted bytes from offset; clipped to the segment's end */
	uint64_t expires_ns; /* by the flash's clock: nobody waits for the read after that; 0: never */
	void (*done)(struct seg_read *read); /* on the reader's thread, from seg_reader_poll */
	void *context;
	/* set by the reader before done */
	int result; /* FS_OK, or FS_EIO, FS_EOFFLINE, FS_ENOMEM, FS_EINVAL (outside the segment), FS_ELATE (not sent:
		       the drive would not have answered before it expires) */
	const uint8_t *bytes; /* at offset */
	uint64_t available; /* valid bytes from there, >= length unless clipped; 0 after an error */
	unsigned pages; /* of the flash, of SEG_PAGE, that the read touches */
	uint64_t transferred; /* bytes read */
	/* When the drive got it, or 0, and when its answer was seen; by the flash's clock. sent_ns is also right earlier. */
	uint64_t sent_ns, answered_ns;
	/* the reader's own */
	uint32_t magic; /* from seg_read_submit to done or cancel */
	void *buffer;
	uint64_t buffer_bytes;
	struct seg_read *next, *prev;
	struct seg_reader *reader;
	uint32_t company; /* reads with the drive when it was sent, itself included */
	uint8_t list; /* the one of the reader's lists that holds it */
	uint8_t device; /* the number of the one that it reads from, while at_home */
	bool at_home;
	uint64_t io[18];
};

/* All calls on a reader belong to the thread that owns it, unless they say otherwise. */
struct seg_reader;

/* Makes a reader with at most depth (0 counts as 1) I/Os in flight; further ones wait inside, in order. FS_OK;
   FS_ENOMEM; FS_ESYS with errno, which is EAGAIN when the system has no asynchronous I/O context left. */
FS_MUST_CHECK int seg_reader_create(struct seg_reader **out, struct segments *seg, unsigned depth);
/* The reader keeps up to so many bytes of idle buffers for the next reads: at most SEG_READER_IDLE_MOST, which is
   the default. */
#define SEG_READER_IDLE_MOST (1u << 20)
void seg_reader_set_idle(struct seg_reader *reader, uint64_t bytes);
/* Waits for all reads in flight, however long the device takes, and runs done for them. Every read must
   have been released when the last done returns. NULL does nothing. */
void seg_reader_destroy(struct seg_reader *reader);
/* Returns an eventfd, owned by the reader, to which each completion adds. seg_reader_poll doesn't read it: watched
   edge-triggered, or read by the owner before each poll, it tells when there is more to poll. */
int seg_reader_fd(const struct seg_reader *reader);

/*
 * Sets the patience: for how long a client waits for a read (0, the default: for ever). From then on the drive is
 * given no more reads at a time than it answers in half of the patience, a read that would come too late is not
 * sent (FS_ELATE), and a drive that doesn't answer within the patience goes offline (read_rate_internal.h).
 */
void seg_reader_set_patience(struct seg_reader *reader, uint64_t ns);
/* Would a read that is submitted now be answered within the patience? begun: the read belongs to a request that
   has had reads already. Cheap, and only advice: seg_read_submit takes any read. */
FS_MUST_CHECK bool seg_reader_admits(const struct seg_reader *reader, bool begun, uint64_t now_ns);

/* Queues a read; seg_reader_flush sends it, so that a batch costs one system call. Never blocks, and never calls
   done: a bad read is reported by the next poll. Its buffer comes from a pool of the reader. */
void seg_read_submit(struct seg_reader *reader, struct seg_read *read);
/* Sends queued reads as far as the depth allows. Never blocks: the submitter thread takes a request on which the
   kernel would block. */
void seg_reader_flush(struct seg_reader *reader);
/* Takes a read out that the drive has not been given. True: it counts as released, and done will not be called.
   False: the drive has or had it, and done will be called. */
FS_MUST_CHECK bool seg_read_cancel(struct seg_reader *reader, struct seg_read *read);
/* Runs done for all reads that have completed and returns their number. Makes no system call while no read waits
   to be sent, so that it may be called at every turn. It also looks for late reads: while reads are in flight, call
   it at least every half of the patience. Not from within done, which may call seg_read_submit and
   seg_reader_flush. */
unsigned seg_reader_poll(struct seg_reader *reader);
/* Gives the read's buffer back; its bytes are gone. A second call, or one without a buffer, does nothing. */
void seg_read_release(struct seg_reader *reader, struct seg_read *read);
/* Returns the bytes of the reader's buffers, in use and idle. Any thread, no lock. */
uint64_t seg_reader_memory(const struct seg_reader *reader);
/* Returns how many reads were submitted and whose done has not run yet. */
unsigned seg_reader_in_flight(const struct seg_reader *reader);

/* Reports that the bytes at that offset of the segment fail their check although a record should lie there. Counts
   in the device's error budget, and logs a warning at most once a minute, with the number since the last one.
   Any thread; takes a leaf lock and may log, so the caller holds no lock. */
void seg_report_corrupt(struct segments *seg, uint32_t segment, uint64_t offset);

/* ---- figures --------------------------------------------------------------------------------- */

struct seg_status {
	uint32_t total, free, live, retired;
	uint32_t bad; /* that are not used any more, because reads failed at their home (rescue.h); not in retired */
	uint64_t newest_sequence;
	double fill; /* mean over live segments */
	uint64_t records_live; /* records in live segments, dead ones included */
	uint64_t record_bytes_live;
	uint64_t residence_ms; /* last measured: write to reclaim; 0 before the first */
	uint64_t busy_ms; /* seg_busy_ms */
	uint64_t allocated_bytes; /* seg_allocated_bytes */
	uint32_t fills; /* that have begun in the life of the flash */
	uint64_t fill_left_bytes; /* of the last one */
	int allocate_error; /* errno of the last try to allocate more; 0: it went well, or there was none */
	bool offline;
	char offline_reason[128];
	/* Why the file is not at its path any more: it is used until it is closed. "": it is there. */
	char away_reason[128];
};
/* Fills out. live counts RECLAIMING segments too. Any thread; takes LOCK_SEGMENT_TABLE and a leaf for a moment, without
   I/O. */
void seg_get_status(const struct segments *seg, struct seg_status *out);

#endif
