/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The terminal: shows a canvas, and gives keys. Nothing else knows ncurses.
 *
 * Colours where the terminal has them and NO_COLOR is not set; bold and reverse anywhere.
 *
 * Threads: the main thread. One terminal per process.
 */
#ifndef FS_TOOLS_TOP_TERM_H
#define FS_TOOLS_TOP_TERM_H

#include "tools/top/canvas.h"

/* What keys mean beyond their characters. */
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

/* Why the type of the terminal (TERM) is not fit, or NULL. Static storage. */
const char *term_unfit(void);

/* Takes the terminal over. False, with a message, where its type is not fit. Keys come from *fd. */
bool term_open(int *fd, char error[256]);
/* Gives it back as it was. */
void term_close(void);

void term_size(int *rows, int *columns);
void term_show(const struct canvas *canvas);
/* Everything anew: what another program has written there goes. */
void term_redraw(void);
/* A character, an enum term_key, or TERM_NONE if none is waiting. */
int term_key(void);

/* Does the locale's character set have the block characters? */
bool term_is_utf8(void);

#endif
