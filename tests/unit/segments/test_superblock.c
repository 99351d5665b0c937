/* SPDX-License-Identifier: BSD-3-Clause */
/* The superblock over starts: broken, torn, foreign, newer; reserves that never repeat. */
#include <string.h>

#include "base/alloc.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (64u << 10)
#define BYTES (LAYOUT_SUPER_BYTES + 2 * SEGMENT)

struct life {
	uint8_t uuid[16];
	uint8_t secret[HASH_SECRET_BYTES];
	uint64_t hash_seed, first_cas, epoch, sequence;
};

/* One start and stop over the memory. */
static struct life live_once(uint8_t *memory, uint64_t cas_count)
{
	struct flash flash;
	struct seg_info info;
	struct life life = { .epoch = 0 };
	uint64_t end;

	assert_int_equal(flash_open_ram(&flash, 2, SEGMENT, 16, memory), FS_OK);
	seg_get_info(flash.seg, &info);
	memcpy(life.uuid, info.uuid, sizeof(life.uuid));
	memcpy(life.secret, flash.seg->super.secret, sizeof(life.secret));
	life.hash_seed = info.hash_seed;
	life.epoch = flash.seg->super.attach_epoch;
	life.sequence = flash.seg->next_sequence;
	assert_int_equal(seg_reserve_cas(flash.seg, cas_count, &life.first_cas, &end), FS_OK);
	assert_int_equal(end - life.first_cas, cas_count);
	flash_close(&flash);
	return life;
}

static bool same_flash(const struct life *a, const struct life *b)
{
	return memcmp(a->uuid, b->uuid, sizeof(a->uuid)) == 0;
}

static struct layout_super *copy_of(uint8_t *memory, unsigned copy)
{
	return (struct layout_super *)(memory + copy * LAYOUT_SUPER_COPY_OFFSET);
}

static void seal(struct layout_super *super)
{
	super->checksum = hash64(super, offsetof(struct layout_super, checksum), LAYOUT_CHECK_SEED);
}

static void every_flipped_bit_spoils_a_copy(void **state)
{
	uint8_t *memory = ram_memory(BYTES);
	struct ram_device *ram = ram_device_create(BYTES, memory);
	struct layout_super found;
	uint64_t generation;

	(void)state;
	live_once(memory, 1);
	memset(copy_of(memory, 0), 0, SEG_PAGE);
	assert_int_equal(super_load(&ram->dev, &found, &generation), FS_OK);
	for (unsigned byte = 0; byte < SEG_PAGE; byte++) {
		((uint8_t *)copy_of(memory, 1))[byte] ^= (uint8_t)(1u << byte % 8);
		assert_int_equal(super_load(&ram->dev, &found, &generation), FS_ECORRUPT);
		((uint8_t *)copy_of(memory, 1))[byte] ^= (uint8_t)(1u << byte % 8);
	}
	ram->fail_reads = true;
	assert_int_equal(super_load(&ram->dev, &found, &generation), FS_EIO);
	ram->dev.ops->close(&ram->dev);
	mem_free(memory);
}

static void both_copies_broken_start_anew(void **state)
{
	uint8_t *memory = ram_memory(BYTES);
	struct life before = live_once(memory, 1000), after;

	(void)state;
	copy_of(memory, 0)->generation ^= 1;
	copy_of(memory, 1)->generation ^= 1;
	after = live_once(memory, 1);
	assert_false(same_flash(&before, &after));
	assert_memory_not_equal(before.secret, after.secret, sizeof(before.secret));
	/* Even then a CAS id doesn't come again: the wall clock stands in for what was lost. A test is
	   quicker than the clock's second, so that only the order of magnitude can be seen here. */
	assert_true(after.first_cas >= before.first_cas);
	assert_true(after.first_cas < (uint64_t)1 << 62);
	mem_free(memory);
}

static void unknown_incompatible_features_start_anew(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		uint8_t *memory = ram_memory(BYTES);
		struct life before = live_once(memory, 1), after;

		for (unsigned copy = 0; copy < 2; copy++) {
			struct layout_super *super = copy_of(memory, copy);

			if (kind == 0)
				super->features.incompatible = 1ull << 63;
			else if (kind == 1)
				super->features.ro_compatible = 1;
			else if (kind == 2)
				super->version++;
			else
				super->features.compatible = 1ull << 40;
			seal(super);
		}
		after = live_once(memory, 1);
		/* An unknown compatible one is none of our business. */
		assert_int_equal(same_flash(&before, &after), kind == 3);
		assert_true(copy_of(memory, 0)->features.incompatible == 0);
		mem_free(memory);
	}
}

/* A newer daemon that was stopped between its two writes: our old copy's reserves don't count. */
static void a_newer_copy_beside_ours_starts_anew(void **state)
{
	uint8_t *memory = ram_memory(BYTES);
	struct life before = live_once(memory, 1), after;

	(void)state;
	copy_of(memory, 0)->version++;
	copy_of(memory, 0)->generation++;
	seal(copy_of(memory, 0));
	after = live_once(memory, 1);
	assert_false(same_flash(&before, &after));
	mem_free(memory);
}

static void either_copy_may_be_lost(void **state)
{
	uint8_t *memory = ram_memory(BYTES);
	struct life before = live_once(memory, 1000);

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct life after;

		copy_of(memory, i % 2)->secret[i] ^= 1;
		after = live_once(memory, 1000);
		assert_true(same_flash(&before, &after));
		assert_int_equal(after.first_cas, before.first_cas + 1000);
		assert_true(after.sequence > before.sequence);
		before = after;
	}
	mem_free(memory);
}

