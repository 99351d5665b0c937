/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of base share: cmocka's includes in their order, and running code in a child. */
#ifndef FS_TESTS_BASE_TEST_H
#define FS_TESTS_BASE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Runs a function in a child whose standard error is a pipe. The child's wait status; what it
   wrote, in text. */
int run_in_child(void (*function)(void), char *text, size_t text_bytes);

#endif
