/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The structs that the files of this folder share.
 *
 *   region area   head with rows | table of kills | watermarks | closed | blocks: bundles, prefilters, places of chains
 *
 * The head's rows say where blocks lie. A row counts once its last field is stored: serial, number or `prefilter`. A block
 * without such a row is free. So a killed process leaves each block used or free, and nothing in between.
 *
 * What readers see is a view: pointers to bundles, chain and prefilter, in process memory, made anew for each change and never
 * changed. The cleaner publishes a view, calls quiesce, and then frees the old one with the blocks that only it had.
 */
#ifndef FS_FRUGAL_INTERNAL_H
#define FS_FRUGAL_INTERNAL_H

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/region.h"
#include "flashindex/frugal/cell.h"
#include "flashindex/frugal/frugal.h"

#define BUNDLES_MOST 96u
#define CHAINS 2u
#define PREFILTERS 2u
#define BLOCKS_MOST (BUNDLES_MOST + CHAINS + PREFILTERS + 2)
#define LINE_CELLS 8u /* kills in a cache line */
#define LINES_MOST (1u << 24)

/* ---- in the region --------------------------------------------------------------------------- */

/* A part of the area, in bytes from its beginning, both multiples of region_unit. */
struct block {
	uint64_t offset, bytes;
};

struct bundle_row {
	struct block block;
	uint64_t oldest; /* serial of the first of the bundles that were laid together in it */
	_Atomic uint64_t serial; /* of the last one; 0: the row is free */
};

struct chain_row {
	struct block block;
	uint64_t covers; /* bundles with serials up to this one are in it */
	uint32_t columns, segments;
	_Atomic uint64_t number;
};

struct prefilter_row {
	struct block block;
	uint64_t blocks; /* of 64 bytes, for each partition */
};

struct region_frugal {
	uint32_t segments, partitions, lines; /* lines: of 64 bytes, of the table of kills */
	uint64_t seed;
	_Atomic uint64_t chain; /* the number of the present chain, in chains[number % CHAINS]; 0: there is none */
	_Atomic uint64_t prefilter; /* which one is in use */
	_Atomic uint64_t kill_up_to; /* the newest sequence that a kill of now is about */
	struct chain_row chains[CHAINS];
	struct prefilter_row prefilters[PREFILTERS];
	struct bundle_row bundles[BUNDLES_MOST];
};

/* A column, in the head of its bundle and in the block of its chain. */
struct column {
	uint64_t sequence;
	uint32_t segment;
	uint32_t records;
	uint64_t bytes; /* of the records */
};

/* The head of a bundle's block; the other parts follow in this order. */
struct bundle_head {
	uint32_t partitions, columns;
	uint64_t values, kills;
};

/* A segment of a chain, in the block of the chain. */
struct chain_segment {
	uint64_t sequence, data_offset; /* bytes, within the segment */
	uint32_t segment, first; /* partition */
	uint64_t
		from; /* the place of its first record, in units of FRUGAL_CHAIN_ALIGN through all segments of the chain */
};

/* ---- in the process -------------------------------------------------------------------------- */

/* Constant once it is in a view. Pointers lead into its block. */
struct bundle {
	struct bundle_row *row;
	struct block block;
	uint64_t serial, oldest;
	uint32_t columns;
	const struct column *column; /* the newest first */
	struct lists lists; /* of fingerprints */
	const uint16_t *values;
	struct lists kill_lists; /* of kills, with one column */
	const uint32_t *kills;
	const uint16_t *
		kill_columns; /* the first column that the kill is about; `columns`: older bundles and the chain alone */
};

struct chain {
	struct chain_row *row;
	struct block block;
	uint64_t number, covers;
	uint32_t columns, segments;
	const struct column *column; /* the newest first */
	const struct chain_segment *segment; /* in order of partition */
	const uint32_t
		*places; /* partitions + 1: of the record, as in chain_segment.from. Equal to the next one: none */
};

struct prefilter {
	struct block block;
	uint64_t blocks;
	_Atomic uint64_t *words; /* bits are added by the cleaner while others read */
};

