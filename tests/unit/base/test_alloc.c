/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation and what it costs. */
#include <malloc.h>
#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "base/resident.h"
#include "tests/unit/base/base_test.h"

static void a_map_of_nothing_is_null(void **state)
{
	(void)state;
	assert_null(mem_map(0));
	mem_unmap(NULL, 0);
	mem_free(NULL);
}

static void an_allocation_costs_at_least_its_size(void **state)
{
	size_t before = 0;

	(void)state;
	for (size_t bytes = 1; bytes < 100000; bytes += 7) {
		size_t cost = mem_cost(bytes);

		assert_true(cost >= bytes && cost >= before);
		assert_true(cost <= bytes + bytes / 4 + 4096);
		before = cost;
	}
}

static void a_cost_is_what_the_allocator_gives(void **state)
{
	(void)state;
	if (!resident_is_exact())
		skip(); /* another allocator */
	for (size_t bytes = 1; bytes < 20000; bytes++) {
		void *memory = mem_alloc(bytes);

		assert_int_equal(mem_cost(bytes), malloc_usable_size(memory));
		mem_free_sized(memory, bytes);
	}
}

/* Under libc all small memory is of one class, whatever it costs. */
static void sizes_of_one_class_cost_the_same_and_others_do_not(void **state)
{
	unsigned before = mem_class(1);

	(void)state;
	assert_int_equal(before, mem_class(8));
	for (size_t bytes = 2; bytes < 500000; bytes++) {
		unsigned class = mem_class(bytes);

		assert_true(class >= before && class <= MEM_CLASSES);
		if (resident_is_exact() && class < MEM_CLASSES)
			assert_int_equal(class == before, mem_cost(bytes) == mem_cost(bytes - 1));
		before = class;
	}
	assert_int_equal(before, MEM_CLASSES);
	assert_int_equal(mem_class(SIZE_MAX), MEM_CLASSES);
}

static void coarse_pages_are_told(void **state)
{
	(void)state;
#ifdef __x86_64__
	assert_int_equal(mem_coarse_bytes(), 0); /* pages of 4 KiB */
#endif
	assert_in_range(mem_coarse_bytes(), 0, 16 << 20);
}

