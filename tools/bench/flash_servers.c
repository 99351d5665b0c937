/* SPDX-License-Identifier: BSD-3-Clause */
/* The servers of the study "flash": how they are started, objects that lie on their flash, and which do. */
#include "base/alloc.h"
#include "tools/bench/flash_part.h"

#define MEMORY_MB 64
#define FLASH_BYTES (2ull << 30)
#define DRAM_FLASH_BYTES (256ull << 20) /* of the one whose objects all stay in DRAM */
#define OUR_BYTES_PER_SECOND 40e6       /* stored, so that the cleaner keeps up, which shares the CPU */
#define ITEM_EXTRA_BYTES 90             /* a key, a header */
#define CYCLES_LEAST 10                 /* what the last few have stored is partly still in DRAM */
#define FIRST_FILLER 1000000000ull
#define CONNECTIONS 8
#define PIPELINE 8
#define PROBES 400         /* gets per cycle */
#define SHARE_WANTED 0.995 /* by the probes: what is measured then stays above FLASH_SHARE_LEAST */

const char *const flash_names[CONTENDERS] = {"flashield", "flashield DRAM", "extstore",
					     "extstore 16 threads", "raw reads"};

static unsigned cycles_of(const struct flash *flash)
{
	return (unsigned)bench_scaled(flash->bench, flash->size->cycles, CYCLES_LEAST);
}

/* ---- storing --------------------------------------------------------------------------------- */

static struct load_spec fill_spec(const struct flash *flash, enum load_kind kind, uint64_t first_key,
				  uint64_t keys)
{
	return (struct load_spec){
		.kind = kind,
		.order = LOAD_SEQUENTIAL,
		.first_key = first_key,
		.keys = keys,
		.value_bytes = flash->size->value_bytes,
		.connections = CONNECTIONS,
		.pipeline = PIPELINE,
		.operations = kind == LOAD_SET_GET ? 2 * keys : keys,
		.cpu = flash->bench->options->load_cpu,
	};
}

static int run(const struct load_spec *spec, struct server *server)
{
	struct load_result result;
	int rc = load_run(spec, server, &result);

	load_result_fini(&result);
	return rc;
}

static int fill_dram(struct flash *flash)
{
	uint64_t keys = bench_scaled(flash->bench, flash->size->dram_keys, 100);
	struct load_spec spec = fill_spec(flash, LOAD_SET, 0, keys);

	flash->ranges[DRAM] = (struct flash_range){0, keys};
	return run(&spec, &flash->servers[DRAM]);
}

static int fill_flash(struct flash *flash, enum contender who)
{
	const struct flash_size *size = flash->size;
	double sets_per_second =
		who == OURS ? OUR_BYTES_PER_SECOND / (size->value_bytes + ITEM_EXTRA_BYTES) : 0;
	int rc = FS_OK;

	for (unsigned i = 0; i < cycles_of(flash) && rc == FS_OK; i++) {
		struct load_spec wanted = fill_spec(flash, LOAD_SET_GET, i * size->wanted, size->wanted);
		struct load_spec filler =
			fill_spec(flash, LOAD_SET, FIRST_FILLER + i * size->filler, size->filler);

		wanted.rate = 2 * sets_per_second;
		filler.rate = sets_per_second;
		rc = run(&wanted, &flash->servers[who]);
		if (rc == FS_OK)
			rc = run(&filler, &flash->servers[who]);
	}
	return rc;
}

/* ---- finding --------------------------------------------------------------------------------- */

