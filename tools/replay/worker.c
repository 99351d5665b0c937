/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/replay/worker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

#define EVENTS 64
#define WAIT_NS 50000000ll

uint64_t worker_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fail(struct run *run, const char *error)
{
	pthread_mutex_lock(&run->lock);
	if (!run->error[0])
		snprintf(run->error, sizeof(run->error), "%s", error);
	pthread_mutex_unlock(&run->lock);
	atomic_store(&run->failed, true);
}

static void lost(struct worker *worker, const char *how)
{
	char error[320];

	snprintf(error, sizeof(error), "the server at %s %s, after %" PRIu64 " answers on this thread",
		 worker->run->options->server, how, worker->player.answered);
	fail(worker->run, error);
}

/* Opens the window at the first measured request of any worker; from here on all counts are measured. */
static void open_window(struct worker *worker)
{
	struct run *run = worker->run;

	worker->measuring = true;
	pthread_mutex_lock(&run->lock);
	if (!run->window_open) {
		run->window_open = true;
		server_stats_read(run->before);
		run->window_ns = worker_now_ns();
	}
	pthread_mutex_unlock(&run->lock);
	worker->player.now_ns = worker_now_ns();
}

static bool take_next(struct worker *worker)
{
	const struct run *run = worker->run;
	uint32_t connections = run->options->connections, threads = run->options->threads;

	while (!worker->has_next && schedule_next(&worker->schedule, &worker->next)) {
		uint64_t ordinal = (uint64_t)worker->next.record->key * run->options->copies + worker->next.copy;

		worker->has_next = threads == 1 || reduce64(mix64(ordinal), connections) % threads == worker->number;
		if ((worker->next.number & 1023) == 0)
			atomic_store_explicit(&worker->position, worker->next.number, memory_order_relaxed);
	}
	return worker->has_next;
}

/* Returns whether this worker is too far ahead of another one. */
static bool leads(const struct worker *worker)
{
	uint64_t number = worker->next.number;

	if (worker->run->options->threads == 1 || number < WORKER_LEAD)
		return false;
	for (uint32_t i = 0; i < worker->run->options->threads; i++)
		if (atomic_load_explicit(&worker->all[i].position, memory_order_relaxed) < number - WORKER_LEAD)
			return true;
	return false;
}

/* Nanoseconds until the next request is due; 0 or less: now. */
static int64_t due_in_ns(struct worker *worker)
{
	const struct run *run = worker->run;
	int64_t due_ns;

	if (!(run->options->speed > 0))
		return 0;
	due_ns = (int64_t)((double)(worker->next.time_us - run->first_us) * 1000.0 / run->options->speed);
	due_ns -= (int64_t)(worker->player.now_ns - run->start_ns);
	if (-due_ns > worker->behind_ns)
		worker->behind_ns = -due_ns;
	return due_ns;
}

/* Takes requests as long as their connections have room. Returns how long to wait for the next
   one to be due, or WAIT_NS if that depends on answers. *done at the trace's end. */
static int64_t take_requests(struct worker *worker, bool *done)
{
	const struct run *run = worker->run;

	*done = false;
	while (take_next(worker)) {
		uint64_t ordinal = (uint64_t)worker->next.record->key * run->options->copies + worker->next.copy;
		uint64_t index = reduce64(mix64(ordinal), run->options->connections) / run->options->threads;
		struct conn *conn = &worker->conns[index];
		int64_t wait_ns;

		if (atomic_load_explicit(&run->stop, memory_order_relaxed))
			break;
		if (conn_backlog(conn) == CONN_BACKLOG)
			return WAIT_NS;
		if (leads(worker))
			return 1000000;
		wait_ns = due_in_ns(worker);
		if (wait_ns > 0)
			return wait_ns < WAIT_NS ? wait_ns : WAIT_NS;
		if (!worker->measuring && worker->next.number >= run->options->skip + run->warmup_requests &&
		    worker->next.time_us - run->first_us >= run->warmup_us)
			open_window(worker);
		play_request(&worker->player, conn, &worker->next, worker->measuring);
		worker->has_next = false;
	}
	/* No other worker has to wait for one that takes no more requests. */
	atomic_store_explicit(&worker->position, UINT64_MAX - 1, memory_order_relaxed);
	*done = true;
	return WAIT_NS;
}

static void watch_output(struct worker *worker, struct conn *conn, bool wanted)
{
	struct epoll_event event = { .events = EPOLLIN | (wanted ? EPOLLOUT : 0), .data.ptr = conn };

	if (conn->waits_for_output == wanted)
		return;
	conn->waits_for_output = wanted;
	epoll_ctl(worker->epoll_fd, EPOLL_CTL_MOD, conn->client.fd, &event);
}

static void flush(struct worker *worker, struct conn *conn)
{
	if (conn->out.start == conn->out.end)
		return;
	if (conn_flush(conn) != FS_OK)
		lost(worker, client_why(&conn->client));
	else
		watch_output(worker, conn, conn->out.start < conn->out.end);
}

/* Flushes all connections. True if any request is under way or waits. */
static bool flush_all(struct worker *worker)
{
	bool busy = false;

	for (uint32_t i = 0; i < worker->conn_count; i++) {
		struct conn *conn = &worker->conns[i];

		busy = busy || conn_under_way(conn) || conn_backlog(conn);
		flush(worker, conn);
	}
	return busy;
}

