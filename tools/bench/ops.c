/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Study "ops": sets, DRAM hits, misses, multigets and a mix on the daemon and on memcached.
 *
 * Both servers run all the while and hold the same objects; an idle one costs nothing. Each case loads one
 * after the other, in the opposite order in the next round, so that a machine that gets slower or faster
 * meanwhile favours neither.
 */
#include <stdio.h>

#include "tools/bench/sample.h"

#define STUDY "ops"
#define MEMORY_MB 1024
#define CASE_SECONDS 0.9
#define WARMUP_SHARE 0.1
#define MULTIGET_KEYS 100
#define SET_SHARE 0.1 /* of the mix */
#define PIPELINE 16
#define NAME_BYTES 64
#define CASES_MOST 64
#define ABSENT 1000000000000ull /* keys from here on are never set */

enum { SERVERS = 2 }; /* flashield, memcached */

enum ops_kind { OPS_SET, OPS_GET, OPS_MISS, OPS_MIXED, OPS_MULTIGET };
static const char *const kind_names[] = { "set", "get", "miss", "mixed", "mget" };

/* Each size has keys of its own, so that all sizes are there at the same time: some 600 MB together. */
static const struct ops_size {
	const char *name;
	uint32_t bytes;
	uint64_t first_key, objects;
} sizes[] = {
	{ "64 B", 64, 0, 500000 },
	{ "257 B", 257, 100000000, 400000 },
	{ "4 KB", 4096, 200000000, 40000 },
	{ "100 KB", 102400, 300000000, 2000 },
};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), MAIN_SIZE = 1 };

struct ops_case {
	enum ops_kind kind;
	const struct ops_size *size;
	unsigned connections, pipeline;
};

struct ops {
	struct bench *bench;
	struct server servers[SERVERS];
	unsigned started; /* of servers */
	struct ops_fill {
		double objects, bytes; /* stored; that resident memory grew by */
	} fills[SERVERS][SIZES];
	struct ops_case cases[CASES_MOST];
	size_t case_count;
};

/* ---- the cases ------------------------------------------------------------------------------- */

static void add_case(struct ops *ops, enum ops_kind kind, const struct ops_size *size, unsigned connections,
		     unsigned pipeline)
{
	ops->cases[ops->case_count++] = (struct ops_case){ kind, size, connections, pipeline };
}

/* 257 B with all numbers of connections and pipelined; the other sizes as most applications use them. */
static void make_cases(struct ops *ops)
{
	static const unsigned connections[] = { 1, 50, 1000 };
	static const unsigned pipelines[] = { 1, PIPELINE };
	static const enum ops_kind other_kinds[] = { OPS_SET, OPS_GET, OPS_MIXED };

	for (size_t c = 0; c < sizeof(connections) / sizeof(connections[0]); c++) {
		for (size_t p = 0; p < 2; p++)
			for (int kind = OPS_SET; kind < OPS_MULTIGET; kind++)
				add_case(ops, (enum ops_kind)kind, &sizes[MAIN_SIZE], connections[c], pipelines[p]);
		add_case(ops, OPS_MULTIGET, &sizes[MAIN_SIZE], connections[c], 1);
	}
	for (size_t s = 0; s < SIZES; s++)
		for (size_t k = 0; s != MAIN_SIZE && k < 3; k++)
			add_case(ops, other_kinds[k], &sizes[s], 50, 1);
}

/* "get 257 B c50 x16"; the name of a row, where a server is given, else of its ratios. */
static void case_name(const struct ops_case *one, const char *server, char out[NAME_BYTES])
{
	char pipeline[16] = "";

	if (one->pipeline > 1)
		snprintf(pipeline, sizeof(pipeline), " x%u", one->pipeline);
	snprintf(out, NAME_BYTES, "%s %s c%u%s%s%s", kind_names[one->kind], one->size->name, one->connections, pipeline,
		 *server ? " " : "", server);
}

static uint64_t objects_of(const struct ops *ops, const struct ops_size *size)
{
	return bench_scaled(ops->bench, size->objects, 100);
}

static struct load_spec spec_of(const struct ops *ops, const struct ops_case *one, unsigned round)
{
	static const enum load_kind kinds[] = { LOAD_SET, LOAD_GET, LOAD_GET, LOAD_MIXED, LOAD_GET };

