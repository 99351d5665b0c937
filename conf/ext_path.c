/* SPDX-License-Identifier: BSD-3-Clause */
/* extstore's ext_path=FILE:SIZE[:bucket], which is our flash file. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "conf/conf_internal.h"
#include "conf/units.h"

/* extstore's buckets give a file to a kind of objects: those that compaction saves, or that expire soon. */
static int check_bucket(const char *bucket, bool *special, char *why, size_t why_bytes)
{
	static const char *const others[] = { "compact", "lowttl", "chunked", "coldcompact", "old" };

	*special = false;
	if (!*bucket || strcmp(bucket, "default") == 0)
		return FS_OK;
	*special = true;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(bucket, others[i]) == 0)
			return FS_OK;
	snprintf(why, why_bytes, "Unknown extstore bucket: %s\nfailed to parse ext_path argument", bucket);
	return FS_EINVAL;
}

static int set_by_name(struct conf *conf, const char *name, const char *value)
{
	int row = conf_find_row(name);

	must(row >= 0);
	return conf_value_set(conf, &conf_rows[row].option, value, false);
}

/* extstore takes more than we can use. */
static int set_flash(struct conf *conf, const char *path, const char *size, uint64_t bytes, char *why, size_t why_bytes)
{
	const struct conf_option *option = &conf_rows[conf_find_row("flash-size")].option;
	char accepted[CONF_ACCEPTED_BYTES], most[UNITS_TEXT_BYTES];
	int rc = set_by_name(conf, "flash-path", path);

	if ((double)bytes > option->max) {
		units_format_size((uint64_t)option->max, most);
		conf_note(conf, LOG_LEVEL_WARN, "of ext_path=%s:%s only %s are used, the most that a flash can have",
			  path, size, most);
		size = most;
	}
	if (rc == FS_OK)
		rc = set_by_name(conf, "flash-size", size);
	if (rc != FS_OK) {
		snprintf(why, why_bytes, "ext_path: \"%s\" is not %s", size, conf_accepted(option, accepted));
		return rc;
	}
	conf->flash_by_ext_path = true;
	conf_note(conf, LOG_LEVEL_INFO, "ext_path is understood as --flash-path=%s --flash-size=%s", path, size);
	return FS_OK;
}

/* There is one flash file: the first one that isn't for a bucket, or else the first one. */
static int choose_flash(struct conf *conf, const char *value, const char *path, const char *size, uint64_t bytes,
			bool special, char *why, size_t why_bytes)
{
	bool better = conf->ext_path_special && !special;
	int rc;

	if (conf->ext_path_given && !better) {
		conf_note(conf, LOG_LEVEL_WARN, "ext_path=%s is not used: there is one flash file, %s", value,
			  conf->flash_path);
		return FS_OK;
	}
	if (conf->ext_path_given)
		conf_note(conf, LOG_LEVEL_WARN, "ext_path=%s is used instead: there is one flash file, without buckets",
			  value);
	rc = set_flash(conf, path, size, bytes, why, why_bytes);
	if (rc != FS_OK)
		return rc;
	conf->ext_path_given = true;
	conf->ext_path_special = special;
	if (special)
		conf_note(conf, LOG_LEVEL_INFO, "the bucket of ext_path=%s is without effect: any object may go there",
			  value);
	return FS_OK;
}

int conf_ext_path(struct conf *conf, const char *value, char *why, size_t why_bytes)
{
	char *copy, *rest, *path, *size;
	bool special = false;
	size_t length;
	uint64_t bytes;
	int rc = FS_EINVAL;

	if (!value) {
		snprintf(why, why_bytes, "missing argument to ext_path, ie: ext_path=/d/file:5G");
		return FS_EINVAL;
	}
	if (!*value) {
		snprintf(why, why_bytes, "failed to parse ext_path argument");
		return FS_EINVAL;
	}
	copy = rest = strdup(value);
	must(copy);
	path = strsep(&rest, ":"); /* the file's name has no colon, as in memcached */
	size = strsep(&rest, ":");
	if (!*path || !size || !*size) {
		snprintf(why, why_bytes,
			 "must supply size to ext_path, ie: ext_path=/f/e:64m (M|G|T|P supported)\n"
			 "failed to parse ext_path argument");
		goto out;
	}
	if (rest && check_bucket(rest, &special, why, why_bytes) != FS_OK)
		goto out;
	size += strspn(size, CONF_BLANKS);
	for (length = strlen(size); length > 0 && strchr(CONF_BLANKS, size[length - 1]);)
		size[--length] = '\0';
	if (length == 0 || !strchr("mgtp", size[length - 1] | 0x20) || units_parse_size(size, 1, &bytes) != FS_OK ||
	    bytes == 0) {
		snprintf(why, why_bytes,
			 "ext_path: \"%s\" is not a size with the suffix m, g, t or p, as in "
			 "ext_path=/data/flash:64g",
			 size);
		goto out;
	}
	rc = choose_flash(conf, value, path, size, bytes, special, why, why_bytes);
out:
	free(copy);
	return rc;
}
