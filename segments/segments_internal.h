/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of an open flash, and the functions that the files of this module share.
 *
 * Locks: seg->lock (LOCK_SEGMENT_TABLE) covers states, cursor and sums. seg->pins_lock and the
 * health's lock are leaves. The cleaner writes an entry in region memory while nobody can pin its segment;
 * a thread that has pinned the segment may read it. live[].sequence publishes the entry.
 *
 * Unless its comment says otherwise, a function belongs to the cleaner. `number` and `segment` are below
 * seg->segments.
 */
#ifndef FS_SEGMENTS_SEGMENTS_INTERNAL_H
#define FS_SEGMENTS_SEGMENTS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/assert.h"
#include "base/lock.h"
#include "segments/crossings_internal.h"
#include "segments/device_internal.h"
#include "segments/homes_internal.h"
#include "segments/layout.h"

struct stream;

/*
 * A segment in region memory: no pointers, nothing that a restart would have to recompute. All times are the
 * clock's, all offsets from the segment's start, in bytes.
 *
 * A killed cleaner leaves a row that counts or one that doesn't: sequence is written last, once the segment is whole on
 * the device and before its first slot, and it is 0 again before the segment's first byte is overwritten.
 */
struct seg_entry {
	_Atomic uint64_t sequence; /* 0: the segment holds nothing that may be read */
	uint64_t data_offset, data_bytes;
	uint64_t footer_offset;
	uint64_t extents_bytes;
	uint64_t record_bytes;
	uint64_t written_at_ms;
	uint32_t granule; /* bytes */
	uint32_t longest_999; /* L, bytes */
	uint32_t objects, extents; /* objects: extents included */
	uint32_t functions;
	uint32_t table_id; /* of the index table that its slots lie in */
	uint32_t kind; /* enum seg_kind */
	uint32_t bin_bytes; /* of SEG_BINS; else 0 */
	struct layout_grid grid; /* follows from the fields above */
};

/* A footer's list of offsets while it is made or read. One owner. */
struct offsets_list {
	uint8_t *bytes;
	uint64_t length, capacity;
};

/* In region memory. segments is constant after open. */
struct seg_table {
	uint32_t segments;
	uint32_t crossings_bytes; /* of a segment's crossing map; 0: there are none. The maps follow the entries */
	uint64_t residence_ms; /* as in struct segments */
	struct seg_entry entry[];
};

/* A segment whose home is not in use is RETIRED. */
enum home_use {
	HOME_IN_USE,
	HOME_HELD, /* another segment is being copied there (rescue.h) */
	HOME_BAD /* reads failed there: for the life of the flash */
};

#define SEG_LIVE_MAGIC 0x53454731u

/* A segment in process memory. A cache line each: pins of neighbours don't disturb each other. */
struct seg_live {
	_Atomic uint64_t sequence; /* the one that may be pinned; 0: none. Written by the cleaner */
	_Atomic uint32_t pins;
	enum seg_state state; /* written by the cleaner under seg->lock; others read it under the lock */
	uint32_t magic; /* SEG_LIVE_MAGIC, constant */
	/* The offset on its device, in bytes, plus the number of that device in seg->devices. Written by the cleaner; any thread
	   that has pinned the segment reads it (homes_internal.h). */
	_Atomic uint64_t home;
	/* A copy of it could not be read in full. Its records that fail their check say nothing about the device. Written by the
	   cleaner; any thread reads it. */
	_Atomic bool partial;
	uint8_t use; /* enum home_use, of its home. Written by open and the cleaner under seg->lock; others read it under the lock */
	_Atomic uint32_t read_errors; /* since it was written or copied. Any thread */
	/* As in seg_note_content. The cleaner's own. */
	uint32_t latest_expiry;
	uint64_t newest_cas;
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct seg_live) == 64, "a cache line each");

