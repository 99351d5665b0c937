/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of "stats contents": "shop:dram:objects" with a number, "(all):flash:age" with "10s=3 1m=50 ...". */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tools/top/sample.h"

static const char *const tier_names[TIERS] = { "dram", "flash" };
static const char *const amount_names[CONTENT_AMOUNTS] = { "objects", "bytes", "value_bytes" };
static const char *const measure_names[CONTENT_MEASURES] = { "size", "age", "ttl", "idle" };

/* Is the text from here to the end, or of this length, one of the words? Returns its number, or -1. */
static int word_of(const char *text, size_t length, const char *const *words, int count)
{
	for (int i = 0; i < count; i++)
		if (strlen(words[i]) == length && memcmp(words[i], text, length) == 0)
			return i;
	return -1;
}

static struct content *content_of(struct sample *sample, const char *name, size_t length)
{
	struct content *content;

	if (length >= APP_NAME_BYTES)
		length = APP_NAME_BYTES - 1;
	for (unsigned i = 0; i < sample->content_count; i++)
		if (strncmp(sample->contents[i].name, name, length) == 0 && !sample->contents[i].name[length])
			return &sample->contents[i];
	if (sample->content_count == APPS_MAX)
		return NULL;
	content = &sample->contents[sample->content_count++];
	memcpy(content->name, name, length);
	content->name[length] = 0;
	for (int tier = 0; tier < TIERS; tier++)
		for (int i = 0; i < CONTENT_AMOUNTS; i++)
			content->amount[tier][i] = NAN;
	return content;
}

/* Takes "BUCKET=OBJECTS" words; those that are damaged are left out. */
static void take_histogram(struct histogram *histogram, const char *value)
{
	histogram->count = 0;
	for (; *value; value += strcspn(value, " "), value += *value == ' ') {
		size_t length = strcspn(value, " "), name = strcspn(value, "=");
		struct histogram_bucket *bucket = &histogram->bucket[histogram->count];
		char number[32];

		if (histogram->count == CONTENT_BUCKETS)
			return;
		if (name == 0 || name >= sizeof(bucket->name) || name + 1 >= length ||
		    length - name - 1 >= sizeof(number))
			continue;
		snprintf(number, sizeof(number), "%.*s", (int)(length - name - 1), value + name + 1);
		if (!(sample_number(number) >= 0))
			continue;
		snprintf(bucket->name, sizeof(bucket->name), "%.*s", (int)name, value);
		bucket->objects = sample_number(number);
		histogram->count++;
	}
}

void sample_contents_row(struct sample *sample, const char *name, const char *value)
{
	const char *figure = strrchr(name, ':'), *tier_text = figure;
	struct content *content;
	int tier, measure, amount;

	while (tier_text && tier_text > name && tier_text[-1] != ':')
		tier_text--;
	if (!figure || tier_text < name + 2)
		return;
	tier = word_of(tier_text, (size_t)(figure - tier_text), tier_names, TIERS);
	if (tier < 0)
		return;
	figure++;
	measure = word_of(figure, strlen(figure), measure_names, CONTENT_MEASURES);
	amount = word_of(figure, strlen(figure), amount_names, CONTENT_AMOUNTS);
	if (measure >= 0 && (size_t)(tier_text - 1 - name) == strlen(CONTENT_ALL) &&
	    strncmp(name, CONTENT_ALL, strlen(CONTENT_ALL)) == 0)
		take_histogram(&sample->histograms[tier][measure], value);
	if (amount < 0 || !(sample_number(value) >= 0))
		return;
	content = content_of(sample, name, (size_t)(tier_text - 1 - name));
	if (content)
		content->amount[tier][amount] = sample_number(value);
}
