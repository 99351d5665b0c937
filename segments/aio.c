/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of asynchronous I/O: the one file that knows libaio.
 *
 * The reaper takes completions from the ring that the kernel shares with the process, without a system call.
 * It calls io_getevents to wait, and on kernels with an unknown ring.
 *
 * The kernel hands a request from the submitting thread to the reaping one. The thread sanitizer can't see
 * that; release and acquire on the request tell it.
 */
#include <errno.h>
#include <libaio.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/log.h"
#include "segments/device_internal.h"

#ifdef __SANITIZE_THREAD__
#define FS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FS_TSAN 1
#endif
#endif
#ifdef FS_TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define TSAN_ACQUIRE(address) __tsan_acquire(address)
#define TSAN_RELEASE(address) __tsan_release(address)
#else
#define TSAN_ACQUIRE(address) ((void)(address))
#define TSAN_RELEASE(address) ((void)(address))
#endif

#define BATCH 128u

/*
 * The ring lies at the context's address. The kernel writes an event, then moves tail, then adds to the
 * eventfd. The reaper moves head, and reads no event that head has passed. Both are below slots.
 * io_submit reads head when it runs out of room. The kernel has a barrier between the event and tail, and so has the
 * reaper: it acquires from tail before it reads an event, and releases head after it. So the order holds on arm64 too.
 */
struct ring {
	uint32_t id;
	uint32_t slots;
	_Atomic uint32_t head; /* ours */
	_Atomic uint32_t tail; /* the kernel's */
	uint32_t magic;
	uint32_t compatible_features;
	uint32_t incompatible_features;
	uint32_t header_bytes;
	struct io_event event[];
};

#define RING_MAGIC 0xa10a10a1u

struct dev_queue {
	io_context_t context;
	struct ring *ring; /* NULL: its layout is unknown */
	int fd; /* of requests that name no device */
	int eventfd;
};

_Static_assert(sizeof(struct iocb) <= sizeof(((struct dev_io *)0)->native), "an iocb fits");
_Static_assert(sizeof(struct ring) == 32 && sizeof(_Atomic uint32_t) == 4, "the kernel's layout");

/* NULL for a ring of unknown layout. libaio reads there too, so any kernel has readable memory there. */
static struct ring *known_ring(io_context_t context)
{
	struct ring *ring = (struct ring *)context;

	return ring->magic == RING_MAGIC && ring->incompatible_features == 0 && ring->header_bytes == sizeof(*ring) &&
			       ring->slots > 0
		       ? ring
		       : NULL;
}

int aio_queue_create(int fd, unsigned depth, int eventfd, struct dev_queue **out)
{
	struct dev_queue *queue = mem_zalloc(sizeof(*queue));
	int rc;

	*out = NULL;
	if (!queue)
		return -ENOMEM;
	queue->fd = fd;
	queue->eventfd = eventfd;
	rc = fault_fires(FAULT_aio_setup) ? -EAGAIN : io_setup((int)depth, &queue->context);
	if (rc != 0) {
		if (rc == -EAGAIN)
			log_limited(LOG_LEVEL_ERROR,
				    "flash: no asynchronous I/O context is left: raise /proc/sys/fs/aio-max-nr");
		mem_free(queue);
		return rc;
	}
	queue->ring = known_ring(queue->context);
	*out = queue;
	return 0;
}

void aio_queue_destroy(struct dev_queue *queue)
{
	io_destroy(queue->context);
	mem_free(queue);
}

static struct iocb *aio_prepare(struct dev_queue *queue, struct dev_io *io)
{
	struct iocb *iocb = (struct iocb *)io->native;
	int fd = io->device ? io->device->fd : queue->fd;

	must(io->magic == DEV_IO_MAGIC);
	if (io->write)
		io_prep_pwrite(iocb, fd, io->buffer, io->bytes, (long long)io->offset);
	else
		io_prep_pread(iocb, fd, io->buffer, io->bytes, (long long)io->offset);
	if (io->nowait)
		iocb->aio_rw_flags = RWF_NOWAIT;
	if (queue->eventfd >= 0)
		io_set_eventfd(iocb, queue->eventfd);
	iocb->data = io;
	TSAN_RELEASE(io);
	return iocb;
}

int aio_submit(struct dev_queue *queue, struct dev_io **ios, unsigned n)
{
	struct iocb *batch[BATCH];
	/* Read before the requests are released: afterwards they may complete, and on the submitter
	   thread the reader and its queue may be gone before io_submit returns. */
	io_context_t context = queue->context;
	int rc;

	if (n > BATCH)
		n = BATCH;
	for (unsigned i = 0; i < n; i++)
		batch[i] = aio_prepare(queue, ios[i]);
	do
		rc = io_submit(context, (long)n, batch);
	while (rc == -EINTR);
	return rc;
}

static struct dev_io *aio_completed(const struct io_event *event)
{
	struct dev_io *io = event->data;

	TSAN_ACQUIRE(io);
	must(io->magic == DEV_IO_MAGIC); /* the kernel gives back our own pointer */
	io->result = (int64_t)(long)event->res;
	return io;
}

static unsigned take_from_ring(struct ring *ring, struct dev_io **out, unsigned max)
{
	uint32_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint32_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	unsigned n = 0;

	while (head != tail && n < max) {
		out[n++] = aio_completed(&ring->event[head]);
		head = head + 1 == ring->slots ? 0 : head + 1;
	}
	if (n > 0)
		atomic_store_explicit(&ring->head, head, memory_order_release);
	return n;
}

int aio_reap(struct dev_queue *queue, struct dev_io **out, unsigned max, bool wait)
{
	struct io_event events[BATCH];
	struct timespec none = { 0 };
	int n;

	if (max > BATCH)
		max = BATCH;
	if (queue->ring) {
		n = (int)take_from_ring(queue->ring, out, max);
		if (n > 0 || !wait)
			return n;
	}
	do
		n = io_getevents(queue->context, wait ? 1 : 0, (long)max, events, wait ? NULL : &none);
	while (n == -EINTR);
	for (int i = 0; i < n; i++)
		out[i] = aio_completed(&events[i]);
	return n;
}
