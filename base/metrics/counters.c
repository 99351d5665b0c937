/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/metrics/counters.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

_Thread_local struct ctr_block *ctr_self;

static struct ctr_block *_Atomic blocks; /* only ever grows at its head */
static _Atomic uint64_t zero[CTR_COUNT]; /* the sums at the last reset */

static const struct ctr_info infos[CTR_COUNT] = {
#define COUNTER(name, group, unit, text) { #name, CTR_GROUP_##group, unit, text },
#include "base/metrics/counters.def"
#undef COUNTER
};

struct ctr_block *ctr_attach(void)
{
	struct ctr_block *block = mem_zaligned(64, sizeof(*block)); /* shares no line with another thread */
	struct ctr_block *head = atomic_load_explicit(&blocks, memory_order_relaxed);

	must(block);
	do
		block->next = head;
	while (!atomic_compare_exchange_weak_explicit(&blocks, &head, block, memory_order_release,
						      memory_order_relaxed));
	ctr_self = block;
	return block;
}

uint64_t ctr_total(enum ctr counter)
{
	const struct ctr_block *block = atomic_load_explicit(&blocks, memory_order_acquire);
	uint64_t sum = 0;

	for (; block; block = block->next)
		sum += atomic_load_explicit(&block->value[counter], memory_order_relaxed);
	return sum;
}

uint64_t ctr_sum(enum ctr counter)
{
	uint64_t base = atomic_load_explicit(&zero[counter], memory_order_relaxed);

	return ctr_total(counter) - base;
}

void ctr_reset(void)
{
	for (int counter = 0; counter < CTR_COUNT; counter++)
		atomic_store_explicit(&zero[counter], ctr_total((enum ctr)counter), memory_order_relaxed);
}

const struct ctr_info *ctr_info(enum ctr counter)
{
	must(counter < CTR_COUNT);
	return &infos[counter];
}
