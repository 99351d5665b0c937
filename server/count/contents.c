/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/count/contents.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/assert.h"
#include "base/lock.h"
#include "server/count/prefixes.h"
#include "server/store/store.h"

#define MINUTE 60u
#define HOUR (60u * MINUTE)
#define DAY (24u * HOUR)

/* The time in which a sample loses half of its weight. */
static const double half_life_ms[CONTENTS_TIERS] = { [CONTENTS_DRAM] = 60e3, [CONTENTS_FLASH] = 600e3 };

/* Upper bounds, and names of buckets. The last bounded one is followed by "more", and then by a measure's own. */
#define SIZES 12u
#define TIMES 7u
static const uint32_t size_bounds[SIZES] = { 64,       128,      256,       512,       1u << 10,   2u << 10,
					     4u << 10, 8u << 10, 16u << 10, 64u << 10, 256u << 10, 1u << 20 };
static const uint32_t time_bounds[TIMES] = { 10, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY };
static const char *const names[CONTENTS_MEASURES][CONTENTS_BUCKETS] = {
	[CONTENTS_SIZE] = { "64", "128", "256", "512", "1k", "2k", "4k", "8k", "16k", "64k", "256k", "1m", "more" },
	[CONTENTS_AGE] = { "10s", "1m", "10m", "1h", "6h", "1d", "7d", "more", "earlier" },
	[CONTENTS_TTL] = { "10s", "1m", "10m", "1h", "6h", "1d", "7d", "more", "never" },
	[CONTENTS_IDLE] = { "10s", "1m", "10m", "1h", "6h", "1d", "7d", "more" },
};
#define AGE_EARLIER (TIMES + 1)
#define TTL_NEVER (TIMES + 1)

static struct {
	atomic_bool ready;
	struct prefixes *apps; /* only their names and numbers are used */
	char delimiter;
	struct lock lock; /* covers the fields below */
	uint64_t aged_ms; /* samples were aged up to then */
	struct contents_part part[CONTENTS_APPS + 1][CONTENTS_TIERS];
} contents = { .lock = LOCK_INITIALIZER(LOCK_LEAF) };

void contents_init(char app_delimiter, uint64_t now_ms)
{
	memset(contents.part, 0, sizeof(contents.part));
	contents.apps = prefixes_create(CONTENTS_APPS);
	contents.delimiter = app_delimiter;
	contents.aged_ms = now_ms;
	atomic_store(&contents.ready, true);
}

void contents_fini(void)
{
	atomic_store(&contents.ready, false);
	prefixes_destroy(contents.apps);
	contents.apps = NULL;
}

const char *contents_bucket_name(enum contents_measure measure, unsigned bucket)
{
	return bucket < CONTENTS_BUCKETS ? names[measure][bucket] : NULL;
}

/* ---- noting ------------------------------------------------------------------------------------- */

static unsigned bucket_of(const uint32_t *bounds, unsigned count, uint32_t value)
{
	unsigned bucket = 0;

	while (bucket < count && value > bounds[bucket])
		bucket++;
	return bucket;
}

static unsigned app_of(const struct store_sampled *object)
{
	const char *end = memchr(object->key, contents.delimiter, object->key_length);

	return end && end > object->key ? prefixes_find(contents.apps, object->key, (size_t)(end - object->key)) : 0;
}

static void add_object(struct contents_part *part, const struct store_sampled *object)
{
	double weight = object->weight;
	unsigned age = object->from_earlier ? AGE_EARLIER : bucket_of(time_bounds, TIMES, object->age_seconds);
	unsigned ttl = object->expires ? bucket_of(time_bounds, TIMES, object->ttl_seconds) : TTL_NEVER;

	part->samples++;
	part->objects += weight;
	part->bytes += weight * object->bytes;
	part->value_bytes += weight * object->value_length;
	part->bucket[CONTENTS_SIZE][bucket_of(size_bounds, SIZES, object->value_length)] += weight;
	part->bucket[CONTENTS_AGE][age] += weight;
	part->bucket[CONTENTS_TTL][ttl] += weight;
	if (object->from_flash && object->read_on_flash)
		part->read_on_flash += weight;
	else
		part->bucket[CONTENTS_IDLE][bucket_of(time_bounds, TIMES, object->idle_seconds)] += weight;
}

void contents_note(void *context, const struct store_sampled *object)
{
	unsigned app;

	(void)context;
	if (!atomic_load_explicit(&contents.ready, memory_order_acquire))
		return;
	app = app_of(object);
	must(app <= CONTENTS_APPS);
	lock_acquire(&contents.lock);
	add_object(&contents.part[app][object->from_flash ? CONTENTS_FLASH : CONTENTS_DRAM], object);
	lock_release(&contents.lock);
}

static void scale(struct contents_part *part, double by)
{
	double *value = (double *)part;

	for (size_t i = 0; i < sizeof(*part) / sizeof(*value); i++)
		value[i] *= by;
}

_Static_assert(sizeof(struct contents_part) % sizeof(double) == 0, "a part is doubles and nothing else");

void contents_tick(uint64_t now_ms)
{
	lock_acquire(&contents.lock);
	if (atomic_load(&contents.ready) && now_ms > contents.aged_ms) {
		for (unsigned tier = 0; tier < CONTENTS_TIERS; tier++) {
			double kept = exp2(-(double)(now_ms - contents.aged_ms) / half_life_ms[tier]);

			for (unsigned app = 0; app <= CONTENTS_APPS; app++)
				scale(&contents.part[app][tier], kept);
		}
		contents.aged_ms = now_ms;
	}
	lock_release(&contents.lock);
}

/* ---- reading ------------------------------------------------------------------------------------ */

bool contents_read(unsigned index, struct contents_app *out)
{
	if (!atomic_load(&contents.ready) || index > prefixes_count(contents.apps))
		return false;
	out->name = prefixes_name(contents.apps, index, &out->name_length);
	lock_acquire(&contents.lock);
	memcpy(out->part, contents.part[index], sizeof(out->part));
	lock_release(&contents.lock);
	return true;
}

static void add_part(struct contents_part *sum, const struct contents_part *part)
{
	const double *from = (const double *)part;
	double *to = (double *)sum;

	for (size_t i = 0; i < sizeof(*part) / sizeof(*from); i++)
		to[i] += from[i];
}

void contents_read_all(struct contents_part out[CONTENTS_TIERS])
{
	memset(out, 0, CONTENTS_TIERS * sizeof(out[0]));
	lock_acquire(&contents.lock);
	for (unsigned app = 0; app <= CONTENTS_APPS; app++)
		for (unsigned tier = 0; tier < CONTENTS_TIERS; tier++)
			add_part(&out[tier], &contents.part[app][tier]);
	lock_release(&contents.lock);
}

void contents_count(struct store *store, struct contents_objects *out)
{
	struct store_status status;

	store_get_status(store, &status);
	out->in[CONTENTS_DRAM] =
		status.dram_items > status.copy_items ? (double)(status.dram_items - status.copy_items) : 0;
	out->in[CONTENTS_FLASH] = (double)store_flash_objects(&status);
}
