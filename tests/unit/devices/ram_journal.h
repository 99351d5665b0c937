/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of a journal in memory, each as it is and as it would be after a power cut: what was not synced is lost, or there
 * in part. Fails on request.
 */
#ifndef FS_TESTS_RAM_JOURNAL_H
#define FS_TESTS_RAM_JOURNAL_H

#include "base/rng.h"
#include "server/store/state/journal.h"

#define RAM_JOURNAL_FILES 256
#define RAM_SECTOR 512u

struct ram_file {
	uint32_t number; /* 0: none */
	uint8_t *bytes, *durable;
	uint64_t length, durable_length, room;
};

struct ram_journal {
	struct journal_medium medium; /* first; its close does nothing */
	struct ram_file file[RAM_JOURNAL_FILES];
	int fail_write, fail_sync, fail_remove, fail_create; /* a negative errno, or 0 */
	void (*on_event)(struct ram_journal *journal); /* before each write, sync, create and remove; NULL: nothing */
	void *context;
	uint64_t writes, syncs;
};

void ram_journal_init(struct ram_journal *journal);
void ram_journal_fini(struct ram_journal *journal);
struct ram_file *ram_journal_file(struct ram_journal *journal, uint32_t number); /* NULL: there is none */
struct ram_file *ram_journal_last(struct ram_journal *journal);
unsigned ram_journal_count(const struct ram_journal *journal);
/* Fills out, which is initialised and empty, with what a power cut now would leave. */
void ram_journal_cut(const struct ram_journal *journal, struct rng *rng, struct ram_journal *out);
/* Fills bytes, which is as the medium was when it was last durable, with some sectors of what it is now. */
void ram_mix_sectors(struct rng *rng, uint8_t *bytes, const uint8_t *now, uint64_t length);

#endif