static void memory_is_zeroed_and_aligned_where_it_says(void **state)
{
	unsigned char *zeroed = mem_zalloc(1000), *fixed = mem_must_zalloc(0), *map = mem_map(100000);
	void *aligned = mem_aligned(4096, 10000);

	(void)state;
	for (size_t bytes = 64; bytes <= 64 << 10; bytes *= 32) { /* some have memory that was written to */
		memset(aligned, 1, 10000);
		mem_free(aligned);
		aligned = mem_zaligned(4096, bytes);
		assert_int_equal((uintptr_t)aligned % 4096, 0);
		for (size_t i = 0; i < bytes; i++)
			assert_int_equal(((unsigned char *)aligned)[i], 0);
		mem_free(aligned);
		aligned = mem_aligned(4096, 10000);
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(zeroed[i], 0);
	assert_int_equal(map[99999], 0);
	assert_non_null(fixed);
	assert_int_equal((uintptr_t)aligned % 4096, 0);
	zeroed = mem_realloc(zeroed, 100000);
	assert_int_equal(zeroed[999], 0);
	mem_free(zeroed);
	mem_free(fixed);
	mem_free(aligned);
	mem_unmap(map, 100000);
}

static void resident_memory_follows_use(void **state)
{
	const size_t bytes = (size_t)64 << 20;
	size_t before = resident_bytes();
	unsigned char *memory = mem_alloc(bytes);

	(void)state;
	assert_true(before > 0);
	memset(memory, 1, bytes);
	assert_true(resident_bytes() >= before + bytes / 2);
	mem_free(memory);
	mem_purge();
	assert_true(resident_bytes() < before + bytes * 2);
}

static void figures_are_of_now(void **state)
{
	const size_t bytes = (size_t)64 << 20;
	struct mem_figures before, with, after;
	void *memory;

	(void)state;
#ifdef FS_LIBC_MALLOC
	skip(); /* a sanitizer's allocator has none */
#endif
	mem_figures(&before);
	memory = mem_alloc(bytes);
	mem_figures(&with);
	mem_free(memory);
	mem_figures(&after);
	assert_true(with.allocated >= before.allocated + bytes);
	assert_true(after.allocated < before.allocated + bytes / 2);
}

#define THINNED 200000u
#define THINNED_BYTES 300u

/* Half of what fills many slabs goes, and the rest comes together in half as many. */
static void moved_memory_keeps_its_bytes_and_lies_denser(void **state)
{
	uint32_t **all = mem_must_zalloc(THINNED * sizeof(*all));
	size_t thin;

	(void)state;
	for (uint32_t n = 0; n < THINNED; n++) {
		all[n] = mem_alloc(THINNED_BYTES);
		assert_non_null(all[n]);
		memset(all[n], 0, THINNED_BYTES);
		all[n][0] = all[n][THINNED_BYTES / 4 - 1] = n;
	}
	for (uint32_t n = 0; n < THINNED; n += 2)
		mem_free_sized(all[n], THINNED_BYTES);
	mem_purge();
	thin = resident_bytes();
	for (uint32_t n = 1; n < THINNED; n += 2) {
		all[n] = mem_move(all[n], THINNED_BYTES);
		assert_int_equal(all[n][0], n);
		assert_int_equal(all[n][THINNED_BYTES / 4 - 1], n);
	}
	mem_purge();
	if (resident_is_exact())
		assert_true(resident_bytes() < thin - THINNED / 3 * THINNED_BYTES);
	for (uint32_t n = 1; n < THINNED; n += 2)
		mem_free(all[n]);
	mem_free(all);
}

static void *take_what_is_free(void *context)
{
	uint32_t **all = context;

	for (uint32_t n = 0; n < THINNED; n++)
		if (n % 8)
			all[n] = mem_alloc(THINNED_BYTES);
	return NULL;
}

/* A server's workers come and go over the same memory. */
static void what_one_thread_leaves_free_is_there_for_another(void **state)
{
	uint32_t **all = mem_must_zalloc(THINNED * sizeof(*all));
	bool sparse[MEM_CLASSES];
	pthread_t other;
	uint64_t holes;

	(void)state;
	for (uint32_t n = 0; n < THINNED; n++)
		all[n] = mem_alloc(THINNED_BYTES);
	for (uint32_t n = 0; n < THINNED; n++)
		if (n % 8)
			mem_free_sized(all[n], THINNED_BYTES);
	holes = mem_holes(sparse);
	assert_int_equal(pthread_create(&other, NULL, take_what_is_free, all), 0);
	assert_int_equal(pthread_join(other, NULL), 0);
	if (resident_is_exact()) {
		assert_true(holes > THINNED / 2 * THINNED_BYTES);
		assert_true(mem_holes(sparse) < holes / 4);
	}
	for (uint32_t n = 0; n < THINNED; n++)
		mem_free(all[n]);
	mem_free(all);
}

/* "dd" among the flags of the mapping that holds the address. */
static bool left_out_of_cores(const void *address)
{
	FILE *maps = fopen("/proc/self/smaps", "re");
	char line[512];
	unsigned long from, to;
	bool here = false, found = false;

	assert_non_null(maps);
	while (!found && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			here = (uintptr_t)address >= from && (uintptr_t)address < to;
		found = here && strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dd");
	}
	fclose(maps);
	return found;
}

static void stacks_and_static_data_are_in_cores(void **state)
{
	static int data = 1;
	int local = data;

	(void)state;
	assert_false(left_out_of_cores(&data));
	assert_false(left_out_of_cores(&local));
}

static void what_is_allocated_is_in_no_core(void **state)
{
	static const size_t sizes[] = { 1, 100, 5000, 100 << 10, 20 << 20 };
	void *mapped = mem_map(1 << 20);

	(void)state;
	assert_true(left_out_of_cores(mapped));
	mem_unmap(mapped, 1 << 20);
#ifdef FS_LIBC_MALLOC
	skip();
#endif
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *memory = mem_alloc(sizes[i]);

		assert_non_null(memory);
		memory[0] = memory[sizes[i] - 1] = 1;
		assert_true(left_out_of_cores(memory));
		assert_true(left_out_of_cores(memory + sizes[i] - 1));
		mem_free(memory);
	}
}

/* What may fail does, each kind of it; what may not fail doesn't ask. */
static void refused_memory_is_null(void **state)
{
	char *memory = mem_alloc(100);

	(void)state;
#ifndef FS_FAULTS
	mem_free(memory);
	skip();
#endif
	assert_non_null(memory);
	memory[99] = 'm';
	fault_arm(FAULT_memory_alloc, FAULT_ALWAYS, 0);
	fault_arm(FAULT_memory_map, FAULT_ALWAYS, 0);
	assert_null(mem_alloc(1));
	assert_null(mem_zalloc(1));
	assert_null(mem_aligned(64, 64));
	assert_null(mem_map(4096));
	assert_null(mem_reserve(4096));
	assert_null(mem_realloc(memory, 200)); /* which stays as it is */
	assert_int_equal(memory[99], 'm');
	mem_free(memory);
	memory = mem_must_zalloc(100);
	assert_int_equal(memory[99], 0);
	mem_free(memory);
	assert_int_equal(fault_fired(FAULT_memory_alloc), 4);
	fault_disarm_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_and_static_data_are_in_cores),
		cmocka_unit_test(what_is_allocated_is_in_no_core),
		cmocka_unit_test(refused_memory_is_null),
		cmocka_unit_test(a_map_of_nothing_is_null),
		cmocka_unit_test(an_allocation_costs_at_least_its_size),
		cmocka_unit_test(a_cost_is_what_the_allocator_gives),
		cmocka_unit_test(sizes_of_one_class_cost_the_same_and_others_do_not),
		cmocka_unit_test(coarse_pages_are_told),
		cmocka_unit_test(memory_is_zeroed_and_aligned_where_it_says),
		cmocka_unit_test(resident_memory_follows_use),
		cmocka_unit_test(figures_are_of_now),
		cmocka_unit_test(moved_memory_keeps_its_bytes_and_lies_denser),
		cmocka_unit_test(what_one_thread_leaves_free_is_there_for_another),
	};

	return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
