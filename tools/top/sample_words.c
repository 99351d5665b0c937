/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows whose value is words: "name=text name=text". */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/top/sample.h"

bool sample_find_word(const char *value, const char *name, char *out, size_t bytes)
{
	size_t length = strlen(name);

	for (; *value; value += strcspn(value, " "), value += *value == ' ') {
		size_t rest = strcspn(value, " ");

		if (rest <= length + 1 || strncmp(value, name, length) != 0 || value[length] != '=')
			continue;
		snprintf(out, bytes, "%.*s", (int)(rest - length - 1), value + length + 1);
		return true;
	}
	return false;
}

double sample_find_number(const char *value, const char *name)
{
	char text[32];
	double number = sample_find_word(value, name, text, sizeof(text)) ? sample_number(text) : NAN;

	return number >= 0 ? number : NAN;
}

void sample_find_key(const char *value, char out[HOT_KEY_BYTES])
{
	char text[HOT_KEY_BYTES - 5];

	if (sample_find_word(value, "key", out, HOT_KEY_BYTES))
		return;
	out[0] = 0;
	if (sample_find_word(value, "hash", text, sizeof(text)))
		snprintf(out, HOT_KEY_BYTES, "hash=%s", text);
}
