/* SPDX-License-Identifier: BSD-3-Clause */
/* The samples of /metrics that tell of requests: applications, hot keys and durations. */
#include <math.h>
#include <string.h>

#include "base/hist.h"
#include "base/metrics/latency.h"
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
