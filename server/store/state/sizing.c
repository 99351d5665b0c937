/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes how much of the flash a given memory can serve, and the size of its segments. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "server/store/state/sizing.h"

#include "base/log.h"
#include "conf/units.h"

#define SEGMENTS_WANTED_MAX 16000u
#define SEGMENT_SHARE 8u /* of -m: the largest default segment; an operator may choose a quarter */
#define TABLE_SHARE 16u /* of -m, for the table of segments */
#define CROSSINGS_FLASH 128u /* times -m: with more flash than that, objects are large and their pages many */
#define SEGMENTS_LEAST 8u /* of a small flash, so that FIFO order means something */
#define SEGMENT_MIB (1ull << 20)
#define BUCKET_BYTES (FIDX_BUCKET_SLOTS * sizeof(uint32_t))
#define EXTENTS_MOST (1u << 26)
/* Of the frugal index: */
#define COLUMNS_WANTED 1024u /* segments: with more of them, chain records have more to search */
#define FRUGAL_SEGMENT_SHARE 16u /* of -m: the largest segment for the sake of fewer columns */
#define KEYS_LEAST 1024u /* of a partition: a column has about one, and its chain record fills a page */
#define KEYS_MOST 4096u
#define FRUGAL_COLUMN_BYTES 2.3 /* of the frugal index for an object: its column, if it is in memory, ... */
#define FRUGAL_OTHER_BYTES 0.7 /* ... and prefilter and kills */
#define SLOT_OBJECT_BYTES (64u << 10) /* a guess, for the first table of the larger objects */

static uint64_t whole_pages(uint64_t bytes)
{
	return bytes / SEG_PAGE * SEG_PAGE;
}

/* Enough segments that none gets too large; fewer where their table would be much of a small memory. */
static uint64_t sizing_segments_wanted(uint64_t memory)
{
	uint64_t each = seg_region_bytes(2, 0, false) - seg_region_bytes(1, 0, false),
		 most = memory / TABLE_SHARE / each;

	return most < SEGMENTS_WANTED_MAX ? most : SEGMENTS_WANTED_MAX;
}

/* Segments of this size make as few columns as are wanted, if -m has room for them. */
static uint64_t sizing_frugal_segment(uint64_t flash, uint64_t memory)
{
	uint64_t wanted = flash / COLUMNS_WANTED, most = memory / FRUGAL_SEGMENT_SHARE;

	return wanted < most ? wanted : most;
}

/* 512 MiB, or smaller for small set-ups: free memory and candidates are counted in segments, and 1/32 of -m leaves DRAM
   to its objects (DECISIONS.md). At least 1 MiB, or 1/16 of -m. By the flash that was asked for, so that they stay when a part
   of it grows, unless the part has too few of them. */
static uint64_t sizing_default_segment(uint64_t flash, uint64_t part, uint64_t memory, bool frugal)
{
	uint64_t size = memory / 32 < SEG_MAX_BYTES ? memory / 32 : SEG_MAX_BYTES;

	if (frugal && size < sizing_frugal_segment(flash, memory))
		size = sizing_frugal_segment(flash, memory);
	if (size < SEGMENT_MIB)
		size = memory / 16 < SEGMENT_MIB ? memory / 16 : SEGMENT_MIB;
	if (size < flash / sizing_segments_wanted(memory))
		size = flash / sizing_segments_wanted(memory) + SEG_PAGE;
	if (size > memory / SEGMENT_SHARE)
		size = memory / SEGMENT_SHARE; /* so that a small -m can start */
	if (size > SEG_MAX_BYTES)
		size = SEG_MAX_BYTES; /* flash beyond the most segments of this size stays unused */
	if (size > part / SEGMENTS_LEAST)
		size = part / SEGMENTS_LEAST;
	return whole_pages(size < SEG_MIN_BYTES ? SEG_MIN_BYTES : size);
}

static uint64_t sizing_buckets(uint64_t flash, uint64_t object_bytes)
{
	uint64_t slots = (uint64_t)((double)(flash / object_bytes) / INDEX_LOAD);

	return slots / FIDX_BUCKET_SLOTS + 2;
}

/* Bytes of the frugal index for an object. */
static double sizing_frugal_each(const struct store_config *config)
{
	double share = config->frugal_memory ? config->frugal_memory / 100.0 : 1;

	return share * FRUGAL_COLUMN_BYTES + FRUGAL_OTHER_BYTES;
}

static uint64_t sizing_memory_for_all(uint64_t flash, const struct store_config *config)
{
	uint64_t objects = flash / config->flash_object_bytes;
	uint64_t index = config->index == STORE_INDEX_FRUGAL
				 ? (uint64_t)((double)objects * sizing_frugal_each(config))
				 : sizing_buckets(flash, config->flash_object_bytes) * BUCKET_BYTES;
	uint64_t segment = flash / SEGMENTS_WANTED_MAX < SEGMENT_MIB ? SEGMENT_MIB : flash / SEGMENTS_WANTED_MAX;
	uint64_t least = 2 * index > 4 * segment ? 2 * index : 4 * segment;

	return (least + (1u << 20) - 1) >> 20 << 20;
}

