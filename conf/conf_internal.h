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

/* How a suboption's value is read (extended.def). */
enum conf_form {
	CONF_FORM_STRICT,
	CONF_FORM_SIGNED,
	CONF_FORM_LOOSE,
	CONF_FORM_DECIMAL,
	CONF_FORM_LOOSE_DECIMAL,
	CONF_FORM_TEXT,
	CONF_FORM_SWITCH,
	CONF_FORM_WORDS, /* has no field */
	CONF_FORM_STATE	 /* can't be named */
};

struct conf_suboption {
	const char *name;
	enum conf_form form;
	struct conf_option option;
	const char *missing; /* what is said when it has no value; NULL: it needs none */
	const char *range;   /* what is said of a value that isn't accepted; NULL: a general line */
	const char *effect;  /* NULL, or why it has none */
	const char *assigns; /* of CONF_FORM_WORDS */
};

extern const struct conf_suboption conf_suboptions[];
extern const int conf_suboption_count;

void conf_extended_init(struct conf *conf); /* their defaults */
void conf_extended_free(struct conf *conf);

/* FILE:SIZE[:bucket] (NULL: none was given) becomes the flash options; a second one is not used. */
int conf_ext_path(struct conf *conf, const char *value, bool second, char *why, size_t why_bytes);

/* Reads memcached's -o list. FS_OK; FS_ENOTFOUND for an unknown suboption; FS_EINVAL for a bad
   value; why says it as the operator is to see it. */
int conf_extended(struct conf *conf, const char *list, char *why, size_t why_bytes);

#endif
