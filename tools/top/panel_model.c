/* SPDX-License-Identifier: BSD-3-Clause */
/* The classifier's model: its kind, its quality and its effect. */
#include "tools/top/panels.h"

#include <string.h>

#define LABEL_END 11

int model_rows(const struct screen *screen, int columns, int available)
{
	(void)columns;
	(void)available;
	return screen->texts && screen->texts->has[REPORT_CLASSIFIER] && panel_has_flash(screen) ? 7 : 0;
}

static void quality(const struct screen *screen, const struct pane *pane, int row, const char *label,
		    enum figure figure)
{
	char text[FIGURE_TEXT_BYTES];

	pane_text(pane, row, 0, STYLE_PLAIN, label);
	pane_bar(pane, row, LABEL_END, pane->columns - LABEL_END - 9, STYLE_GOOD, screen->figures[figure]);
	pane_right(pane, row, pane->columns, STYLE_STRONG, figure_text(UNIT_RATIO, screen->figures[figure], text));
}

void model_draw(const struct screen *screen, const struct pane *pane)
{
	bool trained = screen->texts && strcmp(screen->texts->model, "svm") == 0;
	char text[FIGURE_TEXT_BYTES];
	int column;

	pane_title(pane, 0, pane->columns, "Model");
	if (!screen->texts)
		return;
	column = pane_text(pane, 1, 0, trained ? STYLE_GOOD : STYLE_WARN, trained ? "" : "none: ");
	column = pane_text(pane, 1, column, trained ? STYLE_GOOD : STYLE_WARN, screen->texts->reason);
	if (trained) {
		column = pane_text(pane, 1, column + 3, STYLE_DIM, "age");
		pane_text(pane, 1, column + 1, STYLE_DIM,
			  figure_text(UNIT_SECONDS, screen->figures[FIG_model_age_seconds], text));
	}
	quality(screen, pane, 2, "precision", FIG_model_precision);
	quality(screen, pane, 3, "recall", FIG_model_recall);
	column = panel_words(screen, pane, 4, 0, "threshold", FIG_model_threshold);
	column = panel_words(screen, pane, 4, column, "worth flash", FIG_model_positive);
	panel_words(screen, pane, 4, column, "admitted", FIG_model_admitted);
	column = panel_words(screen, pane, 5, 0, "trained on", FIG_model_samples);
	column = panel_words(screen, pane, 5, column, "waiting", FIG_samples_waiting);
	panel_words(screen, pane, 5, column, "horizon", FIG_model_horizon_seconds);
	column = panel_words(screen, pane, 6, 0, "scored/s", FIG_scored_per_second);
	column = panel_words(screen, pane, 6, column, "admitted/s", FIG_admitted_per_second);
	column = panel_words(screen, pane, 6, column, "trainings", FIG_trainings);
	panel_words(screen, pane, 6, column, "rejected", FIG_models_rejected);
}
