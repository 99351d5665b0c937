/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/instructions_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define KEYS 10000u
#define VALUE_BYTES 257u
#define EVENT_LOOP "event_base_loop"
#define ABSENT 1000000000ull /* keys from here on are never set */
#define MEMORY_MB 64
#define CONNECTIONS 244
#define DESCRIPTORS "256" /* CONNECTIONS, and 12 that valgrind keeps for itself */
/* So little memory that a load pushes objects out of it in a few seconds, in spite of valgrind. */
#define FLASH_MEMORY_MB 16
#define FLASH_BYTES (64ull << 20)
#define FLASH_WANTED 16000u /* set and read, which makes them candidates for flash */
#define FLASH_FILLER 8000u /* only set, which pushes the others out of memory */
#define FLASH_FILLER_BYTES 4000u
#define FLASH_SETS_PER_SECOND 3000

static int run_load(const struct bench *bench, struct server *server, struct load_spec spec,
		    struct instructions_counts *counts)
{
	struct load_result result;
	int rc;

	spec.cpu = bench->options->load_cpu;
	rc = load_run(&spec, server, &result);
	if (rc == FS_OK && result.wrong)
		rc = FS_ECORRUPT;
	if (counts)
		*counts = (struct instructions_counts){ .gets = result.gets, .hits = result.hits };
	load_result_fini(&result);
	return rc;
}

static int fill_memory(const struct bench *bench, struct server *server)
{
	return run_load(bench, server,
			(struct load_spec){ .kind = LOAD_SET,
					    .order = LOAD_SEQUENTIAL,
					    .keys = KEYS,
					    .value_bytes = VALUE_BYTES,
					    .operations = KEYS },
			NULL);
}

static int fill_flash(const struct bench *bench, struct server *server)
{
	int rc = run_load(bench, server,
			  (struct load_spec){ .kind = LOAD_SET_GET,
					      .order = LOAD_SEQUENTIAL,
					      .keys = FLASH_WANTED,
					      .value_bytes = VALUE_BYTES,
					      .operations = 2 * FLASH_WANTED },
			  NULL);

	if (rc != FS_OK)
		return rc;
	return run_load(bench, server,
			(struct load_spec){ .kind = LOAD_SET,
					    .order = LOAD_SEQUENTIAL,
					    .first_key = ABSENT / 2,
					    .keys = FLASH_FILLER,
					    .value_bytes = FLASH_FILLER_BYTES,
					    .operations = FLASH_FILLER,
					    .rate = FLASH_SETS_PER_SECOND },
			NULL);
}

static int run_case(const struct bench *bench, struct server *server, const struct instructions_case *one,
		    uint64_t operations, struct instructions_counts *counts)
{
	double before = one->flash ? server_stat(server, "flash", "flash_hits") : NAN;
	int rc = run_load(bench, server,
			  (struct load_spec){ .kind = one->kind,
					      .order = LOAD_UNIFORM,
					      .first_key = one->misses ? ABSENT : 0,
					      .keys = one->flash ? FLASH_WANTED : KEYS,
					      .value_bytes = VALUE_BYTES,
					      .connections = one->connections,
					      .pipeline = one->pipeline,
					      .keys_per_get = one->keys_per_get,
					      .operations = operations,
					      .expect_misses = one->misses,
					      .seed = 1 },
			  counts);

	counts->flash_hits = one->flash ? server_stat(server, "flash", "flash_hits") - before : NAN;
	return rc;
}

/*
 * The words of a wrapper are separated by blanks, and valgrind takes a % for a pattern. Memcached lowers
 * its limit of descriptors to its connections, for good; valgrind refuses that unless they are just as
 * many as it leaves a program.
 */
static int make_wrapper(const struct bench *bench, enum server_kind kind, char *wrapper, size_t bytes, char *path,
			size_t path_bytes)
{
	const char *directory = bench->options->directory;
	int path_length, length;

	if (strpbrk(directory, " %"))
		return FS_EINVAL;
	path_length = snprintf(path, path_bytes, "%s/bench-%d.callgrind", directory, (int)getpid());
	length = snprintf(wrapper, bytes,
			  "%svalgrind --quiet --tool=callgrind --instr-atstart=yes --fair-sched=try "
			  "--callgrind-out-file=%s --separate-threads=yes",
			  kind == SERVER_MEMCACHED ? "prlimit --nofile=" DESCRIPTORS ":" DESCRIPTORS " " : "", path);
	return (size_t)path_length < path_bytes && (size_t)length < bytes ? FS_OK : FS_EINVAL;
}

/* With threads apart: PATH-01, PATH-02, ... */
static bool thread_path(char *out, size_t bytes, const char *path, unsigned thread)
{
	return (size_t)snprintf(out, bytes, "%s-%02u", path, thread) < bytes && access(out, R_OK) == 0;
}

/* The worker is the thread that turned its event loop most. */
static int read_worker(struct profile *profile, const char *path)
{
	char name[600];
	int rc = FS_ESYS;

	for (unsigned thread = 1; thread_path(name, sizeof(name), path, thread); thread++) {
		struct profile other;

		rc = profile_read(&other, name);
		if (rc != FS_OK) {
			profile_fini(&other);
			break;
		}
		if (profile_self(&other, EVENT_LOOP) > profile_self(profile, EVENT_LOOP)) {
			struct profile less = *profile;

			*profile = other;
			other = less;
		}
		profile_fini(&other);
	}
	if (rc == FS_OK)
		return FS_OK;
	fprintf(stderr, "flashield-bench: callgrind left no profile that can be read in %s\n", path);
	return FS_ESYS;
}

static void files_remove(const char *path)
{
	char name[600];

	unlink(path);
	for (unsigned thread = 1; thread_path(name, sizeof(name), path, thread); thread++)
		unlink(name);
}

int instructions_run(const struct bench *bench, enum server_kind kind, const struct instructions_case *one,
		     uint64_t operations, struct profile *profile, struct instructions_counts *counts)
{
	/* What is read once after it is set goes to flash, all else stays: the load says what lies where.
	 */
	static const char *const extra[] = { "--admission", "read-once", "--segment-size", "256k", NULL };
	struct server_spec spec = {
		.kind = kind,
		.memory_mb = one->flash ? FLASH_MEMORY_MB : MEMORY_MB,
		.threads = 1,
		.max_connections = CONNECTIONS,
		.flash_bytes = one->flash ? FLASH_BYTES : 0,
		.extra = one->flash ? extra : NULL,
	};
	char wrapper[700], path[512];
	struct server server;
	int rc, stopped;

	*profile = (struct profile){ 0 };
	rc = make_wrapper(bench, kind, wrapper, sizeof(wrapper), path, sizeof(path));
	if (rc != FS_OK)
		return rc;
	spec.wrapper = wrapper;
	rc = server_start(&server, bench, &spec);
	if (rc != FS_OK)
		return rc;
	rc = one->flash ? fill_flash(bench, &server) : fill_memory(bench, &server);
	if (rc == FS_OK)
		rc = run_case(bench, &server, one, operations, counts);
	stopped = server_stop(&server);
	if (rc == FS_OK)
		rc = stopped;
	if (rc == FS_OK)
		rc = read_worker(profile, path);
	files_remove(path);
	return rc;
}
