/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/grid.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/common/args.h"

#define FIRST_CELLS 256u
#define CELL_BYTES 1024 /* an escaped key has up to 1000 */

struct grid {
	const struct grid_column *columns;
	uint32_t column_count;
	char **cells;
	uint64_t count, capacity; /* the first row is the titles */
};

static void add(struct grid *grid, const char *text)
{
	size_t bytes = strlen(text) + 1;

	if (grid->count == grid->capacity) {
		grid->capacity = grid->capacity ? 2 * grid->capacity : FIRST_CELLS;
		grid->cells = mem_realloc(grid->cells, grid->capacity * sizeof(*grid->cells));
	}
	if (grid->cells)
		grid->cells[grid->count] = mem_alloc(bytes);
	if (!grid->cells || !grid->cells[grid->count])
		arg_die("out of memory");
	memcpy(grid->cells[grid->count++], text, bytes);
}

struct grid *grid_create(const struct grid_column *columns)
{
	struct grid *grid = mem_must_zalloc(sizeof(*grid));

	grid->columns = columns;
	while (columns[grid->column_count].title)
		grid->column_count++;
	for (uint32_t i = 0; i < grid->column_count; i++)
		add(grid, columns[i].title);
	return grid;
}

void grid_destroy(struct grid *grid)
{
	for (uint64_t i = 0; i < grid->count; i++)
		mem_free(grid->cells[i]);
	mem_free(grid->cells);
	mem_free(grid);
}

void grid_cell(struct grid *grid, const char *format, ...)
{
	char text[CELL_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	add(grid, text);
}

void grid_end_row(struct grid *grid)
{
	while (grid->count % grid->column_count != 0)
		add(grid, "");
}

/* Columns on a terminal: bytes of UTF-8 but for those that continue a character. */
static int width_of(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += (*text & 0xc0) != 0x80;
	return width;
}

static int column_width(const struct grid *grid, uint32_t column)
{
	int widest = 0;

	for (uint64_t i = column; i < grid->count; i += grid->column_count) {
		int width = width_of(grid->cells[i]);

		widest = width > widest ? width : widest;
	}
	return widest;
}

static bool is_blank_from(const struct grid *grid, uint64_t row, uint32_t column)
{
	while (column < grid->column_count && grid->cells[row + column][0] == 0)
		column++;
	return column == grid->column_count;
}

/* Nothing is printed after a row's last cell with text. */
static void print_row(const struct grid *grid, uint64_t row, const int *widths)
{
	for (uint32_t i = 0; i < grid->column_count && !is_blank_from(grid, row, i); i++) {
		const char *text = grid->cells[row + i];
		int blanks = widths[i] - width_of(text);

		if (i > 0)
			fputs("  ", stdout);
		if (!grid->columns[i].left)
			printf("%*s%s", blanks, "", text);
		else if (is_blank_from(grid, row, i + 1))
			fputs(text, stdout);
		else
			printf("%s%*s", text, blanks, "");
	}
	putchar('\n');
}

void grid_print(const struct grid *grid)
{
	int *widths = mem_must_zalloc(grid->column_count * sizeof(*widths));

	for (uint32_t i = 0; i < grid->column_count; i++)
		widths[i] = column_width(grid, i);
	for (uint64_t row = 0; row + grid->column_count <= grid->count; row += grid->column_count)
		print_row(grid, row, widths);
	mem_free(widths);
}
