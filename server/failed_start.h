/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tells why a start fails, wherever someone may look: standard error or the journal, and the service manager's line of state
 * (STATUS= and ERRNO=), which "systemctl status" still shows after the process has ended.
 *
 * Threads: the main thread. Never waits for the service manager.
 */
#ifndef FS_SERVER_FAILED_START_H
#define FS_SERVER_FAILED_START_H

/* code: of base/error.h; with FS_ESYS errno tells the cause. 0: there is none. Returns exit_code. */
int failed_start(const char *reason, int exit_code, int code);

/* The service manager's part of it alone, for a reason that was told already. */
void failed_start_notify(const char *reason, int code);

#endif
