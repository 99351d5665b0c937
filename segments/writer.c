/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes a planned segment: header page, extents, data, footer, in order of offset. The last page
 * goes out when all others are written, so that a whole footer means a whole segment.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/events.h"
#include "base/log.h"
#include "base/metrics/counters.h"
#include "segments/writer_internal.h"

#define DISCARD_BYTES (32u << 20)

struct job {
	struct segments *seg;
	uint32_t segment;
	const struct seg_plan *plan;
	const void *filter;
	uint64_t filter_length;
	const struct seg_writer_ops *ops;
	void *context;
	struct stream stream;
	struct offsets_list offsets;
};

uint64_t writer_staging_bytes(uint64_t segment_bytes)
{
	/* The chunks, and the list of offsets: at most a 64th of the segment for records of 64 B and more. */
	return STREAM_BUFFERS * stream_chunk_bytes(segment_bytes) + segment_bytes / 64;
}

/* Checks the caller's plan against segment and filter: it is our own, but made elsewhere. */
static int check_plan(struct segments *seg, uint32_t segment, const struct seg_plan *plan, uint64_t filter_length)
{
	uint64_t list = layout_offsets_bound(plan->count, plan->extents, plan->data_bytes / plan->granule);
	enum seg_state state;
	uint32_t next;

	if (seg_next(seg, &next, &state) != FS_OK || next != segment || state != SEG_FREE ||
	    plan->sequence != seg->next_sequence)
		return FS_EINVAL;
	if (plan->data_offset + plan->data_bytes + plan->footer_bytes < seg->segment_bytes ||
	    plan->data_offset + plan->footer_bytes > seg->segment_bytes ||
	    layout_align8(list) + layout_align8(filter_length) + sizeof(struct layout_footer) > plan->footer_bytes)
		return FS_EINVAL;
	return FS_OK;
}

/* Discards the segment's range in steps, so that no read waits for long. */
static void discard_segment(const struct job *job)
{
	const struct segments *seg = job->seg;

	if (!seg->device->block_device)
		return;
	for (uint64_t done = 0; done < seg->segment_bytes; done += DISCARD_BYTES) {
		uint64_t left = seg->segment_bytes - done;

		device_asked(job->seg);
		/* A device that can't discard is written all the same. */
		(void)seg->device->ops->discard(seg->device, seg_offset(seg, job->segment) + done,
						left < DISCARD_BYTES ? left : DISCARD_BYTES);
		device_answered(job->seg);
		if (job->ops->pace)
			job->ops->pace(job->context, 0);
	}
}

/* Is this record of a plan the last one of its bin? */
static bool is_last_of_bin(const struct seg_plan *plan, uint32_t n)
{
	return plan->kind == SEG_BINS &&
	       (n + 1 == plan->count || (plan->placed[n + 1].offset - plan->data_offset) / plan->bin_bytes !=
						(plan->placed[n].offset - plan->data_offset) / plan->bin_bytes);
}

/* Returns the record's length. */
static uint64_t put_record(struct job *job, uint32_t n)
{
	const struct seg_placed *placed = &job->plan->placed[n];
	struct layout_record header;
	struct seg_record record;

	job->ops->record(job->context, n, &record);
	record_header(&job->seg->super, job->plan->sequence, placed->offset, &record, is_last_of_bin(job->plan, n),
		      &header);
	stream_zero_to(&job->stream, placed->offset);
	stream_put(&job->stream, &header, sizeof(header));
	stream_put(&job->stream, record.key, record.key_length);
	stream_put(&job->stream, record.value, record.value_length);
	return seg_record_length(record.key_length, record.value_length);
}

static void put_records(struct job *job)
{
	const struct seg_plan *plan = job->plan;
	uint64_t before = SEG_PAGE, bytes = 0;
	crossing_pair *map = seg_crossings(job->seg, job->segment);

	if (map)
		crossings_clear(map, job->seg->crossings_bytes);
	for (uint32_t n = 0; n < plan->count && !job->stream.error; n++) {
		uint64_t offset = plan->placed[n].offset, length;

		if (n == plan->extents)
			before = plan->data_offset;
		offsets_put(&job->offsets,
			    (offset - before) / (n < plan->extents ? LAYOUT_EXTENT_ALIGN : plan->granule));
		before = offset;
		length = put_record(job, n);
		seg_note_record(job->seg, job->segment, offset, length);
		bytes += length;
	}
	must(job->stream.error || bytes == plan->stats.placed_bytes);
}

static void put_footer(struct job *job, const struct layout_header *header)
{
	struct stream *stream = &job->stream;
	uint64_t end = job->seg->segment_bytes;
	struct layout_footer footer;

	footer_make(job->seg, header, &job->offsets, job->filter, job->filter_length, &footer);
	stream_zero_to(stream, header->footer_offset);
	stream_put(stream, job->offsets.bytes, job->offsets.length);
	stream_zero_to(stream, header->footer_offset + layout_align8(job->offsets.length));
	stream_put(stream, job->filter, job->filter_length);
	stream_zero_to(stream, end - sizeof(footer));
	stream_put(stream, &footer, sizeof(footer));
	stream_drain(stream);
}

