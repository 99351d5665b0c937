/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A region in a file that outlives the process. The file has the size of all areas and holes for what they don't use.
 * The first page says what the file is, and never changes while it is in use.
 *
 * A hole would be filled by the first access, and end the process by SIGBUS when there is no room. So the memory of an
 * area is allocated before it is mapped, and anonymous memory replaces the mapping before a hole is made.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/hash.h"
#include "base/region_internal.h"

#define HEAD_MAGIC "FLSHREGN"
#define HEAD_SEED UINT64_C(0x5245474e)
#define RIGHTS (S_IRUSR | S_IWUSR)

/* The first page of the file. */
struct head {
	char magic[8];
	uint32_t version; /* REGION_VERSION */
	uint32_t areas;
	uint64_t unit;
	uint64_t device, inode; /* of the file itself: a copy of it is another file */
	struct {
		uint64_t offset, most;
	} area[REGION_AREAS];
	uint64_t checksum; /* of all bytes before it */
};

static void head_make(const struct region *region, const struct stat *st, struct head *out)
{
	memset(out, 0, sizeof(*out));
	memcpy(out->magic, HEAD_MAGIC, sizeof(out->magic));
	out->version = REGION_VERSION;
	out->areas = REGION_AREAS;
	out->unit = region->unit;
	out->device = st->st_dev;
	out->inode = st->st_ino;
	for (int a = 0; a < REGION_AREAS; a++) {
		out->area[a].offset = region->area[a].offset;
		out->area[a].most = region->area[a].most;
	}
	out->checksum = hash64(out, offsetof(struct head, checksum), HEAD_SEED);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* hugetlbfs files can't be read by read(). */
static FS_MUST_CHECK bool head_read(const struct region *region, struct head *out)
{
	void *page = mmap(NULL, region->unit, PROT_READ, MAP_SHARED, region->fd, 0);

	if (page == MAP_FAILED)
		return false;
	memcpy(out, page, sizeof(*out));
	return munmap(page, region->unit) == 0;
}

static enum region_found judge_file(const struct region *region, const struct stat *st)
{
	struct head head, own;

	if (st->st_size == 0)
		return REGION_FOUND_NONE;
	if ((uint64_t)st->st_size < region->unit || st->st_blocks == 0 || !head_read(region, &head) ||
	    memcmp(head.magic, HEAD_MAGIC, sizeof(head.magic)) != 0)
		return REGION_FOUND_DAMAGED;
	if (head.version != REGION_VERSION || head.areas != REGION_AREAS)
		return REGION_FOUND_VERSION;
	if (head.checksum != hash64(&head, offsetof(struct head, checksum), HEAD_SEED))
		return REGION_FOUND_DAMAGED;
	head_make(region, st, &own);
	if (head.device != own.device || head.inode != own.inode)
		return REGION_FOUND_COPY;
	if (memcmp(head.area, own.area, sizeof(own.area)) != 0 || head.unit != own.unit)
		return REGION_FOUND_LAYOUT;
	return (uint64_t)st->st_size == region->end ? REGION_FOUND_SAME : REGION_FOUND_DAMAGED;
}

static bool is_private(const struct stat *st)
{
	return S_ISREG(st->st_mode) && !(st->st_mode & (S_IRWXG | S_IRWXO)) && st->st_nlink == 1;
}

static int refuse_file(const char *path, char reason[256])
{
	snprintf(reason, 256, "--region-dir: %.150s: is not a file of the daemon's user alone (mode 0600): remove it",
		 path);
	return FS_EINVAL;
}

/* A file of somebody else's in a folder where everybody may write is not taken. */
static FS_MUST_CHECK int check_file(int fd, const char *path, const struct region_owner *owner, struct stat *st,
				    char reason[256])
{
	uid_t user = owner ? owner->user : geteuid();

	if (fstat(fd, st) != 0 || (st->st_size == 0 && st->st_uid != user && st->st_uid == geteuid() && owner &&
				   (fchown(fd, owner->user, owner->group) != 0 || fstat(fd, st) != 0))) {
		snprintf(reason, 256, "--region-dir: %.150s: %s", path, strerror(errno));
		return FS_ESYS;
	}
	if (st->st_uid != user || !is_private(st))
		return refuse_file(path, reason);
	if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
		snprintf(reason, 256, "--region-dir: %.150s: another daemon uses it", path);
		return FS_EBUSY;
	}
	return FS_OK;
}

/* The unit of a file system that keeps files in memory; 0 with a reason for any other. */
static uint64_t unit_of(int fd, const char *path, char reason[256])
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0) {
		snprintf(reason, 256, "--region-dir: %.150s: %s", path, strerror(errno));
		return 0;
	}
	if (fs.f_type == TMPFS_MAGIC)
		return region_page_bytes();
	if (fs.f_type == HUGETLBFS_MAGIC)
		return (uint64_t)fs.f_bsize;
	snprintf(reason, 256,
		 "--region-dir: %.150s: is on a disk; accepted are folders on tmpfs, such as /dev/shm, or hugetlbfs",
		 path);
	return 0;
}

