/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/last_run.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/store/cleaner/saved_items.h"
#include "server/store/outlook.h"
#include "tests/fuzz/fixed.h"
#include "tests/unit/devices/ram_device.h"

#define START_US 5000000000ull
#define DOWNTIME_US 60000000ull
#define WALL_SECONDS 1800000000
#define WAIT_MS 20000
#define EVERY_GROUP ((1u << GROUPS) - 1)
#define FILLER_BYTES 900u
#define VALUE_MOST 8000u
#define VERSIONS 3 /* the last one is of this run */
#define FILES 4u /* in last_run.left, before those of the journal */
#define ROOM 4096u /* of a file, to grow by */
#define NAME "flash"

static char folder[64], state_path[100], items_path[100], region_path[100];

/* ---- files ----------------------------------------------------------------------------------- */

static void remove_folder(void)
{
	char command[120];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder);
	if (system(command) != 0) /* NOLINT: the name is ours */
		fprintf(stderr, "%s is left\n", folder);
}

static bool make_folder(void)
{
	snprintf(folder, sizeof(folder), "/dev/shm/flashield-fuzz-XXXXXX");
	if (!mkdtemp(folder))
		return false;
	atexit(remove_folder);
	snprintf(state_path, sizeof(state_path), "%s/" NAME ".state", folder);
	snprintf(items_path, sizeof(items_path), "%s/" NAME ".items", folder);
	snprintf(region_path, sizeof(region_path), "%s/" NAME ".region", folder);
	return true;
}

static void require_unchanged(const char *path, const struct damaged *file)
{
	struct damaged now = damaged_read(path, ROOM);

	require(!damaged_differs(&now, file));
	free(now.bytes);
}

/* The medium takes whole sectors; what is left of one may have any length. */
static void write_journal(struct last_run *run)
{
	struct journal_medium *medium = &run->medium.medium;

	ram_journal_fini(&run->medium);
	ram_journal_init(&run->medium);
	for (unsigned i = 0; i < run->journals; i++) {
		const struct damaged *file = &run->journal[i];
		uint32_t number = run->journal_number[i];
		uint64_t padding = -file->length % RAM_SECTOR;
		struct ram_file *written;

		require(padding <= file->room - file->length);
		memset(file->bytes + file->length, 0, padding);
		require(medium->create(medium, number) == 0 &&
			medium->write(medium, number, file->bytes, file->length + padding, 0) == 0 &&
			medium->sync(medium, number) == 0);
		written = ram_journal_file(&run->medium, number);
		written->length = written->durable_length = file->length;
	}
}

static void read_journal(struct last_run *run)
{
	for (uint32_t number = 1; number < 100 && run->journals < LAST_RUN_JOURNALS; number++) {
		const struct ram_file *file = ram_journal_file(&run->medium, number);

		if (!file)
			continue;
		run->journal[run->journals] =
			damaged_copy(file->bytes, file->length, (file->length / RAM_SECTOR + 9) * RAM_SECTOR);
		run->journal_number[run->journals++] = number;
	}
}

/* The fields of a run that a target may change. */
static struct damaged *file_of(struct last_run *run, unsigned i)
{
	struct damaged *const files[FILES] = { &run->flash, &run->state, &run->items, &run->region };

	return i < FILES ? files[i] : &run->journal[i - FILES];
}

/* ---- commands -------------------------------------------------------------------------------- */

static void on_done(struct store_request *request)
{
	*(bool *)request->owner = true;
}

static void wait_for_store(struct last_run *run)
{
	struct store_worker_fds fds = store_worker_fds(run->worker);
	struct pollfd poll_fds[2] = { { .fd = fds.completions, .events = POLLIN },
				      { .fd = fds.timer, .events = POLLIN } };
	eventfd_t events;

	store_worker_flush(run->worker);
	if (store_worker_has_work(run->worker))
		return;
	require(poll(poll_fds, 2, WAIT_MS) > 0);
	if (poll_fds[0].revents & POLLIN)
		require(eventfd_read(fds.completions, &events) == 0);
}

static void execute(struct last_run *run, struct store_request *request, const char *key)
{
	bool done = false;

	request->key = key;
	request->key_length = (uint8_t)strlen(key);
	request->hash = store_hash(run->store, key, request->key_length);
	request->done = on_done;
	request->owner = &done;
	store_worker_turn(run->worker);
	if (store_execute(run->worker, request))
		return;
	while (!done) {
		store_worker_turn(run->worker);
		wait_for_store(run);
		store_worker_poll(run->worker);
	}
}