static void fill_entry(const struct job *job, const struct layout_header *header)
{
	struct segments *seg = job->seg;
	struct seg_entry *entry = &seg->table->entry[job->segment];

	must(entry->sequence == 0);
	entry_from_header(header, entry);
	entry->written_at_ms = clk_now_ms(seg->clock);
	atomic_store_explicit(&entry->sequence, header->sequence, memory_order_release);
}

static int segment_write_start(struct job *job)
{
	const struct seg_plan *plan = job->plan;
	int rc;

	rc = seg_reserve_sequence(job->seg);
	if (rc != FS_OK)
		return rc;
	job->offsets.capacity = layout_offsets_bound(plan->count, plan->extents, plan->data_bytes / plan->granule);
	job->offsets.bytes = mem_alloc(job->offsets.capacity);
	if (!job->offsets.bytes)
		return FS_ENOMEM;
	rc = stream_init(&job->stream, job->seg, job->segment, job->ops, job->context);
	if (rc != FS_OK)
		mem_free(job->offsets.bytes);
	return rc;
}

/* Writes all of the segment. 0 or a negative errno. */
static int segment_write_out(struct job *job, struct layout_header *header)
{
	struct segments *seg = job->seg;

	header_make(seg, job->segment, job->plan, job->plan->stats.placed_bytes, header);
	discard_segment(job);
	stream_put(&job->stream, header, sizeof(*header));
	put_records(job);
	if (!job->stream.error)
		put_footer(job, header);
	stream_drain(&job->stream);
	if (job->stream.error)
		return job->stream.error;
	device_asked(seg);
	if (seg->durable)
		job->stream.error = seg->device->ops->flush(seg->device);
	if (!job->stream.error)
		job->stream.error =
			seg->device->ops->settle(seg->device, seg_offset(seg, job->segment), seg->segment_bytes);
	device_answered(seg);
	return job->stream.error;
}

static int segment_write_succeeded(struct job *job, const struct layout_header *header)
{
	struct segments *seg = job->seg;

	fill_entry(job, header);
	lock_acquire(&seg->lock);
	seg->newest_sequence = header->sequence;
	lock_release(&seg->lock);
	must(atomic_load(&seg_live_at(seg, job->segment)->sequence) == 0 && header->sequence != 0);
	seg_set_state(seg, job->segment, SEG_LIVE);
	/* Publishes the entry: from here on the segment may be pinned. */
	atomic_store(&seg->live[job->segment].sequence, header->sequence);
	health_proven(seg);
	ctr_add(CTR_segments_written, 1);
	ctr_add(CTR_segment_hashes, job->plan->stats.hashes);
	if (events_on(EVENT_FLASH))
		events_emit(EVENT_FLASH,
			    "type=segment_written segment=%u sequence=%llu objects=%u bytes=%llu record_bytes=%llu",
			    job->segment, (unsigned long long)header->sequence, header->objects,
			    (unsigned long long)seg->segment_bytes, (unsigned long long)header->record_bytes);
	return FS_OK;
}

static int segment_write_failed(struct job *job, int error)
{
	seg_set_state(job->seg, job->segment, SEG_RETIRED);
	ctr_add(CTR_flash_write_errors, 1);
	log_event(LOG_LEVEL_WARN, "segment_write_failed",
		  LOG_FIELDS(LOG_NUMBER("SEGMENT", job->segment), LOG_TEXT("ERROR", strerror(-error))),
		  "flash: segment %u could not be written and is passed over: %s", job->segment, strerror(-error));
	health_error(job->seg, "a write", -error);
	if (seg_all_retired(job->seg))
		health_none_left(job->seg, -error);
	return FS_EIO;
}

void seg_write_wait(struct segments *seg)
{
	if (seg->stream)
		stream_wait(seg->stream);
}

int seg_write(struct segments *seg, uint32_t segment, const struct seg_plan *plan, const void *filter,
	      uint64_t filter_length, const struct seg_writer_ops *ops, void *context, uint64_t *written)
{
	struct job job = {
		.seg = seg,
		.segment = segment,
		.plan = plan,
		.filter = filter,
		.filter_length = filter ? filter_length : 0,
		.ops = ops,
		.context = context,
	};
	struct layout_header *header;
	int rc, error;

	*written = 0;
	rc = check_plan(seg, segment, plan, job.filter_length);
	if (rc == FS_OK && !health_online(seg))
		rc = FS_EOFFLINE;
	if (rc == FS_OK)
		rc = segment_write_start(&job);
	if (rc != FS_OK)
		return rc;
	header = mem_must_zalloc(sizeof(*header));
	must(!seg->stream); /* one segment at a time */
	seg_set_state(seg, segment, SEG_WRITING);
	seg->next_sequence++;
	seg->stream = &job.stream;
	error = segment_write_out(&job, header);
	seg->stream = NULL;
	*written = job.stream.issued;
	rc = error == 0 ? segment_write_succeeded(&job, header) : segment_write_failed(&job, error);
	mem_free(header);
	stream_fini(&job.stream);
	mem_free(job.offsets.bytes);
	return rc;
}