struct view {
	unsigned bundles;
	const struct bundle *bundle[BUNDLES_MOST]; /* the newest first */
	const struct chain *chain; /* or NULL */
	const struct prefilter *prefilter;
	uint64_t newest; /* sequence of the newest column, in memory or in the chain; 0: there is none */
};

/* Constant after creation, like every field without a comment. */
struct frugal {
	struct frugal_config config;
	struct region *region;
	uint8_t *area;
	struct region_frugal *kept;
	uint32_t partitions, lines;
	uint64_t fixed_bytes; /* all parts before the blocks, which begin behind them */
	_Atomic uint64_t *kills; /* lines * LINE_CELLS: kills.c */
	_Atomic uint64_t *watermarks; /* of each partition; only rise */
	_Atomic uint64_t
		*closed; /* of each segment: the sequence under which it was closed last. In the area; the cleaner's */
	_Atomic(struct view *) view;
	struct view *spare_view; /* that was published before; the cleaner's */
	void (*quiesce)(void *context);
	void *quiesce_context;
	void (*step)(void *context);
	void *step_context;

	/* Of each segment. Written by the cleaner; read by any thread. */
	_Atomic uint64_t *open; /* sequence; 0: it is closed */
	_Atomic uint64_t *chained; /* sequence under which the present chain has records there; 0: it has none */
	_Atomic uint64_t *bytes; /* of the records; 0: it is closed */
	uint32_t *records; /* the cleaner's */

	/* The cleaner's: */
	struct block used[BLOCKS_MOST]; /* in order of offset: used_count of them */
	unsigned used_count;
	struct bundle *bundle[BUNDLES_MOST]; /* the newest first */
	unsigned bundles;
	struct chain *chain;
	struct prefilter *prefilter, *next_prefilter; /* next: of the merge that is under way, or NULL */
	struct frugal_merge *merge;
	struct block reserved; /* for the bundle of the segment that is planned; bytes 0: none */
	uint64_t *taken; /* kills for that bundle: taken_count of them, by partition */
	uint64_t taken_count;
	bool took; /* a bundle has them */
	uint64_t serial, chain_number; /* the last ones given out */

	/* Figures, which any thread reads: */
	_Atomic uint64_t memory, bundle_bytes, prefilter_bytes, chain_bytes, kill_count, kills_listed;
	_Atomic uint64_t open_records, open_bytes;
	_Atomic uint32_t open_segments, columns_in_memory, columns_in_chain, chain_segments, bundle_count;
	_Atomic uint64_t given_up; /* partitions */
	_Atomic uint32_t epoch; /* of kills: 1 .. EPOCHS */
};

static inline void frugal_step(const struct frugal *frugal)
{
	if (frugal->step)
		frugal->step(frugal->step_context);
}

static inline uint16_t fingerprint_of(uint64_t x)
{
	return (uint16_t)x;
}

static inline uint32_t kill_of(uint64_t x)
{
	return (uint32_t)x;
}

/* ---- blocks.c -------------------------------------------------------------------------------- */

/* Takes memory for so many bytes; they hold zeros. FS_OK; FS_ENOMEM. */
FS_MUST_CHECK int block_take(struct frugal *frugal, uint64_t bytes, struct block *out);
/* Gives it back. bytes 0 does nothing. */
void block_give(struct frugal *frugal, struct block *block);
/* Attaches to a block that a row names. False: it lies outside of the area or has no memory. */
FS_MUST_CHECK bool block_attach(struct frugal *frugal, const struct block *block);
/* Gives back what lies between all blocks that are in use. */
void blocks_tidy(struct frugal *frugal);

/* ---- creation: frugal.c ---------------------------------------------------------------------- */

