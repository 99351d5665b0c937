/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The prefilter (BloomStore, section III.C): each partition has some blocks of 64 bytes, and a key three bits in one of
 * them, which follow from its partition and fingerprint. So it can be made anew from the lists.
 *
 * The cleaner changes it while others read, word by word. It holds the bits of all keys that can be found at any
 * time: bits are added before a bundle is published, and when a partition's words are made anew, the old word and the new
 * one both have them.
 */
#include <string.h>

#include "flashindex/frugal/frugal_internal.h"

#define BLOCK_BITS 512u
#define BLOCK_WORDS 8u
#define PROBES 3u /* of 4 bits for each key: 4 * ln 2 */
#define BITS_EACH 4u

uint64_t prefilter_bytes(const struct frugal *frugal, uint64_t blocks)
{
	return frugal->partitions * blocks * BLOCK_BITS / 8;
}

uint64_t prefilter_blocks(const struct frugal *frugal, uint64_t objects)
{
	uint64_t bits = (uint64_t)frugal->partitions * BLOCK_BITS, blocks = (objects * BITS_EACH + bits - 1) / bits;

	return blocks ? blocks : 1;
}

struct prefilter *prefilter_create(struct frugal *frugal, uint64_t blocks)
{
	struct prefilter *prefilter = mem_zalloc(sizeof(*prefilter));

	if (!prefilter)
		return NULL;
	if (block_take(frugal, prefilter_bytes(frugal, blocks), &prefilter->block) != FS_OK) {
		mem_free(prefilter);
		return NULL;
	}
	prefilter->blocks = blocks;
	prefilter->words = (_Atomic uint64_t *)(void *)(frugal->area + prefilter->block.offset);
	return prefilter;
}

void prefilter_destroy(struct frugal *frugal, struct prefilter *prefilter)
{
	if (!prefilter)
		return;
	block_give(frugal, &prefilter->block);
	mem_free(prefilter);
}

/* The words of a key's block, and its bits there, nine for each. */
struct probe {
	uint64_t word; /* the first one, within the partition's */
	uint32_t bits;
};

static struct probe probe_of(const struct prefilter *prefilter, uint32_t partition, uint16_t fingerprint)
{
	uint64_t mixed = mix64((uint64_t)partition << 16 | fingerprint);

	return (struct probe){ reduce64(mixed, prefilter->blocks) * BLOCK_WORDS, (uint32_t)mixed };
}

static uint64_t first_word(const struct prefilter *prefilter, uint32_t partition)
{
	return partition * prefilter->blocks * BLOCK_WORDS;
}

bool prefilter_passes(const struct prefilter *prefilter, uint32_t partition, uint16_t fingerprint)
{
	struct probe probe = probe_of(prefilter, partition, fingerprint);
	const _Atomic uint64_t *words = prefilter->words + first_word(prefilter, partition) + probe.word;

	for (unsigned p = 0; p < PROBES; p++, probe.bits >>= 9)
		if (!(atomic_load_explicit(&words[probe.bits % BLOCK_BITS / 64], memory_order_relaxed) >>
			      probe.bits % 64 &
		      1))
			return false;
	return true;
}

void prefilter_add(struct prefilter *prefilter, uint32_t partition, uint16_t fingerprint)
{
	struct probe probe = probe_of(prefilter, partition, fingerprint);
	_Atomic uint64_t *words = prefilter->words + first_word(prefilter, partition) + probe.word;

	for (unsigned p = 0; p < PROBES; p++, probe.bits >>= 9) {
		_Atomic uint64_t *word = &words[probe.bits % BLOCK_BITS / 64];
		uint64_t before = atomic_load_explicit(word, memory_order_relaxed);

		atomic_store_explicit(word, before | 1ull << probe.bits % 64, memory_order_relaxed);
	}
}

void prefilter_add_bundle(struct frugal *frugal, const struct bundle *bundle)
{
	for (uint32_t p = 0; p < frugal->partitions && bundle->lists.values > 0; p++) {
		struct lists_range range = lists_range(&bundle->lists, p);

		for (uint64_t v = range.first; v < range.end; v++) {
			prefilter_add(frugal->prefilter, p, bundle->values[v]);
			if (frugal->next_prefilter)
				prefilter_add(frugal->next_prefilter, p, bundle->values[v]);
		}
		if (p % 64 == 0)
			frugal_step(frugal);
	}
}

/* ---- making a partition anew ----------------------------------------------------------------- */

/* Calls add for each fingerprint of the partition: of these, and of bundles that are newer than `covers`. */
static void each_fingerprint(const struct frugal *frugal, uint32_t partition, const uint16_t *values, uint64_t count,
			     uint64_t covers, void (*add)(void *context, uint32_t partition, uint16_t fingerprint),
			     void *context)
{
	for (uint64_t i = 0; i < count; i++)
		add(context, partition, values[i]);
	for (unsigned b = 0; b < frugal->bundles && frugal->bundle[b]->serial > covers; b++) {
		struct cell cell = bundle_cell(frugal->bundle[b], partition);

		for (uint64_t v = cell.range.first; v < cell.range.end; v++)
			add(context, partition, cell.values[v]);
	}
}

/* A partition's words that are made beside those in use. */
struct renewal {
	const struct prefilter *prefilter;
	uint64_t *words;
};

static void renewal_add(void *context, uint32_t partition, uint16_t fingerprint)
{
	const struct renewal *renewal = context;
	struct probe probe = probe_of(renewal->prefilter, partition, fingerprint);

	for (unsigned p = 0; p < PROBES; p++, probe.bits >>= 9)
		renewal->words[probe.word + probe.bits % BLOCK_BITS / 64] |= 1ull << probe.bits % 64;
}

static void add_in_place(void *context, uint32_t partition, uint16_t fingerprint)
{
	prefilter_add(context, partition, fingerprint);
}

void prefilter_renew(struct frugal *frugal, uint32_t partition, const uint16_t *values, uint64_t count, uint64_t covers)
{
	struct prefilter *prefilter = frugal->next_prefilter ? frugal->next_prefilter : frugal->prefilter;
	uint64_t number = prefilter->blocks * BLOCK_WORDS, few[BLOCK_WORDS * 16];
	struct renewal renewal = { .prefilter = prefilter };
	_Atomic uint64_t *to = prefilter->words + first_word(prefilter, partition);

	renewal.words = number <= sizeof(few) / sizeof(few[0]) ? few : mem_alloc(number * sizeof(*few));
	if (!renewal.words) { /* then more bits stay set than are needed */
		each_fingerprint(frugal, partition, values, count, covers, add_in_place, prefilter);
		return;
	}
	memset(renewal.words, 0, number * sizeof(*few));
	each_fingerprint(frugal, partition, values, count, covers, renewal_add, &renewal);
	for (uint64_t w = 0; w < number; w++)
		atomic_store_explicit(&to[w], renewal.words[w], memory_order_relaxed);
	if (renewal.words != few)
		mem_free(renewal.words);
}
