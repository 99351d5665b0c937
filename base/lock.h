/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutexes with a rank. A thread takes locks in rising rank, and two locks of one rank in rising address. Debug builds
 * (FS_DEBUG) remember the locks that a thread holds and assert the order at each acquire (lock_try is exempt, as it
 * never waits).
 *
 * The table below is the lock order of the program:
 *   LOCK_STATE < LOCK_KEY_STRIPE < LOCK_INDEX_STRIPE < LOCK_SEGMENT_TABLE < LOCK_LEAF
 * A leaf lock is held over a few lines, and no lock is taken under it.
 *
 * Threads: any. Errors: a mutex that fails aborts the program. lock_acquire may wait; nothing here does I/O.
 */
#ifndef FS_BASE_LOCK_H
#define FS_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/error.h"

/* RANK(name, text) in the order in which locks are taken. */
#define LOCK_RANK_TABLE(RANK) \
	RANK(LOCK_STATE, "start, stop and cleaner state") \
	RANK(LOCK_KEY_STRIPE, "a stripe of keys: their DRAM items and the decision about their slots") \
	RANK(LOCK_INDEX_STRIPE, "a stripe of index buckets") \
	RANK(LOCK_SEGMENT_TABLE, "states of segments") \
	RANK(LOCK_LEAF, "counters, pools, sampler tables, models")

enum lock_rank {
#define LOCK_RANK_ENUM(name, text) name,
	LOCK_RANK_TABLE(LOCK_RANK_ENUM)
#undef LOCK_RANK_ENUM
		LOCK_RANKS
};

struct lock {
	pthread_mutex_t mutex;
#ifdef FS_DEBUG
	enum lock_rank rank;
#endif
};

/* Initialises a static lock, instead of lock_init. */
#ifdef FS_DEBUG
#define LOCK_INITIALIZER(lock_rank) \
	{ \
		PTHREAD_MUTEX_INITIALIZER, lock_rank \
	}
#else
#define LOCK_INITIALIZER(lock_rank) \
	{ \
		PTHREAD_MUTEX_INITIALIZER \
	}
#endif

/* lock_init comes before other threads use the lock, and lock_fini after that, when nobody holds it. */
void lock_init(struct lock *lock, enum lock_rank rank);
void lock_fini(struct lock *lock);
/* Waits for the lock. The calling thread holds neither it nor a lock that comes after it in the order. */
void lock_acquire(struct lock *lock);
/* Takes the lock if it is free, without waiting and in any order. False if it isn't free. */
FS_MUST_CHECK bool lock_try(struct lock *lock);
/* Releases the lock, which the calling thread holds. */
void lock_release(struct lock *lock);
/* Asserts in debug builds that the calling thread holds the lock; does nothing in others. */
#ifdef FS_DEBUG
void lock_assert_held(const struct lock *lock);
#else
static inline void lock_assert_held(const struct lock *lock)
{
	(void)lock;
}
#endif

/* Returns the number of locks of this rank that the calling thread has acquired so far, in debug builds; else 0. */
unsigned long lock_acquisitions(enum lock_rank rank);

#endif
