/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/flashindex/frugal/world.h"

#include <unistd.h>

#define FINGERPRINTS 150u
#define HEAD 16u /* of a chain record here: partition and length of the value */

/* ---- keys ------------------------------------------------------------------------------------ */

/* The inverse of mix64. */
static uint64_t unmix(uint64_t x)
{
	x ^= x >> 31 ^ x >> 62;
	x *= 0x319642b2d24d8ec3ull;
	x ^= x >> 27 ^ x >> 54;
	x *= 0x96de1b173f119089ull;
	x ^= x >> 30 ^ x >> 60;
	return x;
}

static uint64_t hash_with(uint64_t x)
{
	uint64_t hash = unmix(x) ^ unmix(frugal_order(0)); /* frugal_order mixes the hash with a constant */

	assert_true(frugal_order(hash) == x);
	return hash;
}

/* Keys differ in the bits of their kills, as real ones nearly always do. */
static void make_keys(struct world *w)
{
	for (uint32_t k = 0; k < WORLD_KEYS; k++) {
		uint64_t x = rng_next(&w->rng) & ~0xffffffffull;

		x |= (uint64_t)(k + 1) << 16 | (rng_below(&w->rng, FINGERPRINTS) * 257);
		w->key[k] = (struct world_key){ .hash = hash_with(x) };
		frugal_key_of(w->frugal, w->key[k].hash, &w->key[k].key);
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

void world_config(struct world *w)
{
	struct frugal_config *config = &w->config;

	config->segments = WORLD_SEGMENTS;
	config->segment_bytes = WORLD_SEGMENT_BYTES;
	config->partitions = config->partitions ? config->partitions : 7;
	config->objects = config->objects ? config->objects : 1000;
	config->kill_bytes = config->kill_bytes ? config->kill_bytes : 64 << 10;
	config->memory_most = 64 << 20;
	config->share = config->share > 0 ? config->share : 1;
	config->seed = 7;
}

void world_open(struct world *w)
{
	uint64_t most[REGION_AREAS] = { 0 };

	world_config(w);
	most[REGION_FRUGAL] = frugal_region_most(&w->config);
	assert_int_equal(region_create(&w->region, most), FS_OK);
	assert_int_equal(frugal_create(&w->frugal, &w->config, w->region), FS_OK);
	rng_init(&w->rng, getenv("FRUGAL_SEED") ? strtoull(getenv("FRUGAL_SEED"), NULL, 0) : 20261);
	w->next_sequence = 100;
	make_keys(w);
}

static void free_segment(struct world_segment *segment)
{
	mem_free(segment->has);
	mem_free(segment->bytes);
	*segment = (struct world_segment){ 0 };
}

void world_close(struct world *w)
{
	frugal_destroy(w->frugal);
	region_destroy(w->region);
	for (uint32_t s = 0; s < WORLD_SEGMENTS; s++)
		free_segment(&w->segment[s]);
	fault_disarm_all();
}

void world_sequences(const struct world *w, uint64_t out[WORLD_SEGMENTS])
{
	for (uint32_t s = 0; s < WORLD_SEGMENTS; s++)
		out[s] = w->segment[s].sequence;
}

/* ---- commands -------------------------------------------------------------------------------- */

/* As the store does it: an object in DRAM that was changed has nothing on flash, unless it is planned or kept. */
static void invalidate(struct world *w, struct world_key *key)
{
	if (!key->in_dram || key->planned || key->kept)
		(void)frugal_kill(w->frugal, &key->key, key->planned || key->kept);
	key->planned = key->kept = false;
	key->sequence = 0;
}

void world_set(struct world *w, uint32_t key)
{
	invalidate(w, &w->key[key]);
	w->key[key].in_dram = true;
}

void world_delete(struct world *w, uint32_t key)
{
	invalidate(w, &w->key[key]);
	w->key[key].in_dram = false;
}

void world_evict(struct world *w, uint32_t key)
{
	if (w->key[key].planned)
		return;
	w->key[key].in_dram = w->key[key].kept = false;
}

/* ---- segments -------------------------------------------------------------------------------- */

void world_reclaim(struct world *w, uint32_t number)
{
	struct world_segment *segment = &w->segment[number];

	if (segment->sequence == 0)
		return;
	if (frugal_has_chain_in(w->frugal, number, segment->sequence)) {
		assert_true(segment->chain);
		frugal_drop_chain(w->frugal);
		w->lossy = true;
	}
	frugal_close(w->frugal, number);
	for (uint32_t k = 0; k < WORLD_KEYS; k++)
		if (w->key[k].sequence == segment->sequence)
			w->key[k].sequence = 0;
	free_segment(segment);
}

static struct world_segment *next_segment(struct world *w, uint32_t *number)
{
	*number = w->cursor;
	w->cursor = (w->cursor + 1) % WORLD_SEGMENTS;
	world_reclaim(w, *number);
	return &w->segment[*number];
}

static uint32_t plan(struct world *w, unsigned of, bool *has)
{
	uint32_t count = 0;

	for (uint32_t k = 0; k < WORLD_KEYS; k++)
		if (w->key[k].in_dram && rng_below(&w->rng, of) == 0) {
			w->key[k].planned = has[k] = true;
			count++;
		}
	return count;
}

static void commit(struct world *w, uint64_t sequence, const bool *has)
{
	for (uint32_t k = 0; k < WORLD_KEYS; k++) {
		struct world_key *key = &w->key[k];

		if (!has[k] || !key->planned)
			continue;
		key->planned = false;
		if (rng_below(&w->rng, 20) == 0) { /* as under a frozen stripe: it stays in DRAM */
			key->kept = key->doubtful = true;
			key->sequence = sequence;
			continue;
		}
		frugal_committed(w->frugal, &key->key);
		key->in_dram = key->kept = key->doubtful = false;
		key->sequence = sequence;
	}
}

bool world_write(struct world *w, unsigned of, void (*meanwhile)(struct world *w))
{
	bool *has = mem_must_zalloc(WORLD_KEYS);
	uint64_t *x = mem_must_zalloc(WORLD_KEYS * sizeof(*x)), sequence = w->next_sequence++;
	struct world_segment *segment;
	uint32_t number, n = 0, count;

	segment = next_segment(w, &number);
	w->writing = sequence;
	frugal_plan_begin(w->frugal, sequence);
	count = plan(w, of, has);
	if (meanwhile)
		meanwhile(w);
	if (count > 0) {
		assert_int_equal(frugal_reserve(w->frugal, count), FS_OK);
		for (uint32_t k = 0; k < WORLD_KEYS; k++)
			if (has[k])
				x[n++] = w->key[k].key.x;
		*segment = (struct world_segment){ .sequence = sequence, .has = has };
		if (meanwhile)
			meanwhile(w);
		assert_int_equal(frugal_open(w->frugal, number, sequence, x, n, n * 300), FS_OK);
		if (meanwhile)
			meanwhile(w);
		commit(w, sequence, has);
	} else {
		mem_free(has);
	}
	frugal_plan_end(w->frugal);
	mem_free(x);
	return count > 0;
}

/* ---- the chain ------------------------------------------------------------------------------- */

const void *world_chain_value(struct world *w, const struct frugal_found *place, uint32_t partition, uint64_t *length)
{
	const struct world_segment *segment;
	uint64_t head[2];

	if (place->segment >= WORLD_SEGMENTS)
		return NULL;
	segment = &w->segment[place->segment];
	if (segment->sequence != place->sequence || !segment->chain || place->offset > segment->length ||
	    segment->length - place->offset < HEAD)
		return NULL;
	memcpy(head, segment->bytes + place->offset, HEAD);
	if (head[0] != partition || head[1] > segment->length - place->offset - HEAD)
		return NULL;
	*length = head[1];
	return segment->bytes + place->offset + HEAD;
}

/* One pass over partitions of a segment. */
static uint64_t merge_pass(struct world *w, struct frugal_merge *merge, uint32_t first, uint32_t count,
			   const bool *fails, uint8_t *bytes, uint32_t *lengths)
{
	uint64_t at = 0;

	for (uint32_t p = first; p < first + count; p++) {
		struct frugal_found place;
		uint64_t old_length = 0, length, head[2];
		const void *old = NULL, *made;

		if (frugal_merge_old(merge, p, &place) && !fails[p])
			old = world_chain_value(w, &place, p, &old_length);
		made = frugal_merge_make(merge, p, old, old_length, &length);
		assert_non_null(made);
		lengths[p - first] = length ? (uint32_t)(length + HEAD) : 0;
		if (length == 0)
			continue;
		if (bytes) {
			head[0] = p;
			head[1] = length;
			memcpy(bytes + at, head, HEAD);
			memcpy(bytes + at + HEAD, made, length);
		}
		at += (length + HEAD + FRUGAL_CHAIN_ALIGN - 1) / FRUGAL_CHAIN_ALIGN * FRUGAL_CHAIN_ALIGN;
	}
	return at;
}

/* Would the next segment to be written have records of the present chain? */
static bool next_is_chain(const struct world *w)
{
	return frugal_has_chain_in(w->frugal, w->cursor, w->segment[w->cursor].sequence);
}

static void merge_segment(struct world *w, struct frugal_merge *merge, uint32_t first, uint32_t count,
			  const bool *fails)
{
	uint32_t *lengths = mem_must_zalloc(count * sizeof(*lengths)), number;
	uint64_t bytes = merge_pass(w, merge, first, count, fails, NULL, lengths);
	struct world_segment *segment;
	uint8_t *made = mem_aligned(16, bytes + 16);

	assert_non_null(made);
	assert_int_equal(merge_pass(w, merge, first, count, fails, made, lengths), bytes);
	/* A segment that is reclaimed now may have records of the old chain: that is for the caller to see to. */
	while (next_is_chain(w))
		w->cursor = (w->cursor + 1) % WORLD_SEGMENTS;
	segment = next_segment(w, &number);
	*segment =
		(struct world_segment){ .sequence = w->next_sequence++, .chain = true, .bytes = made, .length = bytes };
	assert_int_equal(frugal_merge_written(merge, number, segment->sequence, 0, first, count, lengths), FS_OK);
	mem_free(lengths);
}

void world_merge(struct world *w, uint32_t partitions_each, unsigned fail_permille, bool publish)
{
	bool fails[1000] = { false };
	struct frugal_merge *merge;

	assert_true(w->config.partitions <= 1000);
	if (frugal_merge_begin(&merge, w->frugal) != FS_OK)
		return;
	for (uint32_t p = 0; p < w->config.partitions; p++) {
		fails[p] = rng_below(&w->rng, 1000) < fail_permille;
		w->lossy |= fails[p] && publish;
	}
	for (uint32_t p = 0; p < w->config.partitions; p += partitions_each) {
		uint32_t left = w->config.partitions - p;

		merge_segment(w, merge, p, left < partitions_each ? left : partitions_each, fails);
		if (!next_is_chain(w))
			(void)world_write(w, 3, NULL); /* between the segments of the chain others are written */
	}
	if (publish)
		frugal_merge_publish(merge);
	else
		frugal_merge_cancel(merge);
}

void world_merge_if_due(struct world *w)
{
	if (frugal_merge_is_due(w->frugal))
		world_merge(w, w->config.partitions / 3 + 1, 0, true);
}

/* ---- searches -------------------------------------------------------------------------------- */

static bool bin_has(const struct world *w, const struct frugal_found *found, uint32_t key)
{
	const struct world_segment *segment = &w->segment[found->segment];

	assert_true(found->segment < WORLD_SEGMENTS && segment->sequence == found->sequence && segment->has);
	return segment->has[key];
}

/* As world_search, but whatever is wrong ends the search. */
static uint64_t search_damaged(struct world *w, uint32_t key)
{
	const struct frugal_key *k = &w->key[key].key;
	uint64_t below = UINT64_MAX, length = 0;
	struct frugal_found found, place;

	for (;;) {
		enum frugal_answer answer = frugal_find(w->frugal, k, below, &found);

		if (answer == FRUGAL_CHAIN) {
			const void *value;

			place = found;
			value = world_chain_value(w, &place, k->partition, &length);
			if (!value)
				return 0;
			answer = frugal_find_in(w->frugal, k, below, &place, value, length, &found);
		}
		if (answer != FRUGAL_MATCH || found.segment >= WORLD_SEGMENTS || !w->segment[found.segment].has ||
		    w->segment[found.segment].has[key] || found.sequence >= below)
			return answer == FRUGAL_MATCH ? found.sequence : 0;
		below = found.sequence;
	}
}

void world_attached(struct world *w, bool exact)
{
	for (uint32_t k = 0; k < WORLD_KEYS; k++) {
		struct world_key *key = &w->key[k];
		uint64_t sequence = exact ? world_search(w, k) : search_damaged(w, k);
		bool uncommitted = key->lost_dram && key->planned && sequence == w->writing;

		if (exact && sequence != key->sequence && !uncommitted &&
		    (sequence != 0 || !(w->lossy || key->doubtful))) {
			fprintf(stderr, "key %u is found in %llu, and belongs in %llu\n", k,
				(unsigned long long)sequence, (unsigned long long)key->sequence);
			_exit(1);
		}
		key->in_dram = key->planned = false;
		if (uncommitted)
			key->sequence = sequence;
	}
	if (!exact)
		return;
	w->lossy = true;
	w->frugal->quiesce = NULL;
	for (unsigned n = 0; n < 12; n++) {
		for (unsigned i = 0; i < 100; i++)
			world_set(w, (uint32_t)rng_below(&w->rng, WORLD_KEYS));
		(void)world_write(w, 2, NULL);
		world_merge_if_due(w);
	}
	world_check_all(w);
}

uint64_t world_search(struct world *w, uint32_t key)
{
	const struct frugal_key *k = &w->key[key].key;
	uint64_t below = UINT64_MAX, length = 0;
	struct frugal_found found, place;

	for (;;) {
		enum frugal_answer answer = frugal_find(w->frugal, k, below, &found);

		if (answer == FRUGAL_CHAIN) {
			const void *value;

			place = found;
			w->chain_reads++;
			value = world_chain_value(w, &place, k->partition, &length);
			assert_non_null(value);
			answer = frugal_find_in(w->frugal, k, below, &place, value, length, &found);
			assert_true(answer == FRUGAL_MATCH || answer == FRUGAL_NOTHING);
		}
		if (answer == FRUGAL_NOTHING)
			return 0;
		assert_true(answer == FRUGAL_MATCH && found.sequence < below);
		if (bin_has(w, &found, key))
			return found.sequence;
		w->in_vain++;
		below = found.sequence;
	}
}

void world_check(struct world *w, uint32_t k)
{
	const struct world_key *key = &w->key[k];
	uint64_t sequence;

	if (key->in_dram) /* whatever flash says, the object in DRAM counts */
		return;
	sequence = world_search(w, k);
	if (sequence == key->sequence) {
		w->found += sequence != 0;
		return;
	}
	/* What was lost is allowed to be lost; anything else would be stale. */
	assert_int_equal(sequence, 0);
	assert_true(w->lossy || key->doubtful);
	w->lost++;
}

void world_check_all(struct world *w)
{
	for (uint32_t k = 0; k < WORLD_KEYS; k++)
		world_check(w, k);
}
