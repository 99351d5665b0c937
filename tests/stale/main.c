/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stale_worker: the checker's clients. It talks to any daemon that answers at its port, over as many lives of the daemon as
 * there are, and ends with 1 at the first value that is stale or wrong.
 *
 * Commands come on standard input, a line each; each is answered by a line:
 *
 *   pause    "paused" once nothing is under way, the daemon alive or not
 *   go       "going"
 *   census   while paused: gets all keys that don't expire, and notes those that flash served: "census HITS FLASH" counts keys
 *            found, and those of them that flash served; "census failed" when the connection broke
 *   compare  while paused: another census: "compare SERVED NOTED HITS FLASH"; of the NOTED keys of the last one SERVED are found
 *   figures  "figures" and the counts so far, as name=number
 *   end      the same counts; then it ends with 0, as it does at the end of its input
 */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/stale/stale.h"

struct options options = {
	.port = 11211,
	.threads = 6,
	.keys = { 2400, 200, 40, 40 },
	.value_max = 40000,
};

struct thread threads[THREADS_MOST + 1];
static unsigned running; /* threads that pause: with the one that flushes */

/* ---- pausing ------------------------------------------------------------------------------------ */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers these */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned resting;
static _Atomic bool pausing, ending; /* read without it too */

bool pause_point(void)
{
	if (atomic_load(&pausing)) {
		pthread_mutex_lock(&lock);
		resting++;
		pthread_cond_broadcast(&changed);
		while (pausing && !ending)
			pthread_cond_wait(&changed, &lock);
		resting--;
		pthread_mutex_unlock(&lock);
	}
	return !atomic_load(&ending);
}

static void pause_all(void)
{
	pthread_mutex_lock(&lock);
	pausing = true;
	while (resting < running)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void go(void)
{
	pthread_mutex_lock(&lock);
	pausing = false;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

/* ---- a client ----------------------------------------------------------------------------------- */

static void add_get(struct thread *thread)
{
	struct op *op = NULL;
	uint64_t keys = 1 + rng_below(&thread->rng, KEYS_MOST);

	for (unsigned i = 0; i < keys; i++) {
		uint32_t number = (uint32_t)rng_below(&thread->rng, options.keys[FAMILY_OWNED]);
		char name[KEY_NAME_MOST + 1];

		if (!op) {
			op = batch_add(thread, OP_GET, number);
			wire_put(&thread->wire, "get", 3);
		} else {
			op->floor[op->keys] = atomic_load(&key_of(number)->floor);
			op->key[op->keys++] = number;
		}
		name[0] = ' ';
		wire_put(&thread->wire, name, 1 + key_name(number, name + 1));
	}
	wire_put(&thread->wire, "\r\n", 2);
}

static void make_batch(struct thread *thread)
{
	uint64_t commands = 1 + rng_below(&thread->rng, rng_below(&thread->rng, 3) ? 6 : 24);

	for (unsigned i = 0; i < commands && batch_room(thread); i++) {
		uint64_t turn = rng_below(&thread->rng, 100);

		if (turn < 55)
			add_get(thread);
		else if (turn < 80)
			owned_change(thread);
		else if (turn < 88)
			chain_command(thread);
		else if (turn < 94)
			counter_command(thread);
		else
			log_command(thread);
	}
}

static void *run(void *context)
{
	struct thread *thread = context;

	while (pause_point()) {
		owned_expire(thread);
		if (!thread->connected) {
			thread->connected = thread_connect(&thread->wire);
			if (!thread->connected) {
				usleep(3000);
				continue;
			}
			atomic_fetch_add(&thread->connects, 1);
		}
		make_batch(thread);
		batch_run(thread);
	}
	wire_fini(&thread->wire);
	return NULL;
}

/* ---- commands of the driver --------------------------------------------------------------------- */

static void figures(void)
{
	uint64_t sum[7] = { 0 };

	for (unsigned i = 0; i <= THREADS_MOST; i++) {
		const struct thread *t = &threads[i];

		sum[0] += t->commands, sum[1] += t->hits, sum[2] += t->misses, sum[3] += t->changes, sum[4] += t->lost;
		sum[5] += t->refused, sum[6] += t->connects;
	}
	printf("figures commands=%" PRIu64 " hits=%" PRIu64 " misses=%" PRIu64 " changes=%" PRIu64 " lost=%" PRIu64
	       " refused=%" PRIu64 " connects=%" PRIu64 " flushes=%" PRIu64 "\n",
	       sum[0], sum[1], sum[2], sum[3], sum[4], sum[5], sum[6], flushes);
}

static void obey(void)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		if (strcmp(line, "end") == 0)
			return;
		if (strcmp(line, "pause") == 0) {
			pause_all();
			puts("paused");
		} else if (strcmp(line, "go") == 0) {
			go();
			puts("going");
		} else if (strcmp(line, "census") == 0) {
			census_take();
		} else if (strcmp(line, "compare") == 0) {
			census_compare();
		} else if (strcmp(line, "figures") == 0) {
			figures();
		} else {
			printf("unknown: %s\n", line);
		}
		fflush(stdout);
	}
}

