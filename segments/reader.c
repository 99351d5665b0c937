/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Readers: one per worker, with a queue and an eventfd of its own.
 *
 *   submit -> waiting -> (flush: the device's queue, up to depth) -> reaped by poll -> done
 *                              |  EAGAIN                    ^
 *                              +-> submitter thread --------+  (through the queue, or handed_back)
 *
 * A read that can't be submitted at all goes to the finished list with its error; done is run by the
 * next poll, never from within submit or flush.
 *
 * Why no completion is missed although poll doesn't read the eventfd: whatever completes becomes visible
 * first (the kernel's ring, back, finished) and is signalled then, and a poll takes all that it sees. What
 * a poll didn't see was signalled after that poll began; so after the owner last learnt of a signal, and
 * an edge-triggered watch tells it again. What it did see may be signalled yet: a poll that finds nothing.
 * The count never overflows: each read adds one, and 2^64 reads take longer than any machine lasts.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "conf/counters.h"
#include "conf/latency.h"
#include "segments/pool_internal.h"
#include "segments/segments_internal.h"

#define BATCH 128u
#define SLOW_MS 20u

struct list {
	struct seg_read *first, *last;
};

struct seg_reader {
	struct seg *seg;
	struct dev_queue *queue;
	int fd;
	unsigned depth;
	unsigned in_flight;   /* with the device or the submitter */
	unsigned outstanding; /* done not yet run */
	unsigned buffers;     /* not yet released */
	struct list waiting, finished;
	struct pool pool;
	struct lock back_lock;
	_Atomic(struct dev_io *) back; /* from the submitter thread; changed under back_lock */
};

_Static_assert(sizeof(struct dev_io) <= sizeof(((struct seg_read *)0)->io), "seg_read.io holds a request");

static struct dev_io *io_of(struct seg_read *read)
{
	return (struct dev_io *)read->io;
}

static struct seg_read *read_of(struct dev_io *io)
{
	return (struct seg_read *)((char *)io - offsetof(struct seg_read, io));
}

static void append(struct list *list, struct seg_read *read)
{
	read->next = NULL;
	if (list->last)
		list->last->next = read;
	else
		list->first = read;
	list->last = read;
}

static struct seg_read *take(struct list *list)
{
	struct seg_read *read = list->first;

	if (read) {
		list->first = read->next;
		if (!list->first)
			list->last = NULL;
	}
	return read;
}

static void signal_fd(struct seg_reader *reader)
{
	/* It fails only when the count is at its limit, and then the descriptor is readable anyway. */
	if (eventfd_write(reader->fd, 1) != 0)
		must(errno == EAGAIN || errno == EINTR);
}

int seg_reader_create(struct seg_reader **out, struct seg *seg, unsigned depth)
{
	struct seg_reader *reader = mem_zalloc(sizeof(*reader));
	int rc;

	*out = NULL;
	if (!reader)
		return FS_ENOMEM;
	reader->seg = seg;
	reader->depth = depth ? depth : 1;
	reader->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	rc = reader->fd < 0 ? -errno
			    : seg->device->ops->queue_create(seg->device, reader->depth, reader->fd,
							     &reader->queue);
	if (rc != 0) {
		if (reader->fd >= 0)
			close(reader->fd);
		mem_free(reader);
		errno = -rc;
		if (rc == -EAGAIN)
			log_error("flash: no asynchronous I/O context left (see /proc/sys/fs/aio-max-nr)");
		return FS_ESYS;
	}
	pool_init(&reader->pool);
	lock_init(&reader->back_lock, LOCK_LEAF);
	*out = reader;
	return FS_OK;
}

void seg_reader_destroy(struct seg_reader *reader)
{
	if (!reader)
		return;
	seg_reader_flush(reader);
	while (reader->outstanding > 0) {
		struct pollfd ready = {.fd = reader->fd, .events = POLLIN};
		eventfd_t events;

		if (eventfd_read(reader->fd, &events) != 0)
			must(errno == EAGAIN || errno == EINTR);
		if (seg_reader_poll(reader) == 0)
			poll(&ready, 1, -1);
	}
	must(reader->buffers == 0);
	/* The submitter thread may just be leaving the lock under which it handed the last one back. */
	lock_acquire(&reader->back_lock);
	lock_release(&reader->back_lock);
	reader->seg->device->ops->queue_destroy(reader->queue);
	lock_fini(&reader->back_lock);
	close(reader->fd);
	pool_fini(&reader->pool);
	mem_free(reader);
}

int seg_reader_fd(const struct seg_reader *reader)
{
	return reader->fd;
}

/* From the submitter thread. All under the lock: after it the reader may be destroyed. */
static void handed_back(struct dev_io *io)
{
	struct seg_reader *reader = read_of(io)->reader;

	lock_acquire(&reader->back_lock);
	io->next = atomic_load_explicit(&reader->back, memory_order_relaxed);
	atomic_store_explicit(&reader->back, io, memory_order_relaxed);
	signal_fd(reader);
	lock_release(&reader->back_lock);
}

static void finish(struct seg_reader *reader, struct seg_read *read, int result)
{
	read->result = result;
	if (result != FS_OK)
		read->available = 0;
	append(&reader->finished, read);
}

/* Fixes the range of pages. The buffer comes later, so that only what is in flight has one. */
static int prepare(struct seg_reader *reader, struct seg_read *read)
{
	const struct seg *seg = reader->seg;
	struct dev_io *io = io_of(read);
	uint64_t first = read->offset & ~(uint64_t)(SEG_PAGE - 1);
	uint64_t end;

	if (read->segment >= seg->segments || read->offset >= seg->segment_bytes || read->length == 0)
		return FS_EINVAL;
	end = read->length > seg->segment_bytes - read->offset
		      ? seg->segment_bytes
		      : layout_page_up(read->offset + read->length);
	read->pages = (unsigned)((end - first) / SEG_PAGE);
	read->available = end - read->offset;
	/* All but what the device and the submitter set themselves. */
	io->bytes = end - first;
	io->offset = seg_offset(seg, read->segment) + first;
	io->write = false;
	io->queue = reader->queue;
	io->device = seg->device;
	io->handed_back = handed_back;
	return FS_OK;
}

static bool take_buffer(struct seg_reader *reader, struct seg_read *read)
{
	struct dev_io *io = io_of(read);

	if (read->buffer)
		return true;
	read->buffer = pool_take(&reader->pool, io->bytes, &read->buffer_bytes);
	if (!read->buffer)
		return false;
	reader->buffers++;
	read->bytes = (const uint8_t *)read->buffer + read->offset % SEG_PAGE;
	io->buffer = read->buffer;
	return true;
}

void seg_read_submit(struct seg_reader *reader, struct seg_read *read)
{
	int rc;

	read->reader = reader;
	read->buffer = NULL;
	read->bytes = NULL;
	read->available = 0;
	read->pages = 0;
	reader->outstanding++;
	rc = health_offline(reader->seg) ? FS_EOFFLINE : prepare(reader, read);
	if (rc == FS_OK) {
		append(&reader->waiting, read);
		return;
	}
	finish(reader, read, rc);
	signal_fd(reader);
}

static void defer(struct seg_reader *reader, struct seg_read *read)
{
	ctr_add(CTR_flash_reads_deferred, 1);
	reader->in_flight++;
	submitter_take(reader->seg->submitter, io_of(read), 0);
}

static void fail(struct seg_reader *reader, struct seg_read *read, int error)
{
	ctr_add(CTR_flash_read_errors, 1);
	health_error(reader->seg, "a read", error);
	finish(reader, read, FS_EIO);
}

/* The first of a batch was refused with this errno. */
static void refused(struct seg_reader *reader, struct seg_read *read, int error)
{
	struct dev_io *io = io_of(read);

	if (io->nowait && (error == EOPNOTSUPP || error == EINVAL)) {
		atomic_store_explicit(&reader->seg->nowait, false, memory_order_relaxed);
		read->next = reader->waiting.first;
		reader->waiting.first = read;
		if (!reader->waiting.last)
			reader->waiting.last = read;
	} else if (error == EAGAIN) {
		defer(reader, read);
	} else {
		fail(reader, read, error);
		signal_fd(reader);
	}
}

/* The next reads for the device, with buffers. They stay in the waiting list. */
static unsigned gather(struct seg_reader *reader, struct dev_io **batch, uint64_t now_ns)
{
	bool nowait = atomic_load_explicit(&reader->seg->nowait, memory_order_relaxed);
	unsigned room = reader->depth - reader->in_flight;
	unsigned n = 0;

	for (struct seg_read *read = reader->waiting.first; read && n < BATCH && n < room;
	     read = read->next) {
		if (!take_buffer(reader, read))
			break;
		io_of(read)->nowait = nowait;
		io_of(read)->submitted_ns = now_ns;
		batch[n++] = io_of(read);
	}
	return n;
}

/* Hands waiting reads to the device while its queue has room. */
static void pump(struct seg_reader *reader)
{
	struct dev_io *batch[BATCH];
	uint64_t now_ns = clk_now_ns(reader->seg->clock);

	while (reader->waiting.first && reader->in_flight < reader->depth) {
		unsigned n = gather(reader, batch, now_ns);
		int taken;

		if (n == 0) {
			finish(reader, take(&reader->waiting), FS_ENOMEM);
			signal_fd(reader);
			continue;
		}
		if (fault_fires(FAULT_device_read_again)) {
			defer(reader, take(&reader->waiting));
			continue;
		}
		taken = reader->seg->device->ops->submit(reader->queue, batch, n);
		for (int i = 0; i < taken; i++) {
			take(&reader->waiting);
			reader->in_flight++;
		}
		if (taken <= 0)
			refused(reader, take(&reader->waiting), taken < 0 ? -taken : EAGAIN);
	}
}

void seg_reader_flush(struct seg_reader *reader)
{
	if (reader->waiting.first)
		pump(reader);
}

/* What the device wrote is in no cache of ours yet. done runs when all completions have been taken: by
   then header, key and the first of the value are here, and the processor sees where this is going. */
static void prefetch_record(const struct seg_read *read)
{
	for (unsigned at = 0; at < 256 && at < read->length; at += 64)
		__builtin_prefetch(read->bytes + at);
}

/* What came back from the device or the submitter by now. slow: may be held back by the fault point. */
static void completed(struct seg_reader *reader, struct dev_io *io, bool slow, uint64_t now_ns)
{
	struct seg_read *read = read_of(io);

	if (slow && fault_fires(FAULT_device_read_slow)) {
		submitter_take(reader->seg->submitter, io, SLOW_MS);
		return;
	}
	reader->in_flight--;
	if (io->nowait && (io->result == -EAGAIN || io->result == -EOPNOTSUPP)) {
		if (io->result == -EOPNOTSUPP)
			atomic_store_explicit(&reader->seg->nowait, false, memory_order_relaxed);
		defer(reader, read);
		return;
	}
	ctr_add(CTR_flash_bytes_read, io->bytes);
	lat_record(LAT_flash_read, now_ns - io->submitted_ns, 1);
	if (io->result == (int64_t)io->bytes)
		prefetch_record(read);
	dev_read_faults((uint8_t *)read->buffer + (read->bytes - (const uint8_t *)read->buffer),
			read->length < read->available ? read->length : read->available, &io->result);
	if (io->result == (int64_t)io->bytes)
		finish(reader, read, FS_OK);
	else
		fail(reader, read, io->result < 0 ? (int)-io->result : EIO);
}

static void take_back(struct seg_reader *reader)
{
	struct dev_io *back;
	uint64_t now_ns;

	/* Without the lock: who has just put something there signals after it, so it is found then. */
	if (!atomic_load_explicit(&reader->back, memory_order_relaxed))
		return;
	lock_acquire(&reader->back_lock);
	back = atomic_load_explicit(&reader->back, memory_order_relaxed);
	atomic_store_explicit(&reader->back, NULL, memory_order_relaxed);
	lock_release(&reader->back_lock);
	now_ns = clk_now_ns(reader->seg->clock);
	while (back) {
		struct dev_io *io = back;

		back = io->next;
		completed(reader, io, false, now_ns);
	}
}

static void reap(struct seg_reader *reader)
{
	struct dev_io *ready[BATCH];
	int n;

	do {
		n = reader->seg->device->ops->reap(reader->queue, ready, BATCH, false);
		uint64_t now_ns = n > 0 ? clk_now_ns(reader->seg->clock) : 0;
		for (int i = 0; i < n; i++)
			completed(reader, ready[i], true, now_ns);
	} while (n == (int)BATCH);
	take_back(reader);
}

unsigned seg_reader_poll(struct seg_reader *reader)
{
	struct list finished;
	struct seg_read *read;
	unsigned count = 0;

	if (reader->in_flight > 0) {
		reap(reader);
		seg_reader_flush(reader); /* there may be room now */
	}
	/* What done submits and fails at once waits for the next poll, which its signal asks for. */
	finished = reader->finished;
	reader->finished = (struct list){0};
	while ((read = take(&finished)) != NULL) {
		reader->outstanding--;
		count++;
		read->done(read);
	}
	return count;
}

void seg_read_release(struct seg_reader *reader, struct seg_read *read)
{
	if (!read->buffer)
		return;
	pool_give(&reader->pool, read->buffer, read->buffer_bytes);
	read->buffer = NULL;
	read->bytes = NULL;
	reader->buffers--;
}

uint64_t seg_reader_memory(const struct seg_reader *reader)
{
	return atomic_load_explicit(&reader->pool.bytes, memory_order_relaxed);
}

unsigned seg_reader_in_flight(const struct seg_reader *reader)
{
	return reader->outstanding;
}
