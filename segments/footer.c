/* SPDX-License-Identifier: BSD-3-Clause */
/* Header page and footer of a segment: made here, and judged here when they come back from flash. */
#include <string.h>

#include "base/assert.h"
#include "base/clock.h"
#include "segments/segments_internal.h"

void offsets_put(struct offsets_list *list, uint64_t step)
{
	do {
		must(list->length < list->capacity);
		list->bytes[list->length++] = (uint8_t)((step & 0x7f) | (step > 0x7f ? 0x80 : 0));
		step >>= 7;
	} while (step);
}

bool offsets_take(const struct offsets_list *list, uint64_t *at, uint64_t *step)
{
	*step = 0;
	for (unsigned shift = 0; shift < 35 && *at < list->length; shift += 7) {
		uint8_t byte = list->bytes[(*at)++];

		*step |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static uint64_t header_checksum(const struct layout_header *header)
{
	return hash64(header, offsetof(struct layout_header, checksum), LAYOUT_CHECK_SEED);
}

static uint64_t footer_checksum(const struct layout_footer *footer)
{
	return hash64(footer, offsetof(struct layout_footer, checksum), LAYOUT_CHECK_SEED);
}

void header_make(const struct segments *seg, uint32_t segment, const struct seg_plan *plan, uint64_t record_bytes,
		 struct layout_header *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->magic, LAYOUT_HEADER_MAGIC, sizeof(out->magic));
	out->version = LAYOUT_VERSION;
	out->header_bytes = sizeof(*out);
	memcpy(out->uuid, seg->super.uuid, sizeof(out->uuid));
	out->sequence = plan->sequence;
	out->segment = segment;
	out->granule = plan->granule;
	out->longest_999 = plan->longest_999;
	out->extents_offset = SEG_PAGE;
	out->extents_bytes = plan->data_offset - SEG_PAGE;
	out->data_offset = plan->data_offset;
	out->data_bytes = plan->data_bytes;
	out->footer_offset = seg->segment_bytes - plan->footer_bytes;
	out->footer_bytes = plan->footer_bytes;
	out->objects = plan->count;
	out->extents = plan->extents;
	out->record_bytes = record_bytes;
	out->written_s = (uint64_t)clk_wall_seconds();
	out->attach_epoch = seg->super.attach_epoch;
	out->functions = seg->functions;
	out->features.incompatible = layout_features_of(plan->kind);
	out->bin_bytes = plan->bin_bytes;
	out->checksum = header_checksum(out);
}

void footer_make(const struct segments *seg, const struct layout_header *header, const struct offsets_list *list,
		 const void *filter, uint64_t filter_length, struct layout_footer *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->magic, LAYOUT_FOOTER_MAGIC, sizeof(out->magic));
	out->version = LAYOUT_VERSION;
	out->header_bytes = sizeof(*out);
	memcpy(out->uuid, seg->super.uuid, sizeof(out->uuid));
	out->sequence = header->sequence;
	out->objects = header->objects;
	out->extents = header->extents;
	out->header_checksum = header->checksum;
	out->offsets_bytes = list->length;
	out->offsets_checksum = hash64(list->bytes, list->length, LAYOUT_CHECK_SEED);
	out->filter_bytes = filter_length;
	out->filter_checksum = hash64(filter ? filter : "", filter_length, LAYOUT_CHECK_SEED);
	out->checksum = footer_checksum(out);
}

static bool features_known(const struct layout_features *features)
{
	return !(features->incompatible & ~LAYOUT_KNOWN_INCOMPATIBLE);
}

bool header_valid(const struct segments *seg, const struct layout_header *header, uint32_t segment, uint64_t sequence)
{
	const struct seg_entry *entry = &seg->table->entry[segment];
	enum seg_kind kind;

	return memcmp(header->magic, LAYOUT_HEADER_MAGIC, sizeof(header->magic)) == 0 &&
	       header->checksum == header_checksum(header) && header->version == LAYOUT_VERSION &&
	       header->header_bytes == sizeof(*header) && features_known(&header->features) &&
	       memcmp(header->uuid, seg->super.uuid, sizeof(header->uuid)) == 0 && header->segment == segment &&
	       header->sequence == sequence && header->data_offset == entry->data_offset &&
	       header->data_bytes == entry->data_bytes && header->footer_offset == entry->footer_offset &&
	       header->objects == entry->objects && header->extents == entry->extents &&
	       header->record_bytes == entry->record_bytes && layout_kind(header, &kind) && kind == entry->kind &&
	       header->bin_bytes == entry->bin_bytes;
}

bool footer_valid(const struct segments *seg, const struct layout_footer *footer, uint64_t sequence)
{
	return memcmp(footer->magic, LAYOUT_FOOTER_MAGIC, sizeof(footer->magic)) == 0 &&
	       footer->checksum == footer_checksum(footer) && footer->version == LAYOUT_VERSION &&
	       footer->header_bytes == sizeof(*footer) && features_known(&footer->features) &&
	       memcmp(footer->uuid, seg->super.uuid, sizeof(footer->uuid)) == 0 && footer->sequence == sequence;
}
