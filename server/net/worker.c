/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker: its loop, and the queue through which the main thread hands it connections. */
#include "server/net/net_internal.h"

#include <errno.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/thread.h"
#include "conf/conf.h"

/* ---- the loop -------------------------------------------------------------------------------- */

/* Closes all connections except those that are lent: the worker stays until they are back. */
static void close_all(struct worker *worker)
{
	struct socket_conn *sock, *next;

	for (sock = LIST_FIRST(&worker->conns); sock; sock = next) {
		next = LIST_NEXT(sock, link);
		if (!sock->lent)
			conn_kill(&sock->conn);
	}
}

/* A fault point: the watchdog of a service manager must notice such a worker. */
static void hang_until_stopped(const struct worker *worker)
{
	while (!atomic_load(&worker->stopping))
		usleep(1000);
}

static void on_worker_wake(evutil_socket_t fd, short what, void *context)
{
	struct worker *worker = context;
	uint64_t count;
	struct opening *openings;
	unsigned n;

	(void)what;
	worker_wake(worker);
	if (read(fd, &count, sizeof(count)) < 0)
		return;
	lock_acquire(&worker->lock);
	openings = worker->queue.openings;
	n = worker->queue.count;
	worker->queue.openings = NULL;
	worker->queue.count = worker->queue.capacity = 0;
	lock_release(&worker->lock);
	for (unsigned i = 0; i < n; i++)
		conn_open(worker, &openings[i]);
	mem_free(openings);
	loan_collect(worker);
	if (atomic_exchange_explicit(&worker->second_passed, false, memory_order_relaxed)) {
		if (fault_fires(FAULT_net_worker_hangs))
			hang_until_stopped(worker);
		sweep(worker);
	}
	if (atomic_load(&worker->stopping))
		close_all(worker);
}

static void on_store(evutil_socket_t fd, short what, void *context)
{
	struct worker *worker = context;

	(void)fd;
	(void)what;
	worker_wake(worker);
	store_worker_poll(worker->store);
}

/* Takes the flash reads that have completed meanwhile, without asking the kernel, so that their answers leave in this
   turn too. */
static void poll_store(struct worker *worker)
{
	if (store_worker_pending(worker->store) == 0)
		return;
	worker_wake(worker);
	store_worker_poll(worker->store);
}

void worker_run_fresh(struct worker *worker)
{
	unsigned count = worker->fresh_count;

	worker->fresh_count = 0;
	for (unsigned i = 0; i < count; i++) {
		struct socket_conn *sock = worker->fresh[i];

		sock->ready = sock->fresh = false;
		sock->conn.turns = worker->turns;
	}
	if (count > 0)
		conn_step_all(worker, worker->fresh, count);
}

void worker_unmake_fresh(struct socket_conn *sock)
{
	struct worker *worker = sock->conn.worker;
	unsigned at = 0;

	must(worker->fresh_count <= CONN_STEPS);
	while (at < worker->fresh_count && worker->fresh[at] != sock)
		at++;
	must(at < worker->fresh_count);
	worker->fresh_count--;
	for (; at < worker->fresh_count; at++)
		worker->fresh[at] = worker->fresh[at + 1];
}

/* Gives each of the first `left` connections of the ready list one turn, CONN_STEPS of them together. */
static void run_ready(struct worker *worker, unsigned left)
{
	struct socket_conn *socks[CONN_STEPS];

	worker_wake(worker);
	while (left > 0) {
		unsigned count = 0;

		while (count < CONN_STEPS && left > 0) {
			struct socket_conn *sock = TAILQ_FIRST(&worker->ready);

			must(sock && sock->magic == SOCKET_CONN_MAGIC);
			worker_unmake_ready(sock);
			sock->conn.turns = worker->turns;
			socks[count++] = sock;
			left--;
		}
		conn_step_all(worker, socks, count);
	}
}

void worker_run_ready(struct worker *worker)
{
	unsigned ready;

	if (__builtin_expect(atomic_load_explicit(&worker->starving, memory_order_relaxed), 0))
		sweep_feed(worker);
	ready = worker->ready_count; /* without the fresh connections that give way below */
	worker_run_fresh(worker);
	if (ready > 0)
		run_ready(worker, ready);
}

static bool may_sleep(const struct worker *worker)
{
	return TAILQ_EMPTY(&worker->ready) && !store_worker_has_work(worker->store);
}

static void *worker_main(void *context)
{
	struct worker *worker = context;

	while (!atomic_load_explicit(&worker->stopping, memory_order_relaxed) || !LIST_EMPTY(&worker->conns) ||
	       store_worker_pending(worker->store) > 0) {
		worker->woken = false;
		event_base_loop(worker->base, EVLOOP_ONCE | (may_sleep(worker) ? 0 : EVLOOP_NONBLOCK));
		poll_store(worker);
		worker_run_ready(worker);
		store_worker_flush(worker->store);
		if (__builtin_expect(atomic_load_explicit(&worker->draining, memory_order_relaxed), 0))
			drain(worker);
	}
	return NULL;
}

/* ---- from the main thread -------------------------------------------------------------------- */

void worker_ring(struct worker *worker)
{
	uint64_t one = 1;

	/* A full eventfd wakes the worker just as well. */
	if (write(worker->wake_fd, &one, sizeof(one)) < 0)
		return;
}

