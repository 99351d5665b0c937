/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/count/prefixes.h"

#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/resident.h"

#define BLOCKS_MAX 512u /* threads that count; more than -t allows */
#define ROWS 64u /* rows of a thread's counters that are allocated together */

struct name {
	uint64_t hash;
	uint8_t length;
	char text[];
};

/* The counters of one thread. Rows are made when one of them is first counted in. */
struct block {
	unsigned groups;
	struct prefix_row *_Atomic rows[]; /* of ROWS each */
};

struct prefixes {
	unsigned most;
	uint32_t mask; /* slots - 1 */
	struct lock lock; /* covers adding a name */
	atomic_uint count;
	struct name *_Atomic *names; /* by number; written once */
	_Atomic uint32_t *slots; /* numbers by hash, 0: empty; written once */
	struct block *_Atomic blocks[BLOCKS_MAX];
	_Atomic uint64_t *zero; /* sums at the last reset */
};

static _Thread_local unsigned own_thread; /* 0: not known yet */
static atomic_uint threads;

struct prefixes *prefixes_create(unsigned most)
{
	struct prefixes *prefixes = mem_must_zalloc(sizeof(*prefixes));
	uint32_t slots = 16;

	while (slots < 2 * (most + 1))
		slots *= 2;
	prefixes->most = most;
	prefixes->mask = slots - 1;
	lock_init(&prefixes->lock, LOCK_LEAF);
	prefixes->names = mem_must_zalloc((most + 1) * sizeof(*prefixes->names));
	prefixes->slots = mem_must_zalloc(slots * sizeof(*prefixes->slots));
	prefixes->zero = mem_must_zalloc((most + 1) * PREFIX_COUNTERS * sizeof(*prefixes->zero));
	return prefixes;
}

static unsigned row_groups(const struct prefixes *prefixes)
{
	return prefixes->most / ROWS + 1;
}

