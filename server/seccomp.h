/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --seccomp: allows the system calls that the daemon needs while it serves, and no others. Any other call ends the
 * process by SIGSYS (with a core where -r and the system allow one), because only foreign code in the process would
 * make it.
 *
 *   ended     execve, fork, ptrace, mount, bpf, a socket that isn't UNIX or IP, a signal to another process, ...
 *   an error  calls that libraries try but don't need: clone3 (ENOSYS: threads are made by clone), a netlink socket
 *   allowed   files, sockets, threads, memory, time; epoll, aio
 *
 * Files can still be opened (SIGHUP, certificates, /proc for "stats") as far as the user may; hiding files is the
 * service manager's task. The list covers the calls of glibc, libevent, libaio, jemalloc, OpenSSL, libsasl2, libsystemd
 * and libmicrohttpd.
 */
#ifndef FS_SERVER_SECCOMP_H
#define FS_SERVER_SECCOMP_H

#include <stdbool.h>

#include "base/error.h"

/* Returns false in builds with a sanitizer, whose runtime makes calls of its own. Any thread. */
bool seccomp_is_possible(void);

/* Installs the filter for all threads of the process, and those to come; there is no way back. Call it when sockets are
   bound, the flash is opened and libraries are loaded, and after privileges_drop (it needs no_new_privs). Returns 0, or
   -1 with a reason. Main thread. */
FS_MUST_CHECK int seccomp_install(char reason[256]);

#endif
