/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/thread.h"

#include <errno.h>

#include "base/fault.h"

int thread_start(pthread_t *thread, void *(*run)(void *), void *context)
{
	return fault_fires(FAULT_thread_start) ? EAGAIN : pthread_create(thread, NULL, run, context);
}
