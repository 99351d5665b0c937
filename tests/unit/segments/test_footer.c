/* SPDX-License-Identifier: BSD-3-Clause */
/* Header page and footer: what doesn't fit to its segment and life is none; the list of offsets, well made and not. */
#include <string.h>

#include "base/alloc.h"
#include "tests/unit/segments/fixture.h"

#define SEGMENT (64u << 10)
#define NUMBER 1u /* of the segment whose header it is */

/* A flash whose segment NUMBER has the entry that its header describes. */
struct pages {
	struct flash flash;
	struct seg_plan plan;
	struct layout_header header;
	struct layout_footer footer;
};

static uint8_t list_bytes[] = { 3, 1, 4, 1, 5 };
static const struct offsets_list some_list = { .bytes = list_bytes, .length = sizeof(list_bytes) };

static void make_pages(struct pages *pages)
{
	memset(pages, 0, sizeof(*pages));
	assert_int_equal(flash_open_ram(&pages->flash, 3, SEGMENT, 7, NULL), FS_OK);
	pages->plan = (struct seg_plan){
		.sequence = 4711,
		.data_offset = 3 * SEG_PAGE,
		.data_bytes = SEGMENT - 4 * SEG_PAGE,
		.footer_bytes = SEG_PAGE,
		.granule = 24,
		.longest_999 = 800,
		.count = 60,
		.extents = 2,
	};
	header_make(pages->flash.seg, NUMBER, &pages->plan, 12345, &pages->header);
	footer_make(pages->flash.seg, &pages->header, &some_list, "filter", 6, &pages->footer);
	pages->flash.seg->table->entry[NUMBER] = (struct seg_entry){
		.sequence = 4711,
		.data_offset = pages->plan.data_offset,
		.data_bytes = pages->plan.data_bytes,
		.footer_offset = SEGMENT - SEG_PAGE,
		.record_bytes = 12345,
		.objects = 60,
		.extents = 2,
	};
}

static void drop_pages(struct pages *pages)
{
	flash_close(&pages->flash);
}

static bool header_passes(const struct pages *pages)
{
	return header_valid(pages->flash.seg, &pages->header, NUMBER, 4711);
}

static bool footer_passes(const struct pages *pages)
{
	return footer_valid(pages->flash.seg, &pages->footer, 4711);
}

/* With the right checksum again, so that only the change itself can be what is refused. */
static void seal(struct pages *pages)
{
	struct layout_header *header = &pages->header;
	struct layout_footer *footer = &pages->footer;

	header->checksum = hash64(header, offsetof(struct layout_header, checksum), LAYOUT_CHECK_SEED);
	footer->checksum = hash64(footer, offsetof(struct layout_footer, checksum), LAYOUT_CHECK_SEED);
}

/* ---- the header page ------------------------------------------------------------------------- */

