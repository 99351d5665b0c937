/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast the cleaner works. A segment has to be on flash before clients' sets have used up the free memory. Until
 * then there is time, and the cleaner works in steps of some ten microseconds with pauses in between, so that workers
 * hardly notice, even one that shares its CPU with the cleaner. The length of the pauses follows from the demand for
 * memory and from the time that the last segments took. Without time there are no pauses. There are none either while a
 * frugal index's table of kills is crowded: the kills can leave it only when the segment that is being written is done, and one
 * for which it has no room costs other keys' objects.
 *
 *   |<------------- time until free memory is used up, at the present demand --------------->|
 *   |<- a quarter: work and its pauses ->|<- a quarter: the write, spread ->|     reserve      |
 */
#include <errno.h>
#include <math.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "server/store/cleaner/cleaner_internal.h"

#define DEMAND_MS 100
#define DEMAND_SMOOTHING 0.02 /* weight of a lower reading: falls to a third in five seconds */
#define CYCLE_SMOOTHING 0.5 /* one disturbed cycle is forgotten within a few */
#define SHARE_OF_TIME 4.0 /* work takes a part of the time left, one in so many, and so does the write */
#define WRITE_MAX_MS 5000.0
#define STEP_US 64
#define DUTY_LEAST 0.1 /* the least part of the time that is worked ... */
#define DUTY_CEILINGS 0.25 /* ... and for applications at their ceilings: what is late for these is evicted */
#define FIRST_BYTES_PER_MS 50e3 /* assumed for the first segment: slow, so that it comes in time */
#define SLICE_NS 100000000ull

static double pace_smooth(double old, double reading, double part)
{
	return reading > old ? reading : old + part * (reading - old);
}

static double pace_demand(const struct store *store)
{
	return atomic_load_explicit(&store->cleaner->pace.demand, memory_order_relaxed);
}

static double pace_cycle_ms(const struct store *store)
{
	return atomic_load_explicit(&store->cleaner->pace.cycle_ms, memory_order_relaxed);
}

/* Measures by how much items would have grown without keeper and cleaner. Objects that replace others are no demand. */
void pace_observe(struct store *store, uint64_t now_ms)
{
	struct pace *pace = &store->cleaner->pace;
	int64_t bytes = atomic_load_explicit(&store->item_bytes, memory_order_relaxed) +
			(int64_t)atomic_load_explicit(&store->released_bytes, memory_order_relaxed);

	if (now_ms < pace->observed_ms + DEMAND_MS)
		return;
	double reading = (double)(bytes - pace->observed_bytes) * 1000 / (double)(now_ms - pace->observed_ms);
	atomic_store_explicit(&pace->demand, pace_smooth(pace_demand(store), fmax(reading, 0), DEMAND_SMOOTHING),
			      memory_order_relaxed);
	pace->observed_bytes = bytes;
	pace->observed_ms = now_ms;
}

/* The time until free memory is used up. */
static double pace_time_left_ms(const struct store *store)
{
	int64_t free_bytes = store_free_bytes(store);

	if (free_bytes <= 0)
		return 0;
	return pace_demand(store) > 0 ? (double)free_bytes / pace_demand(store) * 1000 : HUGE_VAL;
}

uint64_t pace_reserve(const struct store *store)
{
	return (uint64_t)(2 * pace_demand(store) * pace_cycle_ms(store) / 1000);
}

static bool pace_has_kills_waiting(const struct store *store)
{
	return store->frugal && frugal_is_crowded(store->frugal);
}

bool pace_hurry(const struct store *store)
{
	return pace_has_kills_waiting(store) || pace_time_left_ms(store) < 2 * pace_cycle_ms(store);
}

void pace_init(struct store *store, uint64_t now_ms)
{
	struct pace *pace = &store->cleaner->pace;

	memset(pace, 0, sizeof(*pace));
	pace->observed_ms = now_ms;
	atomic_init(&pace->cycle_ms, (double)store->segment_bytes / FIRST_BYTES_PER_MS);
}