static void set(struct last_run *run, const char *key, const char *value, uint32_t length, int64_t exptime)
{
	struct store_request request = { .op = STORE_SET };
	enum store_result why;

	request.item =
		store_item_create(run->worker, key, strlen(key), 7, store_expiry(run->store, exptime), length, &why);
	require(request.item);
	memcpy(store_item_value(request.item), value, length);
	execute(run, &request, key);
	require(request.result == STORE_STORED);
}

static void key_of(unsigned number, char out[16])
{
	snprintf(out, 16, "key%u", number);
}

/* Lengths of all kinds: records of one page and of more, and extents. Returns the length. */
static uint32_t value_of(unsigned key, unsigned version, char out[VALUE_MOST])
{
	static const uint32_t lengths[8] = { 1, 5, 40, 100, 300, 900, 1500, 5000 };
	uint32_t length = lengths[key % 8] + version;

	for (uint32_t i = 0; i < length; i++)
		out[i] = (char)(key * 31 + version * 7 + i);
	return length;
}

static void set_version(struct last_run *run, unsigned number, unsigned version)
{
	char key[16], value[VALUE_MOST];

	key_of(number, key);
	set(run, key, value, value_of(number, version, value), number % 5 == 0 ? 1000 : 0);
	run->version[number] = (int8_t)version;
}

static void delete_key(struct last_run *run, unsigned number)
{
	struct store_request request = { .op = STORE_DELETE };
	char key[16];

	key_of(number, key);
	execute(run, &request, key);
	run->version[number] = 0;
}

/* Returns the version of the key that a get answers; 0: it isn't there. */
static unsigned get_version(struct last_run *run, unsigned number)
{
	struct store_request request = { .op = STORE_GET };
	char key[16], value[VALUE_MOST];
	unsigned version = VERSIONS;

	key_of(number, key);
	execute(run, &request, key);
	if (request.result != STORE_HIT)
		return 0;
	while (version > 0 && (value_of(number, version, value) != request.value.length ||
			       memcmp(value, request.value.data, request.value.length) != 0))
		version--;
	require(version > 0 || run->any);
	store_value_release(run->worker, &request.value);
	return version ? version : 1;
}

/* So that what was read is not alone: a segment is written when there are candidates for two. */
static void write_one(struct last_run *run)
{
	static const char value[FILLER_BYTES];
	char key[16];

	for (unsigned n = 0; candidate_total(run->store) < 2 * LAST_RUN_SEGMENT_BYTES && n < 400; n++) {
		snprintf(key, sizeof(key), "filler%u", run->fillers++);
		set(run, key, value, sizeof(value), 0);
	}
	(void)write_segment(run->store, EVERY_GROUP);
}

/* ---- the run that is over -------------------------------------------------------------------- */

static int64_t wall_seconds(void)
{
	return WALL_SECONDS;
}

static void configure(struct last_run *run)
{
	struct store_config *config = &run->config;

	store_config_init(config);
	config->clock = &run->clk;
	config->memory_bytes = 2 << 20;
	config->seed = 4711;
	config->flash_path = NAME;
	config->flash_bytes = LAST_RUN_FLASH_BYTES;
	config->segment_bytes = LAST_RUN_SEGMENT_BYTES;
	config->flash_object_bytes = 400;
	config->admission = CLF_ADMIT_ALL;
	config->unwatched = true;
	config->boot_id = "boot";
	config->restart_max_downtime_us = DOWNTIME_US;
	config->wall_seconds = wall_seconds;
	config->state_dir = run->way == WAS_KILLED ? NULL : folder;
	config->region_dir = run->way == WAS_KILLED ? folder : NULL;
	config->journal = run->way == HOST_CRASHED;
	config->journal_medium = run->way == HOST_CRASHED ? &run->medium.medium : NULL;
}

/* The store owns the device, but not its memory. */
static int open_store(struct last_run *run)
{
	struct ram_device *device = ram_device_create(LAST_RUN_FLASH_BYTES, run->device);
	char reason[256];
	int result;

	device->keep = true;
	run->config.flash_device = &device->dev;
	result = store_open(&run->store, &run->config, reason);
	if (result == FS_OK) {
		require(store_worker_create(&run->worker, run->store) == FS_OK);
		store_serves(run->store);
	} else {
		run->store = NULL;
	}
	return result;
}

static void close_worker(struct last_run *run)
{
	require(store_worker_pending(run->worker) == 0);
	store_worker_destroy(run->worker);
	run->worker = NULL;
}

