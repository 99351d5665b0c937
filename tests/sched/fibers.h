/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scheduler: what the engine believes to be threads are fibers of one thread, and time is a number.
 *
 *   engine: lock, condition, atomic, clock, sleep --wraps.c, atomics.c--> fiber_point, fiber_wait, fiber_now_ns
 *   drive.c, main.c: what comes later             --------------------> fiber_at
 *
 * At each point a seeded generator decides whether another fiber goes on, and which. When none can go on, time jumps to the
 * next deadline or event. So a seed gives the whole course of a run, and the same one each time.
 *
 * Where fibers wait is an address: that of a mutex, a condition, a descriptor. Who wakes an address wakes its waiters.
 *
 * Threads: one. A fiber's thread-local variables of this program are its own; they are copied at each switch, so no fiber
 * may use the address of another one's.
 */
#ifndef FS_TESTS_SCHED_FIBERS_H
#define FS_TESTS_SCHED_FIBERS_H

#include <stdbool.h>
#include <stdint.h>

#define FIBERS_MOST 64u
#define FIBER_FOREVER UINT64_MAX

/* How the next fiber is chosen, one of these for a run. */
enum fiber_policy {
	FIBER_UNIFORM, /* any that can go on */
	FIBER_RANKED, /* the one of the highest rank; ranks change now and then */
	FIBER_STARVED, /* any, but one fiber hardly ever, until it is another one's turn to starve */
	FIBER_POLICIES
};

struct fiber_options {
	uint64_t seed;
	enum fiber_policy policy;
	unsigned points; /* between two choices, on average; >= 1 */
	unsigned relaxed; /* does a relaxed atomic count as a point? 0 or 1 */
	unsigned tick_ns; /* that a point takes */
	unsigned freeze; /* of 1,000,000 points: the fiber stands still for a while */
	unsigned sites; /* one site in so many is dangerous: a fiber often stands still there. 0: none is */
	unsigned windows; /* of 100 calls of sched_yield: the fiber stands still */
	uint64_t now_ns; /* when the run begins */
};

/* Begins a run; the caller is its first fiber. Once in a process. */
void fibers_begin(const struct fiber_options *options);
/* From now on no fiber stands still, and all have the same chance. */
void fibers_calm(void);
/* From now on all fibers stand still where they are but those for which goes_on is true: the caller is one of them. Nothing ends it. */
void fibers_hold(bool (*goes_on)(unsigned number));

/* Starts a fiber, and returns its number, 1 or more. run is called in it. */
unsigned fiber_start(void *(*run)(void *context), void *context);
/* Returns when that fiber has ended, with what its run returned. */
void *fiber_join(unsigned number);
/* Returns the number of the fiber that runs. */
unsigned fiber_self(void);
/* Names a fiber for reports; name stays valid. */
void fiber_name(unsigned number, const char *name);

/* A point at which another fiber may go on; weight 0 counts for nothing. */
void fiber_point(unsigned weight);
/* The same at a place of the code, by its address. The seed calls some places dangerous. */
void fiber_point_at(unsigned weight, uintptr_t site);
/* Another fiber goes on, if one can. */
void fiber_yield(void);
/* Stands still for a while. */
void fiber_stand_still(void);
/* The engine says that a window is open: it yields, or stands still for a while. */
void fiber_window(void);
/* Waits until somebody wakes the address, or until that time. False: it was the time. */
bool fiber_wait(const void *address, uint64_t until_ns);
/* Wakes all fibers that wait at the address, or one of them. */
void fiber_wake_all(const void *address);
void fiber_wake_one(const void *address);
void fiber_sleep_until(uint64_t ns);

/* Calls call(context) at that time, between two fibers' steps; it must not wait. Calls of one time come in their order. */
void fiber_at(uint64_t ns, void (*call)(void *context), void *context);

/* Returns the time of the run. */
uint64_t fiber_now_ns(void);
/* Lets time go by without anybody doing anything. */
void fiber_pass(uint64_t ns);
/* Returns a number below n of the scheduler's generator. */
uint64_t fiber_random(uint64_t n);

/* Returns the points so far. */
uint64_t fiber_points(void);
/* Calls once that many points have passed, in the fiber that is there then, and wherever it is. */
void fiber_call_at_point(uint64_t point, void (*call)(void));
/* Returns the number of switches so far. */
uint64_t fiber_switches(void);
/* Returns a hash of all choices so far: that of two equal runs is equal. */
uint64_t fiber_hash(void);
/* Writes a line for each fiber to the descriptor: what it waits for. */
void fibers_show(int fd);

#endif
