/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of the tools share. */
#ifndef FS_TESTS_UNIT_TOOLS_TEST_H
#define FS_TESTS_UNIT_TOOLS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define TEST_PATH_BYTES 64

/* Writes bytes into a new temporary file whose name goes into path. The caller unlinks it. */
void temporary_file(char path[TEST_PATH_BYTES], const void *bytes, size_t length);

/* The same, compressed; `cut` bytes are left off at the end. */
void temporary_gzip(char path[TEST_PATH_BYTES], const char *text, size_t cut);

#endif
