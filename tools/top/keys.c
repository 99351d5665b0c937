/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/keys.h"

#include "tools/top/options.h"
#include "tools/top/term.h"

#define PAGE_ROWS 10u

static const int64_t intervals_us[] = {
	100000, 200000, 500000, 1000000, 2000000, 5000000, 10000000, 30000000, 60000000
};
#define INTERVALS (sizeof(intervals_us) / sizeof(intervals_us[0]))

static void change_interval(struct display *display, bool longer)
{
	if (longer) {
		for (size_t i = 0; i < INTERVALS; i++)
			if (intervals_us[i] > display->interval_us) {
				display->interval_us = intervals_us[i];
				return;
			}
	} else {
		for (size_t i = INTERVALS; i-- > 0;)
			if (intervals_us[i] < display->interval_us) {
				display->interval_us = intervals_us[i];
				return;
			}
	}
}

static void scroll(struct display *display, int rows, unsigned apps)
{
	int64_t to = (int64_t)display->scroll + rows;

	if (to > (int64_t)apps - 1)
		to = (int64_t)apps - 1;
	display->scroll = to > 0 ? (unsigned)to : 0;
}

static enum key_effect move(struct display *display, int key, unsigned servers, unsigned apps)
{
	switch (key) {
	case '\t':
		display->view = (display->view + 1) % VIEWS;
		break;
	case TERM_BACKTAB:
		display->view = (display->view + VIEWS - 1) % VIEWS;
		break;
	case 'n':
		display->chosen = servers > 1 ? (display->chosen + 1) % (servers + 1) : 0;
		break;
	case TERM_UP:
		scroll(display, -1, apps);
		break;
	case TERM_DOWN:
		scroll(display, 1, apps);
		break;
	case TERM_PAGE_UP:
		scroll(display, -(int)PAGE_ROWS, apps);
		break;
	case TERM_PAGE_DOWN:
		scroll(display, (int)PAGE_ROWS, apps);
		break;
	default:
		return KEY_NOTHING;
	}
	return KEY_DRAW;
}

enum key_effect keys_take(struct display *display, int key, unsigned servers, unsigned apps)
{
	if (key == TERM_RESIZED)
		return KEY_DRAW;
	if (key == 'q' || key == 'Q')
		return KEY_QUIT;
	if (display->help) {
		display->help = false;
		return KEY_DRAW;
	}
	if (key >= '0' && key <= '9') {
		display->view = (enum view)((key - '0' + KEYS_OF_VIEWS - 1) % KEYS_OF_VIEWS);
		return KEY_DRAW;
	}
	switch (key) {
	case 'h':
	case '?':
		display->help = true;
		return KEY_DRAW;
	case 'p':
	case ' ':
		display->paused = !display->paused;
		return KEY_DRAW;
	case '+':
	case '=':
	case '-':
		change_interval(display, key != '-');
		return KEY_DRAW;
	case 's':
		display->sort = (display->sort + 1) % APP_COLUMNS;
		display->scroll = 0;
		return KEY_DRAW;
	case 'w':
		display->window = (display->window + 1) % HOT_WINDOWS;
		return KEY_DRAW;
	case 'r':
		return KEY_RESET;
	case 0x0c: /* Ctrl-L */
		return KEY_REPAINT;
	default:
		return move(display, key, servers, apps);
	}
}
