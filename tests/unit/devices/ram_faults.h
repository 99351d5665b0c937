/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a device in memory does wrong, by name and countdown: one table. Several faults may be armed at a time. The modes
 * are those of base/fault.h, with a device's requests for calls: AFTER 3 spares three reads or writes and takes the fourth.
 *
 * The cache of the device is what a power cut is about: with `forgetful`, pages that were written since the last flush are
 * lost with the power. Threads: arming belongs to the test, while no request is under way; the counts are atomic.
 */
#ifndef FS_TESTS_RAM_FAULTS_H
#define FS_TESTS_RAM_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/fault.h"

/* FAULT(name, text), sorted. */
#define RAM_FAULT_TABLE(FAULT) \
	FAULT(flush_eio, "a flush fails with EIO, and makes nothing durable") \
	FAULT(flush_lost, "a flush succeeds, and makes nothing durable") \
	FAULT(power_cut_4096, "the power goes in a write, which is torn between pages of 4 KiB") \
	FAULT(power_cut_512, "the power goes in a write, which is torn between sectors of 512 bytes") \
	FAULT(read_eio, "a read fails with EIO") \
	FAULT(read_flip, "a read returns one flipped bit") \
	FAULT(read_late, "a read takes late_ns longer, by the device's clock") \
	FAULT(read_never, "no read completes any more, until the test lets go of them") \
	FAULT(read_old, "a read returns zeros for its second half, as from a place that was not written") \
	FAULT(read_short, "a read returns half of its bytes") \
	FAULT(write_eio, "a write fails with EIO, and stores nothing") \
	FAULT(write_enospc, "a write fails with ENOSPC, and stores nothing") \
	FAULT(write_flip, "a write stores one flipped bit") \
	FAULT(write_lost, "a write succeeds, and stores nothing") \
	FAULT(write_never, "no write completes any more, until the test lets go of them") \
	FAULT(write_short, "a write stores half of its bytes, and says so")

enum ram_fault {
#define RAM_FAULT_ENUM(name, text) RAM_FAULT_##name,
	RAM_FAULT_TABLE(RAM_FAULT_ENUM)
#undef RAM_FAULT_ENUM
		RAM_FAULTS
};

struct ram_device;

struct ram_fault_state {
	enum fault_mode mode;
	uint64_t n;
	_Atomic uint64_t calls, fired;
};

struct ram_page; /* a page as it was at the last flush */

/* A part of struct ram_device. */
struct ram_faults {
	struct ram_fault_state state[RAM_FAULTS];
	bool forgetful; /* what was not flushed is lost with the power */
	bool off; /* the power is gone: everything fails */
	uint64_t late_ns;
	struct ram_page *unflushed; /* oldest first */
	uint64_t unflushed_count, unflushed_room;
};

/* Arms a fault, and starts its counts anew. */
void ram_fault_arm(struct ram_device *ram, enum ram_fault fault, enum fault_mode mode, uint64_t n);
/* The same by a text like "write_lost=after:3": always, every:N, after:N or prob:PERMILLE. FS_EINVAL. */
FS_MUST_CHECK int ram_fault_arm_text(struct ram_device *ram, const char *text);
void ram_fault_disarm_all(struct ram_device *ram);
uint64_t ram_fault_fired(const struct ram_device *ram, enum ram_fault fault);
const char *ram_fault_name(enum ram_fault fault);

/* ---- for the device itself ------------------------------------------------------------------- */

/* Does it happen at this request? */
bool ram_fault_fires(struct ram_device *ram, enum ram_fault fault);
/* Stores bytes as a write does, in whole sectors of 512 bytes. */
void ram_store(struct ram_device *ram, const void *buffer, uint64_t bytes, uint64_t offset);
/* Applies the faults of writes to a write. Returns the bytes stored, or a negative errno; a lost write counts as stored. */
int64_t ram_faulty_write(struct ram_device *ram, const void *buffer, uint64_t bytes, uint64_t offset);
/* Applies those of reads to a read that is in the buffer. Returns the bytes read, or a negative errno. */
int64_t ram_faulty_read(struct ram_device *ram, uint8_t *buffer, uint64_t bytes);
/* Makes durable what was written. 0 or a negative errno. */
int ram_faulty_flush(struct ram_device *ram);
/* The power goes now. */
void ram_power_off(struct ram_device *ram);
void ram_faults_fini(struct ram_device *ram);

#endif
