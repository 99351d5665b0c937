/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SIGINT and SIGTERM end the run early: the handler notes it for bench_interrupted and passes a SIGTERM
 * on to this thread's children, which are the servers. Threads: the main thread, which starts them.
 */
#ifndef FS_TOOLS_BENCH_INTERRUPT_H
#define FS_TOOLS_BENCH_INTERRUPT_H

void interrupt_init(void);

#endif
