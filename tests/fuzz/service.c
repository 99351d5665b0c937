/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/service.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "server/admin/tuning.h"
#include "server/admin/watch.h"
#include "server/auth/auth.h"
#include "server/count/observe.h"
#include "server/proto/proto.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "tests/fuzz/fixed.h"
#include "tests/fuzz/fuzz.h"

#define START_US 5000000000ull
#define WAIT_MS 20000
#define EVERY_GROUP ((1u << GROUPS) - 1)
#define SEGMENT_BYTES (64u << 10)
#define SEGMENTS 4u
#define FLASH_BYTES ((SEGMENTS + 1) * SEGMENT_BYTES) /* the first is the superblock's */
#define FILLER_BYTES 900u

/* ---- files ----------------------------------------------------------------------------------- */

/* In memory where that is possible. Removed as soon as it is open. */
static const char *flash_path(void)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/flashield-fuzz-%d", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
		 (int)getpid());
	return path;
}

/* Reading it takes a key from the kernel, and that is slow: once for all. */
static struct auth *users(void)
{
	static const char text[] = "user:secret\n";
	static struct auth *auth;
	char path[] = "/tmp/flashield-fuzz-XXXXXX", reason[256];
	struct conf conf;
	int fd;

	if (auth)
		return auth;
	fd = mkstemp(path);
	require(fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1);
	conf_init(&conf);
	conf.auth_file = path;
	require(auth_open(&auth, &conf, reason) == FS_OK);
	conf.auth_file = NULL;
	conf_free(&conf);
	close(fd);
	unlink(path);
	return auth;
}

/* "stats" asks how many watch. Nobody does. */
static struct watch *watchers(void)
{
	static struct watch *watch;

	if (!watch)
		require(watch_start(&watch, 4096) == FS_OK);
	return watch;
}

/* ---- the store's own commands ---------------------------------------------------------------- */

static void on_done(struct store_request *request)
{
	*(bool *)request->owner = true;
}

static void execute(struct service *service, struct store_request *request, const char *key)
{
	bool done = false;

	request->key = key;
	request->key_length = (uint8_t)strlen(key);
	request->hash = store_hash(service->server.store, key, request->key_length);
	request->done = on_done;
	request->owner = &done;
	if (store_execute(service->worker.store, request))
		return;
	store_worker_flush(service->worker.store);
	while (!done) {
		service_wait(service);
		store_worker_poll(service->worker.store);
	}
}

static void set(struct service *service, const char *key, const char *value, size_t length)
{
	struct store_request request = { .op = STORE_SET };
	enum store_result why;

	request.item = store_item_create(service->worker.store, key, strlen(key), 7,
					 store_expiry(service->server.store, 0), (uint32_t)length, &why);
	if (!request.item) /* -M, or a small limit that a client has set */
		return;
	memcpy(store_item_value(request.item), value, length);
	execute(service, &request, key);
}

/* True: it came from flash. */
static bool read_once(struct service *service, const char *key)
{
	struct store_request request = { .op = STORE_GET };
	bool from_flash = false;

	execute(service, &request, key);
	if (request.result == STORE_HIT) {
		from_flash = request.value.from_flash;
		store_value_release(service->worker.store, &request.value);
	}
	return from_flash;
}

/* ---- flash ----------------------------------------------------------------------------------- */

/* So that what was read is not alone: a segment is written when there are candidates for two. */
static void fill(struct service *service)
{
	static const char value[FILLER_BYTES];
	char key[16];

	for (unsigned tries = 0; candidate_total(service->server.store) < 2 * SEGMENT_BYTES && tries < 400; tries++) {
		snprintf(key, sizeof(key), "filler%u", service->fillers++);
		set(service, key, value, sizeof(value));
	}
}

void service_move(struct service *service)
{
	if (!service->server.store->index)
		return;
	fill(service);
	(void)write_segment(service->server.store, EVERY_GROUP);
}

void service_damage(struct service *service, uint8_t number)
{
	unsigned count = number % 2 ? 1000 : 20;
	struct rng places;
	uint8_t byte;

	if (service->flash_fd < 0)
		return;
	rng_init(&places, number);
	while (count-- > 0) {
		off_t at = (off_t)(SEGMENT_BYTES + rng_below(&places, FLASH_BYTES - SEGMENT_BYTES));

		require(pread(service->flash_fd, &byte, 1, at) == 1);
		byte ^= (uint8_t)(1 + rng_below(&places, 255));
		require(pwrite(service->flash_fd, &byte, 1, at) == 1);
	}
}

static void put_on_flash(struct service *service, const char *key, const char *value, size_t length)
{
	set(service, key, value, length);
	(void)read_once(service, key);
}

static void preload(struct service *service, bool binary)
{
	static const uint16_t lengths[10] = { 0, 1, 9, 40, 200, 1024, 1025, 2000, 4000, 9000 };
	static const char *const numbers[2] = { "41", "18446744073709551615" };
	const char *between = binary ? "-" : "";
	unsigned on_flash = 0;
	char key[8], value[9000];

	memset(value, 'v', sizeof(value));
	for (unsigned i = 0; i < 10; i++) {
		snprintf(key, sizeof(key), "f%s%u", between, i);
		put_on_flash(service, key, value, lengths[i]);
	}
	for (unsigned i = 0; i < 2; i++) {
		snprintf(key, sizeof(key), "n%s%u", between, i);
		put_on_flash(service, key, numbers[i], strlen(numbers[i]));
	}
	service_move(service);
	service_move(service);
	for (unsigned i = 0; i < 10; i++) {
		snprintf(key, sizeof(key), "f%s%u", between, i);
		on_flash += read_once(service, key);
	}
	require(on_flash >= 5); /* or the inputs would be about DRAM alone */
}

