/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A ring of reads: as many as the depth are always under way, and all completions that one
 * io_getevents returns go back in one io_submit. Little else happens per read (a random number, two
 * clock readings per batch, a histogram step), so that the CPU time is what the kernel takes.
 */
#include "tools/bench/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <libaio.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"

#define PAGE 4096u
#define DEPTH_MOST 4096u
#define BYTES_MOST (4096u * PAGE)
#define UNIT_LEAST 512u

struct slot {
	struct iocb iocb;
	uint64_t submitted_ns;
	void *buffer;
};

struct ring {
	const struct raw_spec *spec;
	struct raw_result *result;
	io_context_t context;
	int fd;
	int error; /* of the thread's run: 0 or an errno */
	uint64_t random;
	uint64_t issued;
	uint8_t *buffers;
	struct slot *slots;
	struct iocb **batch; /* of the next io_submit */
	struct io_event *events;
	unsigned batched;
};

static uint64_t now_ns(clockid_t clock)
{
	struct timespec now;

	must(clock_gettime(clock, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t random_offset(struct ring *ring)
{
	const struct raw_spec *spec = ring->spec;
	uint64_t positions = (spec->bytes - spec->read_bytes) / spec->unit + 1;

	ring->random += 0x9e3779b97f4a7c15ull;
	return spec->offset + reduce64(mix64(ring->random), positions) * spec->unit;
}

static void add_to_batch(struct ring *ring, struct slot *slot)
{
	io_prep_pread(&slot->iocb, ring->fd, slot->buffer, ring->spec->read_bytes, (long long)random_offset(ring));
	slot->iocb.data = slot;
	ring->batch[ring->batched++] = &slot->iocb;
	ring->issued++;
}

/* 0 or a negative errno. The kernel may take fewer than it is offered, but never none without an error. */
static int submit_batch(struct ring *ring)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	unsigned done = 0;

	for (unsigned i = 0; i < ring->batched; i++)
		((struct slot *)ring->batch[i]->data)->submitted_ns = now;
	while (done < ring->batched) {
		int taken = io_submit(ring->context, (long)(ring->batched - done), ring->batch + done);

		if (taken < 0 && taken != -EINTR)
			return taken;
		done += taken > 0 ? (unsigned)taken : 0;
	}
	ring->batched = 0;
	return 0;
}

/* Waits for at least one completion and refills the batch. 0 or a negative errno. */
static int reap(struct ring *ring)
{
	const struct raw_spec *spec = ring->spec;
	int n = io_getevents(ring->context, 1, (long)spec->depth, ring->events, NULL);
	uint64_t now;

	if (n < 0)
		return n == -EINTR ? 0 : n;
	now = now_ns(CLOCK_MONOTONIC);
	for (int i = 0; i < n; i++) {
		struct slot *slot = ring->events[i].data;
		int64_t got = (int64_t)ring->events[i].res;

		if (got != (int64_t)spec->read_bytes)
			return got < 0 ? (int)got : -EIO;
		hist_record(ring->result->latency, now - slot->submitted_ns);
		ring->result->reads++;
		if (ring->issued < spec->reads)
			add_to_batch(ring, slot);
	}
	return 0;
}

static int read_all(struct ring *ring)
{
	const struct raw_spec *spec = ring->spec;
	int rc = 0;

	for (unsigned i = 0; i < spec->depth && ring->issued < spec->reads; i++)
		add_to_batch(ring, &ring->slots[i]);
	while (rc == 0 && ring->result->reads < spec->reads) {
		rc = submit_batch(ring);
		if (rc == 0)
			rc = reap(ring);
	}
	return rc;
}

/* Each read needs a buffer of its own: O_DIRECT writes into it until the read is reaped. */
static int make_slots(struct ring *ring)
{
	size_t bytes = (ring->spec->read_bytes + PAGE - 1) / PAGE * PAGE; /* a buffer lies in as few pages as it can */
	unsigned depth = ring->spec->depth;

	ring->buffers = mem_aligned(PAGE, bytes * depth);
	ring->slots = mem_zalloc(sizeof(*ring->slots) * depth);
	ring->batch = mem_zalloc(sizeof(struct iocb *) * depth);
	ring->events = mem_zalloc(sizeof(*ring->events) * depth);
	if (!ring->buffers || !ring->slots || !ring->batch || !ring->events)
		return FS_ENOMEM;
	memset(ring->buffers, 0, bytes * depth);
	for (unsigned i = 0; i < depth; i++)
		ring->slots[i].buffer = ring->buffers + i * bytes;
	return FS_OK;
}

static int system_error(int error)
{
	errno = error;
	return FS_ESYS;
}

/* The calling thread; 0 or a negative errno. */
static int pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return 0;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0 ? 0 : -errno;
}

static void *run(void *argument)
{
	struct ring *ring = argument;
	uint64_t start_ns, start_cpu_ns;
	int rc = pin(ring->spec->cpu);

	start_ns = now_ns(CLOCK_MONOTONIC);
	start_cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);
	if (rc == 0)
		rc = read_all(ring);
	ring->result->cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - start_cpu_ns;
	ring->result->seconds = (double)(now_ns(CLOCK_MONOTONIC) - start_ns) / 1e9;
	ring->error = -rc;
	return NULL;
}

/* The thread is its own so that the caller's affinity and CPU time stay as they are. */
static int run_in_thread(struct ring *ring)
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, run, ring);

	if (rc != 0)
		return system_error(rc);
	must(pthread_join(thread, NULL) == 0);
	return ring->error == 0 ? FS_OK : system_error(ring->error);
}

static bool is_valid(const struct raw_spec *spec)
{
	return spec->unit >= UNIT_LEAST && spec->unit <= PAGE && PAGE % spec->unit == 0 && spec->read_bytes > 0 &&
	       spec->read_bytes % spec->unit == 0 && spec->read_bytes <= BYTES_MOST && spec->depth > 0 &&
	       spec->depth <= DEPTH_MOST && spec->offset % PAGE == 0 && spec->bytes >= spec->read_bytes;
}

int raw_read(const struct raw_spec *spec, struct raw_result *result)
{
	struct ring ring = { .spec = spec, .result = result, .fd = -1, .random = mix64(spec->seed + 1) };
	int rc, error;

	*result = (struct raw_result){ 0 };
	if (!is_valid(spec))
		return FS_EINVAL;
	ring.fd = open(spec->path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	if (ring.fd < 0)
		return FS_ESYS;
	rc = make_slots(&ring);
	if (rc != FS_OK)
		goto out;
	rc = io_setup((int)spec->depth, &ring.context);
	if (rc != 0) {
		rc = system_error(-rc);
		goto out;
	}
	result->latency = hist_create();
	rc = run_in_thread(&ring);
	/* Waits for the reads that a failed run has left in flight, before their buffers are freed. */
	io_destroy(ring.context);
out:
	error = errno;
	if (rc != FS_OK)
		raw_result_fini(result);
	mem_free(ring.events);
	mem_free(ring.batch);
	mem_free(ring.slots);
	mem_free(ring.buffers);
	close(ring.fd);
	errno = error;
	return rc;
}

void raw_result_fini(struct raw_result *result)
{
	if (result->latency)
		hist_destroy(result->latency);
	result->latency = NULL;
}