#define HEALTH_ERRORS_MAX 64u
/* Why a device went offline: what must work before the cause counts as gone. */
enum health_cause { HEALTH_WRITES, HEALTH_READS, HEALTH_FILE };
/* lock covers all of it, for writing and reading; offline may be read without. */
struct seg_health {
	struct lock lock;
	_Atomic bool offline;
	unsigned budget; /* constant: 1 .. HEALTH_ERRORS_MAX */
	uint64_t error_ms[HEALTH_ERRORS_MAX]; /* a ring of the last budget errors */
	unsigned next_error; /* below budget */
	uint64_t retry_at_ms;
	uint64_t retry_after_ms; /* the wait that ends then */
	uint64_t pause_ms; /* the first wait of the last time offline; 0: the next time begins with the shortest */
	uint64_t back_at_ms; /* the device was last back online then */
	enum health_cause cause; /* of the last time offline */
	uint64_t look_at_ms; /* the cleaner looks after the file then; cleaner only */
	char away[128]; /* why the file is not at its path, which was told; "": it is there */
	uint64_t patience_ms; /* a read that takes longer is no answer; 0: no limit */
	uint64_t corrupt; /* records that failed their check and are not reported yet */
	uint64_t corrupt_report_at_ms;
	char reason[128];
};

struct submitter;
struct seg_move;
struct seg_rescue;

#define SEGMENTS_MAGIC 0x53454753u

/* Constant after open, like every field without a comment. */
struct segments {
	uint32_t magic; /* SEGMENTS_MAGIC until seg_close */
	struct dev
		*device; /* that new segments and the superblock go to: the cleaner's, which may change it (move.c) */
	const struct dev_ops *ops; /* of that device, and of each that the flash is moved to */
	/* By the number in a home. While a home names one, it stays; the cleaner fills in the other. */
	struct dev *devices[SEG_DEVICES];
	/* The figures of seg->device that other threads ask for. Written by open and the cleaner. */
	_Atomic uint64_t device_bytes, allocated_bytes;
	_Atomic bool direct, block_device;
	_Atomic uint32_t read_unit;
	_Atomic uint32_t usable; /* segments from this number on are not written. Written by the cleaner */
	struct seg_move *move; /* move.c; NULL: none is under way. Cleaner only */
	struct seg_rescue *rescue; /* rescue.c; the same */
	uint64_t rescue_at_ms; /* the next one begins then at the earliest. Cleaner only */
	_Atomic bool failing; /* there may be a segment with read_errors. Any thread */
	const struct clk *clock;
	uint64_t segment_bytes;
	uint32_t segments;
	uint64_t index_flash_bytes; /* seg_config.index_flash_bytes */
	uint64_t asked_bytes; /* seg_config.asked_bytes */
	uint32_t functions;
	uint32_t crossings_bytes; /* as in struct seg_table */
	/* As it stands on flash; written by open and the cleaner, uuid, secret and hash seed by open alone. */
	struct layout_super super;
	enum seg_found found;
	uint8_t found_uuid[16]; /* of the flash that was found, before one of another layout got a new one */
	uint32_t found_segments; /* of the flash that was found; at most segments where that one may be loaded */
	bool taken_over; /* seg_take_over has succeeded; the opening thread's */
	struct seg_table *table;
	struct seg_live *live;

	struct lock lock;
	uint32_t cursor; /* next in FIFO order; written by the cleaner under lock */
	_Atomic uint64_t fill_taken_bytes; /* of a fill, out of the superblock; written by the cleaner */
	uint64_t next_sequence; /* cleaner only; at most super.sequence_end */
	uint64_t newest_sequence; /* under lock */
	uint64_t residence_ms; /* under lock */
	struct seg_step step; /* of planning; cleaner only */
	/* Made for the first segment that is written, and kept: the end of a queue waits for all processors, which
	   takes some ten milliseconds. Cleaner only. */
	struct dev_queue *write_queue;
	uint8_t *staging;
	struct stream *stream; /* of the segment that is being written; NULL: of none. Cleaner only */

	struct lock pins_lock; /* of the wait for pins alone */
	pthread_cond_t pins_gone;
	struct lock users_lock; /* a leaf */
	struct home_user *users; /* under users_lock */

