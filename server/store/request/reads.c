/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/request/reads_internal.h"

#include "server/store/request/request_internal.h"

#define TABLE_LEAST 64u
#define FREE_MOST 64u
#define KEEP_LARGEST (64u << 10) /* bytes; longer records are seldom shared, and push out many others */

void reads_init(struct reads *reads, struct segments *segments, struct seg_reader *reader, uint64_t kept_most)
{
	*reads = (struct reads){ .segments = segments, .reader = reader, .kept_most = kept_most };
}

/* ---- the table ------------------------------------------------------------------------------- */

static uint32_t reads_bucket(const struct reads *reads, uint32_t segment, uint64_t offset)
{
	return (uint32_t)mix64(offset << 14 ^ segment) & reads->table_mask;
}

static struct flash_read *reads_find(const struct reads *reads, const struct reads_wanted *wanted)
{
	struct flash_read *read =
		reads->table ? reads->table[reads_bucket(reads, wanted->segment, wanted->offset)] : NULL;

	for (; read; read = read->chain)
		if (read->read.segment == wanted->segment && read->read.offset == wanted->offset &&
		    read->sequence == wanted->sequence && read->read.length >= wanted->length)
			return read;
	return NULL;
}

static void reads_list(struct reads *reads, struct flash_read *read)
{
	struct flash_read **head = &reads->table[reads_bucket(reads, read->read.segment, read->read.offset)];

	read->chain = *head;
	*head = read;
	read->listed = true;
}

static void reads_unlist(struct reads *reads, struct flash_read *read)
{
	struct flash_read **link = &reads->table[reads_bucket(reads, read->read.segment, read->read.offset)];

	if (!read->listed)
		return;
	while (*link != read) {
		must(*link);
		link = &(*link)->chain;
	}
	*link = read->chain;
	read->listed = false;
}

/* Makes room in the table for one more read. Without memory for a larger table the chains grow. False: there is no
   table. */
static bool reads_grow_table(struct reads *reads)
{
	uint32_t buckets = reads->table ? 2 * (reads->table_mask + 1) : TABLE_LEAST;
	struct flash_read **old = reads->table, **table;
	uint32_t old_buckets = old ? reads->table_mask + 1 : 0;

	if (old && reads->count <= reads->table_mask)
		return true;
	table = mem_zalloc(buckets * sizeof(struct flash_read *));
	if (!table)
		return old != NULL;
	reads->table = table;
	reads->table_mask = buckets - 1;
	for (uint32_t i = 0; i < old_buckets; i++) {
		for (struct flash_read *read = old[i], *next; read; read = next) {
			next = read->chain;
			reads_list(reads, read);
		}
	}
	mem_free(old);
	return true;
}

/* ---- reads ----------------------------------------------------------------------------------- */

static struct flash_read *reads_take_free(struct reads *reads)
{
	struct flash_read *read = reads->free;

	if (!read)
		return mem_zalloc(sizeof(*read));
	reads->free = read->chain;
	reads->free_count--;
	*read = (struct flash_read){ .users = 0 };
	return read;
}

/* No lookup and no value uses the read any more. */
static void reads_give_back(struct reads *reads, struct flash_read *read)
{
	must(reads->count > 0 && !read->first);
	reads_unlist(reads, read);
	seg_read_release(reads->reader, &read->read);
	reads->count--;
	if (reads->free_count >= FREE_MOST) {
		mem_free(read);
		return;
	}
	read->chain = reads->free;
	reads->free = read;
	reads->free_count++;
}

/* ---- kept bytes ------------------------------------------------------------------------------ */

/* Of small records most is the read itself. */
static uint64_t reads_cost(const struct flash_read *read)
{
	return sizeof(*read) + read->read.buffer_bytes;
}

static void reads_unkeep(struct reads *reads, struct flash_read *read)
{
	if (read->newer)
		read->newer->older = read->older;
	else
		reads->newest = read->older;
	if (read->older)
		read->older->newer = read->newer;
	else
		reads->oldest = read->newer;
	read->newer = read->older = NULL;
	must(reads->kept_bytes >= reads_cost(read));
	reads->kept_bytes -= reads_cost(read);
}

static void reads_keep_within(struct reads *reads, uint64_t bytes)
{
	while (reads->kept_bytes > bytes) {
		struct flash_read *oldest = reads->oldest;

		reads_unkeep(reads, oldest);
		reads_give_back(reads, oldest);
	}
}

static void reads_keep(struct reads *reads, struct flash_read *read)
{
	read->older = reads->newest;
	read->newer = NULL;
	if (reads->newest)
		reads->newest->newer = read;
	else
		reads->oldest = read;
	reads->newest = read;
	reads->kept_bytes += reads_cost(read);
	reads_keep_within(reads, reads->kept_most);
}

static void reads_drop_user(struct flash_read *read)
{
	struct reads *reads = read->reads;

	must(read->users > 0);
	if (--read->users > 0 || !read->done)
		return;
	if (read->listed && read->read.result == FS_OK && read->read.buffer_bytes <= KEEP_LARGEST)
		reads_keep(reads, read);
	else
		reads_give_back(reads, read);
}

