/* SPDX-License-Identifier: BSD-3-Clause */
/* "stats limits": applications with limits, their accounts, and what limits have done since the start. */
#include "server/admin/admin.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/metrics/rows.h"
#include "server/store/store.h"

#define ROW_BYTES (APP_LIMIT_NAME_MAX + 64)

static void limit_row(struct stats_out *out, const struct store_limited *app, enum row row, uint64_t value)
{
	char text[ROW_BYTES];

	snprintf(text, sizeof(text), "%s:%s", app->limit.name, row_info(row)->name);
	if (value == APP_LIMIT_NONE)
		stats_add(out, text, "none");
	else
		stats_add(out, text, "%" PRIu64, value);
}

static void limit_rows(struct stats_out *out, const struct store_limited *app)
{
	char text[ROW_BYTES];

	limit_row(out, app, ROW_LIMITS_dram_bytes, app->dram_bytes);
	limit_row(out, app, ROW_LIMITS_dram_items, app->dram_items);
	limit_row(out, app, ROW_LIMITS_dram_floor, app->limit.dram_floor);
	limit_row(out, app, ROW_LIMITS_dram_floor_held, app->floor_held);
	limit_row(out, app, ROW_LIMITS_dram_ceiling, app->limit.dram_ceiling);
	limit_row(out, app, ROW_LIMITS_ceiling_evictions, app->ceiling_evictions);
	limit_row(out, app, ROW_LIMITS_floor_evictions, app->floor_evictions);
	limit_row(out, app, ROW_LIMITS_flash_bytes, app->flash_bytes);
	snprintf(text, sizeof(text), "%s:%s", app->limit.name, row_info(ROW_LIMITS_flash_counted)->name);
	stats_add(out, text, "%.3f", app->flash_counted);
	limit_row(out, app, ROW_LIMITS_flash_floor, app->limit.flash_floor);
	limit_row(out, app, ROW_LIMITS_flash_floor_held, app->flash_floor_held);
	limit_row(out, app, ROW_LIMITS_flash_ceiling, app->limit.flash_ceiling);
	limit_row(out, app, ROW_LIMITS_write_limit, app->limit.write);
	limit_row(out, app, ROW_LIMITS_write_bytes, app->write_bytes);
	limit_row(out, app, ROW_LIMITS_write_refusals, app->write_refusals);
}

void stats_limits(const struct server *server, struct stats_out *out)
{
	struct store_limited app;
	unsigned count = 0;

	for (unsigned n = 0; store_get_limited(server->store, n, &app); n++)
		count += app.limited;
	stats_add(out, row_info(ROW_LIMITS_applications)->name, "%u", count);
	stats_add(out, row_info(ROW_LIMITS_counted)->name, "%d", store_limits_are_counted(server->store));
	for (unsigned n = 0; store_get_limited(server->store, n, &app); n++)
		if (app.limited)
			limit_rows(out, &app);
}
