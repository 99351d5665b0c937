/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The index over a clean stop and over a kill: files and heads that are none of this index, damage anywhere, and kills in the
 * middle of every publication.
 */
#include "tests/unit/flashindex/frugal/world.h"

#include <sys/wait.h>
#include <unistd.h>

#include "flashindex/frugal/chain_internal.h"

static void fill(struct world *w, unsigned steps)
{
	for (unsigned n = 0; n < steps; n++) {
		for (unsigned i = 0; i < 60; i++) {
			uint32_t k = (uint32_t)rng_below(&w->rng, WORLD_KEYS);

			if (i % 10 == 0)
				world_delete(w, k);
			else if (i % 10 == 1 && !w->key[k].in_dram && world_search(w, k) == 0)
				frugal_note_absent(w->frugal, &w->key[k].key);
			else
				world_set(w, k);
		}
		(void)world_write(w, 2, NULL);
		world_merge_if_due(w);
	}
}

/* ---- a clean stop ---------------------------------------------------------------------------- */

static char path[200];

static void save(struct world *w)
{
	const char *folder = getenv("TMPDIR");
	struct parts_writer *writer;

	snprintf(path, sizeof(path), "%s/flashield-frugal-%d", folder ? folder : "/tmp", (int)getpid());
	assert_int_equal(frugal_take_kills(w->frugal), FS_OK);
	assert_int_equal(parts_create(&writer, path), FS_OK);
	frugal_save(w->frugal, writer);
	assert_int_equal(parts_finish(writer), FS_OK);
}

/* In place of the present index, in a region of its own. */
static int load(struct world *w, const struct frugal_config *config)
{
	uint64_t most[REGION_AREAS] = { 0 }, sequences[WORLD_SEGMENTS];
	struct parts_reader *reader;
	int result;

	frugal_destroy(w->frugal);
	region_destroy(w->region);
	most[REGION_FRUGAL] = frugal_region_most(config);
	assert_int_equal(region_create(&w->region, most), FS_OK);
	world_sequences(w, sequences);
	assert_int_equal(parts_open(&reader, path), FS_OK);
	result = frugal_load(&w->frugal, config, w->region, sequences, reader);
	parts_close(reader);
	return result;
}

static void saved_states_that_don_t_fit_are_refused(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct frugal_config config;

	(void)state;
	world_open(&w);
	fill(&w, 30);
	save(&w);
	config = w.config;
	config.seed++;
	assert_int_equal(load(&w, &config), FS_EINVAL);
	assert_null(w.frugal);
	config = w.config;
	config.segment_bytes = 16; /* the chain's records would lie outside */
	assert_int_equal(load(&w, &config), FS_ECORRUPT);
	assert_int_equal(load(&w, &w.config), FS_OK);
	world_check_all(&w);
	unlink(path);
	world_close(&w);
}

static void everything_outlives_a_stop(void **state)
{
	for (int kind = 0; kind < 2; kind++) {
		struct world w = { .config = { .share = kind ? 0.25 : 1, .kill_bytes = 4 << 10 } };

		(void)state;
		w.lossy = true; /* watermarks */
		world_open(&w);
		for (unsigned turn = 0; turn < 6; turn++) {
			fill(&w, 9);
			save(&w);
			for (uint32_t k = 0; k < WORLD_KEYS; k++)
				world_evict(&w, k);
			assert_int_equal(load(&w, &w.config), FS_OK);
			world_check_all(&w);
		}
		assert_true(w.found > 500 && (kind == 0 || w.chain_reads > 100));
		unlink(path);
		world_close(&w);
	}
}

/* Segments that aren't LIVE any more hide what is older, and nothing else happens. */
static void segments_that_are_gone_stay_closed(void **state)
{
	struct world w = { .config = { .share = 1 } };
	uint32_t gone = 3;

	(void)state;
	world_open(&w);
	fill(&w, 12);
	save(&w);
	world_reclaim(&w, gone);
	w.lossy = true;
	assert_int_equal(load(&w, &w.config), FS_OK);
	assert_false(frugal_is_open(w.frugal, gone, 100 + gone));
	world_check_all(&w);
	unlink(path);
	world_close(&w);
}

