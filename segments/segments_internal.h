/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state of an open flash and what the files of this module call of each other.
 *
 * Locks: seg->lock (LOCK_SEGMENT_TABLE) covers states, cursor and sums. seg->pins_lock and the
 * health's lock are leaves. The entries in region memory are written by the cleaner while nobody can
 * pin the segment, and read by whoever has it pinned: live[].sequence publishes them.
 */
#ifndef FS_SEGMENTS_SEGMENTS_INTERNAL_H
#define FS_SEGMENTS_SEGMENTS_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "segments/device_internal.h"
#include "segments/layout.h"

struct stream;

/* A segment in region memory: no pointers, nothing that must be recomputed after a restart. */
struct seg_entry {
	uint64_t sequence; /* 0: holds nothing that may be read */
	uint64_t data_offset, data_bytes;
	uint64_t footer_offset;
	uint64_t extents_bytes;
	uint64_t record_bytes;
	uint64_t written_at_ms;
	uint32_t granule;
	uint32_t longest_999;
	uint32_t objects, extents;
	uint32_t functions;
	uint32_t table_id;
	struct layout_grid grid;
};

/* The list of offsets being made, or read. */
struct offsets_list {
	uint8_t *bytes;
	uint64_t length, capacity;
};

struct seg_table {
	uint32_t segments;
	uint32_t reserved;
	struct seg_entry entry[];
};

/* A segment in process memory. A cache line each: pins of neighbours don't disturb each other. */
struct seg_live {
	_Atomic uint64_t sequence; /* what may be pinned; 0: nothing */
	_Atomic uint32_t pins;
	enum seg_state state; /* covered by seg->lock */
} __attribute__((aligned(64)));

#define HEALTH_ERRORS_MAX 64u
struct seg_health {
	struct lock lock;
	_Atomic bool offline;
	unsigned budget;
	uint64_t error_ms[HEALTH_ERRORS_MAX]; /* a ring of the last budget errors */
	unsigned next_error;
	uint64_t retry_at_ms;
	uint64_t retry_after_ms; /* the wait that ends then */
	uint64_t
		pause_ms; /* the wait that the last time offline began with; 0: the next one begins with the shortest */
	uint64_t back_at_ms; /* when it was online again last */
	uint64_t patience_ms; /* a read that takes longer is no answer; 0: any is */
	uint64_t corrupt; /* records that failed their check, not reported yet */
	uint64_t corrupt_report_at_ms;
	char reason[128];
};

struct submitter;

struct segments {
	struct dev *device;
	const struct clk *clock;
	uint64_t segment_bytes;
	uint32_t segments;
	uint32_t functions;
	struct layout_super super; /* as it stands on flash; written by open and the cleaner */
	struct seg_table *table;
	struct seg_live *live;

	struct lock lock;
	uint32_t cursor; /* next in FIFO order */
	uint64_t next_sequence; /* cleaner only */
	uint64_t newest_sequence;
	uint64_t residence_ms;
	struct seg_step step; /* of planning; cleaner only */
	/* What segments are written through, made for the first one and kept: ending a queue waits for all
	   processors, some ten milliseconds. Cleaner only. */
	struct dev_queue *write_queue;
	uint8_t *staging;
	struct stream *stream; /* of the segment that is being written; NULL: of none. Cleaner only */

	struct lock pins_lock;
	pthread_cond_t pins_gone;

	struct seg_health health;
	_Atomic uint64_t busy_since_ms; /* since then the cleaner waits for the device; 0: it doesn't */
	struct submitter *submitter;
	_Atomic bool nowait; /* the device takes RWF_NOWAIT, as far as we know */
};

/* Opens on a device that is open already, and owns it from then on, success or not. */
FS_MUST_CHECK int seg_open_on(struct segments **out, const struct seg_config *config, void *table, struct dev *device);

/* Around whatever the cleaner waits for. */
static inline void device_asked(struct segments *seg)
{
	atomic_store_explicit(&seg->busy_since_ms, clk_now_ms(seg->clock) + 1, memory_order_relaxed);
}

static inline void device_answered(struct segments *seg)
{
	atomic_store_explicit(&seg->busy_since_ms, 0, memory_order_relaxed);
}

