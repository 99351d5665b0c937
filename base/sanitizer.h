/* SPDX-License-Identifier: BSD-3-Clause */
/* UNDER_SANITIZER, a constant: is this a build under a sanitizer, which has threads, memory and system calls of its
   own? */
#ifndef FS_BASE_SANITIZER_H
#define FS_BASE_SANITIZER_H

#include <stdbool.h>

#ifndef __has_feature
#define __has_feature(feature) 0 /* clang has it, gcc hasn't */
#endif

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || __has_feature(address_sanitizer) || \
	__has_feature(thread_sanitizer)
#define UNDER_SANITIZER true
#else
#define UNDER_SANITIZER false
#endif

#endif
