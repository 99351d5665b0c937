/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Computes the displayed figures from a basis. figures.def declares them. NAN means unknown.
 *
 * Threads: any, as the functions are pure.
 */
#ifndef FS_TOOLS_TOP_FIGURES_H
#define FS_TOOLS_TOP_FIGURES_H

#include "tools/top/track.h"

enum figure {
#define FIGURE(name, unit, formula, text) FIG_##name,
#include "tools/top/figures.def"
#undef FIGURE
	FIG_COUNT
};

enum unit { UNIT_RATIO, UNIT_RATE, UNIT_SPEED, UNIT_BYTES, UNIT_COUNT, UNIT_SECONDS, UNIT_MICROSECONDS, UNIT_FACTOR };

struct figure_info {
	const char *name;
	enum unit unit;
	const char *text;
};
/* Returns the row of figures.def, constant. */
const struct figure_info *figure_info(enum figure figure);

/* Computes all figures. Ratios are between 0 and 1. */
void figures_of(const struct basis *basis, double figures[FIG_COUNT]);

/* Writes the text for people into out, mostly within 11 columns: "95.3 %", "52.1 k", "4.10 MiB/s", "12.3"; "-" for NAN.
   Returns out. */
#define FIGURE_TEXT_BYTES 40
char *figure_text(enum unit unit, double value, char out[FIGURE_TEXT_BYTES]);

#endif
