/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sched/wraps.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "tests/sched/clients.h"
#include "tests/sched/fibers.h"
#include "tests/sched/finding.h"
#include "tests/sched/life.h"
#include "tests/sched/site.h"

#define SECOND 1000000000ull
#define EPOCH_S 1750000000 /* the wall clock when the run's time is 0 */
#define FIRST_FD 100000 /* of descriptors that only exist here */
#define FDS 256

#define LOCK_POINT 4u /* what a lock weighs, against 1 of an atomic */

static struct wraps_options options;
static struct rng rng;

void wraps_begin(const struct wraps_options *given)
{
	options = *given;
	rng_init(&rng, options.seed);
}

/* ---- threads --------------------------------------------------------------------------------- */

#define WRAP(type, name, ...) \
	type __wrap_##name(__VA_ARGS__); \
	type __wrap_##name(__VA_ARGS__)

WRAP(int, pthread_create, pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *context)
{
	(void)attributes;
	*thread = fiber_start(run, context);
	return 0;
}

WRAP(int, pthread_join, pthread_t thread, void **result)
{
	void *returned = fiber_join((unsigned)thread);

	if (result)
		*result = returned;
	return 0;
}

WRAP(pthread_t, pthread_self, void)
{
	return fiber_self();
}

WRAP(int, pthread_setname_np, pthread_t thread, const char *name)
{
	fiber_name((unsigned)thread, name);
	return 0;
}

WRAP(int, setpriority, int which, id_t who, int priority)
{
	(void)which, (void)who, (void)priority;
	return 0;
}

/* The call is not interrupted: what it makes is there when another fiber asks. */
WRAP(int, pthread_once, pthread_once_t *once, void (*call)(void))
{
	if (*once == PTHREAD_ONCE_INIT) {
		*once = 1;
		call();
	}
	return 0;
}

/* ---- locks ----------------------------------------------------------------------------------- */

/* What a mutex is here; zeros are a free one, as with PTHREAD_MUTEX_INITIALIZER. */
struct mutex {
	uint32_t owner; /* a fiber's number + 1; 0: it is free */
	uint32_t waiters;
	bool ended;
};
_Static_assert(sizeof(struct mutex) <= sizeof(pthread_mutex_t), "it lies there");

static struct mutex *mutex_of(pthread_mutex_t *mutex)
{
	struct mutex *own = (struct mutex *)mutex;

	if (own->ended)
		finding("a lock is used behind its end");
	return own;
}

WRAP(int, pthread_mutex_init, pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes)
{
	(void)attributes;
	*(struct mutex *)mutex = (struct mutex){ 0 };
	return 0;
}

WRAP(int, pthread_mutex_destroy, pthread_mutex_t *mutex)
{
	struct mutex *own = mutex_of(mutex);

	if (own->owner || own->waiters)
		finding("a lock ends while it is held or waited for");
	own->ended = true;
	return 0;
}

static void take(struct mutex *own)
{
	while (own->owner) {
		if (own->owner == fiber_self() + 1)
			finding("a fiber takes a lock that it holds");
		own->waiters++;
		(void)fiber_wait(own, FIBER_FOREVER);
		own->waiters--;
	}
	own->owner = fiber_self() + 1;
}

WRAP(int, pthread_mutex_lock, pthread_mutex_t *mutex)
{
	fiber_point_at(LOCK_POINT, SITE());
	take(mutex_of(mutex));
	return 0;
}

WRAP(int, pthread_mutex_trylock, pthread_mutex_t *mutex)
{
	struct mutex *own = mutex_of(mutex);

	fiber_point_at(LOCK_POINT, SITE());
	if (own->owner)
		return EBUSY;
	own->owner = fiber_self() + 1;
	return 0;
}

static void release(struct mutex *own)
{
	if (own->owner != fiber_self() + 1)
		finding("a fiber releases a lock that it doesn't hold");
	own->owner = 0;
	if (own->waiters)
		fiber_wake_all(own);
}

WRAP(int, pthread_mutex_unlock, pthread_mutex_t *mutex)
{
	release(mutex_of(mutex));
	fiber_point_at(LOCK_POINT, SITE());
	return 0;
}

