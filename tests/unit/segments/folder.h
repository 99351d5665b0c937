/* SPDX-License-Identifier: BSD-3-Clause */
/* A folder of a test program's own, and the path of a flash file in it. make_directory and remove_directory are for its group of
   tests; the latter removes the file, too. To be included behind cmocka's header, by the program's only source. */
#ifndef FS_TESTS_SEGMENTS_FOLDER_H
#define FS_TESTS_SEGMENTS_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[] = "/tmp/flashield-segments-XXXXXX"; /* mkdtemp fills in the last six letters */
static char path[sizeof(directory) + 8];

static int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	snprintf(path, sizeof(path), "%s/flash", directory);
	return 0;
}

static int remove_directory(void **state)
{
	(void)state;
	unlink(path);
	return rmdir(directory);
}

#endif
