/* SPDX-License-Identifier: BSD-3-Clause */
/* Records: makes the header, and judges bytes that may be a record. Nothing here trusts the bytes that it reads. */
#include <string.h>

#include "base/assert.h"
#include "segments/segments_internal.h"

/*
 * The check is keyed by the flash's secret and covers the segment's sequence and the record's offset,
 * so that neither a record of an earlier life nor one that a client forged inside a value passes. It
 * consists of hashes of the pieces as they lie in memory, so that a large value is never copied.
 */
uint64_t record_check(const struct layout_super *super, uint64_t sequence, uint64_t offset,
		      const struct layout_record *header, const char *key, const char *value)
{
	uint8_t head[sizeof(*header) - sizeof(header->check) + LAYOUT_KEY_MAX];
	uint64_t parts[4] = { sequence, offset };

	memcpy(head, (const uint8_t *)header + sizeof(header->check), sizeof(*header) - sizeof(header->check));
	memcpy(head + sizeof(*header) - sizeof(header->check), key, header->key_length);
	parts[2] = hash64_keyed(head, sizeof(*header) - sizeof(header->check) + header->key_length, super->secret);
	/* A core dump holds the stacks, and is to hold no key. */
	explicit_bzero(head + sizeof(*header) - sizeof(header->check), header->key_length);
	parts[3] = hash64_keyed(value, header->value_length_flags & LAYOUT_VALUE_MAX, super->secret);
	return hash64_keyed(parts, sizeof(parts), super->secret);
}

void record_header(const struct layout_super *super, uint64_t sequence, uint64_t offset,
		   const struct seg_record *record, bool last, struct layout_record *out)
{
	must(record->key_length >= 1 && record->key_length <= LAYOUT_KEY_MAX);
	must(record->value_length <= LAYOUT_VALUE_MAX && record->item_flags <= LAYOUT_ITEM_FLAGS);
	*out = (struct layout_record){
		.value_length_flags = record->value_length | (uint32_t)record->item_flags << LAYOUT_VALUE_BITS |
				      (last ? LAYOUT_LAST_OF_BIN : 0),
		.cas = record->cas,
		.client_flags = record->client_flags,
		.expiry = record->expiry,
		.key_length = record->key_length,
	};
	memcpy(out->features, record->features, sizeof(out->features));
	out->check = (uint32_t)record_check(super, sequence, offset, out, record->key, record->value);
}

static void record_fill(struct seg_record *out, const struct layout_record *header, const uint8_t *bytes)
{
	*out = (struct seg_record){
		.key = (const char *)bytes + sizeof(*header),
		.value = (const char *)bytes + sizeof(*header) + header->key_length,
		.value_length = header->value_length_flags & LAYOUT_VALUE_MAX,
		.key_length = header->key_length,
		.item_flags = header->value_length_flags >> LAYOUT_VALUE_BITS & LAYOUT_ITEM_FLAGS,
		.client_flags = header->client_flags,
		.expiry = header->expiry,
		.cas = header->cas,
	};
	memcpy(out->features, header->features, sizeof(out->features));
}

static int no_record(struct seg_record *out, int result)
{
	memset(out, 0, sizeof(*out));
	return result;
}

int seg_record_read(const struct segments *seg, uint32_t segment, uint64_t sequence, uint64_t offset, const void *bytes,
		    uint64_t available, struct seg_record *out, uint64_t *needed)
{
	const struct seg_entry *entry = &seg->table->entry[segment];
	struct layout_record header;
	uint64_t length;

	*needed = 0;
	if (offset < SEG_PAGE || offset > entry->footer_offset || entry->footer_offset - offset < sizeof(header))
		return no_record(out, FS_ECORRUPT);
	if (available < sizeof(header)) {
		*needed = sizeof(header);
		return no_record(out, FS_ESHORT);
	}
	memcpy(&header, bytes, sizeof(header));
	length = seg_record_length(header.key_length, header.value_length_flags & LAYOUT_VALUE_MAX);
	if (header.key_length < 1 || header.key_length > LAYOUT_KEY_MAX || length > entry->footer_offset - offset)
		return no_record(out, FS_ECORRUPT);
	if (available < length) {
		*needed = length;
		if (available < sizeof(header) + header.key_length)
			return no_record(out, FS_ESHORT);
		record_fill(out, &header, bytes);
		return FS_ESHORT;
	}
	record_fill(out, &header, bytes);
	if ((uint32_t)record_check(&seg->super, sequence, offset, &header, out->key, out->value) == header.check)
		return FS_OK;
	return no_record(out, FS_ECORRUPT);
}
