/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The frugal index's chain on flash. When more columns are in memory than their share, a merge makes a new chain of them and of
 * the old one (flashindex/frugal/frugal.h). Its segments are written one at a time, each behind a segment of objects, so that
 * objects never wait for a whole chain. The old one is used until the last of them is written; then its segments are dead, and
 * wait for their turn.
 *
 * A segment of the chain takes two passes over its partitions: the first one finds out how long their records are, from which a
 * plan follows, and the second one writes them. Old records are read in order of partition, in large pieces.
 *
 * Whatever fails, the merge is given up, and all stays as it was: the columns are in memory, and the old chain is used. A segment
 * that was written for it is dead.
 */
#include "base/log.h"
#include "segments/bins.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/state/bins.h"
#include "server/store/state/bins_search.h"
#include "server/store/state/recount.h"

#define PIECE_BYTES (1u << 20) /* of the old chain, read at once ... */
#define PIECE_AROUND (2u * SEG_PAGE) /* ... and what whole pages add */
#define STEP_PARTITIONS 16u /* between looks at the time */
#define SHORT_PART \
	16u /* of the columns' share, or of the index's memory: with less of it a merge would free too little */
/* After each merge that fails the next one waits twice as long as before: what it wrote has cost segments of objects. */

/* A piece of the old chain. */
struct piece {
	uint32_t segment;
	uint64_t sequence, offset, bytes; /* offset: within the segment. bytes 0: nothing was read yet */
	uint64_t damaged_to; /* what begins below could not be read in one piece, and is read record by record */
	uint8_t *pages; /* room bytes, aligned to a page */
	uint64_t room, from; /* from: where in it the piece begins */
};

/* A segment of the chain on its way. */
struct chain_write {
	struct store *store;
	uint32_t first, partitions; /* that it has the records of */
	uint32_t *lengths; /* of the whole records of these, 0 for none */
	uint32_t room; /* of lengths */
	uint32_t at; /* second pass: partitions so far */
	bool reported; /* an old record is damaged */
	bool failed; /* second pass: a record had another length than in the first one */
	char key[BINS_CHAIN_KEY_BYTES];
	uint8_t *filler; /* zeros, as long as the longest record */
	struct piece piece;
	uint64_t began_ms, issued;
};

/* ---- old records ------------------------------------------------------------------------------- */

static uint64_t aligned_page(uint64_t bytes)
{
	return (bytes + SEG_PAGE - 1) / SEG_PAGE * SEG_PAGE;
}

static bool piece_has(const struct piece *piece, const struct frugal_found *at)
{
	return piece->bytes > 0 && piece->segment == at->segment && piece->sequence == at->sequence &&
	       at->offset >= piece->offset && at->offset + at->length <= piece->offset + piece->bytes;
}

static bool piece_read(struct store *store, struct piece *piece, const struct frugal_found *at, uint64_t bytes)
{
	piece->bytes = 0;
	ctr_add(CTR_frugal_search_reads, 1);
	if (seg_read_now(store->segments, at->segment, at->offset, bytes, true, piece->pages, piece->room,
			 &piece->from) != FS_OK)
		return false;
	piece->segment = at->segment;
	piece->sequence = at->sequence;
	piece->offset = at->offset;
	piece->bytes = bytes;
	return true;
}

/* Where objects are far smaller than expected, partitions are few, and a record may be longer than other pieces. */
static bool piece_has_room(struct store *store, struct piece *piece, uint64_t bytes)
{
	uint64_t room = aligned_page(bytes) + PIECE_AROUND;
	uint8_t *pages;

	if (room <= piece->room)
		return true;
	pages = mem_aligned(SEG_PAGE, room);
	if (!pages)
		return false;
	mem_free(piece->pages);
	plan_bytes_add(store, room - piece->room);
	piece->pages = pages;
	piece->room = room;
	piece->bytes = 0;
	return true;
}

/* Reads the record, with as many of those behind it as a piece has. A piece with a bad block must not cost all of them. */
static bool piece_fill(struct store *store, struct piece *piece, const struct frugal_found *at)
{
	uint64_t left = store->segment_bytes - at->offset, most;
	bool alone = piece->segment == at->segment && at->offset < piece->damaged_to;

	if (at->offset > store->segment_bytes || at->length > left || !piece_has_room(store, piece, at->length))
		return false;
	most = piece->room - PIECE_AROUND;
	if (left > most)
		left = most;
	if (!alone && piece_read(store, piece, at, left))
		return true;
	if (!alone) {
		piece->segment = at->segment;
		piece->damaged_to = at->offset + left;
	}
	return piece_read(store, piece, at, at->length);
}

