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
#define CAS_END ((uint64_t)1 << 53)
#define CLOCK_CAS_SHIFT 20

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

/* A flash that has grown is the same one, if it ended cleanly: what is saved of it names its segments. */
static enum seg_found found_on(const struct segments *seg, const struct layout_super *super)
{
	bool clean = super_is_clean(super);
	uint32_t segments = atomic_load_explicit(&seg->usable, memory_order_relaxed);

	if (super->segment_bytes != seg->segment_bytes || super->functions != seg->functions ||
	    super->segments > segments || (super->segments < segments && !clean))
		return SEG_FOUND_LAYOUT;
	return clean ? SEG_FOUND_CLEAN : SEG_FOUND_UNCLEAN;
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
	/* Earlier versions gave out ids that clients with floating-point numbers round. */
	if (rc == FS_OK && seg->super.cas_end > CAS_END)
		rc = FS_EVERSION;
	if (rc != FS_OK) {
		report_lost(path, rc);
		super_make(&seg->super, generation);
		/* A client may still hold an id of a flash whose reserve was lost. */
		if (rc != FS_ENOTFOUND)
			seg_skip_cas(seg, seg_clock_cas());
		if (config->seed)
			attach_seed(&seg->super, config->seed);
		return FS_OK;
	}
	seg->found = found_on(seg, &seg->super);
	seg->found_segments = seg->super.segments;
	memcpy(seg->found_uuid, seg->super.uuid, sizeof(seg->found_uuid));
	if (seg->found != SEG_FOUND_LAYOUT) {
		homes_take(seg);
		return FS_OK;
	}
	/* A new UUID, so that saved state of the old layout no longer fits. Secret, seeds and reserves stay, so that
	   neither a sequence number nor a CAS id is used again. */
	log_notice("flash: %s has a different layout; starting empty", path);
	rng_secret(seg->super.uuid, sizeof(seg->super.uuid));
	homes_clear(&seg->super);
	return FS_OK;
}

void seg_note_segments(const struct segments *seg, struct layout_super *super, uint32_t segments)
{
	super->segments = segments;
	super->index_segments = seg->segments > segments ? seg->segments : 0;
	super->index_flash_bytes = seg->segments > segments ? seg->index_flash_bytes : 0;
}

int seg_take_over(struct segments *seg, bool keeps, uint64_t region_id)
{
	struct layout_super *super = &seg->super, last = *super;
	uint64_t first_epoch = super->first_epoch ? super->first_epoch : super->attach_epoch;
	int rc;

	must(!seg->taken_over);
	super->segment_bytes = seg->segment_bytes;
	seg_note_segments(seg, super, atomic_load_explicit(&seg->usable, memory_order_relaxed));
	super->functions = seg->functions;
	super->flash_bytes = seg->device->bytes;
	super->asked_bytes = seg->asked_bytes;
	super->attach_epoch++;
	super->clean_epoch = 0;
	super->first_epoch = keeps ? first_epoch : 0;
	super->region_id = region_id;
	super->sequence_end += SEQUENCE_BLOCK;
	homes_put(seg, super, 0, 0, false);
	rc = super_store(seg->device, seg->clock, super);
	seg->taken_over = rc == FS_OK;
	if (rc != FS_OK)
		*super = last;
	return rc;
}

static void init_locks(struct segments *seg, unsigned error_budget)
{
	pthread_condattr_t attributes;

	lock_init(&seg->lock, LOCK_SEGMENT_TABLE);
	lock_init(&seg->pins_lock, LOCK_LEAF);
	lock_init(&seg->users_lock, LOCK_LEAF);
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
	submitter_destroy(seg->submitter);
	stream_release(seg);
	rescue_cancel(seg); /* changes a segment's state */
	move_close(seg);
	seg->magic = 0;
	pthread_cond_destroy(&seg->pins_gone);
	health_fini(&seg->health);
	must(!seg->users);
	lock_fini(&seg->users_lock);
	lock_fini(&seg->pins_lock);
	lock_fini(&seg->lock);
	seg->ops->close(seg->device);
	mem_free(seg->live);
	mem_free(seg);
}

void seg_note_device(struct segments *seg)
{
	const struct dev *device = seg->device;

	must(device->read_block >= DEV_READ_LEAST && device->read_block <= SEG_PAGE);
	atomic_store_explicit(&seg->device_bytes, device->bytes, memory_order_relaxed);
	atomic_store_explicit(&seg->direct, device->direct, memory_order_relaxed);
	atomic_store_explicit(&seg->block_device, device->block_device, memory_order_relaxed);
	atomic_store_explicit(&seg->read_unit, seg_read_unit(seg, device), memory_order_relaxed);
	atomic_store_explicit(&seg->allocated_bytes,
			      seg->ops->allocate ? atomic_load_explicit(&device->allocated, memory_order_relaxed)
						 : device->bytes,
			      memory_order_relaxed);
}

