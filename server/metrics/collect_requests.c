/* SPDX-License-Identifier: BSD-3-Clause */
/* The samples of /metrics that tell of requests: applications, their objects, hot keys and durations. */
#include <math.h>
#include <string.h>

#include "base/hist.h"
#include "base/metrics/latency.h"
#include "server/conn/server.h"
#include "server/count/contents.h"
#include "server/count/hotkeys.h"
#include "server/count/observe.h"
#include "server/metrics/collect_internal.h"
#include "server/metrics/label.h"

#define NO_APPLICATION "others"
#define HOTKEYS_TOP 10u

/* ---- applications ------------------------------------------------------------------------------- */

static bool option_is_named(const struct observe_app *app, const char *name)
{
	return app->name_length == strlen(name) && memcmp(app->name, name, app->name_length) == 0;
}

/* Adds to the requests without an application those of an application whose name is their label. */
static void add_namesake(struct observe_app *nameless)
{
	struct observe_app app;

	for (unsigned i = 1; observe_app(i, &app); i++) {
		if (!option_is_named(&app, NO_APPLICATION))
			continue;
		nameless->dram_hits += app.dram_hits;
		nameless->flash_hits += app.flash_hits;
		nameless->misses += app.misses;
		nameless->sets += app.sets;
		nameless->written_bytes += app.written_bytes;
	}
}

static void each_app(const struct source *from,
		     void (*show)(const struct source *from, const char *label, const struct observe_app *app))
{
	char label[LABEL_BYTES];
	struct observe_app app;

	for (unsigned i = 0; observe_app(i, &app); i++) {
		if (i == 0) {
			add_namesake(&app);
			show(from, NO_APPLICATION, &app);
		} else if (!option_is_named(&app, NO_APPLICATION)) {
			label_escape(app.name, app.name_length, label);
			show(from, label, &app);
		}
	}
}

static void show_gets_of(const struct source *from, const char *label, const struct observe_app *app)
{
	give_sample(from, METRIC_application_gets_total, (const char *const[]){ label, "dram_hit" },
		    (double)app->dram_hits);
	give_sample(from, METRIC_application_gets_total, (const char *const[]){ label, "flash_hit" },
		    (double)app->flash_hits);
	give_sample(from, METRIC_application_gets_total, (const char *const[]){ label, "miss" }, (double)app->misses);
}

static void show_sets_of(const struct source *from, const char *label, const struct observe_app *app)
{
	give_one(from, METRIC_application_sets_total, label, (double)app->sets);
}

static void show_written_of(const struct source *from, const char *label, const struct observe_app *app)
{
	give_one(from, METRIC_application_written_bytes_total, label, (double)app->written_bytes);
}

void show_application_gets_total(const struct source *from)
{
	each_app(from, show_gets_of);
}

void show_application_sets_total(const struct source *from)
{
	each_app(from, show_sets_of);
}

void show_application_written_bytes_total(const struct source *from)
{
	each_app(from, show_written_of);
}

/* ---- applications with limits -------------------------------------------------------------------- */

/* NAN: the application has no such figure. */
static void each_limited(const struct source *from, enum metric metric,
			 double (*figure)(const struct store_limited *app))
{
	char label[LABEL_BYTES];
	struct store_limited app;

	for (unsigned n = 0; store_get_limited(from->server->store, n, &app); n++) {
		if (!app.limited)
			continue;
		label_escape(app.limit.name, strlen(app.limit.name), label);
		give_one(from, metric, label, figure(&app));
	}
}

static double limit_or_nan(uint64_t limit)
{
	return limit == APP_LIMIT_NONE ? NAN : (double)limit;
}

