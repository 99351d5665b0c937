/* SPDX-License-Identifier: BSD-3-Clause */
/* The journal's writer: groups, files, trimming, and giving up. */
#include "server/store/state/journal.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/fault.h"
#include "tests/unit/devices/ram_journal.h"
#include "tests/unit/server/store/state/journal_world.h"

static uint64_t dead(struct world *w, uint64_t sequence, uint32_t offset)
{
	return journal_append(w->journal,
			      &(struct journal_entry){ .kind = JOURNAL_DEAD, .small = offset, .value = sequence });
}

static void waiting_entries_share_one_sync(void **state)
{
	struct world *w = *state;
	uint64_t syncs = w->medium.syncs, ticket = 0;

	for (uint32_t i = 0; i < 1000; i++)
		ticket = dead(w, 5, i * 64);
	assert_int_equal(ticket, 1000);
	assert_int_equal(journal_durable(w->journal), 0);
	assert_int_equal(w->wakes, 1);
	assert_true(journal_step(w->journal));
	assert_int_equal(w->medium.syncs, syncs + 1);
	assert_int_equal(journal_durable(w->journal), 1000);
	assert_int_equal(w->advances, 1);
	assert_false(journal_step(w->journal));
	world_read(w);
	assert_int_equal(w->seen, 1000);
}

static void a_ticket_is_durable_only_after_the_sync(void **state)
{
	struct world *w = *state;
	uint64_t first = dead(w, 5, 0), second;

	w->during_sync = dead;
	assert_true(journal_step(w->journal)); /* another entry comes while the first is written */
	second = journal_newest(w->journal);
	assert_int_equal(second, first + 1);
	assert_int_equal(journal_durable(w->journal), first);
	assert_true(journal_step(w->journal));
	assert_int_equal(journal_durable(w->journal), second);
}

static void a_beat_tells_the_time(void **state)
{
	struct world *w = *state;

	clk_scripted_advance(&w->clk, JOURNAL_BEAT_S * 1000000 - 1000);
	assert_false(journal_step(w->journal));
	clk_scripted_advance(&w->clk, 1000);
	w->wall_s += 77;
	assert_true(journal_step(w->journal));
	assert_int_equal(world_read(w), FS_OK);
	assert_int_equal(w->found.wall_s, w->wall_s);
	assert_int_equal(w->found.store_s, w->store_s);
}

static void more_than_a_block_takes_several(void **state)
{
	struct world *w = *state;

	for (uint32_t i = 0; i < 40000; i++)
		dead(w, 5, i * 64);
	assert_true(journal_step(w->journal));
	assert_int_equal(journal_durable(w->journal), 32768);
	assert_true(journal_step(w->journal));
	assert_int_equal(journal_durable(w->journal), 40000);
	world_read(w);
	assert_int_equal(w->seen, 40000);
}

static void files_go_once_the_floor_has_passed_them(void **state)
{
	struct world *w = *state;

	for (uint64_t sequence = 1; sequence <= 20; sequence++) {
		for (uint32_t i = 0; i < 1000; i++)
			dead(w, sequence, i);
		assert_true(journal_step(w->journal));
	}
	assert_true(ram_journal_count(&w->medium) > 2);
	journal_append(w->journal, &(struct journal_entry){ .kind = JOURNAL_FLOOR, .value = 19 });
	assert_int_equal(journal_floor(w->journal), 0);
	for (uint32_t i = 0; i < 1000; i++)
		dead(w, 20, 5000 + i);
	assert_true(journal_step(w->journal));
	assert_int_equal(journal_floor(w->journal), 19);
	for (int i = 0; i < 3; i++) {
		for (uint32_t n = 0; n < 1000; n++)
			dead(w, 20, 6000 + n);
		assert_true(journal_step(w->journal));
	}
	assert_int_equal(world_read(w), FS_OK);
	assert_true(w->found.files <= 4);
	assert_int_equal(w->found.state.floor, 19);
	assert_true(w->seen_of[20] == 5000);
	assert_true(w->seen < 9000);
}

static void too_much_raises_the_floor(void **state)
{
	struct world *w = *state;
	struct journal_status status;

	for (uint64_t sequence = 1; sequence <= 200; sequence++) {
		for (uint32_t i = 0; i < 1000; i++)
			dead(w, sequence % 256, i);
		assert_true(journal_step(w->journal));
	}
	journal_get_status(w->journal, &status);
	assert_true(status.floor > 100 && status.floor < 200);
	assert_true(status.bytes <= WORLD_MOST_BYTES + 2 * WORLD_FILE_BYTES);
	assert_int_equal(status.waiting, 0);
	assert_int_equal(world_read(w), FS_OK);
	assert_int_equal(w->found.state.floor, status.floor);
	for (uint64_t sequence = status.floor + 1; sequence <= 200; sequence++)
		assert_int_equal(w->seen_of[sequence], 1000);
}