/* Makes a handle without partitions, with the head's part of the area committed. Codes of frugal_create. */
FS_MUST_CHECK int frugal_make(struct frugal **out, const struct frugal_config *config, struct region *region);
/* Returns the bytes of the head's part, in units of the region. */
uint64_t frugal_head_part(const struct frugal *frugal);
/* Commits the rest of the fixed part, for so many partitions and lines of kills. FS_OK, FS_ENOMEM, FS_ERANGE. */
FS_MUST_CHECK int frugal_lay_out(struct frugal *frugal, uint32_t partitions, uint32_t lines);
/* Returns the lines of kills that the configuration asks for, and the most that an index for that flash may have. */
uint32_t frugal_lines(const struct frugal_config *config);
uint32_t frugal_lines_most(const struct frugal_config *config);
/* Writes the head of an index without anything in it. */
void frugal_head_create(struct frugal *frugal);
/* Lets a prefilter be the one in use, in handle and head; the old one is the caller's. */
void prefilter_use(struct frugal *frugal, struct prefilter *prefilter);
/* Publishes the first view of what the handle has. FS_OK, FS_ENOMEM. */
FS_MUST_CHECK int frugal_begin(struct frugal *frugal);

/* ---- views: frugal.c ------------------------------------------------------------------------- */

/* Publishes bundles, chain and prefilter as they are now. Then nobody uses what was there before. */
void view_publish(struct frugal *frugal);
/* Returns what is published. Any thread, under a stripe; and the cleaner. */
static inline const struct view *view_of(const struct frugal *frugal)
{
	return atomic_load_explicit(&frugal->view, memory_order_acquire);
}
/* Opens a segment, or closes it: in this process's arrays and sums alone. */
void segment_open(struct frugal *frugal, const struct column *column);
void segment_close(struct frugal *frugal, uint32_t segment);
/* Returns the lowest sequence of an open segment; UINT64_MAX: none is open. */
uint64_t segments_oldest(const struct frugal *frugal);
/* Is a column's segment open? Any thread. */
static inline bool column_is_open(const struct frugal *frugal, const struct column *column)
{
	return column->segment < frugal->config.segments &&
	       atomic_load_explicit(&frugal->open[column->segment], memory_order_acquire) == column->sequence;
}
/* Brings figures up to date. */
void figures_count(struct frugal *frugal);

/* ---- bundle.c -------------------------------------------------------------------------------- */

/* Returns the bytes of a bundle. */
uint64_t bundle_bytes(uint32_t partitions, uint32_t columns, uint64_t values, uint64_t kills);
/* The parts of a bundle that is made in a block of bundle_bytes zeros. */
struct bundle_parts {
	struct column *column;
	uint64_t *bits, *kill_bits;
	uint32_t *samples, *kill_samples;
	uint16_t *values, *kill_columns;
	uint32_t *kills;
};
/* Writes the head, and tells where the parts belong. */
void bundle_make(void *at, uint32_t partitions, uint32_t columns, uint64_t values, uint64_t kills,
		 struct bundle_parts *out);
/* Makes the process's part of a bundle in a block; NULL: what lies there is none that fits into it, or memory is out. */
struct bundle *bundle_of(const struct frugal *frugal, const struct block *block);
/* Returns a partition's part of a bundle. Any thread. */
struct cell bundle_cell(const struct bundle *bundle, uint32_t partition);

/* ---- kills.c --------------------------------------------------------------------------------- */

/* Does a kill, or the note that it is absent, say that nothing on flash is the key's? Stripe held. */
FS_MUST_CHECK bool kills_has(const struct frugal *frugal, const struct frugal_key *key);
/* Returns the watermark of a partition. Any thread. */
static inline uint64_t watermark_of(const struct frugal *frugal, uint32_t partition)
{
	return atomic_load_explicit(&frugal->watermarks[partition], memory_order_acquire);
}
/* Begins a new epoch of kills; when it returns no kill of an older one can come. */
void kills_begin_epoch(struct frugal *frugal);
/* Takes the kills of older epochs into frugal->taken, in order of partition. FS_OK, FS_ENOMEM. */
FS_MUST_CHECK int kills_take(struct frugal *frugal);
/* Counts the kills in the table, after an attach. */
void kills_count(struct frugal *frugal);
/* Forgets which keys are known to be absent. */
void kills_forget_absent(struct frugal *frugal);
/* A bundle has what was taken: the table forgets it, where no command has put the same kill anew. */
void kills_forget_taken(struct frugal *frugal);
/* Returns x as far as an entry has it: all bits that partition, fingerprint and kill follow from. */
static inline uint64_t entry_x(uint64_t entry)
{
	return entry >> 36 << 36 | (entry >> 4 & UINT32_MAX);
}

