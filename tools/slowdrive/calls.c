/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that the shim replaces. Each call checks whether its descriptor belongs to the file, and if so lets the
 * drive hold the request; then it makes the system call like the C library.
 */
#undef _FORTIFY_SOURCE /* its inline pread would be defined twice */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tools/slowdrive/slowdrive_internal.h"

#define PUBLIC __attribute__((visibility("default")))
#define ALIAS(name) __attribute__((visibility("default"), alias(#name)))
#define KNOWN_FDS 65536

_Static_assert(sizeof(long) == 8, "an offset is one register");

static char file_path[PATH_MAX]; /* "": no request is affected */

/* The owner of a descriptor, remembered until it is closed. */
enum { UNKNOWN, OURS, ANOTHERS };
static _Atomic unsigned char known[KNOWN_FDS];

/* ---- the start --------------------------------------------------------------------------------- */

static _Noreturn void die(const char *what, const char *path)
{
	fprintf(stderr, "slowdrive: %s: %s\n", path, what);
	_exit(127);
}

static struct slowdrive *control_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct slowdrive *control;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		die(strerror(errno), path);
	if (st.st_size != sizeof(*control))
		die("is no control file of this version", path);
	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (control == MAP_FAILED)
		die(strerror(errno), path);
	if (control->magic != SLOWDRIVE_MAGIC)
		die("is no control file of this version", path);
	close(fd);
	return control;
}

/* Stores an absolute path: the file may not exist yet, and the program may change its folder. */
static void file_name(const char *path)
{
	char folder[PATH_MAX] = "";
	int length;

	if (path[0] != '/' && !getcwd(folder, sizeof(folder)))
		die(strerror(errno), path);
	length = snprintf(file_path, sizeof(file_path), "%s%s%s", folder, folder[0] ? "/" : "", path);
	if (length < 0 || (size_t)length >= sizeof(file_path))
		die(strerror(ENAMETOOLONG), path);
}

/* Runs before the program's first line, so that the program may drop its rights afterwards. */
static void __attribute__((constructor)) start(void)
{
	const char *control = getenv("SLOWDRIVE_CONTROL"), *file = getenv("SLOWDRIVE_FILE");

	if (!control || !file)
		return;
	file_name(file);
	drive_open(control_map(control));
}

/* ---- which file -------------------------------------------------------------------------------- */

static bool is_the_file(int fd)
{
	struct stat file, asked;

	return stat(file_path, &file) == 0 && fstat(fd, &asked) == 0 && file.st_dev == asked.st_dev &&
	       file.st_ino == asked.st_ino;
}

static bool is_ours(int fd)
{
	int error = errno;
	bool ours;

	if (!file_path[0] || fd < 0)
		return false;
	if (fd < KNOWN_FDS && known[fd] != UNKNOWN)
		return known[fd] == OURS;
	ours = is_the_file(fd);
	errno = error;
	if (fd < KNOWN_FDS)
		known[fd] = ours ? OURS : ANOTHERS;
	return ours;
}

PUBLIC int close(int fd)
{
	if (fd >= 0 && fd < KNOWN_FDS)
		known[fd] = UNKNOWN;
	return (int)syscall(SYS_close, fd);
}

/* ---- calls that block -------------------------------------------------------------------------- */

/* False, with errno set: the drive fails the request. */
static bool pass(int fd, enum side side, uint64_t bytes)
{
	if (!is_ours(fd))
		return true;
	if (drive_is_plain(side)) {
		drive_count(side, bytes);
		return true;
	}
	if (drive_wait(side, bytes) == 0)
		return true;
	errno = EIO;
	return false;
}

static uint64_t bytes_of(const struct iovec *parts, int count)
{
	uint64_t bytes = 0;

	for (int i = 0; i < count; i++)
		bytes += parts[i].iov_len;
	return bytes;
}

PUBLIC ssize_t pread(int fd, void *buffer, size_t bytes, off_t offset)
{
	return pass(fd, SIDE_READS, bytes) ? syscall(SYS_pread64, fd, buffer, bytes, offset) : -1;
}

PUBLIC ssize_t pwrite(int fd, const void *buffer, size_t bytes, off_t offset)
{
	return pass(fd, SIDE_WRITES, bytes) ? syscall(SYS_pwrite64, fd, buffer, bytes, offset) : -1;
}

PUBLIC ssize_t preadv2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
	if (!pass(fd, SIDE_READS, bytes_of(parts, count)))
		return -1;
	return syscall(SYS_preadv2, fd, parts, count, offset, 0l, flags);
}

PUBLIC ssize_t pwritev2(int fd, const struct iovec *parts, int count, off_t offset, int flags)
{
	if (!pass(fd, SIDE_WRITES, bytes_of(parts, count)))
		return -1;
	return syscall(SYS_pwritev2, fd, parts, count, offset, 0l, flags);
}

