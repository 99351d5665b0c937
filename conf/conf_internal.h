/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by conf's own files: the tables' rows, reading and writing one value, flags, the file, notes. */
#ifndef FS_CONF_CONF_INTERNAL_H
#define FS_CONF_CONF_INTERNAL_H

#include "conf/conf.h"

/* memcached's exit codes: sysexits' EX_USAGE for a value out of its range, 1 for what isn't known at all. */
#define CONF_EXIT_VALUE 64
#define CONF_EXIT_UNKNOWN 1

#define CONF_WHY_BYTES 1024
#define CONF_ROWS_MAX 128

#define CONF_ITEM_HALF "Cannot set item size limit higher than 1/2 of memory max."

enum conf_row_kind { CONF_ROW_OPTION, CONF_ROW_ACTION, CONF_ROW_HEADING };

struct conf_row {
	enum conf_row_kind kind;
	struct conf_option option; /* of an action: name, letter, flags, text; of a heading: text */
	const char *argument; /* of an action: its name, or NULL */
};

extern const struct conf_row conf_rows[];
extern const int conf_row_count;

/* The row of a long name, -1 if there is none. Headings have no name. */
int conf_find_row(const char *name);

/* What the option accepts, to follow "is not" or to stand in --help: "a whole number from 1 to 256". */
#define CONF_ACCEPTED_BYTES 256
const char *conf_accepted(const struct conf_option *option, char text[CONF_ACCEPTED_BYTES]);

/* What stands for its value in --help, "SIZE"; NULL where it takes none. */
const char *conf_argument_name(const struct conf_row *row);

/* The field's value as the file would have it: in text, or the field itself for a STRING. */
#define CONF_VALUE_BYTES 64
const char *conf_value_text(const struct conf *conf, const struct conf_option *option, char text[CONF_VALUE_BYTES]);

/* Reads a value into its field. append joins a CONF_LIST value to what is there. FS_OK, FS_EINVAL
   (not what conf_accepted() says; the field is unchanged) or FS_ENOMEM. */
int conf_value_set(struct conf *conf, const struct conf_option *option, const char *value, bool append);

/* Sets a row as a line of the file would, actions with CONF_IN_FILE too. FS_OK, or an error with why. */
int conf_row_set(struct conf *conf, const struct conf_row *row, const char *value, bool append, char *why,
		 size_t why_bytes) FS_MUST_CHECK;

/* conf_load without the log level. config_path: where the file of --config lies, NULL: where the command line says. */
int conf_read(struct conf *conf, int argc, char **argv, const char *config_path, FILE *out, FILE *err) FS_MUST_CHECK;

/* A walk over flags. */
struct conf_walk {
	bool applying; /* or only looking for actions and --config */
	bool in_file; /* the flags are a line of a file */
	const char *place; /* before what is told of a mistake: "FILE:LINE: ", or "" */
	const char *file; /* out: --config's */
	const char *action; /* out: the last action that ends the start */
	FILE *out, *err;
	bool seen[CONF_ROWS_MAX]; /* which rows there were; kept from line to line of a file */
};

/* FS_OK, or CONF_EXIT with conf->exit_code. May permute argv. */
int conf_walk(struct conf *conf, int argc, char **argv, struct conf_walk *walk) FS_MUST_CHECK;

/* Reads the file of --config, whose flags are told as program's. 0 or the exit code, told on err. */
int conf_load_file(struct conf *conf, const char *path, const char *program, FILE *err) FS_MUST_CHECK;

/* What no single row can say: options that don't go together, and what follows from several. Notes what has no
   effect. 0 or the exit code, told on err. */
int conf_check(struct conf *conf, FILE *err) FS_MUST_CHECK;

/* Paths that lie in the state directory, which the environment may name. 0 or the exit code, told on err. */
int conf_place(struct conf *conf, FILE *err) FS_MUST_CHECK;

/* Appends a note. Aborts when memory is out. */
void conf_note(struct conf *conf, enum log_level level, const char *format, ...) __attribute__((format(printf, 3, 4)));

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
	CONF_FORM_STATE /* can't be named */
};

struct conf_suboption {
	const char *name;
	enum conf_form form;
	struct conf_option option;
	const char *missing; /* what is said when it has no value; NULL: it needs none */
	const char *range; /* what is said of a value that isn't accepted; NULL: a general line */
	const char *effect; /* NULL, or why it has none */
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
