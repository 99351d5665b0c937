/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device behind one table of functions: a file or block device (device.c, with libaio in aio.c), or a
 * test's substitute.
 *
 * Threads: any thread may read, write, flush and discard. A queue belongs to its owner. Another thread may call submit
 * alone, also at the same time as the owner. Errors: 0 or a negative errno in this header, because the reason is
 * logged. Offsets, lengths and buffers are multiples of SEG_PAGE; those of a queue's reads may be multiples of read_block.
 * All calls but submit of a nowait request may block.
 */
#ifndef FS_SEGMENTS_DEVICE_INTERNAL_H
#define FS_SEGMENTS_DEVICE_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segments/segments.h"

struct dev;
struct dev_queue;

/* What became of an open device, by the file system's word. */
enum dev_sight {
	DEV_WHOLE, /* it lies where it was opened, in full */
	DEV_AWAY, /* it works, but its path doesn't lead to it any more: when it is closed, it is lost */
	DEV_SHORT /* it has fewer bytes than were opened */
};

/* One asynchronous request. Its owner keeps request and buffer until the request was reaped. */
#define DEV_IO_MAGIC 0x44455649u
struct dev_io {
	void *buffer;
	uint64_t bytes;
	uint64_t offset;
	int64_t result; /* bytes done, or a negative errno */
	uint64_t submitted_ns; /* the owner's: time of the first submission */
	bool write;
	bool nowait; /* fail with -EAGAIN rather than block */
	uint32_t magic; /* DEV_IO_MAGIC, set by the owner */
	struct dev_queue *queue;
	struct dev *device; /* the queue takes requests for every device of its kind */
	struct dev_io *next; /* of the list that holds it at present */
	void (*handed_back)(struct dev_io *io); /* called by the submitter thread */
	uint64_t native[8]; /* the implementation's: an iocb */
};

/* All ints: 0 or a negative errno, unless said otherwise. */
struct dev_ops {
	int (*read)(struct dev *dev, void *buffer, uint64_t bytes, uint64_t offset);
	int (*write)(struct dev *dev, const void *buffer, uint64_t bytes, uint64_t offset);
	int (*flush)(struct dev *dev); /* makes all completed writes durable */
	/* Tells the device that the range will be overwritten before it is read. 0 where there is nothing to do. */
	int (*discard)(struct dev *dev, uint64_t offset, uint64_t bytes);
	/* Drops the range from the page cache: it was written, and won't be soon again. */
	int (*settle)(struct dev *dev, uint64_t offset, uint64_t bytes);
	/* Makes a queue of depth requests that adds 1 to eventfd for each completion (-1: none). */
	int (*queue_create)(struct dev *dev, unsigned depth, int eventfd, struct dev_queue **out);
	void (*queue_destroy)(struct dev_queue *queue); /* nothing is in flight */
	/* Returns how many of the n, from the first on, were taken; a negative errno when none was. */
	int (*submit)(struct dev_queue *queue, struct dev_io **ios, unsigned n);
	/* Fills out with completed requests, at most max, and returns their number. wait: blocks for at least one. */
	int (*reap)(struct dev_queue *queue, struct dev_io **out, unsigned max, bool wait);
	/* Asks what became of the device. Unless it is DEV_WHOLE, why gets a text of at most size bytes for the operator.
	   NULL: nothing can happen to such a device. */
	enum dev_sight (*look)(struct dev *dev, char *why, size_t size);
	/* Gives blocks to the next bytes of a file behind dev->allocated, to `most` of them, and moves it. One thread.
	   NULL: all bytes have theirs. */
	int (*allocate)(struct dev *dev, uint64_t most);
	void (*close)(struct dev *dev);
};

/* Constant while the device is open, but for allocated. */
struct dev {
	const struct dev_ops *ops;
	uint64_t bytes;
	bool direct, block_device;
	uint32_t read_block; /* 512 to SEG_PAGE, a power of two */
	int fd; /* that requests are for; only aio.c uses it */
	/* With ops->allocate: what the file had when it was opened, in whole pages; and the bytes from its beginning that
	   may be written, `bytes` when it is complete. Written by ops->allocate, read by any thread. */
	uint64_t found_bytes;
	_Atomic uint64_t allocated;
};