/* ---- life ------------------------------------------------------------------------------------ */

static void set_options(struct conf *conf, const struct service_options *options)
{
	static char auth_file[] = "users";

	conf_init(conf);
	conf->memory_limit_bytes = 8u << 20;
	conf->max_item_size_bytes = options->large_items ? 2u << 20 : 1u << 20;
	conf->threads = 1;
	conf->max_reqs_per_event = options->turns ? (int)options->turns : 20;
	conf->disable_cas = options->no_ids;
	if (options->old)
		conf->compat_release = 18;
	conf->disable_evictions = options->no_evict;
	conf->enable_shutdown = true;
	conf->enable_move = true;
	conf->disable_watch = conf->disable_dumping = true; /* they lend the connection to threads */
	if (options->binary)
		conf->binding_protocol = CONF_PROTOCOL_BINARY;
	else if (options->login)
		conf->auth_file = auth_file;
}

static void open_store(struct service *service, const struct service_options *options)
{
	struct store_config config;
	char reason[256];

	store_config_init(&config);
	config.clock = &service->clk;
	config.memory_bytes = service->conf.memory_limit_bytes;
	config.max_item_bytes = (uint32_t)service->conf.max_item_size_bytes;
	config.evict = !options->no_evict;
	config.cas = !options->no_ids;
	config.workers = 1;
	config.seed = 4711;
	config.segment_bytes = SEGMENT_BYTES;
	config.flash_bytes = FLASH_BYTES;
	config.flash_object_bytes = 34;
	config.admission = CLF_ADMIT_ALL;
	config.read_timeout_ms = 1000;
	config.flash_path = options->flash ? flash_path() : NULL;
	if (store_open(&service->server.store, &config, reason) != FS_OK) {
		fprintf(stderr, "%s\n", reason);
		abort();
	}
	service->flash_fd = options->flash ? open(flash_path(), O_RDWR | O_CLOEXEC) : -1;
	if (options->flash)
		require(service->flash_fd >= 0 && unlink(flash_path()) == 0);
}

/* Its tables are large: they are made anew only for who asks what is in them. */
static void start_observing(const struct conf *conf, bool detail)
{
	static bool there;

	if (there && !detail) {
		observe_switch_detail(false);
		return;
	}
	if (there)
		observe_fini();
	observe_init(conf);
	there = true;
}

void fuzz_service_open(struct service *service, const struct service_options *options)
{
	log_set_level(LOG_LEVEL_ERROR);
	memset(service, 0, sizeof(*service));
	fixed_reset();
	clk_scripted_init(&service->clk, START_US);
	set_options(&service->conf, options);
	service->server = (struct server){ .conf = &service->conf,
					   .net = &service->net,
					   .watch = watchers(),
					   .auth = options->login && !options->binary ? users() : NULL };
	open_store(service, options);
	start_observing(&service->conf, options->detail);
	tuning_init(&service->conf);
	service->net.server = &service->server;
	service->net.choose_protocol = proto_choose;
	service->net.datagram_protocol = service->conf.binding_protocol;
	service->net.workers = &service->worker;
	service->net.worker_count = service->net.listener_count = 1;
	service->net.wake_fd = -1;
	require(worker_init(&service->worker, &service->net) == FS_OK);
	service->held_most = service->worker.held_most;
	store_worker_turn(service->worker.store);
	if (options->flash)
		preload(service, options->binary);
}

static void require_nothing_left(const struct service *service)
{
	const struct worker *worker = &service->worker;

	require(LIST_EMPTY(&worker->conns) && worker->ready_count == 0 && worker->fresh_count == 0);
	require(worker->held == 0 && worker->held_most == service->held_most && worker->datagram_bytes == 0);
	require(store_worker_pending(worker->store) == 0);
}

void fuzz_service_close(struct service *service)
{
	struct store *store = service->server.store;

	require_nothing_left(service);
	worker_fini(&service->worker);
	if (store->index)
		require(fidx_verify(store->index));
	store_close(store);
	if (service->flash_fd >= 0)
		close(service->flash_fd);
	service->conf.auth_file = NULL;
	conf_free(&service->conf);
}

/* ---- turns ----------------------------------------------------------------------------------- */

void service_pass(struct service *service, unsigned seconds)
{
	fixed_pass(seconds);
	clk_scripted_advance(&service->clk, (uint64_t)seconds * 1000000);
	store_worker_turn(service->worker.store);
	store_tick(service->server.store);
}

/* As worker_main does. */
void service_turn(struct service *service)
{
	struct worker *worker = &service->worker;

	worker->woken = false;
	event_base_loop(worker->base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	if (store_worker_pending(worker->store) > 0) {
		worker_wake(worker);
		store_worker_poll(worker->store);
	}
	worker_run_ready(worker);
	store_worker_flush(worker->store);
}

void service_wait(struct service *service)
{
	struct store_worker_fds fds = store_worker_fds(service->worker.store);
	struct pollfd poll_fds[2] = { { .fd = fds.completions, .events = POLLIN },
				      { .fd = fds.timer, .events = POLLIN } };

	if (store_worker_pending(service->worker.store) > 0)
		require(poll(poll_fds, 2, WAIT_MS) > 0);
}