/* So many partitions that each column has about one key of each. */
static uint32_t sizing_partitions(const struct store_config *config, const struct sizing *out)
{
	uint64_t objects = out->flash_used / config->flash_object_bytes;
	uint64_t keys = out->segments < KEYS_LEAST ? KEYS_LEAST : out->segments > KEYS_MOST ? KEYS_MOST : out->segments;
	uint64_t partitions = objects / keys;

	return partitions < 1 ? 1 : partitions > FRUGAL_PARTITIONS_MOST ? FRUGAL_PARTITIONS_MOST : (uint32_t)partitions;
}

/* The first table is a guess, a quarter of -m at the most, because the index can grow. The smallest possible objects
   determine the largest table. */
static void sizing_index(const struct store_config *config, struct sizing *out)
{
	bool frugal = config->index == STORE_INDEX_FRUGAL;
	uint64_t first = sizing_buckets(out->flash_used, frugal ? SLOT_OBJECT_BYTES : config->flash_object_bytes);
	uint64_t quarter = config->memory_bytes / 4 / BUCKET_BYTES;
	uint64_t most = sizing_buckets(out->flash_used, seg_record_length(1, 0));
	uint64_t large = out->flash_used / out->slot_record_bytes;

	out->buckets = first < quarter ? first : quarter;
	out->buckets_most = most > UINT32_MAX ? UINT32_MAX : most < out->buckets ? out->buckets : most;
	out->extents_most = large > EXTENTS_MOST ? EXTENTS_MOST : (uint32_t)large + 64;
	out->memory_for_all = sizing_memory_for_all(out->flash_given, config);
	out->partitions = frugal ? sizing_partitions(config, out) : 0;
}

void sizing_path_refused(const char *flash_path, int code, char reason[256])
{
	snprintf(reason, 256, "flash-path %.150s: %s", flash_path,
		 code == FS_ESYS     ? strerror(errno)
		 : code == FS_EINVAL ? "is neither a regular file nor a block device"
				     : fs_strerror(code));
}

static int sizing_flash_given(const struct store_config *config, uint64_t *bytes, char reason[256])
{
	int64_t given = config->flash_device ? (int64_t)config->flash_bytes
					     : seg_flash_bytes(config->flash_path, config->flash_bytes);

	if (given < 0) {
		sizing_path_refused(config->flash_path, (int)given, reason);
		return (int)given;
	}
	if (given == 0) {
		snprintf(reason, 256, "flash-path %.150s: is missing or empty: --flash-size must give its size",
			 config->flash_path);
		return FS_ERANGE;
	}
	*bytes = (uint64_t)given;
	return FS_OK;
}

void sizing_no_room(const char *flash_path, uint64_t bytes, char reason[256])
{
	int error = errno;
	uint64_t most = seg_free_bytes(flash_path, bytes);
	char wanted[UNITS_TEXT_BYTES], there[UNITS_TEXT_BYTES], free_text[64] = "";

	if (most < bytes)
		snprintf(free_text, sizeof(free_text), ", and %s are free there", units_show_size(most, there));
	snprintf(reason, 256, "flash-path %.100s: it would take %s%s: %s", flash_path, units_show_size(bytes, wanted),
		 free_text, strerror(error));
	errno = error;
}

/* For a flash of so many bytes, which are a part of those asked for, or all. */
static int sizing_of(const struct store_config *config, uint64_t asked, uint64_t given, struct sizing *out,
		     char reason[256])
{
	uint64_t memory = config->memory_bytes, served;

	out->flash_given = out->flash_used = given;
	served = config->segment_bytes ? memory / 4 * SEGMENTS_WANTED_MAX
				       : memory / SEGMENT_SHARE * sizing_segments_wanted(memory);
	if (out->flash_used > served)
		out->flash_used = served;
	if (asked > served)
		asked = served;
	out->segment_bytes = config->segment_bytes ? whole_pages(config->segment_bytes)
						   : sizing_default_segment(asked, out->flash_used, memory,
									    config->index == STORE_INDEX_FRUGAL);
	if (out->segment_bytes < SEG_MIN_BYTES || out->segment_bytes > SEG_MAX_BYTES ||
	    out->segment_bytes > memory / 4) {
		snprintf(reason, 256,
			 "segment-size %llu KiB: accepted are %u KiB to %llu KiB (a quarter of -m, at most %llu MiB)",
			 (unsigned long long)(out->segment_bytes >> 10), SEG_MIN_BYTES >> 10,
			 (unsigned long long)((memory / 4 < SEG_MAX_BYTES ? memory / 4 : SEG_MAX_BYTES) >> 10),
			 (unsigned long long)SEG_MAX_BYTES >> 20);
		return FS_ERANGE;
	}
	out->segments = seg_count_for(out->flash_used, out->segment_bytes); /* at most SEG_MAX_SEGMENTS */
	if (out->flash_used > SEG_MAX_SEGMENTS * out->segment_bytes + SEGMENT_MIB)
		out->flash_used = SEG_MAX_SEGMENTS * out->segment_bytes + SEGMENT_MIB;
	if (out->segments < 2) {
		snprintf(reason, 256, "flash-size %llu KiB: at least two segments of %llu KiB must fit",
			 (unsigned long long)(out->flash_used >> 10), (unsigned long long)(out->segment_bytes >> 10));
		return FS_ERANGE;
	}
	out->slot_record_bytes =
		config->slot_record_bytes ? config->slot_record_bytes : slot_record_max(out->segment_bytes);
	out->crossings = out->flash_used / CROSSINGS_FLASH <= memory;
	sizing_index(config, out);
	out->index_segments = out->segments;
	out->index_flash_bytes = out->flash_used;
	return FS_OK;
}