/* The part of the time to be worked, DUTY_LEAST .. 1. */
static double pace_duty(const struct store *store)
{
	double left_ms = pace_time_left_ms(store), wanted = SHARE_OF_TIME * pace_cycle_ms(store);

	return left_ms <= wanted || pace_has_kills_waiting(store)
		       ? 1
		       : fmax(wanted / left_ms, store->cleaner->ceilings.only ? DUTY_CEILINGS : DUTY_LEAST);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* The kernel's struct sched_attr; glibc of Debian 12 has neither the struct nor the call. */
struct scheduling {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

/*
 * A batch thread doesn't preempt others when it wakes, and waking threads with shorter slices preempt one with a long
 * slice at once (since Linux 6.12; older kernels ignore the runtime here). In a hurry the cleaner is a thread like any
 * other: beside a worker that never sleeps, a batch thread would wait for the end of the worker's slice after each
 * wait for the device.
 */
static void pace_schedule(struct store *store, bool hurry)
{
	struct scheduling scheduling = { .size = sizeof(scheduling),
					 .policy = hurry ? SCHED_OTHER : SCHED_BATCH,
					 .runtime = hurry ? 0 : SLICE_NS };

	if (!store->cleaner->background.threaded || hurry == store->cleaner->pace.hurried)
		return;
	store->cleaner->pace.hurried = hurry;
	errno = 0;
	scheduling.nice = getpriority(PRIO_PROCESS, 0);
	if (errno == 0)
		(void)!syscall(SYS_sched_setattr, 0, &scheduling, 0);
}

void pace_thread(struct store *store)
{
	store->cleaner->pace.hurried = true;
	pace_schedule(store, false);
	(void)prctl(PR_SET_TIMERSLACK, 1000ul); /* so that pauses are as short as asked for */
}

/* ---- a segment's cycle ----------------------------------------------------------------------- */

/* A test waits for the cleaner: it goes as fast as it can. */
static bool is_driven(const struct store *store)
{
	return place_is_under_way(store) || atomic_load_explicit(&store->cleaner->driven, memory_order_relaxed);
}

void pace_begin(struct store *store)
{
	struct pace *pace = &store->cleaner->pace;

	pace->began_us = pace->step_us = clk_now_us(store->clock);
	pace->paused_us = 0;
	pace_schedule(store, pace_duty(store) == 1);
}

void pace_end(struct store *store)
{
	struct pace *pace = &store->cleaner->pace;

	if (store->cleaner->ceilings.only) /* the search among all objects takes longer than that of other segments */
		return;
	double took_ms = (double)(clk_now_us(store->clock) - pace->began_us - pace->paused_us) / 1000;

	atomic_store_explicit(&pace->cycle_ms, pace_smooth(pace_cycle_ms(store), took_ms, CYCLE_SMOOTHING),
			      memory_order_relaxed);
}

static void pace_note_pause(struct store *store, uint64_t since_us)
{
	struct pace *pace = &store->cleaner->pace;

	pace->step_us = clk_now_us(store->clock);
	pace->paused_us += pace->step_us - since_us;
}

void pace_step(struct store *store)
{
	struct pace *pace = &store->cleaner->pace;
	uint64_t now_us, worked_us, pause_us;

	(void)fault_fires(FAULT_cleaner_step);
	if (!store->cleaner->background.threaded || background_is_stopping(&store->cleaner->background))
		return;
	now_us = clk_now_us(store->clock);
	atomic_store_explicit(&store->cleaner->beat_ms, now_us / 1000, memory_order_relaxed);
	worked_us = now_us - pace->step_us;
	if (worked_us < STEP_US)
		return;
	double part = is_driven(store) ? 1 : pace_duty(store);
	must(part > 0 && part <= 1);
	pace_schedule(store, part == 1);
	/* During most of a long step other threads had the CPU, and the cleaner need not rest from their work. */
	if (worked_us > 2 * STEP_US)
		worked_us = 2 * STEP_US;
	pause_us = (uint64_t)((double)worked_us * (1 / part - 1));
	pace->step_us = now_us;
	if (pause_us == 0)
		return;
	struct timespec pause = { .tv_nsec = (long)pause_us * 1000 };
	nanosleep(&pause, NULL);
	pace_note_pause(store, now_us);
}

void pace_plan_step(void *context)
{
	pace_step(context);
}

void pace_write(struct store *store, uint64_t began_ms, double part)
{
	double spread_ms = fmin(pace_time_left_ms(store) / SHARE_OF_TIME, WRITE_MAX_MS);
	uint64_t now_us = clk_now_us(store->clock);
	double early_ms = spread_ms * part - (double)(now_us / 1000 - began_ms);

	if (pace_demand(store) <= 0 || pace_hurry(store) || early_ms <= 1 || is_driven(store))
		return;
	seg_write_wait(store->segments);
	early_ms -= (double)(clk_now_us(store->clock) - now_us) / 1000;
	if (early_ms > 1)
		cleaner_sleep(store, (unsigned)early_ms);
	pace_note_pause(store, now_us);
}
