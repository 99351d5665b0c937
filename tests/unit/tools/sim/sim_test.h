/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short lists of requests for a policy: a small letter is a get (and a set, when it misses), a capital letter a set, and '-'
 * before a letter makes it a delete. A request comes each second.
 */
#ifndef FS_TESTS_UNIT_TOOLS_SIM_TEST_H
#define FS_TESTS_UNIT_TOOLS_SIM_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tools/sim/sim.h"

#define LETTERS 26
#define SCRIPT_MOST 4096

/* A space in which each object takes one byte. */
struct sim_space objects_space(uint64_t dram, uint64_t flash);

/* Plays the requests against the policy (NAME[:reinsert][:NUMBER]) and compares the gets with `hits`: '+' a hit, '.' a miss;
   NULL: anything. Returns the figures at the end. clwa: the budget. Values take value_bytes, keys one byte. */
struct sim_figures play_script(const char *policy, const struct sim_space *space, double clwa, const char *requests,
			       uint32_t value_bytes, const char *hits);

/* The same in objects_space, with segments of one object and without a budget. */
struct sim_figures play_objects(const char *policy, uint64_t dram, uint64_t flash, const char *requests,
				const char *hits);

#endif
