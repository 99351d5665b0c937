/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A store in the test's own process: scripted clock, a small flash file, two workers, no threads
 * but those a test makes. Commands are synchronous (run) or held between their reads' submission
 * and completion (start, finish). move() puts a key's object on flash; a hook runs commands while
 * a segment is being written, that is, between gathering and commit, in the same thread: it hangs
 * on the clock, which the cleaner reads at both points without a lock.
 */
#ifndef FS_TESTS_STORE_HARNESS_H
#define FS_TESTS_STORE_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/dram/dram_internal.h"
#include "server/store/request/action_internal.h"
#include "server/store/state/sizing.h"
#include "tests/unit/devices/ram_device.h"

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define WORKERS 2
#define REPLY_BYTES 512

/* Fault points are compiled into every build but release. */
#ifdef FS_FAULTS
#define HAVE_FAULTS true
#else
#define HAVE_FAULTS false
#endif

enum phase {
	PHASE_NONE,
	PHASE_GATHERED, /* the place may still have to be reclaimed */
	PHASE_WRITTEN /* written, nothing committed yet */
};

struct harness {
	struct clk clk;
	struct store_config config;
	struct store *store;
	struct store_worker *worker[WORKERS];
	struct ram_device *ram; /* the flash, after harness_use_ram, until the store is closed */
	char path[80], reason[256];
	uint32_t fillers; /* how many were stored */
	enum phase phase; /* when to call the hook, once */
	void (*hook)(struct harness *h);
	void *hook_argument;
	bool in_hook, seen_gathered;
	bool in_memory; /* harness_open calls harness_use_ram */
	bool serves_nobody; /* harness_open doesn't call store_serves, as in a start that fails later */
	uint32_t writing; /* the segment to be written ... */
	uint64_t old_sequence; /* ... and what it held when the plan was gathered */
};

struct reply {
	enum store_result result;
	bool from_flash;
	uint32_t length, flags;
	uint64_t cas, number;
	char value[REPLY_BYTES]; /* its beginning, with a 0 behind it */
	uint64_t value_hash;
	struct store_found found;
};

/* A command under way. */
struct flight {
	struct store_request request;
	unsigned worker;
	bool done;
	char key[STORE_KEY_MAX + 1];
	struct reply reply;
};

/* ---- life ------------------------------------------------------------------------------------ */

/* 8 MiB of memory, 16 segments of 64 KiB on flash, everything admitted. The file is made anew. */
void harness_init(struct harness *h);
/* Does STORE_INDEX=frugal in the environment choose that index for every harness? STORE_KILL_BYTES chooses the size of its table of
   kills, and STORE_OBJECT_BYTES the expected size of objects: with large ones all keys are in one partition. */
bool harness_is_frugal(void);
void harness_open(struct harness *h); /* with h->config, as the test has changed it; all of its flash is allocated */
int harness_try_open(struct harness *h); /* the store only; reason in h->reason */
void harness_close(struct harness *h); /* checks that nothing is left over */
void harness_fini(struct harness *h); /* removes the file */
void harness_workers(struct harness *h, unsigned n);
/* Before harness_open: the flash is in memory, and does what h->ram says; as large as the configuration says. */
void harness_use_ram(struct harness *h);
/* The day's fill of the flash is used up: the ratio of writes holds from now on. */
void harness_end_fill(struct harness *h);
/* From now on each lookup reads the device, whatever was read just before. */
void keep_no_reads(struct harness *h);
/* cmocka fixtures: a default harness in *state; with setup_in_memory each open makes its flash in memory, which takes no
   time. */
int setup(void **state);
int setup_in_memory(void **state);
int teardown(void **state);

/* Everything deleted or released: the accounts are back where they began. */
void assert_nothing_left(struct harness *h);
void seconds_pass(struct harness *h, uint64_t seconds);

/* ---- commands -------------------------------------------------------------------------------- */

