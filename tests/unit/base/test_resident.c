/* SPDX-License-Identifier: BSD-3-Clause */
/* What of a piece of memory was never touched, and what the kernel tells of the process. */
#include "base/resident.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "tests/unit/base/base_test.h"

#define MIB (1ull << 20)

static uint64_t page_bytes;

/* Pages of its own size alone, so that a page that is written to is resident and its neighbour is not. */
static unsigned char *map(uint64_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(memory != MAP_FAILED);
	(void)madvise(memory, bytes, MADV_NOHUGEPAGE);
	return memory;
}

static void less_than_a_page_has_no_untouched_page(void **state)
{
	unsigned char *memory = map(4 * page_bytes);

	(void)state;
	assert_int_equal(resident_untouched(memory, 0), 0);
	assert_int_equal(resident_untouched(memory, page_bytes - 1), 0);
	assert_int_equal(resident_untouched(memory + 1, page_bytes), 0);
	assert_int_equal(resident_untouched(memory + 1, 2 * page_bytes), page_bytes);
	munmap(memory, 4 * page_bytes);
}

static void pages_are_untouched_until_they_are_written_to(void **state)
{
	unsigned char *memory = map(64 * page_bytes);

	(void)state;
	assert_int_equal(resident_untouched(memory, 64 * page_bytes), 64 * page_bytes);
	memory[0] = 1;
	memset(memory + 10 * page_bytes, 1, 5 * page_bytes);
	assert_int_equal(resident_untouched(memory, 64 * page_bytes), 58 * page_bytes);
	munmap(memory, 64 * page_bytes);
}

static void of_much_memory_some_pages_stand_for_all(void **state)
{
	uint64_t bytes = 3072 * MIB;
	unsigned char *memory = map(bytes);

	(void)state;
	assert_int_equal(resident_untouched(memory, bytes), bytes);
	munmap(memory, bytes);
}

static void what_is_written_to_becomes_resident(void **state)
{
	unsigned char *memory = map(64 * MIB);
	uint64_t before = resident_bytes();

	(void)state;
	assert_true(before > 0);
	memset(memory, 1, 64 * MIB);
	assert_true(resident_bytes() >= before + 48 * MIB);
	munmap(memory, 64 * MIB);
}

static void files_and_stacks_are_parts_of_it(void **state)
{
	struct resident resident;

	(void)state;
	resident_read(&resident);
	assert_true(resident.all > 0 && resident.files > 0 && resident.stacks > 0);
	if (resident_is_exact())
		assert_true(resident.stacks < resident.all);
}

static void under_a_sanitizer_it_is_not_exact(void **state)
{
	(void)state;
	assert_int_equal(resident_is_exact(), !UNDER_SANITIZER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(less_than_a_page_has_no_untouched_page),
		cmocka_unit_test(pages_are_untouched_until_they_are_written_to),
		cmocka_unit_test(of_much_memory_some_pages_stand_for_all),
		cmocka_unit_test(what_is_written_to_becomes_resident),
		cmocka_unit_test(files_and_stacks_are_parts_of_it),
		cmocka_unit_test(under_a_sanitizer_it_is_not_exact),
	};

	page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
