/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/rng.h"
#include "server/store/store.h"
#include "tools/bench/report.h"

#define MEMORY_BYTES (512ull << 20)
#define VALUE_BYTES 257
#define KEY_BYTES 30
#define TURN_OPERATIONS 16 /* of a turn of a worker's event loop */
#define THREADS_MOST 8

struct run {
	struct store *store;
	struct store_worker *workers[THREADS_MOST];
	unsigned worker_count;
	uint64_t keys, operations;
	unsigned round;
	double alone_ns[2]; /* this round's CPU per get, set with the first number of threads */
};

struct runner {
	struct run *run;
	struct store_worker *worker;
	pthread_barrier_t *barrier;
	bool is_set, in_order; /* all keys in order; else drawn */
	struct rng rng;
	uint64_t operations, cpu_ns, start_ns, end_ns, failed, wrong;
	uint64_t sleeps; /* voluntary context switches */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Digits in base 16, because making keys must cost very little beside the store. */
static void write_key(char key[KEY_BYTES], uint64_t number)
{
	memset(key, '0', KEY_BYTES);
	for (int i = KEY_BYTES - 1; number; number >>= 4)
		key[i--] = "0123456789abcdef"[number & 15];
}

static bool set(struct runner *runner, struct store_request *request, uint64_t number)
{
	enum store_result why;
	char *value;

	request->op = STORE_SET;
	request->item = store_item_create(runner->worker, request->key, KEY_BYTES, 0, 0, VALUE_BYTES, &why);
	if (!request->item)
		return false;
	value = store_item_value(request->item);
	memset(value, (int)(number & 0xff), VALUE_BYTES);
	return store_execute(runner->worker, request) && request->result == STORE_STORED;
}

static bool get(struct runner *runner, struct store_request *request, uint64_t number)
{
	bool right;

	request->op = STORE_GET;
	if (!store_execute(runner->worker, request) || request->result != STORE_HIT)
		return false;
	right = request->value.length == VALUE_BYTES && (uint8_t)request->value.data[0] == (number & 0xff);
	runner->wrong += !right;
	store_value_release(runner->worker, &request->value);
	return true;
}

static void operate(struct runner *runner)
{
	const struct run *run = runner->run;
	char key[KEY_BYTES];

	for (uint64_t i = 0; i < runner->operations; i++) {
		uint64_t number = runner->in_order ? i : rng_below(&runner->rng, run->keys);
		struct store_request request = { .key = key, .key_length = KEY_BYTES };

		if (i % TURN_OPERATIONS == 0)
			store_worker_turn(runner->worker);
		write_key(key, number);
		request.hash = store_hash(run->store, key, KEY_BYTES);
		runner->failed += !(runner->is_set ? set(runner, &request, number) : get(runner, &request, number));
	}
}

/* Of the calling thread, so far. */
static uint64_t sleeps_so_far(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? (uint64_t)usage.ru_nvcsw : 0;
}

static void *runner_main(void *argument)
{
	struct runner *runner = argument;

	pthread_barrier_wait(runner->barrier);
	runner->sleeps = sleeps_so_far();
	runner->start_ns = clock_ns(CLOCK_MONOTONIC);
	runner->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	operate(runner);
	runner->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - runner->cpu_ns;
	runner->end_ns = clock_ns(CLOCK_MONOTONIC);
	runner->sleeps = sleeps_so_far() - runner->sleeps;
	return NULL;
}

/* ---- measuring ------------------------------------------------------------------------------- */

/* All start together. One that can't be made would be waited for at the barrier: then the program ends. */
static void run_threads(struct runner *runners, unsigned threads)
{
	pthread_t ids[THREADS_MOST];
	pthread_barrier_t barrier;

	pthread_barrier_init(&barrier, NULL, threads);
	for (unsigned i = 0; i < threads; i++) {
		runners[i].barrier = &barrier;
		must(pthread_create(&ids[i], NULL, runner_main, &runners[i]) == 0);
	}
	for (unsigned i = 0; i < threads; i++)
		pthread_join(ids[i], NULL);
	pthread_barrier_destroy(&barrier);
}

/* The sum over the threads; start and end are the first's and the last's. */
static struct runner sum_of(const struct runner *runners, unsigned threads)
{
	struct runner sum = { .start_ns = UINT64_MAX };

