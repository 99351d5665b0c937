/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/answer.h"

#include <stdbool.h>
#include <string.h>

static bool starts_with(const char *line, const char *word)
{
	return strncmp(line, word, strlen(word)) == 0;
}

enum answer answer_line(char *line, size_t length, const char **name, const char **value)
{
	char *blank;

	for (size_t i = 0; i < length; i++)
		if (line[i] < 0x20 || line[i] > 0x7e)
			line[i] = '?';
	if (starts_with(line, "STAT ")) {
		*name = line + 5;
		blank = strchr(line + 5, ' ');
		*value = blank ? blank + 1 : "";
		if (blank)
			*blank = 0;
		return **name ? ANSWER_ROW : ANSWER_BAD;
	}
	if (strcmp(line, "END") == 0)
		return ANSWER_END;
	if (strcmp(line, "ERROR") == 0 || starts_with(line, "CLIENT_ERROR") || starts_with(line, "SERVER_ERROR"))
		return ANSWER_REFUSED;
	return ANSWER_BAD;
}
