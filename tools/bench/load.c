/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tools/bench/load_internal.h"

#define NS 1000000000ull
#define INPUT_BYTES (256 * 1024)
#define EVENTS 256
#define STOP_LOOK_NS NS /* the pause between two looks for load_stop when nothing happens */
#define SILENCE_SECONDS 60.0 /* a server that answers nothing for so long has failed */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * NS + (uint64_t)now.tv_nsec;
}

/* User and system time of all its threads; 0 when it has ended. */
static uint64_t server_cpu_ns(pid_t pid)
{
	clockid_t clock;

	return pid > 0 && clock_getcpuclockid(pid, &clock) == 0 ? clock_ns(clock) : 0;
}

/* --- batches under way --- */

static bool paced(const struct load *load)
{
	return load->spec.rate > 0;
}

/* Returns whether the phase may begin another batch. */
static bool may_begin(const struct load *load)
{
	return load->left > 0 && (!load->deadline_ns || load->now_ns < load->deadline_ns) &&
	       !atomic_load_explicit(&load->stop, memory_order_relaxed);
}

static int broken(const char *what)
{
	fprintf(stderr, "flashield-bench: %s: %s\n", what, errno ? strerror(errno) : "closed by the server");
	return FS_ESYS;
}

static int connection_send(struct load *load, struct connection *connection)
{
	int code = batch_send(connection);
	bool wait = code == FS_EAGAIN;

	if (code != 0 && code != FS_EAGAIN)
		return broken("a connection broke while sending");
	if (wait != connection->waits_for_output) {
		struct epoll_event interest = {
			.events = EPOLLIN | (wait ? EPOLLOUT : 0),
			.data.ptr = connection,
		};

		if (epoll_ctl(load->epoll, EPOLL_CTL_MOD, connection->fd, &interest) != 0)
			return broken("epoll_ctl");
		connection->waits_for_output = wait;
	}
	return 0;
}

static int connection_begin(struct load *load, struct connection *connection)
{
	batch_make(load, connection);
	load->busy++;
	connection->start_ns = clock_ns(CLOCK_MONOTONIC);
	return connection_send(load, connection);
}

/* --- pace --- */

static void idle_push(struct load *load, struct connection *connection)
{
	unsigned last = (load->idle_first + load->idle_count) % load->spec.connections;

	connection->idle_ns = load->now_ns;
	load->idle[last] = connection;
	load->idle_count++;
}

static struct connection *idle_pop(struct load *load)
{
	struct connection *connection = load->idle[load->idle_first];

	load->idle_first = (load->idle_first + 1) % load->spec.connections;
	load->idle_count--;
	return connection;
}

/*
 * Begins the batches that are due. Where all connections were busy when a batch became due, its latency
 * runs from that moment: else a server that stands still would hide from the figures every request that
 * it kept from being sent. That we ourselves wake up late is not the server's fault and not counted.
 */
static int pace(struct load *load)
{
	int code = 0;

	while (code == 0 && load->idle_count && may_begin(load) && load->due_ns <= (double)load->now_ns) {
		struct connection *connection = idle_pop(load);
		uint64_t due_ns = (uint64_t)load->due_ns, before = load->left;
		bool was_late = connection->idle_ns > due_ns && !load->spec.timed_from_sending;

		code = connection_begin(load, connection);
		if (was_late)
			connection->start_ns = due_ns;
		load->due_ns += (double)(before - load->left) / load->spec.rate * (double)NS;
	}
	return code;
}

static int connection_done(struct load *load, struct connection *connection)
{
	load->busy--;
	/* A key that was set is read at once, at any pace, and also when the phase is over. */
	if (connection->reads_back || (!paced(load) && may_begin(load)))
		return connection_begin(load, connection);
	if (paced(load))
		idle_push(load, connection);
	return 0;
}

/* --- the measured part --- */

/* Resets all counts except the wrong values, which must never be overlooked. */
static void result_reset(struct load_result *result)
{
	struct load_result kept = *result;

	memset(result, 0, sizeof(*result));
	result->wrong = kept.wrong;
	memcpy(result->first_error, kept.first_error, sizeof(kept.first_error));
	result->get_latency = kept.get_latency;
	result->set_latency = kept.set_latency;
	result->hit_latency = kept.hit_latency;
	hist_reset(result->get_latency);
	hist_reset(result->set_latency);
	hist_reset(result->hit_latency);
}

static void count_from_now(struct load *load)
{
	struct load_marks *marks = &load->marks;

	atomic_store(&load->forget, false);
	result_reset(&load->result);
	marks->start_ns = clock_ns(CLOCK_MONOTONIC);
	marks->own_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	marks->server_cpu_ns = server_cpu_ns(load->server.pid);
}

