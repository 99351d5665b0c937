/* SPDX-License-Identifier: BSD-3-Clause */
/* The sampler: uniform over accesses, labels in both modes, bounded memory. No clock, only times. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "classifier/classifier_internal.h"

#define START_MS 1000000ull
#define WINDOW_MS 10000ull
#define HORIZON_MS 20000ull
#define KEY 42

static struct sampler sampler;

static void open_sampler(enum clf_label_mode mode, size_t memory_bytes)
{
	struct sampler_config config = {
		.seed = 7,
		.start_ms = START_MS,
		.window_ms = WINDOW_MS,
		.mode = mode,
		.memory_bytes = memory_bytes,
	};

	memset(&sampler, 0, sizeof(sampler));
	assert_int_equal(sampler_init(&sampler, &config), FS_OK);
}

static int full(void **state)
{
	(void)state;
	open_sampler(CLF_LABEL_FULL, 1 << 20);
	return 0;
}

static int paper(void **state)
{
	(void)state;
	open_sampler(CLF_LABEL_PAPER, 1 << 20);
	return 0;
}

static int done(void **state)
{
	(void)state;
	sampler_fini(&sampler);
	return 0;
}

/* An event at a time after the start. Reads are subjects, with the access in the size. */
static void at(uint64_t ms, enum sampler_event event)
{
	struct clf_state state = { .record_bytes = (uint32_t)ms };

	clf_features_written(&state.features, 0);
	sampler_note(&sampler, KEY, event, event == SAMPLER_READ ? &state : NULL, START_MS + ms, HORIZON_MS);
}

static void flash_hit(uint64_t ms)
{
	sampler_note(&sampler, KEY, SAMPLER_READ, NULL, START_MS + ms, HORIZON_MS);
}

static long labelled(uint64_t ms, struct clf_sample *first)
{
	struct clf_sample *samples;

	sampler_sweep(&sampler, START_MS + ms);
	long count = sampler_collect(&sampler, 0, &samples);
	assert_true(count >= 0);
	if (count > 0 && first)
		*first = samples[0];
	mem_free(samples);
	return count;
}

/* The label of the one sample, once its horizon has passed for certain. */
static uint32_t reads_counted(void)
{
	struct clf_sample sample;

	assert_int_equal(labelled(10 * (WINDOW_MS + HORIZON_MS), &sample), 1);
	return sample.reads;
}

/* ---- what must not happen -------------------------------------------------------------------- */

static void too_little_memory_is_refused(void **state)
{
	(void)state;
	struct sampler small;
	struct sampler_config config = { .window_ms = 1, .memory_bytes = 1024 };

	memset(&small, 0, sizeof(small));
	assert_int_equal(sampler_init(&small, &config), FS_EINVAL);
	sampler_fini(&small);
}

static void never_read_is_never_a_sample(void **state)
{
	(void)state;
	at(1, SAMPLER_WRITTEN);
	at(2, SAMPLER_MISSED);
	at(3, SAMPLER_EVICTED);
	assert_int_equal(sampler_tracked(&sampler), 0);
}

static void no_label_before_the_horizon(void **state)
{
	(void)state;
	at(0, SAMPLER_READ);
	/* It is flashy already, but the ones that are not are not known yet. */
	for (uint64_t ms = WINDOW_MS; ms < HORIZON_MS; ms += 100)
		flash_hit(ms);
	assert_int_equal(labelled(HORIZON_MS - 1, NULL), 0);
	assert_int_equal(labelled(HORIZON_MS, NULL), 1);
}

static void an_ended_label_waits_for_the_horizon_too(void **state)
{
	(void)state;
	at(0, SAMPLER_READ);
	at(10, SAMPLER_DELETED);
	assert_int_equal(labelled(HORIZON_MS - 1, NULL), 0);
	assert_int_equal(labelled(HORIZON_MS, NULL), 1);
}

static void no_label_before_the_window_ends(void **state)
{
	(void)state;
	struct clf_state subject = { .record_bytes = 1 };

	sampler_note(&sampler, KEY, SAMPLER_READ, &subject, START_MS, 10);
	assert_int_equal(labelled(WINDOW_MS - 1, NULL), 0); /* it may be replaced until then */
	assert_int_equal(labelled(WINDOW_MS, NULL), 1);
}

static void reads_after_the_horizon_do_not_count(void **state)
{
	(void)state;
	at(0, SAMPLER_READ);
	flash_hit(HORIZON_MS);
	assert_int_equal(reads_counted(), 0);
}

/* ---- one sample per key, uniform over its accesses ------------------------------------------- */

