/* SPDX-License-Identifier: BSD-3-Clause */
/* extstore's ext_path=FILE:SIZE[:bucket], which is our flash file. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "conf/conf_internal.h"
#include "conf/units.h"

/* memcached 1.6.18 accepts one bucket; it knows the others, but refuses them. */
static int check_bucket(const char *bucket, char *why, size_t why_bytes)
{
	static const char *const others[] = { "compact", "lowttl", "chunked" };

	if (!*bucket || strcmp(bucket, "default") == 0)
		return FS_OK;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (strcmp(bucket, others[i]) == 0) {
			snprintf(
				why, why_bytes,
				"ext_path only presently supports the default bucket\nfailed to parse ext_path argument");
			return FS_EINVAL;
		}
	snprintf(why, why_bytes, "Unknown extstore bucket: %s\nfailed to parse ext_path argument", bucket);
	return FS_EINVAL;
}

static int set_by_name(struct conf *conf, const char *name, const char *value)
{
	int row = conf_find_row(name);

	must(row >= 0);
	return conf_value_set(conf, &conf_rows[row].option, value, false);
}

static int set_flash(struct conf *conf, const char *path, const char *size, char *why, size_t why_bytes)
{
	char accepted[CONF_ACCEPTED_BYTES];
	int rc = set_by_name(conf, "flash-path", path);

	if (rc == FS_OK)
		rc = set_by_name(conf, "flash-size", size);
	if (rc != FS_OK) {
		snprintf(why, why_bytes, "ext_path: \"%s\" is not %s", size,
			 conf_accepted(&conf_rows[conf_find_row("flash-size")].option, accepted));
		return rc;
	}
	conf->ext_path_given = true;
	conf_note(conf, LOG_LEVEL_INFO, "ext_path is understood as --flash-path=%s --flash-size=%s", path, size);
	return FS_OK;
}

int conf_ext_path(struct conf *conf, const char *value, bool second, char *why, size_t why_bytes)
{
	char *copy, *rest, *path, *size;
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
	if (rest && check_bucket(rest, why, why_bytes) != FS_OK)
		goto out;
	if (!strchr("mgtp", size[strlen(size) - 1] | 0x20) || units_parse_size(size, 1, &bytes) != FS_OK ||
	    bytes == 0) {
		snprintf(why, why_bytes,
			 "ext_path: \"%s\" is not a size with the suffix m, g, t or p, as in "
			 "ext_path=/data/flash:64g",
			 size);
		goto out;
	}
	if (second) {
		conf_note(conf, LOG_LEVEL_WARN, "ext_path=%s is not used: there is one flash file, the first one",
			  value);
		rc = FS_OK;
		goto out;
	}
	rc = set_flash(conf, path, size, why, why_bytes);
out:
	free(copy);
	return rc;
}