/* All columns were gone when the merge began. */
static void a_chain_of_nothing_outlives_a_stop(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct frugal_merge *merge;

	(void)state;
	world_open(&w);
	world_set(&w, 1);
	assert_true(world_write(&w, 1, NULL));
	world_reclaim(&w, 0);
	assert_int_equal(frugal_merge_begin(&merge, w.frugal), FS_OK);
	frugal_merge_publish(merge);
	assert_true(frugal_chain_is_over(w.frugal));
	world_set(&w, 2);
	assert_true(world_write(&w, 1, NULL));
	save(&w);
	assert_int_equal(load(&w, &w.config), FS_OK);
	assert_int_equal(world_search(&w, 2), w.key[2].sequence);
	world_check_all(&w);
	unlink(path);
	world_close(&w);
}

/* ---- a kill ---------------------------------------------------------------------------------- */

/* In a file frugal_repair makes holes of what the killed process had begun; this region is no file. */
static void punch_holes(const struct frugal *killed, const struct frugal *next)
{
	for (unsigned i = 0; i < killed->used_count; i++) {
		bool used = false;

		for (unsigned n = 0; n < next->used_count; n++)
			used |= next->used[n].offset == killed->used[i].offset;
		if (!used)
			memset(killed->area + killed->used[i].offset, 0, killed->used[i].bytes);
	}
}

/* The process is killed here: in a child that has a copy of everything, the next one attaches. */
static void attach_after_kill(struct world *w, unsigned damage)
{
	uint64_t sequences[WORLD_SEGMENTS];
	struct frugal *next = NULL;
	int result;

	for (uint32_t k = 0; k < WORLD_KEYS; k++)
		w->key[k].lost_dram = w->key[k].in_dram;
	for (unsigned n = 0; n < damage; n++) {
		uint64_t most = w->frugal->used[w->frugal->used_count - 1].offset;

		w->frugal->area[rng_below(&w->rng, n % 2 ? most : 8192)] = (uint8_t)rng_next(&w->rng);
	}
	world_sequences(w, sequences);
	result = frugal_attach(&next, &w->config, w->region, sequences);
	if (result != FS_OK) {
		assert_true(damage && !next);
		return;
	}
	frugal_repair(next);
	punch_holes(w->frugal, next);
	w->frugal = next;
	world_attached(w, damage == 0);
}

