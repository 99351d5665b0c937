/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The emulated drive: a ring of requests per direction, in order of arrival, and the thread that lets them go.
 *
 *      first          begun            end
 *   ─────┬──────────────┬────────────────┬─────   first .. begun: in service, each with the time it is due
 *        │  in service  │    waiting     │        begun .. end: wait for the server
 *
 * Times are those of the emulated drive, not of the thread: a thread that wakes up late lets all due requests go,
 * and the rate is kept.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tools/slowdrive/slowdrive_internal.h"

#define NS_PER_SECOND 1000000000ull
#define NS_PER_US 1000ull
#define LOOK_NS (SLOWDRIVE_LOOK_MS * 1000000ull)
#define BATCH 64

/* A caller that waits in drive_wait. */
struct waiter {
	sem_t due;
	int error;
};

struct request {
	aio_context_t context; /* of iocb */
	struct iocb *iocb; /* or NULL */
	struct waiter *waiter; /* or NULL */
	uint64_t bytes, arrived_ns, due_ns;
};

struct direction {
	struct slowdrive_side *control;
	struct request ring[SLOWDRIVE_QUEUE];
	uint64_t first, begun, end; /* ever counted; see above */
	uint64_t free_ns; /* the time when the server is free again */
	int eio_fd; /* asynchronous I/O on it fails with EIO; -1: there is none */
};

static struct slowdrive *attached;
static struct direction directions[SIDES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* covers directions, and the three below */
static pthread_cond_t wake;
static bool thread_runs;
static bool pushed; /* since the thread's last look, because a signal may have met a busy thread */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_SECOND + (uint64_t)now.tv_nsec;
}

static uint64_t setting(const _Atomic uint64_t *field)
{
	return atomic_load_explicit(field, memory_order_relaxed);
}

/* ---- errors ------------------------------------------------------------------------------------ */

/*
 * The shim can't make completions up, because programs take them from a ring that the kernel writes. But the kernel
 * completes requests on a closed terminal with EIO: reads on a master without a slave, and writes on a slave
 * without a master.
 */
static void eio_open(int *reads, int *writes)
{
	int lonely = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	char name[64];
	int slave = -1;

	*reads = *writes = -1;
	if (lonely >= 0 && unlockpt(lonely) == 0 && ptsname_r(lonely, name, sizeof(name)) == 0)
		slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave >= 0 && close(slave) == 0)
		*reads = lonely;
	if (master >= 0 && unlockpt(master) == 0 && ptsname_r(master, name, sizeof(name)) == 0)
		*writes = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master >= 0)
		close(master);
	if (*reads < 0 || *writes < 0)
		fprintf(stderr, "slowdrive: no terminals here: asynchronous requests can't be made to fail\n");
}

static bool chosen_to_fail(struct direction *direction)
{
	static uint64_t state = 0x9e3779b97f4a7c15ull; /* the thread's own */
	uint64_t per_mille = setting(&direction->control->fail_per_mille);

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return per_mille && state % 1000 < per_mille;
}

/* ---- letting go -------------------------------------------------------------------------------- */

long drive_submit(aio_context_t context, long count, struct iocb **iocbs)
{
	long rc = syscall(SYS_io_submit, context, count, iocbs);

	return rc < 0 ? -errno : rc;
}

/* The program believes that the request is under way, so it must reach the kernel. */
static void submit_surely(aio_context_t context, struct iocb *iocb, int eio_fd)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	long rc;

	while ((rc = drive_submit(context, 1, &iocb)) != 1) {
		if (rc == 0 || rc == -EAGAIN || rc == -EINTR) {
			nanosleep(&pause, NULL); /* the completion ring is full */
		} else if (iocb->aio_rw_flags) {
			iocb->aio_rw_flags = 0; /* RWF_NOWAIT on a file system that has none */
		} else if (eio_fd >= 0 && iocb->aio_fildes != (uint32_t)eio_fd) {
			iocb->aio_fildes = (uint32_t)eio_fd;
		} else {
			fprintf(stderr, "slowdrive: io_submit: %s\n", strerror((int)-rc));
			abort();
		}
	}
}

