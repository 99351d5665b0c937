/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads small files whole, such as those of users and passwords. Any thread; blocks. */
#ifndef FS_BASE_FILE_H
#define FS_BASE_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Reads what is left of the file into text, without a 0 behind it. Returns the number of bytes, below `most`; -1 with errno:
   EFBIG for a file of `most` bytes or more, else that of read(), which EINTR doesn't end. The caller closes fd. */
ssize_t file_read_all(int fd, char *text, size_t most);

#endif
