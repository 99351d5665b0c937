/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Readers: one per worker, with a queue and an eventfd of its own.
 *
 *   submit -> waiting -> (flush: the device's queue, up to depth) -> reaped by poll -> finished -> done
 *                |             |  EAGAIN                    ^
 *              cancel          +-> submitter thread --------+  (through the queue, or handed_back)
 *
 * A read is in one of four lists: waiting, fresh (the drive has it), late (the drive has had it for longer than
 * the patience) and finished. The first two are in the order of submission, so that their heads are the oldest.
 * read_rate_internal.h decides how many reads are sent, and which would come too late.
 *
 * A read that can't be submitted at all goes to the finished list with its error; the next poll runs its done,
 * never submit or flush.
 *
 * No completion is missed although poll doesn't read the eventfd. Each completion becomes visible first (in the
 * kernel's ring, in back, in the finished list) and is signalled afterwards, and a poll takes all that it sees.
 * A completion that a poll didn't see is signalled after that poll began, so after the owner last learnt of a
 * signal, and an edge-triggered watch tells it again. A completion that the poll did see may be signalled later:
 * the poll after that finds nothing. The count never overflows: each read adds one, and 2^64 reads take longer
 * than any machine lasts.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/metrics/counters.h"
#include "base/metrics/latency.h"
#include "segments/pool_internal.h"
#include "segments/read_lists_internal.h"
#include "segments/read_rate_internal.h"
#include "segments/segments_internal.h"

#define BATCH 128u
#define SLOW_MS 20u

#define READER_MAGIC 0x52454144u
#define READ_MAGIC 0x52444552u

/* The owner's, but for back, the counts of homes and the pool's count of bytes. */
struct seg_reader {
	struct segments *seg;
	struct dev_queue *queue;
	int fd;
	uint32_t magic; /* READER_MAGIC until seg_reader_destroy */
	unsigned depth; /* constant */
	unsigned outstanding; /* reads whose done has not run */
	unsigned buffers; /* not released yet */
	struct list list[LISTS];
	struct home_user homes;
	struct read_rate rate;
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
	must(io->magic == DEV_IO_MAGIC);
	return (struct seg_read *)((char *)io - offsetof(struct seg_read, io));
}

/* ---- lists ----------------------------------------------------------------------------------- */

static unsigned reads_with_drive(const struct seg_reader *reader)
{
	return reader->list[LIST_FRESH].count + reader->list[LIST_LATE].count;
}

static struct read_queue queue_of(const struct seg_reader *reader)
{
	const struct list *fresh = &reader->list[LIST_FRESH];

	return (struct read_queue){
		.with_drive = reads_with_drive(reader),
		.fresh = fresh->count,
		.oldest_ns = fresh->first ? io_of(fresh->first)->submitted_ns : 0,
		.company = fresh->first ? fresh->first->company : 0,
		.waiting = reader->list[LIST_WAITING].count,
	};
}

/* ---- life ------------------------------------------------------------------------------------ */

static void reader_signal(struct seg_reader *reader)
{
	/* It fails only when the count is at its limit; then the descriptor is readable anyway. */
	if (eventfd_write(reader->fd, 1) != 0)
		must(errno == EAGAIN || errno == EINTR);
}

int seg_reader_create(struct seg_reader **out, struct segments *seg, unsigned depth)
{
	struct seg_reader *reader = mem_zalloc(sizeof(*reader));
	int rc;

	*out = NULL;
	if (!reader)
		return FS_ENOMEM;
	reader->magic = READER_MAGIC;
	reader->seg = seg;
	reader->depth = depth ? depth : 1;
	reader->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	rc = reader->fd < 0 ? -errno : seg->ops->queue_create(seg->device, reader->depth, reader->fd, &reader->queue);
	if (rc != 0) {
		if (reader->fd >= 0)
			close(reader->fd);
		mem_free(reader);
		errno = -rc;
		return FS_ESYS;
	}
	pool_init(&reader->pool);
	home_user_init(seg, &reader->homes);
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
		struct pollfd ready = { .fd = reader->fd, .events = POLLIN };
		eventfd_t events;

		if (eventfd_read(reader->fd, &events) != 0)
			must(errno == EAGAIN || errno == EINTR);
		if (seg_reader_poll(reader) == 0)
			poll(&ready, 1, -1);
	}
	must(reader->buffers == 0 && reads_with_drive(reader) == 0);
	reader->magic = 0;
	/* The submitter thread may just be releasing the lock under which it handed the last read back. */
	lock_acquire(&reader->back_lock);
	lock_release(&reader->back_lock);
	reader->seg->ops->queue_destroy(reader->queue);
	home_user_fini(reader->seg, &reader->homes);
	lock_fini(&reader->back_lock);
	close(reader->fd);
	pool_fini(&reader->pool);
	mem_free(reader);
}

