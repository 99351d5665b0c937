/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker of the store: the part that each of the daemon's threads has for itself, and the objects that it makes. */
#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "server/store/request/lookup_internal.h"

#define READER_DEPTH 128
/* Parts of a worker's share of -m: bytes from flash that are kept for later lookups, and lookups that may run. */
#define KEPT_SHARE 1024u
#define KEPT_LEAST (32u << 10)
#define IDLE_SHARE 64u /* bytes of idle buffers */
#define IDLE_LEAST (64u << 10)
#define LOOKUPS_SHARE 32u
#define LOOKUPS_LEAST 2048u
#define LOOKUP_COST (sizeof(struct store_lookup) + sizeof(struct flash_read))

int store_worker_create(struct store_worker **out, struct store *store)
{
	struct store_worker *worker = mem_must_zalloc(sizeof(*worker));
	static _Atomic uint64_t number;

	context_init(&worker->context, store, store->config.seed + 1000 + atomic_fetch_add(&number, 1));
	worker->magic = WORKER_MAGIC;
	worker->timer_fd = -1;
	store_worker_turn(worker);
	*out = worker;
	if (!store->segments)
		return FS_OK;
	int result = seg_reader_create(&worker->reader, store->segments, READER_DEPTH);
	if (result == FS_OK) {
		uint64_t share = store_memory_limit(store) / store->config.workers;

		reads_init(&worker->reads, store->segments, worker->reader,
			   share / KEPT_SHARE < KEPT_LEAST ? KEPT_LEAST : share / KEPT_SHARE);
		seg_reader_set_idle(worker->reader, share / IDLE_SHARE < IDLE_LEAST ? IDLE_LEAST : share / IDLE_SHARE);
		worker->lookups_most = (unsigned)(share / LOOKUPS_SHARE / LOOKUP_COST);
		if (worker->lookups_most < LOOKUPS_LEAST)
			worker->lookups_most = LOOKUPS_LEAST;
		promote_init(worker);
		worker->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
		if (worker->timer_fd < 0)
			result = FS_ESYS;
	}
	if (result == FS_OK && store->losses) {
		worker->waiter = mem_must_zalloc(sizeof(*worker->waiter));
		losses_register(store->losses, worker->waiter, seg_reader_fd(worker->reader));
	}
	if (result != FS_OK) {
		int error = errno;

		store_worker_destroy(worker);
		*out = NULL;
		errno = error;
	}
	return result;
}

void store_worker_destroy(struct store_worker *worker)
{
	must(worker->magic == WORKER_MAGIC && worker->pending == 0);
	if (worker->waiter) {
		losses_unregister(worker->context.store->losses, worker->waiter);
		mem_free(worker->waiter);
	}
	sketch_fini(&worker->sketch);
	if (worker->reader) {
		reads_stop(&worker->reads);
		seg_reader_destroy(worker->reader);
		reads_fini(&worker->reads);
	}
	lookups_fini(worker);
	if (worker->timer_fd >= 0)
		close(worker->timer_fd);
	context_settle(&worker->context);
	worker->magic = 0;
	mem_free(worker);
}

struct store_worker_fds store_worker_fds(const struct store_worker *worker)
{
	return (struct store_worker_fds){ .completions = worker->reader ? seg_reader_fd(worker->reader) : -1,
					  .timer = worker->timer_fd };
}

uint64_t store_worker_now_ns(const struct store_worker *worker)
{
	return clk_now_ns(worker->context.store->clock);
}

uint64_t store_worker_turn(struct store_worker *worker)
{
	struct store *store = worker->context.store;
	uint64_t now_ns = clk_now_ns(store->clock);

	must(worker->magic == WORKER_MAGIC);
	worker->now_us = now_ns / 1000;
	worker->now_ms = worker->now_us / 1000;
	worker->now_seconds = store_now_seconds(store, worker->now_us);
	store_apply_due_flush(store, worker->now_seconds);
	return now_ns;
}

unsigned store_worker_pending(const struct store_worker *worker)
{
	return worker->pending;
}

/* ---- objects for a request -------------------------------------------------------------------- */

