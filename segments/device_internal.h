/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device: a file or block device (device.c, with libaio behind aio.c), or whatever a test puts in
 * its place, behind one table of functions.
 *
 * Threads: read, write, flush and discard from any; a queue belongs to its owner, only submit may be
 * called from another thread at the same time. Errors: 0 or a negative errno here, because the
 * reason is logged; offsets, lengths and buffers are multiples of SEG_PAGE.
 */
#ifndef FS_SEGMENTS_DEVICE_INTERNAL_H
#define FS_SEGMENTS_DEVICE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "segments/segments.h"

struct dev;
struct dev_queue;

/* One asynchronous request. The owner keeps it and the buffer until it was reaped. */
struct dev_io {
	void *buffer;
	uint64_t bytes;
	uint64_t offset;
	int64_t result; /* bytes done, or a negative errno */
	uint64_t submitted_ns; /* the owner's: when it was given to the device first */
	bool write;
	bool nowait; /* fail with -EAGAIN rather than block */
	struct dev_queue *queue;
	struct dev *device;
	struct dev_io *next; /* the present holder's */
	void (*handed_back)(struct dev_io *io); /* from the submitter thread */
	uint64_t native[8]; /* the implementation's: an iocb */
};

struct dev_ops {
	int (*read)(struct dev *dev, void *buffer, uint64_t bytes, uint64_t offset);
	int (*write)(struct dev *dev, const void *buffer, uint64_t bytes, uint64_t offset);
	int (*flush)(struct dev *dev); /* makes all completed writes durable */
	/* The range will be overwritten before it is read. 0 where there is nothing to do. */
	int (*discard)(struct dev *dev, uint64_t offset, uint64_t bytes);
	/* The range was written and won't be soon again: lets the page cache go of it. */
	int (*settle)(struct dev *dev, uint64_t offset, uint64_t bytes);
	/* A queue of depth requests that adds 1 to eventfd for each completion (-1: none). */
	int (*queue_create)(struct dev *dev, unsigned depth, int eventfd, struct dev_queue **out);
	void (*queue_destroy)(struct dev_queue *queue); /* nothing is in flight */
	/* How many of the n were taken, from the first on; a negative errno when that is none. */
	int (*submit)(struct dev_queue *queue, struct dev_io **ios, unsigned n);
	/* Completed ones, at most max. wait: at least one. */
	int (*reap)(struct dev_queue *queue, struct dev_io **out, unsigned max, bool wait);
	void (*close)(struct dev *dev);
};

struct dev {
	const struct dev_ops *ops;
	uint64_t bytes;
	bool direct, block_device;
};

/* Opens, locks and preallocates what the configuration names. FS_EFOREIGN: it holds something else, and
   is as it was. */
FS_MUST_CHECK int dev_open(struct dev **out, const struct seg_config *config);

/* device_file.c: makes a file of at least config->flash_bytes with no holes below; what was there stays. 0 or a
   negative errno, and then the file is as it was. */
FS_MUST_CHECK int file_preallocate(int fd, const struct seg_config *config);

/* superblock.c: how many bytes from the start tell whether a flash holds something else, and whether they
   do; past its end they are zeros. */
#define DEV_START_BYTES ((64u << 10) + SEG_PAGE)
FS_MUST_CHECK bool super_foreign(const uint8_t *start);

/* A read that counts its bytes, with the fault points of reads. 0 or a negative errno. */
FS_MUST_CHECK int dev_read(struct dev *dev, void *buffer, uint64_t bytes, uint64_t offset);
/* The fault points of a finished read; bytes from first on are the ones asked for. */
void dev_read_faults(uint8_t *first, uint64_t bytes, int64_t *result);

/* aio.c, the one file that knows libaio. */
int aio_queue_create(int fd, unsigned depth, int eventfd, struct dev_queue **out);
void aio_queue_destroy(struct dev_queue *queue);
int aio_submit(struct dev_queue *queue, struct dev_io **ios, unsigned n);
int aio_reap(struct dev_queue *queue, struct dev_io **out, unsigned max, bool wait);

#endif
