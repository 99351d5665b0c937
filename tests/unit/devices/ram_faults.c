/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/devices/ram_faults.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "base/rng.h"
#include "tests/unit/devices/ram_device.h"

#define SECTOR 512u

struct ram_page {
	uint64_t offset;
	uint8_t bytes[SEG_PAGE];
};

static const char *const names[RAM_FAULTS] = {
#define RAM_FAULT_NAME(name, text) #name,
	RAM_FAULT_TABLE(RAM_FAULT_NAME)
#undef RAM_FAULT_NAME
};

/* ---- arming ---------------------------------------------------------------------------------- */

void ram_fault_arm(struct ram_device *ram, enum ram_fault fault, enum fault_mode mode, uint64_t n)
{
	struct ram_fault_state *state = &ram->faults.state[fault];

	must((unsigned)fault < RAM_FAULTS);
	state->mode = mode;
	state->n = n;
	atomic_store(&state->calls, 0);
	atomic_store(&state->fired, 0);
}

int ram_fault_arm_text(struct ram_device *ram, const char *text)
{
	static const struct {
		const char *text;
		enum fault_mode mode;
	} modes[] = {
		{ "every", FAULT_EVERY },
		{ "after", FAULT_AFTER },
		{ "prob", FAULT_PROBABILITY },
	};
	char name[32], mode[16], rest;
	unsigned long long n;
	int words = sscanf(text, "%31[a-z0-9_]=%15[a-z]:%llu%c", name, mode, &n, &rest);

	for (unsigned fault = 0; fault < RAM_FAULTS && words >= 2; fault++) {
		if (strcmp(names[fault], name) != 0)
			continue;
		if (words == 2 && strcmp(mode, "always") == 0 && !strchr(text, ':')) {
			ram_fault_arm(ram, (enum ram_fault)fault, FAULT_ALWAYS, 0);
			return FS_OK;
		}
		for (unsigned i = 0; i < 3 && words == 3; i++)
			if (strcmp(modes[i].text, mode) == 0) {
				ram_fault_arm(ram, (enum ram_fault)fault, modes[i].mode, n);
				return FS_OK;
			}
	}
	return FS_EINVAL;
}

void ram_fault_disarm_all(struct ram_device *ram)
{
	for (unsigned fault = 0; fault < RAM_FAULTS; fault++)
		ram_fault_arm(ram, (enum ram_fault)fault, FAULT_OFF, 0);
}

uint64_t ram_fault_fired(const struct ram_device *ram, enum ram_fault fault)
{
	return atomic_load(&ram->faults.state[fault].fired);
}

const char *ram_fault_name(enum ram_fault fault)
{
	return names[fault];
}

bool ram_fault_fires(struct ram_device *ram, enum ram_fault fault)
{
	struct ram_fault_state *state = &ram->faults.state[fault];
	bool fires = false;
	uint64_t call;

	if (state->mode == FAULT_OFF)
		return false;
	call = atomic_fetch_add(&state->calls, 1) + 1;
	switch (state->mode) {
	case FAULT_OFF:
		break;
	case FAULT_ALWAYS:
		fires = true;
		break;
	case FAULT_EVERY:
		fires = state->n > 0 && call % state->n == 0;
		break;
	case FAULT_AFTER:
		fires = call == state->n + 1;
		break;
	case FAULT_PROBABILITY:
		fires = mix64(call + ((uint64_t)fault << 48)) % 1000 < state->n;
		break;
	}
	if (fires)
		atomic_fetch_add(&state->fired, 1);
	return fires;
}

/* A number below `below` that changes with each firing, the same ones in each run. */
static uint64_t pick(const struct ram_device *ram, enum ram_fault fault, uint64_t below)
{
	return mix64(atomic_load(&ram->faults.state[fault].calls) * 31 + (uint64_t)fault) % below;
}

/* ---- the cache ------------------------------------------------------------------------------- */

static void remember_page(struct ram_device *ram, uint64_t offset)
{
	struct ram_faults *faults = &ram->faults;

	if (faults->unflushed_count == faults->unflushed_room) {
		faults->unflushed_room = 2 * faults->unflushed_room + 16;
		faults->unflushed = mem_realloc(faults->unflushed, faults->unflushed_room * sizeof(*faults->unflushed));
		must(faults->unflushed);
	}
	faults->unflushed[faults->unflushed_count].offset = offset;
	memcpy(faults->unflushed[faults->unflushed_count].bytes, ram->bytes + offset, SEG_PAGE);
	faults->unflushed_count++;
}

