/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is the terminal's type fit for us? In a file of its own, as <term.h> makes macros of ordinary names. It is asked before ncurses
 * takes the terminal over, because that doesn't give back what it has taken when it fails.
 */
#include "tools/top/term.h"

#include <ncurses.h>
#include <term.h>
#include <unistd.h>

const char *term_unfit(void)
{
	const char *why = NULL;
	int code;

	if (setupterm(NULL, STDOUT_FILENO, &code) != OK)
		return "this type of terminal is not known";
	if (!tigetstr("cup"))
		why = "this type of terminal can't move its cursor";
	del_curterm(cur_term);
	return why;
}