static void tell_unread(const struct chain_write *write, uint32_t partition, const struct frugal_found *at)
{
	ctr_add(CTR_frugal_chain_records_unread, 1);
	log_limited(
		LOG_LEVEL_WARN,
		"flash: segment %u, offset %llu: range %u of %u of the frugal index's chain cannot be read: its older "
		"objects are lost, unless the next try succeeds",
		at->segment, (unsigned long long)at->offset, partition, frugal_partitions(write->store->frugal));
}

/* Reads the partition's old record. False: there is none, or it can't be read, which is told. */
static bool old_record(struct chain_write *write, uint32_t partition, struct seg_record *out)
{
	struct store *store = write->store;
	struct piece *piece = &write->piece;
	struct frugal_found at;
	uint64_t needed;

	if (!frugal_merge_old(store->merge, partition, &at))
		return false;
	if (seg_sequence(store->segments, at.segment) != at.sequence ||
	    (!piece_has(piece, &at) && !piece_fill(store, piece, &at))) {
		tell_unread(write, partition, &at);
		return false;
	}
	if (seg_record_read(store->segments, at.segment, at.sequence, at.offset,
			    piece->pages + piece->from + (at.offset - piece->offset), at.length, out,
			    &needed) == FS_OK &&
	    bins_is_chain_record(out, partition))
		return true;
	ctr_add(CTR_flash_checksum_errors, 1);
	tell_unread(write, partition, &at);
	if (!write->reported) /* a bad block has many records, which are no reason to take the device offline */
		seg_report_corrupt(store->segments, at.segment, at.offset);
	write->reported = true;
	return false;
}

/* Returns the value of the partition's new record, as frugal_merge_make does. */
static const void *new_value(struct chain_write *write, uint32_t partition, uint64_t *length)
{
	struct seg_record old;
	bool has_old = old_record(write, partition, &old);

	if (partition % STEP_PARTITIONS == 0)
		pace_step(write->store);
	return frugal_merge_make(write->store->merge, partition, has_old ? old.value : NULL,
				 has_old ? old.value_length : 0, length);
}

/* ---- the plan ---------------------------------------------------------------------------------- */

static uint64_t columns_record_length(const struct chain_write *write)
{
	uint32_t columns;

	(void)frugal_merge_columns(write->store->merge, &columns);
	return seg_record_length(BINS_CHAIN_KEY_BYTES, (uint64_t)columns * BINS_CHAIN_COLUMN_BYTES);
}

static uint64_t aligned(uint64_t bytes)
{
	return (bytes + SEG_CHAIN_ALIGN - 1) / SEG_CHAIN_ALIGN * SEG_CHAIN_ALIGN;
}

static FS_MUST_CHECK bool lengths_grow(struct chain_write *write)
{
	uint32_t room = write->room ? 2 * write->room : 256, *lengths;

	if (write->partitions < write->room)
		return true;
	lengths = mem_realloc(write->lengths, room * sizeof(*lengths));
	if (!lengths)
		return false;
	plan_bytes_add(write->store, (room - write->room) * sizeof(*lengths));
	write->lengths = lengths;
	write->room = room;
	return true;
}

/* The first pass: finds the lengths of the records that fit into the segment. FS_OK, FS_ENOMEM. */
static int measure(struct chain_write *write)
{
	uint32_t all = frugal_partitions(write->store->frugal);
	uint64_t room = seg_chain_room(write->store->segments, 1), bytes = columns_record_length(write);

	while (write->first + write->partitions < all && bytes <= room) {
		uint64_t length;

		if (!lengths_grow(write) || !new_value(write, write->first + write->partitions, &length))
			return FS_ENOMEM;
		length = length ? seg_record_length(BINS_CHAIN_KEY_BYTES, length) : 0;
		bytes = aligned(bytes) + length;
		if (bytes > room || length > UINT32_MAX)
			break;
		write->lengths[write->partitions++] = (uint32_t)length;
	}
	return FS_OK;
}

/* Plans the columns' record and those of the partitions, and leaves to the next segment what doesn't fit. FS_OK: with
   plan->count 0 there is nothing to write; FS_ERANGE: not one record fits; FS_ENOMEM. */
