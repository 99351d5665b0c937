/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mutexes with a rank. A thread takes locks in rising rank; two of one rank in rising address.
 * Debug builds (FS_DEBUG) keep the locks a thread holds and assert the order at each acquire
 * (lock_try is exempt, as it never waits).
 *
 * The one table of ranks:
 *   LOCK_STATE < LOCK_KEY_STRIPE < LOCK_INDEX_STRIPE < LOCK_SEGMENT_TABLE < LOCK_LEAF
 * A leaf lock is held over a few lines, and nothing is taken under it.
 */
#ifndef FS_BASE_LOCK_H
#define FS_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

/* RANK(name, text) in the order in which they are taken. */
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

/* Of a static one, in place of lock_init. */
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

void lock_init(struct lock *lock, enum lock_rank rank);
void lock_fini(struct lock *lock);
void lock_acquire(struct lock *lock);
bool lock_try(struct lock *lock);
void lock_release(struct lock *lock);
/* Debug builds assert that the calling thread holds it; otherwise nothing. */
void lock_assert_held(const struct lock *lock);

/* Debug builds: how many locks of this rank the calling thread has acquired so far; else 0. */
unsigned long lock_acquisitions(enum lock_rank rank);

#endif
