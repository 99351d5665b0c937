/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation, keys, views and figures. */
#include "flashindex/frugal/frugal.h"

#include <string.h>

#include "flashindex/frugal/frugal_internal.h"

#define PARTITION_BITS 28u /* the high bits of x from which the partition follows: those that the table of kills has */
#define EPOCH_FIRST 1u
/* The area has room for a kill for each so many bytes of flash, and for a partition for each so many. */
#define KILL_EACH 2048u
#define PARTITION_EACH 32768u
#define AREA_LEAST 4096u /* lines of kills, and partitions */

static uint64_t align_page(uint64_t bytes)
{
	return (bytes + 4095) & ~4095ull;
}

/* At least AREA_LEAST, for each so many bytes of flash. */
static uint32_t one_for_each(const struct frugal_config *config, uint64_t bytes, uint32_t most)
{
	uint64_t count = config->segments * config->segment_bytes / bytes;

	return count < AREA_LEAST ? AREA_LEAST : count > most ? most : (uint32_t)count;
}

uint32_t frugal_lines_most(const struct frugal_config *config)
{
	return one_for_each(config, (uint64_t)KILL_EACH * LINE_CELLS, LINES_MOST);
}

uint32_t frugal_partitions_most(const struct frugal_config *config)
{
	return one_for_each(config, PARTITION_EACH, FRUGAL_PARTITIONS_MOST);
}

uint32_t frugal_lines(const struct frugal_config *config)
{
	uint64_t lines = config->kill_bytes / (LINE_CELLS * sizeof(uint64_t)), most = frugal_lines_most(config);

	return lines < 1 ? 1 : (uint32_t)(lines > most ? most : lines);
}

static uint64_t kill_table_bytes(uint32_t lines)
{
	return (uint64_t)lines * LINE_CELLS * sizeof(uint64_t);
}

static uint64_t head_bytes(void)
{
	return align_page(sizeof(struct region_frugal));
}

static uint64_t fixed_bytes_for(uint32_t lines, uint32_t partitions, uint32_t segments)
{
	return head_bytes() + align_page(kill_table_bytes(lines)) +
	       align_page(((uint64_t)partitions + segments) * sizeof(uint64_t));
}

uint64_t frugal_region_most(const struct frugal_config *config)
{
	return fixed_bytes_for(frugal_lines_most(config), frugal_partitions_most(config), config->segments) +
	       align_page(config->memory_most);
}

static bool config_is_valid(const struct frugal_config *config)
{
	return config->segments >= 1 && config->segments <= FRUGAL_SEGMENTS_MOST && config->partitions >= 1 &&
	       config->partitions <= frugal_partitions_most(config) && config->objects >= 1 && config->share > 0;
}

int frugal_make(struct frugal **out, const struct frugal_config *config, struct region *region)
{
	struct frugal *frugal;

	*out = NULL;
	if (!config_is_valid(config))
		return FS_EINVAL;
	frugal = mem_zalloc(sizeof(*frugal));
	if (!frugal)
		return FS_ENOMEM;
	frugal->config = *config;
	frugal->region = region;
	frugal->area = region_area(region, REGION_FRUGAL);
	frugal->open = mem_zalloc(config->segments * sizeof(*frugal->open));
	frugal->chained = mem_zalloc(config->segments * sizeof(*frugal->chained));
	frugal->records = mem_zalloc(config->segments * sizeof(*frugal->records));
	frugal->bytes = mem_zalloc(config->segments * sizeof(*frugal->bytes));
	atomic_store(&frugal->epoch, EPOCH_FIRST);
	if (!frugal->open || !frugal->chained || !frugal->records || !frugal->bytes ||
	    region_commit_part(region, REGION_FRUGAL, 0, frugal_head_part(frugal)) != FS_OK) {
		frugal_destroy(frugal);
		return FS_ENOMEM;
	}
	frugal->kept = (struct region_frugal *)(void *)frugal->area;
	*out = frugal;
	return FS_OK;
}