static void each_access_is_kept_equally_often(void **state)
{
	(void)state;
	enum { KEYS = 8000, READS = 10, BATCH = 200 };
	unsigned kept[READS] = { 0 };

	for (unsigned key = 0; key < KEYS; key++) {
		uint64_t start = START_MS + key / BATCH * 100 * WINDOW_MS;
		for (uint32_t i = 0; i < READS; i++) {
			struct clf_state subject = { .record_bytes = i };
			sampler_note(&sampler, mix64(key), SAMPLER_READ, &subject, start + i, 10);
		}
		if (key % BATCH < BATCH - 1)
			continue;
		struct clf_sample *samples;
		sampler_sweep(&sampler, start + WINDOW_MS + 100);
		long count = sampler_collect(&sampler, start, &samples);
		assert_int_equal(count, BATCH);
		for (long i = 0; i < count; i++) {
			kept[samples[i].state.record_bytes]++;
			/* the label counts exactly the reads after the kept one */
			assert_int_equal(samples[i].reads, READS - 1 - samples[i].state.record_bytes);
		}
		mem_free(samples);
	}
	/* Chi-squared with 9 degrees of freedom: above 27.9 once in a thousand seeds. */
	double expected = (double)KEYS / READS, chi = 0;
	for (unsigned i = 0; i < READS; i++)
		chi += ((double)kept[i] - expected) * ((double)kept[i] - expected) / expected;
	assert_true(chi < 27.9);
}

static void a_key_gives_one_sample_per_window(void **state)
{
	(void)state;
	for (uint64_t ms = 0; ms < WINDOW_MS; ms += 10)
		at(ms, SAMPLER_READ);
	assert_int_equal(sampler_tracked(&sampler), 1);
	assert_int_equal(labelled(WINDOW_MS + HORIZON_MS, NULL), 1);
	at(WINDOW_MS + HORIZON_MS + 1, SAMPLER_READ);
	assert_int_equal(labelled(2 * (WINDOW_MS + HORIZON_MS), NULL), 2);
}

/* ---- labels, mode full ----------------------------------------------------------------------- */

static void full_counts_on_after_eviction(void **state)
{
	(void)state;
	at(0, SAMPLER_READ);
	at(10, SAMPLER_OFFERED);
	at(11, SAMPLER_EVICTED);
	at(WINDOW_MS, SAMPLER_MISSED); /* flash would have served it */
	at(WINDOW_MS + 1, SAMPLER_WRITTEN); /* a refill */
	at(WINDOW_MS + 2, SAMPLER_READ);
	flash_hit(WINDOW_MS + 3);
	assert_int_equal(reads_counted(), 3);
}

static void full_ends_at_an_update(void **state)
{
	(void)state;
	at(0, SAMPLER_READ);
	flash_hit(1);
	at(2, SAMPLER_WRITTEN);
	flash_hit(3);
	assert_int_equal(reads_counted(), 1);
}

static void full_takes_only_one_write_for_the_refill(void **state)
{
	(void)state;
	at(0, SAMPLER_READ);
	at(WINDOW_MS, SAMPLER_MISSED);
	at(WINDOW_MS + 1, SAMPLER_WRITTEN);
	at(WINDOW_MS + 2, SAMPLER_WRITTEN);
	flash_hit(WINDOW_MS + 3);
	assert_int_equal(reads_counted(), 1);
}

static void full_ends_at_a_delete(void **state)
{
	(void)state;
	at(0, SAMPLER_READ);
	at(WINDOW_MS, SAMPLER_DELETED);
	at(WINDOW_MS + 1, SAMPLER_MISSED);
	at(WINDOW_MS + 2, SAMPLER_WRITTEN);
	at(WINDOW_MS + 3, SAMPLER_READ);
	assert_int_equal(reads_counted(), 0);
}

static void expiry_ends_the_count(void **state)
{
	(void)state;
	struct clf_state subject = { .ttl_seconds = 5 };

	sampler_note(&sampler, KEY, SAMPLER_READ, &subject, START_MS, HORIZON_MS);
	flash_hit(4999);
	flash_hit(5000);
	assert_int_equal(reads_counted(), 1);
}

/* ---- labels, mode paper ---------------------------------------------------------------------- */

static void paper_counts_from_the_sample(void **state)
{
	(void)state;
	at(0, SAMPLER_READ);
	flash_hit(1);
	flash_hit(HORIZON_MS - 1);
	flash_hit(HORIZON_MS);
	assert_int_equal(reads_counted(), 2);
}

static void paper_ends_at(enum sampler_event event)
{
	at(0, SAMPLER_READ);
	flash_hit(WINDOW_MS);
	at(WINDOW_MS + 1, event);
	flash_hit(WINDOW_MS + 2);
	assert_int_equal(reads_counted(), 1);
}

static void paper_ends_at_an_update(void **state)
{
	(void)state;
	paper_ends_at(SAMPLER_WRITTEN);
}

static void paper_ends_at_a_delete(void **state)
{
	(void)state;
	paper_ends_at(SAMPLER_DELETED);
}

