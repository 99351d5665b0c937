/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stream that a segment is written through: bytes go in strictly in order, full chunks go out
 * through the device's queue while the next one is filled. Cleaner only.
 */
#ifndef FS_SEGMENTS_WRITER_INTERNAL_H
#define FS_SEGMENTS_WRITER_INTERNAL_H

#include "segments/segments_internal.h"

#define STREAM_BUFFERS 4u
/* Submitting a chunk keeps a processor busy in the kernel, 100 us for this one, and a worker waits. */
#define STREAM_CHUNK_MAX (1u << 20)

struct stream {
	struct segments *seg;
	const struct seg_writer_ops *ops;
	void *context;
	struct dev_queue *queue;
	uint8_t *memory; /* STREAM_BUFFERS chunks */
	struct dev_io io[STREAM_BUFFERS];
	bool busy[STREAM_BUFFERS];
	unsigned current, in_flight;
	uint64_t chunk_bytes;
	uint64_t filled; /* of the current chunk */
	uint64_t start; /* of the segment on the device */
	uint64_t position; /* in the segment: of the next byte */
	uint64_t barrier; /* bytes from this position on are issued when all before are written */
	uint64_t issued;
	int error; /* a negative errno; nothing more is issued then */
};

uint64_t stream_chunk_bytes(uint64_t segment_bytes);
FS_MUST_CHECK int stream_init(struct stream *stream, struct segments *seg, uint32_t segment,
			      const struct seg_writer_ops *ops, void *context);
/* Nothing may be in flight: stream_drain first. */
void stream_fini(struct stream *stream);
/* At the end of the seg: what streams have been written through. */
void stream_release(struct segments *seg);
void stream_put(struct stream *stream, const void *bytes, uint64_t length);
void stream_zero_to(struct stream *stream, uint64_t position);
/* Issues what is filled, waits for all. The position is a multiple of SEG_PAGE. */
void stream_drain(struct stream *stream);
/* Waits for what was issued. */
void stream_wait(struct stream *stream);

uint64_t writer_staging_bytes(uint64_t segment_bytes);

/* segments.c: makes sure that next_sequence may be used. */
FS_MUST_CHECK int seg_reserve_sequence(struct segments *seg);

#endif
