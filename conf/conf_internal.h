/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by conf's own files: the tables' rows, single values, flags, the file, notes.
 *
 * Threads: those of conf.h. Errors: functions that tell the operator return FS_OK or an exit code; those with a
 * parameter why write the reason there, cut to why_bytes, for the caller to tell.
 */
#ifndef FS_CONF_CONF_INTERNAL_H
#define FS_CONF_CONF_INTERNAL_H

#include "base/error.h"
#include "conf/conf.h"

/* memcached's exit codes: sysexits' EX_USAGE for a bad value, 1 for an unknown option. */
#define CONF_EXIT_VALUE 64
#define CONF_EXIT_UNKNOWN 1

#define CONF_BLANKS " \t\n\v\f\r" /* that memcached passes over in front of a number */
#define CONF_WHY_BYTES 1024
#define CONF_ROWS_MAX 128

enum conf_row_kind { CONF_ROW_OPTION, CONF_ROW_ACTION, CONF_ROW_HEADING };

/* A row of options.def. */
struct conf_row {
	enum conf_row_kind kind;
	struct conf_option option; /* an action has name, letter, flags and text; a heading has text */
	const char *argument; /* the name of an action's argument, or NULL */
};

/* All rows of options.def, in order. Constant. */
extern const struct conf_row conf_rows[];
extern const int conf_row_count;

/* Returns the index of the row with this long name, or -1. Headings have no name. */
int conf_find_row(const char *name);

#define CONF_ACCEPTED_BYTES 256

/* Describes the accepted values: "a whole number from 1 to 256". Error lines show this text after "is not", and --help
   shows it too. Returns text. */
const char *conf_accepted(const struct conf_option *option, char text[CONF_ACCEPTED_BYTES]);

/* Returns the name of the row's argument in --help: "SIZE"; NULL when it takes none. Static storage. */
const char *conf_argument_name(const struct conf_row *row);

#define CONF_SHOWN_BYTES 80
/* Returns what an error line shows of an operator's text: its beginning, control characters as \xNN. */
const char *conf_shown(const char *value, char text[CONF_SHOWN_BYTES]);

#define CONF_VALUE_BYTES 64

/* Returns the field's value in the file's form. It is in text, in static storage, or, for a STRING, the field
   itself. */
const char *conf_value_text(const struct conf *conf, const struct conf_option *option, char text[CONF_VALUE_BYTES]);

/* Reads a value into its field. With append, a CONF_LIST value joins the present one. FS_OK; FS_EINVAL when
   conf_accepted() excludes the value, or FS_ENOMEM: the field is then unchanged. */
FS_MUST_CHECK int conf_value_set(struct conf *conf, const struct conf_option *option, const char *value, bool append);

/* Sets a row as a line of the file would; actions with CONF_IN_FILE too. FS_OK, or the errors of conf_set with why. */
int conf_row_set(struct conf *conf, const struct conf_row *row, const char *value, bool append, char *why,
		 size_t why_bytes) FS_MUST_CHECK;

/* Does what conf_load does, except for the log level. config_path is the file to read instead of the command line's
   --config, or NULL. */
int conf_read(struct conf *conf, int argc, char **argv, const char *config_path, FILE *out, FILE *err) FS_MUST_CHECK;

/* The mistakes of --check-config (faults.c). */
struct conf_faults {
	int exit_code; /* of the first one; 0: none so far */
	char *path; /* of the file, as it was given; NULL: no file */
	bool refused[CONF_ROWS_MAX]; /* rows whose value was refused */
	int lines[CONF_ROWS_MAX]; /* the file's line that gives the row; 0: none, or the command line does */
};
/* From here on mistakes are collected. conf_free ends it. */
void conf_faults_begin(struct conf *conf);
/* Takes the exit code of a mistake that was told. Returns 0 if loading goes on, to find others; else the code. */
int conf_fault(struct conf *conf, int exit_code) FS_MUST_CHECK;
/* Was a value of the option with this field refused? Always false without --check-config. */
bool conf_is_refused(const struct conf *conf, size_t offset);
/* Keeps the line of the file that gives a row, for conf_origin; 0: the command line gives it. */
void conf_keep_line(struct conf *conf, int row, int line);
/* Prints the beginning of an error line about an option: "--threads: ", or "FILE:LINE: threads: " where --check-config knows
   the line. */