static void receive(struct worker *worker, struct conn *conn)
{
	int code = conn_read(conn);

	if (code == FS_EAGAIN)
		return;
	if (code != FS_OK) {
		lost(worker, client_why(&conn->client));
		return;
	}
	if (play_answers(&worker->player, conn) != FS_OK) {
		fail(worker->run, worker->player.error);
		return;
	}
	play_backlog(&worker->player, conn);
	/* Flush at once: a request that is sent later would be measured from now all the same. */
	flush(worker, conn);
}

static void check_timeouts(struct worker *worker)
{
	uint64_t now_ns = worker->player.now_ns, limit_ns = worker->run->options->timeout_us * 1000;

	if (now_ns - worker->checked_timeouts_ns < 100000000u)
		return;
	worker->checked_timeouts_ns = now_ns;
	for (uint32_t i = 0; i < worker->conn_count; i++) {
		struct conn *conn = &worker->conns[i];
		uint64_t since_ns = conn->last_answer_ns;

		if (conn_under_way(conn) == 0)
			continue;
		if (conn->ring[conn->head & conn->ring_mask].sent_ns > since_ns)
			since_ns = conn->ring[conn->head & conn->ring_mask].sent_ns;
		if (now_ns > since_ns + limit_ns) {
			lost(worker, "does not answer any more (--timeout)");
			return;
		}
	}
}

static void wait_for_answers(struct worker *worker, int64_t wait_ns)
{
	struct timespec timeout = { .tv_sec = wait_ns / 1000000000, .tv_nsec = wait_ns % 1000000000 };
	struct epoll_event events[EVENTS];
	int count = epoll_pwait2(worker->epoll_fd, events, EVENTS, &timeout, NULL);

	worker->player.now_ns = worker_now_ns();
	for (int i = 0; i < count && !atomic_load(&worker->run->failed); i++) {
		struct conn *conn = events[i].data.ptr;

		if (i)
			worker->player.now_ns = worker_now_ns();
		if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
			do
				receive(worker, conn);
			while (client_has_more(&conn->client) && !atomic_load(&worker->run->failed));
	}
	atomic_store_explicit(&worker->answered, worker->player.answered, memory_order_relaxed);
	check_timeouts(worker);
}

static void *worker_main(void *argument)
{
	struct worker *worker = argument;
	struct run *run = worker->run;

	worker->player.now_ns = worker_now_ns();
	while (!atomic_load_explicit(&run->failed, memory_order_relaxed)) {
		bool done, busy;
		int64_t wait_ns = take_requests(worker, &done);

		busy = flush_all(worker);
		if (done && !busy)
			break;
		wait_for_answers(worker, wait_ns);
	}
	atomic_store(&worker->position, UINT64_MAX);
	return NULL;
}

static void init_worker(struct run *run, struct worker *worker, struct worker *all, uint32_t number)
{
	const struct replay_options *options = run->options;
	uint32_t conns = (options->connections + options->threads - 1) / options->threads;

	worker->run = run;
	worker->all = all;
	worker->number = number;
	worker->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	must(worker->epoll_fd >= 0);
	worker->conns = mem_must_zalloc(conns * sizeof(*worker->conns));
	worker->player = (struct player){ .options = options, .spool = run->spool, .keys = run->keys };
	measure_init(&worker->player.measure, run->spool->app_count);
	schedule_init(&worker->schedule, run->spool, options->copies, run->end);
	schedule_skip(&worker->schedule, options->skip);
	atomic_store(&worker->position, options->skip);
}

int workers_create(struct run *run, struct worker **out, char error[256])
{
	const struct replay_options *options = run->options;
	struct worker *workers = mem_must_zalloc(options->threads * sizeof(*workers));

	for (uint32_t i = 0; i < options->threads; i++)
		init_worker(run, &workers[i], workers, i);
	*out = workers;
	for (uint32_t i = 0; i < options->connections; i++) {
		struct worker *worker = &workers[i % options->threads];
		struct conn *conn = &worker->conns[i / options->threads];
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = conn };
		struct client client;
		int code = client_open(&client, &options->access, options->server, options->timeout_us, error);

		if (code != FS_OK)
			return code;
		conn_init(conn, &client, options->depth);
		worker->conn_count++;
		if (epoll_ctl(worker->epoll_fd, EPOLL_CTL_ADD, client.fd, &event) != 0)
			return FS_ESYS;
	}
	return FS_OK;
}

void workers_start(struct worker *workers)
{
	for (uint32_t i = 0; i < workers->run->options->threads; i++)
		must(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) == 0);
}

void workers_join(struct worker *workers)
{
	for (uint32_t i = 0; i < workers->run->options->threads; i++)
		pthread_join(workers[i].thread, NULL);
}

void workers_destroy(struct worker *workers)
{
	for (uint32_t i = 0; i < workers->run->options->threads; i++) {
		struct worker *worker = &workers[i];

		for (uint32_t c = 0; c < worker->conn_count; c++)
			conn_fini(&worker->conns[c]);
		close(worker->epoll_fd);
		schedule_fini(&worker->schedule);
		measure_fini(&worker->player.measure);
		mem_free(worker->conns);
	}
	mem_free(workers);
}

bool workers_done(const struct worker *workers)
{
	for (uint32_t i = 0; i < workers->run->options->threads; i++)
		if (atomic_load(&workers[i].position) != UINT64_MAX)
			return false;
	return true;
}

uint64_t workers_answered(const struct worker *workers)
{
	uint64_t answered = 0;

	for (uint32_t i = 0; i < workers->run->options->threads; i++)
		answered += atomic_load_explicit(&workers[i].answered, memory_order_relaxed);
	return answered;
}