	return (struct load_spec){
		.kind = kinds[one->kind],
		.order = LOAD_UNIFORM,
		.first_key = one->size->first_key + (one->kind == OPS_MISS ? ABSENT : 0),
		.keys = objects_of(ops, one->size),
		.value_bytes = one->size->bytes,
		.set_share = SET_SHARE,
		.connections = one->connections,
		.pipeline = one->pipeline,
		.keys_per_get = one->kind == OPS_MULTIGET ? MULTIGET_KEYS : 1,
		.seconds = sample_seconds(ops->bench, CASE_SECONDS),
		.warmup_share = WARMUP_SHARE,
		.seed = round + 1,
		.cpu = ops->bench->options->load_cpu,
		.expect_misses = one->kind == OPS_MISS,
	};
}

/* ---- servers --------------------------------------------------------------------------------- */

/* Memcached's absence is noted, not an error: then there are no ratios. */
static int start_servers(struct ops *ops)
{
	static const enum server_kind kinds[SERVERS] = { SERVER_FLASHIELD, SERVER_MEMCACHED };
	int code = FS_OK;

	while (ops->started < SERVERS) {
		struct server_spec spec = { .kind = kinds[ops->started], .memory_mb = MEMORY_MB, .threads = 1 };

		code = server_start(&ops->servers[ops->started], ops->bench, &spec);
		if (code != FS_OK)
			break;
		ops->started++;
	}
	if (code == FS_ENOTFOUND && ops->started) {
		figures_note(ops->bench->figures, STUDY, "memcached (%s) is not here: nothing to compare with.",
			     ops->bench->options->memcached);
		code = FS_OK;
	}
	return code;
}

static int stop_servers(struct ops *ops, int code)
{
	while (ops->started) {
		int stopped = server_stop(&ops->servers[--ops->started]);

		code = code != FS_OK ? code : stopped;
	}
	return code;
}

static const char *name_of(const struct server *server)
{
	return server_names[server->spec.kind];
}

/* All objects of a size, once, and what memory they took. */
static int fill_size(struct ops *ops, struct server *server, const struct ops_size *size, struct ops_fill *fill)
{
	struct load_spec spec = {
		.kind = LOAD_SET,
		.order = LOAD_SEQUENTIAL,
		.first_key = size->first_key,
		.keys = objects_of(ops, size),
		.value_bytes = size->bytes,
		.connections = 8,
		.pipeline = 8,
		.keys_per_get = 1,
		.operations = objects_of(ops, size),
		.cpu = ops->bench->options->load_cpu,
	};
	uint64_t before = server_resident_bytes(server);
	struct load_result result;
	int code = load_run(&spec, server, &result);

	if (code == FS_OK && result.stored < result.operations)
		figures_note(ops->bench->figures, STUDY, "%s stored only %llu of %llu values of %s: %s",
			     name_of(server), (unsigned long long)result.stored, (unsigned long long)result.operations,
			     size->name, result.first_error);
	fill->objects = (double)result.stored;
	fill->bytes = (double)server_resident_bytes(server) - (double)before;
	load_result_fini(&result);
	return code;
}

static int fill(struct ops *ops)
{
	int code = FS_OK;

	/* The size of the memory figures first: what follows partly fits into what it left over. */
	for (unsigned s = 0; s < SIZES && code == FS_OK; s++) {
		unsigned size = (MAIN_SIZE + s) % SIZES;

		for (unsigned i = 0; i < ops->started && code == FS_OK; i++)
			code = fill_size(ops, &ops->servers[i], &sizes[size], &ops->fills[i][size]);
	}
	return code;
}

static void add_fills(const struct ops *ops)
{
	struct figures *figures = ops->bench->figures;
	char row[NAME_BYTES];

	for (unsigned s = 0; s < SIZES; s++)
		for (unsigned i = 0; i < ops->started; i++) {
			const struct ops_fill *fill = &ops->fills[i][s];
			double bytes = fill->bytes / fill->objects;

			if (!(fill->objects > 0))
				continue; /* broken off before */
			snprintf(row, sizeof(row), "fill %s %s", sizes[s].name, name_of(&ops->servers[i]));
			figures_add(figures, STUDY, row, "objects", fill->objects);
			figures_add(figures, STUDY, row, "dram_bytes", bytes);
			figures_add(figures, STUDY, row, "dram_overhead_bytes", bytes - sizes[s].bytes);
		}
}

