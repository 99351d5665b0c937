/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/server/store/state/journal_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"

const uint8_t WORLD_UUID[16] = "a flash's uuid!";

static void times(void *context, uint64_t *wall_s, uint64_t *store_s)
{
	const struct world *w = context;

	*wall_s = w->wall_s;
	*store_s = w->store_s;
}

static void advanced(void *context)
{
	((struct world *)context)->advances++;
}

static void wake(void *context)
{
	((struct world *)context)->wakes++;
}

static void resized(void *context, int64_t bytes)
{
	((struct world *)context)->more_bytes += bytes;
}

static void on_event(struct ram_journal *medium)
{
	struct world *w = (struct world *)medium;

	if (w->during_sync) {
		uint64_t (*call)(struct world *, uint64_t, uint32_t) = w->during_sync;

		w->during_sync = NULL;
		call(w, 6, 0);
	}
}

int world_try_create(struct world *w, struct journal **out)
{
	struct journal_config config = { .medium = &w->medium.medium,
					 .epoch = ++w->epoch,
					 .clock = &w->clk,
					 .times = times,
					 .advanced = advanced,
					 .wake = wake,
					 .resized = resized,
					 .context = w,
					 .file_bytes = WORLD_FILE_BYTES,
					 .most_bytes = WORLD_MOST_BYTES };
	struct journal_found found = { .highest = 0 };
	int result;

	memcpy(config.uuid, WORLD_UUID, sizeof(WORLD_UUID));
	assert_int_equal(journal_state_init(&found.state, WORLD_SEGMENTS), FS_OK);
	result = journal_create(out, &config, &found);
	journal_found_fini(&found);
	return result;
}

void world_open(struct world *w)
{
	assert_int_equal(world_try_create(w, &w->journal), FS_OK);
}

void world_close(struct world *w)
{
	journal_destroy(w->journal);
	w->journal = NULL;
}

static void see(void *context, const struct journal_entry *entry)
{
	struct world *w = context;

	w->seen++;
	if (entry->kind == JOURNAL_DEAD && entry->value < 256)
		w->seen_of[entry->value]++;
}

int world_read(struct world *w)
{
	int result;

	if (w->has_found)
		journal_found_fini(&w->found);
	w->seen = 0;
	memset(w->seen_of, 0, sizeof(w->seen_of));
	result = journal_read(&w->medium.medium, WORLD_UUID, WORLD_SEGMENTS, see, w, &w->found);
	w->has_found = result == FS_OK;
	return result;
}

int world_setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	log_set_level(LOG_LEVEL_ERROR);
	ram_journal_init(&w->medium);
	w->medium.on_event = on_event;
	clk_scripted_init(&w->clk, 1000000);
	w->wall_s = 1700000000;
	w->store_s = 1000;
	world_open(w);
	*state = w;
	return 0;
}

int world_teardown(void **state)
{
	struct world *w = *state;

	world_close(w);
	if (w->has_found)
		journal_found_fini(&w->found);
	ram_journal_fini(&w->medium);
	free(w);
	return 0;
}
