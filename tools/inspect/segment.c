/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/segment.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"

/* A daemon takes less time from the first write of a segment to the write of its header page. */
#define SECOND_LOOK_MS 100

const char *segment_state_text(enum segment_state state)
{
	static const char *const texts[SEGMENT_STATES] = {
		[SEGMENT_EMPTY] = "empty",     [SEGMENT_COMPLETE] = "complete", [SEGMENT_WRITING] = "being written",
		[SEGMENT_TORN] = "cut off",    [SEGMENT_STRANGE] = "left over", [SEGMENT_BROKEN] = "broken",
		[SEGMENT_MISSING] = "missing",
	};

	return texts[state];
}

double segment_fill(const struct segment *segment)
{
	uint64_t areas = segment->header.extents_bytes + segment->header.data_bytes;

	return areas ? (double)segment->header.record_bytes / (double)areas : 0;
}

/* ---- judging --------------------------------------------------------------------------------- */

static void set(struct segment *out, enum segment_state state, const char *why)
{
	out->state = state;
	snprintf(out->why, sizeof(out->why), "%s", why);
}

static bool is_ours(const struct format_super *super, const uint8_t *uuid)
{
	return memcmp(super->uuid, uuid, FORMAT_UUID_BYTES) == 0;
}

/* The header page is no header of this flash. The tail tells whether that is damage. */
static void judge_without_header(enum format_verdict header, bool block_device, bool tail_ours, struct segment *out)
{
	if (header == FORMAT_BROKEN)
		set(out, SEGMENT_BROKEN, "the header page fails its checksum");
	else if (header == FORMAT_UNKNOWN)
		set(out, SEGMENT_BROKEN, "the header is of another version or has an unknown feature");
	else if (header == FORMAT_BLANK && tail_ours && block_device)
		set(out, SEGMENT_TORN, "discarded, not written again"); /* before the header is written */
	else if (tail_ours)
		set(out, SEGMENT_BROKEN,
		    header == FORMAT_BLANK ? "a whole footer, but a header page of zeros"
					   : "a whole footer, but no header");
	else if (header == FORMAT_BLANK)
		set(out, SEGMENT_EMPTY, "");
	else
		set(out, SEGMENT_STRANGE, "holds what was here before the flash was laid out");
}

/* The header is whole and of this flash. */
static void judge_tail(const struct format_super *super, enum format_verdict verdict, struct segment *out)
{
	const struct format_header *header = &out->header;
	const struct format_tail *tail = &out->tail;
	bool ours = verdict == FORMAT_GOOD && is_ours(super, tail->uuid);

	if (verdict == FORMAT_BROKEN)
		set(out, SEGMENT_BROKEN, "the footer's tail fails its checksum");
	else if (verdict == FORMAT_UNKNOWN)
		set(out, SEGMENT_BROKEN, "the footer is of another version or has an unknown feature");
	else if (verdict == FORMAT_NO_MAGIC && tail->header_checksum == header->checksum)
		set(out, SEGMENT_BROKEN, "the footer's tail has lost its magic");
	else if (ours && tail->sequence > header->sequence)
		set(out, SEGMENT_BROKEN, "the footer is younger than the header");
	else if (!ours || tail->sequence < header->sequence)
		set(out, SEGMENT_TORN, "written without its end: the power went, or a write failed");
	else if (format_tail_flaw(tail, header))
		set(out, SEGMENT_BROKEN, format_tail_flaw(tail, header));
	else
		set(out, SEGMENT_COMPLETE, "");
}

void segment_judge(const struct format_super *super, uint32_t number, bool block_device, const uint8_t *first_page,
		   const uint8_t *last_page, struct segment *out)
{
	enum format_verdict header, tail;
	bool tail_ours;

	memset(out, 0, sizeof(*out));
	out->number = number;
	header = format_header_parse(first_page, &out->header);
	tail = format_tail_parse(last_page + FORMAT_PAGE - FORMAT_TAIL_BYTES, &out->tail);
	tail_ours = tail == FORMAT_GOOD && is_ours(super, out->tail.uuid);
	if (header != FORMAT_GOOD) {
		judge_without_header(header, block_device, tail_ours, out);
	} else if (!is_ours(super, out->header.uuid)) {
		set(out, tail_ours ? SEGMENT_BROKEN : SEGMENT_STRANGE,
		    tail_ours ? "the header is of another flash, the footer of this one"
			      : "holds a segment from before the flash was laid out anew");
	} else if (out->header.number != number) {
		snprintf(out->why, sizeof(out->why), "the header is the one of segment %u", out->header.number);
		out->state = SEGMENT_BROKEN;
	} else if (format_header_flaw(&out->header, super)) {
		set(out, SEGMENT_BROKEN, format_header_flaw(&out->header, super));
	} else if (out->header.sequence >= super->sequence_end) {
		set(out, SEGMENT_BROKEN, "header: a sequence number that the superblock has not reserved");
	} else {
		out->header_good = true;
		judge_tail(super, tail, out);
	}
}

/* ---- reading --------------------------------------------------------------------------------- */

