/* SPDX-License-Identifier: BSD-3-Clause */
/* Random commands, segments, merges and reclaims against the truth: nothing stale is found, and nothing is lost that need
   not be. FRUGAL_SEED sets the seed. */
#include "tests/unit/flashindex/frugal/world.h"

#define STEPS 400u

static void some_commands(struct world *w)
{
	for (unsigned n = 0; n < 60; n++) {
		uint32_t k = (uint32_t)rng_below(&w->rng, WORLD_KEYS);

		switch (rng_below(&w->rng, 8)) {
		case 0:
			world_delete(w, k);
			break;
		case 1:
			world_evict(w, k);
			break;
		case 2:
			if (!w->key[k].in_dram && w->key[k].sequence == 0 && world_search(w, k) == 0)
				frugal_note_absent(w->frugal, &w->key[k].key);
			break;
		case 3:
		case 4:
			world_check(w, k);
			break;
		default:
			world_set(w, k);
			break;
		}
	}
}

static void commands_meanwhile(struct world *w)
{
	some_commands(w);
}

static void run(struct world *w, unsigned steps, bool fifo)
{
	for (unsigned step = 0; step < steps; step++) {
		some_commands(w);
		if (rng_below(&w->rng, 3) == 0)
			(void)world_write(w, 2, commands_meanwhile);
		if (rng_below(&w->rng, 15) == 0)
			assert_int_equal(frugal_take_kills(w->frugal), FS_OK);
		if (!fifo && rng_below(&w->rng, 10) == 0) {
			uint32_t segment = (uint32_t)rng_below(&w->rng, WORLD_SEGMENTS);

			/* What is older than the newest record of a key stays hidden, and innocent ones with it. */
			w->lossy = true;
			if (!w->segment[segment].chain)
				world_reclaim(w, segment);
		}
		world_merge_if_due(w);
		if (step % 25 == 0)
			world_check_all(w);
	}
	world_check_all(w);
}

static void all_columns_in_memory(void **state)
{
	struct world w = { .config = { .share = 1 } };

	(void)state;
	world_open(&w);
	run(&w, STEPS, true);
	assert_true(w.found > 1000 && w.in_vain > 100 && w.chain_reads == 0 && !w.lossy);
	world_close(&w);
}

static void a_chain_of_several_segments(void **state)
{
	struct world w = { .config = { .share = 0.25, .partitions = 7 } };

	(void)state;
	world_open(&w);
	run(&w, STEPS, true);
	assert_true(w.found > 1000 && w.in_vain > 100 && w.chain_reads > 1000 && !w.lossy);
	world_close(&w);
}

static void one_partition_and_many(void **state)
{
	struct world one = { .config = { .share = 0.2, .partitions = 1 } };
	struct world many = { .config = { .share = 0.3, .partitions = 301 } };

	(void)state;
	world_open(&one);
	run(&one, STEPS / 2, true);
	assert_false(one.lossy);
	world_close(&one);
	world_open(&many);
	for (unsigned n = 0; n < 4; n++) {
		run(&many, 40, true);
		world_merge(&many, 200, 0, true);
		world_check_all(&many);
	}
	assert_false(many.lossy);
	world_close(&many);
}

static void segments_that_go_in_any_order(void **state)
{
	for (int chain = 0; chain < 2; chain++) {
		struct world w = { .config = { .share = chain ? 0.25 : 1 } };

		(void)state;
		world_open(&w);
		run(&w, STEPS, false);
		assert_true(w.found > 500);
		world_close(&w);
	}
}

static void chain_records_that_can_t_be_read(void **state)
{
	struct world w = { .config = { .share = 0.25 } };

	(void)state;
	world_open(&w);
	for (unsigned n = 0; n < 12; n++) {
		run(&w, 20, true);
		world_merge(&w, 2, 300, true);
		world_check_all(&w);
	}
	assert_true(w.lost > 0);
	world_close(&w);
}

/* What a merge that is given up could not read is read by the next one: it must not have been forgotten meanwhile. */
static void merges_that_are_given_up(void **state)
{
	struct world w = { .config = { .share = 0.6 } };

	(void)state;
	world_open(&w);
	for (unsigned n = 0; n < 40; n++) {
		run(&w, 4, true);
		world_merge(&w, 4, n % 2 ? 0 : 400, n % 2);
		world_check_all(&w);
	}
	assert_true(w.found > 1000 && w.chain_reads > 1000 && !w.lossy);
	world_close(&w);
}

static void a_table_of_kills_without_room(void **state)
{
	struct world w = { .config = { .share = 0.25, .kill_bytes = 512 } };

	(void)state;
	w.lossy = true; /* watermarks */
	world_open(&w);
	run(&w, STEPS, true);
	assert_true(w.lost > 0 && w.found > 100);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_columns_in_memory),
		cmocka_unit_test(a_chain_of_several_segments),
		cmocka_unit_test(one_partition_and_many),
		cmocka_unit_test(segments_that_go_in_any_order),
		cmocka_unit_test(chain_records_that_can_t_be_read),
		cmocka_unit_test(merges_that_are_given_up),
		cmocka_unit_test(a_table_of_kills_without_room),
	};

	return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
