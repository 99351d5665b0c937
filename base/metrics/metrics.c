/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/metrics/metrics.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"

#define PREFIX "flashield_"
#define NAME_BYTES 64

static const struct metric_info infos[METRIC_COUNT] = {
#define METRIC(name, type, labels, text) { PREFIX #name, METRIC_TYPE_##type, labels, text },
#include "base/metrics/metrics.def"
#undef METRIC
};

static char counter_names[CTR_COUNT][NAME_BYTES];
static pthread_once_t named = PTHREAD_ONCE_INIT;

const struct metric_info *metric_info(enum metric metric)
{
	must(metric < METRIC_COUNT);
	return &infos[metric];
}

static void name_counters(void)
{
	for (int counter = 0; counter < CTR_COUNT; counter++) {
		const char *name = ctr_info((enum ctr)counter)->name;
		size_t length = strlen(name);

		if (strncmp(name, "total_", 6) == 0) {
			name += 6;
			length -= 6;
		}
		if (length > 4 && strcmp(name + length - 4, "_num") == 0)
			length -= 4;
		must(snprintf(counter_names[counter], NAME_BYTES, PREFIX "%.*s_total", (int)length, name) < NAME_BYTES);
	}
}

const char *metric_counter_name(enum ctr counter)
{
	must(counter < CTR_COUNT);
	pthread_once(&named, name_counters);
	return counter_names[counter];
}