/* Opens and locks the file or block device at config->path. A new file's space is reserved where its file system can, and
   its first DEV_READY_BYTES are allocated: ops->allocate does the rest. The caller closes it by ops->close.
   FS_EFOREIGN: it holds something else, and stays untouched. Other codes like seg_open. */
FS_MUST_CHECK int dev_open(struct dev **out, const struct seg_config *config);

/* A smaller file is complete when it is opened. */
#define DEV_READY_BYTES (16u << 20)

/* device_file.c: reserves the blocks of a file that is to have so many bytes, without a change of its size, where its
   file system can do that. *size: of the file. 0 or a negative errno, -ENOSPC and -EFBIG among them. */
FS_MUST_CHECK int file_reserve(int fd, uint64_t bytes, uint64_t *size);
/* device_file.c: writes zeros where the first `bytes` of the file, a multiple of SEG_PAGE, have holes, and behind its end:
   at most `most` of them, a multiple of SEG_PAGE, from *allocated on. Its whole pages stay; when it grows, a part of a
   page at its end becomes zeros. *allocated: `bytes` when nothing is left to do, durably; else where the next call goes
   on. 0 or a negative errno. May write for long. */
FS_MUST_CHECK int file_allocate(int fd, uint64_t bytes, uint64_t most, uint64_t *allocated);

/* device.c: locks the open file against other daemons and memcached, until it is closed. FS_OK, FS_EBUSY, FS_ESYS with
   errno. */
FS_MUST_CHECK int file_lock(int fd);

/* extstore.c: is the open file one that memcached's extstore has left? True only where the check of an item is right. A file
   on a file system without holes that a release before 1.6.30 has left looks like one of zeros. */
FS_MUST_CHECK bool extstore_left(int fd);

/* device_look.c: what became of the file or block device that was opened as fd, with so many bytes, at path; NULL: the
   path is not known. As in struct dev_ops. */
FS_MUST_CHECK enum dev_sight file_look(int fd, const char *path, uint64_t bytes, char *why, size_t size);

/* device_block.c: returns the read_block of a file or block device that is opened O_DIRECT. */
#define DEV_READ_LEAST 512u
FS_MUST_CHECK uint32_t file_read_block(int fd);

/* superblock.c: do the first DEV_START_BYTES of a flash hold something else than a cache? Bytes past its end are
   zeros. */
#define DEV_START_BYTES ((64u << 10) + SEG_PAGE)
FS_MUST_CHECK bool super_foreign(const uint8_t *start);

/* Reads, counts the bytes, and has the fault points of reads. Returns 0 or a negative errno. Any thread; blocks. */
FS_MUST_CHECK int dev_read(struct dev *dev, void *buffer, uint64_t bytes, uint64_t offset);
/* Reads the same page by page where it can't be read at once. Pages that can't be read become zeros, which no reader takes for a
   record: the other records are saved. Returns how many such pages there are. */
uint32_t dev_read_what_can_be(struct dev *dev, void *buffer, uint64_t bytes, uint64_t offset);
/* Applies the fault points of reads to a finished read of *result bytes or errno: `bytes` from first on are those that
   the caller wants. */
void dev_read_faults(uint8_t *first, uint64_t bytes, int64_t *result);

/* aio.c, the one file that knows libaio: queues of the file fd, as in struct dev_ops. */
FS_MUST_CHECK int aio_queue_create(int fd, unsigned depth, int eventfd, struct dev_queue **out);
void aio_queue_destroy(struct dev_queue *queue);
FS_MUST_CHECK int aio_submit(struct dev_queue *queue, struct dev_io **ios, unsigned n);
FS_MUST_CHECK int aio_reap(struct dev_queue *queue, struct dev_io **out, unsigned max, bool wait);

#endif
