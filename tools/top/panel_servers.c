/* SPDX-License-Identifier: BSD-3-Clause */
/* A line for each server. */
#include "tools/top/panels.h"

#define ADDRESS_COLUMNS 24
#define COLUMN_WIDTH 12

static const struct column {
	const char *name;
	enum figure figure;
} columns_shown[] = {
	{ "hits now", FIG_hit_ratio_now },
	{ "requests/s", FIG_requests_per_second },
	{ "memory", FIG_memory_load },
	{ "flash", FIG_flash_load },
	{ "written", FIG_flash_write_rate_bytes_per_second },
	{ "items", FIG_items },
	{ "on flash", FIG_flash_items },
	{ "clients", FIG_connections },
	{ "evicted/s", FIG_evictions_per_second },
	{ "CLWA 5 min", FIG_clwa_5m },
};
#define COLUMNS (sizeof(columns_shown) / sizeof(columns_shown[0]))

int servers_rows(const struct screen *screen, int columns, int available)
{
	int wanted = (int)screen->model->count + 1;

	(void)columns;
	(void)available;
	/* A single server has nothing to compare with. */
	return screen->model->count > 1 || screen->display->view == VIEW_SERVERS ? wanted : 0;
}

static void server_row(const struct pane *pane, int row, const struct server *server, bool chosen)
{
	struct pane address = pane_part(pane, row, 0, 1, ADDRESS_COLUMNS);

	pane_text(&address, 0, 0, chosen ? STYLE_STRONG : STYLE_PLAIN, server->peer.address);
	if (!server_answers(server)) {
		bool failed = server->peer.error[0];

		pane_text(pane, row, ADDRESS_COLUMNS + 1, failed ? STYLE_BAD : STYLE_DIM,
			  failed ? server->peer.error : "connecting");
		return;
	}
	for (size_t i = 0; i < COLUMNS; i++) {
		int end = ADDRESS_COLUMNS + (int)(i + 1) * COLUMN_WIDTH;
		enum figure figure = columns_shown[i].figure;
		char text[FIGURE_TEXT_BYTES];

		if (end > pane->columns)
			break;
		pane_right(pane, row, end, STYLE_PLAIN,
			   figure_text(figure_info(figure)->unit, server->summary.figures[figure], text));
	}
}

void servers_draw(const struct screen *screen, const struct pane *pane)
{
	pane_title(pane, 0, ADDRESS_COLUMNS, "Servers");
	for (size_t i = 0; i < COLUMNS; i++) {
		int end = ADDRESS_COLUMNS + (int)(i + 1) * COLUMN_WIDTH;

		if (end > pane->columns)
			break;
		pane_right(pane, 0, end, STYLE_DIM, columns_shown[i].name);
	}
	for (unsigned i = 0; i < screen->model->count; i++)
		server_row(pane, (int)i + 1, &screen->model->servers[i], screen->display->chosen == i + 1);
}