static void paper_ends_at_an_eviction(void **state)
{
	(void)state;
	paper_ends_at(SAMPLER_EVICTED);
}

static void paper_ends_at_a_miss(void **state)
{
	(void)state;
	paper_ends_at(SAMPLER_MISSED);
}

static void paper_goes_on_after_an_offer(void **state)
{
	(void)state;
	at(0, SAMPLER_READ);
	flash_hit(WINDOW_MS);
	at(WINDOW_MS + 1, SAMPLER_OFFERED);
	flash_hit(WINDOW_MS + 2);
	assert_int_equal(reads_counted(), 2);
}

static void paper_ends_at_expiry(void **state)
{
	(void)state;
	struct clf_state subject = { .ttl_seconds = 1 + WINDOW_MS / 1000 };

	sampler_note(&sampler, KEY, SAMPLER_READ, &subject, START_MS, HORIZON_MS);
	flash_hit(WINDOW_MS + 999);
	flash_hit(WINDOW_MS + 1000);
	assert_int_equal(reads_counted(), 1);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void a_million_keys_stay_in_bounds(void **state)
{
	(void)state;
	struct clf_state subject = { .record_bytes = 1 };
	uint64_t sampled = 0;

	for (uint64_t i = 0; i < 1000000; i++) {
		uint64_t key = sampler_key(&sampler, i);
		if (!sampler_wants(&sampler, key))
			continue;
		sampled++;
		sampler_note(&sampler, key, SAMPLER_READ, &subject, START_MS, HORIZON_MS);
	}
	assert_true(sampler_bytes(&sampler) <= 1 << 20);
	size_t tracked = sampler_tracked(&sampler), most = SAMPLER_STRIPES * sampler.entries;
	assert_true(tracked <= most);
	assert_true(tracked > most / 8); /* and the room is used */
	assert_true(sampled < 100000); /* few keys took the lock */
}

/* What is dropped is dropped by hash: every key below the limit that is left is still there. */
static void no_key_below_the_limit_is_dropped(void **state)
{
	(void)state;
	struct clf_state subject = { .record_bytes = 1 };
	size_t below = 0;

	for (uint64_t i = 0; i < 100000; i++) {
		uint64_t key = sampler_key(&sampler, i);
		if (sampler_wants(&sampler, key))
			sampler_note(&sampler, key, SAMPLER_READ, &subject, START_MS, HORIZON_MS);
	}
	assert_true(atomic_load(&sampler.limit) < UINT64_MAX);
	for (uint64_t i = 0; i < 100000; i++)
		below += sampler_wants(&sampler, sampler_key(&sampler, i));
	assert_true(below <= sampler_tracked(&sampler));
	sampler_sweep(&sampler, START_MS + WINDOW_MS + HORIZON_MS);
	assert_int_equal(sampler_tracked(&sampler), 0);
}

static void more_keys_are_sampled_again_when_few_come(void **state)
{
	(void)state;
	uint64_t low = 1ull << 50;

	atomic_store(&sampler.limit, low);
	sampler_sweep(&sampler, START_MS + WINDOW_MS);
	assert_true(atomic_load(&sampler.limit) == low);
	for (uint64_t i = 1; i < 40; i++)
		sampler_sweep(&sampler, START_MS + 2 * i * WINDOW_MS);
	assert_true(atomic_load(&sampler.limit) == UINT64_MAX);
}

#define FULL(test) cmocka_unit_test_setup_teardown(test, full, done)
#define PAPER(test) cmocka_unit_test_setup_teardown(test, paper, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_little_memory_is_refused),
		FULL(never_read_is_never_a_sample),
		FULL(no_label_before_the_horizon),
		FULL(an_ended_label_waits_for_the_horizon_too),
		FULL(no_label_before_the_window_ends),
		FULL(reads_after_the_horizon_do_not_count),
		FULL(each_access_is_kept_equally_often),
		FULL(a_key_gives_one_sample_per_window),
		FULL(full_counts_on_after_eviction),
		FULL(full_ends_at_an_update),
		FULL(full_takes_only_one_write_for_the_refill),
		FULL(full_ends_at_a_delete),
		FULL(expiry_ends_the_count),
		PAPER(never_read_is_never_a_sample),
		PAPER(paper_counts_from_the_sample),
		PAPER(a_key_gives_one_sample_per_window),
		PAPER(paper_ends_at_an_update),
		PAPER(paper_ends_at_a_delete),
		PAPER(paper_ends_at_an_eviction),
		PAPER(paper_ends_at_a_miss),
		PAPER(paper_goes_on_after_an_offer),
		PAPER(paper_ends_at_expiry),
		FULL(a_million_keys_stay_in_bounds),
		FULL(no_key_below_the_limit_is_dropped),
		FULL(more_keys_are_sampled_again_when_few_come),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
