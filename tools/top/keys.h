/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Applies keys to the display. Threads: one owner.
 */
#ifndef FS_TOOLS_TOP_KEYS_H
#define FS_TOOLS_TOP_KEYS_H

#include "tools/top/screen.h"

enum key_effect { KEY_NOTHING, KEY_DRAW, KEY_RESET, KEY_QUIT, KEY_REPAINT };

/* Changes *display. key comes from term_key(); servers is their number; apps is the number of rows of the applications'
   table. Returns the effect that the caller carries out. */
enum key_effect keys_take(struct display *display, int key, unsigned servers, unsigned apps);

#endif
