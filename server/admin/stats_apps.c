/* SPDX-License-Identifier: BSD-3-Clause */
/* "stats apps": the requests of each application since the last "stats reset". */
#include "server/admin/admin.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/events.h"
#include "base/metrics/rows.h"
#include "server/count/observe.h"

#define NAME_BYTES (3u * OBSERVE_NAME_MAX + 1u) /* of a name with each byte escaped */

static void app_row(struct stats_out *out, const char *app, enum row row, uint64_t value)
{
	char text[NAME_BYTES + 32];

	snprintf(text, sizeof(text), "%s:%s", app, row_info(row)->name);
	stats_add(out, text, "%" PRIu64, value);
}

static void app_rows(struct stats_out *out, const char *name, const struct observe_app *app)
{
	uint64_t hits = app->dram_hits + app->flash_hits;

	app_row(out, name, ROW_APPS_get_count, hits + app->misses);
	app_row(out, name, ROW_APPS_get_hits, hits);
	app_row(out, name, ROW_APPS_flash_hits, app->flash_hits);
	app_row(out, name, ROW_APPS_set_count, app->sets);
	app_row(out, name, ROW_APPS_delete_count, app->deletes);
	app_row(out, name, ROW_APPS_other_count, app->others);
	app_row(out, name, ROW_APPS_value_bytes_read, app->read_bytes);
	app_row(out, name, ROW_APPS_bytes_written, app->written_bytes);
	app_row(out, name, ROW_APPS_dram_hits, app->dram_hits);
	app_row(out, name, ROW_APPS_get_misses, app->misses);
}

void stats_apps(const struct server *server, struct stats_out *out)
{
	unsigned count = observe_app_count();

	(void)server;
	stats_add(out, row_info(ROW_APPS_apps)->name, "%u", count);
	for (unsigned i = 0; i <= count; i++) {
		char name[NAME_BYTES] = "(none)";
		struct observe_app app;

		if (!observe_app_since_reset(i, &app))
			return;
		if (i > 0)
			events_key(app.name, app.name_length, name);
		app_rows(out, name, &app);
	}
}