void conf_tell_option(const struct conf *conf, FILE *err, const char *name);
#define CONF_NEXT_FAULT '\v' /* separates the mistakes in the why of a list of suboptions */
/* Prints each mistake of why behind origin and name. one_line: line ends within one become blanks. */
void conf_tell_each(FILE *err, const char *origin, const char *name, const char *why, bool one_line);

/* A walk over flags. */
struct conf_walk {
	bool applying; /* sets options; false: only looks for actions and --config */
	bool in_file; /* the flags are a line of a file */
	const char *origin; /* starts each error line: "FILE:LINE: ", or "" */
	int line; /* of the file; 0: the command line */
	const char *file; /* result: the argument of --config */
	const char *action; /* result: the last action that ends the start */
	FILE *out, *err; /* take the text of actions, and error lines */
	bool seen[CONF_ROWS_MAX]; /* rows that had a flag; kept from line to line of a file */
};

/* Do the flags of argv hold the long option? Mistakes are passed over. May permute argv. */
bool conf_walk_has(int argc, char **argv, const char *name);

/* Walks over the flags of argv. FS_OK, or CONF_EXIT with conf->exit_code. May permute argv. */
int conf_walk(struct conf *conf, int argc, char **argv, struct conf_walk *walk) FS_MUST_CHECK;

/* Reads the file of --config. Error lines about flags in it start with program, as getopt's do. Returns 0, or the exit
   code after an error line on err. Blocks on the file. */
int conf_load_file(struct conf *conf, const char *path, const char *program, FILE *err) FS_MUST_CHECK;

/* Does what no single row can: refuses options that contradict each other, derives values from several options, and
   notes options without effect. Returns 0, or the exit code after an error line on err. */
int conf_check(struct conf *conf, FILE *err) FS_MUST_CHECK;

/* Refuses an address of --metrics-listen that is none, or one at which the cache listens. Return 0, or the exit code after an
   error line on err. */
int conf_check_metrics(struct conf *conf, FILE *err) FS_MUST_CHECK;
int conf_check_ports(struct conf *conf, FILE *err) FS_MUST_CHECK;

/* Puts relative paths into the state directory, which the environment may name. Returns 0, or the exit code after an
   error line on err. */
int conf_state_paths(struct conf *conf, FILE *err) FS_MUST_CHECK;

/* Appends a note, cut to CONF_WHY_BYTES. Aborts when memory is out. */
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
	CONF_FORM_STATE /* has no name for the operator */
};

/* A row of extended.def. */
struct conf_suboption {
	const char *name;
	enum conf_form form;
	struct conf_option option;
	const char *missing; /* the error line when there is no value; NULL when it needs none */
	const char *range; /* the error line for a bad value; NULL for a general one */
	const char *effect; /* NULL, or the reason why it has no effect */
	const char *assigns; /* CONF_FORM_WORDS: assignments, "name=value,..." */
};

/* All rows of extended.def, in order. Constant. */
extern const struct conf_suboption conf_suboptions[];
extern const int conf_suboption_count;

/* Sets the suboptions' fields to their defaults. */
void conf_extended_init(struct conf *conf);

/* Frees the suboptions' strings, and sets them to NULL. */
void conf_extended_free(struct conf *conf);

/* Reads ext_path=FILE:SIZE[:BUCKET] (without "ext_path="; NULL: without "=" too) as --flash-path and --flash-size. Of several
   it takes the first one that isn't for a bucket of extstore's, else the first one, and notes what it doesn't use. FS_OK,
   FS_EINVAL with memcached's line in why, or FS_ENOMEM. */
FS_MUST_CHECK int conf_ext_path(struct conf *conf, const char *value, char *why, size_t why_bytes);

/* Reads memcached's -o list. FS_OK; FS_ENOTFOUND for an unknown suboption, FS_EINVAL for a bad value or FS_ENOMEM, with
   the whole error line in why. */
FS_MUST_CHECK int conf_extended(struct conf *conf, const char *list, char *why, size_t why_bytes);

#endif