/* The folder is asked before a file is made in it. */
static FS_MUST_CHECK int check_folder(const char *folder, uint64_t *unit, char reason[256])
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0) {
		snprintf(reason, 256, "--region-dir: %.150s: %s", folder, strerror(errno));
		return FS_ESYS;
	}
	*unit = unit_of(fd, folder, reason);
	close(fd);
	return *unit ? FS_OK : FS_EINVAL;
}

/* In a folder like /dev/shm the kernel lets not even root open another user's file with O_CREAT (fs.protected_regular). */
static int open_or_make(const char *path)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, RIGHTS);
	return fd;
}

static void region_has_file(struct region *region, int fd, const char *path)
{
	region->fd = fd;
	region->path = mem_must_zalloc(strlen(path) + 1);
	memcpy(region->path, path, strlen(path));
}

int region_open(struct region **out, const uint64_t most[REGION_AREAS], const char *folder, const char *name,
		const struct region_owner *owner, enum region_found *found, char reason[256])
{
	struct region *region = NULL;
	char path[8300];
	struct stat st;
	uint64_t unit;
	int fd, result = check_folder(folder, &unit, reason);

	*out = NULL;
	if (result != FS_OK)
		return result;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open_or_make(path);
	if (fd < 0) {
		snprintf(reason, 256, "--region-dir: %.150s: %s", path, strerror(errno));
		return FS_ESYS;
	}
	result = check_file(fd, path, owner, &st, reason);
	if (result == FS_OK && (result = region_reserve(&region, most, unit)) != FS_OK)
		snprintf(reason, 256, "--region-dir: %s", fs_strerror(result));
	if (result != FS_OK) {
		close(fd);
		return result;
	}
	region_has_file(region, fd, path);
	*found = judge_file(region, &st);
	region->attached = *found == REGION_FOUND_SAME;
	*out = region;
	return FS_OK;
}

int region_look(struct region **out, const uint64_t most[REGION_AREAS], const char *folder, const char *name,
		enum region_found *found, char reason[256])
{
	char path[8300];
	struct stat st;
	uint64_t unit;
	int fd, result = check_folder(folder, &unit, reason);

