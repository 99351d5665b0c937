/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/devices/ram_device.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/alloc.h"
#include "base/assert.h"

struct dev_queue {
	struct ram_device *ram; /* of the last request */
	int eventfd;
	pthread_mutex_t mutex; /* submit may come from the submitter thread */
	struct dev_io *done;
};

/* Returns the bytes read, or a negative errno. */
static int64_t read_some(struct dev *dev, void *buffer, uint64_t bytes, uint64_t offset)
{
	struct ram_device *ram = (struct ram_device *)dev;

	must(offset % dev->read_block == 0 && bytes % dev->read_block == 0 && (uintptr_t)buffer % dev->read_block == 0);
	__atomic_fetch_add(&ram->reads, 1, __ATOMIC_RELAXED);
	if (ram->slow_clock)
		clk_scripted_advance(ram->slow_clock, ram->slow_us);
	if (ram->fail_reads || offset + bytes > dev->bytes || (offset < ram->bad_to && offset + bytes > ram->bad_from))
		return -EIO;
	memcpy(buffer, ram->bytes + offset, bytes);
	if (ram->flip_at >= offset && ram->flip_at - offset < bytes && ram->flip_at) {
		((uint8_t *)buffer)[ram->flip_at - offset] ^= 1;
		ram->flip_at = 0;
	}
	return ram_faulty_read(ram, buffer, bytes);
}

/* A short read ends it: behind a device's end comes nothing. */
static int ram_read(struct dev *dev, void *buffer, uint64_t bytes, uint64_t offset)
{
	int64_t done = read_some(dev, buffer, bytes, offset);

	return done < 0 ? (int)done : (uint64_t)done < bytes ? -EIO : 0;
}

/* Returns the bytes written, or a negative errno. */
static int64_t write_some(struct dev *dev, const void *buffer, uint64_t bytes, uint64_t offset)
{
	struct ram_device *ram = (struct ram_device *)dev;

	must(offset % SEG_PAGE == 0 && bytes % SEG_PAGE == 0 && (uintptr_t)buffer % SEG_PAGE == 0);
	ram->writes++;
	if (ram->on_write)
		ram->on_write(ram, buffer, bytes, offset);
	if (ram->fail_writes)
		return -EIO;
	if (offset + bytes > ram->limit || offset + bytes > dev->bytes)
		return -ENOSPC;
	for (uint64_t at = 0; at < bytes; at += SEG_PAGE) {
		if (ram->power == 0) {
			memcpy(ram->bytes + offset, buffer, at + SEG_PAGE / 2);
			ram->fail_writes = true;
			return -EIO;
		}
		if (ram->power != UINT64_MAX)
			ram->power--;
	}
	return ram_faulty_write(ram, buffer, bytes, offset);
}

/* What is left of a short write is written too. */
static int ram_write(struct dev *dev, const void *buffer, uint64_t bytes, uint64_t offset)
{
	while (bytes > 0) {
		int64_t done = write_some(dev, buffer, bytes, offset);

		if (done < 0)
			return (int)done;
		done -= done % SEG_PAGE;
		if (done == 0)
			return -EIO;
		buffer = (const uint8_t *)buffer + done;
		offset += (uint64_t)done;
		bytes -= (uint64_t)done;
	}
	return 0;
}

static int ram_flush(struct dev *dev)
{
	struct ram_device *ram = (struct ram_device *)dev;

	ram->flushes++;
	if (!ram->fail_writes && ram->on_flush)
		ram->on_flush(ram);
	return ram->fail_writes ? -EIO : ram_faulty_flush(ram);
}

static int ram_discard(struct dev *dev, uint64_t offset, uint64_t bytes)
{
	struct ram_device *ram = (struct ram_device *)dev;

	must(offset + bytes <= dev->bytes);
	ram->discards++;
	if (bytes > ram->largest_discard)
		ram->largest_discard = bytes;
	memset(ram->bytes + offset, 0, bytes);
	return 0;
}

static int ram_settle(struct dev *dev, uint64_t offset, uint64_t bytes)
{
	(void)dev, (void)offset, (void)bytes;
	return 0;
}

static int ram_queue_create(struct dev *dev, unsigned depth, int eventfd, struct dev_queue **out)
{
	struct dev_queue *queue = mem_must_zalloc(sizeof(*queue));

	(void)depth;
	queue->ram = (struct ram_device *)dev;
	queue->eventfd = eventfd;
	must(pthread_mutex_init(&queue->mutex, NULL) == 0);
	*out = queue;
	return 0;
}