static void the_state_goes_from_file_to_file(void **state)
{
	struct world *w = *state;

	journal_append(w->journal, &(struct journal_entry){ .kind = JOURNAL_TABLE, .small = 64, .value = 3 });
	for (uint16_t s = 0; s < 4; s++)
		journal_append(
			w->journal,
			&(struct journal_entry){ .kind = JOURNAL_COMMIT, .segment = s, .small = 3, .value = 10u + s });
	journal_append(w->journal, &(struct journal_entry){ .kind = JOURNAL_UNCOMMIT, .segment = 1, .value = 11 });
	journal_append(w->journal, &(struct journal_entry){
					   .kind = JOURNAL_UNCOMMIT, .segment = 2, .value = 9 }); /* an older one */
	journal_append(w->journal, &(struct journal_entry){ .kind = JOURNAL_FLUSH_AT, .value = 5 });
	journal_append(w->journal, &(struct journal_entry){ .kind = JOURNAL_FLUSH, .value = 77 });
	journal_append(w->journal, &(struct journal_entry){ .kind = JOURNAL_FLUSH_AT, .value = 99 });
	for (int i = 0; i < 6; i++) {
		for (uint32_t n = 0; n < 1000; n++)
			dead(w, 10, n);
		assert_true(journal_step(w->journal));
	}
	assert_int_equal(world_read(w), FS_OK);
	assert_true(w->found.files > 1);
	assert_int_equal(w->found.state.commit[0].sequence, 10);
	assert_int_equal(w->found.state.commit[1].sequence, 0);
	assert_int_equal(w->found.state.commit[2].sequence, 12);
	assert_int_equal(w->found.state.commit[3].table, 3);
	assert_int_equal(journal_state_table(&w->found.state, 3)->buckets, 64);
	assert_int_equal(w->found.state.flush_cas, 77);
	assert_int_equal(w->found.state.flush_at, 99);
}

static void after_an_error_the_files_are_gone_before_answers_go_on(void **state)
{
	struct world *w = *state;
	struct journal_status status;
	uint64_t ticket = dead(w, 5, 0);

	w->medium.fail_sync = -EIO;
	w->medium.fail_remove = -EROFS;
	assert_true(journal_step(w->journal));
	assert_int_equal(journal_durable(w->journal), 0);
	assert_true(journal_needs_disowning(w->journal));
	assert_false(journal_step(w->journal)); /* a second later, not at once */
	clk_scripted_advance(&w->clk, 1000000);
	w->medium.fail_remove = 0;
	assert_true(journal_step(w->journal));
	assert_int_equal(ram_journal_count(&w->medium), 0);
	assert_true(journal_durable(w->journal) >= ticket);
	assert_false(journal_needs_disowning(w->journal));
	(void)dead(w, 5, 64);
	assert_true(journal_durable(w->journal) >= journal_newest(w->journal));
	assert_false(journal_step(w->journal));
	journal_get_status(w->journal, &status);
	assert_true(status.broken);
	assert_int_equal(status.waiting, 0);
}

static void a_new_epoch_replaces_what_cannot_be_removed(void **state)
{
	struct world *w = *state;

	(void)dead(w, 5, 0);
	w->medium.fail_write = -ENOSPC;
	w->medium.fail_remove = -EROFS;
	assert_true(journal_step(w->journal));
	assert_true(journal_needs_disowning(w->journal));
	assert_int_equal(journal_durable(w->journal), 0);
	journal_disowned(w->journal);
	assert_false(journal_needs_disowning(w->journal));
	assert_int_equal(journal_durable(w->journal), UINT64_MAX);
	clk_scripted_advance(&w->clk, 2000000);
	assert_false(journal_step(w->journal));
}

/* What can't be written down must not count as written. */
static void memory_out_for_an_entry_is_a_failure(void **state)
{
#ifndef FS_FAULTS
	(void)state;
	skip();
#else
	struct world *w = *state;
	uint64_t ticket = 0;

	fault_arm(FAULT_memory_alloc, FAULT_AFTER, 1);
	for (uint32_t n = 0; n < 1000; n++)
		ticket = dead(w, 5, n);
	assert_int_equal(fault_fired(FAULT_memory_alloc), 1);
	assert_int_equal(journal_durable(w->journal), 0);
	w->medium.fail_remove = -EROFS;
	assert_true(journal_step(w->journal));
	assert_int_equal(journal_durable(w->journal), 0);
	w->medium.fail_remove = 0;
	clk_scripted_advance(&w->clk, 1000000);
	assert_true(journal_step(w->journal));
	assert_int_equal(ram_journal_count(&w->medium), 0);
	assert_true(journal_durable(w->journal) >= ticket);
	fault_disarm_all();
#endif
}

static void its_memory_is_told(void **state)
{
	struct world *w = *state;

	assert_int_equal(w->more_bytes, 0);
	for (uint32_t n = 0; n < 40000; n++)
		(void)dead(w, 5, n);
	assert_true(w->more_bytes >= 40000 * (int64_t)sizeof(struct journal_entry));
	while (journal_step(w->journal))
		;
	assert_int_equal(w->more_bytes, 0);
}

