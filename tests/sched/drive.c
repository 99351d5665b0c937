/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sched/drive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "segments/device_internal.h"
#include "tests/sched/fibers.h"
#include "tests/sched/finding.h"
#include "tests/sched/wraps.h"

#define SECTOR 512u
#define MILLION 1000000u
#define TAIL 50u
#define HANG_NS 2000000000ull
#define HANGS (DRIVE_HANGS_S * 1000000000ull / HANG_NS - 1)
#define REQUESTS_MOST 2048u

enum kind { READ, WRITE, FLUSH };

struct request {
	bool used, done;
	enum kind kind;
	void *buffer;
	uint64_t bytes, offset;
	int64_t result;
	uint64_t writes; /* FLUSH: those done when it came */
	struct dev_queue *queue; /* NULL: its caller waits */
	struct dev_io *io;
};

struct sim_device {
	struct dev dev;
	struct drive *drive;
};

struct dev_queue {
	int eventfd;
	unsigned depth, held;
	struct dev_io *done, **last;
};

static struct request requests[REQUESTS_MOST];
static struct drive *the_drive; /* of this life */
static unsigned under_way;

/* ---- the medium ------------------------------------------------------------------------------ */

static bool happens(struct drive *drive, uint32_t chance)
{
	bool yes = chance > 0 && drive->armed && rng_below(&drive->rng, MILLION) < chance;

	drive->faults += yes;
	return yes;
}

static void put(struct drive *drive, const uint8_t *bytes, uint64_t length, uint64_t offset)
{
	drive->writes++;
	memcpy(drive->now + offset, bytes, length);
	for (uint64_t page = offset / SEG_PAGE; page <= (offset + length - 1) / SEG_PAGE; page++)
		drive->written[page] = drive->writes;
	for (unsigned i = 0; i < DRIVE_BAD_MOST; i++)
		if (drive->bad[i] >= offset && drive->bad[i] < offset + length)
			drive->bad[i] = 0;
}

static int64_t do_read(struct drive *drive, const struct request *request)
{
	uint64_t end = request->offset + request->bytes;

	drive->reads++;
	if (end > drive->bytes || (request->offset >= drive->segments_from && happens(drive, drive->options.read_eio)))
		return -EIO;
	for (unsigned i = 0; i < DRIVE_BAD_MOST; i++)
		if (drive->bad[i] && drive->bad[i] >= request->offset && drive->bad[i] < end)
			return -EIO;
	memcpy(request->buffer, drive->now + request->offset, request->bytes);
	if (request->offset >= drive->segments_from && happens(drive, drive->options.read_flip))
		((uint8_t *)request->buffer)[rng_below(&drive->rng, request->bytes)] ^= 1u << rng_below(&drive->rng, 8);
	return (int64_t)request->bytes;
}

/* Any other place in the segments, where the same sectors fit. */
static uint64_t misdirect(struct drive *drive, uint64_t bytes)
{
	uint64_t pages = (drive->bytes - drive->segments_from - bytes) / SEG_PAGE;

	return drive->segments_from + SEG_PAGE * rng_below(&drive->rng, pages + 1);
}

static int64_t do_write(struct drive *drive, const struct request *request)
{
	const struct drive_options *options = &drive->options;
	uint64_t bytes = request->bytes, offset = request->offset;

	if (offset + bytes > drive->bytes)
		return -ENOSPC;
	if (offset < drive->segments_from) {
		put(drive, request->buffer, bytes, offset);
		return (int64_t)bytes;
	}
	if (happens(drive, options->write_eio)) {
		put(drive, request->buffer, bytes / 2, offset); /* in part */
		return -EIO;
	}
	if (happens(drive, options->write_lost))
		return (int64_t)bytes;
	if (happens(drive, options->write_torn)) {
		put(drive, request->buffer, SECTOR * (1 + rng_below(&drive->rng, bytes / SECTOR)), offset);
		return (int64_t)bytes;
	}
	if (happens(drive, options->write_misdirected)) {
		put(drive, request->buffer, bytes, misdirect(drive, bytes));
		return (int64_t)bytes;
	}
	put(drive, request->buffer, bytes, offset);
	if (happens(drive, options->write_bad))
		drive->bad[rng_below(&drive->rng, DRIVE_BAD_MOST)] =
			offset + SECTOR * rng_below(&drive->rng, bytes / SECTOR);
	return (int64_t)bytes;
}

