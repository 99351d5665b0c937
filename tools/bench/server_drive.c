/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tools/bench/server_internal.h"

int drive_create(struct server *server)
{
	const struct slowdrive fresh = { .magic = SLOWDRIVE_MAGIC };
	int fd = open(server->drive_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	void *mapped = MAP_FAILED;

	if (fd >= 0 && write(fd, &fresh, sizeof(fresh)) == (ssize_t)sizeof(fresh))
		mapped = mmap(NULL, sizeof(fresh), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		fprintf(stderr, "flashield-bench: %s: %s\n", server->drive_path, strerror(errno));
	else
		server->drive = mapped;
	if (fd >= 0)
		close(fd);
	return server->drive ? FS_OK : FS_ESYS;
}

int drive_check(const struct server *server)
{
	if (atomic_load(&server->drive->attached) == (uint64_t)server->pid)
		return FS_OK;
	fprintf(stderr, "flashield-bench: the emulated drive is not in effect in %s\n",
		server_names[server->spec.kind]);
	return FS_ESYS;
}

static void side_release(struct slowdrive_side *side)
{
	atomic_store(&side->per_second, 0);
	atomic_store(&side->latency_us, 0);
	atomic_store(&side->parallel, 0);
	atomic_store(&side->hang, 0);
	atomic_store(&side->fail_per_mille, 0);
}

void drive_release(struct server *server)
{
	if (!server->drive)
		return;
	side_release(&server->drive->reads);
	side_release(&server->drive->writes);
}

void drive_destroy(struct server *server)
{
	if (server->drive)
		munmap(server->drive, sizeof(*server->drive));
	if (server->drive_path[0])
		unlink(server->drive_path);
	server->drive = NULL;
}
