/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The stream through which a segment is written: bytes go in strictly in order, and full chunks go out
 * through the device's queue while the next one is filled. The cleaner only. All calls but stream_chunk_bytes and
 * writer_staging_bytes may block on the device and call ops->pace. Errors collect in stream->error.
 */
#ifndef FS_SEGMENTS_WRITER_INTERNAL_H
#define FS_SEGMENTS_WRITER_INTERNAL_H

#include "segments/segments_internal.h"

#define STREAM_BUFFERS 4u
/* Submitting a chunk of this size keeps a processor busy in the kernel for 100 us, for which a worker waits. */
#define STREAM_CHUNK_MAX (1u << 20)

#define STREAM_MAGIC 0x53545245u
struct stream {
	uint32_t magic; /* STREAM_MAGIC from stream_init to stream_fini */
	struct segments *seg;
	const struct seg_writer_ops *ops;
	void *context;
	struct dev_queue *queue;
	uint8_t *memory; /* STREAM_BUFFERS chunks */
	struct dev_io io[STREAM_BUFFERS];
	bool busy[STREAM_BUFFERS]; /* with the device */
	unsigned current, in_flight;
	uint64_t chunk_bytes;
	uint64_t filled; /* of the current chunk */
	uint64_t start; /* offset of the segment on the device */
	uint64_t position; /* offset of the next byte in the segment */
	uint64_t barrier; /* bytes from this offset on are issued when all before are written */
	uint64_t issued; /* bytes */
	int error; /* a negative errno; nothing more is issued then */
};

/* Returns the bytes of a chunk for segments of this size. */
uint64_t stream_chunk_bytes(uint64_t segment_bytes);
/* Begins the stream of that segment. FS_OK; FS_ENOMEM; FS_ESYS with errno. Buffers and queue are made once and kept by
   seg. */
FS_MUST_CHECK int stream_init(struct stream *stream, struct segments *seg, uint32_t segment,
			      const struct seg_writer_ops *ops, void *context);
/* Ends a stream that has nothing in flight: stream_drain comes first. */
void stream_fini(struct stream *stream);
/* Frees the buffers and the queue of all streams, when the flash is closed. */
void stream_release(struct segments *seg);
/* Appends bytes. */
void stream_put(struct stream *stream, const void *bytes, uint64_t length);
/* Appends zeros up to that offset of the segment, which is not before the present one. */
void stream_zero_to(struct stream *stream, uint64_t position);
/* Issues the present chunk and waits for all. The position is a multiple of SEG_PAGE. */
void stream_drain(struct stream *stream);
/* Waits for all issued chunks. */
void stream_wait(struct stream *stream);

/* Returns the bytes of DRAM that the write of a segment takes at the most. */
uint64_t writer_staging_bytes(uint64_t segment_bytes);

/* segments.c: makes sure that next_sequence may be used, by a superblock write when needed. FS_OK, FS_ENOMEM or
   FS_EIO. */
FS_MUST_CHECK int seg_reserve_sequence(struct segments *seg);

#endif
