/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is in there: histograms of value size, age, time to live and idle time of the objects that are in the cache, by
 * application and tier, from the store's samples (server/store/sample.h).
 *
 *   keeper, cleaner --contents_note--> sums of weights by application, tier and bucket --contents_read--> shares of each tier
 *                                        | contents_tick: old samples lose half of their weight
 *                                        v in a minute (DRAM), in ten (flash)
 *
 * All figures are estimates. Shares of a tier are off by some 1 / sqrt(samples); their product with the tier's number of
 * objects, which the store knows, estimates objects and bytes.
 *
 * An application is the part of the key before --app-delimiter, whatever --app-source says: an object doesn't know the user
 * who has set it. The first CONTENTS_APPS names that are met are told apart.
 *
 * Threads: any; a leaf lock covers the sums. contents_init and contents_fini run alone.
 */
#ifndef FS_SERVER_COUNT_CONTENTS_H
#define FS_SERVER_COUNT_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define CONTENTS_APPS 64u

enum contents_tier { CONTENTS_DRAM, CONTENTS_FLASH, CONTENTS_TIERS };
enum contents_measure { CONTENTS_SIZE, CONTENTS_AGE, CONTENTS_TTL, CONTENTS_IDLE, CONTENTS_MEASURES };
#define CONTENTS_BUCKETS 14u
#define CONTENTS_LEAST 0.5 /* fewer samples are too old to tell anything */

struct store;
struct store_sampled;

/* Begins with nothing seen. now_ms: of the clock of contents_tick. */
void contents_init(char app_delimiter, uint64_t now_ms);
/* Frees all, when no thread notes any more. Names that contents_read gave go with it. */
void contents_fini(void);
/* Takes an object of a sample: store_sample_sink's seen. Without effect before contents_init. */
void contents_note(void *context, const struct store_sampled *object);
/* Ages the samples. About once a second; now_ms is of a clock that never goes back. */
void contents_tick(uint64_t now_ms);

/* Returns the name of a bucket of a measure, the upper bound of the values in it: "256" bytes, "10m" of time; "more" for
   greater ones, "never" for objects without a time to live, "earlier" for objects set before the daemon's start. NULL: there is no such
   bucket. Static text. */
const char *contents_bucket_name(enum contents_measure measure, unsigned bucket);

/* Sums of weights, of a tier or of an application in it. Divided by the tier's objects they are shares. */
struct contents_part {
	double samples; /* that are behind the figures, old ones counting less */
	double objects; /* the sum of all weights */
	double bytes, value_bytes; /* weighted: that objects take, of their values */
	double read_on_flash; /* of flash: of objects that were read there; they are in no bucket of CONTENTS_IDLE */
	double bucket[CONTENTS_MEASURES][CONTENTS_BUCKETS];
};

struct contents_app {
	/* It comes from clients' keys: escape it. No 0 ends it. "" for index 0: objects without an application, and those
	   beyond the first CONTENTS_APPS. */
	const char *name;
	size_t name_length;
	struct contents_part part[CONTENTS_TIERS];
};

/* Fills out for application number `index`, 0 .. the number of names. False: there is no such one. */
FS_MUST_CHECK bool contents_read(unsigned index, struct contents_app *out);
/* Fills out with the sums over all applications. */
void contents_read_all(struct contents_part out[CONTENTS_TIERS]);

/* The objects that a tier has, for which the sum of its weights stands. */
struct contents_objects {
	double in[CONTENTS_TIERS];
};
/* Fills out with the present numbers, without clean copies and ghosts. Takes leaf locks. */
void contents_count(struct store *store, struct contents_objects *out);

#endif