/* Ends the store as the run was ended. A flash that went offline, as too many reads have failed, isn't saved: false. */
static bool close_store(struct last_run *run)
{
	const struct store_end end = { .deadline_us = UINT64_MAX };
	bool saved = true;

	close_worker(run);
	if (run->store->index)
		require(fidx_verify(run->store->index));
	if (run->way == ENDED_CLEANLY) {
		(void)store_save_items(run->store, &end);
		saved = store_save(run->store);
		require(saved || seg_offline(run->store->segments));
	}
	store_close(run->store);
	run->store = NULL;
	return saved;
}

/* Each kind of object: on flash, with and without an older record of its key there; in DRAM, with and without one on
   flash; deleted; flushed later. */
static void live(struct last_run *run)
{
	for (unsigned n = 0; n < LAST_RUN_KEYS; n++)
		set_version(run, n, 1);
	for (unsigned n = 0; n < LAST_RUN_KEYS; n++)
		(void)get_version(run, n);
	write_one(run);
	write_one(run);
	for (unsigned n = 0; n < 8; n++)
		set_version(run, n, 2);
	for (unsigned n = 0; n < 8; n++)
		(void)get_version(run, n);
	write_one(run);
	for (unsigned n = 8; n < 12; n++)
		set_version(run, n, 2);
	delete_key(run, 12);
	delete_key(run, 13);
	store_flush_all(run->store, 2000);
}

/* A rebuild, with commands meanwhile: the journal goes on in a second file. */
static void crash_once(struct last_run *run)
{
	require(close_store(run) && open_store(run) == FS_OK && restart_is_warm(run->store));
	set_version(run, 16, 2);
	delete_key(run, 17);
	while (rebuild_step(run->store))
		;
	delete_key(run, 18);
}

static void keep_files(struct last_run *run)
{
	run->flash = damaged_copy(run->device, LAST_RUN_FLASH_BYTES, LAST_RUN_FLASH_BYTES);
	run->state = damaged_read(state_path, ROOM);
	run->items = damaged_read(items_path, ROOM);
	run->region = damaged_read(region_path, ROOM);
	read_journal(run);
	for (unsigned i = 0; i < FILES + run->journals; i++) {
		const struct damaged *file = file_of(run, i);

		if (file->length)
			run->left[i] = damaged_copy(file->bytes, file->length, file->length);
	}
}

/* What a start without damage serves. */
static void count_hits(struct last_run *run)
{
	int8_t version[LAST_RUN_KEYS];

	memcpy(version, run->version, sizeof(version));
	last_run_restore(run);
	require(last_run_start(run));
	while (loader_step(run->store) || rebuild_step(run->store))
		;
	for (unsigned n = 0; n < LAST_RUN_KEYS; n++)
		run->hits += get_version(run, n) != 0;
	require(run->hits >= LAST_RUN_KEYS / 4);
	require(close_store(run));
	memcpy(run->version, version, sizeof(version));
}

static struct last_run *make(enum last_run_way way)
{
	struct last_run *run = calloc(1, sizeof(*run));

	require(run);
	run->way = way;
	run->device = mem_aligned(4096, LAST_RUN_FLASH_BYTES);
	memset(run->device, 0, LAST_RUN_FLASH_BYTES);
	fixed_reset();
	clk_scripted_init(&run->clk, START_US);
	ram_journal_init(&run->medium);
	configure(run);
	require(open_store(run) == FS_OK);
	live(run);
	if (way == HOST_CRASHED)
		crash_once(run);
	require(close_store(run));
	keep_files(run);
	count_hits(run);
	return run;
}

struct last_run *last_run_make(enum last_run_way way)
{
	static struct last_run *runs[HOST_CRASHED + 1];
	static bool tried, possible;

	if (!tried) {
		log_set_level(LOG_LEVEL_ERROR);
		possible = make_folder();
		tried = true;
	}
	if (possible && !runs[way])
		runs[way] = make(way);
	return runs[way];
}

void last_run_restore(struct last_run *run)
{
	for (unsigned i = 0; i < FILES + run->journals; i++) {
		struct damaged *file = file_of(run, i);

		if (!file->bytes)
			continue;
		file->length = run->left[i].length;
		memcpy(file->bytes, run->left[i].bytes, file->length);
	}
	clk_scripted_init(&run->clk, START_US + 1000000);
	fixed_reset();
	fixed_reseed(1); /* the ids of the run that is over don't come back */
	fixed_pass(1);
	memset(run->written, 0, sizeof(run->written));
	run->older = run->any = false;
	run->fillers = 100000;
}

/* ---- the start ------------------------------------------------------------------------------- */