int sizing_take_extstore(const struct store_config *config, char reason[256])
{
	int result;

	if (!config->takes_extstore || config->flash_device || config->look_only)
		return FS_OK;
	result = seg_empty_extstore(config->flash_path);
	if (result != FS_OK)
		sizing_path_refused(config->flash_path, result, reason);
	return result;
}

bool sizing_may_be_warm(const struct store_config *config)
{
	return (config->state_dir || config->region_dir) && config->restart_max_downtime_us != 0;
}

/* Returns how many of the bytes that fit a file gets, when those asked for don't all lie there. One that got a part of the same size before
   grows only where that leaves its objects: after a clean end, with segments of the same size and numbers of as many bits. */
static uint64_t sizing_grown(const struct store_config *config, uint64_t asked, uint64_t fit)
{
	const struct seg_config look = { .path = config->flash_path, .flash_bytes = fit };
	struct sizing kept = { 0 }, grown = { 0 };
	struct seg_shape shape;
	char reason[256];

	if (!sizing_may_be_warm(config) || !seg_read_shape(&look, &shape) || shape.asked_bytes != asked ||
	    shape.flash_bytes >= whole_pages(fit) || shape.functions != config->functions ||
	    sizing_of(config, asked, shape.flash_bytes, &kept, reason) != FS_OK ||
	    kept.segment_bytes != shape.segment_bytes || kept.segments != shape.segments)
		return fit;
	if (!shape.clean || shape.index_segments || sizing_of(config, asked, fit, &grown, reason) != FS_OK ||
	    grown.segment_bytes != kept.segment_bytes || grown.partitions != kept.partitions ||
	    fidx_segment_bits(grown.segments) != fidx_segment_bits(kept.segments))
		return shape.flash_bytes;
	return fit;
}

int sizing_make(const struct store_config *config, struct sizing *out, char reason[256])
{
	uint64_t given = 0, fit;
	struct sizing smaller = { 0 };
	int result = sizing_flash_given(config, &given, reason);

	if (result == FS_OK)
		result = sizing_of(config, given, given, out, reason);
	if (result != FS_OK)
		return result;
	out->flash_asked = out->flash_used;
	fit = out->flash_used;
	if (!config->flash_device)
		fit = sizing_grown(config, out->flash_asked, seg_fit_bytes(config->flash_path, fit));
	if (fit == out->flash_used || sizing_of(config, out->flash_asked, fit, &smaller, reason) != FS_OK) {
		reason[0] = '\0';
		return FS_OK;
	}
	smaller.flash_given = given;
	smaller.flash_asked = out->flash_asked;
	smaller.memory_for_all = out->memory_for_all;
	*out = smaller;
	return FS_OK;
}

void sizing_tell_smaller(const char *flash_path, const struct sizing *sizing)
{
	char asked[UNITS_TEXT_BYTES], used[UNITS_TEXT_BYTES];

	if (sizing->flash_used < sizing->flash_asked)
		log_warn(
			"flash: %s has %s in place of %s, as its file system has or had no more room; with more, it grows after "
			"a clean stop if its objects can stay",
			flash_path, units_show_size(sizing->flash_used, used),
			units_show_size(sizing->flash_asked, asked));
}

bool sizing_take_shape(const struct store_config *config, const struct seg_shape *shape, struct sizing *out)
{
	struct sizing larger = { 0 };
	uint32_t segments = seg_count_for(out->flash_used, shape->segment_bytes);
	char reason[256];

	if (shape->index_segments <= segments || segments < shape->segments || shape->functions != config->functions ||
	    sizing_of(config, shape->index_flash_bytes, shape->index_flash_bytes, &larger, reason) != FS_OK ||
	    larger.segment_bytes != shape->segment_bytes || larger.segments != shape->index_segments)
		return false;
	larger.flash_given = out->flash_given;
	larger.flash_asked = out->flash_asked;
	larger.flash_used = out->flash_used;
	larger.memory_for_all = out->memory_for_all;
	larger.segments = segments;
	*out = larger;
	return true;
}
