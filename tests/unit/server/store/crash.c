/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/server/store/crash.h"

static int64_t wall_s;

static int64_t wall(void)
{
	return wall_s;
}

void crash_wall_advance(int64_t seconds)
{
	wall_s += seconds;
}

enum store_start crash_open(struct crash *c)
{
	c->h.ram = ram_device_create(c->h.config.flash_bytes, c->memory);
	c->h.ram->keep = true;
	c->h.config.flash_device = &c->h.ram->dev;
	assert_int_equal(harness_try_open(&c->h), FS_OK);
	harness_workers(&c->h, WORKERS);
	if (!c->h.serves_nobody)
		store_serves(c->h.store);
	return c->h.store->start;
}

void crash_down(struct crash *c)
{
	harness_close(&c->h);
}

enum store_start crash(struct crash *c)
{
	crash_down(c);
	return crash_open(c);
}

void crash_rebuild(struct crash *c)
{
	for (int i = 0; i < 100 && c->h.store->rebuild; i++)
		assert_true(cleaner_step(c->h.store));
	assert_null(c->h.store->rebuild);
	assert_true(fidx_verify(c->h.store->index));
}

int crash_setup(void **state)
{
	static struct crash c;

	memset(&c, 0, sizeof(c));
	wall_s = 1700000000;
	harness_init(&c.h);
	ram_journal_init(&c.journal);
	c.memory = ram_memory(c.h.config.flash_bytes);
	c.h.config.journal = true;
	c.h.config.journal_medium = &c.journal.medium;
	c.h.config.wall_seconds = wall;
	c.h.config.state_dir = "/nowhere";
	c.h.config.restart_max_downtime_us = 60000000;
	c.h.config.boot_id = "boot";
	assert_int_equal(crash_open(&c), STORE_START_NEW);
	*state = &c;
	return 0;
}

int crash_teardown(void **state)
{
	struct crash *c = *state;

	harness_fini(&c->h);
	ram_journal_fini(&c->journal);
	mem_free(c->memory);
	return 0;
}
