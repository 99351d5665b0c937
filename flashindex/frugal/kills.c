/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of kills: a set of keys of which nothing on flash is valid. It has lines of eight cells, and a key may be in two
 * of them. A cell is one 64-bit store:
 *
 *   +----------------+----------------+-------+
 *   | high bits of x | low bits of x  | epoch |     0: the cell is empty
 *   | 28             | 32             | 4     |
 *   +----------------+----------------+-------+
 *
 * Epoch 0: the key is known to be absent, which is no kill, and may be forgotten at any time. Epochs of 1 and above go
 * round. At a new epoch the cleaner takes the kills of all others into a bundle, and then takes them out of the table, unless a
 * command has killed the same key again meanwhile: its kill has the new epoch then.
 *
 * Workers change a key's cell under its stripe; keys of other stripes share the lines, and the cleaner clears cells without any
 * stripe. So changes are compare-and-swaps. When a new epoch begins, the cleaner waits until each stripe was held once: then no kill of an older one can come.
 */
#include <stdlib.h>

#include "base/metrics/counters.h"
#include "flashindex/frugal/frugal_internal.h"

#define EPOCH_BITS 4u
#define EPOCHS 15u
#define EPOCH_MASK 15u
#define CROWDED 4u /* a quarter of all cells: the others are for what comes while a segment is written */

static uint64_t entry_of(uint64_t x, unsigned epoch)
{
	return x >> 36 << 36 | (x & UINT32_MAX) << EPOCH_BITS | epoch;
}

static bool entry_is(uint64_t entry, uint64_t x)
{
	return entry != 0 && (entry & ~(uint64_t)EPOCH_MASK) == entry_of(x, 0);
}

static bool is_kill(uint64_t entry)
{
	return (entry & EPOCH_MASK) != 0;
}

/* The two lines of a key. */
struct lines {
	_Atomic uint64_t *line[2];
};

static struct lines lines_of(const struct frugal *frugal, const struct frugal_key *key)
{
	uint64_t mixed = mix64(key->x + 1);

	return (struct lines){ { frugal->kills + reduce64(mixed, frugal->lines) * LINE_CELLS,
				 frugal->kills + reduce64(mix64(mixed + 1), frugal->lines) * LINE_CELLS } };
}

/* Returns the key's cell; NULL: it has none. */
static _Atomic uint64_t *cell_of(const struct lines *lines, uint64_t x, uint64_t *entry)
{
	for (unsigned l = 0; l < 2; l++)
		for (unsigned i = 0; i < LINE_CELLS; i++) {
			*entry = atomic_load_explicit(&lines->line[l][i], memory_order_acquire);
			if (entry_is(*entry, x))
				return &lines->line[l][i];
		}
	return NULL;
}

bool kills_has(const struct frugal *frugal, const struct frugal_key *key)
{
	const struct lines lines = lines_of(frugal, key);
	uint64_t entry;

	return cell_of(&lines, key->x, &entry) != NULL;
}

static bool cell_swap(_Atomic uint64_t *cell, uint64_t from, uint64_t to)
{
	return atomic_compare_exchange_strong_explicit(cell, &from, to, memory_order_acq_rel, memory_order_relaxed);
}

static void count_kills(struct frugal *frugal, int64_t more)
{
	atomic_fetch_add_explicit(&frugal->kill_count, (uint64_t)more, memory_order_relaxed);
}

/* Finds a cell for a new entry: an empty one, or one of a key that is known to be absent. */
static _Atomic uint64_t *cell_for_new(const struct lines *lines, bool absent_may_go, uint64_t *entry)
{
	_Atomic uint64_t *absent = NULL;
	uint64_t absent_entry = 0;

	for (unsigned l = 0; l < 2; l++)
		for (unsigned i = 0; i < LINE_CELLS; i++) {
			_Atomic uint64_t *cell = &lines->line[l][i];

			*entry = atomic_load_explicit(cell, memory_order_relaxed);
			if (*entry == 0)
				return cell;
			if (!is_kill(*entry)) {
				absent = cell;
				absent_entry = *entry;
			}
		}
	*entry = absent_entry;
	return absent_may_go ? absent : NULL;
}

/* All records of the key's partition that are written by now, or are being written, are given up. */
static void raise_watermark(struct frugal *frugal, uint32_t partition)
{
	uint64_t up_to = atomic_load_explicit(&frugal->kept->kill_up_to, memory_order_relaxed);
	uint64_t before = watermark_of(frugal, partition);

	do
		if (before >= up_to)
			return; /* another kill had no room either */
	while (!atomic_compare_exchange_weak_explicit(&frugal->watermarks[partition], &before, up_to,
						      memory_order_release, memory_order_relaxed));
	atomic_fetch_add_explicit(&frugal->given_up, 1, memory_order_relaxed);
	ctr_add(CTR_frugal_watermarks, 1);
}