/* pages: room for two. */
static void look_once(const struct flash *flash, const struct format_super *super, uint32_t number, uint8_t *pages,
		      struct segment *out)
{
	uint64_t start = format_segment_offset(super, number), end = start + super->segment_bytes;
	struct flash_unread first = { 0 }, last = { 0 };

	if (format_segment_is_bad(super, number)) {
		*out = (struct segment){ .number = number };
		set(out, SEGMENT_STRANGE, "is not used any more: pages of its home can't be read");
		return;
	}
	flash_read(flash, pages, FORMAT_PAGE, start, &first);
	flash_read(flash, pages + FORMAT_PAGE, FORMAT_PAGE, end - FORMAT_PAGE, &last);
	segment_judge(super, number, flash->block_device, pages, pages + FORMAT_PAGE, out);
	if (end > flash->bytes) {
		snprintf(out->why, sizeof(out->why), "the file ends %llu bytes before the segment does",
			 (unsigned long long)(end - flash->bytes));
		out->state = SEGMENT_MISSING;
	} else if (first.pages || last.pages) {
		snprintf(out->why, sizeof(out->why), "%s can't be read: %s",
			 first.pages ? "the header page" : "the footer",
			 strerror(first.pages ? first.error : last.error));
		out->state = SEGMENT_BROKEN;
	}
}

/* Returns whether a daemon may be writing the segment. */
static bool is_doubtful(const struct segment *segment, uint64_t newest)
{
	return segment_failed(segment) ||
	       (segment->state == SEGMENT_TORN && segment->header_good && segment->header.sequence < newest);
}

/* Reads the superblock anew, because a daemon that started meanwhile has reserved more. */
void segment_wait(const struct flash *flash, struct format_super *super)
{
	const struct timespec wait = { .tv_nsec = SECOND_LOOK_MS * 1000000 };
	struct flash_copy copies[FORMAT_COPIES];
	struct format_super now;

	nanosleep(&wait, NULL);
	*super = flash->super;
	if (flash_read_super(flash, copies, &now) && now.segment_bytes == flash->super.segment_bytes)
		*super = now;
}

void segment_set_writing(struct segment *segment)
{
	set(segment, SEGMENT_WRITING, "was overwritten while it was read");
}

static void name_unfinished(struct segment *segment, uint64_t newest, bool in_use)
{
	if (segment->state == SEGMENT_TORN && in_use && (!segment->header_good || segment->header.sequence >= newest))
		set(segment, SEGMENT_WRITING, "its footer is not written yet");
}

int segment_look(const struct flash *flash, uint32_t number, uint64_t newest, struct segment *out)
{
	uint8_t *pages = mem_aligned(FORMAT_PAGE, 2 * FORMAT_PAGE);
	bool in_use = flash_in_use(flash);
	struct format_super super;

	if (!pages)
		return FS_ENOMEM;
	look_once(flash, &flash->super, number, pages, out);
	if (in_use && is_doubtful(out, newest)) {
		segment_wait(flash, &super);
		look_once(flash, &super, number, pages, out);
	}
	name_unfinished(out, newest, in_use);
	mem_free(pages);
	return FS_OK;
}

int segment_changed(const struct flash *flash, const struct segment *segment, bool *changed)
{
	uint8_t *pages = mem_aligned(FORMAT_PAGE, 2 * FORMAT_PAGE);
	struct segment now;

	if (!pages)
		return FS_ENOMEM;
	look_once(flash, &flash->super, segment->number, pages, &now);
	*changed = now.header.checksum != segment->header.checksum || now.header.sequence != segment->header.sequence;
	mem_free(pages);
	return FS_OK;
}

static uint64_t newest_of(const struct segment *all, uint32_t count)
{
	uint64_t newest = 0;

	for (uint32_t n = 0; n < count; n++)
		if (all[n].header_good && all[n].header.sequence > newest)
			newest = all[n].header.sequence;
	return newest;
}

/* Waits once for all doubtful segments. */
static void look_again(const struct flash *flash, uint64_t newest, uint8_t *pages, struct segment *all)
{
	struct format_super super;
	bool waited = false;

	for (uint32_t n = 0; n < flash->super.segments; n++) {
		if (!is_doubtful(&all[n], newest))
			continue;
		if (!waited)
			segment_wait(flash, &super);
		waited = true;
		look_once(flash, &super, n, pages, &all[n]);
	}
}

int segment_look_at_all(const struct flash *flash, struct segment **out, uint64_t *newest)
{
	uint32_t count = flash->super.segments;
	struct segment *all = mem_zalloc(count * sizeof(*all));
	uint8_t *pages = mem_aligned(FORMAT_PAGE, 2 * FORMAT_PAGE);
	bool in_use = flash_in_use(flash);

	*out = all;
	*newest = 0;
	if (!all || !pages) {
		mem_free(pages);
		return FS_ENOMEM;
	}
	for (uint32_t n = 0; n < count; n++)
		look_once(flash, &flash->super, n, pages, &all[n]);
	if (in_use)
		look_again(flash, newest_of(all, count), pages, all);
	*newest = newest_of(all, count);
	for (uint32_t n = 0; n < count; n++)
		name_unfinished(&all[n], *newest, in_use);
	mem_free(pages);
	return FS_OK;
}
