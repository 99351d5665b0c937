/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of options.def as data. */
#include <stddef.h>
#include <string.h>

#include "conf/conf_internal.h"

const struct conf_row conf_rows[] = {
#define OPTION(name, letter, type, field, def, min, max, unit, flags, text) \
	{ CONF_ROW_OPTION, \
	  { name, letter, CONF_TYPE_##type, def, min, max, unit, flags, text, offsetof(struct conf, field) }, \
	  NULL },
#define ACTION(name, letter, argument, flags, text) \
	{ CONF_ROW_ACTION, { name, letter, CONF_TYPE_FLAG, NULL, 0, 0, "", flags, text, 0 }, argument },
#define HEADING(text) { CONF_ROW_HEADING, { NULL, 0, CONF_TYPE_FLAG, NULL, 0, 0, "", 0, text, 0 }, NULL },
#include "conf/options.def"
#undef OPTION
#undef ACTION
#undef HEADING
};

const int conf_row_count = sizeof(conf_rows) / sizeof(conf_rows[0]);

int conf_find_row(const char *name)
{
	for (int i = 0; i < conf_row_count; i++)
		if (conf_rows[i].option.name && strcmp(conf_rows[i].option.name, name) == 0)
			return i;
	return -1;
}
