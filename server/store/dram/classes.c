/* SPDX-License-Identifier: BSD-3-Clause */
/* Size classes: the sums over the contexts' blocks, and the ages that the crawler meets. */
#include "server/store/dram/dram.h"

_Static_assert(CLASS_LEAST_BYTES > sizeof(struct item), "no item is smaller than the first class");

uint8_t class_table[CLASS_TABLE_BYTES / 8 + 1];

static void __attribute__((constructor)) class_fill_table(void)
{
	for (uint32_t n = 1; n <= CLASS_TABLE_BYTES / 8; n++)
		class_table[n] = (uint8_t)size_class_any(8 * n);
}

unsigned store_class_count(void)
{
	return CLASSES;
}

/* The inverse of size_class_any. */
uint32_t store_class_bytes(unsigned class)
{
	must(class >= 1 && class <= CLASSES);
	if (class == 1)
		return CLASS_LEAST_BYTES;
	unsigned doubling = (class - 2) / 4, quarter = (class - 2) % 4;
	return (5 + quarter) << (doubling + 4);
}

struct class_block *classes_attach(struct classes *classes)
{
	struct class_block *block = mem_zaligned(64, sizeof(*block));
	struct class_block *head = atomic_load_explicit(&classes->blocks, memory_order_relaxed);

	must(block);
	do
		block->next = head;
	while (!atomic_compare_exchange_weak_explicit(&classes->blocks, &head, block, memory_order_release,
						      memory_order_relaxed));
	return block;
}

void classes_fini(struct classes *classes)
{
	struct class_block *block = atomic_load(&classes->blocks);

	while (block) {
		struct class_block *next = block->next;

		mem_free(block);
		block = next;
	}
}

/* ---- how long objects wait ------------------------------------------------------------------- */

void classes_met(struct classes *classes, unsigned class, uint32_t accessed)
{
	_Atomic uint32_t *so_far;
	uint32_t oldest;

	must(class >= 1 && class <= CLASSES);
	so_far = &classes->marks[class].oldest_so_far;
	oldest = atomic_load_explicit(so_far, memory_order_relaxed);
	if (oldest == 0 || accessed < oldest)
		atomic_store_explicit(so_far, accessed, memory_order_relaxed);
}

void classes_new_pass(struct classes *classes)
{
	for (unsigned class = 1; class <= CLASSES; ++class) {
		struct class_marks *marks = &classes->marks[class];

		atomic_store_explicit(&marks->oldest, atomic_load_explicit(&marks->oldest_so_far, memory_order_relaxed),
				      memory_order_relaxed);
		atomic_store_explicit(&marks->oldest_so_far, 0, memory_order_relaxed);
	}
}

static uint64_t class_age(const struct class_marks *marks, uint32_t now_seconds)
{
	uint32_t oldest = atomic_load_explicit(&marks->oldest, memory_order_relaxed);
	uint32_t so_far = atomic_load_explicit(&marks->oldest_so_far, memory_order_relaxed);

	if (oldest == 0 || (so_far != 0 && so_far < oldest))
		oldest = so_far;
	return oldest != 0 && oldest < now_seconds ? now_seconds - oldest : 0;
}

/* ---- figures --------------------------------------------------------------------------------- */

static void class_sum_blocks(const struct classes *classes, unsigned class, uint64_t sum[CLASS_COUNTERS])
{
	const struct class_block *block = atomic_load_explicit(&classes->blocks, memory_order_acquire);

	memset(sum, 0, CLASS_COUNTERS * sizeof(*sum));
	for (; block; block = block->next)
		for (int counter = 0; counter < CLASS_COUNTERS; counter++)
			sum[counter] += atomic_load_explicit(&block->value[class][counter], memory_order_relaxed);
}

static bool class_goes_down(int counter)
{
	return counter == CLASS_ITEMS || counter == CLASS_REQUESTED;
}

/* One thread may free an item that another made: a reader may see it gone before it sees it made. */
static uint64_t class_sum_positive(uint64_t sum)
{
	return sum > INT64_MAX ? 0 : sum;
}

void store_get_class(struct store *store, unsigned class, struct store_class_status *out)
{
	const struct classes *classes = store->classes;
	uint64_t sum[CLASS_COUNTERS];

	must(class >= 1 && class <= CLASSES);
	class_sum_blocks(classes, class, sum);
	for (int counter = 0; counter < CLASS_COUNTERS; counter++)
		if (!class_goes_down(counter))
			sum[counter] -= atomic_load_explicit(&classes->zero[class][counter], memory_order_relaxed);
	*out = (struct store_class_status){
		.items = class_sum_positive(sum[CLASS_ITEMS]),
		.requested_bytes = class_sum_positive(sum[CLASS_REQUESTED]),
		.get_hits = sum[CLASS_GET_HITS],
		.set_count = sum[CLASS_SETS],
		.delete_hits = sum[CLASS_DELETE_HITS],
		.incr_hits = sum[CLASS_INCR_HITS],
		.decr_hits = sum[CLASS_DECR_HITS],
		.cas_hits = sum[CLASS_CAS_HITS],
		.cas_badval = sum[CLASS_CAS_BADVAL],
		.touch_hits = sum[CLASS_TOUCH_HITS],
		.evicted = sum[CLASS_EVICTED],
		.evicted_nonzero = sum[CLASS_EVICTED_NONZERO],
		.evicted_unfetched = sum[CLASS_EVICTED_UNFETCHED],
		.evicted_active = sum[CLASS_EVICTED_ACTIVE],
		.direct_reclaims = sum[CLASS_DIRECT_RECLAIMS],
		.expired_unfetched = sum[CLASS_EXPIRED_UNFETCHED],
		.reclaimed = sum[CLASS_RECLAIMED],
		.crawler_reclaimed = sum[CLASS_CRAWLER_RECLAIMED],
		.crawler_checked = sum[CLASS_CRAWLER_CHECKED],
		.out_of_memory = sum[CLASS_OUT_OF_MEMORY],
		.evicted_time = atomic_load_explicit(&classes->marks[class].evicted_time, memory_order_relaxed),
	};
	if (out->items > 0)
		out->age_seconds =
			class_age(&classes->marks[class], store_now_seconds(store, clk_now_us(store->clock)));
}

void store_reset_classes(struct store *store)
{
	struct classes *classes = store->classes;
	uint64_t sum[CLASS_COUNTERS];

	for (unsigned class = 1; class <= CLASSES; ++class) {
		class_sum_blocks(classes, class, sum);
		for (int counter = 0; counter < CLASS_COUNTERS; counter++)
			if (!class_goes_down(counter))
				atomic_store_explicit(&classes->zero[class][counter], sum[counter],
						      memory_order_relaxed);
		atomic_store_explicit(&classes->marks[class].evicted_time, 0, memory_order_relaxed);
	}
}
