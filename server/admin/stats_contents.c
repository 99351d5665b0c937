/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "stats contents": objects and bytes by application and tier, and histograms of value size, age, time to live and idle
 * time, all estimated from samples. A row's name is APPLICATION:TIER:FIGURE; a histogram's value is words, BUCKET=OBJECTS.
 */
#include "server/admin/admin.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/events.h"
#include "server/count/contents.h"
#include "server/count/prefixes.h"
#include "server/store/store.h"

#define NAME_BYTES (3u * PREFIX_NAME_MAX + 1u)

static const char *const tiers[CONTENTS_TIERS] = { [CONTENTS_DRAM] = "dram", [CONTENTS_FLASH] = "flash" };
static const char *const measures[CONTENTS_MEASURES] = {
	[CONTENTS_SIZE] = "size", [CONTENTS_AGE] = "age", [CONTENTS_TTL] = "ttl", [CONTENTS_IDLE] = "idle"
};

/* What a unit of weight stands for, by tier: objects that are there over the sum of all weights. */
struct scales {
	double of[CONTENTS_TIERS];
};

static void add_figure(struct stats_out *out, const char *app, enum contents_tier tier, const char *figure,
		       double value)
{
	char name[NAME_BYTES + 32];

	snprintf(name, sizeof(name), "%s:%s:%s", app, tiers[tier], figure);
	stats_add(out, name, "%.0f", value);
}

static void add_histogram(struct stats_out *out, const char *app, enum contents_tier tier,
			  enum contents_measure measure, const struct contents_part *part, double scale)
{
	char name[NAME_BYTES + 32], value[CONTENTS_BUCKETS * 40] = "";
	const char *bucket;
	size_t at = 0;

	for (unsigned i = 0; (bucket = contents_bucket_name(measure, i)) != NULL; i++)
		at += (size_t)snprintf(value + at, sizeof(value) - at, "%s%s=%.0f", i > 0 ? " " : "", bucket,
				       part->bucket[measure][i] * scale);
	snprintf(name, sizeof(name), "%s:%s:%s", app, tiers[tier], measures[measure]);
	stats_add(out, name, "%s", value);
}

static void add_part(struct stats_out *out, const char *app, enum contents_tier tier, const struct contents_part *part,
		     const struct scales *scales)
{
	double scale = scales->of[tier];

	if (part->samples < CONTENTS_LEAST)
		return;
	add_figure(out, app, tier, "samples", part->samples);
	add_figure(out, app, tier, "objects", part->objects * scale);
	add_figure(out, app, tier, "bytes", part->bytes * scale);
	add_figure(out, app, tier, "value_bytes", part->value_bytes * scale);
	if (tier == CONTENTS_FLASH)
		add_figure(out, app, tier, "read_on_flash", part->read_on_flash * scale);
	for (enum contents_measure measure = 0; measure < CONTENTS_MEASURES; measure++)
		add_histogram(out, app, tier, measure, part, scale);
}

void stats_contents(const struct server *server, struct stats_out *out)
{
	struct contents_part all[CONTENTS_TIERS];
	struct contents_objects objects;
	struct contents_app app;
	struct scales scales;

	contents_count(server->store, &objects);
	contents_read_all(all);
	for (enum contents_tier tier = 0; tier < CONTENTS_TIERS; tier++) {
		scales.of[tier] = all[tier].objects > 0 ? objects.in[tier] / all[tier].objects : 0;
		add_part(out, "(all)", tier, &all[tier], &scales);
	}
	for (unsigned i = 0; contents_read(i, &app); i++) {
		char name[NAME_BYTES] = "(none)";

		if (i > 0)
			events_key(app.name, app.name_length, name);
		for (enum contents_tier tier = 0; tier < CONTENTS_TIERS; tier++)
			add_part(out, name, tier, &app.part[tier], &scales);
	}
}
