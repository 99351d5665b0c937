/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clock.h"

#include "base/assert.h"

static uint64_t real_boot_ns(void)
{
	struct timespec now;

	must(clock_gettime(CLOCK_BOOTTIME, &now) == 0);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifdef FS_FAULTS
static _Atomic uint64_t boot_stands_ns; /* the time at which the clock stands; 0: it goes */
static _Atomic uint64_t boot_moved_ns; /* what is added to the real time, modulo 2^64, while it goes */

static uint64_t boot_now_ns(const struct clk *clk)
{
	uint64_t stands_ns = atomic_load_explicit(&boot_stands_ns, memory_order_acquire);

	(void)clk;
	return stands_ns ? stands_ns : real_boot_ns() + atomic_load_explicit(&boot_moved_ns, memory_order_relaxed);
}

void clk_boot_stand(bool stands)
{
	uint64_t stands_ns = atomic_load(&boot_stands_ns);

	if (stands && !stands_ns) {
		atomic_store(&boot_stands_ns, boot_now_ns(clk_boot()));
	} else if (!stands && stands_ns) {
		atomic_store(&boot_moved_ns, stands_ns - real_boot_ns());
		atomic_store(&boot_stands_ns, 0);
	}
}

void clk_boot_advance(uint64_t us)
{
	atomic_fetch_add(atomic_load(&boot_stands_ns) ? &boot_stands_ns : &boot_moved_ns, us * 1000);
}
#else
static uint64_t boot_now_ns(const struct clk *clk)
{
	(void)clk;
	return real_boot_ns();
}
#endif

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