void ram_store(struct ram_device *ram, const void *buffer, uint64_t bytes, uint64_t offset)
{
	must(bytes % SECTOR == 0 && offset % SEG_PAGE == 0 && offset + bytes <= ram->dev.bytes);
	for (uint64_t at = 0; ram->faults.forgetful && at < bytes; at += SEG_PAGE)
		remember_page(ram, offset + at);
	memcpy(ram->bytes + offset, buffer, bytes);
}

int ram_faulty_flush(struct ram_device *ram)
{
	if (ram->faults.off || ram_fault_fires(ram, RAM_FAULT_flush_eio))
		return -EIO;
	if (!ram_fault_fires(ram, RAM_FAULT_flush_lost))
		ram->faults.unflushed_count = 0;
	return 0;
}

void ram_power_off(struct ram_device *ram)
{
	struct ram_faults *faults = &ram->faults;

	while (faults->unflushed_count > 0) {
		const struct ram_page *page = &faults->unflushed[--faults->unflushed_count];

		memcpy(ram->bytes + page->offset, page->bytes, SEG_PAGE);
	}
	faults->off = true;
}

void ram_faults_fini(struct ram_device *ram)
{
	mem_free(ram->faults.unflushed);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The write under way reaches the medium in part, even where what was written before it is lost: a drive writes its cache
   in any order. */
static int64_t tear(struct ram_device *ram, enum ram_fault fault, const void *buffer, uint64_t bytes, uint64_t offset)
{
	uint64_t unit = fault == RAM_FAULT_power_cut_512 ? SECTOR : SEG_PAGE;
	uint64_t stored = pick(ram, fault, bytes / unit + 1) * unit;

	ram_power_off(ram);
	memcpy(ram->bytes + offset, buffer, stored);
	return -EIO;
}

static void store_flipped(struct ram_device *ram, const void *buffer, uint64_t bytes, uint64_t offset)
{
	uint64_t bit = pick(ram, RAM_FAULT_write_flip, bytes * 8);

	ram_store(ram, buffer, bytes, offset);
	ram->bytes[offset + bit / 8] ^= (uint8_t)(1u << bit % 8);
}

int64_t ram_faulty_write(struct ram_device *ram, const void *buffer, uint64_t bytes, uint64_t offset)
{
	if (ram->faults.off)
		return -EIO;
	if (ram_fault_fires(ram, RAM_FAULT_power_cut_512))
		return tear(ram, RAM_FAULT_power_cut_512, buffer, bytes, offset);
	if (ram_fault_fires(ram, RAM_FAULT_power_cut_4096))
		return tear(ram, RAM_FAULT_power_cut_4096, buffer, bytes, offset);
	if (ram_fault_fires(ram, RAM_FAULT_write_eio))
		return -EIO;
	if (ram_fault_fires(ram, RAM_FAULT_write_enospc))
		return -ENOSPC;
	if (ram_fault_fires(ram, RAM_FAULT_write_never))
		ram->hold_writes = true;
	if (ram_fault_fires(ram, RAM_FAULT_write_short)) {
		ram_store(ram, buffer, bytes / 2, offset);
		return (int64_t)(bytes / 2);
	}
	if (ram_fault_fires(ram, RAM_FAULT_write_lost))
		return (int64_t)bytes;
	if (ram_fault_fires(ram, RAM_FAULT_write_flip))
		store_flipped(ram, buffer, bytes, offset);
	else
		ram_store(ram, buffer, bytes, offset);
	return (int64_t)bytes;
}

int64_t ram_faulty_read(struct ram_device *ram, uint8_t *buffer, uint64_t bytes)
{
	if (ram->faults.off || ram_fault_fires(ram, RAM_FAULT_read_eio))
		return -EIO;
	if (ram_fault_fires(ram, RAM_FAULT_read_never))
		ram->hold = true;
	if (ram_fault_fires(ram, RAM_FAULT_read_flip)) {
		uint64_t bit = pick(ram, RAM_FAULT_read_flip, bytes * 8);

		buffer[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	if (ram_fault_fires(ram, RAM_FAULT_read_old))
		memset(buffer + bytes / 2, 0, bytes - bytes / 2);
	return (int64_t)(ram_fault_fires(ram, RAM_FAULT_read_short) ? bytes / 2 : bytes);
}
