/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Servers under test: started on a free loopback port, pinned to a CPU, asked for their stats,
 * measured by pid, ended by pid.
 *
 * Threads: one, which starts servers and outlives them (the kernel ties PR_SET_PDEATHSIG to the thread
 * that forked: if it dies, its servers die with it). server_cpu_ns and server_instructions only read and
 * may be called from another thread meanwhile; that is what load.h does. Ownership: server_stop frees what
 * server_start made, flash files included.
 */
#ifndef FS_TOOLS_BENCH_SERVER_H
#define FS_TOOLS_BENCH_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/bench/bench.h"
#include "tools/slowdrive/slowdrive.h"

enum server_kind { SERVER_FLASHIELD, SERVER_MEMCACHED, SERVER_EXTSTORE, SERVER_KINDS };
extern const char *const server_names[SERVER_KINDS]; /* "flashield", "memcached", "extstore" */

struct server_spec {
	enum server_kind kind;
	uint64_t memory_mb;
	unsigned threads;
	unsigned max_connections; /* 0: 2048 */
	uint64_t flash_bytes; /* 0: none. Flashield: --flash-size; extstore: ext_path size, at least
				     128 MiB, in pages of 16 MiB */
	const char *const *extra; /* further arguments, NULL-terminated; or NULL */
	bool unpinned; /* not on options->server_cpu (thread scaling) */
	bool slow_drive; /* its flash is an emulated drive (options->slowdrive), which server->drive
				     controls; at first it is as fast as the real one */
	unsigned watchdog_seconds; /* ours: how often the service manager, whose part is played here, expects to be told
				      that the server is alive; 0: there is none */
	const char *wrapper; /* e.g. "valgrind --tool=callgrind ...", words by spaces; NULL. pid is the
				     wrapper's: it must exec the server, as valgrind does */
};

struct server {
	struct server_spec spec;
	pid_t pid;
	uint16_t port;
	char flash_path[512]; /* "" without flash */
	char log_path[512]; /* standard error of the server */
	char drive_path[512]; /* control file of the emulated drive; "" without one */
	struct slowdrive *drive; /* of spec.slow_drive (tools/slowdrive/slowdrive.h); else NULL */
	char version[80];
	/* private: */
	int stats_fd, perf_fd, watchdog_fd;
	char watchdog_name[64];
	double fed_seconds; /* when the watchdog was fed last, by CLOCK_MONOTONIC */
};

/* Starts it in options->directory and waits (bounded) until it answers "version". Extstore's settings, and
   why they are not its defaults, are in server_command.c; the command line is kept by figures_about.
   FS_ENOTFOUND: the program is not there. (That the emulated drive is there is for the caller to find out.)
   FS_ESYS: it doesn't start; its log's end is on standard error.
   FS_EINVAL: a path or the command line is too long. On failure nothing is left behind. */
FS_MUST_CHECK int server_start(struct server *server, const struct bench *bench, const struct server_spec *spec);
/* Lets go of what the emulated drive holds, SIGTERM, waits (SIGKILL after 10 s, a minute under a wrapper), removes
   its files. Its exit status must be a clean one: FS_ESYS and a line with the log's tail otherwise. */
FS_MUST_CHECK int server_stop(struct server *server);
/* Is the process still there? One that has ended is left to server_stop, which judges its status. */
bool server_alive(struct server *server);

/* For how long the server has not fed its watchdog; since its start while it never has. NaN without one. To be
   called more often than it matters, as food is noticed by this call. */
double server_unfed_seconds(struct server *server);

/* Process CPU time (user and system, all its threads) in nanoseconds: clock_getcpuclockid. */
uint64_t server_cpu_ns(const struct server *server);
/* Instructions in user and kernel mode since the start, by perf_event_open with inherit; false where the
   machine doesn't count them. */
bool server_instructions(const struct server *server, uint64_t *count);
uint64_t server_resident_bytes(const struct server *server); /* VmRSS */
uint64_t server_peak_bytes(const struct server *server); /* VmHWM */
/* Write traffic by the process to storage: /proc/PID/io write_bytes; 0 when not readable. */
uint64_t server_written_bytes(const struct server *server);

/* A figure of "stats <group>" ("" = general). NaN when the server has none. Asks anew each time, on a
   connection of its own; what that costs the server is in its CPU time. */
double server_stat(struct server *server, const char *group, const char *name);
/* "flush_all": nothing that is stored now is found any more. */
void server_flush(struct server *server);
/* Drops the page cache of its flash file: fsync first, as pages that are written but dirty can't be
   dropped, then posix_fadvise(DONTNEED). No root needed. Extstore reads and writes through the page cache,
   so each page that it reads or writes afterwards is in memory again. */
void server_drop_cache(const struct server *server);

#endif