/* LIMITED(name, expression): a metric of each application with limits, from struct store_limited *app. */
#define LIMITED(name, expression) \
	static double figure_##name(const struct store_limited *app) \
	{ \
		return expression; \
	} \
	void show_##name(const struct source *from) \
	{ \
		each_limited(from, METRIC_##name, figure_##name); \
	}

LIMITED(application_dram_bytes, (double)app->dram_bytes)
LIMITED(application_dram_floor_bytes, (double)app->limit.dram_floor)
LIMITED(application_dram_floor_held_bytes, (double)app->floor_held)
LIMITED(application_dram_ceiling_bytes, limit_or_nan(app->limit.dram_ceiling))
LIMITED(application_ceiling_evictions_total, (double)app->ceiling_evictions)
LIMITED(application_floor_evictions_total, (double)app->floor_evictions)
LIMITED(application_flash_bytes, (double)app->flash_bytes)
LIMITED(application_flash_counted_ratio, app->flash_counted)
LIMITED(application_flash_floor_bytes, (double)app->limit.flash_floor)
LIMITED(application_flash_floor_held_bytes, (double)app->flash_floor_held)
LIMITED(application_flash_ceiling_bytes, limit_or_nan(app->limit.flash_ceiling))
LIMITED(application_flash_write_limit_bytes_per_second, limit_or_nan(app->limit.write))
LIMITED(application_flash_written_bytes_total, (double)app->write_bytes)
LIMITED(application_flash_write_refusals_total, (double)app->write_refusals)

/* ---- contents ------------------------------------------------------------------------------------ */

static const char *const tier_labels[CONTENTS_TIERS] = { [CONTENTS_DRAM] = "dram", [CONTENTS_FLASH] = "flash" };
static const char *const measure_labels[CONTENTS_MEASURES] = {
	[CONTENTS_SIZE] = "size", [CONTENTS_AGE] = "age", [CONTENTS_TTL] = "ttl", [CONTENTS_IDLE] = "idle"
};

/* What a unit of weight stands for, in each tier. */
static void scales_of(const struct source *from, const struct contents_part all[CONTENTS_TIERS],
		      double scale[CONTENTS_TIERS])
{
	struct contents_objects objects;

	contents_count(from->server->store, &objects);
	for (enum contents_tier tier = 0; tier < CONTENTS_TIERS; tier++)
		scale[tier] = all[tier].objects > 0 ? objects.in[tier] / all[tier].objects : 0;
}

/* An application whose name is the label of those without one is added to them. */
static void add_contents_namesake(struct contents_app *nameless)
{
	struct contents_app app;

	for (unsigned i = 1; contents_read(i, &app); i++) {
		if (app.name_length != strlen(NO_APPLICATION) || memcmp(app.name, NO_APPLICATION, app.name_length) != 0)
			continue;
		for (enum contents_tier tier = 0; tier < CONTENTS_TIERS; tier++) {
			nameless->part[tier].samples += app.part[tier].samples;
			nameless->part[tier].objects += app.part[tier].objects;
			nameless->part[tier].bytes += app.part[tier].bytes;
		}
	}
}

static void show_contents(const struct source *from, enum metric metric,
			  double (*figure)(const struct contents_part *part))
{
	struct contents_part all[CONTENTS_TIERS];
	double scale[CONTENTS_TIERS];
	struct contents_app app;
	char label[LABEL_BYTES];

	contents_read_all(all);
	scales_of(from, all, scale);
	for (unsigned i = 0; contents_read(i, &app); i++) {
		label_escape(i > 0 ? app.name : NO_APPLICATION, i > 0 ? app.name_length : strlen(NO_APPLICATION),
			     label);
		if (i == 0)
			add_contents_namesake(&app);
		else if (strcmp(label, NO_APPLICATION) == 0)
			continue;
		for (enum contents_tier tier = 0; tier < CONTENTS_TIERS; tier++)
			if (app.part[tier].samples >= CONTENTS_LEAST)
				give_sample(from, metric, (const char *const[]){ label, tier_labels[tier] },
					    figure(&app.part[tier]) * scale[tier]);
	}
}

static double objects_in(const struct contents_part *part)
{
	return part->objects;
}

static double bytes_in(const struct contents_part *part)
{
	return part->bytes;
}

void show_application_items(const struct source *from)
{
	show_contents(from, METRIC_application_items, objects_in);
}

void show_application_item_bytes(const struct source *from)
{
	show_contents(from, METRIC_application_item_bytes, bytes_in);
}

void show_contents_items(const struct source *from)
{
	struct contents_part all[CONTENTS_TIERS];
	double scale[CONTENTS_TIERS];
	const char *bucket;

	contents_read_all(all);
	scales_of(from, all, scale);
	for (enum contents_tier tier = 0; tier < CONTENTS_TIERS; tier++)
		for (enum contents_measure m = 0; m < CONTENTS_MEASURES && all[tier].samples >= CONTENTS_LEAST; m++)
			for (unsigned i = 0; (bucket = contents_bucket_name(m, i)) != NULL; i++)
				give_sample(from, METRIC_contents_items,
					    (const char *const[]){ tier_labels[tier], measure_labels[m], bucket },
					    all[tier].bucket[m][i] * scale[tier]);
}

/* ---- hot keys ------------------------------------------------------------------------------------ */

/* No key is a label: there would be no bound to their number, and who scrapes needn't see clients' keys. */
void show_hotkeys_share_ratio(const struct source *from)
{
	static const char *const measures[HEAVY_MEASURES] = {
		[HEAVY_REQUESTS] = "requests", [HEAVY_BYTES] = "bytes", [HEAVY_READS] = "reads"
	};

	for (enum heavy_measure by = 0; by < HEAVY_MEASURES; by++) {
		struct heavy_list *list = hotkeys_read(by, HOTKEYS_MINUTE, HOTKEYS_TOP);
		double sum = 0, first = 0, total = list ? (double)list->total : 0;

		for (unsigned i = 0; list && i < list->count; i++) {
			sum += (double)list->rows[i].amount[by];
			first = i == 0 ? sum : first;
		}
		heavy_list_free(list);
		if (total == 0)
			continue;
		give_sample(from, METRIC_hotkeys_share_ratio, (const char *const[]){ measures[by], "1" },
			    fmin(first / total, 1));
		give_sample(from, METRIC_hotkeys_share_ratio, (const char *const[]){ measures[by], "10" },
			    fmin(sum / total, 1));
	}
}

/* ---- durations ---------------------------------------------------------------------------------- */

/* Buckets and count come from the same snapshot, so that no bucket exceeds the count. */
static void show_durations(const struct source *from, enum metric metric)
{
	uint64_t cumulative[LAT_BOUNDS];
	double bounds[LAT_BOUNDS];

	for (enum lat latency = 0; latency < LAT_COUNT; latency++) {
		const struct lat_info *info = lat_info(latency);
		struct hist *hist;

		if (info->metric != metric)
			continue;
		hist = hist_create();
		lat_read(latency, hist);
		for (unsigned i = 0; i < LAT_BOUNDS; i++) {
			bounds[i] = (double)lat_bounds_ns[i] / 1e9;
			cumulative[i] = hist_count_up_to(hist, lat_bounds_ns[i]);
		}
		from->sink->histogram(from->sink->context, metric_info(metric)->labels, &info->label, bounds,
				      cumulative, LAT_BOUNDS, hist_count_up_to(hist, UINT64_MAX),
				      (double)hist->sum / 1e9);
		hist_destroy(hist);
	}
}

void show_request_duration_seconds(const struct source *from)
{
	show_durations(from, METRIC_request_duration_seconds);
}

void show_flash_io_duration_seconds(const struct source *from)
{
	show_durations(from, METRIC_flash_io_duration_seconds);
}
