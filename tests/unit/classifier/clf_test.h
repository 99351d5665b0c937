/* SPDX-License-Identifier: BSD-3-Clause */
/* One classifier on a scripted clock, for the tests of a program; each opens it with what it is about. */
#ifndef FS_TESTS_UNIT_CLASSIFIER_CLF_TEST_H
#define FS_TESTS_UNIT_CLASSIFIER_CLF_TEST_H

#include <stddef.h>
#include <stdint.h>

#include "classifier/classifier.h"

static struct clk test_clock;
static struct clf *clf;

/* A cmocka teardown. */
static inline int close_clf(void **state)
{
	(void)state;
	clf_destroy(clf);
	clf = NULL;
	return 0;
}

static inline uint64_t now_ms(void)
{
	return clk_now_ms(&test_clock);
}

static inline void pass(uint64_t ms)
{
	clk_scripted_advance(&test_clock, ms * 1000);
}

#endif
