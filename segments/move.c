/* SPDX-License-Identifier: BSD-3-Clause */
#include "segments/move.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/metrics/counters.h"
#include "segments/path.h"
#include "segments/segments_internal.h"

#define PIECE_BYTES (1u << 20)

struct seg_move {
	struct dev *to; /* the device that is copied to; NULL once it is the flash */
	unsigned number; /* its number in seg->devices; the other device has the other one */
	uint32_t segments; /* that have room there: the first ones */
	uint64_t device_bytes;
	char *path; /* of a file that this move has made; NULL: there is none */
	uint64_t *copied; /* of each segment: the sequence whose bytes are there; 0: none */
	uint8_t *piece;
	uint32_t segment; /* that is being copied, up to offset, with this sequence; 0: none is */
	uint64_t sequence, offset;
	uint64_t unreadable;
	struct dev *from; /* the device that is left; NULL before the switch */
	bool erased; /* it has no superblock any more, or can't be written */
};

/* ---- begin and end --------------------------------------------------------------------------- */

static void move_free(struct seg_move *move)
{
	mem_free(move->path);
	mem_free(move->copied);
	mem_free(move->piece);
	mem_free(move);
}

static struct seg_move *move_create(const struct segments *seg)
{
	struct seg_move *move = mem_zalloc(sizeof(*move));

	if (!move)
		return NULL;
	move->copied = mem_zalloc(seg->segments * sizeof(*move->copied));
	move->piece = mem_aligned(SEG_PAGE, PIECE_BYTES);
	if (move->copied && move->piece)
		return move;
	move_free(move);
	return NULL;
}

/* Makes sure that no start takes the device for a flash. 0 or a negative errno. */
static int erase_super(struct dev *device, uint8_t *page)
{
	int error = 0;

	memset(page, 0, SEG_PAGE);
	for (unsigned copy = 0; copy < LAYOUT_SUPER_COPIES && error == 0; copy++)
		error = device->ops->write(device, page, SEG_PAGE, copy * LAYOUT_SUPER_COPY_OFFSET);
	return error == 0 ? device->ops->flush(device) : error;
}

static int open_device(const struct segments *seg, const struct seg_move_config *config, struct seg_move *move,
		       char reason[256])
{
	bool made = access(config->path, F_OK) != 0;
	int64_t bytes = seg_flash_bytes(config->path, config->flash_bytes);
	struct seg_config open = { .path = config->path,
				   .direct = seg->direct_wanted,
				   .read_unit = seg->read_unit_wanted };
	int rc = bytes < 0 ? (int)bytes : FS_OK;

	open.flash_bytes = (bytes > 0 ? (uint64_t)bytes : seg->device->bytes) & ~(uint64_t)(SEG_PAGE - 1);
	if (rc == FS_OK && seg_count_for(open.flash_bytes, seg->segment_bytes) < 2)
		rc = FS_ERANGE;
	if (rc == FS_OK)
		rc = dev_open(&move->to, &open);
	if (rc != FS_OK) {
		snprintf(reason, 256, "%.150s: %s", config->path,
			 rc == FS_ESYS     ? strerror(errno)
			 : rc == FS_ERANGE ? "at least two segments must fit"
					   : fs_strerror(rc));
		return rc;
	}
	if (made && (move->path = mem_zalloc(strlen(config->path) + 1)))
		memcpy(move->path, config->path, strlen(config->path));
	return FS_OK;
}