/* Of some keys of a cycle, how many are there and on flash. */
static int probe(struct flash *flash, enum contender who, unsigned cycle, double *share)
{
	const struct flash_size *size = flash->size;
	struct load_spec spec = {
		.kind = LOAD_GET,
		.order = LOAD_UNIFORM,
		.first_key = cycle * size->wanted,
		.keys = size->wanted,
		.value_bytes = size->value_bytes,
		.connections = CONNECTIONS,
		.pipeline = PIPELINE,
		.operations = PROBES,
		.seed = cycle,
		.cpu = flash->bench->options->load_cpu,
	};
	struct server *server = &flash->servers[who];
	struct flash_counts before, after, counts;
	struct load_result result;
	int rc;

	flash_count(server, &before);
	rc = load_run(&spec, server, &result);
	flash_count(server, &after);
	flash_difference(&before, &after, &counts);
	*share = counts.flash_hits / PROBES;
	load_result_fini(&result);
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

static int find_range(struct flash *flash, enum contender who)
{
	unsigned cycles = cycles_of(flash), first, length;
	double *shares = mem_must_zalloc(cycles * sizeof(*shares));
	int rc = FS_OK;

	for (unsigned i = 0; i < cycles && rc == FS_OK; i++)
		rc = probe(flash, who, i, &shares[i]);
	longest_run(shares, cycles, &first, &length);
	mem_free(shares);
	flash->ranges[who] =
		(struct flash_range){first * flash->size->wanted, length * flash->size->wanted};
	return rc;
}

static int fill(struct flash *flash, enum contender who)
{
	int rc;

	bench_progress(flash->bench, "flash: %s, filling %s", flash->size->name, flash_names[who]);
	if (who == DRAM)
		return fill_dram(flash);
	rc = fill_flash(flash, who);
	if (rc == FS_OK)
		rc = find_range(flash, who);
	if (rc != FS_OK || flash->ranges[who].keys > 0)
		return rc;
	figures_note(flash->bench->figures, FLASH_STUDY,
		     "%s: no keys of %s lie on its flash: not measured.", flash->size->name,
		     flash_names[who]);
	flash->runs[who] = false;
	return server_stop(&flash->servers[who]);
}

/* ---- starting and stopping ------------------------------------------------------------------- */

static int start(struct flash *flash, enum contender who)
{
	/* What is read once after it is set goes to flash, all else stays: the load says what lies where.
	 */
	static const char *const ours[] = {"--admission", "read-once", NULL};
	/* By default extstore moves memory from values to the headers of values on flash only after half a
	   minute of pressure: until then 64 MiB hold 17,000 objects on flash, with this 550,000. */
	static const char *const one[] = {"-o", "slab_automove=2", NULL};
	static const char *const threaded[] = {"-o", "slab_automove=2,ext_threads=16", NULL};
	static const char *const *const extra[SERVERS] = {ours, ours, one, threaded};
	struct server_spec spec = {
		.kind = who <= DRAM ? SERVER_FLASHIELD : SERVER_EXTSTORE,
		.memory_mb = MEMORY_MB,
		.threads = 1,
		.flash_bytes = who == DRAM ? DRAM_FLASH_BYTES : FLASH_BYTES,
		.extra = extra[who],
	};
	int rc = server_start(&flash->servers[who], flash->bench, &spec);

	flash->runs[who] = rc == FS_OK;
	if (rc != FS_ENOTFOUND || who <= DRAM)
		return rc;
	figures_note(flash->bench->figures, FLASH_STUDY,
		     "memcached (%s) is not here: nothing to compare with.",
		     flash->bench->options->memcached);
	return FS_OK;
}

int flash_start(struct flash *flash)
{
	int rc = FS_OK;

	for (int who = 0; who < SERVERS && rc == FS_OK; who++) {
		rc = start(flash, (enum contender)who);
		if (rc == FS_OK && flash->runs[who])
			rc = fill(flash, (enum contender)who);
	}
	return rc;
}

int flash_stop(struct flash *flash, int rc)
{
	for (int who = 0; who < SERVERS; who++) {
		int stopped = flash->runs[who] ? server_stop(&flash->servers[who]) : FS_OK;

		flash->runs[who] = false;
		rc = rc != FS_OK ? rc : stopped;
	}
	return rc;
}
