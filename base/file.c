/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/file.h"

#include <errno.h>
#include <unistd.h>

ssize_t file_read_all(int fd, char *text, size_t most)
{
	size_t length = 0;

	while (length < most) {
		ssize_t got = read(fd, text + length, most - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -1 : (ssize_t)length;
		length += (size_t)got;
	}
	errno = EFBIG;
	return -1;
}
