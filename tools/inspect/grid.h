/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table on a terminal: columns as wide as their widest cell, numbers to the right. Cells are added
 * row by row and printed at the end. The program ends when memory is out.
 *
 * Threads: one.
 */
#ifndef FS_TOOLS_INSPECT_GRID_H
#define FS_TOOLS_INSPECT_GRID_H

#include <stdbool.h>
#include <stdint.h>

struct grid_column {
	const char *title; /* ends the list when NULL */
	bool left; /* else to the right */
};

struct grid;

/* Makes an empty grid. The caller owns columns, which outlive the grid. destroy frees the grid. */
struct grid *grid_create(const struct grid_column *columns);
void grid_destroy(struct grid *grid);

/* Adds the next cell. After the last cell of a row comes the first of the next row. */
void grid_cell(struct grid *grid, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds empty cells up to the end of the row. */
void grid_end_row(struct grid *grid);

/* Prints to standard output, titles first. All rows must be full. */
void grid_print(const struct grid *grid);

#endif
