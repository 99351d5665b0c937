/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The terminal: shows a canvas and reads keys. No other file uses ncurses, except term_type.c.
 *
 * Colours are used if the terminal has them and NO_COLOR is not set, bold and reverse on all terminals.
 *
 * Threads: the main thread. One terminal per process.
 */
#ifndef FS_TOOLS_TOP_TERM_H
#define FS_TOOLS_TOP_TERM_H

#include "base/error.h"
#include "tools/top/canvas.h"

/* Keys without a character. */
enum term_key {
	TERM_NONE = -1,
	TERM_RESIZED = 0x1000,
	TERM_UP,
	TERM_DOWN,
	TERM_PAGE_UP,
	TERM_PAGE_DOWN,
	TERM_BACKTAB,
	TERM_OTHER
};

/* Returns the reason why the type of the terminal (TERM) is not usable, as static text, or NULL. */
const char *term_unfit(void);

/* Takes the terminal over. False, with a message, if its type is not usable. Keys come from *fd. */
FS_MUST_CHECK bool term_open(int *fd, char error[256]);
/* Gives it back as it was. */
void term_close(void);

/* term_size tells the present size; term_show draws the canvas, cut at that size. */
void term_size(int *rows, int *columns);
void term_show(const struct canvas *canvas);
/* Draws everything anew, over the output of other programs. */
void term_redraw(void);
/* Returns a character, an enum term_key, or TERM_NONE if none is waiting. */
int term_key(void);

/* Returns whether the locale's character set has the block characters. */
bool term_is_utf8(void);

#endif
