/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the options of a running daemon again, and compares them with those in force. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/assert.h"
#include "conf/conf_internal.h"

/* The start has read a pipe empty: reading it again would wait, or find no options at all. */
static bool can_be_read_again(const char *path)
{
	struct stat st;

	return !path || stat(path, &st) != 0 || S_ISREG(st.st_mode);
}

int conf_reload(struct conf *fresh, const struct conf *running, int argc, char **argv, char *why, size_t why_bytes)
{
	char *said = NULL;
	size_t said_bytes;
	FILE *err = open_memstream(&said, &said_bytes), *out = fopen("/dev/null", "we");
	int result = FS_ENOMEM;

	*fresh = (struct conf){ 0 };
	snprintf(why, why_bytes, "%s", fs_strerror(result));
	if (!can_be_read_again(running->config_path)) {
		snprintf(why, why_bytes, "%s is not a regular file, and can't be read again", running->config_path);
		result = CONF_EXIT;
	} else if (err && out) {
		result = conf_read(fresh, argc, argv, running->config_path, out, err);
	}
	if (out)
		fclose(out);
	if (err && fclose(err) == 0 && result == CONF_EXIT && *said)
		snprintf(why, why_bytes, "%.*s", (int)strcspn(said, "\n"), said);
	free(said);
	return result;
}

/* A suboption without effect changes nothing, and one without a name can't be told. */
static bool is_told(const struct conf_suboption *suboption)
{
	return suboption->form != CONF_FORM_WORDS && suboption->form != CONF_FORM_STATE && !suboption->effect;
}

static void compare(const struct conf *before, const struct conf *after, const struct conf_option *option,
		    bool reloadable, conf_change_fn *each, void *context)
{
	char old_text[CONF_VALUE_BYTES], new_text[CONF_VALUE_BYTES];
	struct conf_change change = { .option = option, .reloadable = reloadable };

	change.before = conf_value_text(before, option, old_text);
	change.after = conf_value_text(after, option, new_text);
	if (strcmp(change.before, change.after) != 0)
		each(context, &change);
}

void conf_each_change(const struct conf *before, const struct conf *after, conf_change_fn *each, void *context)
{
	for (int i = 0; i < conf_row_count; i++)
		if (conf_rows[i].kind == CONF_ROW_OPTION)
			compare(before, after, &conf_rows[i].option, conf_rows[i].option.flags & CONF_RELOAD, each,
				context);
	for (int i = 0; i < conf_suboption_count; i++)
		if (is_told(&conf_suboptions[i]))
			compare(before, after, &conf_suboptions[i].option, false, each, context);
}

void conf_adopt(struct conf *conf, const struct conf *fresh, const struct conf_option *option)
{
	static const size_t sizes[] = {
		[CONF_TYPE_FLAG] = sizeof(bool),     [CONF_TYPE_COUNT] = sizeof(int),
		[CONF_TYPE_INT] = sizeof(int),       [CONF_TYPE_SIZE] = sizeof(uint64_t),
		[CONF_TYPE_TIME] = sizeof(uint64_t), [CONF_TYPE_RATE] = sizeof(uint64_t),
		[CONF_TYPE_REAL] = sizeof(double),   [CONF_TYPE_OCTAL] = sizeof(unsigned),
		[CONF_TYPE_CHAR] = sizeof(char),     [CONF_TYPE_ENUM] = sizeof(int),
	};

	must(option->type != CONF_TYPE_STRING); /* a text has one owner */
	memcpy((char *)conf + option->offset, (const char *)fresh + option->offset, sizes[option->type]);
}
