/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Limits of applications, as --app-limit has them:
 *
 *   NAME:dram=FLOOR-CEILING,flash=FLOOR-CEILING,write=RATE[,NAME:...]
 *
 *   dram=1g-        a floor: bytes of memory that objects of others can't take from the application
 *   dram=-2g        a ceiling: bytes of memory that its objects can't exceed
 *   dram=1g-2g      both
 *   flash=...       the same of bytes on flash
 *   write=5m        bytes per second of its objects that go to flash; 0 keeps them all off the flash
 *
 * NAME is what keys have before the delimiter. What is left out is not limited. A name may come again with what was
 * left out, but no limit may be given twice.
 *
 * Threads: the functions are pure.
 */
#ifndef FS_CONF_APP_LIMITS_H
#define FS_CONF_APP_LIMITS_H

#include <stdint.h>

#include "base/error.h"

#define APP_LIMITS_MOST 64u /* applications with limits at a time */
#define APP_LIMIT_NAME_MAX 100u /* bytes */
#define APP_LIMIT_NONE UINT64_MAX
#define APP_LIMIT_LEAST (64ull << 10) /* the least floor and ceiling, in bytes */
#define APP_LIMIT_GREATEST (1ull << 50) /* the greatest of all limits */
#define APP_LIMIT_FLOORS(memory) ((memory) / 4 * 3) /* the most that all floors together may be, of --memory-limit */
#define APP_LIMITS_WHY_BYTES 512u

/* The limits of one application. */
struct app_limit {
	char name[APP_LIMIT_NAME_MAX + 1]; /* with a 0 behind it, and none in it */
	uint64_t dram_floor; /* bytes; 0: none */
	uint64_t dram_ceiling; /* bytes, at least the floor; APP_LIMIT_NONE: none */
	uint64_t flash_floor, flash_ceiling; /* the same */
	uint64_t write; /* bytes per second; APP_LIMIT_NONE: none */
};

/* All of them, in the order of their names' first mention. */
struct app_limits {
	unsigned count;
	struct app_limit of[APP_LIMITS_MOST];
};

/* Reads limits. NULL or "" are none. FS_OK; or FS_EINVAL with why, which names the part that is wrong and what is
   accepted. */
FS_MUST_CHECK int app_limits_parse(const char *text, char delimiter, struct app_limits *out,
				   char why[APP_LIMITS_WHY_BYTES]);
/* Returns the sum of all floors of memory, in bytes. It doesn't overflow. */
uint64_t app_limits_floors(const struct app_limits *limits);

#endif