/* In units of the region. */
uint64_t frugal_head_part(const struct frugal *frugal)
{
	uint64_t unit = region_unit(frugal->region);

	return (head_bytes() + unit - 1) / unit * unit;
}

int frugal_lay_out(struct frugal *frugal, uint32_t partitions, uint32_t lines)
{
	uint64_t unit = region_unit(frugal->region), head = frugal_head_part(frugal), all;

	frugal->partitions = partitions;
	frugal->lines = lines;
	frugal->fixed_bytes = fixed_bytes_for(lines, partitions, frugal->config.segments);
	all = (frugal->fixed_bytes + unit - 1) / unit * unit;
	frugal->kills = (_Atomic uint64_t *)(void *)(frugal->area + head_bytes());
	frugal->watermarks =
		(_Atomic uint64_t *)(void *)(frugal->area + head_bytes() + align_page(kill_table_bytes(lines)));
	frugal->closed = frugal->watermarks + partitions;
	atomic_store(&frugal->memory, all);
	return all > head ? region_commit_part(frugal->region, REGION_FRUGAL, head, all - head) : FS_OK;
}

void frugal_head_create(struct frugal *frugal)
{
	struct region_frugal *kept = frugal->kept;

	memset(kept, 0, sizeof(*kept));
	kept->segments = frugal->config.segments;
	kept->partitions = frugal->partitions;
	kept->lines = frugal->lines;
	kept->seed = frugal->config.seed;
}

static void prefilter_note(struct frugal *frugal, unsigned number)
{
	frugal->kept->prefilters[number] =
		(struct prefilter_row){ .block = frugal->prefilter->block, .blocks = frugal->prefilter->blocks };
	atomic_store_explicit(&frugal->kept->prefilter, number, memory_order_release);
}

void prefilter_use(struct frugal *frugal, struct prefilter *prefilter)
{
	frugal->prefilter = prefilter;
	prefilter_note(frugal, (unsigned)(atomic_load(&frugal->kept->prefilter) + 1) % PREFILTERS);
}

int frugal_create(struct frugal **out, const struct frugal_config *config, struct region *region)
{
	int result = frugal_make(out, config, region);
	struct frugal *frugal = *out;

	if (result != FS_OK)
		return result;
	result = frugal_lay_out(frugal, config->partitions, frugal_lines(config));
	if (result == FS_OK) {
		struct prefilter *prefilter = prefilter_create(frugal, prefilter_blocks(frugal, config->objects));

		frugal_head_create(frugal);
		if (prefilter)
			prefilter_use(frugal, prefilter);
		result = prefilter ? frugal_begin(frugal) : FS_ENOMEM;
	}
	if (result != FS_OK) {
		frugal_destroy(frugal);
		*out = NULL;
	}
	return result;
}

/* The first view. */
int frugal_begin(struct frugal *frugal)
{
	struct view *view = mem_zalloc(sizeof(*view));

	frugal->spare_view = mem_zalloc(sizeof(*view));
	if (!view || !frugal->spare_view) {
		mem_free(view);
		return FS_ENOMEM;
	}
	atomic_store(&frugal->view, view);
	figures_count(frugal);
	view_publish(frugal);
	return FS_OK;
}

void frugal_destroy(struct frugal *frugal)
{
	if (!frugal)
		return;
	frugal_merge_cancel(frugal->merge);
	for (unsigned i = 0; i < frugal->bundles; i++)
		mem_free(frugal->bundle[i]);
	mem_free(frugal->chain);
	mem_free(frugal->prefilter);
	mem_free(atomic_load(&frugal->view));
	mem_free(frugal->spare_view);
	mem_free(frugal->taken);
	mem_free(frugal->open);
	mem_free(frugal->chained);
	mem_free(frugal->records);
	mem_free(frugal->bytes);
	mem_free(frugal);
}

void frugal_set_quiesce(struct frugal *frugal, void (*quiesce)(void *context), void *context)
{
	frugal->quiesce = quiesce;
	frugal->quiesce_context = context;
}

