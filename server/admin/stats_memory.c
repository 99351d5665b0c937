/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "stats memory": the memory of the process, part by part. The parts come from the modules' accounts and from the
 * allocator. Their sum is compared with "resident", the kernel's own figure.
 */
#include "server/admin/admin.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/resident.h"
#include "server/count/observe.h"
#include "server/net/net.h"
#include "server/store/store.h"

static void memory_row(struct stats_out *out, const char *name, uint64_t bytes)
{
	stats_add(out, name, "%" PRIu64, bytes);
}

static uint64_t bytes_without(uint64_t bytes, uint64_t part)
{
	return bytes > part ? bytes - part : 0;
}

/*
 * Returns the allocator's own memory: holes, its records, and pages that it keeps for later. It doesn't tell how many
 * of these bytes are resident. So this is the resident memory without the other parts, at most as much as the allocator
 * counts. If the other parts are too large, or too small by more than that, the sum is wrong.
 */
static uint64_t allocators_share(const struct mem_figures *heap, const struct resident *resident, uint64_t others)
{
	uint64_t left = bytes_without(resident->all, others),
		 most = bytes_without(heap->active, heap->allocated) + heap->metadata + heap->unused;

	return left < most ? left : most;
}

void stats_memory(const struct server *server, struct stats_out *out)
{
	struct store_memory store;
	struct net_status net;
	struct mem_figures heap;
	struct resident resident;
	uint64_t untouched, sum = 0, own;

	store_get_memory(server->store, &store);
	net_get_status(server->net, &net);
	mem_figures(&heap);
	resident_read(&resident);
	untouched = store.untouched + observe_untouched() + net_untouched(server->net);
	const struct {
		const char *name;
		uint64_t bytes;
	} parts[] = {
		/* These parts are within -m: */
		{ "items", store.items },
		{ "tables", store.tables },
		{ "stripes", store.stripes },
		{ "index", store.index },
		{ "filters", store.filters },
		{ "index_other", store.index_other },
		{ "segments", store.segments },
		{ "classifier", store.classifier },
		{ "plans", store.plans },
		{ "staging", store.staging },
		{ "readers", store.readers },
		{ "journal", store.journal },
		/* These are beside it: */
		{ "connections", net.client_bytes },
		{ "other", bytes_without(heap.allocated, store.heap + net.client_bytes) },
		{ "stacks", resident.stacks },
		{ "files", bytes_without(resident.files, store.shared) },
	};

	memory_row(out, "limit", store.limit);
	memory_row(out, "charged", store.charged);
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		memory_row(out, parts[i].name, parts[i].bytes);
		sum += parts[i].bytes;
	}
	sum = bytes_without(sum, untouched);
	own = allocators_share(&heap, &resident, sum);
	memory_row(out, "allocator", own);
	memory_row(out, "untouched", untouched);
	memory_row(out, "sum", sum + own);
	memory_row(out, "resident", resident.all);
}