bool worker_give(struct worker *worker, const struct opening *opening)
{
	bool ok = true;

	lock_acquire(&worker->lock);
	if (worker->queue.count == worker->queue.capacity) {
		unsigned capacity = worker->queue.capacity ? worker->queue.capacity * 2 : 16;
		struct opening *openings = mem_realloc(worker->queue.openings, capacity * sizeof(*openings));

		ok = openings != NULL;
		if (ok) {
			worker->queue.openings = openings;
			worker->queue.capacity = capacity;
		}
	}
	if (ok)
		worker->queue.openings[worker->queue.count++] = *opening;
	lock_release(&worker->lock);
	if (ok)
		worker_ring(worker);
	return ok;
}

/* flags: EV_ET or 0. */
static int add_worker_event(struct worker *worker, struct event *event, int fd, short flags, event_callback_fn callback)
{
	if (event_assign(event, worker->base, fd, EV_READ | EV_PERSIST | flags, callback, worker) != 0)
		return FS_ENOMEM;
	return event_add(event, NULL) == 0 ? FS_OK : FS_ENOMEM;
}

/* Without flash there is nothing to watch. */
static int add_store_events(struct worker *worker)
{
	struct store_worker_fds fds = store_worker_fds(worker->store);
	int code;

	if (fds.completions < 0)
		return FS_OK;
	code = add_worker_event(worker, &worker->store_event, fds.completions, EV_ET, on_store);
	return code == FS_OK ? add_worker_event(worker, &worker->store_timer, fds.timer, 0, on_store) : code;
}

static int make_base(struct worker *worker)
{
	struct event_config *config = event_config_new();

	if (!config)
		return FS_ENOMEM;
	/* A base has one thread and no timers, so it needs neither locks nor the time. */
	event_config_require_features(config, EV_FEATURE_ET);
	event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_NO_CACHE_TIME);
	worker->base = event_base_new_with_config(config);
	event_config_free(config);
	return worker->base ? FS_OK : FS_ENOMEM;
}

/* The limits let a single connection always have its full output and the largest value. */
static void set_limits(struct worker *worker, const struct conf *conf)
{
	uint64_t total =
		conf->read_buf_mem_limit ? conf->read_buf_mem_limit : conf->memory_limit_bytes / CONN_TOTAL_PART;
	uint64_t share = total / (unsigned)conf->threads;
	uint64_t least = conf->max_item_size_bytes + CONN_OUTPUT_BYTES;

	worker->held_limit = share > CONN_OUTPUT_BYTES ? share : CONN_OUTPUT_BYTES;
	worker->held_most = CONN_MOST_TIMES * share > least ? CONN_MOST_TIMES * share : least;
}

int worker_init(struct worker *worker, struct net *net)
{
	int code;

	worker->net = net;
	atomic_store(&worker->beat_seconds, atomic_load(&net->now_seconds));
	worker->turns = (unsigned)net->server->conf->max_reqs_per_event;
	set_limits(worker, net->server->conf);
	worker->flash_value_bytes = CONN_BUFFER_BYTES; /* until it is known */
	worker->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	lock_init(&worker->lock, LOCK_LEAF);
	lock_init(&worker->list_lock, LOCK_LEAF);
	LIST_INIT(&worker->conns);
	TAILQ_INIT(&worker->ready);
	if (worker->wake_fd < 0)
		return FS_ESYS;
	worker->scratch = mem_alloc(sizeof(*worker->scratch)); /* its pages become resident as they are used */
	if (!worker->scratch)
		return FS_ENOMEM;
	code = make_base(worker);
	if (code == FS_OK)
		code = store_worker_create(&worker->store, net->server->store);
	if (code == FS_OK)
		code = add_worker_event(worker, &worker->wake_event, worker->wake_fd, 0, on_worker_wake);
	if (code == FS_OK)
		code = add_store_events(worker);
	return code;
}

int worker_start(struct worker *worker)
{
	char name[16];

	errno = thread_start(&worker->thread, worker_main, worker);
	if (errno != 0)
		return FS_ESYS;
	snprintf(name, sizeof(name), "worker %u", (unsigned)(worker - worker->net->workers) % 1000);
	pthread_setname_np(worker->thread, name);
	worker->running = true;
	return FS_OK;
}

void worker_stop(struct worker *worker)
{
	if (!worker->running)
		return;
	atomic_store(&worker->stopping, true);
	worker_ring(worker);
	pthread_join(worker->thread, NULL);
	worker->running = false;
}

void worker_fini(struct worker *worker)
{
	must(!worker->running && LIST_EMPTY(&worker->conns) && worker->held == 0);
	debug_must(worker->input_bytes == 0 && worker->datagram_bytes == 0);
	for (unsigned i = 0; i < worker->queue.count; i++)
		close(worker->queue.openings[i].fd);
	mem_free(worker->queue.openings);
	mem_free(worker->scratch);
	reply_free_all(worker);
	while (worker->buffer_count > 0)
		mem_free(worker->buffers[--worker->buffer_count]);
	if (worker->store)
		store_worker_destroy(worker->store);
	if (worker->base) {
		if (event_initialized(&worker->wake_event))
			event_del(&worker->wake_event);
		if (event_initialized(&worker->store_event))
			event_del(&worker->store_event);
		if (event_initialized(&worker->store_timer))
			event_del(&worker->store_timer);
		event_base_free(worker->base);
	}
	if (worker->wake_fd >= 0)
		close(worker->wake_fd);
	lock_fini(&worker->list_lock);
	lock_fini(&worker->lock);
}
