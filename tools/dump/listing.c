/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/dump/listing.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/common/args.h"
#include "tools/common/warm_file.h"

#define READ_BIT (1ull << 63)

void listing_init(struct listing *listing, uint64_t limit)
{
	*listing = (struct listing){ .limit = limit };
}

void listing_fini(struct listing *listing)
{
	mem_free(listing->entries);
	mem_free(listing->texts);
}

/* Makes room for `more` elements behind `used`. */
static void *grown(void *memory, size_t used, size_t *room, size_t more, size_t element)
{
	if (*room - used >= more)
		return memory;
	while (*room - used < more)
		*room = *room ? *room * 2 : 65536;
	memory = mem_realloc(memory, *room * element);
	if (!memory)
		arg_die("no memory for the server's keys: --limit takes less");
	return memory;
}

static int hex_digit(char digit)
{
	const char *digits = "0123456789abcdef", *found;

	if (!digit)
		return -1;
	found = strchr(digits, digit >= 'A' && digit <= 'F' ? digit + 32 : digit);
	return found ? (int)(found - digits) : -1;
}

/* Decodes %XX in place. Returns the length, or 0 if it is no key. */
static size_t decode_key(char *text)
{
	size_t length = 0;

	for (const char *at = text; *at; at++, length++) {
		int high, low;

		text[length] = *at;
		if (*at != '%')
			continue;
		high = hex_digit(at[1]);
		low = high < 0 ? -1 : hex_digit(at[2]);
		if (low < 0)
			return 0;
		text[length] = (char)(high << 4 | low);
		at += 2;
	}
	return length <= WARM_KEY_BYTES ? length : 0;
}

int listing_add(struct listing *listing, char *row)
{
	char *rest, *word = strtok_r(row, " ", &rest), *key = NULL;
	uint64_t heat = 0, bytes = 0;
	size_t length;
	uint32_t size;
	char *out;

	for (; word; word = strtok_r(NULL, " ", &rest)) {
		if (strncmp(word, "key=", 4) == 0)
			key = word + 4;
		else if (strncmp(word, "la=", 3) == 0)
			heat |= strtoull(word + 3, NULL, 10) & ~READ_BIT;
		else if (strcmp(word, "fetch=yes") == 0)
			heat |= READ_BIT;
		else if (strncmp(word, "size=", 5) == 0)
			bytes = strtoull(word + 5, NULL, 10);
	}
	length = key ? decode_key(key) : 0;
	if (length == 0)
		return FS_EINVAL;
	if (listing->limit < UINT64_MAX / 4 && listing->count >= 2 * listing->limit + LISTING_SLACK)
		listing_sort(listing);
	listing->entries = grown(listing->entries, listing->count, &listing->room, 1, sizeof(*listing->entries));
	listing->texts = grown(listing->texts, listing->used, &listing->texts_room, length + 5, 1);
	out = listing->texts + listing->used;
	size = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
	memcpy(out, &size, sizeof(size));
	out[4] = (char)(uint8_t)length;
	memcpy(out + 5, key, length);
	listing->entries[listing->count++] = (struct listing_entry){ heat, listing->used };
	listing->used += length + 5;
	return FS_OK;
}

static int hotter(const void *left, const void *right)
{
	const struct listing_entry *a = left, *b = right;

	if (a->heat != b->heat)
		return a->heat > b->heat ? -1 : 1;
	return a->at < b->at ? -1 : 1; /* the server's order */
}

static int earlier(const void *left, const void *right)
{
	const struct listing_entry *a = left, *b = right;

	return a->at < b->at ? -1 : 1;
}

/* Closes the gaps of keys that were dropped, in the order of the texts. */
static void compact(struct listing *listing)
{
	size_t used = 0;

	qsort(listing->entries, listing->count, sizeof(*listing->entries), earlier);
	for (size_t i = 0; i < listing->count; i++) {
		struct listing_entry *entry = &listing->entries[i];
		size_t bytes = 5 + (size_t)(uint8_t)listing->texts[entry->at + 4];

		memmove(listing->texts + used, listing->texts + entry->at, bytes);
		entry->at = used;
		used += bytes;
	}
	listing->used = used;
	qsort(listing->entries, listing->count, sizeof(*listing->entries), hotter);
}

void listing_sort(struct listing *listing)
{
	if (listing->count == 0)
		return;
	qsort(listing->entries, listing->count, sizeof(*listing->entries), hotter);
	if (listing->count <= listing->limit)
		return;
	listing->count = listing->limit;
	compact(listing);
}

struct listed listing_get(const struct listing *listing, size_t place)
{
	const char *text = listing->texts + listing->entries[place].at;
	struct listed listed = { .key = text + 5, .key_bytes = (uint8_t)text[4] };

	memcpy(&listed.bytes, text, sizeof(listed.bytes));
	return listed;
}