PUBLIC ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset)
{
	return preadv2(fd, parts, count, offset, 0);
}

PUBLIC ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
	return pwritev2(fd, parts, count, offset, 0);
}

PUBLIC int fsync(int fd)
{
	return pass(fd, SIDE_WRITES, 0) ? (int)syscall(SYS_fsync, fd) : -1;
}

PUBLIC int fdatasync(int fd)
{
	return pass(fd, SIDE_WRITES, 0) ? (int)syscall(SYS_fdatasync, fd) : -1;
}

ALIAS(pread) ssize_t pread64(int fd, void *buffer, size_t bytes, off64_t offset);
ALIAS(pwrite) ssize_t pwrite64(int fd, const void *buffer, size_t bytes, off64_t offset);
ALIAS(preadv) ssize_t preadv64(int fd, const struct iovec *parts, int count, off64_t offset);
ALIAS(pwritev) ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset);
ALIAS(preadv2) ssize_t preadv64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags);
ALIAS(pwritev2) ssize_t pwritev64v2(int fd, const struct iovec *parts, int count, off64_t offset, int flags);

/* pread becomes this where the compiler knows the buffer's size; the check is the C library's own. */
PUBLIC ssize_t __pread_chk(int fd, void *buffer, size_t bytes, off_t offset, size_t buffer_bytes);
PUBLIC ssize_t __pread_chk(int fd, void *buffer, size_t bytes, off_t offset, size_t buffer_bytes)
{
	if (bytes > buffer_bytes)
		abort();
	return pread(fd, buffer, bytes, offset);
}
ALIAS(__pread_chk) ssize_t __pread64_chk(int fd, void *buffer, size_t bytes, off64_t offset, size_t buffer_bytes);

/* ---- asynchronous requests --------------------------------------------------------------------- */

/* The side of a request that the shim affects; false: it is another's, or of another kind. */
static bool side_of(const struct iocb *iocb, enum side *side, uint64_t *bytes)
{
	*bytes = iocb->aio_nbytes;
	switch (iocb->aio_lio_opcode) {
	case IOCB_CMD_PREADV:
	case IOCB_CMD_PWRITEV:
		*bytes = bytes_of((const struct iovec *)(uintptr_t)iocb->aio_buf, (int)iocb->aio_nbytes);
		break;
	case IOCB_CMD_PREAD:
	case IOCB_CMD_PWRITE:
		break;
	default:
		return false;
	}
	*side = iocb->aio_lio_opcode == IOCB_CMD_PREAD || iocb->aio_lio_opcode == IOCB_CMD_PREADV ? SIDE_READS
												  : SIDE_WRITES;
	return is_ours((int)iocb->aio_fildes);
}

/* The number of requests, from the first on, that need not wait. */
static long plain_count(long count, struct iocb **iocbs)
{
	enum side side;
	uint64_t bytes;
	long n = 0;

	while (n < count && (!side_of(iocbs[n], &side, &bytes) || drive_is_plain(side)))
		n++;
	return n;
}

/* Counts requests before they are submitted, because they may be gone afterwards. The count is rarely too high. */
static void count_plain(long count, struct iocb **iocbs)
{
	enum side side;
	uint64_t bytes;

	for (long i = 0; i < count; i++)
		if (side_of(iocbs[i], &side, &bytes))
			drive_count(side, bytes);
}

static long submit_plain(aio_context_t context, long count, struct iocb **iocbs)
{
	count_plain(count, iocbs);
	return drive_submit(context, count, iocbs);
}

static long hold(aio_context_t context, long count, struct iocb **iocbs)
{
	enum side side;
	uint64_t bytes;
	long n = 0;

	while (n < count && side_of(iocbs[n], &side, &bytes) && drive_hold(side, context, iocbs[n], bytes))
		n++;
	return n;
}

/* libaio's function, which returns an error and leaves errno alone. */
PUBLIC int io_submit(aio_context_t context, long count, struct iocb **iocbs);
PUBLIC int io_submit(aio_context_t context, long count, struct iocb **iocbs)
{
	long taken = 0;

	if (count <= 0)
		return (int)drive_submit(context, count, iocbs);
	while (taken < count) {
		long plain = plain_count(count - taken, iocbs + taken);
		long rc = plain ? submit_plain(context, plain, iocbs + taken)
				: hold(context, count - taken, iocbs + taken);

		if (rc <= 0)
			return taken ? (int)taken : rc < 0 ? (int)rc : -EAGAIN;
		taken += rc;
		if (plain && rc < plain)
			break;
	}
	return (int)taken;
}