/* ---- prefilter.c ----------------------------------------------------------------------------- */

/* Returns the bytes of a prefilter with so many blocks for each partition. */
uint64_t prefilter_bytes(const struct frugal *frugal, uint64_t blocks);
/* Returns the blocks for each partition that so many objects want. */
uint64_t prefilter_blocks(const struct frugal *frugal, uint64_t objects);
/* Makes an empty prefilter. NULL: memory is out. */
struct prefilter *prefilter_create(struct frugal *frugal, uint64_t blocks);
/* Gives its block back. NULL does nothing. */
void prefilter_destroy(struct frugal *frugal, struct prefilter *prefilter);
/* May a key with this fingerprint be in the partition? Any thread. */
FS_MUST_CHECK bool prefilter_passes(const struct prefilter *prefilter, uint32_t partition, uint16_t fingerprint);
void prefilter_add(struct prefilter *prefilter, uint32_t partition, uint16_t fingerprint);
/* Adds all fingerprints of a bundle to the prefilters in use. */
void prefilter_add_bundle(struct frugal *frugal, const struct bundle *bundle);
/* Makes a partition's bits anew: of these fingerprints, and of all bundles that are newer than `covers`. */
void prefilter_renew(struct frugal *frugal, uint32_t partition, const uint16_t *values, uint64_t count,
		     uint64_t covers);

/* ---- laying bundles together: tidy.c ----------------------------------------------------------- */

/* Puts a bundle that is made into the list, as the newest, and publishes it. */
void bundle_publish(struct frugal *frugal, struct bundle *bundle);
/* Puts a bundle, or none, in the place of `count` bundles from the one of number first on, publishes that, and frees them. */
void bundles_replace(struct frugal *frugal, unsigned first, unsigned count, struct bundle *by);
/* Fills in a free row for a bundle, by which it counts for a later process. */
void bundle_row_fill(struct frugal *frugal, struct bundle *bundle);
/* Lays bundles together, and drops those that are of no use any more. */
void bundles_tidy(struct frugal *frugal);

/* ---- gather.c: cells of several bundles, and of an old chain record, become one ----------------- */

/* The sources of a merge, the newest first. */
struct gathering {
	const struct frugal *frugal;
	unsigned bundles;
	const struct bundle *bundle[BUNDLES_MOST];
	const struct chain *chain; /* the old one, or NULL */
	uint32_t *
		before; /* of each column of each source, and one behind each source's last: columns of the result before it */
	bool *keeps; /* the same: does the result have it? */
	struct column *column; /* of the result */
	uint32_t columns;
	bool filters_kills; /* drops kills that no older column has the fingerprint of */
	/* Of the cell that was gathered last: */
	uint32_t *counts; /* of each column of the result */
	uint16_t *values;
	uint64_t value_count, value_room;
	struct gathered_kill {
		uint32_t kill;
		uint16_t column;
	} * kills;
	uint64_t kill_count, kill_room;
};
/* Begins with the bundles first .. first + count - 1 of the list, and the present chain if with_chain. FS_OK, FS_ENOMEM. */
FS_MUST_CHECK int gathering_begin(struct gathering *gathering, const struct frugal *frugal, unsigned first,
				  unsigned count, bool with_chain);
void gathering_end(struct gathering *gathering);
/* Gathers a partition's cells. old: its chain record; NULL: none. FS_OK, FS_ENOMEM. */
FS_MUST_CHECK int gathering_cell(struct gathering *gathering, uint32_t partition, const struct chain_record *old);

/* ---- merge.c --------------------------------------------------------------------------------- */

/* Returns the serial up to which bundles are in the merge. */
uint64_t merge_covers(const struct frugal_merge *merge);

/* ---- chain.c --------------------------------------------------------------------------------- */

/* Where is a partition's record? False: it has none, or the place is out of range. Any thread. */
FS_MUST_CHECK bool chain_place(const struct frugal *frugal, const struct chain *chain, uint32_t partition,
			       struct frugal_found *out);
/* Frees a chain with its block. NULL does nothing. */
void chain_destroy(struct frugal *frugal, struct chain *chain);

#endif
