/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of "stats slow": a number, and "at=... cmd=... status=... from=... hash=... total_us=..." and so on. */
#include <math.h>
#include <string.h>

#include "tools/top/sample.h"

static const char *const part_names[SLOW_PARTS] = { "total_us", "queue_us", "run_us", "flash_us", "send_us" };

void sample_slow_row(struct sample *sample, const char *name, const char *value)
{
	struct slow_request *request = &sample->slow[sample->slow_count];

	if (sample->slow_count == SLOW_REQUESTS || !(sample_number(name) >= 1))
		return;
	*request = (struct slow_request){ .at = sample_find_number(value, "at") };
	if (!sample_find_word(value, "cmd", request->command, sizeof(request->command)))
		return;
	if (!sample_find_word(value, "status", request->status, sizeof(request->status)))
		memcpy(request->status, "-", 2);
	if (!sample_find_word(value, "from", request->tier, sizeof(request->tier)))
		memcpy(request->tier, "-", 2);
	(void)sample_find_word(value, "peer", request->peer, sizeof(request->peer));
	sample_find_key(value, request->name);
	for (int i = 0; i < SLOW_PARTS; i++)
		request->us[i] = sample_find_number(value, part_names[i]);
	request->together = sample_find_number(value, "together");
	sample->slow_count++;
}
