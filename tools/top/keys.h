/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a key changes. Threads: one owner.
 */
#ifndef FS_TOOLS_TOP_KEYS_H
#define FS_TOOLS_TOP_KEYS_H

#include "tools/top/screen.h"

enum key_effect { KEY_NOTHING, KEY_DRAW, KEY_RESET, KEY_QUIT, KEY_REPAINT };

/* key: of term_key(). servers: how many there are; apps: rows of the applications' table. */
enum key_effect keys_take(struct display *display, int key, unsigned servers, unsigned apps);

#endif
