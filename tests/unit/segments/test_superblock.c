/* SPDX-License-Identifier: BSD-3-Clause */
/* The superblock over starts: broken, torn, foreign, newer. */
#include <string.h>

#include "base/alloc.h"
#include "tests/unit/segments/lives.h"

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
	uint8_t *memory = ram_memory(LIFE_BYTES);
	struct ram_device *ram = ram_device_create(LIFE_BYTES, memory);
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
	uint8_t *memory = ram_memory(LIFE_BYTES);
	struct life before = live_once(memory, 1000), after;

	(void)state;
	copy_of(memory, 0)->generation ^= 1;
	copy_of(memory, 1)->generation ^= 1;
	after = live_once(memory, 1);
	assert_false(same_flash(&before, &after));
	assert_memory_not_equal(before.secret, after.secret, sizeof(before.secret));
	/* Even then a CAS id doesn't come again: the wall clock stands in for what was lost. */
	assert_int_equal(before.first_cas, 1);
	assert_true(after.first_cas > (uint64_t)1 << 50 && after.first_cas <= seg_clock_cas());
	assert_true(after.first_cas < (uint64_t)1 << 53);
	mem_free(memory);
}

/* As earlier versions gave them out. */
static void ids_that_are_too_large_start_anew(void **state)
{
	uint8_t *memory = ram_memory(LIFE_BYTES);
	struct life before = live_once(memory, 1000), after;

	(void)state;
	for (unsigned n = 0; n < 2; n++) {
		copy_of(memory, n)->cas_end = ((uint64_t)1 << 53) + 1;
		seal(copy_of(memory, n));
	}
	after = live_once(memory, 1);
	assert_false(same_flash(&before, &after));
	assert_true(after.first_cas < (uint64_t)1 << 53);
	assert_true(after.sequence > 0);
	mem_free(memory);
}

/* Their checksum is right, but what rises from them would run over, or begin again. */
static void numbers_that_no_daemon_reaches_start_anew(void **state)
{
	(void)state;
	for (int number = 0; number < 6; number++) {
		uint8_t *memory = ram_memory(LIFE_BYTES);
		struct life before = live_once(memory, 1), after;

		for (unsigned copy = 0; copy < 2; copy++) {
			struct layout_super *super = copy_of(memory, copy);

			if (number == 0)
				super->sequence_end = UINT64_MAX;
			else if (number == 1)
				super->sequence_end = 0;
			else if (number == 2)
				super->attach_epoch = UINT64_MAX;
			else if (number == 3)
				super->generation = UINT64_MAX;
			else if (number == 4)
				super->cas_end = 0;
			else
				super->sequence_end = (1ull << 62) - 1; /* far, but it will do */
			seal(super);
		}
		after = live_once(memory, 1);
		assert_int_equal(same_flash(&before, &after), number == 5);
		mem_free(memory);
	}
}

static void unknown_incompatible_features_start_anew(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		uint8_t *memory = ram_memory(LIFE_BYTES);
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
	uint8_t *memory = ram_memory(LIFE_BYTES);
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
	uint8_t *memory = ram_memory(LIFE_BYTES);
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

/* The power goes at each page of a start: the next one finds the old superblock or the new one. */
static void a_power_cut_never_loses_the_superblock(void **state)
{
	(void)state;
	for (uint64_t power = 0; power < 6; power++) {
		uint8_t *memory = ram_memory(LIFE_BYTES);
		struct life first = live_once(memory, 100), last;
		struct ram_device *ram = ram_device_create(LIFE_BYTES, memory);
		struct flash flash;
		uint64_t cas = 0, end = first.first_cas + 100;

		ram->power = power;
		if (flash_open_on(&flash, ram, LIFE_SEGMENT, 16) == FS_OK) {
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_flipped_bit_spoils_a_copy),
		cmocka_unit_test(both_copies_broken_start_anew),
		cmocka_unit_test(ids_that_are_too_large_start_anew),
		cmocka_unit_test(numbers_that_no_daemon_reaches_start_anew),
		cmocka_unit_test(unknown_incompatible_features_start_anew),
		cmocka_unit_test(a_newer_copy_beside_ours_starts_anew),
		cmocka_unit_test(either_copy_may_be_lost),
		cmocka_unit_test(a_power_cut_never_loses_the_superblock),
	};

	return cmocka_run_group_tests_name("superblock", tests, NULL, NULL);
}
