/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/metrics/latency.h"

#include <stdatomic.h>

#include "base/alloc.h"
#include "base/assert.h"

_Thread_local struct lat_block *lat_self;

static struct lat_block *_Atomic blocks; /* only ever grows at its head */
static struct hist zero[LAT_COUNT]; /* the sums at the last reset; under the caller's lock (lat_reset) */

static const struct lat_info infos[LAT_COUNT] = {
#define LATENCY(name, metric, label, text) { #name, METRIC_##metric, label, text },
#include "base/metrics/latency.def"
#undef LATENCY
};

#define US(n) ((uint64_t)((n)*1000))
const uint64_t lat_bounds_ns[LAT_BOUNDS] = {
	US(1),   US(2.5),  US(5),    US(10),   US(25),    US(50),    US(100),   US(250), US(500),   US(1e3), US(2.5e3),
	US(5e3), US(10e3), US(25e3), US(50e3), US(100e3), US(250e3), US(500e3), US(1e6), US(2.5e6), US(5e6), US(10e6),
};

struct lat_block *lat_attach(void)
{
	struct lat_block *block = mem_must_zalloc(sizeof(*block));
	struct lat_block *head = atomic_load_explicit(&blocks, memory_order_relaxed);

	for (int latency = 0; latency < LAT_COUNT; latency++)
		block->hist[latency] = hist_create();
	do
		block->next = head;
	while (!atomic_compare_exchange_weak_explicit(&blocks, &head, block, memory_order_release,
						      memory_order_relaxed));
	lat_self = block;
	return block;
}

void lat_read(enum lat latency, struct hist *out)
{
	const struct lat_block *block = atomic_load_explicit(&blocks, memory_order_acquire);

	must(latency < LAT_COUNT);
	for (; block; block = block->next)
		hist_merge(out, block->hist[latency]);
}

const struct lat_info *lat_info(enum lat latency)
{
	must(latency < LAT_COUNT);
	return &infos[latency];
}

void lat_reset(void)
{
	for (int latency = 0; latency < LAT_COUNT; latency++) {
		hist_reset(&zero[latency]);
		lat_read((enum lat)latency, &zero[latency]);
	}
}

void lat_read_since_reset(enum lat latency, struct hist *out)
{
	lat_read(latency, out);
	hist_subtract(out, &zero[latency]);
}