/* Lets a request go that is no longer in the ring. The lock is not held. */
static void let_go(struct direction *direction, const struct request *request)
{
	bool fails = (request->waiter || direction->eio_fd >= 0) && chosen_to_fail(direction);
	struct slowdrive_side *control = direction->control;

	atomic_fetch_add_explicit(&control->bytes, request->bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&control->failed, fails, memory_order_relaxed);
	atomic_fetch_add_explicit(&control->done, 1, memory_order_relaxed);
	if (request->waiter) {
		request->waiter->error = fails ? EIO : 0;
		sem_post(&request->waiter->due);
		return;
	}
	if (fails) {
		request->iocb->aio_fildes = (uint32_t)direction->eio_fd;
		request->iocb->aio_rw_flags = 0;
	}
	submit_surely(request->context, request->iocb, direction->eio_fd);
}

/* ---- the model --------------------------------------------------------------------------------- */

static uint64_t service_ns(const struct direction *direction, const struct request *request)
{
	uint64_t per_second = setting(&direction->control->per_second);
	uint64_t units = direction == &directions[SIDE_READS] ? 1 : request->bytes;

	return per_second ? units * NS_PER_SECOND / per_second : 0;
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The time when the first waiting request can begin. */
static uint64_t begins_ns(const struct direction *direction)
{
	const struct request *request = &direction->ring[direction->begun % SLOWDRIVE_QUEUE];
	uint64_t parallel = setting(&direction->control->parallel);
	uint64_t begins = later(request->arrived_ns, direction->free_ns);

	if (parallel && parallel <= SLOWDRIVE_QUEUE / 2 && direction->begun >= parallel)
		begins = later(begins, direction->ring[(direction->begun - parallel) % SLOWDRIVE_QUEUE].due_ns);
	return begins;
}

/* Begins all requests that can begin by now. Returns the time when the next one can; UINT64_MAX: none waits. */
static uint64_t begin(struct direction *direction, uint64_t now)
{
	while (direction->begun < direction->end) {
		struct request *request = &direction->ring[direction->begun % SLOWDRIVE_QUEUE];
		uint64_t begins = begins_ns(direction);

		if (begins > now)
			return begins;
		direction->free_ns = begins + service_ns(direction, request);
		request->due_ns = direction->free_ns + setting(&direction->control->latency_us) * NS_PER_US;
		direction->begun++;
	}
	return UINT64_MAX;
}

/* Takes the first request out if it is due. */
static bool take_due(struct direction *direction, uint64_t now, struct request *out)
{
	if (direction->first == direction->begun || direction->ring[direction->first % SLOWDRIVE_QUEUE].due_ns > now)
		return false;
	*out = direction->ring[direction->first % SLOWDRIVE_QUEUE];
	direction->first++;
	if (direction->first == direction->end) /* so that a short queue touches little memory */
		direction->first = direction->begun = direction->end = 0;
	atomic_fetch_sub_explicit(&direction->control->held, 1, memory_order_relaxed);
	return true;
}

/* Takes out all due requests, at most BATCH. Returns the time of the next look; UINT64_MAX: no request is held. */
static uint64_t take_all_due(struct direction *direction, struct request due[BATCH], unsigned *count)
{
	const struct request *first = NULL;
	uint64_t now = now_ns(), next;

	*count = 0;
	if (direction->first == direction->end)
		return UINT64_MAX;
	if (setting(&direction->control->hang)) {
		direction->free_ns = later(direction->free_ns, now); /* else all held requests would go at once */
		return now + LOOK_NS;
	}
	do
		next = begin(direction, now);
	while (take_due(direction, now, &due[*count]) && ++*count < BATCH);
	if (*count == BATCH)
		return now;
	if (direction->first < direction->begun)
		first = &direction->ring[direction->first % SLOWDRIVE_QUEUE];
	return first ? sooner(first->due_ns, next) : next;
}

/* Enters and returns with the lock held; releases it while it lets requests go. */
static uint64_t serve(struct direction *direction)
{
	struct request due[BATCH];
	unsigned count;
	uint64_t next = take_all_due(direction, due, &count);

	if (count == 0)
		return next;
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < count; i++)
		let_go(direction, &due[i]);
	pthread_mutex_lock(&lock);
	return next;
}

static void wait_until(uint64_t ns)
{
	struct timespec until = { .tv_sec = (time_t)(ns / NS_PER_SECOND), .tv_nsec = (long)(ns % NS_PER_SECOND) };

	if (ns == UINT64_MAX)
		pthread_cond_wait(&wake, &lock);
	else
		pthread_cond_timedwait(&wake, &lock, &until);
}

