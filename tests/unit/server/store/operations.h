/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every command, once, as a table: what it answers for a key that holds "10" with flags 77 and a
 * life of 100 seconds, and what the key holds afterwards. The same rows are run for an object in
 * DRAM, as a clean copy, on flash and in a plan.
 */
#ifndef FS_TESTS_STORE_OPERATIONS_H
#define FS_TESTS_STORE_OPERATIONS_H

#include "harness.h"

#define SUBJECTS 8 /* keys that one operation is tried on: of so many some are placed in a segment */

struct subject {
	char key[16];
	uint64_t cas;
};

struct operation {
	const char *name;
	void (*act)(struct harness *h, struct subject *subject); /* asserts what it is answered */
	const char *value; /* afterwards; NULL: absent */
	uint32_t flags;
	bool new_id;
	unsigned lives; /* seconds from the store on, 0: for ever */
	bool reads_only;
	enum store_result when_absent;
	enum store_op op;
};

extern const struct operation OPERATIONS[];
extern const unsigned OPERATION_COUNT;

void subjects_make(struct harness *h, struct subject subjects[SUBJECTS], unsigned number);
/* The key holds what the operation leaves; each is read once. */
void subject_check(struct harness *h, const struct operation *operation, const struct subject *subject);
/* Lets time go on to the end of their lives. The clock stood at the time of making. */
void subjects_expire(struct harness *h, const struct operation *operation, struct subject subjects[SUBJECTS]);

#endif
