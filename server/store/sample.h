/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Samples of the live objects, for reports about what is in there. A part of the store's interface: store.h includes it.
 *
 *   keeper  --SAMPLE_DRAM_PER_S--> some lines of random stripes ---+
 *                                                                    +--> seen(context, object)
 *   cleaner --SAMPLE_FLASH_PER_S-> a random slot, its record read ---+
 *                                  or a random bin, and a record of it that is live
 *
 * In each tier an object's chance goes by its weight: the sums of weights estimate the tier. Clean copies in DRAM are left
 * out, as their objects are on flash; so are ghosts. On flash an object takes a read of its own, so that samples are few, and
 * never more than SAMPLE_FLASH_BYTES_PER_S are read for them; the cleaner takes none while it is busy with a segment.
 */
#ifndef FS_STORE_SAMPLE_H
#define FS_STORE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#define SAMPLE_DRAM_PER_S 1000u /* objects, about */
#define SAMPLE_FLASH_PER_S 8u
#define SAMPLE_FLASH_BYTES_PER_S (1u << 20)

/* An object of a sample. */
struct store_sampled {
	const char *key; /* valid during the call */
	uint8_t key_length;
	bool from_flash;
	bool read_on_flash; /* since it was written there, so that idle_seconds is too much */
	bool expires; /* it has a time to live: ttl_seconds */
	/* Its value was set before this process began: age_seconds is the least that it can be. */
	bool from_earlier;
	uint32_t value_length;
	uint32_t bytes; /* that it takes: of the allocator in DRAM, of its record on flash */
	uint32_t ttl_seconds; /* left, 1 or more */
	uint32_t age_seconds; /* since its value was set or changed; within a few percent */
	uint32_t idle_seconds; /* since it was read or set; on flash up to the time when it went there */
	double weight; /* > 0 */
};

/* Receives objects of samples. seen is called by the keeper and the cleaner, with no lock held, and must not block. */
struct store_sample_sink {
	void (*seen)(void *context, const struct store_sampled *object); /* NULL: there are no samples */
	void *context;
};

#endif
