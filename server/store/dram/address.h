/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of items in five bytes.
 *
 *   47       36 35                       4 3    0
 *   +----------+--------------------------+------+
 *   | window   |           low            | zero |     windows are numbered 1 to 255 as the heap reaches them
 *   +----------+--------------------------+------+
 *
 * An allocation of 16 bytes or more begins at a multiple of 16. The heap lies in few stretches of the address space, so
 * that one byte numbers the windows of 64 GiB that it has touched. 255 of them have room for 16 TiB, and numbers are never
 * taken back. On x86-64 and arm64 the kernel gives addresses beyond 48 bits only where a program asks for them, which
 * jemalloc doesn't.
 *
 * Threads: any. address_learn takes a leaf lock, and the others none. A window's number may be used by every thread that
 * has got it from address_window or by way of a lock.
 */
#ifndef FS_STORE_ADDRESS_H
#define FS_STORE_ADDRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define ADDRESS_BITS 48
#define ADDRESS_WINDOW_BITS 36
#define ADDRESS_WINDOWS 256u

/* Written by address_learn alone. [0] is 0, which makes NULL of the number 0 and the low part 0. */
extern uintptr_t address_base[ADDRESS_WINDOWS];
extern _Atomic uint8_t address_number[1u << (ADDRESS_BITS - ADDRESS_WINDOW_BITS)];

/* Returns the number of the window in which memory of 48 bits lies; 0: it has none yet, and address_learn may give it
   one. */
static inline uint8_t address_window(const void *memory)
{
	return atomic_load_explicit(&address_number[((uintptr_t)memory >> ADDRESS_WINDOW_BITS) %
						    (1u << (ADDRESS_BITS - ADDRESS_WINDOW_BITS))],
				    memory_order_acquire);
}

/* Returns the part of a multiple of 16 that its window doesn't tell. */
static inline uint32_t address_low(const void *memory)
{
	return (uint32_t)((uintptr_t)memory >> 4);
}

/* Returns the address. The window's number is one that address_window has returned, or 0 beside a low part of 0. */
static inline void *address_of(uint8_t window, uint32_t low)
{
	return (void *)(address_base[window] + ((uintptr_t)low << 4));
}

/* Does the address, a multiple of 16, come back from its window's number and its low part? */
static inline bool address_is_known(const void *memory)
{
	return (uintptr_t)memory >> ADDRESS_BITS == 0 && address_window(memory) != 0;
}

/* Sees to it that the window of memory has a number. False: all are taken, or the address has more than 48 bits. */
FS_MUST_CHECK bool address_learn(const void *memory);

#endif
