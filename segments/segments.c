/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens and closes a flash; its reserves and constant figures. */
#include "segments/segments.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/rng.h"
#include "segments/segments_internal.h"
#include "segments/writer_internal.h"

/* Sequence numbers are reserved in the superblock this many at a time. */
#define SEQUENCE_BLOCK 1024u
#define CAS_END ((uint64_t)1 << 63)

uint32_t seg_count_for(uint64_t flash_bytes, uint64_t segment_bytes)
{
	uint64_t count = flash_bytes > LAYOUT_SUPER_BYTES && segment_bytes
				 ? (flash_bytes - LAYOUT_SUPER_BYTES) / segment_bytes
				 : 0;

	return count < SEG_MAX_SEGMENTS ? (uint32_t)count : SEG_MAX_SEGMENTS;
}

static int check_config(const struct seg_config *config)
{
	if (!config->clock || config->functions < 1 || config->functions > SEG_MAX_FUNCTIONS ||
	    config->segment_bytes < SEG_MIN_BYTES || config->segment_bytes > SEG_MAX_BYTES ||
	    config->segment_bytes % SEG_PAGE)
		return FS_EINVAL;
	return FS_OK;
}

static void report_lost(const char *path, int why)
{
	switch (why) {
	case FS_ENOTFOUND:
		log_info("flash: %s is new", path);
		break;
	case FS_EVERSION:
		log_warn("flash: %s has a format or features that this version doesn't know; starting empty", path);
		break;
	default:
		log_warn("flash: the superblock of %s is broken; starting empty", path);
	}
}

static void fill_from(struct rng *rng, void *bytes, size_t length)
{
	for (size_t at = 0; at < length; at++)
		((uint8_t *)bytes)[at] = (uint8_t)rng_below(rng, 256);
}

/* For simulations that can be repeated: the seed gives what are otherwise the kernel's random bytes. */
static void attach_seed(struct layout_super *super, uint64_t seed)
{
	struct rng rng;

	rng_init(&rng, seed);
	fill_from(&rng, super->uuid, sizeof(super->uuid));
	fill_from(&rng, super->secret, sizeof(super->secret));
	fill_from(&rng, &super->hash_seed, sizeof(super->hash_seed));
}

/* Reads the superblock or makes a new one. */
static int attach_super(struct segments *seg, const struct seg_config *config)
{
	const char *path = config->path ? config->path : "device";
	uint64_t generation;
	int rc = super_load(seg->device, &seg->super, &generation);

	if (rc == FS_EIO || rc == FS_ENOMEM)
		return rc;
	seg->found = SEG_FOUND_NONE;
	if (rc != FS_OK) {
		report_lost(path, rc);
		super_make(&seg->super, generation);
		if (config->seed)
			attach_seed(&seg->super, config->seed);
		return FS_OK;
	}
	if (seg->super.segment_bytes == seg->segment_bytes && seg->super.segments == seg->segments &&
	    seg->super.functions == seg->functions) {
		seg->found = seg->super.clean_epoch != 0 && seg->super.clean_epoch == seg->super.attach_epoch
				     ? SEG_FOUND_CLEAN
				     : SEG_FOUND_UNCLEAN;
		return FS_OK;
	}
	seg->found = SEG_FOUND_LAYOUT;
	/* A new UUID, so that saved state of the old layout no longer fits. Secret, seeds and reserves stay, so that
	   neither a sequence number nor a CAS id is used again. */
	log_notice("flash: %s has a different layout; starting empty", path);
	rng_secret(seg->super.uuid, sizeof(seg->super.uuid));
	return FS_OK;
}

/* Makes the attach epoch and the first sequence numbers durable, before any segment is written. */
static int begin_epoch(struct segments *seg)
{
	struct layout_super *super = &seg->super;

	super->segment_bytes = seg->segment_bytes;
	super->segments = seg->segments;
	super->functions = seg->functions;
	super->flash_bytes = seg->device->bytes;
	super->attach_epoch++;
	super->clean_epoch = 0;
	seg->first_epoch = super->first_epoch ? super->first_epoch : super->attach_epoch - 1;
	super->first_epoch = 0;
	seg->next_sequence = super->sequence_end;
	super->sequence_end += SEQUENCE_BLOCK;
	return super_store(seg->device, seg->clock, super);
}

