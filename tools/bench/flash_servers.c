/* SPDX-License-Identifier: BSD-3-Clause */
/* The servers of the study "flash": how they are started, and what is stored in them. */
#include "tools/bench/flash_part.h"

#define MEMORY_MB 64
#define FLASH_BYTES (2ull << 30)
#define DRAM_FLASH_BYTES (256ull << 20) /* of the one whose objects all stay in DRAM */

const char *const flash_names[CONTENDERS] = { "flashield", "flashield DRAM", "extstore", "extstore 16 threads",
					      "raw reads" };

/* ---- storing --------------------------------------------------------------------------------- */

static int fill_dram(struct flash *flash)
{
	uint64_t keys = bench_scaled(flash->bench, flash->size->dram_keys, 100);
	struct load_spec spec = flash_fill_spec(flash->bench, flash->size, LOAD_SET, 0, keys);
	struct load_result result;
	int rc = load_run(&spec, &flash->servers[DRAM], &result);

	flash->ranges[DRAM] = (struct flash_range){ 0, keys };
	load_result_fini(&result);
	return rc;
}

static int fill(struct flash *flash, enum contender who)
{
	int rc;

	bench_progress(flash->bench, "flash: %s, filling %s", flash->size->name, flash_names[who]);
	if (who == DRAM)
		return fill_dram(flash);
	rc = flash_fill(flash->bench, &flash->servers[who], flash->size, &flash->ranges[who]);
	if (rc != FS_OK || flash->ranges[who].keys > 0)
		return rc;
	figures_note(flash->bench->figures, FLASH_STUDY, "%s: no keys of %s lie on its flash: not measured.",
		     flash->size->name, flash_names[who]);
	flash->runs[who] = false;
	return server_stop(&flash->servers[who]);
}

/* ---- starting and stopping ------------------------------------------------------------------- */

static int start(struct flash *flash, enum contender who)
{
	/* What is read once after it is set goes to flash, all else stays: the load says what lies where.
	 */
	static const char *const ours[] = { "--admission", "read-once", NULL };
	/* By default extstore moves memory from values to the headers of values on flash only after half a
	   minute of pressure: until then 64 MiB hold 17,000 objects on flash, with this 550,000. */
	static const char *const one[] = { "-o", "slab_automove=2", NULL };
	static const char *const threaded[] = { "-o", "slab_automove=2,ext_threads=16", NULL };
	static const char *const *const extra[SERVERS] = { ours, ours, one, threaded };
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
	figures_note(flash->bench->figures, FLASH_STUDY, "memcached (%s) is not here: nothing to compare with.",
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