/* A command; what is left out is 0. run_full(h, .op = STORE_SET, .key = "key", .value = "text", .length = 4) */
struct command {
	enum store_op op;
	const char *key;
	const void *value;
	uint32_t length, flags;
	int64_t exptime;
	uint64_t cas;
};

/* True when it finished at once. */
bool start(struct harness *h, unsigned worker, struct flight *f, enum store_op op, const char *key);
bool start_delta(struct harness *h, unsigned worker, struct flight *f, enum store_op op, const char *key,
		 uint64_t delta);
bool start_expiring(struct harness *h, unsigned worker, struct flight *f, enum store_op op, const char *key,
		    int64_t exptime);
/* With an object: value is copied. False too when the object was refused: then reply says why. */
bool start_command(struct harness *h, unsigned worker, struct flight *f, const struct command *command);
#define start_with(h, worker, f, ...) start_command(h, worker, f, &(struct command){ __VA_ARGS__ })
/* For requests of the test's own making: f->request is to be filled in between. */
void flight_prepare(struct harness *h, unsigned worker, struct flight *f, enum store_op op, const char *key);
bool flight_execute(struct harness *h, struct flight *f);
/* Runs the worker's loop until it is done. */
struct reply finish(struct harness *h, struct flight *f);
void turn(struct harness *h, unsigned worker); /* one turn of the loop, without waiting */
/* Sleeps until the worker's store_worker_poll has work; false: it had none for long. */
bool wait_for_store(struct store_worker *worker);
void drain(struct harness *h, unsigned worker); /* until nothing is in flight */

struct reply run(struct harness *h, enum store_op op, const char *key);
struct reply run_with(struct harness *h, enum store_op op, const char *key, const char *value);
/* Runs it to its end. */
struct reply run_command(struct harness *h, const struct command *command);
#define run_full(h, ...) run_command(h, &(struct command){ __VA_ARGS__ })
struct reply run_number(struct harness *h, enum store_op op, const char *key, uint64_t delta);
struct reply run_expiry(struct harness *h, enum store_op op, const char *key, int64_t exptime);
struct reply get(struct harness *h, const char *key);
struct reply set(struct harness *h, const char *key, const char *value);
#define assert_value(h, key, text) assert_value_at(h, key, text, __FILE__, __LINE__)
void assert_value_at(struct harness *h, const char *key, const char *text, const char *file, int line);
#define assert_missing(h, key) assert_int_equal(get(h, key).result, STORE_MISS)

/* ---- where an object lies -------------------------------------------------------------------- */

enum where { NOWHERE, DRAM, CLEAN_COPY, PLANNED, FLASH };
/* Without touching anything. FLASH: DRAM lacks it and a slot or extent may be its. */
enum where where(struct harness *h, const char *key);
unsigned slots_of(struct harness *h, const char *key); /* that may be its, extents and a record in a bin included */
bool slot_of(struct harness *h, const char *key, struct fidx_match *match);

/* Writes segments (with fillers) until the key's object has left DRAM. */
void move(struct harness *h, const char *key);
void set_on_flash(struct harness *h, const char *key, const char *value);
/* One segment: gathered, planned, written, committed. */
bool write_one(struct harness *h);
/* While the key's object is planned, at that phase, runs hook. */
void while_planned(struct harness *h, const char *key, enum phase phase, void (*hook)(struct harness *h));
/* Promoted for reading: DRAM holds a clean copy. Needs fault points. */
void make_clean_copy(struct harness *h, const char *key);
/* Under a rule that asks at eviction, until the next tick of the keeper's: the least worth that is admitted. */
void set_threshold(struct harness *h, double worth);
/* The worth of the key's object, which is in DRAM. */
double worth_of(struct harness *h, const char *key);
/* The key's object in DRAM, or NULL. */
struct item *item_in_dram(struct harness *h, const char *key);
/* Writes until the segment that the key's object lies in has been reclaimed. */
void reclaim_of(struct harness *h, uint32_t segment);
uint32_t segment_of(struct harness *h, const char *key);

#endif
