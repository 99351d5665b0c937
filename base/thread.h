/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting a thread: one function, so that a test can make each start of the program fail (fault point thread_start). */
#ifndef FS_BASE_THREAD_H
#define FS_BASE_THREAD_H

#include <pthread.h>

#include "base/error.h"

/* Starts a thread that calls run(context); the caller joins it. Returns 0 or an errno: EAGAIN where the system's or the
   user's limit on threads is reached, or memory for the stack is out. errno stays. Any thread. */
FS_MUST_CHECK int thread_start(pthread_t *thread, void *(*run)(void *), void *context);

#endif
