/* SPDX-License-Identifier: BSD-3-Clause */
/* Computes the report's figures from the server's stats. */
#include <stdio.h>
#include <string.h>

#include "conf/units.h"
#include "tools/replay/report.h"

struct both {
	const struct server_stats *before, *after;
};

static struct known added(const struct both *stats, enum stats_group group, const char *name)
{
	struct known known = { 0 };

	known.is_known = server_stats_added(stats->before, stats->after, group, name, &known.value);
	return known;
}

static struct known at_end(const struct both *stats, enum stats_group group, const char *name)
{
	struct known known = { 0 };

	known.is_known = server_stats_number(stats->after, group, name, &known.value);
	return known;
}

static struct known ratio(struct known above, struct known below)
{
	if (!above.is_known || !below.is_known || below.value <= 0)
		return (struct known){ 0 };
	return (struct known){ true, above.value / below.value };
}

static struct known sum(struct known a, struct known b)
{
	return (struct known){ a.is_known && b.is_known, a.value + b.value };
}

/* A time of the settings: a number of seconds, or with the daemon's units. */
static struct known setting_seconds(const struct both *stats, const char *name)
{
	const char *text = server_stats_text(stats->after, STATS_SETTINGS, name);
	uint64_t us;

	if (!text || units_parse_time(text, &us) != FS_OK)
		return (struct known){ 0 };
	return (struct known){ true, (double)us / 1e6 };
}

static struct known first(struct known a, struct known b)
{
	return a.is_known ? a : b;
}

static void read_flash(struct server_report *server, const struct both *stats)
{
	struct known enabled = at_end(stats, STATS_FLASH, "flash_enabled");
	struct known flash_hits = added(stats, STATS_FLASH, "flash_hits");
	struct known dram_hits = added(stats, STATS_FLASH, "dram_hits");
	struct known lookups_hit = first(added(stats, STATS_FLASH, "flash_lookups_hit"), flash_hits);
	struct known lookups_miss =
		first(added(stats, STATS_FLASH, "flash_lookups_miss"), added(stats, STATS_GENERAL, "get_misses"));

	server->has_flash = flash_hits.is_known && enabled.value > 0;
	server->flash_bytes_written = added(stats, STATS_FLASH, "flash_bytes_written");
	server->app_bytes_written = added(stats, STATS_FLASH, "app_bytes_written");
	server->clwa = ratio(server->flash_bytes_written, server->app_bytes_written);
	server->reads_per_hit = ratio(added(stats, STATS_FLASH, "flash_reads_on_hit"), lookups_hit);
	server->reads_per_miss = ratio(added(stats, STATS_FLASH, "flash_reads_on_miss"), lookups_miss);
	server->pages_per_read =
		ratio(added(stats, STATS_FLASH, "flash_pages_read"), added(stats, STATS_FLASH, "flash_reads"));
	server->flash_hit_share = ratio(flash_hits, dram_hits.is_known ? sum(flash_hits, dram_hits)
								       : added(stats, STATS_GENERAL, "get_hits"));
	server->dram_bytes_per_flash_item = at_end(stats, STATS_FLASH, "dram_bytes_per_flash_item");
	server->flash_bytes_used = at_end(stats, STATS_GENERAL, "extstore_bytes_used");
	server->flash_limit = at_end(stats, STATS_GENERAL, "extstore_limit_maxbytes");
	server->flash_items = at_end(stats, STATS_FLASH, "flash_items");
	server->segment_fill = at_end(stats, STATS_FLASH, "segment_fill");
	server->index_load = at_end(stats, STATS_FLASH, "index_load");
	server->read_errors = added(stats, STATS_FLASH, "flash_read_errors");
	server->checksum_errors = added(stats, STATS_FLASH, "flash_checksum_errors");
}

static void read_classifier(struct server_report *server, const struct both *stats)
{
	const char *model = server_stats_text(stats->after, STATS_CLASSIFIER, "model");
	const char *reason = server_stats_text(stats->after, STATS_CLASSIFIER, "reason");

	if (model)
		snprintf(server->model, sizeof(server->model), "%s%s%.100s", model, reason ? ", " : "",
			 reason ? reason : "");
	server->precision = at_end(stats, STATS_CLASSIFIER, "precision");
	server->recall = at_end(stats, STATS_CLASSIFIER, "recall");
	server->trainings = at_end(stats, STATS_CLASSIFIER, "trainings");
	server->training_window_s = setting_seconds(stats, "training_window");
	server->horizon_s = setting_seconds(stats, "flashiness_horizon");
	/* For the setting "auto" the value that it has chosen counts. */
	if (!server->horizon_s.is_known) {
		server->horizon_s = at_end(stats, STATS_CLASSIFIER, "horizon_ms");
		server->horizon_s.value /= 1000;
	}
}

void report_read_server(struct report *report, const struct server_stats *before, const struct server_stats *after)
{
	const struct both stats = { before, after };
	struct server_report *server = &report->server;
	const char *version = server_stats_text(after, STATS_GENERAL, "version");
	const char *ours = server_stats_text(after, STATS_FLASH, "flashield_version");
	struct known cpu =
		sum(added(&stats, STATS_GENERAL, "rusage_user"), added(&stats, STATS_GENERAL, "rusage_system"));

	*server = (struct server_report){ 0 };
	snprintf(server->version, sizeof(server->version), "%s %.40s", ours ? "flashield" : "memcached",
		 ours      ? ours
		 : version ? version
			   : "of unknown version");
	if (after->count == 0)
		snprintf(server->version, sizeof(server->version), "without stats, as a proxy is,");
	if (cpu.is_known && report->measure->all.requests)
		server->cpu_us_per_request =
			(struct known){ true, cpu.value * 1e6 / (double)report->measure->all.requests };
	server->evictions = added(&stats, STATS_GENERAL, "evictions");
	server->items = at_end(&stats, STATS_GENERAL, "curr_items");
	server->bytes_used = at_end(&stats, STATS_GENERAL, "bytes");
	server->dram_bytes_used = first(at_end(&stats, STATS_FLASH, "dram_bytes"), server->bytes_used);
	server->memory_limit = at_end(&stats, STATS_GENERAL, "limit_maxbytes");
	server->resident_bytes = at_end(&stats, STATS_FLASH, "memory_resident");
	read_flash(server, &stats);
	read_classifier(server, &stats);
}