static inline uint64_t seg_offset(const struct segments *seg, uint32_t segment)
{
	return LAYOUT_SUPER_BYTES + segment * seg->segment_bytes;
}

/* ---- superblock.c ---- */

/* FS_OK; FS_ENOTFOUND: blank; FS_ECORRUPT, FS_EVERSION: something else lies there; FS_EIO. *generation:
   the highest seen in any valid copy. */
FS_MUST_CHECK int super_load(struct dev *device, struct layout_super *out, uint64_t *generation);
void super_make(struct layout_super *super, uint64_t generation);
/* Writes both copies with the next generation, each durable before the next. clock: for LAT_flash_write. */
FS_MUST_CHECK int super_store(struct dev *device, const struct clk *clock, struct layout_super *super);

/* ---- health.c ---- */

void health_init(struct seg_health *health, unsigned budget);
void health_fini(struct seg_health *health);
/* An I/O failed with this errno. Takes the device offline when that was one too many. Any thread. */
void health_error(struct segments *seg, const char *what, int error);
static inline bool health_offline(const struct segments *seg)
{
	return atomic_load_explicit(&seg->health.offline, memory_order_acquire);
}
/* The drive doesn't answer reads within that many ms: takes it offline. Any thread. */
void health_silent(struct segments *seg, uint64_t patience_ms);
/* A write failed with this errno and every place is retired: takes the device offline. Cleaner. */
void health_none_left(struct segments *seg, int error);
/* A segment was written: the next time offline, the back-off begins anew. Cleaner. */
void health_proven(struct segments *seg);
/* The cleaner's: true while online. Offline, tries the device again when it is time to, which takes as long as the
   device takes; when it is back, retired places are free again. */
FS_MUST_CHECK bool health_online(struct segments *seg);

/* ---- table.c ---- */

FS_MUST_CHECK bool seg_all_retired(const struct segments *seg); /* cleaner */
/* Makes retired places free: nothing names them, their objects were never committed, nobody can pin
   them. How many there were. Cleaner. */
uint32_t seg_revive(struct segments *seg);

/* ---- record.c ---- */

uint64_t record_check(const struct layout_super *super, uint64_t sequence, uint64_t offset,
		      const struct layout_record *header, const char *key, const char *value);
void record_header(const struct layout_super *super, uint64_t sequence, uint64_t offset,
		   const struct seg_record *record, struct layout_record *out);

/* ---- plan.c ---- */

/* The footer's area, whole pages. */
uint64_t plan_footer_bytes(uint64_t objects, uint64_t extents, uint64_t positions, uint64_t filter_bytes);

/* ---- footer.c ---- */

/* Appends a step from one record to the next, in granules of its area. */
void offsets_put(struct offsets_list *list, uint64_t step);
/* Takes the step at *at; false when the list is not what offsets_put makes. */
FS_MUST_CHECK bool offsets_take(const struct offsets_list *list, uint64_t *at, uint64_t *step);
void footer_make(const struct segments *seg, const struct layout_header *header, const struct offsets_list *list,
		 const void *filter, uint64_t filter_length, struct layout_footer *out);
void header_make(const struct segments *seg, uint32_t segment, const struct seg_plan *plan, uint64_t record_bytes,
		 struct layout_header *out);
/* Whether the page or tail is whole and belongs to this sequence of this flash. */
FS_MUST_CHECK bool header_valid(const struct segments *seg, const struct layout_header *header, uint32_t segment,
				uint64_t sequence);
FS_MUST_CHECK bool footer_valid(const struct segments *seg, const struct layout_footer *footer, uint64_t sequence);

/* ---- submitter.c: one thread for what would block a worker ---- */

struct submitter *submitter_create(void); /* NULL: no memory. The thread starts with the first use. */
void submitter_destroy(struct submitter *submitter);
/* Submits io to its queue again without NOWAIT, or, when that fails, reads it in place and calls
   io->handed_back. With hold_ms: only hands it back, that much later. */
void submitter_take(struct submitter *submitter, struct dev_io *io, unsigned hold_ms);

#endif