static int make_plan(struct chain_write *write, struct seg_plan *plan)
{
	uint32_t *lengths = mem_alloc((write->partitions + 1ull) * sizeof(*lengths)), count = 0, n = 0;
	int result;

	*plan = (struct seg_plan){ 0 };
	if (!lengths)
		return FS_ENOMEM;
	lengths[count++] = (uint32_t)columns_record_length(write);
	for (uint32_t p = 0; p < write->partitions; p++)
		if (write->lengths[p])
			lengths[count++] = write->lengths[p];
	if (count == 1 && write->first + write->partitions == frugal_partitions(write->store->frugal)) {
		mem_free(lengths);
		return FS_OK;
	}
	result = seg_plan_chain(write->store->segments, lengths, count, plan);
	mem_free(lengths);
	if (result != FS_OK)
		return result;
	if (plan->count < 2) {
		seg_plan_fini(plan);
		return FS_ERANGE;
	}
	for (uint32_t records = 1; n < write->partitions; n++)
		if (write->lengths[n] && ++records > plan->count)
			break;
	write->partitions = n;
	return FS_OK;
}

/* ---- the write --------------------------------------------------------------------------------- */

/* The second pass. A record that can't be made as before leaves its place to zeros, and the merge is given up. */
static void put_record(void *context, uint32_t n, struct seg_record *out)
{
	struct chain_write *write = context;
	const void *value;
	uint64_t length;
	uint32_t columns, planned;

	*out = (struct seg_record){ .key = write->key, .key_length = sizeof(write->key) };
	if (n == 0) {
		out->value = frugal_merge_columns(write->store->merge, &columns);
		out->value_length = columns * BINS_CHAIN_COLUMN_BYTES;
		bins_chain_key(write->key, BINS_CHAIN_COLUMNS, columns);
		return;
	}
	while (write->at < write->partitions && write->lengths[write->at] == 0)
		write->at++;
	must(write->at < write->partitions);
	bins_chain_key(write->key, BINS_CHAIN_PARTITION, write->first + write->at);
	planned = write->lengths[write->at] - (uint32_t)seg_record_length(sizeof(write->key), 0);
	value = write->failed ? NULL : new_value(write, write->first + write->at, &length);
	if (!value || length != planned) {
		write->failed = true;
		value = write->filler;
	}
	out->value = value;
	out->value_length = planned;
	write->at++;
}

static void between_chunks(void *context, uint64_t bytes)
{
	struct chain_write *write = context;

	write->issued += bytes;
	cleaner_beat(write->store);
	pace_write(write->store, write->began_ms, (double)write->issued / (double)write->store->segment_bytes);
}

/* Writes the planned segment, and notes it. FS_OK, or a code for which the merge is given up. */
static int write_out(struct chain_write *write, uint32_t segment, const struct seg_plan *plan)
{
	const struct seg_writer_ops ops = { .record = put_record, .pace = between_chunks };
	struct store *store = write->store;
	uint64_t written = 0;
	int result;

	write->filler = mem_zalloc(plan->longest_999);
	if (!write->filler)
		return FS_ENOMEM;
	write->began_ms = clk_now_ms(store->clock);
	result = seg_write(store->segments, segment, plan, NULL, 0, &ops, write, &written);
	mem_free(write->filler);
	cleaner_note_written(store, written, result);
	ctr_add(CTR_frugal_chain_bytes_written, written);
	if (result != FS_OK)
		return result;
	fault_kill(FAULT_killed_in_row);
	if (write->failed)
		return FS_ECORRUPT;
	return frugal_merge_written(store->merge, segment, plan->sequence, plan->placed[1].offset, write->first,
				    write->partitions, write->lengths);
}

/* Writes the next segment of the chain, if the rest of the partitions needs one. FS_OK; FS_EBUSY: there is no room now, or no merge
   any more; else the merge is to be given up. */
static int write_next(struct chain_write *write)
{
	struct store *store = write->store;
	uint64_t plan_bytes;
	struct seg_plan plan;
	uint32_t segment;
	int result = measure(write);

	if (result == FS_OK)
		result = make_plan(write, &plan);
	if (result != FS_OK)
		return result;
	plan_bytes = plan.count * sizeof(*plan.placed);
	plan_bytes_add(store, plan_bytes);
	/* The plan is for the present sequence, and a reclaim may have ended the merge. */
	if (plan.count > 0)
		result = room_on_flash(store, &segment) && store->merge ? write_out(write, segment, &plan) : FS_EBUSY;
	plan_bytes_sub(store, plan_bytes);
	seg_plan_fini(&plan);
	return result;
}

/* ---- merges that fail -------------------------------------------------------------------------- */

static bool has_chains(const struct store *store)
{
	return store->frugal_config.share < 1;
}

/* The next merge waits, longer than behind the failure before this one. */
static void merges_rest(struct store *store)
{
	struct cleaner *cleaner = store->cleaner;

	cleaner->chain_rest_ms = cleaner_longer_rest_ms(cleaner->chain_rest_ms);
	cleaner->chain_again_ms = clk_now_ms(store->clock) + cleaner->chain_rest_ms;
}