static int64_t do_flush(struct drive *drive, const struct request *request)
{
	if (happens(drive, drive->options.flush_eio))
		return -EIO;
	for (uint64_t page = 0; page < drive->bytes / SEG_PAGE; page++) {
		if (drive->written[page] == 0 || drive->written[page] > request->writes)
			continue;
		memcpy(drive->durable + page * SEG_PAGE, drive->now + page * SEG_PAGE, SEG_PAGE);
		drive->written[page] = 0;
	}
	return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static void finish(struct request *request)
{
	struct drive *drive = the_drive;

	request->result = request->kind == READ    ? do_read(drive, request)
			  : request->kind == WRITE ? do_write(drive, request)
						   : do_flush(drive, request);
	request->done = true;
	under_way--;
	if (!request->queue) {
		fiber_wake_all(request);
		return;
	}
	request->io->result = request->result;
	request->io->next = NULL;
	*request->queue->last = request->io;
	request->queue->last = &request->io->next;
	request->used = false;
	if (request->queue->eventfd >= 0)
		wraps_signal(request->queue->eventfd);
	fiber_wake_all(request->queue);
}

static void on_time(void *context)
{
	finish(context);
}

static uint64_t latency(struct drive *drive)
{
	uint64_t ns = drive->options.latency_ns / 2 + rng_below(&drive->rng, drive->options.latency_ns + 1);

	if (happens(drive, drive->options.tail))
		ns *= TAIL;
	if (happens(drive, drive->options.hang))
		ns += HANG_NS * (1 + rng_below(&drive->rng, HANGS));
	return ns;
}

/* Nothing of a segment is written while somebody reads it there, and the other way round. */
static void check_overlap(const struct request *made)
{
	for (const struct request *other = requests; other < requests + REQUESTS_MOST; other++)
		if (other->used && !other->done && other->kind != FLUSH && made->offset >= the_drive->segments_from &&
		    (other->kind == WRITE || made->kind == WRITE) && other->offset < made->offset + made->bytes &&
		    made->offset < other->offset + other->bytes)
			finding("the drive is asked to %s at %llu what is being %s",
				made->kind == WRITE ? "write" : "read", (unsigned long long)made->offset,
				other->kind == WRITE ? "written" : "read");
}

static struct request *begin(struct request made)
{
	struct request *request = requests;

	while (request->used)
		if (++request == requests + REQUESTS_MOST)
			finding("the drive has too many requests");
	if (made.kind != FLUSH)
		check_overlap(&made);
	*request = made;
	request->used = true;
	request->writes = the_drive->writes;
	under_way++;
	fiber_at(fiber_now_ns() + latency(the_drive), on_time, request);
	return request;
}

static int64_t wait_for(struct request *request)
{
	while (!request->done)
		(void)fiber_wait(request, FIBER_FOREVER);
	request->used = false;
	return request->result;
}

static int sim_read(struct dev *dev, void *buffer, uint64_t bytes, uint64_t offset)
{
	int64_t result =
		wait_for(begin((struct request){ .kind = READ, .buffer = buffer, .bytes = bytes, .offset = offset }));

	(void)dev;
	return result < 0 ? (int)result : 0;
}

static int sim_write(struct dev *dev, const void *buffer, uint64_t bytes, uint64_t offset)
{
	void *from = (void *)(uintptr_t)buffer;
	int64_t result =
		wait_for(begin((struct request){ .kind = WRITE, .buffer = from, .bytes = bytes, .offset = offset }));

	(void)dev;
	return result < 0 ? (int)result : 0;
}

static int sim_flush(struct dev *dev)
{
	(void)dev;
	return (int)wait_for(begin((struct request){ .kind = FLUSH }));
}

static int sim_nothing(struct dev *dev, uint64_t offset, uint64_t bytes)
{
	(void)dev, (void)offset, (void)bytes;
	return 0;
}

/* ---- queues ---------------------------------------------------------------------------------- */

static int sim_queue_create(struct dev *dev, unsigned depth, int eventfd, struct dev_queue **out)
{
	struct dev_queue *queue = calloc(1, sizeof(*queue));

	(void)dev;
	if (!queue)
		return -ENOMEM;
	queue->eventfd = eventfd;
	queue->depth = depth;
	queue->last = &queue->done;
	*out = queue;
	return 0;
}

static void sim_queue_destroy(struct dev_queue *queue)
{
	if (queue->held > 0)
		finding("a queue of the device ends with %u requests", queue->held);
	free(queue);
}

static int sim_submit(struct dev_queue *queue, struct dev_io **ios, unsigned n)
{
	unsigned taken = 0;

	fiber_point(1);
	for (; taken < n && queue->held < queue->depth; taken++) {
		struct dev_io *io = ios[taken];

		if (io->offset % (io->write ? SEG_PAGE : DEV_READ_LEAST) || io->bytes == 0)
			finding("a request of the device is not aligned");
		if (io->nowait && happens(the_drive, the_drive->options.again)) {
			io->result = -EAGAIN;
			io->next = NULL;
			*queue->last = io;
			queue->last = &io->next;
			wraps_signal(queue->eventfd);
		} else {
			(void)begin((struct request){ .kind = io->write ? WRITE : READ,
						      .buffer = io->buffer,
						      .bytes = io->bytes,
						      .offset = io->offset,
						      .queue = queue,
						      .io = io });
		}
		queue->held++;
	}
	return taken > 0 || n == 0 ? (int)taken : -EAGAIN;
}

static int sim_reap(struct dev_queue *queue, struct dev_io **out, unsigned max, bool wait)
{
	unsigned n = 0;

	fiber_point(1);
	while (wait && !queue->done)
		(void)fiber_wait(queue, FIBER_FOREVER);
	while (n < max && queue->done) {
		out[n++] = queue->done;
		queue->done = queue->done->next;
	}
	if (!queue->done)
		queue->last = &queue->done;
	queue->held -= n;
	return (int)n;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void sim_close(struct dev *dev)
{
	if (under_way > 0)
		finding("the device is closed with %u requests under way", under_way);
	free(dev);
}

static const struct dev_ops sim_ops = {
	.read = sim_read,
	.write = sim_write,
	.flush = sim_flush,
	.discard = sim_nothing,
	.settle = sim_nothing,
	.queue_create = sim_queue_create,
	.queue_destroy = sim_queue_destroy,
	.submit = sim_submit,
	.reap = sim_reap,
	.close = sim_close,
};

static void *shared(uint64_t bytes)
{
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		finding("no memory for a drive");
	return memory;
}

void drive_make(struct drive *drive, uint64_t bytes, uint64_t segments_from)
{
	drive->bytes = bytes;
	drive->segments_from = segments_from;
	drive->now = shared(bytes);
	drive->durable = shared(bytes);
	drive->written = shared(bytes / SEG_PAGE * sizeof(*drive->written));
}

void drive_free(struct drive *drive)
{
	munmap(drive->now, drive->bytes);
	munmap(drive->durable, drive->bytes);
	munmap(drive->written, drive->bytes / SEG_PAGE * sizeof(*drive->written));
}

struct dev *drive_open(struct drive *drive)
{
	struct sim_device *device = calloc(1, sizeof(*device));

	if (!device)
		finding("no memory for a device");
	device->drive = the_drive = drive;
	drive->armed = false;
	device->dev.ops = &sim_ops;
	device->dev.bytes = drive->bytes;
	device->dev.direct = true;
	device->dev.read_block = DEV_READ_LEAST;
	return &device->dev;
}

void drive_arm(struct drive *drive)
{
	drive->armed = true;
}

void drive_heal(struct drive *drive)
{
	drive->options = (struct drive_options){ .latency_ns = drive->options.latency_ns };
}

bool drive_is_busy(const struct drive *drive)
{
	(void)drive;
	return under_way > 0;
}

void drive_outlives(struct drive *drive)
{
	for (unsigned i = 0; i < REQUESTS_MOST; i++)
		if (requests[i].used && !requests[i].done && requests[i].kind == WRITE)
			(void)do_write(drive, &requests[i]);
}

static void keep_some(struct drive *drive, uint8_t *to, const uint8_t *from, uint64_t bytes)
{
	for (uint64_t at = 0; at < bytes; at += SECTOR)
		if (rng_below(&drive->rng, 2))
			memcpy(to + at, from + at, SECTOR);
}

void drive_power_cut(struct drive *drive)
{
	for (uint64_t page = 0; page < drive->bytes / SEG_PAGE; page++)
		if (drive->written[page])
			keep_some(drive, drive->durable + page * SEG_PAGE, drive->now + page * SEG_PAGE, SEG_PAGE);
	for (unsigned i = 0; i < REQUESTS_MOST; i++)
		if (requests[i].used && !requests[i].done && requests[i].kind == WRITE)
			keep_some(drive, drive->durable + requests[i].offset, requests[i].buffer, requests[i].bytes);
	memcpy(drive->now, drive->durable, drive->bytes);
	memset(drive->written, 0, drive->bytes / SEG_PAGE * sizeof(*drive->written));
}