int seg_move_begin(struct segments *seg, const struct seg_move_config *config, char reason[256])
{
	struct seg_move *move = move_create(seg);
	int rc = FS_OK, error;

	must(!seg->move && !seg->stream);
	rescue_cancel(seg);
	if (!move) {
		snprintf(reason, 256, "%s", fs_strerror(FS_ENOMEM));
		return FS_ENOMEM;
	}
	device_asked(seg);
	if (config->device)
		move->to = config->device;
	else
		rc = open_device(seg, config, move, reason);
	device_answered(seg);
	if (rc != FS_OK) {
		move_free(move);
		return rc;
	}
	must(move->to->ops == seg->ops); /* else the readers' queues would not take requests for it */
	seg->move = move;
	move->device_bytes = move->to->bytes;
	move->segments = seg_count_for(move->to->bytes, seg->segment_bytes);
	if (move->segments > seg->super.segments)
		move->segments = seg->super.segments;
	move->number = seg->devices[0] == seg->device ? 1 : 0;
	device_asked(seg);
	error = erase_super(move->to, move->piece);
	device_answered(seg);
	if (error == 0 && move->segments >= 2)
		return FS_OK;
	rc = error ? FS_EIO : FS_ERANGE;
	snprintf(reason, 256, "%.150s: %s", config->path ? config->path : "device",
		 error ? strerror(-error) : "at least two segments must fit");
	seg_move_cancel(seg);
	return rc;
}

/* Closes the new device, and removes the file that was made for it. */
static void drop_new_device(struct segments *seg)
{
	struct seg_move *move = seg->move;

	seg->ops->close(move->to);
	if (move->path && unlink(move->path) != 0)
		log_warn("flash: %s can't be removed: %s", move->path, strerror(errno));
	atomic_store_explicit(&seg->usable, seg->super.segments, memory_order_relaxed);
	seg->move = NULL;
	move_free(move);
}

void seg_move_cancel(struct segments *seg)
{
	struct seg_move *move = seg->move;

	must(move && move->to);
	device_asked(seg);
	/* The write of its superblock may have failed in part. */
	(void)!erase_super(move->to, move->piece);
	device_answered(seg);
	drop_new_device(seg);
}

void move_close(struct segments *seg)
{
	struct seg_move *move = seg->move;

	if (!move)
		return;
	if (move->to) { /* it has no superblock, and a device that hangs must not hold up the end */
		drop_new_device(seg);
		return;
	}
	seg->ops->close(move->from);
	seg->move = NULL;
	move_free(move);
}

uint64_t seg_move_bytes(const struct segments *seg)
{
	must(seg->move);
	return seg->move->device_bytes;
}

/* ---- copying --------------------------------------------------------------------------------- */

static bool is_live(const struct segments *seg, uint32_t segment)
{
	return seg_live_at(seg, segment)->state == SEG_LIVE;
}

/* Counts the live segments, and those whose bytes are there. Without the lock, as the cleaner writes states. */
static void count_segments(const struct segments *seg, struct seg_moved *out)
{
	const struct seg_move *move = seg->move;

	for (uint32_t n = 0; n < move->segments; n++) {
		if (!is_live(seg, n))
			continue;
		out->live++;
		out->copied += move->copied[n] == seg_sequence(seg, n);
	}
}

/* Chooses the segment to be copied. One that was copied and written again comes first: then it is behind by a segment, and not
   by as many as are written while the rest is copied. */
static bool choose_segment(struct segments *seg, bool paced)
{
	struct seg_move *move = seg->move;
	uint32_t first = UINT32_MAX;

	if (move->sequence != 0 && is_live(seg, move->segment) && seg_sequence(seg, move->segment) == move->sequence &&
	    (!paced || move->copied[move->segment] != 0))
		return true;
	move->sequence = 0;
	for (uint32_t n = 0; n < move->segments; n++) {
		if (!is_live(seg, n) || move->copied[n] == seg_sequence(seg, n))
			continue;
		if (move->copied[n] != 0) {
			first = n;
			break;
		}
		if (first == UINT32_MAX && !paced)
			first = n;
	}
	if (first == UINT32_MAX)
		return false;
	move->segment = first;
	move->sequence = seg_sequence(seg, first);
	move->offset = 0;
	return true;
}

