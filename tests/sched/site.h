/* SPDX-License-Identifier: BSD-3-Clause */
/* A place of the engine, as a number: where its function calls one of these, and where that function was called. */
#ifndef FS_TESTS_SCHED_SITE_H
#define FS_TESTS_SCHED_SITE_H

#include <stdint.h>

/* The engine keeps its frame pointers in this build. */
#pragma GCC diagnostic ignored "-Wframe-address"

#define SITE() ((uintptr_t)__builtin_return_address(0) ^ (uintptr_t)__builtin_return_address(1) << 32)

#endif
