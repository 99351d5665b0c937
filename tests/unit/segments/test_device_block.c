/* SPDX-License-Identifier: BSD-3-Clause */
/* The unit of direct reads, and that the file system does such reads. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/unit/segments/fixture.h"

#define PAGES 8u

static void what_tells_nothing_is_read_by_pages(void **state)
{
	int pipes[2], memory = memfd_create("flash", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(file_read_block(-1), SEG_PAGE);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(file_read_block(pipes[0]), SEG_PAGE);
	close(pipes[0]);
	close(pipes[1]);
	assert_true(memory >= 0);
	assert_int_equal(file_read_block(memory), SEG_PAGE); /* memory of the kernel has no blocks */
	close(memory);
}

/* Each block of the file by itself, into a buffer that is no better aligned. */
static void blocks_can_be_read_by_themselves(void **state)
{
	char path[] = "/var/tmp/flashield-block-XXXXXX";
	uint8_t *bytes = mem_aligned(SEG_PAGE, (PAGES + 1) * SEG_PAGE), *to;
	int fd = mkstemp(path), direct;
	uint32_t block;

	(void)state;
	assert_true(fd >= 0);
	for (uint32_t at = 0; at < PAGES * SEG_PAGE; at++)
		bytes[at] = (uint8_t)(at / DEV_READ_LEAST * 37 + at);
	assert_int_equal(pwrite(fd, bytes, PAGES * SEG_PAGE, 0), PAGES * SEG_PAGE);
	assert_int_equal(fsync(fd), 0);
	direct = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
	unlink(path);
	close(fd);
	if (direct < 0) {
		mem_free(bytes);
		skip(); /* the file system knows no O_DIRECT */
	}
	block = file_read_block(direct);
	assert_true(block >= DEV_READ_LEAST && block <= SEG_PAGE && (block & (block - 1)) == 0);
	print_message("reads of %u bytes\n", block);
	to = bytes + PAGES * SEG_PAGE + (block < SEG_PAGE ? block : 0);
	for (uint32_t at = 0; at < PAGES * SEG_PAGE; at += block) {
		memset(to, 0, block);
		assert_int_equal(pread(direct, to, block, at), block);
		assert_memory_equal(to, bytes + at, block);
	}
	close(direct);
	mem_free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_tells_nothing_is_read_by_pages),
		cmocka_unit_test(blocks_can_be_read_by_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
