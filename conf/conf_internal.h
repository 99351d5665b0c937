/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by conf's own files: the table's rows, reading and writing one value, notes. */
#ifndef FS_CONF_CONF_INTERNAL_H
#define FS_CONF_CONF_INTERNAL_H

#include "conf/conf.h"

enum conf_row_kind { CONF_ROW_OPTION, CONF_ROW_ACTION, CONF_ROW_HEADING };

struct conf_row {
	enum conf_row_kind kind;
	struct conf_option option; /* of an action: name, letter, flags, text; of a heading: text */
	const char *argument;	   /* of an action: its name, or NULL */
};

extern const struct conf_row conf_rows[];
extern const int conf_row_count;

/* The row of a long name, -1 if there is none. Headings have no name. */
int conf_find_row(const char *name);

/* What the option accepts, to follow "is not" or to stand in --help: "a whole number from 1 to 256". */
#define CONF_ACCEPTED_BYTES 256
const char *conf_accepted(const struct conf_option *option, char text[CONF_ACCEPTED_BYTES]);

/* The field's value as the file would have it: in text, or the field itself for a STRING. */
#define CONF_VALUE_BYTES 64
const char *conf_value_text(const struct conf *conf, const struct conf_option *option,
			    char text[CONF_VALUE_BYTES]);

/* Reads a value into its field. append joins a CONF_LIST value to what is there. FS_OK, FS_EINVAL
   (not what conf_accepted() says; the field is unchanged) or FS_ENOMEM. */
int conf_value_set(struct conf *conf, const struct conf_option *option, const char *value, bool append);

/* Appends a note. Aborts when memory is out. */
void conf_note(struct conf *conf, enum log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads memcached's -o list. FS_OK; FS_ENOTFOUND for an unknown suboption; FS_EINVAL for a bad
   value; why says it as the operator is to see it. */
int conf_extended(struct conf *conf, const char *list, char *why, size_t why_bytes);

#endif
