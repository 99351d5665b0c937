/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts that several panels draw. */
#include "tools/top/panels.h"

#include <math.h>

bool panel_knows(const struct screen *screen, enum figure figure)
{
	return !isnan(screen->figures[figure]);
}

bool panel_is_chosen(const struct screen *screen, unsigned server)
{
	unsigned chosen = screen->display->chosen;

	return (chosen == 0 || chosen == server + 1) && screen->model->servers[server].track.has_now;
}

bool panel_has_flash(const struct screen *screen)
{
	return screen->summary->basis.value[FIELD_flash_enabled] > 0;
}

enum style panel_load_style(double load, enum style below)
{
	return load >= 1 ? STYLE_BAD : load >= 0.9 ? STYLE_WARN : below;
}

void panel_figure(const struct screen *screen, const struct pane *pane, int row, int column, int end, const char *label,
		  enum figure figure)
{
	char text[FIGURE_TEXT_BYTES];

	pane_text(pane, row, column, STYLE_PLAIN, label);
	pane_right(pane, row, end, STYLE_STRONG, figure_text(figure_info(figure)->unit, screen->figures[figure], text));
}

int panel_words(const struct screen *screen, const struct pane *pane, int row, int column, const char *label,
		enum figure figure)
{
	char text[FIGURE_TEXT_BYTES];

	column = pane_text(pane, row, column, STYLE_PLAIN, label);
	column = pane_text(pane, row, column + 1, STYLE_STRONG,
			   figure_text(figure_info(figure)->unit, screen->figures[figure], text));
	return column + 3;
}
