/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/innocent.h"

#include <unistd.h>

#include "segments/layout.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "tests/fuzz/fuzz.h"

#define LOOK_BYTES (SEG_RECORD_HEADER + LAYOUT_KEY_MAX)

/* The linker has the store call the first of these (--wrap). */
unsigned __wrap_fidx_clear(struct fidx *index, const struct fidx_key *key);
unsigned __real_fidx_clear(struct fidx *index, const struct fidx_key *key);

static struct {
	struct service *service; /* NULL: nobody asks */
	const struct fidx_key *clearing; /* NULL: slots go for another reason */
	void (*lost)(void *context);
	void *context;
} asked;

unsigned __wrap_fidx_clear(struct fidx *index, const struct fidx_key *key)
{
	unsigned cleared;

	asked.clearing = key;
	cleared = __real_fidx_clear(index, key);
	asked.clearing = NULL;
	return cleared;
}

/* Is the record there the cleared key's own? */
static bool is_own(const struct fidx_lost *lost)
{
	const struct store *store = asked.service->server.store;
	uint64_t offset = seg_position(store->segments, lost->segment, lost->place, lost->function), needed;
	off_t at = (off_t)(LAYOUT_SUPER_BYTES + lost->segment * store->segment_bytes + offset);
	struct seg_record record = { .key_length = 0 };
	uint8_t bytes[LOOK_BYTES];
	ssize_t got = pread(asked.service->flash_fd, bytes, sizeof(bytes), at);
	int result;

	if (got < 0)
		return false;
	result = seg_record_read(store->segments, lost->segment, lost->sequence, offset, bytes, (uint64_t)got, &record,
				 &needed);
	return (result == FS_OK || result == FS_ESHORT) && record.key_length > 0 &&
	       store_hash(store, record.key, record.key_length) == asked.clearing->hash;
}

/* Extents are found by the whole hash: none of them is innocent. */
static void on_lost(void *context, const struct fidx_lost *lost)
{
	(void)context;
	if (asked.service && asked.clearing && !lost->extent && !is_own(lost))
		asked.lost(asked.context);
}

void innocent_begin(struct service *service, void (*lost)(void *context), void *context)
{
	if (!service->server.store->index)
		return;
	fidx_tell_losses(service->server.store->index, on_lost, NULL);
	asked.lost = lost;
	asked.context = context;
	asked.service = service;
}

void innocent_end(void)
{
	asked.service = NULL;
}