/* ---- measuring ------------------------------------------------------------------------------- */

static int measure_case(struct ops *ops, const struct ops_case *one, unsigned round)
{
	struct figures *figures = ops->bench->figures;
	struct sample samples[SERVERS];
	char row[NAME_BYTES];
	int code = FS_OK;

	for (unsigned i = 0; i < ops->started && code == FS_OK; i++) {
		unsigned turn = round % 2 ? ops->started - 1 - i : i;
		struct server *server = &ops->servers[turn];
		struct load_spec spec = spec_of(ops, one, round);

		case_name(one, name_of(server), row);
		code = sample_load(ops->bench, STUDY, row, &spec, server, &samples[turn]);
	}
	if (code != FS_OK || ops->started < SERVERS)
		return code;
	case_name(one, "", row);
	sample_ratio(figures, STUDY, row, &samples[0], &samples[1]);
	return FS_OK;
}

static int measure(struct ops *ops)
{
	int code = FS_OK;

	for (unsigned round = 0; round < ops->bench->options->rounds; round++) {
		bench_progress(ops->bench, "ops: round %u of %u, %zu cases", round + 1, ops->bench->options->rounds,
			       ops->case_count);
		for (size_t i = 0; i < ops->case_count; i++) {
			code = measure_case(ops, &ops->cases[i], round);
			if (code != FS_OK || bench_interrupted())
				return code;
		}
	}
	return code;
}

/* ---- figures --------------------------------------------------------------------------------- */

static const char explanation[] =
	"Rows: operation, value size, cN: N connections, xN: N commands under way on each (else "
	"one). mget: of 100 keys. mixed: 90 % gets, 10 % sets. miss: keys that were never set. Keys "
	"have 30 B and are drawn uniformly; every object is in DRAM. Both servers: -t 1, -m 1024, ours "
	"without "
	"flash: with it a set clears slots and the classifier takes samples.\n"
	"CPU (user and kernel) and instructions are the server's per operation, of a multiget per "
	"key; latency is a command's. CPU wait: the server could have run but others did; where it "
	"isn't near 0, rate and latency are theirs. Ratios: flashield / memcached, within a round. "
	"fill: growth of resident memory per object stored, and what of it is not the value.";

static void describe(struct figures *figures)
{
	figures_study(figures, STUDY, "operations in DRAM, memcached beside", explanation);
	sample_columns(figures);
	figures_column(figures, "objects", "objects", 0);
	figures_column(figures, "dram_bytes", "DRAM B per object", 1);
	figures_column(figures, "dram_overhead_bytes", "beside the value", 1);
}

static void add_targets(struct figures *figures)
{
	static const struct {
		const char *measure, *row;
		double limit;
	} targets[] = {
		{ "server CPU per DRAM hit, against memcached", "get 257 B c50", 0.9 },
		{ "server CPU per set, against memcached", "set 257 B c50", 0.9 },
		{ "server CPU per miss, against memcached", "miss 257 B c50", 0.9 },
		{ "server CPU per multiget key, against memcached", "mget 257 B c50", 0.9 },
		{ "server CPU per DRAM hit, 16 pipelined, against memcached", "get 257 B c50 x16", 0.4 },
		{ "server CPU per set, 16 pipelined, against memcached", "set 257 B c50 x16", 0.4 },
		{ "server CPU per miss, 16 pipelined, against memcached", "miss 257 B c50 x16", 0.4 },
	};

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		figures_target(figures, targets[i].measure, figures_median(figures, STUDY, targets[i].row, "cpu_ratio"),
			       FIGURES_AT_MOST, targets[i].limit, "x");
}

int study_ops(struct bench *bench)
{
	struct ops ops = { .bench = bench };
	int code;

	describe(bench->figures);
	make_cases(&ops);
	code = start_servers(&ops);
	if (code == FS_OK)
		code = fill(&ops);
	if (code == FS_OK)
		code = measure(&ops);
	add_fills(&ops);
	add_targets(bench->figures);
	return stop_servers(&ops, code);
}
