/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/tools/tools_test.h"

#include <zlib.h>

void temporary_file(char path[TEST_PATH_BYTES], const void *bytes, size_t length)
{
	int fd;

	snprintf(path, TEST_PATH_BYTES, "/tmp/flashield-tools-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), (ssize_t)length);
	close(fd);
}

void temporary_gzip(char path[TEST_PATH_BYTES], const char *text, size_t cut)
{
	gzFile file;
	off_t length;

	temporary_file(path, "", 0);
	file = gzopen(path, "wb");
	assert_non_null(file);
	assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), (int)strlen(text));
	assert_int_equal(gzclose(file), Z_OK);
	if (cut) {
		FILE *written = fopen(path, "r+");

		assert_non_null(written);
		fseek(written, 0, SEEK_END);
		length = ftell(written) - (off_t)cut;
		assert_int_equal(ftruncate(fileno(written), length), 0);
		fclose(written);
	}
}
