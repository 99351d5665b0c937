/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks the type of the terminal. This is a file of its own because <term.h> makes macros of ordinary names. The check
 * comes before ncurses takes the terminal over, because ncurses doesn't give it back when it fails.
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
