/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The superblock: two equal copies, written one after the other, so that one is whole whenever the
 * power goes, and the flash may lose either without forgetting a reserve. The valid copy with the higher
 * generation counts.
 */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/metrics/counters.h"
#include "base/metrics/latency.h"
#include "base/rng.h"
#include "segments/segments_internal.h"

#define NUMBERS_END (1ull << 62) /* of generations, epochs and sequences, which rise one by one */

static uint64_t checksum_of(const struct layout_super *super)
{
	return hash64(super, offsetof(struct layout_super, checksum), LAYOUT_CHECK_SEED);
}

static bool is_zero(const uint8_t *bytes, uint64_t length)
{
	return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

static bool page_is_blank(const void *page)
{
	return is_zero(page, SEG_PAGE);
}

_Static_assert(DEV_START_BYTES == LAYOUT_SUPER_BYTES + SEG_PAGE, "the superblock's area and a page more");

/* One copy's magic is enough: the other may be lost. The page behind the area is checked too, because some file
   systems don't use the first 64 KiB. */
bool super_foreign(const uint8_t *start)
{
	const uint8_t *segment = start + LAYOUT_SUPER_BYTES;

	for (unsigned copy = 0; copy < LAYOUT_SUPER_COPIES; copy++)
		if (memcmp(start + copy * LAYOUT_SUPER_COPY_OFFSET, LAYOUT_SUPER_MAGIC,
			   sizeof(((struct layout_super *)0)->magic)) == 0)
			return false;
	return !is_zero(start, LAYOUT_SUPER_BYTES) ||
	       (!is_zero(segment, SEG_PAGE) &&
		memcmp(segment, LAYOUT_HEADER_MAGIC, sizeof(((struct layout_header *)0)->magic)) != 0);
}

/* Numbers that no daemon reaches would run over later, or have been given out already. */
static bool numbers_are_sound(const struct layout_super *super)
{
	return super->generation < NUMBERS_END && super->attach_epoch < NUMBERS_END && super->cas_end >= 1 &&
	       super->sequence_end >= 1 && super->sequence_end < NUMBERS_END;
}

/* Judges one copy. FS_OK, FS_ENOTFOUND (blank), FS_ECORRUPT or FS_EVERSION. */
static int judge_super(const struct layout_super *super)
{
	if (page_is_blank(super))
		return FS_ENOTFOUND;
	if (memcmp(super->magic, LAYOUT_SUPER_MAGIC, sizeof(super->magic)) != 0 ||
	    super->checksum != checksum_of(super))
		return FS_ECORRUPT;
	if (super->version != LAYOUT_VERSION || super->header_bytes != sizeof(*super) ||
	    (super->features.incompatible & ~LAYOUT_SUPER_KNOWN_INCOMPATIBLE) ||
	    (super->features.ro_compatible & ~LAYOUT_KNOWN_RO_COMPATIBLE))
		return FS_EVERSION;
	return numbers_are_sound(super) && homes_are_sound(super) ? FS_OK : FS_ECORRUPT;
}

int super_load(struct dev *device, struct layout_super *out, uint64_t *generation)
{
	struct layout_super *page = mem_aligned(SEG_PAGE, SEG_PAGE);
	int best = FS_ENOTFOUND;
	bool read_any = false;

	*generation = 0;
	memset(out, 0, sizeof(*out));
	if (!page)
		return FS_ENOMEM;
	for (unsigned copy = 0; copy < LAYOUT_SUPER_COPIES; copy++) {
		int rc;

		if (device->ops->read(device, page, SEG_PAGE, copy * LAYOUT_SUPER_COPY_OFFSET) != 0)
			continue;
		read_any = true;
		rc = judge_super(page);
		if ((rc == FS_OK || rc == FS_EVERSION) && page->generation > *generation)
			*generation = page->generation;
		if (rc == FS_OK && (best != FS_OK || page->generation > out->generation))
			*out = *page;
		if (rc == FS_OK || (rc != FS_ENOTFOUND && best == FS_ENOTFOUND))
			best = rc;
	}
	mem_free(page);
	/* Beside an old copy of ours lies a newer daemon's, whose reserves are beyond ours. */
	if (best == FS_OK && *generation > out->generation)
		best = FS_EVERSION;
	return read_any ? best : FS_EIO;
}

void super_make(struct layout_super *super, uint64_t generation)
{
	memset(super, 0, sizeof(*super));
	memcpy(super->magic, LAYOUT_SUPER_MAGIC, sizeof(super->magic));
	super->version = LAYOUT_VERSION;
	super->header_bytes = sizeof(*super);
	super->generation = generation;
	rng_secret(super->uuid, sizeof(super->uuid));
	rng_secret(super->secret, sizeof(super->secret));
	rng_secret(&super->hash_seed, sizeof(super->hash_seed));
	super->cas_end = 1;
	super->sequence_end = 1;
	super->created_s = (uint64_t)clk_wall_seconds();
}

int super_store(struct dev *device, const struct clk *clock, struct layout_super *super)
{
	struct layout_super *page = mem_aligned(SEG_PAGE, SEG_PAGE);
	int error = 0;

	if (!page)
		return FS_ENOMEM;
	super->generation++;
	super->checksum = checksum_of(super);
	*page = *super;
	for (unsigned copy = 0; copy < LAYOUT_SUPER_COPIES && error == 0; copy++) {
		uint64_t began_ns = clk_now_ns(clock);

		error = device->ops->write(device, page, SEG_PAGE, copy * LAYOUT_SUPER_COPY_OFFSET);
		lat_record(LAT_flash_write, clk_now_ns(clock) - began_ns, 1);
		if (error == 0)
			error = device->ops->flush(device);
		ctr_add(CTR_flash_bytes_written, SEG_PAGE);
	}
	mem_free(page);
	errno = -error;
	return error == 0 ? FS_OK : FS_EIO;
}