static void count_to_now(struct load *load)
{
	const struct load_marks *marks = &load->marks;
	struct load_result *result = &load->result;

	result->server_cpu_ns = server_cpu_ns(load->server.pid) - marks->server_cpu_ns;
	result->load_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - marks->own_cpu_ns;
	result->seconds = (double)(clock_ns(CLOCK_MONOTONIC) - marks->start_ns) / (double)NS;
}

/* --- the event loop --- */

static int connection_receive(struct load *load, struct connection *connection)
{
	ssize_t got = recv(connection->fd, load->input, INPUT_BYTES, 0);

	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return 0;
	if (got <= 0) {
		errno = got == 0 ? 0 : errno;
		return broken("a connection broke");
	}
	load->now_ns = clock_ns(CLOCK_MONOTONIC);
	return answer_take(load, connection, load->input, (size_t)got);
}

static int connection_event(struct load *load, struct connection *connection, uint32_t events)
{
	bool was_busy = connection_busy(connection);
	int code = 0;

	if (events & EPOLLOUT)
		code = connection_send(load, connection);
	if (code == 0 && (events & ~(uint32_t)EPOLLOUT))
		code = connection_receive(load, connection);
	if (code == 0 && was_busy && !connection_busy(connection))
		code = connection_done(load, connection);
	return code;
}

/* The time during which no event can be due. */
static uint64_t wait_limit_ns(const struct load *load)
{
	uint64_t limit_ns = STOP_LOOK_NS;

	if (load->deadline_ns > load->now_ns && load->deadline_ns - load->now_ns < limit_ns)
		limit_ns = load->deadline_ns - load->now_ns;
	if (paced(load) && load->idle_count && load->due_ns < (double)(load->now_ns + limit_ns))
		limit_ns = load->due_ns > (double)load->now_ns ? (uint64_t)(load->due_ns - (double)load->now_ns) : 0;
	return limit_ns;
}

/* Only a pace needs more than milliseconds; without one the older call keeps valgrind able to watch. */
static int wait_for(struct load *load, struct epoll_event events[EVENTS])
{
	uint64_t limit_ns = wait_limit_ns(load);
	struct timespec limit = { .tv_sec = (time_t)(limit_ns / NS), .tv_nsec = (long)(limit_ns % NS) };

	if (paced(load))
		return epoll_pwait2(load->epoll, events, EVENTS, &limit, NULL);
	return epoll_wait(load->epoll, events, EVENTS, (int)(limit_ns / 1000000) + 1);
}

/* Waits, and serves the connections that are ready. */
static int turn(struct load *load, uint64_t *heard_ns)
{
	struct epoll_event events[EVENTS];
	int ready = wait_for(load, events), code = 0;

	if (atomic_load_explicit(&load->forget, memory_order_relaxed))
		count_from_now(load);
	if (ready < 0 && errno != EINTR)
		return broken("epoll_wait");
	if (ready > 0)
		*heard_ns = load->now_ns;
	else
		load->now_ns = clock_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < ready && code == 0; i++)
		code = connection_event(load, events[i].data.ptr, events[i].events);
	if (code == 0 && load->busy && (double)(load->now_ns - *heard_ns) > load->spec.silence_seconds * (double)NS) {
		fprintf(stderr, "flashield-bench: no answer for %.0f s\n", load->spec.silence_seconds);
		code = FS_ESYS;
	}
	return code;
}

/* Begins and ends with all connections idle. */
static int phase_run(struct load *load, uint64_t operations, double seconds)
{
	uint64_t heard_ns;
	int code = 0;

	load->now_ns = heard_ns = clock_ns(CLOCK_MONOTONIC);
	load->left = operations ? operations : UINT64_MAX;
	load->deadline_ns = seconds > 0 ? load->now_ns + (uint64_t)(seconds * (double)NS) : 0;
	load->due_ns = (double)load->now_ns;
	load->idle_first = load->idle_count = 0;
	for (unsigned i = 0; i < load->spec.connections && code == 0; i++) {
		if (paced(load))
			idle_push(load, &load->connections[i]);
		else if (may_begin(load))
			code = connection_begin(load, &load->connections[i]);
	}
	while (code == 0 && (load->busy || (paced(load) && may_begin(load)))) {
		if (paced(load)) {
			code = pace(load);
			if (code == 0 && !load->busy && !may_begin(load))
				break;
		}
		if (code == 0)
			code = turn(load, &heard_ns);
	}
	return code;
}

/* --- the thread --- */

static int measured_run(struct load *load, uint64_t operations, double seconds)
{
	int code;

	count_from_now(load);
	code = phase_run(load, operations, seconds);
	count_to_now(load);
	return code;
}

/* Without the right to a higher priority the thread keeps its own. */
static void go_before_others(void)
{
	const struct sched_param first = { .sched_priority = 1 };

	(void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &first);
}