	struct seg_health health;
	_Atomic uint64_t busy_since_ms; /* the cleaner waits for the device since then, plus 1; 0: it doesn't wait */
	struct submitter *submitter;
	/* Of the allocation: the next try, after an error; the tenth that was last told. Cleaner only. */
	uint64_t allocate_at_ms;
	unsigned allocate_tenth;
	_Atomic int allocate_error; /* errno of the last try, 0: it went well. Written by the cleaner */
	bool durable; /* seg_set_durable */
	enum seg_direct direct_wanted; /* seg_config.direct */
	enum seg_read_unit read_unit_wanted; /* seg_config.read_unit */
	_Atomic bool nowait; /* the device takes RWF_NOWAIT, as far as is known; cleared by any thread */
};

/* Does what seg_open does, with the same codes, on a device that is open already. Owns the device from then on, and
   closes it on failure. */
FS_MUST_CHECK int seg_open_on(struct segments **out, const struct seg_config *config, void *table, struct dev *device);

/* device_asked and device_answered enclose each wait of the cleaner for the device; seg_busy_ms returns its length. */
static inline void device_asked(struct segments *seg)
{
	atomic_store_explicit(&seg->busy_since_ms, clk_now_ms(seg->clock) + 1, memory_order_relaxed);
}

static inline void device_answered(struct segments *seg)
{
	atomic_store_explicit(&seg->busy_since_ms, 0, memory_order_relaxed);
}

/* Returns the process's part of a segment. Any thread. */
static inline struct seg_live *seg_live_at(const struct segments *seg, uint32_t number)
{
	struct seg_live *live = &seg->live[number];

	must(number < seg->segments && live->magic == SEG_LIVE_MAGIC);
	return live;
}

/* Returns the segment's crossing map; NULL: there is none. Any thread. */
static inline crossing_pair *seg_crossings(const struct segments *seg, uint32_t number)
{
	if (seg->crossings_bytes == 0)
		return NULL;
	return (crossing_pair *)&seg->table->entry[seg->segments] + (uint64_t)number * seg->crossings_bytes;
}

/* Returns the segment's home. Any thread; to read there, one calls home_enter, but for the cleaner. */
static inline struct seg_home seg_home(const struct segments *seg, uint32_t segment)
{
	uint64_t home = atomic_load(&seg_live_at(seg, segment)->home);

	return (struct seg_home){ seg->devices[home % SEG_DEVICES], home / SEG_PAGE * SEG_PAGE, home % SEG_DEVICES };
}

/* Returns the bytes of which reads of records from this device are multiples. Any thread. */
static inline uint32_t seg_read_unit(const struct segments *seg, const struct dev *device)
{
	return seg->read_unit_wanted == SEG_READ_PAGE ? SEG_PAGE : device->read_block;
}

/* Returns where a segment begins on its device, in bytes; for the cleaner that is seg->device. */
static inline uint64_t seg_offset(const struct segments *seg, uint32_t segment)
{
	return seg_home(seg, segment).offset;
}

/* Returns where the segment of that number begins on any device, in bytes. */
static inline uint64_t seg_offset_by_number(const struct segments *seg, uint32_t segment)
{
	return LAYOUT_SUPER_BYTES + segment * seg->segment_bytes;
}

/* ---- allocate.c ---- */

/* Notes in the log that a file is still to be made. */
void allocate_begin(const struct segments *seg);

/* ---- segments.c ---- */

/* Notes in a superblock how many segments lie on the device, and how many the index is made for. */
void seg_note_segments(const struct segments *seg, struct layout_super *super, uint32_t segments);

/* Takes the figures of seg->device over, for other threads. */
void seg_note_device(struct segments *seg);

/* Writes the superblock as it is in seg->super, while seg_busy_ms counts. Codes of super_store. */
FS_MUST_CHECK int seg_store_super(struct segments *seg);
/* fill.c. fill_end gives back, in the superblock that is written next, what of a fill is taken and not written.
   fill_status fills in its figures. */
void fill_end(struct segments *seg);
void fill_status(const struct segments *seg, struct seg_status *out);

/* ---- homes.c ---- */