static void kill_now(struct world *w, unsigned damage)
{
	int status;
	pid_t child;

	fflush(NULL);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		attach_after_kill(w, damage);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

struct killer {
	struct world *w;
	unsigned each, calls, kills;
};

static void kill_sometimes(void *context)
{
	struct killer *killer = context;

	if (++killer->calls % killer->each == 0) {
		killer->kills++;
		kill_now(killer->w, 0);
	}
}

static void heads_that_don_t_fit_are_refused(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	uint64_t sequences[WORLD_SEGMENTS];
	struct frugal_config config;
	struct frugal *next;

	(void)state;
	world_open(&w);
	fill(&w, 10);
	world_sequences(&w, sequences);
	config = w.config;
	config.seed++;
	assert_int_equal(frugal_attach(&next, &config, w.region, sequences), FS_EINVAL);
	assert_null(next);
	config = w.config;
	config.segments--;
	assert_int_equal(frugal_attach(&next, &config, w.region, sequences), FS_EINVAL);
	w.frugal->kept->lines = 0;
	assert_int_equal(frugal_attach(&next, &w.config, w.region, sequences), FS_ECORRUPT);
	w.frugal->kept->lines = w.frugal->lines;
	w.frugal->kept->partitions = FRUGAL_PARTITIONS_MOST + 1;
	assert_int_equal(frugal_attach(&next, &w.config, w.region, sequences), FS_ECORRUPT);
	w.frugal->kept->partitions = w.config.partitions;
	atomic_store(&w.frugal->kept->chain, 77);
	assert_int_equal(frugal_attach(&next, &w.config, w.region, sequences), FS_ECORRUPT);
	world_close(&w);
}

/* A segment is LIVE until its readers have left. What was answered meanwhile must hold: a key was absent, and its deletion made no
   kill. */
static void what_was_closed_before_a_kill_stays_closed(void **state)
{
	struct world w = { .config = { .share = 1 } };
	uint64_t sequences[WORLD_SEGMENTS];
	struct frugal *next;

	(void)state;
	world_open(&w);
	fill(&w, 12);
	world_sequences(&w, sequences);
	for (uint32_t s = 0; s < 4; s++) {
		assert_true(frugal_is_open(w.frugal, s, sequences[s]));
		frugal_close(w.frugal, s);
		frugal_close(w.frugal, s);
	}
	assert_int_equal(frugal_attach(&next, &w.config, w.region, sequences), FS_OK);
	for (uint32_t s = 0; s < 6; s++)
		assert_int_equal(frugal_is_open(next, s, sequences[s]), s >= 4);
	frugal_destroy(next);
	world_close(&w);
}

/* The process is killed when the row of the new chain is filled in, and the old chain still counts. The next process merges too. */
static void a_merge_that_was_killed_before_its_end_is_made_again(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	uint64_t sequences[WORLD_SEGMENTS], number;
	struct frugal *killed;

	(void)state;
	world_open(&w);
	fill(&w, 30);
	number = w.frugal->chain->number;
	w.frugal->kept->chains[(number + 1) % CHAINS] = *w.frugal->chain->row;
	atomic_store(&w.frugal->kept->chains[(number + 1) % CHAINS].number, number + 1);
	world_sequences(&w, sequences);
	killed = w.frugal;
	assert_int_equal(frugal_attach(&w.frugal, &w.config, w.region, sequences), FS_OK);
	frugal_repair(w.frugal);
	punch_holes(killed, w.frugal);
	frugal_destroy(killed);
	assert_int_equal(w.frugal->chain->number, number);
	for (unsigned n = 0; n < 3; n++) {
		world_set(&w, n);
		(void)world_write(&w, 1, NULL);
		world_merge(&w, 3, 0, true);
		assert_int_equal(w.frugal->chain->number, number + 1 + n);
		world_check_all(&w);
	}
	world_close(&w);
}

/* The serials of the first and the last bundle that are laid together in one. */
struct span {
	uint64_t oldest, serial;
};

static struct bundle_row *row_of(struct world *w, unsigned bundle)
{
	return w->frugal->bundle[bundle]->row;
}

/* Gives the rows of two bundles these serials. Of the bundles that the next process attaches, kept have bits: 1 is the first. */
static void attach_two(struct world *w, struct span first, struct span second, unsigned kept)
{
	struct bundle_row *rows[] = { row_of(w, 0), row_of(w, 1) };
	const struct bundle_row before[] = { *rows[0], *rows[1] };
	uint64_t sequences[WORLD_SEGMENTS];
	struct frugal *next;
	unsigned found = 0;

	rows[0]->oldest = first.oldest;
	atomic_store(&rows[0]->serial, first.serial);
	rows[1]->oldest = second.oldest;
	atomic_store(&rows[1]->serial, second.serial);
	world_sequences(w, sequences);
	assert_int_equal(frugal_attach(&next, &w->config, w->region, sequences), FS_OK);
	for (unsigned b = 0; b < next->bundles; b++) {
		assert_true(b == 0 || next->bundle[b - 1]->serial >= next->bundle[b]->serial);
		found |= next->bundle[b]->row == rows[0] ? 1u : next->bundle[b]->row == rows[1] ? 2u : 4u;
	}
	assert_int_equal(found, kept);
	frugal_repair(next);
	assert_int_equal(atomic_load(&rows[0]->serial) != 0, (kept & 1) != 0);
	assert_int_equal(atomic_load(&rows[1]->serial) != 0, (kept & 2) != 0);
	frugal_destroy(next);
	*rows[0] = before[0];
	*rows[1] = before[1];
}

/* The process was killed when the bundle that some were laid together in had its row, and theirs were not free yet. */
static void bundles_that_were_laid_together_are_passed_over(void **state)
{
	struct world w = { .config = { .share = 1 } };

	(void)state;
	world_open(&w);
	for (uint32_t k = 0; k < 2; k++) {
		world_set(&w, k);
		assert_true(world_write(&w, 1, NULL));
	}
	assert_int_equal(w.frugal->bundles, 2);
	attach_two(&w, (struct span){ 2, 2 }, (struct span){ 1, 3 }, 2);
	attach_two(&w, (struct span){ 1, 1 }, (struct span){ 1, 3 }, 2);
	attach_two(&w, (struct span){ 3, 3 }, (struct span){ 1, 3 }, 2);
	attach_two(&w, (struct span){ 1, 3 }, (struct span){ 2, 3 }, 1);
	attach_two(&w, (struct span){ 1, 4 }, (struct span){ 1, 3 }, 1);
	attach_two(&w, (struct span){ 4, 4 }, (struct span){ 1, 3 }, 3);
	attach_two(&w, (struct span){ 1, 1 }, (struct span){ 2, 4 }, 3);
	attach_two(&w, (struct span){ 1, 2 }, (struct span){ 2, 4 }, 3);
	attach_two(&w, (struct span){ 1, 4 }, (struct span){ 2, 5 }, 3);
	attach_two(&w, (struct span){ 1, 3 }, (struct span){ 1, 3 }, 3); /* or both would go */
	world_close(&w);
}

/* The process was killed behind the store by which the new chain counts, and the rows of the bundles in it were not free yet. */
static void bundles_that_the_chain_has_are_passed_over(void **state)
{
	struct world w = { .config = { .share = 1 } };
	uint64_t covers;

	(void)state;
	world_open(&w);
	world_set(&w, 0);
	assert_true(world_write(&w, 1, NULL));
	world_merge(&w, 3, 0, true);
	for (uint32_t k = 1; k < 3; k++) {
		world_set(&w, k);
		assert_true(world_write(&w, 1, NULL));
	}
	assert_int_equal(w.frugal->bundles, 2);
	covers = w.frugal->chain->covers;
	assert_int_equal(covers, 1);
	attach_two(&w, (struct span){ covers + 1, covers + 1 }, (struct span){ covers, covers }, 1);
	attach_two(&w, (struct span){ covers, covers }, (struct span){ covers, covers + 1 }, 2);
	attach_two(&w, (struct span){ covers + 2, covers + 2 }, (struct span){ covers + 1, covers + 1 }, 3);
	world_close(&w);
}

/* What is attached may be anything but a crash: objects may be lost or found in vain. */
static void damage_anywhere_is_survived(void **state)
{
	struct world w = { .config = { .share = 0.25 } };

	(void)state;
	world_open(&w);
	fill(&w, 30);
	for (unsigned n = 1; n < 150; n++) {
		rng_init(&w.rng, n);
		kill_now(&w, 1 + n % 40);
	}
	world_close(&w);
}

static void kills_in_the_middle_of_publications(void **state)
{
	for (int kind = 0; kind < 2; kind++) {
		struct world w = { .config = { .share = kind ? 0.25 : 1 } };
		struct killer killer = { .w = &w, .each = 3 }, stepper = { .w = &w, .each = 11 };

		(void)state;
		world_open(&w);
		frugal_set_quiesce(w.frugal, kill_sometimes, &killer);
		frugal_set_step(w.frugal, kill_sometimes, &stepper);
		fill(&w, 45);
		assert_true(killer.kills > 20 && stepper.kills > 5);
		kill_now(&w, 0);
		world_close(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(saved_states_that_don_t_fit_are_refused),
		cmocka_unit_test(everything_outlives_a_stop),
		cmocka_unit_test(segments_that_are_gone_stay_closed),
		cmocka_unit_test(a_chain_of_nothing_outlives_a_stop),
		cmocka_unit_test(heads_that_don_t_fit_are_refused),
		cmocka_unit_test(what_was_closed_before_a_kill_stays_closed),
		cmocka_unit_test(a_merge_that_was_killed_before_its_end_is_made_again),
		cmocka_unit_test(bundles_that_were_laid_together_are_passed_over),
		cmocka_unit_test(bundles_that_the_chain_has_are_passed_over),
		cmocka_unit_test(damage_anywhere_is_survived),
		cmocka_unit_test(kills_in_the_middle_of_publications),
	};

	return cmocka_run_group_tests_name("restart", tests, NULL, NULL);
}