/* The merge that is under way has failed with this code. */
static void give_up(struct store *store, int result)
{
	if (result != FS_EOFFLINE)
		log_limited(LOG_LEVEL_WARN, "flash: a new chain of the frugal index is given up: %s",
			    fs_strerror(result));
	bins_cancel_merge(store);
	store->cleaner->no_chain = result == FS_ERANGE || result == FS_EFULL;
	merges_rest(store);
}

static bool chain_rests(const struct store *store)
{
	return store->cleaner->chain_rest_ms > 0 && clk_now_ms(store->clock) < store->cleaner->chain_again_ms;
}

bool chain_makes_room(const struct store *store)
{
	return has_chains(store) && !store->cleaner->no_chain && store->cleaner->chain_rest_ms <= CLEANER_REST_FIRST_MS;
}

/* Writes the next segment of the chain. False: there is no room now, or the merge is given up. */
static bool write_segment_of_chain(struct store *store)
{
	struct cleaner *cleaner = store->cleaner;
	struct chain_write write = { .store = store, .first = cleaner->chain_partition };
	uint64_t piece = PIECE_BYTES < store->segment_bytes ? PIECE_BYTES : store->segment_bytes;
	int result;

	recount_finish(store); /* before a reclaim */
	write.piece.room = piece + PIECE_AROUND;
	write.piece.pages = mem_aligned(SEG_PAGE, write.piece.room);
	plan_bytes_add(store, write.piece.room);
	pace_begin(store);
	result = write.piece.pages ? write_next(&write) : FS_ENOMEM;
	pace_end(store);
	plan_bytes_sub(store, write.piece.room + write.room * sizeof(*write.lengths));
	mem_free(write.piece.pages);
	mem_free(write.lengths);
	if (result == FS_EBUSY)
		return false; /* it waits for room, or a reclaim has ended the merge */
	if (result != FS_OK) {
		give_up(store, result);
		return false;
	}
	cleaner->chain_partition = write.first + write.partitions;
	if (cleaner->chain_partition == frugal_partitions(store->frugal)) {
		frugal_merge_publish(store->merge);
		store->merge = NULL;
		cleaner->no_chain = false;
		cleaner->chain_rest_ms = 0;
	}
	return true;
}

/* ---- when -------------------------------------------------------------------------------------- */

bool chain_is_urgent(const struct store *store)
{
	struct frugal_status status;
	double share = store->frugal_config.share;

	if (!has_chains(store))
		return false;
	frugal_get_status(store->frugal, &status);
	/* What fills the memory may be kills, with few columns. */
	return status.segments > 0 && !bins_has_memory(store, status.objects / status.segments, status.kills) &&
	       (store->merge || status.columns_in_memory * SHORT_PART >= share * store->frugal_config.segments ||
		status.bundle_bytes * SHORT_PART >= bins_memory_most(store));
}

static void merge_begin(struct store *store)
{
	int result = frugal_merge_begin(&store->merge, store->frugal);

	store->cleaner->chain_partition = 0;
	if (result != FS_ENOMEM) /* there may be nothing to merge */
		return;
	log_limited(LOG_LEVEL_WARN, "flash: there is no memory for a new chain of the frugal index");
	merges_rest(store);
}

bool chain_turn(struct store *store)
{
	bool written;

	if (store->cleaner->saves || !cleaner_takes_writes(store))
		return false;
	if (!store->merge && frugal_chain_is_over(store->frugal))
		frugal_drop_chain(store->frugal);
	if (!store->merge && has_chains(store) && !chain_rests(store) &&
	    (frugal_merge_is_due(store->frugal) || chain_is_urgent(store)))
		merge_begin(store);
	if (!store->merge)
		return false;
	written = write_segment_of_chain(store);
	tables_tidy(store);
	return written;
}

bool chain_moves_away(struct store *store, uint32_t segment)
{
	if (!store->frugal || !frugal_has_chain_in(store->frugal, segment, seg_sequence(store->segments, segment)) ||
	    frugal_chain_is_over(store->frugal) || !cleaner_takes_writes(store))
		return false;
	if (!store->merge)
		merge_begin(store);
	return store->merge && write_segment_of_chain(store);
}

void chain_leave(struct store *store, uint32_t segment, uint64_t sequence)
{
	bool used = frugal_has_chain_in(store->frugal, segment, sequence);

	if (store->merge && (used || frugal_merge_has(store->merge, segment, sequence)))
		bins_cancel_merge(store);
	if (!used)
		return;
	if (!frugal_chain_is_over(store->frugal))
		log_limited(LOG_LEVEL_WARN,
			    "flash: segment %u has a part of the chain that is still used; its objects are lost",
			    segment);
	frugal_drop_chain(store->frugal);
}
