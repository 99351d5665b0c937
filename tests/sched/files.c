/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sched/files.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/sched/finding.h"

static void make(const char *folder)
{
	if (mkdir(folder, 0700) != 0)
		finding("%s can't be made", folder);
}

static void empty(const char *folder)
{
	DIR *dir = opendir(folder);
	char path[512];

	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 && unlink(path) != 0) {
			empty(path);
			rmdir(path);
		}
	}
	if (dir)
		closedir(dir);
}

void files_make(struct files *files, const char *folder)
{
	make(folder);
	snprintf(files->state, sizeof(files->state), "%s/state", folder);
	snprintf(files->region, sizeof(files->region), "%s/region", folder);
	snprintf(files->durable, sizeof(files->durable), "%s/durable", folder);
	make(files->state);
	make(files->region);
	make(files->durable);
}

void files_remove(const char *folder)
{
	empty(folder);
	rmdir(folder);
}

void files_power_cut(struct files *files)
{
	empty(files->region);
}