static int pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET((unsigned)cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0 ? 0 : broken("can't pin the load");
}

static void *load_main(void *argument)
{
	struct load *load = argument;
	const struct load_spec *spec = &load->spec;
	uint64_t warmup = (uint64_t)((double)spec->operations * spec->warmup_share);
	double warmup_seconds = spec->seconds * spec->warmup_share;
	int code = pin(spec->cpu);

	prctl(PR_SET_TIMERSLACK, 1ul); /* else a paced load wakes 50 us late */
	if (spec->urgent)
		go_before_others();
	if (code == 0 && (warmup || warmup_seconds > 0))
		code = phase_run(load, warmup, warmup_seconds);
	if (code == 0)
		code = measured_run(load, spec->operations - warmup, spec->seconds - warmup_seconds);
	load->code = code;
	atomic_store(&load->running, false);
	return NULL;
}

/* --- start and join --- */

static bool spec_fits(const struct load_spec *spec)
{
	return (spec->operations || spec->seconds > 0) && spec->seconds >= 0 && spec->warmup_share >= 0 &&
	       spec->warmup_share < 1 && spec->set_share >= 0 && spec->set_share <= 1 && spec->rate >= 0 &&
	       spec->silence_seconds >= 0 && spec->zipf_exponent >= 0 && fabs(spec->zipf_exponent - 1) > 1e-9;
}

static void load_free(struct load *load)
{
	for (unsigned i = 0; load->connections && i < load->spec.connections; i++)
		connection_fini(&load->connections[i]);
	if (load->epoll >= 0)
		close(load->epoll);
	mem_free(load->connections);
	mem_free(load->idle);
	mem_free(load->input);
	load_keys_fini(&load->keys);
	load_result_fini(&load->result);
	mem_free(load);
}

static void memory_init(struct load *load)
{
	batch_limits_init(&load->limits, &load->spec, &load->keys);
	load->connections = mem_must_zalloc(load->spec.connections * sizeof(*load->connections));
	for (unsigned i = 0; i < load->spec.connections; i++)
		connection_init(&load->connections[i], &load->limits);
	load->idle = mem_must_zalloc(load->spec.connections * sizeof(struct connection *));
	load->input = mem_must_zalloc(INPUT_BYTES);
	load->result.get_latency = hist_create();
	load->result.set_latency = hist_create();
	load->result.hit_latency = hist_create();
}

int load_start(struct load **out, const struct load_spec *spec, const struct load_server *server)
{
	struct load *load;
	int code;

	*out = NULL;
	if (!spec_fits(spec))
		return FS_EINVAL;
	load = mem_must_zalloc(sizeof(*load));
	load->spec = *spec;
	load->spec.connections = spec->connections ? spec->connections : 1;
	load->spec.silence_seconds = spec->silence_seconds > 0 ? spec->silence_seconds : SILENCE_SECONDS;
	load->server = *server;
	load->epoll = -1;
	rng_init(&load->rng, spec->seed);
	code = load_keys_init(&load->keys, spec);
	if (code != 0)
		goto fail;
	load_sequence_init(&load->sequence, spec, &load->rng);
	memory_init(load);
	code = load_connect(load);
	if (code != 0)
		goto fail;
	atomic_init(&load->running, true);
	if (pthread_create(&load->thread, NULL, load_main, load) != 0) {
		code = FS_ESYS;
		goto fail;
	}
	*out = load;
	return 0;
fail:
	load_free(load);
	return code;
}

bool load_running(const struct load *load)
{
	return atomic_load(&load->running);
}

void load_forget(struct load *load)
{
	atomic_store(&load->forget, true);
}

void load_stop(struct load *load)
{
	atomic_store(&load->stop, true);
}

void load_wait(struct load *load)
{
	if (!load->waited)
		pthread_join(load->thread, NULL);
	load->waited = true;
}

int load_join(struct load *load, struct load_result *result)
{
	int code;

	load_wait(load);
	code = load->code;
	*result = load->result;
	load->result.get_latency = load->result.set_latency = load->result.hit_latency = NULL;
	load_free(load);
	return code;
}

int load_run(const struct load_spec *spec, const struct load_server *server, struct load_result *result)
{
	struct load *load;
	int code = load_start(&load, spec, server);

	memset(result, 0, sizeof(*result));
	return code != 0 ? code : load_join(load, result);
}

void load_result_fini(struct load_result *result)
{
	if (result->get_latency)
		hist_destroy(result->get_latency);
	if (result->set_latency)
		hist_destroy(result->set_latency);
	if (result->hit_latency)
		hist_destroy(result->hit_latency);
	result->get_latency = result->set_latency = result->hit_latency = NULL;
}