	for (unsigned i = 0; i < threads; i++) {
		sum.operations += runners[i].operations;
		sum.cpu_ns += runners[i].cpu_ns;
		sum.sleeps += runners[i].sleeps;
		sum.failed += runners[i].failed;
		sum.wrong += runners[i].wrong;
		if (runners[i].start_ns < sum.start_ns)
			sum.start_ns = runners[i].start_ns;
		if (runners[i].end_ns > sum.end_ns)
			sum.end_ns = runners[i].end_ns;
	}
	return sum;
}

static int measure(struct run *run, unsigned threads, bool is_set)
{
	struct runner runners[THREADS_MOST], sum;
	double cpu_ns;
	char row[64];

	for (unsigned i = 0; i < threads; i++) {
		runners[i] = (struct runner){
			.run = run, .worker = run->workers[i], .is_set = is_set, .operations = run->operations
		};
		rng_init(&runners[i].rng, run->round * THREADS_MOST + i);
	}
	run_threads(runners, threads);
	sum = sum_of(runners, threads);
	cpu_ns = (double)sum.cpu_ns / (double)sum.operations;
	if (run->alone_ns[is_set] == 0)
		run->alone_ns[is_set] = cpu_ns;
	snprintf(row, sizeof(row), "store %s, %u thread%s", is_set ? "set" : "get", threads, threads > 1 ? "s" : "");
	report_add(row, "store_cpu_ns", cpu_ns);
	report_add(row, "store_growth", cpu_ns / run->alone_ns[is_set]);
	report_add(row, "store_ops_s", (double)sum.operations * 1e9 / (double)(sum.end_ns - sum.start_ns));
	report_add(row, "store_switches", (double)sum.sleeps * 1e6 / (double)sum.operations);
	if (sum.failed)
		report_note("%s: %llu operations failed or missed.", row, (unsigned long long)sum.failed);
	return sum.wrong ? FS_ECORRUPT : FS_OK;
}

/* ---- the store ------------------------------------------------------------------------------- */

static int open_store(struct run *run, unsigned workers)
{
	struct store_config config;
	char reason[256] = "";
	int code;

	store_config_init(&config);
	config.clock = clk_boot();
	config.memory_bytes = MEMORY_BYTES;
	config.workers = workers;
	code = store_open(&run->store, &config, reason);
	if (code != FS_OK) {
		fprintf(stderr, "flashield-bench: the store doesn't open: %s\n", reason);
		return code;
	}
	while (code == FS_OK && run->worker_count < workers) {
		code = store_worker_create(&run->workers[run->worker_count], run->store);
		run->worker_count += code == FS_OK;
	}
	return code;
}

static void close_store(struct run *run)
{
	while (run->worker_count)
		store_worker_destroy(run->workers[--run->worker_count]);
	if (run->store)
		store_close(run->store);
}

static void fill(struct run *run)
{
	struct runner filler = {
		.run = run, .worker = run->workers[0], .is_set = true, .in_order = true, .operations = run->keys
	};

	operate(&filler);
}

int engine_store(unsigned rounds, uint64_t keys, uint64_t operations)
{
	struct run run = { .keys = keys, .operations = operations };
	int code;

	if (keys == 0 || operations == 0)
		return FS_EINVAL;
	log_set_level(LOG_LEVEL_ERROR);
	code = open_store(&run, THREADS_MOST);
	if (code != FS_OK)
		goto out;
	fill(&run);
	for (; run.round < rounds; run.round++) {
		memset(run.alone_ns, 0, sizeof(run.alone_ns));
		for (unsigned threads = 1; threads <= THREADS_MOST; threads *= 2)
			for (int is_set = 0; is_set < 2 && code == FS_OK; is_set++)
				code = measure(&run, threads, is_set);
	}
out:
	close_store(&run);
	return code;
}
