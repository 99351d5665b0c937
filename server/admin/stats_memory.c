/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "stats memory": the memory of the process, part by part. The parts come from the modules' accounts and from the
 * allocator. Their sum is compared with "resident", the kernel's own figure.
 */
#include "server/admin/admin.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/metrics/rows.h"
#include "base/resident.h"
#include "server/count/observe.h"
#include "server/net/net.h"
#include "server/store/store.h"

static void memory_row(struct stats_out *out, enum row row, uint64_t bytes)
{
	stats_add(out, row_info(row)->name, "%" PRIu64, bytes);
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
		enum row row;
		uint64_t bytes;
	} parts[] = {
		/* These parts are within -m: */
		{ ROW_MEMORY_items, store.items },
		{ ROW_MEMORY_tables, store.tables },
		{ ROW_MEMORY_stripes, store.stripes },
		{ ROW_MEMORY_index, store.index },
		{ ROW_MEMORY_filters, store.filters },
		{ ROW_MEMORY_index_other, store.index_other },
		{ ROW_MEMORY_frugal, store.frugal },
		{ ROW_MEMORY_segments, store.segments },
		{ ROW_MEMORY_classifier, store.classifier },
		{ ROW_MEMORY_plans, store.plans },
		{ ROW_MEMORY_staging, store.staging },
		{ ROW_MEMORY_readers, store.readers },
		{ ROW_MEMORY_journal, store.journal },
		{ ROW_MEMORY_promotion, store.promotion },
		/* These are beside it: */
		{ ROW_MEMORY_connections, net.client_bytes },
		{ ROW_MEMORY_other, bytes_without(heap.allocated, store.heap + net.client_bytes) },
		{ ROW_MEMORY_stacks, resident.stacks },
		{ ROW_MEMORY_files, bytes_without(resident.files, store.shared) },
	};

	memory_row(out, ROW_MEMORY_limit, store.limit);
	memory_row(out, ROW_MEMORY_charged, store.charged);
	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		memory_row(out, parts[i].row, parts[i].bytes);
		sum += parts[i].bytes;
	}
	sum = bytes_without(sum, untouched);
	own = allocators_share(&heap, &resident, sum);
	memory_row(out, ROW_MEMORY_allocator, own);
	memory_row(out, ROW_MEMORY_untouched, untouched);
	memory_row(out, ROW_MEMORY_sum, sum + own);
	memory_row(out, ROW_MEMORY_resident, resident.all);
}