void seg_reader_set_idle(struct seg_reader *reader, uint64_t bytes)
{
	reader->pool.idle_most = bytes < SEG_READER_IDLE_MOST ? bytes : SEG_READER_IDLE_MOST;
}

int seg_reader_fd(const struct seg_reader *reader)
{
	return reader->fd;
}

void seg_reader_set_patience(struct seg_reader *reader, uint64_t ns)
{
	reader->rate.patience_ns = ns;
}

bool seg_reader_admits(const struct seg_reader *reader, bool begun, uint64_t now_ns)
{
	const struct read_queue queue = queue_of(reader);

	return read_rate_admits(&reader->rate, &queue, begun, now_ns);
}

/* ---- submission ------------------------------------------------------------------------------ */

/* Called by the submitter thread. All is done under the lock: afterwards the reader may be destroyed. */
static void read_handed_back(struct dev_io *io)
{
	struct seg_reader *reader = read_of(io)->reader;

	lock_acquire(&reader->back_lock);
	must(reader->magic == READER_MAGIC);
	io->next = atomic_load_explicit(&reader->back, memory_order_relaxed);
	atomic_store_explicit(&reader->back, io, memory_order_relaxed);
	reader_signal(reader);
	lock_release(&reader->back_lock);
}

static void read_leave_home(struct seg_reader *reader, struct seg_read *read)
{
	if (read->at_home)
		home_leave(&reader->homes, read->device);
	read->at_home = false;
}

/* Moves a read, in a list or in none yet, to the finished ones. */
static void read_finish(struct seg_reader *reader, struct seg_read *read, int result)
{
	read_leave_home(reader, read);
	read->result = result;
	if (result != FS_OK)
		read->available = 0;
	if (read->list != LIST_NONE)
		reads_remove(reader->list, read);
	reads_append(reader->list, LIST_FINISHED, read);
}

/* Computes the range of blocks. The buffer comes later, so that only a read in flight has one. FS_EINVAL: the read lies
   outside the segment. */
static int read_prepare(struct seg_reader *reader, struct seg_read *read)
{
	const struct segments *seg = reader->seg;
	struct dev_io *io = io_of(read);
	uint64_t unit, first, end;
	struct seg_home home;

	if (read->segment >= seg->segments || read->offset >= seg->segment_bytes || read->length == 0)
		return FS_EINVAL;
	home = home_enter(seg, &reader->homes, read->segment);
	read->at_home = true;
	read->device = (uint8_t)home.number;
	unit = seg_read_unit(seg, home.device);
	first = read->offset & ~(unit - 1);
	end = read->length > seg->segment_bytes - read->offset ? seg->segment_bytes
							       : (read->offset + read->length + unit - 1) & ~(unit - 1);
	read->pages = (unsigned)((end - 1) / SEG_PAGE - first / SEG_PAGE + 1);
	read->transferred = end - first;
	read->available = end - read->offset;
	/* All fields that device and submitter don't set themselves. */
	io->magic = DEV_IO_MAGIC;
	io->bytes = end - first;
	io->offset = home.offset + first;
	io->write = false;
	io->queue = reader->queue;
	io->device = home.device;
	io->handed_back = read_handed_back;
	return FS_OK;
}

static bool read_take_buffer(struct seg_reader *reader, struct seg_read *read)
{
	struct dev_io *io = io_of(read);

	if (read->buffer)
		return true;
	read->buffer = pool_take(&reader->pool, io->bytes, &read->buffer_bytes);
	if (!read->buffer)
		return false;
	reader->buffers++;
	read->bytes = (const uint8_t *)read->buffer + (read->transferred - read->available);
	io->buffer = read->buffer;
	return true;
}

void seg_read_submit(struct seg_reader *reader, struct seg_read *read)
{
	int rc;

	must(reader->magic == READER_MAGIC);
	read->magic = READ_MAGIC;
	read->reader = reader;
	read->buffer = NULL;
	read->bytes = NULL;
	read->available = 0;
	read->pages = 0;
	read->sent_ns = read->answered_ns = 0;
	read->transferred = 0;
	read->list = LIST_NONE;
	read->at_home = false;
	reader->outstanding++;
	rc = health_offline(reader->seg) ? FS_EOFFLINE : read_prepare(reader, read);
	if (rc == FS_OK) {
		reads_append(reader->list, LIST_WAITING, read);
		return;
	}
	read_finish(reader, read, rc);
	reader_signal(reader);
}

bool seg_read_cancel(struct seg_reader *reader, struct seg_read *read)
{
	must(read->magic == READ_MAGIC && read->reader == reader);
	if (read->list != LIST_WAITING)
		return false;
	reads_remove(reader->list, read);
	read_leave_home(reader, read);
	read->magic = 0;
	reader->outstanding--;
	seg_read_release(reader, read);
	return true;
}

