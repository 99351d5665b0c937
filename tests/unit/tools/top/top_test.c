/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/tools/top/top_test.h"

void a_sample(struct sample *sample, double uptime)
{
	sample_clear(sample);
	sample->at_us = (int64_t)(uptime * SECOND_US);
	sample->value[FIELD_uptime] = uptime;
	sample->value[FIELD_pid] = 17;
	sample->has[REPORT_GENERAL] = true;
}

void give(struct sample *sample, enum report report, const char *name, const char *value)
{
	sample_row(sample, report, name, value);
}