void reads_stop(struct reads *reads)
{
	reads->kept_most = 0;
	reads_keep_within(reads, 0);
}

void reads_fini(struct reads *reads)
{
	must(reads->count == 0);
	while (reads->free) {
		struct flash_read *read = reads->free;

		reads->free = read->chain;
		mem_free(read);
	}
	mem_free(reads->table);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void reads_wait_for(struct flash_read *read, struct store_lookup *lookup)
{
	must(!read->done && lookup->waits);
	lookup->next_waiting = NULL;
	if (read->last)
		read->last->next_waiting = lookup;
	else
		read->first = lookup;
	read->last = lookup;
}

static void reads_on_done(struct seg_read *seg_read)
{
	struct flash_read *read = (struct flash_read *)(void *)seg_read;
	struct reads *reads = read->reads;

	must(!read->done);
	seg_unpin(reads->segments, seg_read->segment);
	read->done = true;
	read->users++; /* until reads_done was called for all */
	if (seg_read->result != FS_OK)
		reads_unlist(reads, read);
	if (seg_read->result == FS_OK) {
		ctr_add(CTR_flash_pages_read, seg_read->pages);
		ctr_add(CTR_flash_key_bytes_read, seg_read->transferred);
	}
	while (read->first) {
		struct store_lookup *lookup = read->first;

		read->first = lookup->next_waiting;
		if (!read->first)
			read->last = NULL;
		must(lookup->waits && lookup->read == read);
		lookup->waits = false;
		reads_done(lookup);
	}
	reads_drop_user(read);
}

/* Begins a read; NULL: no memory. */
static struct flash_read *reads_begin(struct reads *reads, const struct reads_wanted *wanted)
{
	struct flash_read *read = reads_grow_table(reads) ? reads_take_free(reads) : NULL;

	if (!read)
		return NULL;
	read->read.segment = wanted->segment;
	read->read.offset = wanted->offset;
	read->read.length = wanted->length;
	read->read.expires_ns = wanted->expires_ns;
	read->read.done = reads_on_done;
	read->sequence = wanted->sequence;
	read->reads = reads;
	reads->count++;
	/* The lookup has its own pin. Reclaim may have taken the sequence away since, and waits for that pin. */
	seg_pin_again(reads->segments, wanted->segment);
	reads_list(reads, read);
	seg_read_submit(reads->reader, &read->read);
	return read;
}

enum reads_answer reads_ask(struct reads *reads, struct store_lookup *lookup, const struct reads_wanted *wanted,
			    bool *made)
{
	struct flash_read *read = reads_find(reads, wanted);

	must(!lookup->read && !lookup->waits);
	*made = !read;
	if (!read)
		read = reads_begin(reads, wanted);
	if (!read)
		return READS_NONE;
	if (read->done && read->users == 0)
		reads_unkeep(reads, read);
	if (read->read.expires_ns < wanted->expires_ns)
		read->read.expires_ns = wanted->expires_ns;
	read->users++;
	lookup->read = read;
	lookup->waits = !read->done;
	if (read->done)
		return READS_THERE;
	reads_wait_for(read, lookup);
	return READS_WAIT;
}

bool reads_would_read(const struct reads *reads, const struct reads_wanted *wanted)
{
	return reads_find(reads, wanted) == NULL;
}

/* ---- leaving --------------------------------------------------------------------------------- */

static void reads_stop_waiting(struct flash_read *read, struct store_lookup *lookup)
{
	struct store_lookup **link = &read->first, *before = NULL;

	while (*link != lookup) {
		must(*link);
		before = *link;
		link = &(*link)->next_waiting;
	}
	*link = lookup->next_waiting;
	if (read->last == lookup)
		read->last = before;
	lookup->waits = false;
}

bool reads_leave(struct store_lookup *lookup)
{
	struct flash_read *read = lookup->read;
	struct reads *reads = read->reads;

	lookup->read = NULL;
	if (lookup->waits)
		reads_stop_waiting(read, lookup);
	if (read->users == 1 && !read->done && seg_read_cancel(reads->reader, &read->read)) {
		ctr_add(CTR_flash_reads_cancelled, 1);
		seg_unpin(reads->segments, read->read.segment);
		reads_give_back(reads, read);
		return true;
	}
	reads_drop_user(read);
	return false;
}

struct flash_read *reads_pass_on(struct store_lookup *lookup)
{
	struct flash_read *read = lookup->read;

	must(read && read->done);
	lookup->read = NULL;
	return read;
}

void reads_release(struct flash_read *read)
{
	must(read->done);
	reads_drop_user(read);
}

void reads_distrust(struct flash_read *read)
{
	reads_unlist(read->reads, read);
}

uint64_t reads_memory(const struct reads *reads)
{
	uint64_t table = reads->table ? (reads->table_mask + 1ull) * sizeof(*reads->table) : 0;

	return (reads->count + reads->free_count) * sizeof(struct flash_read) + table +
	       seg_reader_memory(reads->reader);
}
