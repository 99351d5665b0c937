/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of flashield-top share. */
#ifndef FS_TESTS_UNIT_TOP_TEST_H
#define FS_TESTS_UNIT_TOP_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/top/sample.h"

#define SECOND_US 1000000

/* A sample of a process that has run for `uptime` seconds, at that time, without anything else. */
void a_sample(struct sample *sample, double uptime);

/* The same as if a server had said it. */
void give(struct sample *sample, enum report report, const char *name, const char *value);

#define assert_number(a, b) assert_true(fabs((a) - (b)) < 1e-9)
#define assert_unknown(a) assert_true(isnan(a))

#endif
