/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each atomic operation of the engine is a point of the scheduler. The engine is compiled as for the thread sanitizer, which
 * makes calls of them; these are the functions that it calls. Its calls for plain reads and writes do nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/sched/fibers.h"
#include "tests/sched/site.h"

void __tsan_init(void);
void __tsan_func_entry(void *caller);
void __tsan_func_exit(void);
void __tsan_vptr_update(void **vptr, void *value);
void __tsan_read_range(void *address, size_t bytes);
void __tsan_write_range(void *address, size_t bytes);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

extern unsigned atomics_relaxed;
unsigned atomics_relaxed;

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
	(void)caller;
}

void __tsan_func_exit(void)
{
}

void __tsan_vptr_update(void **vptr, void *value)
{
	*vptr = value;
}

void __tsan_read_range(void *address, size_t bytes)
{
	(void)address, (void)bytes;
}

void __tsan_write_range(void *address, size_t bytes)
{
	(void)address, (void)bytes;
}

#define PLAIN(name) \
	void name(void *address); \
	void name(void *address) \
	{ \
		(void)address; \
	}
#define PLAIN_BYTES(bytes) \
	PLAIN(__tsan_read##bytes) \
	PLAIN(__tsan_write##bytes) \
	PLAIN(__tsan_unaligned_read##bytes) \
	PLAIN(__tsan_unaligned_write##bytes) \
	PLAIN(__tsan_volatile_read##bytes) \
	PLAIN(__tsan_volatile_write##bytes)
PLAIN_BYTES(1)
PLAIN_BYTES(2)
PLAIN_BYTES(4)
PLAIN_BYTES(8)
PLAIN_BYTES(16)

static inline unsigned weight(int order)
{
	return order == __ATOMIC_RELAXED ? atomics_relaxed : 1;
}

/* The site is the caller of the function that calls, and the place in it. */
#define POINT(order) fiber_point_at(weight(order), SITE())

void __tsan_atomic_thread_fence(int order)
{
	POINT(order);
}

void __tsan_atomic_signal_fence(int order)
{
	(void)order;
}

/* A weak exchange fails for no reason at times. */
#define WEAK_FAILS 64

#define CHANGE(bits, type, name) \
	type __tsan_atomic##bits##_##name(volatile type *at, type value, int order); \
	type __tsan_atomic##bits##_##name(volatile type *at, type value, int order) \
	{ \
		POINT(order); \
		return __atomic_##name(at, value, __ATOMIC_SEQ_CST); \
	}
#define EXCHANGE(bits, type, name, is_weak) \
	bool __tsan_atomic##bits##_compare_exchange_##name(volatile type *at, type *expected, type value, int order, \
							   int otherwise); \
	bool __tsan_atomic##bits##_compare_exchange_##name(volatile type *at, type *expected, type value, int order, \
							   int otherwise) \
	{ \
		(void)otherwise; \
		POINT(order); \
		if ((is_weak) && fiber_random(WEAK_FAILS) == 0) { \
			*expected = *at; \
			return false; \
		} \
		return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
	}
#define ATOMIC(bits, type) \
	type __tsan_atomic##bits##_load(const volatile type *at, int order); \
	type __tsan_atomic##bits##_load(const volatile type *at, int order) \
	{ \
		POINT(order); \
		return __atomic_load_n(at, __ATOMIC_SEQ_CST); \
	} \
	void __tsan_atomic##bits##_store(volatile type *at, type value, int order); \
	void __tsan_atomic##bits##_store(volatile type *at, type value, int order) \
	{ \
		POINT(order); \
		__atomic_store_n(at, value, __ATOMIC_SEQ_CST); \
	} \
	type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order); \
	type __tsan_atomic##bits##_exchange(volatile type *at, type value, int order) \
	{ \
		POINT(order); \
		return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST); \
	} \
	CHANGE(bits, type, fetch_add) \
	CHANGE(bits, type, fetch_sub) \
	CHANGE(bits, type, fetch_and) \
	CHANGE(bits, type, fetch_or) \
	CHANGE(bits, type, fetch_xor) \
	CHANGE(bits, type, fetch_nand) \
	EXCHANGE(bits, type, strong, false) \
	EXCHANGE(bits, type, weak, true)

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)
