/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/flash_fill.h"

#include "base/alloc.h"
#include "tools/bench/flash_part.h"

#define OUR_BYTES_PER_SECOND 40e6 /* stored, so that the cleaner keeps up, which shares the CPU */
#define ITEM_EXTRA_BYTES 90 /* a key, a header */
#define CYCLES_LEAST 10 /* what the last few have stored is partly still in DRAM */
#define FIRST_FILLER 1000000000ull
#define CONNECTIONS 8
#define PIPELINE 8
#define PROBES 400 /* gets per cycle */
#define SHARE_WANTED 0.995 /* by the probes: what is measured then stays above FLASH_SHARE_LEAST */

/* ---- storing --------------------------------------------------------------------------------- */

struct load_spec flash_fill_spec(const struct bench *bench, const struct flash_size *size, enum load_kind kind,
				 uint64_t first_key, uint64_t keys)
{
	return (struct load_spec){
		.kind = kind,
		.order = LOAD_SEQUENTIAL,
		.first_key = first_key,
		.keys = keys,
		.value_bytes = size->value_bytes,
		.connections = CONNECTIONS,
		.pipeline = PIPELINE,
		.operations = kind == LOAD_SET_GET ? 2 * keys : keys,
		.cpu = bench->options->load_cpu,
	};
}

static int run(const struct load_spec *spec, struct server *server)
{
	struct load_result result;
	int rc = load_run(spec, server, &result);

	load_result_fini(&result);
	return rc;
}

static int fill_cycle(const struct bench *bench, struct server *server, const struct flash_size *size, unsigned cycle)
{
	struct load_spec wanted = flash_fill_spec(bench, size, LOAD_SET_GET, cycle * size->wanted, size->wanted);
	struct load_spec filler =
		flash_fill_spec(bench, size, LOAD_SET, FIRST_FILLER + cycle * size->filler, size->filler);
	int rc;

	if (server->spec.kind == SERVER_FLASHIELD) {
		filler.rate = OUR_BYTES_PER_SECOND / (size->value_bytes + ITEM_EXTRA_BYTES);
		wanted.rate = 2 * filler.rate;
	}
	rc = run(&wanted, server);
	return rc == FS_OK ? run(&filler, server) : rc;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Of some keys of a cycle, how many are there and on flash. */
static int probe(const struct bench *bench, struct server *server, const struct flash_size *size, unsigned cycle,
		 double *share)
{
	struct load_spec spec = flash_fill_spec(bench, size, LOAD_GET, cycle * size->wanted, size->wanted);
	struct flash_counts before, after, counts;
	int rc;

	spec.order = LOAD_UNIFORM;
	spec.operations = PROBES;
	spec.seed = cycle;
	flash_count(server, &before);
	rc = run(&spec, server);
	flash_count(server, &after);
	flash_difference(&before, &after, &counts);
	*share = counts.flash_hits / PROBES;
	return rc;
}

/* The longest run of cycles whose mean share is enough, the later one of equals. */
static void longest_run(const double *shares, unsigned cycles, unsigned *first, unsigned *length)
{
	*first = *length = 0;
	for (unsigned from = 0; from < cycles; from++) {
		double sum = 0;

		for (unsigned to = from; to < cycles; to++) {
			unsigned count = to - from + 1;

			sum += shares[to];
			if (sum >= SHARE_WANTED * count && count >= *length) {
				*first = from;
				*length = count;
			}
		}
	}
}

int flash_fill(const struct bench *bench, struct server *server, const struct flash_size *size,
	       struct flash_range *range)
{
	unsigned cycles = (unsigned)bench_scaled(bench, size->cycles, CYCLES_LEAST), first, length;
	double *shares = mem_must_zalloc(cycles * sizeof(*shares));
	int rc = FS_OK;

	for (unsigned i = 0; i < cycles && rc == FS_OK; i++)
		rc = fill_cycle(bench, server, size, i);
	for (unsigned i = 0; i < cycles && rc == FS_OK; i++)
		rc = probe(bench, server, size, i, &shares[i]);
	longest_run(shares, cycles, &first, &length);
	mem_free(shares);
	*range = (struct flash_range){ first * size->wanted, length * size->wanted };
	return rc;
}
