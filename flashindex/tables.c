/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables come and go. */
#include "flashindex/flashindex.h"

#include <string.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/fault.h"
#include "flashindex/index_internal.h"

_Static_assert(REGION_TABLE_0 + FIDX_TABLES - 1 == REGION_TABLE_2, "the region has an area for each table");

enum region_area table_area(unsigned table)
{
	return (enum region_area)(REGION_TABLE_0 + table);
}

/*
 * Waits for threads that still hold stripes of a table that has gone: they would take the slots of a new table in the
 * same memory for the old one's. Afterwards there is none: a thread that takes a stripe now sees the new epoch.
 */
static void wait_for_holders(struct fidx *index)
{
	for (unsigned i = 0; i < STRIPES_MAX; i++) {
		lock_acquire(&index->stripe[i].lock);
		lock_release(&index->stripe[i].lock);
	}
}

/* Keeps the hand from the tables until hand_give, because it takes stripes by its table's fields. A turn of the hand
   takes some milliseconds at the most. */
static void keep_hand_away(struct fidx *index)
{
	while (!hand_take(index))
		sched_yield();
}

void tables_publish(struct fidx *index, uint32_t live)
{
	uint32_t changes = (tables_epoch(index) >> FIDX_TABLES) + 1;

	atomic_store_explicit(&index->epoch, changes << FIDX_TABLES | live, memory_order_release);
}

void table_set(struct table *table, uint64_t buckets, uint32_t id)
{
	unsigned shift = 0;

	while (((buckets - 1) >> shift) + 1 > STRIPES_MAX)
		shift++;
	must((buckets - 1) >> shift < STRIPES_MAX);
	atomic_store_explicit(&table->buckets, buckets, memory_order_release);
	atomic_store_explicit(&table->stripe_shift, shift, memory_order_release);
	atomic_store_explicit(&table->id, id, memory_order_release);
	atomic_store_explicit(&table->counted, ALL_COUNTED, memory_order_release);
}

void table_keep(struct fidx *index, unsigned number)
{
	const struct table *table = &index->table[number];

	atomic_store(&index->kept->next_table_id, index->next_table_id);
	atomic_store(&index->kept->table[number].buckets, table_buckets(table));
	atomic_store(&index->kept->table[number].id, atomic_load(&table->id));
}

int fidx_table_add(struct fidx *index, uint64_t buckets, unsigned *out)
{
	uint32_t live = tables_live(index);
	unsigned number = (unsigned)__builtin_ctz(~live);
	int error;

	if (number >= FIDX_TABLES)
		return FS_EFULL;
	if (buckets < 2 || buckets > index->buckets_most)
		return FS_ERANGE;
	error = region_commit(index->region, table_area(number), buckets * sizeof(struct bucket));
	if (error)
		return error;
	wait_for_holders(index);
	fault_kill(FAULT_killed_in_table);
	must(number < FIDX_TABLES);
	keep_hand_away(index);
	table_set(&index->table[number], buckets, index->next_table_id++);
	table_keep(index, number);
	atomic_store(&index->kept->live, live | 1u << number);
	tables_publish(index, live | 1u << number);
	hand_give(index);
	*out = number;
	return FS_OK;
}

void fidx_table_drop(struct fidx *index, unsigned number)
{
	struct fidx_table tables[FIDX_TABLES];
	uint32_t left = tables_live(index) & ~(1u << number);

	fidx_tables(index, tables);
	must(number < FIDX_TABLES && tables[number].live && left != 0);
	must(tables[number].segments == 0 && tables[number].used == 0 && !fidx_is_counting(index));
	keep_hand_away(index);
	atomic_store(&index->kept->live, left);
	tables_publish(index, left);
	hand_give(index);
	fault_kill(FAULT_killed_in_table);
	region_decommit(index->region, table_area(number));
}

int tables_init(struct fidx *index, uint64_t buckets)
{
	unsigned first;

	return fidx_table_add(index, buckets, &first);
}

void fidx_tables(const struct fidx *index, struct fidx_table out[FIDX_TABLES])
{
	uint32_t live = tables_live(index);

	memset(out, 0, FIDX_TABLES * sizeof(*out));
	for (unsigned t = 0; t < FIDX_TABLES; t++) {
		out[t].live = live >> t & 1;
		out[t].id = table_id(&index->table[t]);
		out[t].slots = out[t].live ? table_buckets(&index->table[t]) * FIDX_BUCKET_SLOTS : 0;
	}
	for (uint32_t s = 0; s < index->segments; s++) {
		const struct segment *segment = segment_at(index, s);
		struct fidx_table *table = &out[segment_table(index, s)];

		if (segment_sequence(index, s) == SEGMENT_CLOSED)
			continue;
		table->segments++;
		table->used += COUNTS_SLOTS(atomic_load_explicit(&segment->counts, memory_order_relaxed));
	}
}

uint32_t fidx_table_id(const struct fidx *index, unsigned table)
{
	return tables_live(index) >> table & 1 ? table_id(&index->table[table]) : UINT32_MAX;
}