static void init_locks(struct segments *seg, unsigned error_budget)
{
	pthread_condattr_t attributes;

	lock_init(&seg->lock, LOCK_SEGMENT_TABLE);
	lock_init(&seg->pins_lock, LOCK_LEAF);
	health_init(&seg->health, error_budget);
	must(pthread_condattr_init(&attributes) == 0);
	must(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
	must(pthread_cond_init(&seg->pins_gone, &attributes) == 0);
	pthread_condattr_destroy(&attributes);
}

void seg_close(struct segments *seg)
{
	if (!seg)
		return;
	must(seg->magic == SEGMENTS_MAGIC && !seg->stream);
	seg->magic = 0;
	submitter_destroy(seg->submitter);
	pthread_cond_destroy(&seg->pins_gone);
	health_fini(&seg->health);
	lock_fini(&seg->pins_lock);
	lock_fini(&seg->lock);
	stream_release(seg);
	seg->device->ops->close(seg->device);
	mem_free(seg->live);
	mem_free(seg);
}

int seg_open_on(struct segments **out, const struct seg_config *config, void *table, struct dev *device)
{
	struct segments *seg = mem_zalloc(sizeof(*seg));
	int rc = FS_ENOMEM;

	*out = NULL;
	if (!seg) {
		device->ops->close(device);
		return FS_ENOMEM;
	}
	seg->magic = SEGMENTS_MAGIC;
	seg->device = device;
	seg->clock = config->clock;
	seg->segment_bytes = config->segment_bytes;
	seg->segments = seg_count_for(device->bytes, config->segment_bytes);
	seg->functions = config->functions;
	seg->table = table;
	atomic_init(&seg->nowait, true);
	init_locks(seg, config->error_budget);
	seg->submitter = submitter_create();
	seg->live = mem_aligned(_Alignof(struct seg_live), (seg->segments + 1) * sizeof(*seg->live));
	if (seg->submitter && seg->live) {
		memset(seg->live, 0, (seg->segments + 1) * sizeof(*seg->live));
		for (uint32_t i = 0; i < seg->segments; i++)
			seg->live[i].magic = SEG_LIVE_MAGIC;
		rc = check_config(config);
	}
	if (rc == FS_OK && seg->segments == 0)
		rc = FS_ERANGE;
	if (rc == FS_OK)
		rc = attach_super(seg, config);
	if (rc == FS_OK)
		rc = begin_epoch(seg);
	if (rc != FS_OK) {
		int error = errno;

		seg_close(seg);
		errno = error;
		return rc;
	}
	memset(table, 0, seg_region_bytes(seg->segments));
	seg->table->segments = seg->segments;
	*out = seg;
	return FS_OK;
}

int seg_open(struct segments **out, const struct seg_config *config, void *table)
{
	struct seg_config rounded = *config;
	struct dev *device = config->device;
	int rc = check_config(config);

	*out = NULL;
	if (device)
		return seg_open_on(out, config, table, device);
	rounded.flash_bytes &= ~(uint64_t)(SEG_PAGE - 1);
	if (rc == FS_OK)
		rc = dev_open(&device, &rounded);
	return rc == FS_OK ? seg_open_on(out, &rounded, table, device) : rc;
}

void seg_get_info(const struct segments *seg, struct seg_info *out)
{
	*out = (struct seg_info){
		.segments = seg->segments,
		.segment_bytes = seg->segment_bytes,
		.flash_bytes = seg->device->bytes,
		.hash_seed = seg->super.hash_seed,
		.attach_epoch = seg->super.attach_epoch,
		.found = seg->found,
		.direct = seg->device->direct,
		.block_device = seg->device->block_device,
		.offline = health_offline(seg),
		.staging_bytes = writer_staging_bytes(seg->segment_bytes),
	};
	memcpy(out->uuid, seg->super.uuid, sizeof(out->uuid));
}

int seg_store_super(struct segments *seg)
{
	int rc;

	device_asked(seg);
	rc = super_store(seg->device, seg->clock, &seg->super);
	device_answered(seg);
	return rc;
}

int seg_reserve_cas(struct segments *seg, uint64_t count, uint64_t *first, uint64_t *end)
{
	uint64_t begin = seg->super.cas_end;
	int rc;

	if (count == 0 || count > CAS_END || begin > CAS_END - count)
		return FS_ERANGE;
	seg->super.cas_end = begin + count;
	rc = seg_store_super(seg);
	if (rc != FS_OK) {
		/* The write may have arrived, so the range is given up: no id is given out twice. */
		health_error(seg, "a superblock write", errno);
		return rc;
	}
	*first = begin;
	*end = begin + count;
	return FS_OK;
}

int seg_reserve_sequence(struct segments *seg)
{
	int rc;

	must(seg->magic == SEGMENTS_MAGIC && seg->next_sequence <= seg->super.sequence_end);
	if (seg->next_sequence < seg->super.sequence_end)
		return FS_OK;
	seg->super.sequence_end = seg->next_sequence + SEQUENCE_BLOCK;
	rc = seg_store_super(seg);
	if (rc != FS_OK) {
		seg->super.sequence_end = seg->next_sequence;
		health_error(seg, "a superblock write", errno);
	}
	return rc;
}
