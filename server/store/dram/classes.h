/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Size classes and their counters. The classes are jemalloc's, so that an item costs its class's size: sixteen bytes
 * apart up to 128, then four to each doubling.
 *
 *   class   1   2   3   4   5    6    7    8    9    10  ...  97
 *   bytes  64  80  96 112 128  160  192  224  256   320  ...  1 GiB
 *
 * Threads: each store_context adds to a block of its own, with relaxed atomics and one writer for each. A reader adds
 * the blocks up and may be a few events behind. A block outlives its context, so that no count is lost. Blocks are
 * linked without a lock and freed with the store.
 */
#ifndef FS_STORE_CLASSES_H
#define FS_STORE_CLASSES_H

#include <stdatomic.h>
#include <stdint.h>

#define CLASSES 97u
#define CLASS_LEAST_BYTES 64u
#define CLASS_MOST_BYTES (1u << 30)

/* The first eight, which requests count, share a cache line. */
enum class_counter {
	CLASS_ITEMS, /* this and the next fall too, in one block below 0: modulo 2^64 the sum of all blocks is right */
	CLASS_REQUESTED,
	CLASS_GET_HITS,
	CLASS_SETS,
	CLASS_DELETE_HITS,
	CLASS_INCR_HITS,
	CLASS_DECR_HITS,
	CLASS_TOUCH_HITS,
	CLASS_CAS_HITS,
	CLASS_CAS_BADVAL,
	CLASS_EVICTED,
	CLASS_EVICTED_NONZERO,
	CLASS_EVICTED_UNFETCHED,
	CLASS_EVICTED_ACTIVE,
	CLASS_DIRECT_RECLAIMS,
	CLASS_EXPIRED_UNFETCHED,
	CLASS_RECLAIMED,
	CLASS_CRAWLER_RECLAIMED,
	CLASS_CRAWLER_CHECKED,
	CLASS_OUT_OF_MEMORY,
	CLASS_COUNTERS
};

struct class_block {
	_Atomic uint64_t value[CLASSES + 1][24]; /* CLASS_COUNTERS of these; three lines each */
	struct class_block *next;
} __attribute__((aligned(64)));

_Static_assert(CLASS_COUNTERS <= 24, "a class's counters have their place");

/* Times of a class from the crawler and the eviction hands; the last writer wins. */
struct class_marks {
	_Atomic uint32_t evicted_time; /* seconds */
	/* The last access, in the store's seconds, of the object that waited longest in the last pass; 0: none. */
	_Atomic uint32_t oldest;
	_Atomic uint32_t oldest_so_far; /* the same of the pass under way */
};

struct classes {
	struct class_block *_Atomic blocks;
	_Atomic uint64_t zero[CLASSES + 1][CLASS_COUNTERS]; /* the sums at the last reset */
	struct class_marks marks[CLASSES + 1];
};

/* Returns the class of an allocation of so many bytes (>= 1), computed. */
static inline unsigned size_class_any(uint64_t bytes)
{
	uint64_t last = bytes - 1;

	if (last < CLASS_LEAST_BYTES)
		return 1;
	if (last >= CLASS_MOST_BYTES)
		return CLASSES;
	unsigned doubling = 63 - (unsigned)__builtin_clzll(last);
	return 4 * doubling + (unsigned)(last >> (doubling - 2)) - 26; /* the shifted is 4 to 7 */
}

/* Classes of small allocations, in steps of eight bytes, within which no class ends. */
#define CLASS_TABLE_BYTES 8192u
extern uint8_t class_table[];

/* Returns the class of an allocation of so many bytes (>= 1): small ones by the table, because each command asks for
   one. */
static inline unsigned size_class(uint64_t bytes)
{
	return __builtin_expect(bytes <= CLASS_TABLE_BYTES, 1) ? class_table[(bytes + 7) / 8] : size_class_any(bytes);
}

/* Adds n to a counter of a class (1 .. CLASSES) in the caller's own block. */
static inline void class_add(struct class_block *block, unsigned class, enum class_counter counter, uint64_t n)
{
	_Atomic uint64_t *value = &block->value[class][counter];

	atomic_store_explicit(value, atomic_load_explicit(value, memory_order_relaxed) + n, memory_order_relaxed);
}

/* Frees all blocks; no context is left. */
void classes_fini(struct classes *classes);
/* Returns a new block of zeros for a context; never NULL, freed by classes_fini. Any thread. */
struct class_block *classes_attach(struct classes *classes);
/* Notes that the crawler begins a new pass: the ages met in the last pass count from now on. Keeper. */
void classes_new_pass(struct classes *classes);
/* Notes that the crawler has met an object of this class. accessed is its last access, in the store's seconds.
   Keeper. */
void classes_met(struct classes *classes, unsigned class, uint32_t accessed);

#endif
