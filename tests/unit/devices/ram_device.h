/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A device in memory that misbehaves on request. ram_faults.h has the faults that happen at a given request; the fields
 * here are states of the whole device. It loses power after so many pages written (the one
 * in progress torn in its middle), fails reads or writes, runs full, answers EAGAIN, completes
 * requests in reverse order, is as slow as a clock says.
 */
#ifndef FS_TESTS_RAM_DEVICE_H
#define FS_TESTS_RAM_DEVICE_H

#include <stdatomic.h>

#include "base/clock.h"
#include "segments/device_internal.h"
#include "tests/unit/devices/ram_faults.h"

struct ram_device {
	struct dev dev;
	uint8_t *bytes;
	bool keep; /* bytes outlive close (and belong to the test) */
	uint64_t power; /* pages that may still be written; the next is torn. UINT64_MAX: no cut */
	uint64_t limit; /* writes that reach beyond fail with ENOSPC */
	_Atomic bool fail_reads, fail_writes;
	_Atomic bool again; /* nowait requests complete with EAGAIN */
	bool no_nowait; /* nowait is refused with EOPNOTSUPP */
	bool refuse; /* the queue takes nothing: EAGAIN */
	bool reverse;
	bool hold; /* no read completes until it is false */
	_Atomic bool hold_writes; /* whoever waits for writes waits until it is false */
	/* A drive that reads one after the other, each in so many ns by this clock; NULL: at once. What waits for it is
	   finished in its order, however many queues it came by. */
	const struct clk *clock;
	uint64_t service_ns, busy_until_ns;
	struct clk *
		slow_clock; /* is moved on by slow_us in each read that its caller waits for; NULL: these take no time */
	uint64_t slow_us;
	uint64_t bad_from, bad_to; /* reads that touch these bytes fail with EIO; bad_to 0: none */
	uint64_t flip_at; /* the next read of this byte returns it with one bit flipped; 0: none */
	/* Called before a write and after a flush; NULL: nothing. */
	void (*on_write)(struct ram_device *ram, const void *buffer, uint64_t bytes, uint64_t offset);
	void (*on_flush)(struct ram_device *ram);
	uint64_t reads, writes, flushes, discards;
	uint64_t largest_discard;
	struct ram_faults faults; /* by name and countdown */
};

/* A device of that many bytes over memory (or fresh zeros when NULL). */
struct ram_device *ram_device_create(uint64_t bytes, uint8_t *memory);
uint8_t *ram_memory(uint64_t bytes);

#endif
