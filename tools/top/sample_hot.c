/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of "stats hotkeys": "requests:1m:3" with "key=... requests=... bytes=... reads=... error=... since=...". */
#include <math.h>
#include <string.h>

#include "tools/top/sample.h"

static const char *const measure_names[HOT_MEASURES] = { "requests", "bytes", "reads" };
static const char *const window_names[HOT_WINDOWS] = { "1m", "10m" };

/* The number of the word at *text that a colon ends; moves *text behind it. -1: it is none of these. */
static int take_word(const char **text, const char *const *words, int count)
{
	for (int i = 0; i < count; i++) {
		size_t length = strlen(words[i]);

		if (strncmp(*text, words[i], length) == 0 && (*text)[length] == ':') {
			*text += length + 1;
			return i;
		}
	}
	return -1;
}

static void take_key(struct hot_key *key, const char *value)
{
	sample_find_key(value, key->name);
	for (int i = 0; i < HOT_MEASURES; i++)
		key->amount[i] = sample_find_number(value, measure_names[i]);
}

void sample_hot_row(struct sample *sample, const char *name, const char *value)
{
	int measure = take_word(&name, measure_names, HOT_MEASURES);
	int window = measure >= 0 ? take_word(&name, window_names, HOT_WINDOWS) : -1;
	struct hot_keys *keys;
	double rank;

	if (window < 0)
		return;
	keys = &sample->hot[measure][window];
	rank = sample_number(name);
	if (strcmp(name, "seconds") == 0)
		keys->seconds = sample_number(value);
	else if (strcmp(name, "total") == 0)
		keys->total = sample_number(value);
	else if (rank >= 1 && rank <= HOT_KEYS && rank == floor(rank))
		take_key(&keys->key[(unsigned)rank - 1], value);
}