/* Notes that the drive has the read from now on, or the submitter thread, which gives it to the drive. */
static void read_sent(struct seg_reader *reader, struct seg_read *read)
{
	reads_move(reader->list, LIST_FRESH, read);
	read->company = reads_with_drive(reader);
	read->sent_ns = io_of(read)->submitted_ns;
	ctr_add(CTR_flash_reads, 1);
}

static void read_defer(struct seg_reader *reader, struct seg_read *read)
{
	ctr_add(CTR_flash_reads_deferred, 1);
	submitter_take(reader->seg->submitter, io_of(read), 0);
}

static void read_fail(struct seg_reader *reader, struct seg_read *read, int error)
{
	ctr_add(CTR_flash_read_errors, 1);
	health_read_error(reader->seg, read->segment, error);
	read_finish(reader, read, FS_EIO);
}

/* Handles the first read of a batch, which the device refused with this errno. */
static void read_refused(struct seg_reader *reader, struct seg_read *read, int error)
{
	struct dev_io *io = io_of(read);

	if (io->nowait && (error == EOPNOTSUPP || error == EINVAL)) {
		atomic_store_explicit(&reader->seg->nowait, false,
				      memory_order_relaxed); /* the next batch has the read again, without NOWAIT */
	} else if (error == EAGAIN) {
		read_sent(reader, read);
		read_defer(reader, read);
	} else {
		read_fail(reader, read, error);
		reader_signal(reader);
	}
}

/* Gathers the next reads for the device, with buffers; returns their number. They stay in the waiting list. */
static unsigned gather_batch(struct seg_reader *reader, struct dev_io **batch, unsigned room, uint64_t now_ns)
{
	bool nowait = atomic_load_explicit(&reader->seg->nowait, memory_order_relaxed);
	unsigned n = 0;

	for (struct seg_read *read = reader->list[LIST_WAITING].first; read && n < BATCH && n < room;
	     read = read->next) {
		if (!read_take_buffer(reader, read))
			break;
		io_of(read)->nowait = nowait;
		io_of(read)->submitted_ns = now_ns;
		batch[n++] = io_of(read);
	}
	return n;
}

/* Finishes the reads that the drive can no longer answer in time, which are at the head of the list. An idle drive is
   given every read that has not expired, however slow the drive was. */
static void give_up_late(struct seg_reader *reader, uint64_t now_ns)
{
	const struct read_queue queue = queue_of(reader);
	uint64_t back_ns = now_ns;
	struct seg_read *read;

	if (queue.with_drive > 0)
		back_ns += read_rate_latency_ns(&reader->rate, &queue, now_ns);
	while ((read = reader->list[LIST_WAITING].first) != NULL && read->expires_ns && read->expires_ns <= back_ns) {
		read_finish(reader, read, FS_ELATE);
		reader_signal(reader);
	}
}

static void give_up_all(struct seg_reader *reader)
{
	while (reader->list[LIST_WAITING].first) {
		read_finish(reader, reader->list[LIST_WAITING].first, FS_EOFFLINE);
		reader_signal(reader);
	}
}

/* Sends a batch of 1 or more from the head of the waiting list, or its beginning, or finishes its first read. */
static void send_batch(struct seg_reader *reader, struct dev_io **batch, unsigned n)
{
	struct list *waiting = &reader->list[LIST_WAITING];
	int taken;

	must(n > 0 && n <= waiting->count);
	if (fault_fires(FAULT_device_read_again)) {
		struct seg_read *read = waiting->first;

		read_sent(reader, read);
		read_defer(reader, read);
		return;
	}
	taken = reader->seg->ops->submit(reader->queue, batch, n);
	must(taken <= (int)n);
	for (int i = 0; i < taken; i++)
		read_sent(reader, waiting->first);
	if (taken <= 0)
		read_refused(reader, waiting->first, taken < 0 ? -taken : EAGAIN);
}

/* Gives waiting reads to the device while it may have more. */
static void send_waiting(struct seg_reader *reader)
{
	struct list *waiting = &reader->list[LIST_WAITING];
	unsigned depth = read_rate_depth(&reader->rate, reader->depth);
	uint64_t now_ns = clk_now_ns(reader->seg->clock);
	struct dev_io *batch[BATCH];

	if (health_offline(reader->seg))
		give_up_all(reader);
	else if (reader->rate.patience_ns > 0)
		give_up_late(reader, now_ns);
	while (waiting->first && reads_with_drive(reader) < depth) {
		unsigned n = gather_batch(reader, batch, depth - reads_with_drive(reader), now_ns);

		if (n > 0) {
			send_batch(reader, batch, n);
		} else {
			read_finish(reader, waiting->first, FS_ENOMEM);
			reader_signal(reader);
		}
	}
}

