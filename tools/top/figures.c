/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/figures.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/text.h"

static const struct figure_info infos[FIG_COUNT] = {
#define FIGURE(name, unit, formula, text) { #name, UNIT_##unit, text },
#include "tools/top/figures.def"
#undef FIGURE
};

const struct figure_info *figure_info(enum figure figure)
{
	return &infos[figure];
}

static double part(double some, double whole)
{
	return whole > 0 ? some / whole : NAN;
}

/* Returns the second value if the first is unknown. */
static double other(double first, double second)
{
	return isnan(first) ? second : first;
}

#define V(field) (basis->value[FIELD_##field])
#define R(field) (basis->rate[FIELD_##field])
#define T(field) (basis->total[FIELD_##field])
/* memcached counts all hits, and separately the hits of extstore if it has one. */
#define DRAM_HITS(of) other(of(dram_hits), of(get_hits) - other(of(flash_hits), 0))

void figures_of(const struct basis *basis, double figures[FIG_COUNT])
{
#define FIGURE(name, unit, formula, text) figures[FIG_##name] = (formula);
#include "tools/top/figures.def"
#undef FIGURE
	for (int i = 0; i < FIG_COUNT; i++) {
		/* Reports arrive one after the other, so parts may be a few requests ahead of their whole. */
		if (infos[i].unit == UNIT_RATIO && i != FIG_flash_write_limit_used && i != FIG_hot_load)
			figures[i] = figures[i] > 1 ? 1 : figures[i];
		if (figures[i] < 0 && i != FIG_model_threshold)
			figures[i] = 0;
		if (isinf(figures[i]))
			figures[i] = NAN;
	}
}

/* The text stays short for damaged figures too. */
#define MOST 9.99e17

char *figure_text(enum unit unit, double value, char out[FIGURE_TEXT_BYTES])
{
	char text[TEXT_BYTES];

	if (isnan(value) || fabs(value) > MOST) {
		snprintf(out, FIGURE_TEXT_BYTES, "%s", isnan(value) ? "-" : "?");
		return out;
	}
	switch (unit) {
	case UNIT_RATIO:
		snprintf(out, FIGURE_TEXT_BYTES,
			 value >= 9.9995    ? "%.0f %%"
			 : value >= 0.09995 ? "%.1f %%"
					    : "%.2f %%",
			 100 * fmin(value, 9999));
		break;
	case UNIT_SPEED:
		snprintf(out, FIGURE_TEXT_BYTES, "%s/s", text_size(value, text));
		break;
	case UNIT_BYTES:
		snprintf(out, FIGURE_TEXT_BYTES, "%s", text_size(value, text));
		break;
	case UNIT_SECONDS:
		snprintf(out, FIGURE_TEXT_BYTES, "%s", text_duration(value, text));
		break;
	case UNIT_MICROSECONDS:
		snprintf(out, FIGURE_TEXT_BYTES, "%s", text_duration(value / 1e6, text));
		break;
	case UNIT_FACTOR:
		if (fabs(value) >= 100)
			snprintf(out, FIGURE_TEXT_BYTES, "%s", text_count(value, text));
		else
			snprintf(out, FIGURE_TEXT_BYTES, fabs(value) < 0.1 && value != 0 ? "%.4f" : "%.3f", value);
		break;
	case UNIT_RATE:
	case UNIT_COUNT:
		snprintf(out, FIGURE_TEXT_BYTES, "%s", text_count(value, text));
		break;
	}
	return out;
}