static void write_files(struct last_run *run)
{
	memcpy(run->device, run->flash.bytes, LAST_RUN_FLASH_BYTES);
	damaged_write(state_path, &run->state);
	damaged_write(items_path, &run->items);
	damaged_write(region_path, &run->region);
	if (run->way == HOST_CRASHED)
		write_journal(run);
}

/* A look finds what the start will do, and changes nothing. */
static void look(struct last_run *run, struct outlook *out)
{
	struct ram_device *device = ram_device_create(LAST_RUN_FLASH_BYTES, run->device);

	device->keep = true;
	run->config.flash_device = &device->dev;
	outlook_judge(&run->config, out);
	require(memcmp(run->device, run->flash.bytes, LAST_RUN_FLASH_BYTES) == 0);
	require_unchanged(state_path, &run->state);
	require_unchanged(items_path, &run->items);
	require_unchanged(region_path, &run->region);
}

static void require_as_told(const struct last_run *run, const struct outlook *told)
{
	struct loader_figures figures;

	require(told->warm == restart_is_warm(run->store));
	require(strcmp(told->word, store_start_word(run->store->start)) == 0);
	loader_get_figures(run->store, &figures);
	require(told->dram_warm == (figures.start == SAVED_START_WARM) || figures.start == SAVED_START_OTHER_DAEMON);
}

bool last_run_differs(struct last_run *run)
{
	bool differs = false;

	for (unsigned i = 0; i < FILES + run->journals; i++)
		differs |= damaged_differs(file_of(run, i), &run->left[i]);
	return differs;
}

bool last_run_start(struct last_run *run)
{
	struct outlook told = { 0 };
	bool looks = run->way != HOST_CRASHED;
	int result;

	write_files(run);
	if (looks)
		look(run, &told);
	result = open_store(run);
	require(!looks || told.refused == (result != FS_OK));
	if (result != FS_OK)
		return false;
	if (looks)
		require_as_told(run, &told);
	require(fidx_verify(run->store->index));
	run->differs = last_run_differs(run);
	require(run->differs || restart_is_warm(run->store));
	return true;
}

/* ---- serving --------------------------------------------------------------------------------- */

static void write_key(struct last_run *run, unsigned number, unsigned version)
{
	if (version)
		set_version(run, number, version);
	else
		delete_key(run, number);
	run->written[number] = true;
}

/* A key has one of its values; one that was written since the start has that or none. */
static unsigned look_at_all(struct last_run *run)
{
	unsigned hits = 0;

	for (unsigned n = 0; n < LAST_RUN_KEYS; n++) {
		unsigned version = get_version(run, n);

		hits += version != 0;
		require(version == 0 || !run->written[n] || version == (unsigned)run->version[n]);
		require(version == 0 || run->older || version == (unsigned)run->version[n]);
	}
	return hits;
}

static void finish_loading(struct last_run *run)
{
	while (loader_step(run->store))
		;
	while (run->store->rebuild)
		require(rebuild_step(run->store));
	require(fidx_verify(run->store->index));
}

static void serve(struct last_run *run, bool turns)
{
	for (unsigned n = 0; n < LAST_RUN_KEYS; n += 3)
		write_key(run, n, n % 2 ? VERSIONS : 0);
	finish_loading(run);
	(void)look_at_all(run);
	for (unsigned n = 1; n < LAST_RUN_KEYS; n += 6)
		write_key(run, n, VERSIONS);
	for (unsigned i = 0; turns && i < LAST_RUN_SEGMENTS + 1; i++)
		write_one(run);
	if (turns) {
		require(fidx_verify(run->store->index));
		(void)look_at_all(run);
	}
}

/* The store ends, and the next one starts with what it has left. */
static void start_once_more(struct last_run *run)
{
	bool saved = close_store(run);

	clk_scripted_advance(&run->clk, 1000000);
	require(open_store(run) == FS_OK);
	require(restart_is_warm(run->store) == saved);
	finish_loading(run);
	(void)look_at_all(run);
}

void last_run_serve(struct last_run *run, unsigned depth)
{
	int8_t version[LAST_RUN_KEYS];

	memcpy(version, run->version, sizeof(version));
	if (depth % 8 < 6) {
		unsigned hits;

		finish_loading(run);
		hits = look_at_all(run);
		require(run->differs || hits == run->hits);
	} else {
		serve(run, depth % 8 == 7);
		start_once_more(run);
	}
	close_worker(run);
	store_close(run->store);
	run->store = NULL;
	memcpy(run->version, version, sizeof(version));
}
