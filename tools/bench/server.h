/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Servers under test: started on a free loopback port, pinned to a CPU, asked for their stats,
 * measured by pid, ended by pid.
 *
 * Threads: one. Ownership: server_stop frees what server_start made, flash files included. If the
 * bench dies, its servers die with it (PR_SET_PDEATHSIG).
 */
#ifndef FS_TOOLS_BENCH_SERVER_H
#define FS_TOOLS_BENCH_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/bench/bench.h"

enum server_kind { SERVER_FLASHIELD, SERVER_MEMCACHED, SERVER_EXTSTORE, SERVER_KINDS };
extern const char *const server_names[SERVER_KINDS]; /* "flashield", "memcached", "extstore" */

struct server_spec {
	enum server_kind kind;
	uint64_t memory_mb;
	unsigned threads;
	unsigned max_connections; /* 0: 2048 */
	uint64_t flash_bytes;	  /* 0: none. Flashield: --flash-size; extstore: ext_path size */
	const char *const *extra; /* further arguments, NULL-terminated; or NULL */
	bool unpinned;		  /* not on options->server_cpu (thread scaling) */
	const char *wrapper;	  /* e.g. "valgrind --tool=callgrind ...", words by spaces; NULL */
};

struct server {
	struct server_spec spec;
	pid_t pid;
	uint16_t port;
	char flash_path[512]; /* "" without flash */
	char log_path[512];   /* standard error of the server */
	char version[80];
	/* private: */
	int stats_fd, perf_fd;
};

/* Starts and waits (event-driven or polling, bounded) until it answers "version". Extstore is given
   ext_item_size=0-like settings that let it take the bench's values to flash, ext_threads=1 and enough
   pages; the actual command line is kept by figures_about. FS_ENOTFOUND: the program is not there. */
FS_MUST_CHECK int server_start(struct server *server, const struct bench *bench, const struct server_spec *spec);
/* SIGTERM, waits (SIGKILL after 10 s), removes its files. Its exit status must be a clean one: FS_ESYS and a
   line with the log's tail otherwise. */
FS_MUST_CHECK int server_stop(struct server *server);
bool server_alive(struct server *server);

/* Process CPU time (user and system, all its threads) in nanoseconds: clock_getcpuclockid. */
uint64_t server_cpu_ns(const struct server *server);
/* Instructions in user and kernel mode since the start, by perf_event_open with inherit; false where the
   machine doesn't count them. */
bool server_instructions(const struct server *server, uint64_t *count);
uint64_t server_resident_bytes(const struct server *server); /* VmRSS */
uint64_t server_peak_bytes(const struct server *server);     /* VmHWM */
/* Write traffic by the process to storage: /proc/PID/io write_bytes; 0 when not readable. */
uint64_t server_written_bytes(const struct server *server);

/* A figure of "stats <group>" ("" = general). NaN when the server has none. Asks anew each time. */
double server_stat(struct server *server, const char *group, const char *name);
/* All groups' stats are one text for logs; "flush_all"; drops the page cache of its flash file
   (posix_fadvise DONTNEED after fsync: enough for a file on disk, no root needed). */
void server_flush(struct server *server);
void server_drop_cache(const struct server *server);

#endif
