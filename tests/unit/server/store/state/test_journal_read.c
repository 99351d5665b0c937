/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal's reader: a torn end is none of the journal, any other damage spoils it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/store/state/journal_internal.h"
#include "tests/unit/server/store/state/journal_world.h"

static void block_of(struct world *w, uint64_t sequence, uint32_t entries)
{
	for (uint32_t i = 0; i < entries; i++)
		journal_append(w->journal,
			       &(struct journal_entry){ .kind = JOURNAL_DEAD, .small = i * 64, .value = sequence });
	assert_true(journal_step(w->journal));
}

static void fill_files(struct world *w, unsigned files)
{
	while (ram_journal_count(&w->medium) < files)
		block_of(w, 5, 1000);
}

static void nothing_there(void **state)
{
	struct world *w = *state;
	struct ram_file *file = ram_journal_last(&w->medium);

	file->length = 0;
	assert_int_equal(world_read(w), FS_ENOTFOUND);
	assert_int_equal(w->found.highest, 1);
}

static void a_torn_last_block_is_left_out_at_every_length(void **state)
{
	struct world *w = *state;
	struct ram_file *file;
	uint64_t before, whole;

	block_of(w, 5, 10);
	file = ram_journal_last(&w->medium);
	before = file->length;
	block_of(w, 6, 100);
	whole = file->length;
	for (uint64_t length = before; length < whole; length++) {
		file->length = length;
		assert_int_equal(world_read(w), FS_OK);
		assert_int_equal(w->seen, 10);
	}
	file->length = whole;
	assert_int_equal(world_read(w), FS_OK);
	assert_int_equal(w->seen, 110);
}

static void a_flipped_bit_in_the_last_block_is_a_torn_one(void **state)
{
	struct world *w = *state;
	struct ram_file *file;
	uint64_t before;

	block_of(w, 5, 10);
	file = ram_journal_last(&w->medium);
	before = file->length;
	block_of(w, 6, 40);
	for (uint64_t at = before; at < file->length; at++) {
		file->bytes[at] ^= 1u << at % 8;
		assert_int_equal(world_read(w), FS_OK);
		assert_int_equal(w->seen, 10);
		file->bytes[at] ^= 1u << at % 8;
	}
}

static void a_flipped_bit_before_a_whole_block_is_damage(void **state)
{
	struct world *w = *state;
	struct ram_file *file;
	uint64_t from, to;

	file = ram_journal_last(&w->medium);
	from = file->length;
	block_of(w, 5, 40);
	to = file->length;
	block_of(w, 6, 1);
	for (uint64_t at = from; at < to; at++) {
		file->bytes[at] ^= 1u << at % 8;
		assert_int_equal(world_read(w), FS_ECORRUPT);
		file->bytes[at] ^= 1u << at % 8;
	}
	for (uint64_t at = 0; at < from; at++) { /* the head */
		file->bytes[at] ^= 1u << at % 8;
		assert_int_equal(world_read(w), FS_ECORRUPT);
		file->bytes[at] ^= 1u << at % 8;
	}
	assert_int_equal(world_read(w), FS_OK);
}

static void an_unfinished_file_counts_for_nothing(void **state)
{
	struct world *w = *state;
	struct ram_file *last;

	fill_files(w, 3);
	block_of(w, 5, 7);
	last = ram_journal_last(&w->medium);
	assert_int_equal(world_read(w), FS_OK);
	assert_true(w->found.files == 3);
	/* The head of a fourth, torn. */
	assert_int_equal(w->medium.medium.create(&w->medium.medium, last->number + 1), 0);
	assert_int_equal(w->medium.medium.write(&w->medium.medium, last->number + 1, last->bytes, 512, 0), 0);
	assert_int_equal(world_read(w), FS_OK);
	assert_int_equal(w->found.files, 3);
	assert_int_equal(w->found.highest, last->number + 1);
}

static void an_older_file_must_be_whole(void **state)
{
	struct world *w = *state;
	struct ram_file *older;
	uint64_t length;

	fill_files(w, 3);
	older = ram_journal_file(&w->medium, 2);
	length = older->length;
	assert_int_equal(world_read(w), FS_OK);
	older->length = length - 512; /* the block that names the file behind it, which nobody needs any more */
	assert_int_equal(world_read(w), FS_OK);
	older->length = length - 1024;
	assert_int_equal(world_read(w), FS_ECORRUPT);
	older->length = length;
	older->bytes[length / 2] ^= 4;
	assert_int_equal(world_read(w), FS_ECORRUPT);
	older->bytes[length / 2] ^= 4;
	assert_int_equal(world_read(w), FS_OK);
	older->number = 0; /* gone */
	assert_int_not_equal(world_read(w), FS_OK);
	older->number = 2;
}

