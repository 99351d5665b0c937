/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of asynchronous I/O: the one file that knows libaio.
 *
 * The kernel hands a request from the thread that submits to the one that reaps, which the thread
 * sanitizer can't see; release and acquire on the request tell it.
 */
#include <errno.h>
#include <libaio.h>
#include <string.h>
#include <sys/uio.h>

#include "base/alloc.h"
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

#define BATCH 64u

struct dev_queue {
	io_context_t context;
	int fd;
	int eventfd;
};

_Static_assert(sizeof(struct iocb) <= sizeof(((struct dev_io *)0)->native), "an iocb fits");

int aio_queue_create(int fd, unsigned depth, int eventfd, struct dev_queue **out)
{
	struct dev_queue *queue = mem_zalloc(sizeof(*queue));
	int rc;

	*out = NULL;
	if (!queue)
		return -ENOMEM;
	queue->fd = fd;
	queue->eventfd = eventfd;
	rc = io_setup((int)depth, &queue->context);
	if (rc != 0) {
		mem_free(queue);
		return rc;
	}
	*out = queue;
	return 0;
}

void aio_queue_destroy(struct dev_queue *queue)
{
	io_destroy(queue->context);
	mem_free(queue);
}

static struct iocb *prepare(struct dev_queue *queue, struct dev_io *io)
{
	struct iocb *iocb = (struct iocb *)io->native;

	if (io->write)
		io_prep_pwrite(iocb, queue->fd, io->buffer, io->bytes, (long long)io->offset);
	else
		io_prep_pread(iocb, queue->fd, io->buffer, io->bytes, (long long)io->offset);
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
	/* Read before the requests are released: once they are, they may complete, and on the
	   submitter thread the reader and its queue may be gone before io_submit returns. */
	io_context_t context = queue->context;
	int rc;

	if (n > BATCH)
		n = BATCH;
	for (unsigned i = 0; i < n; i++)
		batch[i] = prepare(queue, ios[i]);
	do
		rc = io_submit(context, (long)n, batch);
	while (rc == -EINTR);
	return rc;
}

int aio_reap(struct dev_queue *queue, struct dev_io **out, unsigned max, bool wait)
{
	struct io_event events[BATCH];
	struct timespec none = {0};
	int n;

	if (max > BATCH)
		max = BATCH;
	do
		n = io_getevents(queue->context, wait ? 1 : 0, (long)max, events, wait ? NULL : &none);
	while (n == -EINTR);
	for (int i = 0; i < n; i++) {
		struct dev_io *io = events[i].data;

		TSAN_ACQUIRE(io);
		io->result = (int64_t)(long)events[i].res;
		out[i] = io;
	}
	return n;
}
