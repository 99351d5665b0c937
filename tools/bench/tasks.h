/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel counts for the threads of another process: sums over those that are there now; 0 where it
   doesn't tell. Threads: any. */
#ifndef FS_TOOLS_BENCH_TASKS_H
#define FS_TOOLS_BENCH_TASKS_H

#include <stdint.h>
#include <sys/types.h>

/* Nanoseconds that they could have run but had no CPU. */
uint64_t tasks_waited_ns(pid_t pid);

/* How often they went to sleep: voluntary context switches. */
uint64_t tasks_sleeps(pid_t pid);

#endif