static void each_flipped_bit_spoils_the_header(void **state)
{
	struct pages pages;
	uint8_t *bytes = (uint8_t *)&pages.header;

	(void)state;
	make_pages(&pages);
	for (size_t bit = 0; bit < sizeof(pages.header) * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(header_passes(&pages));
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_true(header_passes(&pages));
	drop_pages(&pages);
}

static void a_header_of_another_segment_or_life_is_none(void **state)
{
	struct pages pages;

	(void)state;
	make_pages(&pages);
	pages.flash.seg->table->entry[0] = pages.flash.seg->table->entry[NUMBER];
	assert_false(header_valid(pages.flash.seg, &pages.header, 0, 4711));
	assert_false(header_valid(pages.flash.seg, &pages.header, NUMBER, 4710));
	assert_false(header_valid(pages.flash.seg, &pages.header, NUMBER, 0));
	pages.flash.seg->super.uuid[15] ^= 1;
	assert_false(header_passes(&pages));
	pages.flash.seg->super.uuid[15] ^= 1;
	assert_true(header_passes(&pages));
	drop_pages(&pages);
}

/* What the table says of the segment, a field at a time. */
static void a_header_that_contradicts_the_table_is_none(void **state)
{
	struct pages pages;
	struct seg_entry right;

	(void)state;
	make_pages(&pages);
	right = pages.flash.seg->table->entry[NUMBER];
	for (unsigned field = 0; field < 6; field++) {
		struct seg_entry *entry = &pages.flash.seg->table->entry[NUMBER];

		entry->data_offset += field == 0 ? SEG_PAGE : 0;
		entry->data_bytes -= field == 1;
		entry->footer_offset -= field == 2 ? SEG_PAGE : 0;
		entry->objects += field == 3;
		entry->extents -= field == 4;
		entry->record_bytes += field == 5;
		assert_false(header_passes(&pages));
		*entry = right;
		assert_true(header_passes(&pages));
	}
	drop_pages(&pages);
}

static void a_header_of_an_unknown_format_is_none(void **state)
{
	struct pages pages;

	(void)state;
	for (unsigned kind = 0; kind < 6; kind++) {
		make_pages(&pages);
		pages.header.version += kind == 0;
		pages.header.header_bytes -= kind == 1;
		pages.header.features.incompatible = kind == 2 ? UINT64_C(1) << 62 : kind == 3 ? UINT64_C(1) << 63 : 0;
		pages.header.features.ro_compatible = kind == 4 ? 1 : 0;
		pages.header.features.compatible = kind == 5 ? UINT64_C(1) << 40 : 0;
		assert_false(header_passes(&pages)); /* the checksum tells */
		seal(&pages);
		/* Bits that a reader may ignore are ignored. */
		assert_int_equal(header_passes(&pages), kind >= 4);
		drop_pages(&pages);
	}
}

static void a_header_says_what_the_plan_says(void **state)
{
	static const uint8_t zeros[sizeof(((struct layout_header *)0)->reserved)];
	struct pages pages;

	(void)state;
	make_pages(&pages);
	assert_true(header_passes(&pages));
	assert_memory_equal(pages.header.magic, LAYOUT_HEADER_MAGIC, 8);
	assert_int_equal(pages.header.segment, NUMBER);
	assert_int_equal(pages.header.sequence, 4711);
	assert_int_equal(pages.header.granule, 24);
	assert_int_equal(pages.header.longest_999, 800);
	assert_int_equal(pages.header.extents_offset, SEG_PAGE);
	assert_int_equal(pages.header.extents_bytes, 2 * SEG_PAGE);
	assert_int_equal(pages.header.data_offset, 3 * SEG_PAGE);
	assert_int_equal(pages.header.footer_offset + pages.header.footer_bytes, SEGMENT);
	assert_int_equal(pages.header.objects, 60);
	assert_int_equal(pages.header.extents, 2);
	assert_int_equal(pages.header.record_bytes, 12345);
	assert_int_equal(pages.header.functions, 7);
	assert_int_equal(pages.header.attach_epoch, pages.flash.seg->super.attach_epoch);
	assert_memory_equal(pages.header.uuid, pages.flash.seg->super.uuid, 16);
	assert_memory_equal(pages.header.reserved, zeros, sizeof(zeros));
	drop_pages(&pages);
}

/* ---- the footer ------------------------------------------------------------------------------ */

static void each_flipped_bit_spoils_the_footer(void **state)
{
	struct pages pages;
	uint8_t *bytes = (uint8_t *)&pages.footer;

	(void)state;
	make_pages(&pages);
	for (size_t bit = 0; bit < sizeof(pages.footer) * 8; bit++) {
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_false(footer_passes(&pages));
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_true(footer_passes(&pages));
	drop_pages(&pages);
}

static void a_footer_of_another_life_flash_or_format_is_none(void **state)
{
	struct pages pages;

	(void)state;
	for (unsigned kind = 0; kind < 5; kind++) {
		make_pages(&pages);
		pages.footer.version += kind == 0;
		pages.footer.header_bytes += kind == 1;
		pages.footer.features.incompatible = (uint64_t)(kind == 2) << 63;
		pages.footer.uuid[0] ^= kind == 3;
		pages.footer.features.compatible = kind == 4;
		seal(&pages);
		assert_int_equal(footer_passes(&pages), kind == 4);
		assert_false(footer_valid(pages.flash.seg, &pages.footer, 4712));
		drop_pages(&pages);
	}
}

static void a_footer_says_what_belongs_to_it(void **state)
{
	struct layout_footer without;
	struct pages pages;

	(void)state;
	make_pages(&pages);
	assert_int_equal(pages.footer.objects, 60);
	assert_int_equal(pages.footer.extents, 2);
	assert_true(pages.footer.header_checksum == pages.header.checksum);
	assert_int_equal(pages.footer.offsets_bytes, sizeof(list_bytes));
	assert_true(pages.footer.offsets_checksum == hash64(list_bytes, sizeof(list_bytes), LAYOUT_CHECK_SEED));
	assert_int_equal(pages.footer.filter_bytes, 6);
	assert_true(pages.footer.filter_checksum == hash64("filter", 6, LAYOUT_CHECK_SEED));
	/* Without a filter it has one of no bytes. */
	footer_make(pages.flash.seg, &pages.header, &some_list, NULL, 0, &without);
	assert_int_equal(without.filter_bytes, 0);
	assert_true(without.filter_checksum == hash64("", 0, LAYOUT_CHECK_SEED));
	assert_true(footer_valid(pages.flash.seg, &without, 4711));
	drop_pages(&pages);
}

/* ---- the list of offsets --------------------------------------------------------------------- */

/* Takes a step out of a copy of exactly that length, so that the sanitizer sees a read beyond it. */
static bool take(const uint8_t *bytes, uint64_t length, uint64_t *at, uint64_t *step)
{
	uint8_t *copy = mem_must_zalloc(length ? length : 1);
	const struct offsets_list list = { .bytes = copy, .length = length };
	bool taken;

	memcpy(copy, bytes, length);
	taken = offsets_take(&list, at, step);
	mem_free(copy);
	return taken;
}

static void a_list_that_is_cut_or_too_long_is_refused(void **state)
{
	static const uint8_t endless[16] = { 0x80, 0xff, 0x80, 0xff, 0x80, 0xff, 0x80, 0xff, 0x80, 0xff };
	uint64_t at, step;

	(void)state;
	at = 0;
	assert_false(take(endless, 0, &at, &step)); /* an empty list */
	assert_int_equal(at, 0);
	for (uint64_t length = 1; length <= 10;
	     length++) { /* each ends within a step, or a step has more than five bytes */
		at = 0;
		assert_false(take(endless, length, &at, &step));
		assert_true(at <= length && at <= 5);
	}
	at = 3;
	assert_false(take(list_bytes, 3, &at, &step)); /* at the end */
	at = 4;
	assert_false(take(list_bytes, 3, &at, &step)); /* behind it */
}

static void steps_of_any_size_come_back(void **state)
{
	static const uint64_t steps[] = {
		0,        1,        0x7f,      0x80,       0x3fff,     0x4000,
		0x1fffff, 0x200000, 0xfffffff, 0x10000000, UINT32_MAX, (UINT64_C(1) << 35) - 1
	};
	static const unsigned bytes[] = { 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5 };
	struct offsets_list list = { .bytes = mem_must_zalloc(64), .capacity = 64 };
	uint64_t at = 0, step;

	(void)state;
	for (unsigned i = 0; i < 12; i++) {
		uint64_t before = list.length;

		offsets_put(&list, steps[i]);
		assert_int_equal(list.length - before, bytes[i]);
	}
	for (unsigned i = 0; i < 12; i++) {
		assert_true(offsets_take(&list, &at, &step));
		assert_true(step == steps[i]);
	}
	assert_int_equal(at, list.length);
	assert_false(offsets_take(&list, &at, &step));
	mem_free(list.bytes);
}

static void a_list_may_be_full_to_its_last_byte(void **state)
{
	struct offsets_list list = { .bytes = mem_must_zalloc(3), .capacity = 3 };

	(void)state;
	offsets_put(&list, 0x80);
	offsets_put(&list, 1);
	assert_int_equal(list.length, list.capacity);
	mem_free(list.bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_flipped_bit_spoils_the_header),
		cmocka_unit_test(a_header_of_another_segment_or_life_is_none),
		cmocka_unit_test(a_header_that_contradicts_the_table_is_none),
		cmocka_unit_test(a_header_of_an_unknown_format_is_none),
		cmocka_unit_test(a_header_says_what_the_plan_says),
		cmocka_unit_test(each_flipped_bit_spoils_the_footer),
		cmocka_unit_test(a_footer_of_another_life_flash_or_format_is_none),
		cmocka_unit_test(a_footer_says_what_belongs_to_it),
		cmocka_unit_test(a_list_that_is_cut_or_too_long_is_refused),
		cmocka_unit_test(steps_of_any_size_come_back),
		cmocka_unit_test(a_list_may_be_full_to_its_last_byte),
	};

	return cmocka_run_group_tests_name("footer", tests, NULL, NULL);
}