static void ram_queue_destroy(struct dev_queue *queue)
{
	must(!queue->done);
	pthread_mutex_destroy(&queue->mutex);
	mem_free(queue);
}

/* When the drive is done with a read that it is given now. One thread at a time. */
static uint64_t due_ns(struct ram_device *ram, const struct dev_io *io)
{
	uint64_t now_ns;

	if (!ram->clock || io->write)
		return 0;
	now_ns = clk_now_ns(ram->clock);
	if (ram->busy_until_ns < now_ns)
		ram->busy_until_ns = now_ns;
	ram->busy_until_ns += ram->service_ns;
	if (ram_fault_fires(ram, RAM_FAULT_read_late))
		ram->busy_until_ns += ram->faults.late_ns;
	return ram->busy_until_ns;
}

static bool is_due(const struct ram_device *ram, const struct dev_io *io)
{
	return !ram->clock || io->native[0] <= clk_now_ns(ram->clock);
}

static int64_t perform(struct ram_device *ram, struct dev_io *io)
{
	if (io->nowait && ram->again)
		return -EAGAIN;
	return io->write ? write_some(&ram->dev, io->buffer, io->bytes, io->offset)
			 : read_some(&ram->dev, io->buffer, io->bytes, io->offset);
}

static int ram_submit(struct dev_queue *queue, struct dev_io **ios, unsigned n)
{
	struct ram_device *ram = queue->ram;

	/* The device that made the queue may be closed. */
	if (n && ios[0]->device && ios[0]->device != &ram->dev) {
		pthread_mutex_lock(&queue->mutex);
		queue->ram = ram = (struct ram_device *)ios[0]->device;
		pthread_mutex_unlock(&queue->mutex);
	}
	if (ram->refuse)
		return -EAGAIN;
	if (n && ios[0]->nowait && ram->no_nowait)
		return -EOPNOTSUPP;
	for (unsigned i = 0; i < n; i++) {
		struct dev_io *io = ios[i];
		struct ram_device *at = io->device ? (struct ram_device *)io->device : ram;
		struct dev_io **link;

		io->result = perform(at, io);
		io->native[0] = due_ns(at, io);
		pthread_mutex_lock(&queue->mutex);
		link = &queue->done;
		while (*link && !ram->reverse)
			link = &(*link)->next;
		io->next = *link;
		*link = io;
		if (queue->eventfd >= 0)
			must(eventfd_write(queue->eventfd, 1) == 0);
		pthread_mutex_unlock(&queue->mutex);
	}
	return (int)n;
}

static int ram_reap(struct dev_queue *queue, struct dev_io **out, unsigned max, bool wait)
{
	int n = 0;

	bool writes = queue->eventfd < 0;

	if (!wait && (writes ? queue->ram->hold_writes : queue->ram->hold))
		return 0;
	while (wait && queue->ram->hold_writes)
		sched_yield();
	pthread_mutex_lock(&queue->mutex);
	while (queue->done && n < (int)max && (wait || is_due(queue->ram, queue->done))) {
		out[n] = queue->done;
		queue->done = queue->done->next;
		n++;
	}
	pthread_mutex_unlock(&queue->mutex);
	return n;
}

static void ram_close(struct dev *dev)
{
	struct ram_device *ram = (struct ram_device *)dev;

	ram_faults_fini(ram);
	if (!ram->keep)
		mem_free(ram->bytes);
	mem_free(ram);
}

static const struct dev_ops ram_ops = {
	.read = ram_read,
	.write = ram_write,
	.flush = ram_flush,
	.discard = ram_discard,
	.settle = ram_settle,
	.queue_create = ram_queue_create,
	.queue_destroy = ram_queue_destroy,
	.submit = ram_submit,
	.reap = ram_reap,
	.close = ram_close,
};

uint8_t *ram_memory(uint64_t bytes)
{
	return mem_must_zalloc(bytes);
}

struct ram_device *ram_device_create(uint64_t bytes, uint8_t *memory)
{
	struct ram_device *ram = mem_must_zalloc(sizeof(*ram));

	ram->dev.ops = &ram_ops;
	ram->dev.bytes = bytes;
	ram->dev.direct = true;
	ram->dev.read_block = DEV_READ_LEAST;
	ram->bytes = memory ? memory : ram_memory(bytes);
	ram->keep = memory != NULL;
	ram->power = UINT64_MAX;
	ram->limit = UINT64_MAX;
	return ram;
}