static void another_layout_is_another_flash(void **state)
{
	uint8_t *memory = ram_memory(BYTES + SEGMENT);
	struct life before = live_once(memory, 10), after = { .epoch = 0 };
	struct flash flash;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 3, SEGMENT, 16, memory), FS_OK);
	memcpy(after.uuid, flash.seg->super.uuid, sizeof(after.uuid));
	assert_false(same_flash(&before, &after));
	assert_int_equal(flash.seg->super.cas_end, before.first_cas + 10);
	assert_true(flash.seg->next_sequence > before.sequence);
	flash_close(&flash);
	mem_free(memory);
}

static void a_start_on_a_dead_device_fails(void **state)
{
	struct ram_device *ram = ram_device_create(BYTES, NULL);
	struct flash flash;

	(void)state;
	ram->fail_reads = true;
	assert_int_equal(flash_open_on(&flash, ram, SEGMENT, 16), FS_EIO);
	ram = ram_device_create(BYTES, NULL);
	ram->fail_writes = true;
	assert_int_equal(flash_open_on(&flash, ram, SEGMENT, 16), FS_EIO);
}

/* The power goes at each page of a start: the next one finds the old superblock or the new one. */
static void a_power_cut_never_loses_the_superblock(void **state)
{
	(void)state;
	for (uint64_t power = 0; power < 6; power++) {
		uint8_t *memory = ram_memory(BYTES);
		struct life first = live_once(memory, 100), last;
		struct ram_device *ram = ram_device_create(BYTES, memory);
		struct flash flash;
		uint64_t cas = 0, end = first.first_cas + 100;

		ram->power = power;
		if (flash_open_on(&flash, ram, SEGMENT, 16) == FS_OK) {
			while (seg_reserve_cas(flash.seg, 50, &cas, &end) == FS_OK)
				;
			flash_close(&flash);
		}
		last = live_once(memory, 1);
		assert_true(same_flash(&first, &last));
		assert_true(last.first_cas >= end);
		assert_true(last.sequence > first.sequence);
		mem_free(memory);
	}
}

static void nothing_repeats_over_starts(void **state)
{
	uint8_t *memory = ram_memory(BYTES);
	struct life before = live_once(memory, 1000);

	(void)state;
	for (int i = 0; i < 10; i++) {
		struct life after = live_once(memory, 1000);

		assert_true(same_flash(&before, &after));
		assert_memory_equal(before.secret, after.secret, sizeof(before.secret));
		assert_int_equal(after.hash_seed, before.hash_seed);
		assert_int_equal(after.first_cas, before.first_cas + 1000);
		assert_int_equal(after.epoch, before.epoch + 1);
		assert_true(after.sequence > before.sequence);
		before = after;
	}
	mem_free(memory);
}

static void cas_ranges_follow_each_other(void **state)
{
	struct flash flash;
	uint64_t first, end, last_end;

	(void)state;
	assert_int_equal(flash_open_ram(&flash, 2, SEGMENT, 16, NULL), FS_OK);
	assert_int_equal(seg_reserve_cas(flash.seg, 0, &first, &end), FS_ERANGE);
	assert_int_equal(seg_reserve_cas(flash.seg, UINT64_MAX, &first, &end), FS_ERANGE);
	assert_int_equal(seg_reserve_cas(flash.seg, 5, &first, &last_end), FS_OK);
	flash.ram->fail_writes = true;
	assert_int_equal(seg_reserve_cas(flash.seg, 5, &first, &end), FS_EIO);
	flash.ram->fail_writes = false;
	assert_int_equal(seg_reserve_cas(flash.seg, 5, &first, &end), FS_OK);
	assert_true(first >= last_end); /* what may have been written is not given out */
	assert_true(end < (uint64_t)1 << 63);
	flash_close(&flash);
}

/* More segments than a block of sequence numbers has, over two starts. */
static void sequences_outlast_their_reserve(void **state)
{
	uint8_t *memory = ram_memory(BYTES);
	uint64_t last = 0;

	(void)state;
	for (int start = 0; start < 2; start++) {
		struct flash flash;

		assert_int_equal(flash_open_ram(&flash, 2, SEGMENT, 16, memory), FS_OK);
		for (int i = 0; i < 1100; i++) {
			struct batch batch;
			enum seg_state what;
			uint32_t segment;

			assert_int_equal(seg_next(flash.seg, &segment, &what), FS_OK);
			if (what == SEG_LIVE) {
				seg_reclaim_begin(flash.seg, segment);
				assert_int_equal(seg_reclaim_end(flash.seg, segment, 0), FS_OK);
			}
			batch_make(&batch, 1, 1, 10, 20);
			assert_int_equal(batch_write(&batch, &flash, &segment), FS_OK);
			assert_true(batch.plan.sequence > last);
			last = batch.plan.sequence;
			assert_true(copy_of(memory, 0)->sequence_end > last || copy_of(memory, 1)->sequence_end > last);
			batch_fini(&batch);
		}
		flash_close(&flash);
	}
	mem_free(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_flipped_bit_spoils_a_copy),
		cmocka_unit_test(both_copies_broken_start_anew),
		cmocka_unit_test(unknown_incompatible_features_start_anew),
		cmocka_unit_test(a_newer_copy_beside_ours_starts_anew),
		cmocka_unit_test(either_copy_may_be_lost),
		cmocka_unit_test(another_layout_is_another_flash),
		cmocka_unit_test(a_start_on_a_dead_device_fails),
		cmocka_unit_test(a_power_cut_never_loses_the_superblock),
		cmocka_unit_test(nothing_repeats_over_starts),
		cmocka_unit_test(cas_ranges_follow_each_other),
		cmocka_unit_test(sequences_outlast_their_reserve),
	};

	return cmocka_run_group_tests_name("superblock", tests, NULL, NULL);
}
