/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --seccomp: the system calls that the daemon needs while it serves, and no others. Hard: any other call ends the process
 * by SIGSYS (with a core, where -r and the system let it), because what makes such a call is not our code any more.
 *
 *   ended     execve, fork, ptrace, mount, bpf, a socket of another family than UNIX or IP, a signal to another process, ...
 *   an error  what libraries try and can do without: clone3 (ENOSYS: threads are made by clone), a netlink socket
 *   allowed   files, sockets, threads, memory, time; epoll, aio
 *
 * Files can be opened still (SIGHUP, certificates, /proc for "stats"), as far as the user may: what the file system
 * hides is a matter of the service manager. Made for the calls of glibc, libevent, libaio, jemalloc, OpenSSL, libsasl2,
 * libsystemd and civetweb.
 */
#ifndef FS_SERVER_SECCOMP_H
#define FS_SERVER_SECCOMP_H

#include <stdbool.h>

/* False in builds with a sanitizer, whose runtime makes calls of its own. */
bool seccomp_is_possible(void);

/* For all threads of the process, and those to come; no way back. 0 or -1 with a reason. Needs no_new_privs
   (privileges_drop). After what only a start does: sockets bound, the flash opened, libraries loaded. */
int seccomp_install(char reason[256]);

#endif