struct item *store_item_create(struct store_worker *worker, const char *key, size_t key_length, uint32_t client_flags,
			       uint32_t expiry, uint32_t value_length, enum store_result *why)
{
	struct store_context *context = &worker->context;
	struct item *item = NULL;
	enum item_shape shape = item_shape_of(context->store->plain_shape, client_flags != 0, false);
	size_t bytes = item_bytes(shape, key_length, value_length);

	if (store_too_large(context->store, key_length, value_length)) {
		*why = STORE_TOO_LARGE;
		return NULL;
	}
	*why = STORE_NO_MEMORY;
	if (ceiling_allows(context, key, key_length, mem_cost(bytes)) && evict_inline(context, mem_cost(bytes)))
		item = item_make(context, shape, bytes, key, key_length, client_flags, expiry, value_length);
	if (!item)
		class_add(context->classes, size_class(bytes), CLASS_OUT_OF_MEMORY, 1);
	return item;
}

char *store_item_value(struct item *item)
{
	return item_value(item);
}

void store_item_drop(struct store_worker *worker, struct item *item)
{
	item_release(&worker->context, item);
}

void store_value_release(struct store_worker *worker, struct store_value *value)
{
	if (value->item)
		item_release(&worker->context, value->item);
	else if (value->read)
		reads_release(value->read);
	*value = (struct store_value){ 0 };
}

/* ---- time-outs and the event loop ------------------------------------------------------------ */

/* Looks at each lookup that is ready now; one that becomes ready meanwhile waits for the next poll. */
static void worker_poll_ready(struct store_worker *worker)
{
	struct store_lookup *last = worker->ready_last;

	while (last) {
		struct store_lookup *lookup = lookup_take_ready(worker);

		if (lookup == last)
			last = NULL;
		lookup_on_read(lookup);
	}
}

static void worker_time_out(struct store_lookup *lookup)
{
	must(lookup->magic == LOOKUP_MAGIC);
	ctr_add(CTR_flash_read_timeouts, 1);
	lookup_note_times(lookup, UINT64_MAX);
	if (reads_leave(lookup) && lookup->made)
		lookup_uncount_read(lookup);
	lookup_give_up(lookup);
}

static void worker_arm_timer(struct store_worker *worker)
{
	uint64_t ns = timeout_us(worker) * 500;
	struct itimerspec when = { 0 };

	if (worker->timer_armed || (!worker->oldest && seg_reader_in_flight(worker->reader) == 0))
		return;
	when.it_value = (struct timespec){ .tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000) };
	if (timerfd_settime(worker->timer_fd, 0, &when, NULL) == 0) {
		worker->timer_armed = true;
		worker->timer_due_us = worker->now_us + ns / 1000;
	}
}

/* The memory of requests that read flash is cache memory too. */
static void worker_account_reads(struct store_worker *worker)
{
	uint64_t bytes =
		reads_memory(&worker->reads) + (worker->lookups + worker->free_count) * sizeof(struct store_lookup);

	if (bytes != worker->accounted_bytes) {
		atomic_fetch_add_explicit(&worker->context.store->reader_bytes, bytes - worker->accounted_bytes,
					  memory_order_relaxed);
		worker->accounted_bytes = bytes;
	}
}

void store_worker_flush(struct store_worker *worker)
{
	if (worker->reader) {
		parked_flush(worker);
		seg_reader_set_patience(worker->reader, timeout_us(worker) * 1000);
		seg_reader_flush(worker->reader);
		worker_arm_timer(worker);
		worker_account_reads(worker);
	}
	context_settle(&worker->context);
}

void store_worker_poll(struct store_worker *worker)
{
	uint64_t fires;
	uint64_t limit_us = timeout_us(worker);

	if (!worker->reader)
		return;
	parked_poll(worker);
	worker_poll_ready(worker);
	seg_reader_poll(worker->reader);
	if (worker->timer_armed && worker->now_us >= worker->timer_due_us &&
	    read(worker->timer_fd, &fires, sizeof(fires)) == (ssize_t)sizeof(fires))
		worker->timer_armed = false;
	while (worker->oldest && !worker->oldest->ready && worker->now_us > worker->oldest->started_us + limit_us)
		worker_time_out(worker->oldest);
}
