/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/flash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tools/common/args.h"

/* A daemon writes the two copies within milliseconds. */
#define SUPER_LOOKS 5
#define SUPER_WAIT_MS 20

static void add_unread(struct flash_unread *unread, uint64_t offset, int error)
{
	if (unread->pages++ == 0) {
		unread->first = offset;
		unread->error = error;
	}
}

/* Makes one read of up to bytes. Returns the bytes of whole pages that it got. */
static uint64_t read_some(const struct flash *flash, uint8_t *to, uint64_t bytes, uint64_t offset, int *error)
{
	ssize_t n;

	*error = 0;
	if (!flash->direct)
		posix_fadvise(flash->fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
	do {
		n = pread(flash->fd, to, bytes, (off_t)offset);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		*error = errno;
	return n > 0 ? (uint64_t)n / FORMAT_PAGE * FORMAT_PAGE : 0;
}

void flash_read(const struct flash *flash, void *buffer, uint64_t bytes, uint64_t offset, struct flash_unread *unread)
{
	uint64_t piece = bytes;
	uint8_t *to = buffer;

	while (bytes > 0) {
		uint64_t asked = piece < bytes ? piece : bytes;
		int error;
		uint64_t got = read_some(flash, to, asked, offset, &error);

		if (got == 0 && error != 0 && asked > FORMAT_PAGE) {
			piece = FORMAT_PAGE; /* only some of it may be bad */
			continue;
		}
		if (got == 0) {
			memset(to, 0, FORMAT_PAGE);
			add_unread(unread, offset, error);
			got = FORMAT_PAGE;
		}
		to += got;
		offset += got;
		bytes -= got;
	}
}

bool flash_in_use(const struct flash *flash)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(flash->fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

/* ---- superblock ------------------------------------------------------------------------------ */

static bool read_copies(const struct flash *flash, struct flash_copy copies[FORMAT_COPIES])
{
	uint8_t *page = mem_aligned(FORMAT_PAGE, FORMAT_PAGE);

	if (!page)
		return false;
	for (unsigned n = 0; n < FORMAT_COPIES; n++) {
		struct flash_unread unread = { 0 };

		flash_read(flash, page, FORMAT_PAGE, (uint64_t)n * FORMAT_COPY_OFFSET, &unread);
		copies[n].verdict = format_super_parse(page, &copies[n].super);
		copies[n].unreadable = unread.pages > 0;
	}
	mem_free(page);
	return true;
}

/* The good copy of the higher generation, or NULL. */
static const struct flash_copy *best_copy(const struct flash_copy copies[FORMAT_COPIES])
{
	const struct flash_copy *best = NULL;

	for (unsigned n = 0; n < FORMAT_COPIES; n++)
		if (copies[n].verdict == FORMAT_GOOD && (!best || copies[n].super.generation > best->super.generation))
			best = &copies[n];
	return best;
}

bool flash_read_super(const struct flash *flash, struct flash_copy copies[FORMAT_COPIES], struct format_super *super)
{
	const struct timespec wait = { .tv_nsec = SUPER_WAIT_MS * 1000000 };
	const struct flash_copy *best = NULL;

	for (int look = 0; look < SUPER_LOOKS; look++) {
		if (!read_copies(flash, copies))
			return false;
		best = best_copy(copies);
		if ((best && copies[0].verdict == copies[1].verdict &&
		     copies[0].super.generation == copies[1].super.generation) ||
		    !flash_in_use(flash))
			break;
		nanosleep(&wait, NULL);
	}
	if (best)
		*super = best->super;
	return best != NULL;
}

/* A copy of a newer format counts more than an older good copy beside it. */
static const struct flash_copy *newer_unknown(const struct flash *flash, const struct flash_copy *best)
{
	for (unsigned n = 0; n < FORMAT_COPIES; n++)
		if (flash->copies[n].verdict == FORMAT_UNKNOWN &&
		    (!best || flash->copies[n].super.generation > best->super.generation))
			return &flash->copies[n];
	return NULL;
}

static bool is_damaged(enum format_verdict verdict)
{
	return verdict == FORMAT_BROKEN || verdict == FORMAT_IMPOSSIBLE;
}

static int open_super(struct flash *flash, char *problem)
{
	bool any = flash_read_super(flash, flash->copies, &flash->super);
	const char *flaw;

	if (newer_unknown(flash, best_copy(flash->copies))) {
		snprintf(problem, FLASH_PROBLEM_BYTES,
			 "is a flash in a version or with a feature that this program doesn't know");
		return EXIT_TROUBLE;
	}
	if (!any && (is_damaged(flash->copies[0].verdict) || is_damaged(flash->copies[1].verdict))) {
		snprintf(problem, FLASH_PROBLEM_BYTES, "neither copy of the superblock is whole: copy 0 %s, copy 1 %s",
			 format_verdict_text(flash->copies[0].verdict), format_verdict_text(flash->copies[1].verdict));
		return EXIT_WRONG;
	}
	if (!any) {
		snprintf(problem, FLASH_PROBLEM_BYTES,
			 flash->copies[0].unreadable && flash->copies[1].unreadable && flash->bytes >= FORMAT_AREA_BYTES
				 ? "can't be read where the superblock would be"
				 : "is not a flash: no superblock at its start");
		return EXIT_TROUBLE;
	}
	flaw = format_super_flaw(&flash->super);
	if (flaw) {
		snprintf(problem, FLASH_PROBLEM_BYTES, "the superblock can't be right: %s", flaw);
		return EXIT_WRONG;
	}
	return 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* Some file systems accept the flag and refuse the read. */
static bool direct_works(int fd)
{
	void *page = mem_aligned(FORMAT_PAGE, FORMAT_PAGE);
	bool works = page && (pread(fd, page, FORMAT_PAGE, 0) >= 0 || errno != EINVAL);

	mem_free(page);
	return works;
}

static bool open_path(struct flash *flash, const char *path)
{
	flash->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_DIRECT);
	flash->direct = flash->fd >= 0 && direct_works(flash->fd);
	if (flash->direct)
		return true;
	if (flash->fd >= 0)
		close(flash->fd);
	else if (errno != EINVAL)
		return false;
	/* O_NONBLOCK so that a FIFO is refused below instead of waited for. */
	flash->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return flash->fd >= 0;
}

static bool find_size(struct flash *flash, char *problem)
{
	struct stat st;
	off_t end;

	if (fstat(flash->fd, &st) != 0 || (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))) {
		snprintf(problem, FLASH_PROBLEM_BYTES, "is neither a file nor a block device");
		return false;
	}
	flash->block_device = S_ISBLK(st.st_mode);
	end = lseek(flash->fd, 0, SEEK_END);
	if (end <= 0) {
		snprintf(problem, FLASH_PROBLEM_BYTES, "%s", end < 0 ? strerror(errno) : "is empty: not a flash");
		return false;
	}
	flash->bytes = (uint64_t)end;
	return true;
}

int flash_open(struct flash *flash, const char *path, char problem[FLASH_PROBLEM_BYTES])
{
	memset(flash, 0, sizeof(*flash));
	if (!open_path(flash, path)) {
		snprintf(problem, FLASH_PROBLEM_BYTES, "%s", strerror(errno));
		return EXIT_TROUBLE;
	}
	if (!find_size(flash, problem))
		return EXIT_TROUBLE;
	return open_super(flash, problem);
}

void flash_close(struct flash *flash)
{
	if (flash->fd >= 0)
		close(flash->fd);
	flash->fd = -1;
}
