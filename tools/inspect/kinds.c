/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/kinds.h"

#include <endian.h>
#include <string.h>

#include "base/hash.h"

#define ORDER_SEED 0xb10057e0e5a11ba5ull
#define COLUMN_BYTES 24u /* of a chain's table of columns */
#define CHAIN_HEADER_BYTES 16u
#define CHAIN_VERSION 1u
#define CHAIN_KEY_BYTES 8u

static const char not_last[] = "record: the last one of its bin, and not marked so";
static const char marked[] = "record: marked as the last one of a bin";

void kinds_begin(struct kinds_check *check, const struct format_super *super, const struct format_header *header)
{
	*check = (struct kinds_check){ .super = super, .header = header };
}

/* ---- bins ------------------------------------------------------------------------------------ */

static uint64_t bin_of_offset(const struct format_header *header, uint64_t offset)
{
	return (offset - header->data_offset) / header->bin_bytes;
}

static uint64_t bin_of_key(const struct kinds_check *check, const struct format_record *record)
{
	uint64_t hash = hash64(record->key, record->key_length, check->super->hash_seed);

	return reduce64(mix64(hash ^ ORDER_SEED), check->header->data_bytes / check->header->bin_bytes);
}

/* Where the record has to lie, if all before it are known. */
static bool follows(const struct kinds_check *check, uint64_t offset, uint64_t bin_start)
{
	uint32_t granule = check->header->granule;

	if (check->records == 0 || check->before < bin_start)
		return offset == bin_start;
	return offset == (check->before_end + granule - 1) / granule * granule;
}

static const char *take_in_bin(struct kinds_check *check, const struct format_record *record, uint64_t length,
			       uint64_t *offset)
{
	const struct format_header *header = check->header;
	uint64_t bin = bin_of_offset(header, record->offset), start = header->data_offset + bin * header->bin_bytes;
	bool known = check->before_known || check->records == 0;
	bool same_bin = check->records > 0 && check->before >= start;

	if (bin != bin_of_key(check, record))
		return "record: another bin is its key's";
	if (record->offset + length > start + header->bin_bytes)
		return "record: reaches over the end of its bin";
	if (known && !follows(check, record->offset, start))
		return "record: a gap before it in its bin";
	if (check->before_known && check->before_marked == same_bin) {
		*offset = check->before;
		return same_bin ? marked : not_last;
	}
	return NULL;
}

/* ---- a chain --------------------------------------------------------------------------------- */

static uint32_t u32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return le32toh(value);
}

/* Do the lengths in a partition's value add up to it? */
static bool partition_is_sound(const uint8_t *value, uint64_t length)
{
	uint64_t columns, fingerprints, kills, bytes;

	if (length < CHAIN_HEADER_BYTES || u32(value) != CHAIN_VERSION)
		return false;
	columns = u32(value + 4);
	fingerprints = u32(value + 8);
	kills = u32(value + 12);
	bytes = CHAIN_HEADER_BYTES + (columns + fingerprints + 63) / 64 * 8 + 2 * fingerprints;
	return (bytes + 7) / 8 * 8 + 6 * kills == length;
}

static const char *take_in_chain(struct kinds_check *check, const struct format_record *record)
{
	bool columns = check->records == 0;
	uint32_t number;

	if (record->key_length != CHAIN_KEY_BYTES || memcmp(record->key, columns ? "FLCO" : "FLCH", 4) != 0)
		return columns ? "record: the first of a chain is not the one of its columns"
			       : "record: the key is not one of a chain's partition";
	number = u32(record->key + 4);
	if (columns)
		return record->value_length == (uint64_t)number * COLUMN_BYTES
			       ? NULL
			       : "record: its length is not the one of its columns";
	if (number < check->least_partition)
		return "record: partitions are not in order";
	check->least_partition = number + 1;
	return partition_is_sound(record->value, record->value_length)
		       ? NULL
		       : "record: its length is not the one of its fingerprints and kills";
}

/* ---- all kinds ------------------------------------------------------------------------------- */

const char *kinds_take(struct kinds_check *check, const struct format_record *record, uint64_t length, uint64_t *offset)
{
	enum format_kind kind = check->header->kind;
	const char *text = NULL;

	*offset = record->offset;
	if (kind == FORMAT_BINS)
		text = take_in_bin(check, record, length, offset);
	else if (record->last_of_bin)
		text = marked;
	else if (kind == FORMAT_CHAIN)
		text = take_in_chain(check, record);
	check->before = record->offset;
	check->before_end = record->offset + length;
	check->before_marked = record->last_of_bin;
	check->before_known = true;
	check->records++;
	return text;
}

void kinds_take_broken(struct kinds_check *check)
{
	check->records++;
	check->before_known = false;
}

const char *kinds_end(const struct kinds_check *check, uint64_t *offset)
{
	if (check->header->kind != FORMAT_BINS || !check->before_known || check->before_marked)
		return NULL;
	*offset = check->before;
	return not_last;
}
