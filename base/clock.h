/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time comes in from outside: the daemon passes the boot-time clock, and a program that drives the time itself, like a
 * test, a scripted one. The boot-time clock is monotonic, is never set back, and counts while the machine is suspended.
 *
 * Threads: all functions from any thread, but clk_scripted_init before others use the clock. None can fail.
 */
#ifndef FS_BASE_CLOCK_H
#define FS_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct clk {
	uint64_t (*now_ns)(const struct clk *clk);
	_Atomic uint64_t scripted_us; /* the time of a scripted clock */
};

/* Returns the boot-time clock (CLOCK_BOOTTIME). Static storage. */
const struct clk *clk_boot(void);

#ifdef FS_FAULTS
/* For a test that drives a whole program: the boot-time clock stands from now on, or goes on from where it stood; and it is
   moved forward. */
void clk_boot_stand(bool stands);
void clk_boot_advance(uint64_t us);
#endif

/* Makes a clock that stands at start_us until it is moved. Nothing is to be freed. */
void clk_scripted_init(struct clk *clk, uint64_t start_us);
/* Moves a scripted clock forward. */
void clk_scripted_advance(struct clk *clk, uint64_t us);

/* Return the time since the clock's start, in nano-, micro- or milliseconds. */
static inline uint64_t clk_now_ns(const struct clk *clk)
{
	return clk->now_ns(clk);
}

static inline uint64_t clk_now_us(const struct clk *clk)
{
	return clk_now_ns(clk) / 1000;
}

static inline uint64_t clk_now_ms(const struct clk *clk)
{
	return clk_now_ns(clk) / 1000000;
}

/* Returns the time of CLOCK_MONOTONIC ms from now, until which pthread_cond_timedwait waits on a condition of that
   clock. */
struct timespec clk_monotonic_after(unsigned ms);

/* Returns the wall clock in seconds since 1970, for absolute exptimes and "stats time" only. */
int64_t clk_wall_seconds(void);

#endif
