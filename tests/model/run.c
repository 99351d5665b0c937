/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads, the barrier for flush_all, the report of a violation, the summary. */
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/model/model.h"
#include "tests/model/options.h"

uint64_t start_ns;
static struct thread *threads;
static pthread_barrier_t barrier;
static atomic_bool stopping;

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static double seconds(void)
{
	return (double)(now_ns() - start_ns) / 1e9;
}

/* ---- violations ------------------------------------------------------------------------------ */

static void print_key(const struct conn *conn, uint32_t code)
{
	char name[KEY_NAME_MAX + 1];

	key_name(code, name);
	fprintf(stderr, "  key %s\n", name);
	switch (key_area(code)) {
	case AREA_OWNED:
		if (conn)
			owned_print(&conn->key[key_number(code) / (options.threads * options.connections)], code);
		break;
	case AREA_SHARED:
		shared_print(code);
		break;
	case AREA_COUNTER:
		counter_print(code);
		break;
	}
}

void violation(const struct conn *conn, const struct op *op, uint32_t code, const char *format, ...)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER; /* never released: the process ends */
	va_list list;

	pthread_mutex_lock(&once);
	fprintf(stderr, "VIOLATION (%s, seed %" PRIu64 ", at %.6f s): ", options.name, options.seed, seconds());
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr, "\n");
	if (op)
		fprintf(stderr,
			"  command: %s%s%s, sent at %.6f, %u bytes, id %" PRIu64 ", delta %" PRIu64 ", exptime %" PRId64
			", %u keys\n",
			OP_NAMES[op->kind], op->with_cas ? "s" : "", op->noreply ? " noreply" : "",
			(double)(op->sent_ns - start_ns) / 1e9, value_length(&op->value), op->cas, op->delta,
			op->exptime, op->count);
	if (conn)
		fprintf(stderr, "  connection %u, %u commands under way, depth %u%s\n", conn->number, conn->count,
			conn->depth, conn->quitting ? ", quit was sent" : "");
	if (op || code)
		print_key(conn, code);
	fflush(stderr);
	_exit(1);
}

/* ---- a thread -------------------------------------------------------------------------------- */

static unsigned under_way(const struct thread *thread)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < options.connections; i++)
		sum += thread->conn[i].count;
	return sum;
}

static short wanted_events(const struct conn *conn)
{
	short events = now_ns() < conn->lazy_until_ns ? 0 : POLLIN;

	return wire_unsent(&conn->wire) > 0 ? (short)(events | POLLOUT) : events;
}

static void turn(struct thread *thread)
{
	struct pollfd pollers[CONNECTIONS_MAX];

	for (unsigned i = 0; i < options.connections; i++)
		pollers[i] =
			(struct pollfd){ .fd = thread->conn[i].wire.fd, .events = wanted_events(&thread->conn[i]) };
	poll(pollers, options.connections, options.rate > 0 ? 1 : 20);
	for (unsigned i = 0; i < options.connections; i++)
		conn_run(&thread->conn[i], pollers[i].revents);
	zombies_poll(thread);
}

static void drain(struct thread *thread)
{
	for (unsigned i = 0; i < options.connections; i++)
		thread->conn[i].draining = true;
	while (under_way(thread) > 0)
		turn(thread);
	for (unsigned i = 0; i < options.connections; i++)
		thread->conn[i].draining = false;
}

/* All that was written before is gone. Delayed: once its second has come. */
static void flush(struct thread *thread, unsigned number)
{
	bool delayed = number % 4 == 3;
	char line[128];
	uint64_t *versions;

	drain(thread);
	pthread_barrier_wait(&barrier);
	if (thread->number == number % options.threads) {
		versions = shared_flush_begin(now_ns());
		if (!wire_ask(&thread->conn[0].wire, delayed ? "flush_all 1\r\n" : "flush_all\r\n", line,
			      sizeof(line)) ||
		    strcmp(line, "OK") != 0)
			violation(&thread->conn[0], NULL, 0, "flush_all was answered with %s", line);
		if (delayed)
			usleep(3000000);
		shared_flush_end(NULL, &(struct op){ .kind = OP_FLUSH }, versions, now_ns());
		free(versions);
		thread->flushes++;
	}
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < options.connections; i++) {
		owned_flushed(&thread->conn[i]);
		thread->conn[i].progress_ns = now_ns();
	}
}

static void *run(void *context)
{
	struct thread *thread = context;
	unsigned flushed = 0;

	for (unsigned i = 0; i < options.connections; i++)
		conn_open(&thread->conn[i]);
	for (;;) {
		double next = options.flush_every > 0 ? options.flush_every * (flushed + 1) : options.seconds;

		/* All threads meet at the same flushes, however late they are. */
		if (next < options.seconds && seconds() >= next)
			flush(thread, flushed++);
		else if (atomic_load(&stopping))
			break;
		else
			turn(thread);
	}
	drain(thread);
	for (unsigned i = 0; i < options.connections; i++)
		wire_fini(&thread->conn[i].wire);
	wire_fini(&thread->control);
	value_thread_end();
	return NULL;
}

static void thread_init(struct thread *thread, unsigned number)
{
	unsigned all = options.threads * options.connections;

	thread->number = number;
	thread->control.fd = -1;
	rng_init(&thread->rng, mix64(options.seed + number));
	thread->conn = calloc(options.connections, sizeof(*thread->conn));
	if (!thread->conn)
		abort();
	for (unsigned i = 0; i < options.connections; i++) {
		struct conn *conn = &thread->conn[i];

		conn->thread = thread;
		conn->wire.fd = -1;
		conn->number = number * options.connections + i;
		conn->keys = options.keys / all;
		conn->depth = 16;
		conn->key = calloc(conn->keys, sizeof(*conn->key));
		if (!conn->key)
			abort();
	}
}