WRAP(int, pthread_cond_init, pthread_cond_t *cond, const pthread_condattr_t *attributes)
{
	(void)attributes;
	memset(cond, 0, sizeof(*cond));
	return 0;
}

WRAP(int, pthread_cond_destroy, pthread_cond_t *cond)
{
	memset(cond, 0, sizeof(*cond));
	return 0;
}

WRAP(int, pthread_cond_signal, pthread_cond_t *cond)
{
	fiber_point(1);
	fiber_wake_one(cond);
	return 0;
}

WRAP(int, pthread_cond_broadcast, pthread_cond_t *cond)
{
	fiber_point(1);
	fiber_wake_all(cond);
	return 0;
}

static int wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t until_ns)
{
	struct mutex *own = mutex_of(mutex);
	bool woken = true;

	release(own);
	if (fiber_random(1000) >= options.spurious)
		woken = fiber_wait(cond, until_ns);
	else
		fiber_yield();
	take(own);
	return woken ? 0 : ETIMEDOUT;
}

WRAP(int, pthread_cond_wait, pthread_cond_t *cond, pthread_mutex_t *mutex)
{
	return wait_for(cond, mutex, FIBER_FOREVER);
}

static uint64_t since_boot(void)
{
	return fiber_now_ns() - options.boot_ns;
}

/* All conditions are of the monotonic clock. */
WRAP(int, pthread_cond_timedwait, pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
	uint64_t ns = (uint64_t)until->tv_sec * SECOND + (uint64_t)until->tv_nsec;

	if (ns <= since_boot())
		return ETIMEDOUT;
	return wait_for(cond, mutex, ns + options.boot_ns);
}

/* ---- time ------------------------------------------------------------------------------------ */

WRAP(int, clock_gettime, clockid_t clock, struct timespec *out)
{
	uint64_t ns = clock == CLOCK_REALTIME ? EPOCH_S * SECOND + fiber_now_ns() : since_boot();

	*out = (struct timespec){ .tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND) };
	return 0;
}

WRAP(int, nanosleep, const struct timespec *time, struct timespec *left)
{
	(void)left;
	fiber_sleep_until(fiber_now_ns() + (uint64_t)time->tv_sec * SECOND + (uint64_t)time->tv_nsec);
	return 0;
}

WRAP(int, usleep, useconds_t us)
{
	fiber_sleep_until(fiber_now_ns() + 1000ull * us);
	fiber_window(); /* a thread may wake late */
	return 0;
}

WRAP(int, sched_yield, void)
{
	fiber_window();
	return 0;
}

