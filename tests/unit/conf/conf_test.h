/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of conf share: loading a command line and a file, with what was said in memory. */
#ifndef FS_TESTS_CONF_TEST_H
#define FS_TESTS_CONF_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conf/conf.h"

struct loaded {
	struct conf conf;
	int rc;
	char *out; /* what it printed */
	char *err; /* what it complained about */
};

/* Loads "flashield <words>", words separated by single blanks. file_text, if not NULL, is written to
   a file that the word @ stands for. */
void load(struct loaded *loaded, const char *words, const char *file_text);
void unload(struct loaded *loaded);

/* Loads and expects the end with this exit code, and this text on the error stream; in it, @ stands
   for the file's name. */
void expect_refusal(const char *words, const char *file_text, int exit_code, const char *text);

#endif