static void removal_from_the_oldest_on_never_looks_whole(void **state)
{
	struct world *w = *state;

	fill_files(w, 4);
	for (uint32_t number = 1; number <= 4; number++) {
		assert_int_equal(w->medium.medium.remove(&w->medium.medium, number), 0);
		assert_int_not_equal(world_read(w), FS_OK);
	}
}

static uint64_t seen;
static unsigned cuts;

static void count_dead(void *context, const struct journal_entry *entry)
{
	(void)context;
	seen += entry->kind == JOURNAL_DEAD;
}

/* The power goes before each write, sync, create and remove. */
static void cut_here(struct ram_journal *medium)
{
	struct world *w = (struct world *)medium;
	struct journal_found found;
	struct ram_journal left;
	struct rng rng;

	rng_init(&rng, ++cuts);
	ram_journal_init(&left);
	ram_journal_cut(medium, &rng, &left);
	seen = 0;
	assert_int_equal(journal_read(&left.medium, WORLD_UUID, WORLD_SEGMENTS, count_dead, NULL, &found), FS_OK);
	assert_true(seen >= journal_durable(w->journal));
	journal_found_fini(&found);
	ram_journal_fini(&left);
}

static void what_was_durable_is_there_wherever_a_new_file_is_cut_off(void **state)
{
	struct world *w = *state;

	w->medium.on_event = cut_here;
	cuts = 0;
	fill_files(w, 4);
	assert_true(cuts > 4 * 5);
	w->medium.on_event = NULL;
}

/* Somebody has removed the file that is being written: those before it lack its losses. */
static void a_last_file_that_was_deleted_is_missed(void **state)
{
	struct world *w = *state;

	fill_files(w, 4);
	assert_int_equal(world_read(w), FS_OK);
	for (unsigned deleted = 0; deleted < 3; deleted++) {
		ram_journal_last(&w->medium)->number = 0;
		assert_int_equal(world_read(w), FS_ECORRUPT);
	}
}

static void another_flash_has_another_journal(void **state)
{
	struct world *w = *state;
	const uint8_t other[16] = "another flash";
	struct journal_found found;

	block_of(w, 5, 10);
	assert_int_equal(journal_read(&w->medium.medium, other, WORLD_SEGMENTS, NULL, NULL, &found), FS_ENOTFOUND);
}

static void entries_are_judged(void **state)
{
	struct world *w = *state;
	struct ram_file *file = ram_journal_last(&w->medium);
	struct journal_block *block;
	struct journal_entry *entry;
	const struct journal_entry bad[] = {
		{ .kind = 0 },
		{ .kind = JOURNAL_KINDS },
		{ .kind = JOURNAL_DEAD, .zero = 1, .value = 5 },
		{ .kind = JOURNAL_COMMIT, .segment = WORLD_SEGMENTS, .value = 5 },
		{ .kind = JOURNAL_COMMIT, .segment = 1, .value = 0 },
		{ .kind = JOURNAL_UNCOMMIT, .segment = WORLD_SEGMENTS, .value = 5 },
		{ .kind = JOURNAL_TABLE, .small = 1, .value = 5 },
		{ .kind = JOURNAL_TABLE, .small = 64, .value = 1ull << 32 },
		{ .kind = JOURNAL_OPTION, .small = JOURNAL_OPTIONS },
		{ .kind = JOURNAL_FILE, .small = 1, .value = 1 }, /* not in a head */
	};

	uint64_t at = file->length;
	block_of(w, 5, 1);
	block = (struct journal_block *)(file->bytes + at);
	entry = (struct journal_entry *)(block + 1);
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		*entry = bad[i];
		block->check = journal_block_check(block);
		assert_int_equal(world_read(w), FS_ECORRUPT);
	}
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		CASE(nothing_there),
		CASE(a_torn_last_block_is_left_out_at_every_length),
		CASE(a_flipped_bit_in_the_last_block_is_a_torn_one),
		CASE(a_flipped_bit_before_a_whole_block_is_damage),
		CASE(an_unfinished_file_counts_for_nothing),
		CASE(an_older_file_must_be_whole),
		CASE(removal_from_the_oldest_on_never_looks_whole),
		CASE(what_was_durable_is_there_wherever_a_new_file_is_cut_off),
		CASE(a_last_file_that_was_deleted_is_missed),
		CASE(another_flash_has_another_journal),
		CASE(entries_are_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
