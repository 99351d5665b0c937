/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clock.h"

#include "base/assert.h"

static uint64_t boot_now_ns(const struct clk *clk)
{
	struct timespec now;

	(void)clk;
	must(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t scripted_now_ns(const struct clk *clk)
{
	return atomic_load_explicit(&clk->scripted_us, memory_order_acquire) * 1000;
}

const struct clk *clk_boot(void)
{
	static const struct clk boot = { .now_ns = boot_now_ns };

	return &boot;
}

void clk_scripted_init(struct clk *clk, uint64_t start_us)
{
	clk->now_ns = scripted_now_ns;
	atomic_init(&clk->scripted_us, start_us);
}

void clk_scripted_advance(struct clk *clk, uint64_t us)
{
	atomic_fetch_add_explicit(&clk->scripted_us, us, memory_order_acq_rel);
}

struct timespec clk_monotonic_after(unsigned ms)
{
	struct timespec until;

	must(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
	until.tv_sec += ms / 1000;
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	return until;
}

int64_t clk_wall_seconds(void)
{
	struct timespec now;

	must(clock_gettime(CLOCK_REALTIME, &now) == 0);
	return now.tv_sec;
}
