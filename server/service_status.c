/* SPDX-License-Identifier: BSD-3-Clause */
/* The line that "systemctl status" shows: how full the cache is, its hit ratio, and what doesn't work. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/service.h"

#include "base/assert.h"
#include "conf/units.h"
#include "server/store/move.h"
#include "server/store/store.h"

#define STALLED_MS 5000u /* the line tells of a write that takes longer */

struct line {
	char *at;
	size_t left; /* bytes, with the 0 at the end; 1 or more */
};

static void __attribute__((format(printf, 2, 3))) add_to_status_line(struct line *line, const char *format, ...)
{
	va_list arguments;
	int length;

	must(line->left > 0);
	va_start(arguments, format);
	length = vsnprintf(line->at, line->left, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	if ((size_t)length >= line->left)
		length = (int)line->left - 1;
	line->at += length;
	line->left -= (size_t)length;
}

static void add_troubles(struct line *line, const struct service_figures *figures)
{
	const struct store_status *store = figures->store;
	const char *before = "Degraded: ";

	if (store->flash && store->segments.offline) {
		add_to_status_line(line, "%sflash offline: %s", before, store->segments.offline_reason);
		before = ", ";
	}
	if (store->flash && store->segments.away_reason[0]) {
		add_to_status_line(line, "%s%s, and is lost when the daemon ends", before, store->segments.away_reason);
		before = ", ";
	}
	if (store->flash && store->segments.busy_ms >= STALLED_MS) {
		add_to_status_line(line, "%sthe flash device has not answered a write for %" PRIu64 " s", before,
				   store->segments.busy_ms / 1000);
		before = ", ";
	}
	if (figures->flash_wanted && !store->flash) {
		add_to_status_line(line, "%sno flash, objects are in DRAM only", before);
		before = ", ";
	}
	if (store->flash && store->flash_asked_bytes > store->info.flash_bytes) {
		char asked[UNITS_TEXT_BYTES], used[UNITS_TEXT_BYTES];

		add_to_status_line(line, "%sthe flash has %s in place of %s, for lack of room", before,
				   units_show_size(store->info.flash_bytes, used),
				   units_show_size(store->flash_asked_bytes, asked));
		before = ", ";
	}
	if (store->flash && store->segments.retired > 0 && !store->segments.offline) {
		add_to_status_line(line, "%s%" PRIu32 " segments can't be written", before, store->segments.retired);
		before = ", ";
	}
	if (store->flash && store->segments.bad > 0) {
		add_to_status_line(line, "%s%" PRIu32 " segments are lost to bad pages of the drive", before,
				   store->segments.bad);
		before = ", ";
	}
	if (store->flash && store->segments.allocate_error) {
		add_to_status_line(line, "%sthe flash file can't be made longer: %s", before,
				   strerror(store->segments.allocate_error));
		before = ", ";
	}
	if (store->flash && store->journal_broken) {
		add_to_status_line(line, "%sthe journal can't be written", before);
		before = ", ";
	}
	if (!figures->accepting) {
		add_to_status_line(line, "%sno further connections are accepted (-c)", before);
		before = ", ";
	}
	if (figures->reload_trouble && *figures->reload_trouble) {
		add_to_status_line(line, "%sthe last reload failed, %.300s", before, figures->reload_trouble);
		before = ", ";
	}
	if (figures->metrics_trouble) {
		add_to_status_line(line, "%sno /metrics, %.200s", before, figures->metrics_trouble);
		before = ", ";
	}
	if (*before == ',')
		add_to_status_line(line, "; ");
}

/* Ports that the kernel has chosen. */
static void add_ports(struct line *line, const struct service_figures *figures)
{
	if (figures->port > 0)
		add_to_status_line(line, "; port %d", figures->port);
	if (figures->metrics_address)
		add_to_status_line(line, "; metrics at %s", figures->metrics_address);
}

void service_status_text(const struct service_figures *figures, char *out, size_t size)
{
	const struct store_status *store = figures->store;
	struct line line = { out, size };
	char made[UNITS_TEXT_BYTES], all[UNITS_TEXT_BYTES];

	add_troubles(&line, figures);
	if (figures->restart_options && *figures->restart_options)
		add_to_status_line(&line, "A restart is needed for %s; ", figures->restart_options);
	add_to_status_line(&line, "%" PRIu64 " objects", store->curr_items);
	if (store->flash) {
		uint64_t dram = store->dram_items < store->curr_items ? store->dram_items : store->curr_items;

		add_to_status_line(&line, ", %" PRIu64 " in DRAM and %" PRIu64 " on flash", dram,
				   store->curr_items - dram);
	}
	if (figures->gets > 0)
		add_to_status_line(&line, "; hit ratio %.1f %%", 100.0 * (double)figures->hits / (double)figures->gets);
	if (store->flash && !store->segments.offline && store->segments.total > 0)
		add_to_status_line(&line, "; flash %.0f %% full", 100.0 * store->segments.live / store->segments.total);
	if (store->hold == STORE_HOLD_FILLING && !isnan(store->fill_seconds))
		add_to_status_line(&line, ", all of it in %.1f h", store->fill_seconds / 3600);
	if (store->rebuilt_segments < store->rebuild_segments)
		add_to_status_line(&line, "; %" PRIu32 " of %" PRIu32 " segments of the index are rebuilt",
				   store->rebuilt_segments, store->rebuild_segments);
	if (store_move_is_under_way(figures->move))
		add_to_status_line(&line, "; the flash moves to %.200s, %" PRIu32 " of %" PRIu32 " segments are there",
				   figures->move->path, figures->move->segments_copied, figures->move->segments);
	add_ports(&line, figures);
	if (store->flash && store->segments.allocated_bytes < store->info.flash_bytes)
		add_to_status_line(&line, "; %s of %s of the flash file are made",
				   units_show_size(store->segments.allocated_bytes, made),
				   units_show_size(store->info.flash_bytes, all));
}