static void a_failed_rotation_is_a_failure(void **state)
{
	struct world *w = *state;

	for (int i = 0; i < 4; i++) {
		for (uint32_t n = 0; n < 1000; n++)
			dead(w, 10, n);
		w->medium.fail_create = -ENOSPC;
		(void)journal_step(w->journal);
	}
	assert_int_equal(journal_durable(w->journal), UINT64_MAX);
	assert_int_equal(ram_journal_count(&w->medium), 0);
}

static void no_journal_where_none_can_be_written(void **state)
{
	struct world *w = *state;
	struct journal *journal;

	world_close(w);
	w->medium.fail_sync = -EIO;
	assert_int_equal(world_try_create(w, &journal), FS_EIO);
	assert_int_equal(ram_journal_count(&w->medium), 0);
	w->medium.fail_sync = 0;
	world_open(w);
}

/* ---- a move of the flash ------------------------------------------------------------------------ */

#define OTHER_EPOCH 1000u

static void write_much(struct world *w, uint64_t sequence)
{
	for (uint32_t i = 0; i < 3 * WORLD_FILE_BYTES / 16; i++)
		dead(w, sequence, i);
	while (journal_step(w->journal))
		;
}

static void a_seal_that_cannot_be_written_is_a_failure(void **state)
{
	struct world *w = *state;

	w->medium.fail_write = -EIO;
	assert_int_equal(journal_seal(w->journal, &w->medium.medium, OTHER_EPOCH), -EIO);
	assert_int_equal(journal_durable(w->journal), UINT64_MAX);
	w->medium.fail_write = 0;
	assert_int_equal(world_read(w), FS_ENOTFOUND);
	/* There is nothing to take along any more. */
	assert_int_equal(journal_seal(w->journal, &w->medium.medium, OTHER_EPOCH), 0);
	journal_unseal(w->journal);
	assert_true(journal_confirm(w->journal));
}

static void sealed_it_is_of_both_epochs_and_begins_no_file(void **state)
{
	struct world *w = *state;
	unsigned files;

	dead(w, 5, 1);
	assert_true(journal_step(w->journal));
	files = ram_journal_count(&w->medium);
	assert_int_equal(journal_seal(w->journal, &w->medium.medium, OTHER_EPOCH), 0);
	write_much(w, 6);
	write_much(w, 7);
	assert_int_equal(ram_journal_count(&w->medium), files);
	assert_int_equal(world_read(w), FS_OK);
	assert_int_equal(w->found.epoch, w->epoch);
	assert_int_equal(w->found.state.next_epoch, OTHER_EPOCH);
	assert_int_equal(w->seen_of[5], 1);
	assert_int_equal(w->seen_of[7], 3 * WORLD_FILE_BYTES / 16);
	journal_unseal(w->journal);
	assert_int_equal(world_read(w), FS_OK);
	assert_int_equal(w->found.state.next_epoch, 0);
	write_much(w, 8);
	write_much(w, 9);
	assert_true(ram_journal_count(&w->medium) > files);
}

static void confirmed_it_goes_on_in_a_file_of_the_new_epoch(void **state)
{
	struct world *w = *state;

	dead(w, 5, 1);
	assert_true(journal_step(w->journal));
	assert_int_equal(journal_seal(w->journal, &w->medium.medium, OTHER_EPOCH), 0);
	dead(w, 6, 1);
	assert_true(journal_confirm(w->journal));
	(void)journal_step(w->journal);
	assert_int_equal(world_read(w), FS_OK);
	assert_int_equal(w->found.epoch, OTHER_EPOCH);
	assert_int_equal(w->found.state.next_epoch, 0);
	assert_int_equal(w->found.files, 2);
	assert_int_equal(w->seen_of[5], 1);
	assert_int_equal(w->seen_of[6], 1);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, world_setup, world_teardown)
	const struct CMUnitTest tests[] = {
		CASE(waiting_entries_share_one_sync),
		CASE(a_ticket_is_durable_only_after_the_sync),
		CASE(a_beat_tells_the_time),
		CASE(more_than_a_block_takes_several),
		CASE(files_go_once_the_floor_has_passed_them),
		CASE(too_much_raises_the_floor),
		CASE(the_state_goes_from_file_to_file),
		CASE(after_an_error_the_files_are_gone_before_answers_go_on),
		CASE(a_new_epoch_replaces_what_cannot_be_removed),
		CASE(memory_out_for_an_entry_is_a_failure),
		CASE(its_memory_is_told),
		CASE(a_failed_rotation_is_a_failure),
		CASE(no_journal_where_none_can_be_written),
		CASE(a_seal_that_cannot_be_written_is_a_failure),
		CASE(sealed_it_is_of_both_epochs_and_begins_no_file),
		CASE(confirmed_it_goes_on_in_a_file_of_the_new_epoch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
