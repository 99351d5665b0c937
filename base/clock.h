/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time comes in from outside: the daemon passes the boot-time clock, tests a scripted
 * one. Monotonic; never set back; counts while the machine is suspended.
 *
 * Threads: clk_now_* from any; clk_scripted_advance from any (atomic).
 */
#ifndef FS_BASE_CLOCK_H
#define FS_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

struct clk {
	uint64_t (*now_ns)(const struct clk *clk);
	_Atomic uint64_t scripted_us; /* the scripted clock's hand */
};

/* CLOCK_BOOTTIME. Static storage. */
const struct clk *clk_boot(void);

/* A clock that stands still until it is moved. */
void clk_scripted_init(struct clk *clk, uint64_t start_us);
void clk_scripted_advance(struct clk *clk, uint64_t us);

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

/* Wall clock, seconds since 1970: for absolute exptimes and "stats time" only. */
int64_t clk_wall_seconds(void);

#endif
