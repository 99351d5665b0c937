/* SPDX-License-Identifier: BSD-3-Clause */
/* How a run ends that has found something: the text, the step and the fibers go to standard error, and the process ends. */
#ifndef FS_TESTS_SCHED_FINDING_H
#define FS_TESTS_SCHED_FINDING_H

#define EXIT_FINDING 3

/* Never returns. Any fiber, any place. */
_Noreturn void finding(const char *format, ...) __attribute__((format(printf, 1, 2), cold));

#endif
