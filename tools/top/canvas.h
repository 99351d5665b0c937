/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A grid of cells that views draw on, and panes, which are rectangles of it. All drawing is cut at the edges of pane
 * and canvas, so that no view needs to know how small the terminal is. term.c shows the canvas; tests read it.
 *
 * Rows and columns count from 0, from the pane's corner. Text is ASCII: control characters and bytes beyond become '?'.
 *
 * Threads: one owner. Ownership: fini frees the cells.
 */
#ifndef FS_TOOLS_TOP_CANVAS_H
#define FS_TOOLS_TOP_CANVAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum style {
	STYLE_PLAIN,
	STYLE_DIM,
	STYLE_STRONG,
	STYLE_TITLE, /* a panel's name */
	STYLE_EDGE, /* first and last line: reversed */
	STYLE_CHOSEN, /* the chosen one of several words in an edge */
	STYLE_DRAM,
	STYLE_FLASH,
	STYLE_GOOD,
	STYLE_WARN,
	STYLE_BAD,
	STYLES
};

struct cell {
	uint32_t glyph; /* code point; ASCII where the canvas isn't utf8 */
	uint8_t style;
};

struct canvas {
	int rows, columns;
	bool utf8;
	struct cell *cells;
};

struct pane {
	struct canvas *canvas;
	int row, column, rows, columns;
};

/* init makes a canvas without cells; fini frees the cells. */
void canvas_init(struct canvas *canvas, bool utf8);
void canvas_fini(struct canvas *canvas);
/* resize makes a blank canvas of this size, at most CANVAS_MOST each way. The program ends when memory is out. */
#define CANVAS_MOST 1000
void canvas_resize(struct canvas *canvas, int rows, int columns);

/* Returns the whole canvas as a pane. */
struct pane canvas_pane(struct canvas *canvas);
/* Returns a part of a pane, cut at its edges. */
struct pane pane_part(const struct pane *pane, int row, int column, int rows, int columns);

/* Draws text from `column` on. Returns the column behind the text. */
int pane_text(const struct pane *pane, int row, int column, enum style style, const char *text);
/* Draws text that ends before column `end`; fill gives a whole row a style. */
void pane_right(const struct pane *pane, int row, int end, enum style style, const char *text);
void pane_fill(const struct pane *pane, int row, enum style style);
/* Draws "Name ---------" up to column `end`. Headings of columns may follow from there on. */
void pane_title(const struct pane *pane, int row, int end, const char *name);

/* Draws a bar of `width` cells, of which fraction (0 to 1) is filled; NAN leaves it empty. */
void pane_bar(const struct pane *pane, int row, int column, int width, enum style style, double fraction);

/* A bar of several parts, each with its glyph. A part above 0 gets at least one cell if there are enough cells. */
struct bar_part {
	double size;
	enum style style;
};
#define BAR_PARTS 4
/* Draws the parts in their order over `width` cells. */
void pane_parts(const struct pane *pane, int row, int column, int width, const struct bar_part parts[BAR_PARTS]);
/* Draws the glyph of the n-th part, for the legend. */
void pane_part_sign(const struct pane *pane, int row, int column, unsigned number, enum style style);

/* Draws the last `width` of count values, the newest on the right, `height` rows high, from 0 to most; NAN is a gap. */
void pane_history(const struct pane *pane, int row, int column, int width, int height, enum style style,
		  const float *values, size_t count, double most);

#endif