	*out = NULL;
	*found = REGION_FOUND_NONE;
	if (result != FS_OK)
		return result;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return region_reserve(out, most, unit);
	if (fd < 0 || fstat(fd, &st) != 0) {
		snprintf(reason, 256, "--region-dir: %.150s: %s", path, strerror(errno));
		result = FS_ESYS;
	} else {
		result = is_private(&st) ? region_reserve(out, most, unit) : refuse_file(path, reason);
	}
	if (result == FS_OK) {
		region_has_file(*out, fd, path);
		(*out)->copies = true;
		*found = judge_file(*out, &st);
	} else if (fd >= 0) {
		close(fd);
	}
	return result;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static FS_MUST_CHECK int file_allocate(struct region *region, uint64_t offset, uint64_t bytes)
{
	int rc = -1;

	errno = ENOSPC;
	while (!fault_fires(FAULT_region_full) && (rc = fallocate(region->fd, 0, (off_t)offset, (off_t)bytes)) != 0 &&
	       errno == EINTR)
		;
	if (rc == 0)
		return FS_OK;
	region->wanted_bytes = bytes;
	return FS_ENOMEM;
}

/*
 * Does the file that an earlier process has left still have its memory for all areas that are committed by now, and for so
 * many bytes more? To allocate what is there would cost 0.2 ms for each MiB. Not asked on hugetlbfs. Until the first
 * decommit the file may have more than that, for an area that the earlier process was about to add or to drop: such a file
 * with a hole elsewhere, which nobody but an operator makes, would pass.
 */
static bool has_memory(const struct region *region, uint64_t bytes)
{
	uint64_t wanted = region->unit + bytes;
	struct stat st;

	if (!region->attached || region->unit != region_page_bytes() || fstat(region->fd, &st) != 0)
		return false;
	for (int a = 0; a < REGION_AREAS; a++)
		wanted += region->area[a].mapped;
	return (uint64_t)st.st_blocks * 512 >= wanted;
}

int region_file_commit(struct region *region, struct area *area, uint64_t wanted)
{
	uint64_t from = area->offset + area->mapped, bytes = wanted - area->mapped;

	if (!has_memory(region, bytes) && file_allocate(region, from, bytes) != FS_OK)
		return FS_ENOMEM;
	if (mmap(region->base + from, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, region->fd, (off_t)from) ==
	    MAP_FAILED)
		return FS_ENOMEM;
	mem_advise(region->base + from, bytes);
	area->mapped = wanted;
	return FS_OK;
}

int region_file_copy(struct region *region, struct area *area, uint64_t from, uint64_t wanted)
{
	unsigned char *to = region->base + area->offset;

	if (mem_commit(to + from, wanted - from) != FS_OK)
		return FS_ENOMEM;
	for (uint64_t at = from; at < wanted;) {
		ssize_t n = pread(region->fd, to + at, wanted - at, (off_t)(area->offset + at));

		if (n == 0 || (n < 0 && errno != EINTR))
			return FS_ENOMEM;
		at += n > 0 ? (uint64_t)n : 0;
	}
	return FS_OK;
}

void region_file_decommit(struct region *region, struct area *area)
{
	unsigned char *at = region->base + area->offset;

	if (area->most == 0)
		return;
	region->attached = false;
	if (area->usable && mmap(at, area->usable, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		memset(at, 0,
		       atomic_load(&area->top) ? 0 : area->mapped); /* a late reader must find zeros, and no hole */
	else
		(void)!fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)area->offset,
				 (off_t)area->most);
	if (area->usable)
		mem_advise(at, area->usable);
	area->mapped = 0;
}

int region_file_commit_part(struct region *region, struct area *area, uint64_t offset, uint64_t bytes)
{
	uint64_t from = area->offset + offset;

	if (!has_memory(region, bytes) && file_allocate(region, from, bytes) != FS_OK)
		return FS_ENOMEM;
	if (mmap(region->base + from, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, region->fd, (off_t)from) ==
	    MAP_FAILED)
		return FS_ENOMEM;
	mem_advise(region->base + from, bytes);
	return FS_OK;
}

void region_file_decommit_part(struct region *region, const struct area *area, uint64_t offset, uint64_t bytes)
{
	unsigned char *at = region->base + area->offset + offset;

	region->attached = false;
	/* Who commits it again finds zeros, by one way or the other. */
	if (fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(area->offset + offset),
		      (off_t)bytes) != 0)
		memset(at, 0, bytes);
	if (mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
		return; /* it stays mapped, and counts as free all the same */
	mem_advise(at, bytes);
}

int region_reset(struct region *region)
{
	struct stat st;
	struct head *head;
	int result;

	if (region->fd < 0)
		return FS_OK;
	region->attached = false;
	for (int a = 0; a < REGION_AREAS; a++)
		if (region->area[a].usable)
			region_decommit(region, (enum region_area)a);
	if (region->copies) {
		region_file_close(region);
		region->fd = -1;
		region->path = NULL;
		region->copies = false;
		return FS_OK;
	}
	if (ftruncate(region->fd, 0) != 0 || ftruncate(region->fd, (off_t)region->end) != 0 ||
	    fstat(region->fd, &st) != 0)
		return FS_ESYS;
	result = file_allocate(region, 0, region->unit);
	if (result != FS_OK)
		return result;
	head = mmap(NULL, region->unit, PROT_READ | PROT_WRITE, MAP_SHARED, region->fd, 0);
	if (head == MAP_FAILED)
		return FS_ENOMEM;
	head_make(region, &st, head);
	must(munmap(head, region->unit) == 0);
	return FS_OK;
}

bool region_is_short(const struct region *region, char reason[256])
{
	const double mib = 1 << 20;
	struct statfs fs;

	if (region->wanted_bytes == 0 || fstatfs(region->fd, &fs) != 0)
		return false;
	snprintf(
		reason, 256,
		"--region-dir: %.120s: %.2f MiB more are needed, and %.2f of %.2f MiB are free there: enlarge that file "
		"system, or lower -m or the flash",
		region->path, ceil(100 * (double)region->wanted_bytes / mib) / 100,
		(double)fs.f_bavail * (double)fs.f_bsize / mib, (double)fs.f_blocks * (double)fs.f_bsize / mib);
	return true;
}

bool region_is_in_use(const char *path)
{
	int fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return locked;
}

int region_rename(struct region *region, const char *name, char reason[256])
{
	size_t folder = (size_t)(strrchr(region->path, '/') - region->path), length = folder + 1 + strlen(name);
	char *path = mem_must_zalloc(length + 1);
	int result = FS_OK;

	memcpy(path, region->path, folder + 1);
	memcpy(path + folder + 1, name, strlen(name));
	if (strcmp(path, region->path) == 0) {
		mem_free(path);
		return FS_OK;
	}
	if (region_is_in_use(path)) {
		snprintf(reason, 256, "%.200s: another daemon uses it", path);
		result = FS_EBUSY;
	} else if (rename(region->path, path) != 0) {
		snprintf(reason, 256, "%.200s: %s", path, strerror(errno));
		result = FS_ESYS;
	}
	mem_free(result == FS_OK ? region->path : path);
	if (result == FS_OK)
		region->path = path;
	return result;
}

void region_discard(struct region *region)
{
	region->discard = true;
}

void region_file_close(struct region *region)
{
	if (region->fd < 0)
		return;
	/* What stays is invalid, and only takes memory. */
	if (region->discard && !region->copies)
		(void)!ftruncate(region->fd, 0);
	close(region->fd);
	mem_free(region->path);
}
