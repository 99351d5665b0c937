/* SPDX-License-Identifier: BSD-3-Clause */
/* A store with a state directory, stopped cleanly and started again; for the tests of saved objects. */
#ifndef FS_TESTS_SAVING_H
#define FS_TESTS_SAVING_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/store/cleaner/saved_items.h"
#include "tests/unit/server/store/harness.h"

#define MINUTE_US 60000000ull
#define NEVER_US UINT64_MAX

static char folder[100], items_path[200];

static inline void name_items(const char *name)
{
	snprintf(items_path, sizeof(items_path), "%s/%.80s.items", folder, name);
}

static inline int setup_folder(void **state)
{
	struct harness *h;

	assert_int_equal(setup(state), 0);
	h = *state;
	snprintf(folder, sizeof(folder), "%.60s/items-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(folder));
	name_items(strrchr(h->path, '/') + 1);
	h->config.state_dir = folder;
	h->config.restart_max_downtime_us = MINUTE_US;
	h->config.boot_id = "one boot";
	return 0;
}

/* A cache in DRAM alone. */
static inline int setup_dram(void **state)
{
	struct harness *h;

	assert_int_equal(setup_folder(state), 0);
	h = *state;
	h->config.flash_path = NULL;
	name_items("dram");
	return 0;
}

static inline int teardown_folder(void **state)
{
	struct harness *h = *state;
	char path[300];
	int result;

	snprintf(path, sizeof(path), "%s/%.80s.state", folder, strrchr(h->path, '/') + 1);
	result = teardown(state);
	unlink(path);
	unlink(items_path);
	return rmdir(folder) == 0 ? result : -1;
}

/* All that a daemon does at its end. */
static inline bool save(struct harness *h, const struct store_end *end)
{
	bool saved = store_save_items(h->store, end);

	(void)store_save(h->store);
	harness_close(h);
	return saved;
}

static inline void stop_cleanly(struct harness *h)
{
	assert_true(save(h, &(struct store_end){ .deadline_us = NEVER_US }));
	assert_int_equal(access(items_path, F_OK), 0);
}

static inline struct loader_figures figures(struct harness *h)
{
	struct loader_figures out;

	loader_get_figures(h->store, &out);
	return out;
}

/* Starts; nothing is loaded yet. */
static inline enum saved_start start_again(struct harness *h)
{
	harness_open(h);
	assert_int_not_equal(access(items_path, F_OK), 0); /* before the first command */
	return figures(h).start;
}

static inline void load_all(struct harness *h)
{
	while (loader_step(h->store))
		;
	assert_false(figures(h).loading);
	assert_null(atomic_load(&h->store->changed));
	assert_int_equal(atomic_load(&h->store->loader_bytes), 0);
}

static inline void restart(struct harness *h)
{
	stop_cleanly(h);
	assert_int_equal(start_again(h), SAVED_START_WARM);
	load_all(h);
}

static inline void key_number(char key[24], int n)
{
	snprintf(key, 24, "object-%d", n);
}

static inline void set_bytes(struct harness *h, const char *key, uint32_t length)
{
	static char value[64 << 10];

	memset(value, 'v', sizeof(value));
	assert_int_equal(run_full(h, .op = STORE_SET, .key = key, .value = value, .length = length).result,
			 STORE_STORED);
}

#endif
