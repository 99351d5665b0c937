/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asserts that stay on in production. They state invariants of our own code, and never judge bytes from the network,
 * the flash or a file. Any thread, with any lock held.
 */
#ifndef FS_BASE_ASSERT_H
#define FS_BASE_ASSERT_H

#include "base/machine.h" /* almost every file includes this one */

/* Logs file, line and expression, and aborts. For must() alone. */
_Noreturn void __attribute__((cold)) assert_failed(const char *expression, const char *file, int line);

#define must(expression) \
	(__builtin_expect(!!(expression), 1) ? (void)0 : assert_failed(#expression, __FILE__, __LINE__))

/* Costly checks, compiled in by -DFS_DEBUG only (debug and sanitizer builds). */
#ifdef FS_DEBUG
#define debug_must(expression) must(expression)
#else
#define debug_must(expression) ((void)sizeof(expression))
#endif

#endif