void frugal_set_step(struct frugal *frugal, void (*step)(void *context), void *context)
{
	frugal->step = step;
	frugal->step_context = context;
}

/* ---- keys ------------------------------------------------------------------------------------ */

uint32_t frugal_partition_of(const struct frugal *frugal, uint64_t x)
{
	return (uint32_t)((x >> (64 - PARTITION_BITS)) * frugal->partitions >> PARTITION_BITS);
}

uint32_t frugal_partitions(const struct frugal *frugal)
{
	return frugal->partitions;
}

void frugal_key_of(const struct frugal *frugal, uint64_t hash, struct frugal_key *out)
{
	out->x = frugal_order(hash);
	out->partition = frugal_partition_of(frugal, out->x);
}

/* ---- views ----------------------------------------------------------------------------------- */

static uint64_t newest_column(const struct frugal *frugal)
{
	uint64_t newest = frugal->chain && frugal->chain->columns ? frugal->chain->column[0].sequence : 0;

	for (unsigned b = 0; b < frugal->bundles; b++)
		if (frugal->bundle[b]->columns > 0 && frugal->bundle[b]->column[0].sequence > newest)
			newest = frugal->bundle[b]->column[0].sequence;
	return newest;
}

/* The two views take turns: nobody reads the other one, as quiesce returned after it was replaced. */
void view_publish(struct frugal *frugal)
{
	struct view *old = atomic_load(&frugal->view), *view = frugal->spare_view;

	*view = (struct view){ .bundles = frugal->bundles,
			       .chain = frugal->chain,
			       .prefilter = frugal->prefilter,
			       .newest = newest_column(frugal) };
	memcpy(view->bundle, frugal->bundle, frugal->bundles * sizeof(view->bundle[0]));
	atomic_store_explicit(&frugal->view, view, memory_order_release);
	if (frugal->quiesce)
		frugal->quiesce(frugal->quiesce_context);
	frugal->spare_view = old;
}

/* ---- segments -------------------------------------------------------------------------------- */

void segment_open(struct frugal *frugal, const struct column *column)
{
	must(column->segment < frugal->config.segments && atomic_load(&frugal->open[column->segment]) == 0);
	frugal->records[column->segment] = column->records;
	atomic_store_explicit(&frugal->bytes[column->segment], column->bytes, memory_order_relaxed);
	atomic_fetch_add(&frugal->open_segments, 1);
	atomic_fetch_add(&frugal->open_records, column->records);
	atomic_fetch_add(&frugal->open_bytes, column->bytes);
	atomic_store_explicit(&frugal->open[column->segment], column->sequence, memory_order_release);
}

void segment_close(struct frugal *frugal, uint32_t segment)
{
	if (atomic_load(&frugal->open[segment]) == 0)
		return;
	atomic_store(&frugal->open[segment], 0);
	atomic_fetch_sub(&frugal->open_segments, 1);
	atomic_fetch_sub(&frugal->open_records, frugal->records[segment]);
	atomic_fetch_sub(&frugal->open_bytes, atomic_exchange(&frugal->bytes[segment], 0));
}

uint64_t frugal_segment_bytes(const struct frugal *frugal, uint32_t segment)
{
	must(segment < frugal->config.segments);
	return atomic_load_explicit(&frugal->bytes[segment], memory_order_relaxed);
}

uint64_t segments_oldest(const struct frugal *frugal)
{
	uint64_t oldest = UINT64_MAX;

	for (uint32_t s = 0; s < frugal->config.segments; s++) {
		uint64_t sequence = atomic_load_explicit(&frugal->open[s], memory_order_relaxed);

		if (sequence != 0 && sequence < oldest)
			oldest = sequence;
	}
	return oldest;
}

void frugal_close(struct frugal *frugal, uint32_t segment)
{
	uint64_t sequence;

	must(segment < frugal->config.segments);
	sequence = atomic_load(&frugal->open[segment]);
	if (sequence == 0)
		return;
	/* What is answered from now on must hold after a kill, too, although the segment is LIVE until its readers have left. */
	atomic_store(&frugal->closed[segment], sequence);
	segment_close(frugal, segment);
}

