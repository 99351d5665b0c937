/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of "stats limits": "shop:dram_bytes" with a number, "shop:dram_ceiling" with a number or "none"; a floor of 0 is none. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/top/sample.h"

static const char *const amount_names[LIMIT_AMOUNTS] = {
	[LIMIT_DRAM] = "dram_bytes",
	[LIMIT_DRAM_FLOOR] = "dram_floor",
	[LIMIT_DRAM_CEILING] = "dram_ceiling",
	[LIMIT_EVICTIONS] = "ceiling_evictions",
	[LIMIT_FLASH] = "flash_bytes",
	[LIMIT_FLASH_FLOOR] = "flash_floor",
	[LIMIT_FLASH_CEILING] = "flash_ceiling",
	[LIMIT_WRITE] = "write_limit",
	[LIMIT_WRITTEN] = "write_bytes",
	[LIMIT_REFUSALS] = "write_refusals",
};

const char *limit_amount_name(enum limit_amount amount)
{
	return amount_names[amount];
}

static struct limited_app *limited_of(struct sample *sample, const char *name, size_t length)
{
	struct limited_app *app;

	if (length >= APP_NAME_BYTES)
		length = APP_NAME_BYTES - 1;
	for (unsigned i = 0; i < sample->limited_count; i++)
		if (strncmp(sample->limited[i].name, name, length) == 0 && !sample->limited[i].name[length])
			return &sample->limited[i];
	if (sample->limited_count == LIMITED_MAX)
		return NULL;
	app = &sample->limited[sample->limited_count++];
	memcpy(app->name, name, length);
	app->name[length] = 0;
	for (int i = 0; i < LIMIT_AMOUNTS; i++)
		app->amount[i] = NAN;
	return app;
}

void sample_limits_row(struct sample *sample, const char *name, const char *value)
{
	const char *colon = strrchr(name, ':');
	double number = sample_number(value);
	struct limited_app *app;

	if (!colon || colon == name || !(number >= 0))
		return;
	for (int i = 0; i < LIMIT_AMOUNTS; i++)
		if (strcmp(colon + 1, amount_names[i]) == 0) {
			bool none = number == 0 && (i == LIMIT_DRAM_FLOOR || i == LIMIT_FLASH_FLOOR);

			app = limited_of(sample, name, (size_t)(colon - name));
			if (app)
				app->amount[i] = none ? NAN : number;
			return;
		}
}
