/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/replay/measure.h"

#include "base/alloc.h"

const char *const latency_names[LATENCY_KINDS] = { "hit", "miss", "set", "delete" };

void measure_init(struct measure *measure, uint32_t apps)
{
	*measure = (struct measure){ .app_count = apps };
	measure->apps = mem_must_zalloc(apps * sizeof(*measure->apps));
	for (int kind = 0; kind < LATENCY_KINDS; kind++)
		measure->latency[kind] = hist_create();
}

void measure_fini(struct measure *measure)
{
	for (int kind = 0; kind < LATENCY_KINDS; kind++)
		hist_destroy(measure->latency[kind]);
	mem_free(measure->apps);
}

static void merge_counts(struct app_counts *into, const struct app_counts *from)
{
	into->requests += from->requests;
	into->gets += from->gets;
	into->hits += from->hits;
	into->sets += from->sets;
}

void measure_merge(struct measure *into, const struct measure *from)
{
	for (int kind = 0; kind < LATENCY_KINDS; kind++)
		hist_merge(into->latency[kind], from->latency[kind]);
	for (uint32_t i = 0; i < into->app_count; i++)
		merge_counts(&into->apps[i], &from->apps[i]);
	merge_counts(&into->all, &from->all);
	into->fills += from->fills;
	into->deletes += from->deletes;
	into->not_stored += from->not_stored;
	into->too_large += from->too_large;
	into->out_of_memory += from->out_of_memory;
	into->server_errors += from->server_errors;
	into->client_errors += from->client_errors;
	into->bytes_read += from->bytes_read;
	into->bytes_set += from->bytes_set;
	into->long_keys += from->long_keys;
	into->older += from->older;
	into->wrong += from->wrong;
	into->checked += from->checked;
	into->from_before += from->from_before;
}
