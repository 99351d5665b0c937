/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table on a terminal: columns as wide as their widest cell, numbers to the right. Cells are added
 * row by row and printed at the end. Memory that is out ends the program.
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

/* columns: stays the caller's, and in place. */
struct grid *grid_create(const struct grid_column *columns);
void grid_destroy(struct grid *grid);

/* The next cell; after a row's last one comes the next row's first. */
void grid_cell(struct grid *grid, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Empty cells up to the end of the row. */
void grid_end_row(struct grid *grid);

/* To standard output, titles first. Full rows only. */
void grid_print(const struct grid *grid);

#endif