static void *run(void *unused)
{
	prctl(PR_SET_NAME, "slowdrive");
	prctl(PR_SET_TIMERSLACK, 1ul);
	pthread_mutex_lock(&lock);
	for (;;) {
		uint64_t now, next;

		pushed = false;
		next = sooner(serve(&directions[SIDE_READS]), serve(&directions[SIDE_WRITES]));
		now = now_ns();
		if (next != UINT64_MAX && next > now + LOOK_NS) /* settings change without a signal */
			next = now + LOOK_NS;
		if (!pushed && next > now)
			wait_until(next);
	}
	return unused;
}

/* ---- taking over ------------------------------------------------------------------------------- */

/* Starts the thread at the first request, because a program may fork before it. The thread lives as long as the process
   and blocks all signals. */
static void thread_start(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, run, NULL) != 0) {
		fprintf(stderr, "slowdrive: no thread\n");
		abort();
	}
	pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	thread_runs = true;
}

/* Under the lock. */
static void push(struct direction *direction, const struct request *request)
{
	bool idle = direction->begun == direction->end;
	uint64_t held;

	direction->ring[direction->end % SLOWDRIVE_QUEUE] = *request;
	direction->ring[direction->end % SLOWDRIVE_QUEUE].arrived_ns = now_ns();
	direction->end++;
	held = atomic_fetch_add_explicit(&direction->control->held, 1, memory_order_relaxed) + 1;
	if (held > setting(&direction->control->held_most))
		atomic_store_explicit(&direction->control->held_most, held, memory_order_relaxed);
	if (!thread_runs)
		thread_start();
	if (idle) { /* else the thread wakes up for earlier requests */
		pushed = true;
		pthread_cond_signal(&wake);
	}
}

static bool try_push(enum side side, const struct request *request)
{
	struct direction *direction = &directions[side];
	bool room;

	pthread_mutex_lock(&lock);
	room = direction->end - direction->first < SLOWDRIVE_QUEUE;
	if (room)
		push(direction, request);
	pthread_mutex_unlock(&lock);
	return room;
}

bool drive_hold(enum side side, aio_context_t context, struct iocb *iocb, uint64_t bytes)
{
	return try_push(side, &(struct request){ .context = context, .iocb = iocb, .bytes = bytes });
}

int drive_wait(enum side side, uint64_t bytes)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct waiter waiter = { .error = 0 };
	int error = errno;

	sem_init(&waiter.due, 0, 0);
	while (!try_push(side, &(struct request){ .waiter = &waiter, .bytes = bytes }))
		nanosleep(&pause, NULL);
	while (sem_wait(&waiter.due) != 0)
		continue; /* a signal */
	sem_destroy(&waiter.due);
	errno = error;
	return waiter.error;
}

bool drive_is_plain(enum side side)
{
	const struct slowdrive_side *control = directions[side].control;

	return !setting(&control->per_second) && !setting(&control->latency_us) && !setting(&control->hang) &&
	       !setting(&control->fail_per_mille) && !setting(&control->held);
}

void drive_count(enum side side, uint64_t bytes)
{
	struct slowdrive_side *control = directions[side].control;

	atomic_fetch_add_explicit(&control->bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&control->done, 1, memory_order_relaxed);
}

/* ---- the start, and forks ---------------------------------------------------------------------- */

static void fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void wake_init(void)
{
	pthread_condattr_t attributes;

	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&wake, &attributes);
	pthread_condattr_destroy(&attributes);
}

/* A child process has neither the thread nor the parent's requests. */
static void fork_child(void)
{
	for (int side = 0; side < SIDES; side++)
		directions[side].first = directions[side].begun = directions[side].end = 0;
	thread_runs = false;
	wake_init();
	atomic_store(&attached->attached, (uint64_t)getpid());
	pthread_mutex_unlock(&lock);
}

void drive_open(struct slowdrive *control)
{
	attached = control;
	directions[SIDE_READS].control = &control->reads;
	directions[SIDE_WRITES].control = &control->writes;
	eio_open(&directions[SIDE_READS].eio_fd, &directions[SIDE_WRITES].eio_fd);
	wake_init();
	pthread_atfork(fork_prepare, fork_parent, fork_child);
	atomic_store(&control->attached, (uint64_t)getpid());
}
