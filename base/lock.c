/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/lock.h"

#include <errno.h>

#include "base/assert.h"

#ifdef FS_DEBUG

#include "base/log.h"

/* Enough for one lock of every rank and for a command that takes two stripes of a kind. */
#define HELD_MAX 16

static _Thread_local const struct lock *held[HELD_MAX];
static _Thread_local unsigned held_count;
static _Thread_local unsigned long acquired[LOCK_RANKS];

static const char *rank_name(enum lock_rank rank)
{
	switch (rank) {
#define RANK_NAME(name, text) \
	case name: \
		return #name;
		LOCK_RANK_TABLE(RANK_NAME)
#undef RANK_NAME
	default:
		return "LOCK_UNKNOWN";
	}
}

static void check_order(const struct lock *lock)
{
	for (unsigned i = 0; i < held_count; i++) {
		if (held[i]->rank < lock->rank)
			continue;
		if (held[i]->rank == lock->rank && lock->rank != LOCK_LEAF && held[i] < lock)
			continue;
		log_error("lock order: %s is acquired while %s is held", rank_name(lock->rank),
			  rank_name(held[i]->rank));
		must(!"locks are taken in rising rank, and in rising address within a rank");
	}
}

static void note_acquired(const struct lock *lock)
{
	must(held_count < HELD_MAX);
	held[held_count++] = lock;
	acquired[lock->rank]++;
}

static void note_released(const struct lock *lock)
{
	for (unsigned i = held_count; i-- > 0;) {
		if (held[i] != lock)
			continue;
		held[i] = held[--held_count];
		return;
	}
	must(!"a lock is released by the thread that holds it");
}

#else

static inline void check_order(const struct lock *lock)
{
	(void)lock;
}

static inline void note_acquired(const struct lock *lock)
{
	(void)lock;
}

static inline void note_released(const struct lock *lock)
{
	(void)lock;
}

#endif

void lock_init(struct lock *lock, enum lock_rank rank)
{
	must(rank < LOCK_RANKS);
	must(pthread_mutex_init(&lock->mutex, NULL) == 0);
#ifdef FS_DEBUG
	lock->rank = rank;
#endif
}

void lock_fini(struct lock *lock)
{
	must(pthread_mutex_destroy(&lock->mutex) == 0);
}

void lock_acquire(struct lock *lock)
{
	check_order(lock);
	must(pthread_mutex_lock(&lock->mutex) == 0);
	note_acquired(lock);
}

bool lock_try(struct lock *lock)
{
	int error = pthread_mutex_trylock(&lock->mutex);

	must(error == 0 || error == EBUSY);
	if (error)
		return false;
	note_acquired(lock);
	return true;
}

void lock_release(struct lock *lock)
{
	note_released(lock);
	must(pthread_mutex_unlock(&lock->mutex) == 0);
}

#ifdef FS_DEBUG
void lock_assert_held(const struct lock *lock)
{
	for (unsigned i = 0; i < held_count; i++)
		if (held[i] == lock)
			return;
	must(!"the calling thread holds this lock");
}
#endif

unsigned long lock_acquisitions(enum lock_rank rank)
{
#ifdef FS_DEBUG
	must(rank < LOCK_RANKS);
	return acquired[rank];
#else
	(void)rank;
	return 0;
#endif
}