/* Does what seg_look does, on a device that is open already, which it owns from then on. */
static int look_on(struct segments **out, const struct seg_config *config, void *table, struct dev *device)
{
	struct segments *seg = mem_zalloc(sizeof(*seg));
	uint32_t segments;
	int rc = FS_ENOMEM;

	*out = NULL;
	if (!seg) {
		device->ops->close(device);
		return FS_ENOMEM;
	}
	seg->magic = SEGMENTS_MAGIC;
	seg->device = seg->devices[0] = device;
	seg->ops = device->ops;
	seg->clock = config->clock;
	seg->segment_bytes = config->segment_bytes;
	segments = seg_count_for(device->bytes, config->segment_bytes);
	seg->segments = config->index_segments > segments ? config->index_segments : segments;
	seg->index_flash_bytes = config->index_flash_bytes;
	seg->asked_bytes = config->asked_bytes;
	seg->functions = config->functions;
	seg->direct_wanted = config->direct;
	seg->read_unit_wanted = config->read_unit;
	seg->crossings_bytes = config->crossings ? (uint32_t)crossings_bytes(config->segment_bytes) : 0;
	seg->table = table;
	atomic_init(&seg->usable, segments);
	seg_note_device(seg);
	atomic_init(&seg->nowait, true);
	init_locks(seg, config->error_budget);
	seg->submitter = submitter_create();
	seg->live = mem_zaligned(_Alignof(struct seg_live), (seg->segments + 1) * sizeof(*seg->live));
	if (seg->submitter && seg->live) {
		for (uint32_t i = 0; i < seg->segments; i++) {
			seg->live[i].magic = SEG_LIVE_MAGIC;
			atomic_init(&seg->live[i].home, seg_offset_by_number(seg, i));
		}
		rc = check_config(config);
	}
	if (rc == FS_OK && segments == 0)
		rc = FS_ERANGE;
	if (rc == FS_OK)
		rc = attach_super(seg, config);
	if (rc != FS_OK) {
		int error = errno;

		seg_close(seg);
		errno = error;
		return rc;
	}
	allocate_begin(seg);
	seg->next_sequence = seg->super.sequence_end;
	*out = seg;
	return FS_OK;
}

/* Makes an empty flash of one that was looked at. */
static int begin_empty(struct segments **seg)
{
	int rc, error;

	seg_forget(*seg);
	rc = seg_take_over(*seg, false, 0);
	if (rc == FS_OK)
		return FS_OK;
	error = errno;
	seg_close(*seg);
	*seg = NULL;
	errno = error;
	return rc;
}

int seg_open_on(struct segments **out, const struct seg_config *config, void *table, struct dev *device)
{
	int rc = look_on(out, config, table, device);

	return rc == FS_OK ? begin_empty(out) : rc;
}

int seg_open(struct segments **out, const struct seg_config *config, void *table)
{
	int rc = seg_look(out, config, table);

	return rc == FS_OK ? begin_empty(out) : rc;
}

int seg_look(struct segments **out, const struct seg_config *config, void *table)
{
	struct seg_config rounded = *config;
	struct dev *device = config->device;
	int rc = check_config(config);

	*out = NULL;
	if (device)
		return look_on(out, config, table, device);
	rounded.flash_bytes &= ~(uint64_t)(SEG_PAGE - 1);
	if (rc == FS_OK)
		rc = dev_open(&device, &rounded);
	return rc == FS_OK ? look_on(out, &rounded, table, device) : rc;
}

void seg_get_info(const struct segments *seg, struct seg_info *out)
{
	*out = (struct seg_info){
		.segments = seg->segments,
		.segment_bytes = seg->segment_bytes,
		.flash_bytes = atomic_load_explicit(&seg->device_bytes, memory_order_relaxed),
		.hash_seed = seg->super.hash_seed,
		.attach_epoch = __atomic_load_n(&seg->super.attach_epoch, __ATOMIC_RELAXED),
		.region_id = __atomic_load_n(&seg->super.region_id, __ATOMIC_RELAXED),
		.cas_end = __atomic_load_n(&seg->super.cas_end, __ATOMIC_RELAXED),
		.found = seg->found,
		.direct = atomic_load_explicit(&seg->direct, memory_order_relaxed),
		.block_device = atomic_load_explicit(&seg->block_device, memory_order_relaxed),
		.offline = health_offline(seg),
		.crossings = seg->crossings_bytes > 0,
		.read_unit = atomic_load_explicit(&seg->read_unit, memory_order_relaxed),
		.staging_bytes = writer_staging_bytes(seg->segment_bytes),
	};
	memcpy(out->uuid, seg->super.uuid, sizeof(out->uuid));
	memcpy(out->found_uuid, seg->found_uuid, sizeof(out->found_uuid));
}

int seg_store_super(struct segments *seg)
{
	int rc;

	homes_put(seg, &seg->super, 0, 0, false);
	device_asked(seg);
	rc = super_store(seg->device, seg->clock, &seg->super);
	device_answered(seg);
	return rc;
}

/* Any thread may read it meanwhile (seg_get_info). */
static void set_cas_end(struct segments *seg, uint64_t end)
{
	__atomic_store_n(&seg->super.cas_end, end, __ATOMIC_RELAXED);
}

int seg_reserve_cas(struct segments *seg, uint64_t count, uint64_t *first, uint64_t *end)
{
	uint64_t begin = seg->super.cas_end;
	int rc;

	if (count == 0 || count > CAS_END || begin > CAS_END - count)
		return FS_ERANGE;
	set_cas_end(seg, begin + count);
	rc = seg_store_super(seg);
	if (rc != FS_OK) {
		/* Nobody gets an id of the range, so that the next call may reserve it again. */
		set_cas_end(seg, begin);
		health_error(seg, "a superblock write", errno);
		return rc;
	}
	*first = begin;
	*end = begin + count;
	return FS_OK;
}

void seg_skip_cas(struct segments *seg, uint64_t to)
{
	must(to >= seg->super.cas_end);
	set_cas_end(seg, to);
}

void seg_return_cas(struct segments *seg, uint64_t from)
{
	must(from <= seg->super.cas_end);
	set_cas_end(seg, from);
	if (seg_store_super(seg) != FS_OK)
		health_error(seg, "a superblock write", errno);
}

uint64_t seg_clock_cas(void)
{
	return (uint64_t)clk_wall_seconds() << CLOCK_CAS_SHIFT;
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
