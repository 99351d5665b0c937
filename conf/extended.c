/* SPDX-License-Identifier: BSD-3-Clause */
/* memcached's -o list: ext_path is the flash file, the others are known and without effect. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "conf/conf_internal.h"
#include "conf/units.h"

enum value_use { NONE, OPTIONAL, NEEDED };

static const struct suboption {
	const char *name;
	enum value_use value;
	const char *extstore; /* what stands in its place; NULL: no part of extstore */
} suboptions[] = {
#define QUIET(name, value) {#name, value, NULL},
#define EXTSTORE(name, value, text) {#name, value, text},
#include "conf/extended.def"
#undef QUIET
#undef EXTSTORE
};

/* extstore's names for page buckets. */
static const char *const buckets[] = {"default", "compact", "lowttl", "chunked", "coldcompact", "old"};

static const struct suboption *find(const char *name)
{
	for (size_t i = 0; i < sizeof(suboptions) / sizeof(suboptions[0]); i++)
		if (strcmp(suboptions[i].name, name) == 0)
			return &suboptions[i];
	return NULL;
}

static bool is_bucket(const char *word)
{
	for (size_t i = 0; i < sizeof(buckets) / sizeof(buckets[0]); i++)
		if (strcmp(buckets[i], word) == 0)
			return true;
	return false;
}

static int set_by_name(struct conf *conf, const char *name, const char *value)
{
	int row = conf_find_row(name);

	must(row >= 0);
	return conf_value_set(conf, &conf_rows[row].option, value, false);
}

/* FILE:SIZE[:bucket]. The file's name has no colon, as in memcached. */
static int set_path(struct conf *conf, const char *value, bool second, char *why, size_t why_bytes)
{
	char *copy = strdup(value), *rest = copy, *path, *size, *bucket;
	uint64_t bytes;
	int rc = FS_EINVAL;

	must(copy);
	path = strsep(&rest, ":");
	size = strsep(&rest, ":");
	bucket = strsep(&rest, ":");
	if (!*path || !size || !*size) {
		snprintf(why, why_bytes, "ext_path: \"%s\" is not FILE:SIZE with a size like 64m, 10g or 1t", value);
		goto out;
	}
	if (rest) {
		snprintf(why, why_bytes, "ext_path: \"%s\" is not FILE:SIZE[:bucket]", value);
		goto out;
	}
	if (bucket && !is_bucket(bucket)) {
		snprintf(why, why_bytes,
			 "ext_path: \"%s\" is no bucket; these are: default compact lowttl chunked coldcompact old", bucket);
		goto out;
	}
	if (!strchr("mgtp", size[strlen(size) - 1] | 0x20) || units_parse_size(size, 1, &bytes) != FS_OK ||
	    bytes == 0) {
		snprintf(why, why_bytes, "ext_path: \"%s\" is not a size with the suffix m, g, t or p, as in "
					 "ext_path=/data/flash:64g", size);
		goto out;
	}
	if (second) {
		conf_note(conf, LOG_LEVEL_WARN, "ext_path=%s is not used: one flash file is offered, the first one",
			  value);
		rc = FS_OK;
		goto out;
	}
	rc = set_by_name(conf, "flash-path", path);
	if (rc == FS_OK)
		rc = set_by_name(conf, "flash-size", size);
	if (rc != FS_OK) {
		char accepted[CONF_ACCEPTED_BYTES];

		snprintf(why, why_bytes, "ext_path: \"%s\" is not %s", size,
			 conf_accepted(&conf_rows[conf_find_row("flash-size")].option, accepted));
		goto out;
	}
	conf_note(conf, LOG_LEVEL_NOTICE, "ext_path is understood as --flash-path=%s --flash-size=%s", path, size);
	if (bucket)
		conf_note(conf, LOG_LEVEL_NOTICE, "ext_path's bucket \"%s\" has no effect here: flash has no buckets",
			  bucket);
out:
	free(copy);
	return rc;
}

int conf_extended(struct conf *conf, const char *list, char *why, size_t why_bytes)
{
	char *copy = strdup(list), *rest = copy, *word;
	bool have_path = false;
	int rc = FS_OK;

	must(copy);
	while (rc == FS_OK && (word = strsep(&rest, ",")) != NULL) {
		char *value = strchr(word, '=');
		const struct suboption *suboption;

		if (!*word)
			continue;
		if (value)
			*value++ = 0;
		if (strcmp(word, "ext_path") == 0) {
			rc = set_path(conf, value ? value : "", have_path, why, why_bytes);
			have_path = true;
			continue;
		}
		suboption = find(word);
		if (!suboption) {
			/* As getsubopt(3) has it there: the whole word, value and all. */
			if (value)
				value[-1] = '=';
			snprintf(why, why_bytes, "Illegal suboption \"%s\"", word);
			rc = FS_ENOTFOUND;
		} else if (suboption->value == NEEDED && (!value || !*value)) {
			snprintf(why, why_bytes, "Missing %s argument", word);
			rc = FS_EINVAL;
		} else if (suboption->extstore) {
			conf_note(conf, LOG_LEVEL_NOTICE, "%s has no effect here: %s", word, suboption->extstore);
		} else {
			conf_note(conf, LOG_LEVEL_INFO, "suboption %s is accepted, but has no effect here", word);
		}
	}
	free(copy);
	return rc;
}