/* Is the list of homes of a superblock one that homes_put makes? */
FS_MUST_CHECK bool homes_are_sound(const struct layout_super *super);
/* Takes the homes that seg->super tells. Before other threads run. */
void homes_take(struct segments *seg);
/* Writes the homes into a superblock, as they are if a is b; else those of segments a and b are swapped there, b's is a bad
   one, and a_is_partial tells whether a lacks pages. */
void homes_put(const struct segments *seg, struct layout_super *super, uint32_t a, uint32_t b, bool a_is_partial);
/* Every segment lies where its number says, and no home is bad. */
void homes_clear(struct layout_super *super);
/* Returns the number of the home at which a segment lies. */
uint32_t home_number(const struct segments *seg, uint32_t segment);

/* ---- rescue.c ---- */

/* Ends the rescue that is under way, if there is one; the segment stays where it is. */
void rescue_cancel(struct segments *seg);

/* ---- move.c ---- */

/* Ends the move that is under way, as seg_close does: a device that nothing was moved to is given up, and one that is no
   longer used is closed, however many readers there were. */
void move_close(struct segments *seg);

/* ---- restart.c ---- */

/* Does the segment lie within the bytes that the file had when it was opened? */
FS_MUST_CHECK bool seg_was_in_file(const struct segments *seg, uint32_t segment);

/* ---- superblock.c ---- */

/* Reads the copies of the superblock. FS_OK: *out is the valid one with the higher generation. FS_ENOTFOUND: both
   are blank. FS_ECORRUPT, FS_EVERSION: something else lies there. FS_EIO: neither could be read. FS_ENOMEM.
   *generation: the highest seen in any valid copy, or 0. Blocks on the device. */
FS_MUST_CHECK int super_load(struct dev *device, struct layout_super *out, uint64_t *generation);
/* Fills in a new superblock with random UUID, secret and hash seed; super_store makes a higher generation of it. */
void super_make(struct layout_super *super, uint64_t generation);
/* Writes both copies with the next generation, each durable before the next. clock: for LAT_flash_write. FS_ENOMEM;
   FS_EIO with errno. Blocks on the device. */
FS_MUST_CHECK int super_store(struct dev *device, const struct clk *clock, struct layout_super *super);
/* Did the last run end cleanly? */
static inline bool super_is_clean(const struct layout_super *super)
{
	return super->clean_epoch != 0 && super->clean_epoch == super->attach_epoch;
}

/* ---- health.c ---- */

/* Begins online. budget is the number of errors within a minute that are tolerated; 0 stands for 16, and more than
   HEALTH_ERRORS_MAX for that many. */
void health_init(struct seg_health *health, unsigned budget);
void health_fini(struct seg_health *health);
/* Counts a write that failed with this errno, and takes the device offline when it exceeds the budget. what: the subject
   of the log line, "a write". Any thread; takes a leaf lock and may log. */
void health_error(struct segments *seg, const char *what, int error);
/* The same of a read of this segment, which counts as failing from then on. */
void health_read_error(struct segments *seg, uint32_t segment, int error);
/* Is the device offline? Any thread, no lock. */
static inline bool health_offline(const struct segments *seg)
{
	return atomic_load_explicit(&seg->health.offline, memory_order_acquire);
}
/* Takes the device offline because it doesn't answer reads within that many ms. Any thread; takes a leaf lock. */
void health_silent(struct segments *seg, uint64_t patience_ms);
/* Takes the device offline because a write failed with this errno and every segment is retired now. */
void health_none_left(struct segments *seg, int error);
/* Notes that a segment was written. If failed writes were the cause of the last time offline, the next one begins with
   the shortest wait. */
void health_proven(struct segments *seg);
/* Returns true while online; every few seconds it looks after the flash file, and takes a shortened one offline. Offline,
   it tries the device again when the next try is due, and waits for it however long that takes; when the device is
   back, retired segments are free again. The cleaner. */
FS_MUST_CHECK bool health_online(struct segments *seg);

/* ---- table.c ---- */

/* Moves a segment to a state, which must follow from the present one. Takes seg->lock. */
void seg_set_state(struct segments *seg, uint32_t number, enum seg_state state);
/* Notes the use of a segment's home, and moves the segment to a state that goes with it: RETIRED unless it is in use. Takes
   seg->lock. */
