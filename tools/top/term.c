/* SPDX-License-Identifier: BSD-3-Clause */
/* Wide characters: the header shows them only with this. */
#define NCURSES_WIDECHAR 1
#include "tools/top/term.h"

#include <langinfo.h>
#include <ncurses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
	SCREEN *screen;
	FILE *keys;
	bool colours;
} term;

static const struct {
	short colour; /* -1: the terminal's own */
	attr_t attributes;
	attr_t instead; /* where there are no colours */
} looks[STYLES] = {
	[STYLE_PLAIN] = { -1, A_NORMAL, A_NORMAL },
	[STYLE_DIM] = { -1, A_DIM, A_NORMAL },
	[STYLE_STRONG] = { -1, A_BOLD, A_BOLD },
	[STYLE_TITLE] = { COLOR_CYAN, A_BOLD, A_BOLD },
	[STYLE_EDGE] = { -1, A_REVERSE, A_REVERSE },
	[STYLE_CHOSEN] = { COLOR_CYAN, A_BOLD | A_REVERSE, A_BOLD | A_REVERSE },
	[STYLE_DRAM] = { COLOR_BLUE, A_NORMAL, A_NORMAL },
	[STYLE_FLASH] = { COLOR_MAGENTA, A_NORMAL, A_NORMAL },
	[STYLE_GOOD] = { COLOR_GREEN, A_NORMAL, A_NORMAL },
	[STYLE_WARN] = { COLOR_YELLOW, A_BOLD, A_BOLD },
	[STYLE_BAD] = { COLOR_RED, A_BOLD | A_REVERSE, A_BOLD | A_REVERSE },
};

static void choose_colours(void)
{
	const char *none = getenv("NO_COLOR");

	term.colours = has_colors() && !(none && *none);
	if (!term.colours)
		return;
	start_color();
	use_default_colors();
	for (int i = 0; i < STYLES; i++)
		init_pair((short)(i + 1), looks[i].colour, -1);
}

bool term_open(int *fd, char error[256])
{
	const char *type = getenv("TERM"), *why = term_unfit();

	/* Standard input may be something else: keys are the terminal's. */
	if (!why) {
		term.keys = isatty(STDIN_FILENO) ? stdin : fopen("/dev/tty", "r");
		why = "no terminal to read keys from";
	}
	if (term.keys) {
		term.screen = newterm(NULL, stdout, term.keys);
		why = "the terminal can't be used";
	}
	if (!term.screen) {
		snprintf(error, 256, "TERM=%.60s: %s (--once needs no terminal)", type ? type : "", why);
		return false;
	}
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	choose_colours();
	*fd = fileno(term.keys);
	return true;
}

void term_close(void)
{
	if (!term.screen)
		return;
	endwin();
	delscreen(term.screen);
	if (term.keys != stdin)
		fclose(term.keys);
	memset(&term, 0, sizeof(term));
}

void term_size(int *rows, int *columns)
{
	getmaxyx(stdscr, *rows, *columns);
}

/* Cells of one style, at once. */
static int show_run(const struct canvas *canvas, int row, int column)
{
	const struct cell *cells = canvas->cells + (size_t)row * (size_t)canvas->columns;
	uint8_t style = cells[column].style;
	wchar_t text[CANVAS_MOST];
	int length = 0;

	while (column + length < canvas->columns && cells[column + length].style == style) {
		text[length] = (wchar_t)cells[column + length].glyph;
		length++;
	}
	attr_set(term.colours ? looks[style].attributes : looks[style].instead, (short)(term.colours ? style + 1 : 0),
		 NULL);
	mvaddnwstr(row, column, text, length);
	return length;
}

void term_show(const struct canvas *canvas)
{
	for (int row = 0; row < canvas->rows; row++)
		for (int column = 0; column < canvas->columns;)
			column += show_run(canvas, row, column);
	refresh();
}

void term_redraw(void)
{
	clearok(stdscr, TRUE);
}

int term_key(void)
{
	int key = getch();

	switch (key) {
	case ERR:
		return TERM_NONE;
	case KEY_RESIZE:
		return TERM_RESIZED;
	case KEY_UP:
		return TERM_UP;
	case KEY_DOWN:
		return TERM_DOWN;
	case KEY_PPAGE:
		return TERM_PAGE_UP;
	case KEY_NPAGE:
		return TERM_PAGE_DOWN;
	case KEY_BTAB:
		return TERM_BACKTAB;
	default:
		return key < 0x100 ? key : TERM_OTHER;
	}
}

bool term_is_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}
