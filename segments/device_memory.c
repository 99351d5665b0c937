/* SPDX-License-Identifier: BSD-3-Clause */
/* A device in memory, for simulations: no latency, no faults. One thread. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "segments/device_internal.h"

struct memory_device {
	struct dev dev;
	uint8_t *bytes;
};

struct dev_queue {
	struct memory_device *device;
	int eventfd;
	struct dev_io *first, **last; /* done, in order of submission */
};

static struct memory_device *memory_of(struct dev *dev)
{
	return (struct memory_device *)dev;
}

static int memory_read(struct dev *dev, void *buffer, uint64_t bytes, uint64_t offset)
{
	if (offset > dev->bytes || bytes > dev->bytes - offset)
		return -EIO;
	memcpy(buffer, memory_of(dev)->bytes + offset, bytes);
	return 0;
}

static int memory_write(struct dev *dev, const void *buffer, uint64_t bytes, uint64_t offset)
{
	if (offset > dev->bytes || bytes > dev->bytes - offset)
		return -ENOSPC;
	memcpy(memory_of(dev)->bytes + offset, buffer, bytes);
	return 0;
}

static int memory_flush(struct dev *dev)
{
	(void)dev;
	return 0;
}

static int memory_keep(struct dev *dev, uint64_t offset, uint64_t bytes)
{
	(void)dev, (void)offset, (void)bytes;
	return 0;
}

static int memory_queue_create(struct dev *dev, unsigned depth, int eventfd, struct dev_queue **out)
{
	struct dev_queue *queue = mem_zalloc(sizeof(*queue));

	(void)depth;
	if (!queue)
		return -ENOMEM;
	queue->device = memory_of(dev);
	queue->eventfd = eventfd;
	queue->last = &queue->first;
	*out = queue;
	return 0;
}

static void memory_queue_destroy(struct dev_queue *queue)
{
	must(!queue->first);
	mem_free(queue);
}

static int memory_submit(struct dev_queue *queue, struct dev_io **ios, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct dev_io *io = ios[i];
		struct dev *dev = io->device ? io->device : &queue->device->dev;
		int error = io->write ? memory_write(dev, io->buffer, io->bytes, io->offset)
				      : memory_read(dev, io->buffer, io->bytes, io->offset);

		io->result = error ? error : (int64_t)io->bytes;
		io->next = NULL;
		*queue->last = io;
		queue->last = &io->next;
	}
	uint64_t done = n;
	if (queue->eventfd >= 0 && n > 0)
		(void)!write(queue->eventfd, &done, sizeof(done));
	return (int)n;
}

/* Nothing is ever under way, so there is nothing to wait for. */
static int memory_reap(struct dev_queue *queue, struct dev_io **out, unsigned max, bool wait)
{
	unsigned n = 0;

	(void)wait;
	while (n < max && queue->first) {
		out[n++] = queue->first;
		queue->first = queue->first->next;
	}
	if (!queue->first)
		queue->last = &queue->first;
	return (int)n;
}

static void memory_close(struct dev *dev)
{
	munmap(memory_of(dev)->bytes, dev->bytes);
	mem_free(dev);
}

static const struct dev_ops memory_ops = { .read = memory_read,
					   .write = memory_write,
					   .flush = memory_flush,
					   .discard = memory_keep,
					   .settle = memory_keep,
					   .queue_create = memory_queue_create,
					   .queue_destroy = memory_queue_destroy,
					   .submit = memory_submit,
					   .reap = memory_reap,
					   .close = memory_close };

struct dev *dev_memory_create(uint64_t bytes)
{
	struct memory_device *device = mem_zalloc(sizeof(*device));
	void *memory;

	if (!device)
		return NULL;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		mem_free(device);
		return NULL;
	}
	*device = (struct memory_device){
		.dev = { .ops = &memory_ops, .bytes = bytes, .direct = true, .read_block = DEV_READ_LEAST },
		.bytes = memory
	};
	return &device->dev;
}