bool frugal_kill(struct frugal *frugal, const struct frugal_key *key, bool written)
{
	const struct lines lines = lines_of(frugal, key);
	unsigned epoch = atomic_load_explicit(&frugal->epoch, memory_order_acquire);
	uint64_t entry, kill = entry_of(key->x, epoch);
	_Atomic uint64_t *cell;

	while ((cell = cell_of(&lines, key->x, &entry)) != NULL) {
		if (entry == kill || (!is_kill(entry) && !written))
			return false;
		if (cell_swap(cell, entry, kill)) {
			count_kills(frugal, is_kill(entry) ? 0 : 1);
			return written;
		}
	}
	if (!written && !frugal_may_hold(frugal, key))
		return false;
	ctr_add(CTR_frugal_kills, 1);
	while ((cell = cell_for_new(&lines, true, &entry)) != NULL) {
		if (!cell_swap(cell, entry, kill))
			continue;
		count_kills(frugal, 1);
		return true;
	}
	raise_watermark(frugal, key->partition);
	return true;
}

void frugal_note_absent(struct frugal *frugal, const struct frugal_key *key)
{
	const struct lines lines = lines_of(frugal, key);
	uint64_t entry;
	_Atomic uint64_t *cell;

	if (entry_of(key->x, 0) == 0 || cell_of(&lines, key->x, &entry))
		return;
	cell = cell_for_new(&lines, true, &entry);
	if (cell)
		(void)cell_swap(cell, entry, entry_of(key->x, 0));
}

void frugal_committed(struct frugal *frugal, const struct frugal_key *key)
{
	const struct lines lines = lines_of(frugal, key);
	_Atomic uint64_t *cell;
	uint64_t entry;

	while ((cell = cell_of(&lines, key->x, &entry)) != NULL)
		if (cell_swap(cell, entry, 0))
			count_kills(frugal, is_kill(entry) ? -1 : 0);
}

bool frugal_is_given_up(const struct frugal *frugal, const struct frugal_key *key, uint64_t sequence)
{
	return sequence <= watermark_of(frugal, key->partition);
}

/* ---- epochs: the cleaner --------------------------------------------------------------------- */

static uint64_t cells_of(const struct frugal *frugal)
{
	return (uint64_t)frugal->lines * LINE_CELLS;
}

void kills_count(struct frugal *frugal)
{
	uint64_t cells = cells_of(frugal), kills = 0;

	for (uint64_t i = 0; i < cells; i++)
		kills += is_kill(atomic_load_explicit(&frugal->kills[i], memory_order_relaxed));
	atomic_store_explicit(&frugal->kill_count, kills, memory_order_relaxed);
}

void kills_forget_absent(struct frugal *frugal)
{
	uint64_t cells = cells_of(frugal);

	for (uint64_t i = 0; i < cells; i++) {
		uint64_t entry = atomic_load_explicit(&frugal->kills[i], memory_order_relaxed);

		if (entry != 0 && !is_kill(entry))
			atomic_store_explicit(&frugal->kills[i], 0, memory_order_relaxed);
	}
}

bool frugal_is_crowded(const struct frugal *frugal)
{
	return atomic_load_explicit(&frugal->kill_count, memory_order_relaxed) > cells_of(frugal) / CROWDED;
}

static int by_partition(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? -1 : left > right;
}

static bool is_old_kill(uint64_t entry, unsigned epoch)
{
	return is_kill(entry) && (entry & EPOCH_MASK) != epoch;
}

void kills_begin_epoch(struct frugal *frugal)
{
	atomic_store(&frugal->epoch, atomic_load(&frugal->epoch) % EPOCHS + 1);
	if (frugal->quiesce)
		frugal->quiesce(frugal->quiesce_context);
}

int kills_take(struct frugal *frugal)
{
	unsigned epoch = atomic_load(&frugal->epoch);
	uint64_t cells = cells_of(frugal), room = 0, entry;

	must(!frugal->taken && frugal->taken_count == 0);
	for (uint64_t i = 0; i < cells; i++)
		room += is_old_kill(atomic_load_explicit(&frugal->kills[i], memory_order_acquire), epoch);
	if (room == 0)
		return FS_OK;
	frugal->taken = mem_alloc(room * sizeof(*frugal->taken));
	if (!frugal->taken)
		return FS_ENOMEM;
	/* An old kill may become a new one meanwhile, or go with a commit, but none comes. */
	for (uint64_t i = 0; i < cells; i++) {
		entry = atomic_load_explicit(&frugal->kills[i], memory_order_acquire);
		if (is_old_kill(entry, epoch) && frugal->taken_count < room)
			frugal->taken[frugal->taken_count++] = entry;
	}
	qsort(frugal->taken, frugal->taken_count, sizeof(*frugal->taken), by_partition);
	return FS_OK;
}

void kills_forget_taken(struct frugal *frugal)
{
	unsigned epoch = atomic_load(&frugal->epoch);
	uint64_t cells = cells_of(frugal);

	for (uint64_t i = 0; frugal->took && i < cells; i++) {
		uint64_t entry = atomic_load_explicit(&frugal->kills[i], memory_order_relaxed);

		if (is_old_kill(entry, epoch) && cell_swap(&frugal->kills[i], entry, 0))
			count_kills(frugal, -1);
	}
	mem_free(frugal->taken);
	frugal->taken = NULL;
	frugal->taken_count = 0;
	frugal->took = false;
}