static void read_piece(struct segments *seg, uint64_t bytes)
{
	struct seg_move *move = seg->move;
	uint32_t unreadable =
		dev_read_what_can_be(seg->device, move->piece, bytes, seg_offset(seg, move->segment) + move->offset);

	move->unreadable += unreadable;
	if (unreadable > 0)
		atomic_store_explicit(&seg_live_at(seg, move->segment)->partial, true, memory_order_relaxed);
}

/* 0 or a negative errno of the new device. */
static int copy_piece(struct segments *seg, uint64_t *written)
{
	struct seg_move *move = seg->move;
	uint64_t left = seg->segment_bytes - move->offset, bytes = left < PIECE_BYTES ? left : PIECE_BYTES;
	uint64_t to = seg_offset_by_number(seg, move->segment) + move->offset;
	int error;

	read_piece(seg, bytes);
	error = move->to->ops->write(move->to, move->piece, bytes, to);
	if (error == 0)
		error = move->to->ops->settle(move->to, to, bytes);
	if (error != 0)
		return error;
	*written = bytes;
	ctr_add(CTR_flash_moved_bytes, bytes);
	move->offset += bytes;
	if (move->offset < seg->segment_bytes)
		return 0;
	move->copied[move->segment] = move->sequence;
	move->sequence = 0;
	return 0;
}

