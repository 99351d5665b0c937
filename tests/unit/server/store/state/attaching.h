/* SPDX-License-Identifier: BSD-3-Clause */
/* A store with a region, killed and started again: what the tests of attaching share. A child opens the store, works, and
   ends by SIGKILL; the next process attaches to its region. One thread. */
#ifndef FS_TESTS_ATTACHING_H
#define FS_TESTS_ATTACHING_H

#include "server/store/state/attach.h"

#include <unistd.h>

#include "server/store/state/recount.h"
#include "tests/unit/server/store/killed_child.h"

#define MINUTE_US 60000000ull
#define OBJECTS 40
#define KEY_BYTES 24
#define LARGE 3000 /* has an extent */

static char folder[100], region_path[200], state_folder[100];

static inline int setup_folder(void **state)
{
	struct harness *h;

	assert_int_equal(setup(state), 0);
	h = *state;
	snprintf(folder, sizeof(folder), "/dev/shm/flashield-attach-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(state_folder, sizeof(state_folder), "%.40s/flashield-state-XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(state_folder));
	snprintf(region_path, sizeof(region_path), "%s/%.80s.region", folder, strrchr(h->path, '/') + 1);
	h->config.region_dir = folder;
	h->config.restart_max_downtime_us = MINUTE_US;
	h->config.boot_id = "one boot";
	return 0;
}

static inline int teardown_folder(void **state)
{
	struct harness *h = *state;
	char path[200];

	snprintf(path, sizeof(path), "%s/%.80s.state", state_folder, strrchr(h->path, '/') + 1);
	unlink(path);
	unlink(region_path);
	fault_disarm_all();
	return teardown(state) == 0 && rmdir(folder) == 0 && rmdir(state_folder) == 0 ? 0 : -1;
}

/* ---- kill and start -------------------------------------------------------------------------- */

static inline enum store_start start_again(struct harness *h)
{
	struct store_status status;

	harness_open(h);
	store_get_status(h->store, &status);
	assert_string_equal(status.start_word, store_start_word(h->store->start));
	assert_true(fidx_verify(h->store->index));
	if (!restart_is_warm(h->store))
		assert_int_equal(status.index.used + status.index.extents_used + status.segments.live, 0);
	return h->store->start;
}

#define assert_start(h, how) assert_string_equal(store_start_word(start_again(h)), store_start_word(STORE_START_##how))

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

static inline void open_and_fill(struct harness *h)
{
	harness_open(h);
	fill(h);
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

#define assert_cold(h, why) \
	do { \
		assert_start(h, why); \
		assert_missing(h, "object-0"); \
		set_on_flash(h, "key", "new"); \
		assert_value(h, "key", "new"); \
		harness_close(h); \
	} while (0)

static inline void only_open(struct harness *h)
{
	harness_open(h);
}

#define ATTACH_TEST(name) cmocka_unit_test_setup_teardown(name, setup_folder, teardown_folder)

#endif