void prefixes_destroy(struct prefixes *prefixes)
{
	if (!prefixes)
		return;
	for (unsigned i = 0; i < BLOCKS_MAX; i++) {
		struct block *block = atomic_load(&prefixes->blocks[i]);

		for (unsigned group = 0; block && group < block->groups; group++)
			mem_free(atomic_load(&block->rows[group]));
		mem_free(block);
	}
	for (unsigned i = 1; i <= atomic_load(&prefixes->count); i++)
		mem_free(atomic_load(&prefixes->names[i]));
	mem_free(prefixes->zero);
	mem_free(prefixes->slots);
	mem_free(prefixes->names);
	lock_fini(&prefixes->lock);
	mem_free(prefixes);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Returns the name's number; or 0, and sets *slot to the empty slot where the search has ended. */
static unsigned look_up(struct prefixes *prefixes, const char *text, size_t length, uint64_t hash, uint32_t *slot)
{
	for (*slot = (uint32_t)hash & prefixes->mask;; *slot = (*slot + 1) & prefixes->mask) {
		uint32_t number = atomic_load_explicit(&prefixes->slots[*slot], memory_order_acquire);
		const struct name *name;

		if (number == 0)
			return 0;
		name = atomic_load_explicit(&prefixes->names[number], memory_order_relaxed);
		if (name->hash == hash && name->length == length && memcmp(name->text, text, length) == 0)
			return number;
	}
}

static unsigned __attribute__((cold, noinline))
add_name(struct prefixes *prefixes, const char *text, size_t length, uint64_t hash)
{
	unsigned number, count;
	uint32_t slot;

	lock_acquire(&prefixes->lock);
	number = look_up(prefixes, text, length, hash, &slot);
	count = atomic_load(&prefixes->count);
	if (number == 0 && count < prefixes->most) {
		struct name *name = mem_alloc(sizeof(*name) + length);

		if (name) {
			number = count + 1;
			name->hash = hash;
			name->length = (uint8_t)length;
			memcpy(name->text, text, length);
			atomic_store(&prefixes->names[number], name);
			atomic_store(&prefixes->count, number);
			atomic_store_explicit(&prefixes->slots[slot], number, memory_order_release);
		}
	}
	lock_release(&prefixes->lock);
	return number;
}

unsigned prefixes_find(struct prefixes *prefixes, const char *text, size_t length)
{
	uint64_t hash = hash64(text, length, 0);
	uint32_t slot;
	unsigned number;

	must(length <= PREFIX_NAME_MAX);
	number = look_up(prefixes, text, length, hash, &slot);
	if (__builtin_expect(number != 0, 1) ||
	    atomic_load_explicit(&prefixes->count, memory_order_relaxed) == prefixes->most)
		return number;
	return add_name(prefixes, text, length, hash);
}

uint64_t prefixes_untouched(const struct prefixes *prefixes)
{
	return resident_untouched(prefixes->names, (prefixes->most + 1) * sizeof(*prefixes->names)) +
	       resident_untouched(prefixes->slots, (prefixes->mask + 1ull) * sizeof(*prefixes->slots)) +
	       resident_untouched(prefixes->zero, (prefixes->most + 1) * PREFIX_COUNTERS * sizeof(*prefixes->zero));
}

unsigned prefixes_count(const struct prefixes *prefixes)
{
	return atomic_load(&prefixes->count);
}

const char *prefixes_name(const struct prefixes *prefixes, unsigned number, size_t *length)
{
	const struct name *name;

	must(number <= prefixes->most);
	name = number > 0 ? atomic_load(&prefixes->names[number]) : NULL;

	*length = name ? name->length : 0;
	return name ? name->text : "";
}

/* ---- counters -------------------------------------------------------------------------------- */

static struct prefix_row *__attribute__((cold, noinline)) make_rows(struct prefixes *prefixes, unsigned number)
{
	struct block *block;
	struct prefix_row *rows;

	must(number <= prefixes->most);

	if (own_thread == 0)
		own_thread = 1 + atomic_fetch_add(&threads, 1) % BLOCKS_MAX;
	block = atomic_load(&prefixes->blocks[own_thread - 1]);
	if (!block) {
		block = mem_must_zalloc(sizeof(*block) + row_groups(prefixes) * sizeof(block->rows[0]));
		block->groups = row_groups(prefixes);
		atomic_store_explicit(&prefixes->blocks[own_thread - 1], block, memory_order_release);
	}
	rows = atomic_load(&block->rows[number / ROWS]);
	if (!rows) {
		rows = mem_zaligned(64, ROWS * sizeof(*rows)); /* shares no line with another thread */
		must(rows);
		atomic_store_explicit(&block->rows[number / ROWS], rows, memory_order_release);
	}
	return rows;
}

struct prefix_row *prefixes_row(struct prefixes *prefixes, unsigned number)
{
	struct block *block =
		own_thread > 0 ? atomic_load_explicit(&prefixes->blocks[own_thread - 1], memory_order_relaxed) : NULL;
	struct prefix_row *rows =
		block ? atomic_load_explicit(&block->rows[number / ROWS], memory_order_relaxed) : NULL;

	if (__builtin_expect(!rows, 0))
		rows = make_rows(prefixes, number);
	return &rows[number % ROWS];
}

static uint64_t sum_since_start(const struct prefixes *prefixes, unsigned number, unsigned counter)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < BLOCKS_MAX; i++) {
		const struct block *block = atomic_load_explicit(&prefixes->blocks[i], memory_order_acquire);
		const struct prefix_row *rows =
			block ? atomic_load_explicit(&block->rows[number / ROWS], memory_order_acquire) : NULL;

		if (rows)
			sum += atomic_load_explicit(&rows[number % ROWS].value[counter], memory_order_relaxed);
	}
	return sum;
}

void prefixes_total(const struct prefixes *prefixes, unsigned number, uint64_t out[PREFIX_COUNTERS])
{
	for (unsigned i = 0; i < PREFIX_COUNTERS; i++)
		out[i] = sum_since_start(prefixes, number, i);
}

void prefixes_sum(const struct prefixes *prefixes, unsigned number, uint64_t out[PREFIX_COUNTERS])
{
	for (unsigned i = 0; i < PREFIX_COUNTERS; i++)
		out[i] = sum_since_start(prefixes, number, i) -
			 atomic_load_explicit(&prefixes->zero[number * PREFIX_COUNTERS + i], memory_order_relaxed);
}

void prefixes_reset(struct prefixes *prefixes)
{
	unsigned count = atomic_load_explicit(&prefixes->count, memory_order_acquire);

	/* A name that is added now begins at 0 anyhow. */
	for (unsigned number = 0; number <= count; number++)
		for (unsigned i = 0; i < PREFIX_COUNTERS; i++)
			atomic_store_explicit(&prefixes->zero[number * PREFIX_COUNTERS + i],
					      sum_since_start(prefixes, number, i), memory_order_relaxed);
}