/* ---- start and end ------------------------------------------------------------------------------ */

static unsigned number_of(const char *name, const char *text, unsigned long least, unsigned long most)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (!*text || *end || number < least || number > most) {
		fprintf(stderr, "stale_worker: --%s is \"%s\", but must be from %lu to %lu\n", name, text, least, most);
		exit(2);
	}
	return (unsigned)number;
}

static void parse(int argc, char **argv)
{
	static const struct option known[] = {
		{ "port", 1, NULL, 'p' },
		{ "threads", 1, NULL, 't' },
		{ "owned", 1, NULL, 'o' },
		{ "chains", 1, NULL, 'c' },
		{ "counters", 1, NULL, 'n' },
		{ "logs", 1, NULL, 'l' },
		{ "value-max", 1, NULL, 'v' },
		{ "flush-ms", 1, NULL, 'f' },
		{ "seed", 1, NULL, 's' },
		{ "lasting", 0, NULL, 'L' },
		{ 0 },
	};
	int letter, at;

	while ((letter = getopt_long(argc, argv, "", known, &at)) != -1) {
		switch (letter) {
		case 'p':
			options.port = number_of("port", optarg, 1, 65535);
			break;
		case 't':
			options.threads = number_of("threads", optarg, 1, THREADS_MOST);
			break;
		case 'o':
			options.keys[FAMILY_OWNED] = number_of("owned", optarg, THREADS_MOST, 10000000);
			break;
		case 'c':
			options.keys[FAMILY_CHAIN] = number_of("chains", optarg, 1, 1000000);
			break;
		case 'n':
			options.keys[FAMILY_COUNTER] = number_of("counters", optarg, 1, 1000000);
			break;
		case 'l':
			options.keys[FAMILY_LOG] = number_of("logs", optarg, 1, 1000000);
			break;
		case 'v':
			options.value_max = number_of("value-max", optarg, 2 * VALUE_LEAST, 1 << 20);
			break;
		case 'f':
			options.flush_ms = number_of("flush-ms", optarg, 0, 1000000);
			break;
		case 'L':
			options.lasting = true;
			break;
		case 's':
			options.seed = strtoull(optarg, NULL, 10);
			break;
		default:
			exit(2);
		}
	}
}

static void start(pthread_t *id, void *(*function)(void *), void *context)
{
	if (pthread_create(id, NULL, function, context) != 0)
		abort();
	running++;
}

int main(int argc, char **argv)
{
	pthread_t ids[THREADS_MOST + 1];

	parse(argc, argv);
	signal(SIGPIPE, SIG_IGN);
	keys_init();
	owned_init();
	census_init();
	chains_init();
	logs_init();
	for (unsigned i = 0; i <= THREADS_MOST; i++) {
		threads[i].number = i;
		threads[i].wire.fd = -1;
		rng_init(&threads[i].rng, mix64(options.seed) + i);
	}
	for (unsigned i = 0; i < options.threads; i++)
		start(&ids[i], run, &threads[i]);
	if (options.flush_ms)
		start(&ids[options.threads], flush_run, NULL);
	obey();
	pause_all(); /* whatever a command is waiting for, its answer is judged */
	atomic_store(&ending, true);
	go();
	for (unsigned i = 0; i < running; i++)
		pthread_join(ids[i], NULL);
	figures();
	return 0;
}
