/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "base/assert.h"
#include "flashindex/frugal/cell.h"

struct head {
	uint32_t format, columns, values, kills;
};
_Static_assert(sizeof(struct head) == CHAIN_HEAD, "the head of a chain record");

static uint64_t align8(uint64_t bytes)
{
	return (bytes + 7) & ~(uint64_t)7;
}

uint64_t chain_record_bytes(uint32_t columns, uint64_t values, uint64_t kills)
{
	return CHAIN_HEAD + 8 * lists_words(1, columns, values) + align8(values * sizeof(uint16_t)) +
	       kills * (sizeof(uint32_t) + sizeof(uint16_t));
}

/* Where the parts lie, from the beginning of the record on. */
static uint64_t values_at(uint32_t columns, uint64_t values)
{
	return CHAIN_HEAD + 8 * lists_words(1, columns, values);
}

static uint64_t kills_at(uint32_t columns, uint64_t values)
{
	return values_at(columns, values) + align8(values * sizeof(uint16_t));
}

bool chain_record_read(const void *bytes, uint64_t length, uint32_t columns, struct chain_record *out)
{
	const uint8_t *from = bytes;
	struct head head;

	must((uintptr_t)bytes % 8 == 0);
	if (length < sizeof(head))
		return false;
	memcpy(&head, bytes, sizeof(head));
	if (head.format != CHAIN_FORMAT || head.columns != columns || columns > COLUMNS_MOST ||
	    length < chain_record_bytes(columns, head.values, head.kills))
		return false;
	out->lists = (struct lists){ .partitions = 1,
				     .columns = columns,
				     .group = lists_group(columns),
				     .values = head.values,
				     .bits = (const uint64_t *)(const void *)(from + CHAIN_HEAD) };
	out->cell = (struct cell){ .lists = &out->lists,
				   .range = lists_range(&out->lists, 0),
				   .values = (const uint16_t *)(const void *)(from + values_at(columns, head.values)),
				   .kills = (const uint32_t *)(const void *)(from + kills_at(columns, head.values)),
				   .kill_count = head.kills };
	out->cell.kill_columns = (const uint16_t *)(out->cell.kills + head.kills);
	return true;
}

void chain_record_make(void *bytes, uint32_t columns, uint64_t values, uint64_t kills, struct chain_parts *out)
{
	const struct head head = {
		.format = CHAIN_FORMAT, .columns = columns, .values = (uint32_t)values, .kills = (uint32_t)kills
	};
	uint8_t *to = bytes;

	must((uintptr_t)bytes % 8 == 0 && columns <= COLUMNS_MOST && values <= UINT32_MAX && kills <= UINT32_MAX);
	memcpy(to, &head, sizeof(head));
	out->bits = (uint64_t *)(void *)(to + CHAIN_HEAD);
	out->values = (uint16_t *)(void *)(to + values_at(columns, values));
	out->kills = (uint32_t *)(void *)(to + kills_at(columns, values));
	out->kill_columns = (uint16_t *)(out->kills + kills);
}