void seg_set_use(struct segments *seg, uint32_t number, enum home_use use, enum seg_state state);
/* Is every segment RETIRED? */
FS_MUST_CHECK bool seg_all_retired(const struct segments *seg);
/* Makes retired segments free, but for those whose home is bad or held, and returns their number: no slot names them,
   because their objects were never committed, and nobody can pin them. No segment counts as failing any more. Takes
   seg->lock. */
uint32_t seg_revive(struct segments *seg);

/* ---- record.c ---- */

/* Returns the keyed check of a record, of which the low 32 bits go into its header. header->check is not read. Any
   thread. */
uint64_t record_check(const struct layout_super *super, uint64_t sequence, uint64_t offset,
		      const struct layout_record *header, const char *key, const char *value);
/* Fills in the header of a record for that sequence and offset. last: it is the last one of a bin. Any thread. */
void record_header(const struct layout_super *super, uint64_t sequence, uint64_t offset,
		   const struct seg_record *record, bool last, struct layout_record *out);

/* ---- adopt.c ---- */

/* Fills in a row from a header page, but for its sequence and the time. */
void entry_from_header(const struct layout_header *header, struct seg_entry *entry);

/* ---- plan.c ---- */

/* Returns the bytes of the footer's area for that many objects, whole pages. positions: granules of the data area. */
uint64_t plan_footer_bytes(uint64_t objects, uint64_t extents, uint64_t positions, uint64_t filter_bytes);

/* ---- footer.c ---- */

/* Appends a step from one record to the next, in granules of its area. The list has room for it. */
void offsets_put(struct offsets_list *list, uint64_t step);
/* Takes the step at *at, and moves *at behind it; false when offsets_put doesn't make such a list. Any thread. */
FS_MUST_CHECK bool offsets_take(const struct offsets_list *list, uint64_t *at, uint64_t *step);
/* filter.c. Reads so many bytes at that offset of the segment; both and the buffer are multiples of a page. FS_OK, FS_EIO,
   which is counted against the error budget. The cleaner; waits for the device. */
FS_MUST_CHECK int segment_read(struct segments *seg, uint32_t segment, void *buffer, uint64_t bytes, uint64_t offset);
/* filter.c. Does what seg_read_filter does, for a footer that was judged, which begins at that offset of the segment. */
FS_MUST_CHECK int filter_read(struct segments *seg, uint32_t segment, uint64_t footer_offset,
			      const struct layout_footer *footer, void **filter, size_t *length);

/* Fills in the footer's tail for that header, list and filter (NULL with length 0: none). */
void footer_make(const struct segments *seg, const struct layout_header *header, const struct offsets_list *list,
		 const void *filter, uint64_t filter_length, struct layout_footer *out);
/* Fills in the header page of the segment for that plan. record_bytes: of all its records. */
void header_make(const struct segments *seg, uint32_t segment, const struct seg_plan *plan, uint64_t record_bytes,
		 struct layout_header *out);
/* header_valid asks whether the header page is whole and belongs to this sequence of this flash, footer_valid the same
   of the footer's tail. Any thread with a pin. */
FS_MUST_CHECK bool header_valid(const struct segments *seg, const struct layout_header *header, uint32_t segment,
				uint64_t sequence);
FS_MUST_CHECK bool footer_valid(const struct segments *seg, const struct layout_footer *footer, uint64_t sequence);

/* ---- submitter.c: one thread for requests that would block a worker ---- */

/* Returns NULL when memory is out. The thread starts with the first use. */
struct submitter *submitter_create(void);
/* Ends the thread. All requests have been handed back or submitted. NULL does nothing. */
void submitter_destroy(struct submitter *submitter);
/* Takes over a request: the thread submits it to its queue again without NOWAIT, or, when that fails, reads it in
   place and calls io->handed_back. With hold_ms: the thread only hands it back, that much later. Any thread;
   takes a leaf lock. Without a thread, the caller does the work, and may block. */
void submitter_take(struct submitter *submitter, struct dev_io *io, unsigned hold_ms);

#endif
