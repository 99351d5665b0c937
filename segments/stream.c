/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes a segment in chunks, several of them in flight. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/metrics/counters.h"
#include "base/metrics/latency.h"
#include "segments/writer_internal.h"

uint64_t stream_chunk_bytes(uint64_t segment_bytes)
{
	uint64_t bytes = layout_page_up(segment_bytes / 16);

	if (bytes < 2 * SEG_PAGE)
		bytes = 2 * SEG_PAGE;
	return bytes < STREAM_CHUNK_MAX ? bytes : STREAM_CHUNK_MAX;
}

static int prepare_queue(struct segments *seg)
{
	int error = 0;

	if (!seg->staging)
		seg->staging = mem_aligned(SEG_PAGE, STREAM_BUFFERS * stream_chunk_bytes(seg->segment_bytes));
	if (!seg->staging)
		return FS_ENOMEM;
	if (!seg->write_queue)
		error = seg->device->ops->queue_create(seg->device, STREAM_BUFFERS, -1, &seg->write_queue);
	if (error == 0)
		return FS_OK;
	seg->write_queue = NULL;
	errno = -error;
	return FS_ESYS;
}

int stream_init(struct stream *stream, struct segments *seg, uint32_t segment, const struct seg_writer_ops *ops,
		void *context)
{
	int rc = prepare_queue(seg);

	if (rc != FS_OK)
		return rc;
	*stream = (struct stream){
		.magic = STREAM_MAGIC,
		.seg = seg,
		.ops = ops,
		.context = context,
		.queue = seg->write_queue,
		.memory = seg->staging,
		.chunk_bytes = stream_chunk_bytes(seg->segment_bytes),
		.start = seg_offset(seg, segment),
		.barrier = seg->segment_bytes - SEG_PAGE,
	};
	return FS_OK;
}

void stream_release(struct segments *seg)
{
	if (seg->write_queue)
		seg->device->ops->queue_destroy(seg->write_queue);
	mem_free(seg->staging);
	seg->write_queue = NULL;
	seg->staging = NULL;
}

void stream_fini(struct stream *stream)
{
	must(stream->magic == STREAM_MAGIC && stream->in_flight == 0);
	stream->magic = 0;
}

/* Takes the chunks that are written by now; wait: at least one. */
static void stream_reap(struct stream *stream, bool wait)
{
	struct dev_io *done[STREAM_BUFFERS];
	int n;

	if (wait)
		device_asked(stream->seg);
	n = stream->seg->device->ops->reap(stream->queue, done, STREAM_BUFFERS, wait);
	if (wait)
		device_answered(stream->seg);
	uint64_t now_ns = clk_now_ns(stream->seg->clock);

	must(n > 0 || !wait); /* the kernel owns the buffers until it reports them: there is no other way on */
	for (int i = 0; i < n; i++) {
		size_t number = (size_t)(done[i] - stream->io);

		must(number < STREAM_BUFFERS && stream->busy[number] && stream->in_flight > 0);
		lat_record(LAT_flash_write, now_ns - done[i]->submitted_ns, 1);
		stream->busy[number] = false;
		stream->in_flight--;
		if (done[i]->result == (int64_t)done[i]->bytes || stream->error)
			continue;
		stream->error = done[i]->result < 0 ? (int)done[i]->result : -EIO;
	}
}

/* Writes a chunk that the queue doesn't take, and waits for it. */
static void write_in_place(struct stream *stream, const struct dev_io *io)
{
	struct dev *device = stream->seg->device;

	device_asked(stream->seg);
	stream->error = device->ops->write(device, io->buffer, io->bytes, io->offset);
	device_answered(stream->seg);
	lat_record(LAT_flash_write, clk_now_ns(stream->seg->clock) - io->submitted_ns, 1);
}

/* Gives a chunk to the queue, which may block in the kernel. False: the queue doesn't take it. */
static bool stream_submit(struct stream *stream, struct dev_io *io)
{
	bool taken;

	device_asked(stream->seg);
	taken = stream->seg->device->ops->submit(stream->queue, &io, 1) == 1;
	device_answered(stream->seg);
	return taken;
}

static void stream_issue(struct stream *stream)
{
	struct dev_io *io = &stream->io[stream->current];
	uint64_t bytes = stream->filled;

	if (bytes == 0 || stream->error)
		return;
	if (fault_fires(FAULT_device_write_eio)) {
		stream->error = -EIO;
		return;
	}
	must(!stream->busy[stream->current] && bytes <= stream->chunk_bytes && bytes <= stream->position);
	*io = (struct dev_io){
		.magic = DEV_IO_MAGIC,
		.buffer = stream->memory + stream->current * stream->chunk_bytes,
		.bytes = bytes,
		.offset = stream->start + stream->position - bytes,
		.submitted_ns = clk_now_ns(stream->seg->clock),
		.write = true,
		.queue = stream->queue,
		.device = stream->seg->device,
	};
	if (stream_submit(stream, io)) {
		stream->busy[stream->current] = true;
		stream->in_flight++;
	} else {
		write_in_place(stream, io);
	}
	stream->issued += bytes;
	stream->filled = 0;
	ctr_add(CTR_flash_bytes_written, bytes);
	if (stream->ops->pace)
		stream->ops->pace(stream->context, bytes);
	if (stream->in_flight > 0)
		stream_reap(stream, false);
	stream->current = (stream->current + 1) % STREAM_BUFFERS;
	while (stream->busy[stream->current])
		stream_reap(stream, true);
}

/* Appends bytes, or zeros when bytes is NULL. Issues each full chunk. */
static void stream_copy(struct stream *stream, const uint8_t *bytes, uint64_t length)
{
	must(stream->magic == STREAM_MAGIC && stream->position + length <= stream->barrier + SEG_PAGE);
	while (length > 0) {
		uint64_t room = stream->chunk_bytes - stream->filled;
		uint64_t n = length < room ? length : room;
		uint64_t to_barrier = stream->barrier - stream->position;
		uint8_t *to = stream->memory + stream->current * stream->chunk_bytes + stream->filled;

		if (stream->position < stream->barrier && n > to_barrier)
			n = to_barrier;
		if (bytes) {
			memcpy(to, bytes, n);
			bytes += n;
		} else {
			memset(to, 0, n);
		}
		stream->position += n;
		stream->filled += n;
		length -= n;
		if (n == room)
			stream_issue(stream);
		if (stream->position == stream->barrier)
			stream_drain(stream);
		if (stream->error)
			return;
	}
}

void stream_put(struct stream *stream, const void *bytes, uint64_t length)
{
	if (!stream->error)
		stream_copy(stream, bytes, length);
}

void stream_zero_to(struct stream *stream, uint64_t position)
{
	must(stream->error || position >= stream->position);
	if (!stream->error)
		stream_copy(stream, NULL, position - stream->position);
}

void stream_drain(struct stream *stream)
{
	if (!stream->error) {
		must(stream->filled % SEG_PAGE == 0);
		stream_issue(stream);
	}
	stream_wait(stream);
}

void stream_wait(struct stream *stream)
{
	while (stream->in_flight > 0)
		stream_reap(stream, true);
}
