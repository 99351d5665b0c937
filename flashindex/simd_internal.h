/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The search of 16 slots at once: SSE2 on x86-64, NEON on arm64, and plain C anywhere else, under TSan, and with
 * -DFIDX_PLAIN. All three give the same answer. Pure functions over slots that other threads may swap meanwhile: any
 * thread, no lock.
 *
 * Each slot is read whole, as it was at some moment of the call, and the moments of two slots are independent. A search
 * acquires from every slot: whatever a thread wrote before it released the value that was read can be seen by all reads
 * that follow the search. Lookups rest on that (lookup.c).
 *
 * C has no atomic load of sixteen bytes, so that SSE2 and NEON load by assembly, which the compiler neither repeats nor
 * moves. What the machines promise for it:
 *
 *   x86-64   Each aligned lane of four bytes is whole on every processor that there is, though Intel and AMD write that
 *            down for wider accesses only. Loads are not reordered with later loads and stores, so they acquire.
 *   arm64    LD1 of 32-bit elements reads each element by an access of its own, which is whole when it is aligned (Arm
 *            Architecture Reference Manual, B2.2.1 and B2.2.4). Loads may be reordered with anything that doesn't depend
 *            on them, so that a barrier follows: DMB ISHLD keeps all earlier loads before all later loads and stores,
 *            which is what an acquire fence is. One barrier a bucket costs less than 16 load-acquires, and as both
 *            buckets of a key are prefetched before the first is searched, it doesn't put off the second one's line.
 */
#ifndef FS_FLASHINDEX_SIMD_INTERNAL_H
#define FS_FLASHINDEX_SIMD_INTERNAL_H

#include <stdatomic.h>
#include <stdint.h>

#include "flashindex/flashindex.h"

_Static_assert(FIDX_BUCKET_SLOTS == 16, "four registers of four slots");

#if defined(__SANITIZE_THREAD__)
#define FIDX_PLAIN 1 /* TSan sees no load of assembly */
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FIDX_PLAIN 1
#endif
#endif

#if defined(FIDX_PLAIN)
#elif defined(__SSE2__)
#define FIDX_SSE2 1
#include <emmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON)
#define FIDX_NEON 1
#include <arm_neon.h>
#endif

/*
 * Return one bit for each of the 16 slots that equals want under mask. *occupied: one bit for each slot that has a bit of
 * the segment mask set. A match is not necessarily occupied. The slots are aligned to 16 bytes.
 */

/* In C. The tests compare the others with it, on every machine. */
static inline unsigned search_plain(const _Atomic uint32_t *slots, uint32_t mask, uint32_t want, uint32_t segment_mask,
				    unsigned *occupied)
{
	unsigned found = 0, full = 0;

	for (unsigned i = 0; i < FIDX_BUCKET_SLOTS; i++) {
		uint32_t slot = atomic_load_explicit(&slots[i], memory_order_acquire);

		found |= (unsigned)((slot & mask) == want) << i;
		full |= (unsigned)((slot & segment_mask) != 0) << i;
	}
	*occupied = full;
	return found;
}

#ifdef FIDX_SSE2
static inline __m128i search_load4(const _Atomic uint32_t *from)
{
	__m128i lanes;

	__asm__ volatile("movdqa (%1), %0" : "=x"(lanes) : "r"(from) : "memory");
	return lanes;
}

/* Returns one bit for each of the 16 lanes that are all ones. */
static inline unsigned search_bits(const __m128i equal[4])
{
	__m128i low = _mm_packs_epi32(equal[0], equal[1]);
	__m128i high = _mm_packs_epi32(equal[2], equal[3]);

	return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(low, high));
}

static inline unsigned search_16(const _Atomic uint32_t *slots, uint32_t mask, uint32_t want, uint32_t segment_mask,
				 unsigned *occupied)
{
	const __m128i masks = _mm_set1_epi32((int)mask), wants = _mm_set1_epi32((int)want);
	const __m128i segments = _mm_set1_epi32((int)segment_mask), none = _mm_setzero_si128();
	__m128i equal[4], empty[4];

#pragma GCC unroll 4 /* otherwise the results go through memory */
	for (unsigned i = 0; i < 4; i++) {
		__m128i lanes = search_load4(&slots[4 * i]);

		equal[i] = _mm_cmpeq_epi32(_mm_and_si128(lanes, masks), wants);
		empty[i] = _mm_cmpeq_epi32(_mm_and_si128(lanes, segments), none);
	}
	*occupied = ~search_bits(empty) & 0xffff;
	return search_bits(equal);
}

#elif defined(FIDX_NEON)
/* Returns 16 bytes for the 16 lanes: the bit of the byte's number below eight where the lane is all ones, else 0. */
static inline uint8x16_t search_weigh(const uint32x4_t lanes[4])
{
	static const uint8_t bit[16] = { 1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128 };
	uint16x8_t low = vuzp1q_u16(vreinterpretq_u16_u32(lanes[0]), vreinterpretq_u16_u32(lanes[1]));
	uint16x8_t high = vuzp1q_u16(vreinterpretq_u16_u32(lanes[2]), vreinterpretq_u16_u32(lanes[3]));

	return vandq_u8(vuzp1q_u8(vreinterpretq_u8_u16(low), vreinterpretq_u8_u16(high)), vld1q_u8(bit));
}

static inline unsigned search_16(const _Atomic uint32_t *slots, uint32_t mask, uint32_t want, uint32_t segment_mask,
				 unsigned *occupied)
{
	const uint32x4_t masks = vdupq_n_u32(mask), wants = vdupq_n_u32(want), segments = vdupq_n_u32(segment_mask);
	uint32x4_t equal[4], full[4];
	uint8x16_t sums;
	uint32_t bits;

#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++) {
		uint32x4_t lanes;

		__asm__ volatile("ld1 {%0.4s}, [%1]" : "=w"(lanes) : "r"(&slots[4 * i]) : "memory");
		equal[i] = vceqq_u32(vandq_u32(lanes, masks), wants);
		full[i] = vtstq_u32(lanes, segments);
	}
	__asm__ volatile("dmb ishld" : : : "memory");
	/* Three additions of neighbours make two bytes of each sixteen. */
	sums = vpaddq_u8(search_weigh(equal), search_weigh(full));
	sums = vpaddq_u8(sums, sums);
	sums = vpaddq_u8(sums, sums);
	bits = vgetq_lane_u32(vreinterpretq_u32_u8(sums), 0);
	*occupied = bits >> 16;
	return bits & 0xffff;
}

#else
static inline unsigned search_16(const _Atomic uint32_t *slots, uint32_t mask, uint32_t want, uint32_t segment_mask,
				 unsigned *occupied)
{
	return search_plain(slots, mask, want, segment_mask, occupied);
}
#endif

#endif