/* ---- the summary ----------------------------------------------------------------------------- */

struct figure {
	char name[48];
	double value;
};
static struct figure figures[512];
static unsigned figure_count;

static void keep_figure(void *context, const char *name, const char *value)
{
	(void)context;
	if (figure_count < sizeof(figures) / sizeof(figures[0])) {
		snprintf(figures[figure_count].name, sizeof(figures[0].name), "%s", name);
		figures[figure_count++].value = strtod(value, NULL);
	}
}

static double figure(const char *name)
{
	for (unsigned i = 0; i < figure_count; i++)
		if (strcmp(figures[i].name, name) == 0)
			return figures[i].value;
	return 0;
}

static void print_summary(void)
{
	static const char *const shown[] = {
		"dram_hits",
		"flash_hits",
		"segments_written",
		"segments_reclaimed",
		"segments_swept",
		"flash_objects_written",
		"flash_objects_reinserted",
		"flash_dead_on_commit",
		"flash_revalidations",
		"flash_freezes",
		"false_matches",
		"flash_promotions",
		"flash_copy_hits",
		"flash_copies_dropped",
		"index_moves",
		"index_drops",
		"exact_rejects",
		"flash_reads_deferred",
		"flash_read_timeouts",
		"flash_reads_shed",
		"flash_read_errors",
		"flash_checksum_errors",
		"flash_write_errors",
		"evictions",
		"flash_ghosts_revived",
	};
	struct thread sum = { 0 };

	for (unsigned i = 0; i < options.threads; i++) {
		const struct thread *t = &threads[i];

		sum.ops += t->ops, sum.hits += t->hits, sum.misses += t->misses, sum.stored += t->stored;
		sum.drops += t->drops, sum.flushes += t->flushes, sum.reappeared += t->reappeared;
		sum.wild += t->wild, sum.unverifiable += t->unverifiable, sum.blind += t->blind;
	}
	printf("%s: seed %" PRIu64 ", %.1f s, ops %" PRIu64 ", hits %" PRIu64 ", misses %" PRIu64 ", stored %" PRIu64
	       ", drops %" PRIu64 ", flushes %" PRIu64 ", back after a miss %" PRIu64 ", wild %" PRIu64
	       ", blind hits %" PRIu64 ", unverifiable %" PRIu64,
	       options.name, options.seed, seconds(), sum.ops, sum.hits, sum.misses, sum.stored, sum.drops, sum.flushes,
	       sum.reappeared, sum.wild, sum.blind, sum.unverifiable);
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		if (figure(shown[i]) > 0)
			printf(", %s %.0f", shown[i], figure(shown[i]));
	printf("\n");
}

/* A configuration that did not provoke what it is there for proves nothing. run.py knows this exit code: nothing was wrong. */
#define EXIT_NOT_REACHED 3

static bool reached_all(bool say)
{
	char *list = strdup(options.require ? options.require : ""), *rest = list, *word;
	bool all = true;

	while (list && (word = strsep(&rest, ",")) != NULL) {
		if (!*word || figure(word) > 0)
			continue;
		if (say)
			printf("%s: WARNING: %s is 0: this run did not reach what it is for\n", options.name, word);
		all = false;
	}
	free(list);
	return all;
}

static void ask_figures(struct wire *control)
{
	figure_count = 0;
	if (!wire_stats(control, "stats\r\n", keep_figure, NULL) ||
	    !wire_stats(control, "stats flash\r\n", keep_figure, NULL))
		violation(NULL, NULL, 0, "no statistics");
}

/* Until the time is over, and on a slow machine a while longer. */
static void supervise(struct wire *control)
{
	while (seconds() < options.seconds)
		usleep(20000);
	for (;;) {
		ask_figures(control);
		if (reached_all(false) || seconds() >= options.seconds + options.wait)
			break;
		usleep(300000);
	}
	atomic_store(&stopping, true);
}

static void start(pthread_t *ids)
{
	shared_init(options.shared_keys);
	counter_init(options.counters);
	pthread_barrier_init(&barrier, NULL, options.threads);
	threads = calloc(options.threads, sizeof(*threads));
	if (!threads)
		abort();
	for (unsigned i = 0; i < options.threads; i++) {
		thread_init(&threads[i], i);
		if (pthread_create(&ids[i], NULL, run, &threads[i]) != 0)
			abort();
	}
}

int main(int argc, char **argv)
{
	static pthread_t ids[THREADS_MAX];
	struct wire control = { .fd = -1 };
	bool reached;

	options_parse(argc, argv);
	start_ns = now_ns();
	printf("%s: seed %" PRIu64 "\n", options.name, options.seed);
	fflush(stdout);
	if (!wire_open(&control, options.host, options.port))
		violation(NULL, NULL, 0, "no connection to %s:%u", options.host, options.port);
	server_prepare();
	start(ids);
	supervise(&control);
	for (unsigned i = 0; i < options.threads; i++)
		pthread_join(ids[i], NULL);
	ask_figures(&control);
	wire_fini(&control);
	print_summary();
	reached = reached_all(true);
	fflush(stdout);
	return reached ? 0 : EXIT_NOT_REACHED;
}