WRAP(ssize_t, getrandom, void *bytes, size_t length, unsigned flags)
{
	(void)flags;
	for (size_t i = 0; i < length; i++)
		((uint8_t *)bytes)[i] = (uint8_t)rng_next(&rng);
	return (ssize_t)length;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static struct descriptor {
	bool used, is_timer;
	uint64_t count; /* of events */
	uint64_t due_ns; /* of a timer; 0: it is not armed */
} descriptors[FDS];
static const char any_descriptor[1]; /* where fibers wait for them */

static struct descriptor *descriptor_of(int fd)
{
	if (fd < FIRST_FD || fd >= FIRST_FD + FDS)
		return NULL;
	if (!descriptors[fd - FIRST_FD].used)
		finding("a descriptor is used behind its end");
	return &descriptors[fd - FIRST_FD];
}

static bool is_readable(const struct descriptor *descriptor)
{
	if (descriptor->is_timer)
		return descriptor->due_ns && descriptor->due_ns <= fiber_now_ns();
	return descriptor->count > 0;
}

static int make_descriptor(bool is_timer)
{
	for (int i = 0; i < FDS; i++)
		if (!descriptors[i].used) {
			descriptors[i] = (struct descriptor){ .used = true, .is_timer = is_timer };
			return FIRST_FD + i;
		}
	finding("too many descriptors");
}

void wraps_signal(int fd)
{
	descriptor_of(fd)->count++;
	fiber_wake_all(any_descriptor);
}

/* When the timer of the two fires, if one of them is a timer. */
static uint64_t timer_ns(int fd)
{
	const struct descriptor *descriptor = descriptor_of(fd);

	return descriptor && descriptor->is_timer && descriptor->due_ns ? descriptor->due_ns : FIBER_FOREVER;
}

void wraps_wait_fds(int events_fd, int timer_fd, uint64_t until_ns)
{
	struct descriptor *events = descriptor_of(events_fd), *timer = descriptor_of(timer_fd);

	while (fiber_now_ns() < until_ns && !(events && is_readable(events)) && !(timer && is_readable(timer))) {
		uint64_t ns = timer_ns(timer_fd);

		(void)fiber_wait(any_descriptor, ns < until_ns ? ns : until_ns);
	}
	if (events)
		events->count = 0;
}

WRAP(int, eventfd, unsigned count, int flags)
{
	int fd = make_descriptor(false);

	(void)flags;
	descriptor_of(fd)->count = count;
	return fd;
}

WRAP(int, eventfd_write, int fd, eventfd_t value)
{
	(void)value;
	fiber_point(1);
	wraps_signal(fd);
	return 0;
}

WRAP(int, eventfd_read, int fd, eventfd_t *value)
{
	struct descriptor *descriptor = descriptor_of(fd);

	fiber_point(1);
	*value = descriptor->count;
	descriptor->count = 0;
	if (*value)
		return 0;
	errno = EAGAIN;
	return -1;
}

WRAP(int, timerfd_create, int clock, int flags)
{
	(void)clock, (void)flags;
	return make_descriptor(true);
}

WRAP(int, timerfd_settime, int fd, int flags, const struct itimerspec *when, struct itimerspec *old)
{
	uint64_t ns = (uint64_t)when->it_value.tv_sec * SECOND + (uint64_t)when->it_value.tv_nsec;

	(void)flags, (void)old;
	descriptor_of(fd)->due_ns = ns ? fiber_now_ns() + ns : 0;
	return 0;
}

WRAP(int, poll, struct pollfd *fds, nfds_t n, int ms)
{
	uint64_t until_ns = ms < 0 ? FIBER_FOREVER : fiber_now_ns() + (uint64_t)ms * 1000000;

	for (;;) {
		uint64_t wait_ns = until_ns;
		int ready = 0;

		for (nfds_t i = 0; i < n; i++) {
			fds[i].revents = is_readable(descriptor_of(fds[i].fd)) ? POLLIN : 0;
			ready += fds[i].revents != 0;
			if (timer_ns(fds[i].fd) < wait_ns)
				wait_ns = timer_ns(fds[i].fd);
		}
		if (ready || fiber_now_ns() >= until_ns)
			return ready;
		(void)fiber_wait(any_descriptor, wait_ns);
	}
}

ssize_t __real_read(int fd, void *bytes, size_t length);
ssize_t __real_write(int fd, const void *bytes, size_t length);
int __real_close(int fd);

WRAP(ssize_t, read, int fd, void *bytes, size_t length)
{
	struct descriptor *descriptor = descriptor_of(fd);

	if (!descriptor)
		return __real_read(fd, bytes, length);
	fiber_point(1);
	if (!is_readable(descriptor)) {
		errno = EAGAIN;
		return -1;
	}
	*(uint64_t *)bytes = 1;
	descriptor->count = descriptor->due_ns = 0;
	return sizeof(uint64_t);
}

WRAP(ssize_t, write, int fd, const void *bytes, size_t length)
{
	if (!descriptor_of(fd))
		return __real_write(fd, bytes, length);
	fiber_point(1);
	wraps_signal(fd);
	return (ssize_t)length;
}

WRAP(int, close, int fd)
{
	struct descriptor *descriptor = descriptor_of(fd);

	if (!descriptor)
		return __real_close(fd);
	*descriptor = (struct descriptor){ 0 };
	return 0;
}

/* ---- keys ------------------------------------------------------------------------------------ */

uint64_t __real_store_hash(const struct store *store, const char *key, size_t length);

/* A thread of the engine's own is about to do something with the key: clients may want it, too. */
WRAP(uint64_t, store_hash, const struct store *store, const char *key, size_t length)
{
	clients_hear(key, length);
	return __real_store_hash(store, key, length);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Of a fault point that kills. The signal comes at once, or when the others have gone on for a while. */
WRAP(int, raise, int number)
{
	(void)number;
	if (fiber_random(4))
		life_await_others();
	life_killed();
}

WRAP(void, abort, void)
{
	finding("the engine aborts");
}