/* All of the live segments are there. Looks for what else is missing. 0 or a negative errno. */
static int complete(struct segments *seg, bool paced, struct seg_moved *out)
{
	struct seg_move *move = seg->move;
	struct dev *to = move->to;

	if (seg->ops->allocate && atomic_load(&to->allocated) < to->bytes) {
		uint64_t before = atomic_load(&to->allocated);
		int error = paced ? 0 : seg->ops->allocate(to, PIECE_BYTES);

		out->bytes = atomic_load(&to->allocated) - before;
		if (out->bytes > PIECE_BYTES) /* bytes that the copies have allocated are passed over */
			out->bytes = PIECE_BYTES;
		return error;
	}
	atomic_store_explicit(&seg->usable, move->segments, memory_order_relaxed);
	for (uint32_t n = move->segments; n < seg->segments; n++) {
		if (!is_live(seg, n))
			continue;
		out->phase = SEG_MOVE_EMPTYING;
		out->segment = n;
		return 0;
	}
	out->phase = SEG_MOVE_READY;
	return to->ops->flush(to);
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* Closes the old device if no read can be under way there. */
static void leave(struct segments *seg, struct seg_moved *out)
{
	struct seg_move *move = seg->move;

	if (!move->erased) {
		int error;

		device_asked(seg);
		error = erase_super(move->from, move->piece);
		device_answered(seg);
		if (error != 0)
			log_warn("flash: the superblock of the old device can't be erased: %s", strerror(-error));
		move->erased = true;
	}
	out->phase = homes_in_use(seg, 1 - move->number) ? SEG_MOVE_LEAVING : SEG_MOVE_NONE;
	if (out->phase == SEG_MOVE_NONE)
		move_close(seg);
}

int seg_move_step(struct segments *seg, bool paced, struct seg_moved *out)
{
	struct seg_move *move = seg->move;
	int error = 0;

	*out = (struct seg_moved){ .phase = SEG_MOVE_NONE };
	if (!move)
		return FS_OK;
	must(!seg->stream);
	out->unreadable = move->unreadable;
	if (!move->to) {
		leave(seg, out);
		return FS_OK;
	}
	out->phase = SEG_MOVE_COPYING;
	count_segments(seg, out);
	/* Reads from a device that is offline would only take time. */
	if (health_offline(seg) && out->copied < out->live)
		return FS_OK;
	device_asked(seg);
	if (choose_segment(seg, paced))
		error = copy_piece(seg, &out->bytes);
	else if (out->copied == out->live)
		error = complete(seg, paced, out);
	device_answered(seg);
	out->unreadable = move->unreadable;
	errno = -error;
	return error == 0 ? FS_OK : FS_EIO;
}

/* ---- the switch ------------------------------------------------------------------------------ */

uint64_t seg_move_epoch(const struct segments *seg)
{
	return seg->super.attach_epoch + SEG_MOVE_EPOCHS;
}

/* They are left behind with the device. */
static void forget_bad_homes(struct segments *seg)
{
	lock_acquire(&seg->lock);
	for (uint32_t n = 0; n < seg->segments; n++)
		seg_live_at(seg, n)->use = HOME_IN_USE;
	lock_release(&seg->lock);
}

int seg_move_switch(struct segments *seg, uint64_t region_id)
{
	struct seg_move *move = seg->move;
	struct layout_super super = seg->super;
	int rc;

	must(move && move->to);
	super.first_epoch = super.first_epoch ? super.first_epoch : super.attach_epoch;
	super.attach_epoch = seg_move_epoch(seg);
	seg_note_segments(seg, &super, move->segments);
	super.flash_bytes = move->to->bytes;
	super.asked_bytes = 0;
	super.region_id = region_id;
	homes_clear(&super);
	device_asked(seg);
	rc = super_store(move->to, seg->clock, &super);
	device_answered(seg);
	if (rc != FS_OK)
		return rc;
	/* Other threads read the other fields, which are the same. */
	seg->super.generation = super.generation;
	seg->super.first_epoch = super.first_epoch;
	__atomic_store_n(&seg->super.attach_epoch, super.attach_epoch, __ATOMIC_RELAXED);
	seg->super.segments = super.segments;
	seg->super.index_segments = super.index_segments;
	seg->super.index_flash_bytes = super.index_flash_bytes;
	seg->super.flash_bytes = super.flash_bytes;
	seg->super.asked_bytes = super.asked_bytes;
	__atomic_store_n(&seg->super.region_id, super.region_id, __ATOMIC_RELAXED);
	seg->super.checksum = super.checksum;
	homes_clear(&seg->super);
	move->from = seg->device;
	seg->devices[move->number] = seg->device = move->to;
	for (uint32_t n = 0; n < seg->segments; n++)
		atomic_store(&seg_live_at(seg, n)->home, seg_offset_by_number(seg, n) + move->number);
	forget_bad_homes(seg);
	move->to = NULL;
	seg->allocate_at_ms = 0;
	seg->allocate_tenth = 0;
	atomic_store_explicit(&seg->allocate_error, 0, memory_order_relaxed);
	seg_note_device(seg);
	(void)seg_revive(seg); /* what couldn't be written is left behind */
	return FS_OK;
}

/* ---- the start after a move to a smaller device ------------------------------------------------ */

bool seg_read_shape(const struct seg_config *config, struct seg_shape *out)
{
	struct seg_config look = { .path = config->path,
				   .flash_bytes = config->flash_bytes & ~(uint64_t)(SEG_PAGE - 1),
				   .direct = SEG_DIRECT_OFF,
				   .look_only = true };
	struct dev *device = config->device;
	struct layout_super super;
	uint64_t generation;
	/* dev_open has log lines for what seg_look will refuse. */
	int rc = device ? FS_OK : seg_check_path(config->path, false);

	if (rc == FS_OK && !device)
		rc = dev_open(&device, &look);
	if (rc == FS_OK)
		rc = super_load(device, &super, &generation);
	if (device && !config->device)
		device->ops->close(device);
	if (rc != FS_OK)
		return false;
	*out = (struct seg_shape){ .segments = super.segments,
				   .functions = super.functions,
				   .segment_bytes = super.segment_bytes,
				   .index_segments = super.index_segments,
				   .index_flash_bytes = super.index_flash_bytes,
				   .flash_bytes = super.flash_bytes,
				   .asked_bytes = super.asked_bytes,
				   .clean = super_is_clean(&super) };
	return true;
}
