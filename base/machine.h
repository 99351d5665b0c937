/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the code asks of a machine; a build for any other one ends here. x86-64 and arm64 are built and tested; others that
 * fit have the searches of plain C (flashindex/simd_internal.h) and were not tried.
 *
 *   64 bits         Files, regions and tables are mapped whole, and counts are words of 64 bits that are changed at once.
 *   little endian   The structs of flash, state file, region and journal are the formats as they are (segments/FORMAT.md).
 *   48 bits         User addresses end below 2^48 (server/store/dram/item.h). Linux gives larger ones on x86-64 and arm64 only
 *                   to programs that ask for them by a hint.
 *   pages           Of any size up to 64 KiB. The pages of 4 KiB in segments/ are of the format, not of the kernel.
 *
 * Memory order is that of C11: no code relies on x86-64's. Where threads meet without a lock, the comment there says which
 * loads acquire and which stores release. Counters and figures for operators are relaxed: a report may show one of two
 * counters newer than the other.
 *
 * gcc and clang define all that is asked for below; other tools that read the sources need not.
 */
#ifndef FS_BASE_MACHINE_H
#define FS_BASE_MACHINE_H

#if defined(__SIZEOF_POINTER__) && __SIZEOF_POINTER__ != 8
#error "Flashield needs a 64-bit machine"
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "Flashield needs a little-endian machine: its formats on flash and in files are"
#endif

#if defined(__GCC_ATOMIC_LLONG_LOCK_FREE) && __GCC_ATOMIC_LLONG_LOCK_FREE != 2
#error "Flashield needs a machine with atomic operations on 64 bits"
#endif

#endif
