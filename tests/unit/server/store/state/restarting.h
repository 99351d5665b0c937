/* SPDX-License-Identifier: BSD-3-Clause */
/* A store with flash and a state directory, stopped cleanly and started again: what the tests of restarts share. One thread. */
#ifndef FS_TESTS_RESTARTING_H
#define FS_TESTS_RESTARTING_H

#include "server/store/state/restart.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/store/state/recount.h"
#include "tests/unit/server/store/harness.h"

#define SUPER_AREA (64u << 10) /* of the flash: both copies of the superblock */
#define MINUTE_US 60000000ull
#define OBJECTS 40
#define KEY_BYTES 24
#define RESTART_TEST(name) cmocka_unit_test_setup_teardown(name, setup_folder, teardown_folder)

static char folder[100], state_path[200];

static inline int setup_folder(void **state)
{
	struct harness *h;

	assert_int_equal(setup(state), 0);
	h = *state;
	snprintf(folder, sizeof(folder), "%.60s/restart-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(folder));
	snprintf(state_path, sizeof(state_path), "%s/%.80s.state", folder, strrchr(h->path, '/') + 1);
	h->config.state_dir = folder;
	h->config.restart_max_downtime_us = MINUTE_US;
	h->config.boot_id = "one boot";
	return 0;
}

static inline int teardown_folder(void **state)
{
	int result = teardown(state);
	char command[200];

	unlink(state_path);
	snprintf(command, sizeof(command), "rm -f '%s'/instance-*", folder);
	if (system(command) != 0) /* NOLINT: the name is ours */
		return -1;
	return rmdir(folder) == 0 ? result : -1;
}

/* ---- stop and start -------------------------------------------------------------------------- */

static inline void stop_cleanly(struct harness *h)
{
	assert_true(store_save(h->store));
	harness_close(h);
	assert_int_equal(access(state_path, F_OK), 0);
}

static inline enum store_start start_again(struct harness *h)
{
	struct store_status status;

	harness_open(h);
	store_get_status(h->store, &status);
	assert_string_equal(status.start_word, store_start_word(h->store->start));
	if (h->store->start == STORE_START_WARM)
		assert_string_equal(status.start_text, "warm");
	else
		assert_int_equal(status.index.used + status.index.extents_used + status.segments.live, 0);
	return h->store->start;
}

/* All objects are counted, as they are some time after a warm start. */
static inline void await_counts(struct harness *h)
{
	recount_finish(h->store);
	assert_true(fidx_verify(h->store->index));
}

static inline void restart(struct harness *h)
{
	stop_cleanly(h);
	assert_int_equal(start_again(h), STORE_START_WARM);
	await_counts(h);
}

#define assert_cold(h, why) \
	do { \
		assert_int_equal(start_again(h), STORE_START_##why); \
		assert_missing(h, "key"); \
		set_on_flash(h, "key", "new"); \
		assert_value(h, "key", "new"); \
	} while (0)

static inline void key_number(char key[KEY_BYTES], int n)
{
	snprintf(key, KEY_BYTES, "object-%d", n);
}

static inline void fill(struct harness *h)
{
	char key[KEY_BYTES];

	for (int n = 0; n < OBJECTS; n++) {
		key_number(key, n);
		set(h, key, key);
	}
	for (int n = 0; n < OBJECTS; n++) {
		key_number(key, n);
		if (where(h, key) != FLASH)
			move(h, key);
	}
}

static inline void assert_filled(struct harness *h)
{
	char key[KEY_BYTES];

	for (int n = 0; n < OBJECTS; n++) {
		struct reply reply;

		key_number(key, n);
		reply = get(h, key);
		assert_int_equal(reply.result, STORE_HIT);
		assert_true(reply.from_flash);
		assert_string_equal(reply.value, key);
	}
}

/* A run with an object on flash, that ends cleanly. */
static inline void one_run(struct harness *h)
{
	harness_open(h);
	set_on_flash(h, "key", "value");
	stop_cleanly(h);
}

#endif