bool frugal_pick(const struct frugal *frugal, uint64_t random, struct frugal_found *out, uint32_t *records)
{
	uint64_t at = reduce64(random, atomic_load(&frugal->open_records));

	for (uint32_t s = 0; s < frugal->config.segments; s++) {
		uint64_t sequence = atomic_load_explicit(&frugal->open[s], memory_order_relaxed);

		if (sequence == 0)
			continue;
		if (at < frugal->records[s]) {
			*out = (struct frugal_found){ .segment = s, .sequence = sequence };
			*records = frugal->records[s];
			return true;
		}
		at -= frugal->records[s];
	}
	return false;
}

bool frugal_is_open(const struct frugal *frugal, uint32_t segment, uint64_t sequence)
{
	must(segment < frugal->config.segments);
	return sequence != 0 && atomic_load_explicit(&frugal->open[segment], memory_order_acquire) == sequence;
}

/* ---- figures --------------------------------------------------------------------------------- */

void figures_count(struct frugal *frugal)
{
	uint64_t bytes = 0, kills = 0;
	uint32_t columns = 0;

	for (unsigned b = 0; b < frugal->bundles; b++) {
		bytes += frugal->bundle[b]->block.bytes;
		kills += frugal->bundle[b]->kill_lists.values;
		columns += frugal->bundle[b]->columns;
	}
	atomic_store_explicit(&frugal->bundle_bytes, bytes, memory_order_relaxed);
	atomic_store_explicit(&frugal->kills_listed, kills, memory_order_relaxed);
	atomic_store_explicit(&frugal->columns_in_memory, columns, memory_order_relaxed);
	atomic_store_explicit(&frugal->bundle_count, frugal->bundles, memory_order_relaxed);
	atomic_store_explicit(&frugal->prefilter_bytes, frugal->prefilter->block.bytes, memory_order_relaxed);
	atomic_store_explicit(&frugal->chain_bytes, frugal->chain ? frugal->chain->block.bytes : 0,
			      memory_order_relaxed);
	atomic_store_explicit(&frugal->columns_in_chain, frugal->chain ? frugal->chain->columns : 0,
			      memory_order_relaxed);
	atomic_store_explicit(&frugal->chain_segments, frugal->chain ? frugal->chain->segments : 0,
			      memory_order_relaxed);
}

uint64_t frugal_memory(const struct frugal *frugal)
{
	return atomic_load_explicit(&frugal->memory, memory_order_relaxed);
}

void frugal_get_status(const struct frugal *frugal, struct frugal_status *out)
{
	*out = (struct frugal_status){
		.partitions = frugal->partitions,
		.segments = atomic_load(&frugal->open_segments),
		.chain_segments = atomic_load(&frugal->chain_segments),
		.columns_in_memory = atomic_load(&frugal->columns_in_memory),
		.columns_in_chain = atomic_load(&frugal->columns_in_chain),
		.bundles = atomic_load(&frugal->bundle_count),
		.objects = atomic_load(&frugal->open_records),
		.bytes = atomic_load(&frugal->open_bytes),
		.kills = atomic_load(&frugal->kill_count),
		.kills_most = (uint64_t)frugal->lines * LINE_CELLS,
		.kills_listed = atomic_load(&frugal->kills_listed),
		.bundle_bytes = atomic_load(&frugal->bundle_bytes),
		.prefilter_bytes = atomic_load(&frugal->prefilter_bytes),
		.kill_bytes = kill_table_bytes(frugal->lines),
		.watermarks = atomic_load(&frugal->given_up),
	};
	uint64_t known = out->bundle_bytes + out->prefilter_bytes + out->kill_bytes, all = frugal_memory(frugal);

	out->other_bytes = all > known ? all - known : 0;
	if (out->objects)
		out->prefilter_bits = 8 * (double)out->prefilter_bytes / (double)out->objects;
}