void seg_reader_flush(struct seg_reader *reader)
{
	must(reader->magic == READER_MAGIC);
	if (reader->list[LIST_WAITING].first)
		send_waiting(reader);
}

/* ---- completion ------------------------------------------------------------------------------ */

/* The device's bytes are in no cache of the processor yet. done runs when all completions have been taken: by
   then header, key and the first of the value are in the cache, and the processor has begun to prefetch the rest. */
static void prefetch_record(const struct seg_read *read)
{
	for (unsigned at = 0; at < 256 && at < read->length; at += 64)
		__builtin_prefetch(read->bytes + at);
}

/* Handles a request that came back from the device or the submitter. slow: the fault point may hold it back. */
static void read_completed(struct seg_reader *reader, struct dev_io *io, bool slow, uint64_t now_ns)
{
	struct seg_read *read = read_of(io);

	must(read->magic == READ_MAGIC && read->reader == reader);
	if (slow && fault_fires(FAULT_device_read_slow)) {
		submitter_take(reader->seg->submitter, io, SLOW_MS);
		return;
	}
	if (io->nowait && (io->result == -EAGAIN || io->result == -EOPNOTSUPP)) {
		if (io->result == -EOPNOTSUPP)
			atomic_store_explicit(&reader->seg->nowait, false, memory_order_relaxed);
		read_defer(reader, read);
		return;
	}
	read->answered_ns = now_ns;
	ctr_add(CTR_flash_bytes_read, io->bytes);
	lat_record(LAT_flash_read, now_ns - io->submitted_ns, 1);
	read_rate_answered(&reader->rate, io->submitted_ns, read->company, now_ns);
	if (io->result == (int64_t)io->bytes)
		prefetch_record(read);
	dev_read_faults((uint8_t *)read->buffer + (read->bytes - (const uint8_t *)read->buffer),
			read->length < read->available ? read->length : read->available, &io->result);
	if (io->result == (int64_t)io->bytes)
		read_finish(reader, read, FS_OK);
	else
		read_fail(reader, read, io->result < 0 ? (int)-io->result : EIO);
}

static void take_handed_back(struct seg_reader *reader)
{
	struct dev_io *back;
	uint64_t now_ns;

	/* Without the lock: the submitter signals after it has put a request there, so that a later poll finds it. */
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
		read_completed(reader, io, false, now_ns);
	}
}

static void reader_reap(struct seg_reader *reader)
{
	struct dev_io *ready[BATCH];
	int n;

	do {
		n = reader->seg->ops->reap(reader->queue, ready, BATCH, false);
		uint64_t now_ns = n > 0 ? clk_now_ns(reader->seg->clock) : 0;
		for (int i = 0; i < n; i++)
			read_completed(reader, ready[i], true, now_ns);
	} while (n == (int)BATCH);
	take_handed_back(reader);
}

/* A read that the drive has had for the whole patience counts as late, once. */
static void look_for_late(struct seg_reader *reader, uint64_t now_ns)
{
	struct list *fresh = &reader->list[LIST_FRESH];
	struct read_rate *rate = &reader->rate;

	if (rate->patience_ns == 0)
		return;
	while (fresh->first && now_ns >= io_of(fresh->first)->submitted_ns + rate->patience_ns) {
		read_rate_late(rate, now_ns);
		reads_move(reader->list, LIST_LATE, fresh->first);
	}
	if (read_rate_silent(rate, now_ns)) {
		health_silent(reader->seg, rate->patience_ns / 1000000);
		read_rate_forgive(rate);
	}
}

unsigned seg_reader_poll(struct seg_reader *reader)
{
	struct list finished;
	unsigned count = 0;

	must(reader->magic == READER_MAGIC);
	if (reads_with_drive(reader) > 0) {
		reader_reap(reader);
		uint64_t now_ns = clk_now_ns(reader->seg->clock);
		read_rate_looked(&reader->rate, now_ns);
		look_for_late(reader, now_ns);
		seg_reader_flush(reader); /* there may be room now */
	}
	/* A read that done submits and that fails at once waits for the next poll, for which its signal asks. */
	finished = reader->list[LIST_FINISHED];
	reader->list[LIST_FINISHED] = (struct list){ 0 };
	for (struct seg_read *read = finished.first, *next; read; read = next) {
		next = read->next;
		must(read->magic == READ_MAGIC && read->list == LIST_FINISHED && reader->outstanding > 0);
		read->list = LIST_NONE;
		read->magic = 0;
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
	must(read->reader == reader && read->magic != READ_MAGIC && reader->buffers > 0);
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
