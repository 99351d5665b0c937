/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's options: declared once in options.def, read from the command line and a file.
 *
 *   defaults (options.def)  <  file (--config)  <  command line
 *
 * Types, and what the operator may write for them:
 *
 *   FLAG    bool        yes no on off true false 1 0; alone on the command line it is yes
 *   COUNT   int         on the command line each mention adds one (-vv); in the file a number
 *   INT     int         a whole number, or auto (CONF_AUTO) where the row allows it
 *   SIZE    uint64_t    bytes; suffixes k m g t p (powers of 1024); auto is 0
 *   TIME    uint64_t    microseconds; suffixes us ms s m h d, bare numbers are seconds; auto is 0
 *   RATE    uint64_t    bytes per second: a size, with or without "/s"
 *   REAL    double      a decimal number; auto is 0
 *   OCTAL   unsigned    octal digits
 *   CHAR    char        one printable character
 *   STRING  char *      NULL when not given; owned by the struct
 *   ENUM    int         one of the row's words; its index in the row is the value (enums below)
 *
 * Threads: one thread loads. Afterwards the struct is constant, and any thread may read it. A reload hands new values
 * to the modules concerned (server/admin/reload.h), and never writes them into this struct.
 * Ownership: the caller owns the struct; conf_free() frees its strings and notes.
 * Errors: an operator's mistake becomes an error line with the option, its value and the accepted range. No operator's
 * text trips an assert.
 */
#ifndef FS_CONF_CONF_H
#define FS_CONF_CONF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"

#define CONF_AUTO (-1) /* "auto" in an INT field */

/* Values of the ENUM fields, in the order of the words in options.def. */
enum conf_protocol { CONF_PROTOCOL_AUTO, CONF_PROTOCOL_ASCII, CONF_PROTOCOL_BINARY };
enum conf_app_source { CONF_APP_SOURCE_PREFIX, CONF_APP_SOURCE_USER };
enum conf_clock_mode { CONF_CLOCK_LRU, CONF_CLOCK_MFU };
enum conf_index { CONF_INDEX_SLOTS, CONF_INDEX_FRUGAL };
enum conf_filter { CONF_FILTER_BLOOM, CONF_FILTER_CUCKOO };
enum conf_direct_io { CONF_DIRECT_IO_AUTO, CONF_DIRECT_IO_OFF };
enum conf_flash_read_unit { CONF_READ_BLOCK, CONF_READ_PAGE };
enum conf_placement { CONF_PLACEMENT_SWEEP, CONF_PLACEMENT_PAPER };
enum conf_reinsertion { CONF_REINSERTION_READ, CONF_REINSERTION_LIVE };
enum conf_admission {
	CONF_ADMISSION_SVM,
	CONF_ADMISSION_READ_ONCE,
	CONF_ADMISSION_READ_OR_SECOND_HIT,
	CONF_ADMISSION_ALL,
	CONF_ADMISSION_FREQ,
	CONF_ADMISSION_SECOND_HIT
};
enum conf_promote { CONF_PROMOTE_OFF, CONF_PROMOTE_SKETCH, CONF_PROMOTE_LRU, CONF_PROMOTE_SECOND };
enum conf_hotkeys { CONF_HOTKEYS_KEYS, CONF_HOTKEYS_HASHES, CONF_HOTKEYS_OFF };
enum conf_sample_contents { CONF_SAMPLE_CONTENTS_OFF, CONF_SAMPLE_CONTENTS_ON };
enum conf_journal { CONF_JOURNAL_OFF, CONF_JOURNAL_SYNC };
enum conf_seccomp { CONF_SECCOMP_OFF, CONF_SECCOMP_ON };
enum conf_label_mode { CONF_LABEL_FULL, CONF_LABEL_PAPER };

enum conf_type {
	CONF_TYPE_FLAG,
	CONF_TYPE_COUNT,
	CONF_TYPE_INT,
	CONF_TYPE_SIZE,
	CONF_TYPE_TIME,
	CONF_TYPE_RATE,
	CONF_TYPE_REAL,
	CONF_TYPE_OCTAL,
	CONF_TYPE_CHAR,
	CONF_TYPE_STRING,
	CONF_TYPE_ENUM
};

enum conf_flags {
	CONF_AUTO_WORD = 1, /* "auto" is accepted */
	CONF_LIST = 2, /* values are joined by commas */
	CONF_PAGES = 4, /* a multiple of 4096 */
	CONF_RELOAD = 8, /* SIGHUP takes a new value of it */
	CONF_IN_FILE = 16 /* an action that the file may have too */
};

#define CONF_C_FLAG bool
#define CONF_C_COUNT int
#define CONF_C_INT int
#define CONF_C_SIZE uint64_t
#define CONF_C_TIME uint64_t
#define CONF_C_RATE uint64_t
#define CONF_C_REAL double
#define CONF_C_OCTAL unsigned
#define CONF_C_CHAR char
#define CONF_C_STRING char *
#define CONF_C_ENUM int

/* A line for the operator from a load that succeeded. */
struct conf_note {
	struct conf_note *next;
	enum log_level level;
	char text[];
};

/* One field per row of options.def and of extended.def, by the row's field name: conf.threads, conf.flash_path,
   conf.ssl_key, ... */
struct conf {
#define OPTION(name, letter, type, field, def, min, max, unit, flags, text) CONF_C_##type field;
#define ACTION(name, letter, argument, flags, text)
#define HEADING(text)
#include "conf/options.def"
#undef OPTION
#undef ACTION
#undef HEADING
#define NUMBER(name, form, type, field, def, min, max, unit, missing, range, effect, text) CONF_C_##type field;
#define CHOICE(name, field, def, words, missing, range, effect, text) CONF_C_ENUM field;
#define TEXT(name, field, effect, text) CONF_C_STRING field;
#define SWITCH(name, field, def, effect, text) CONF_C_FLAG field;
#define WORDS(name, assigns, effect, text)
#define STATE(type, field, def) CONF_C_##type field;
#include "conf/extended.def"
#undef NUMBER
#undef CHOICE
#undef TEXT
#undef SWITCH
#undef WORDS
#undef STATE
	char *config_path; /* of --config, or NULL; absolute, so that a reload finds it from any folder */
	/* Only for the checks of loading: -B was given; -o ext_path was given, and the one in use names a bucket; -p was
	   given. */
	bool protocol_given, ext_path_given, ext_path_special, port_given;
	bool flash_by_ext_path; /* flash_path is of -o ext_path: as in memcached, what extstore has left there is overwritten */
	unsigned
		compat_release; /* N if compat_version is 1.6.N; UINT_MAX if it is later, 0 if it is earlier or no version */
	struct conf_note *notes; /* in the order of their making */
	struct conf_faults *faults; /* --check-config was given; else NULL */
	int exit_code; /* after CONF_EXIT, and with faults after FS_OK */
};

/* A row of options.def. */
struct conf_option {
	const char *name; /* the long option, and the file's key */
	char letter; /* 0: none */
	enum conf_type type;
	const char *default_text; /* NULL: no value */
	double min, max; /* in the field's unit; for STRING its length */
	const char *unit;
	unsigned flags; /* enum conf_flags */
	const char *text;
	size_t offset; /* of its field in struct conf */
};

#define CONF_EXIT 1 /* the process is to end, and not for an error of ours */

/*
 * Sets all fields from defaults, file and command line, in this order.
 *
 * FS_OK: the start goes on, and the log level follows -v. CONF_EXIT: the process is to end with conf->exit_code. This
 * is 0 after an action such as -h, which has printed on out. After an error line on err it is memcached's code: 64 for
 * a bad value, 1 for an unknown option, for -o, and for the few values that memcached refuses with 1 (-t 0). Call
 * conf_free in every case. May permute argv. Reads the file of --config, and blocks on it.
 *
 * With --check-config it tells all mistakes on err, one line each, instead of only the first, and returns FS_OK: the
 * caller checks what only the system knows, and ends the process. conf->faults is set then, and conf->exit_code is the
 * code of the first mistake, or 0. Fields whose values were refused have their defaults.
 */
int conf_load(struct conf *conf, int argc, char **argv, FILE *out, FILE *err) FS_MUST_CHECK;

#define CONF_ORIGIN_BYTES 4200

/* With --check-config: returns "FILE:LINE: " for an option that the file has given, and "" for any other; the text is in
   `text`. */
const char *conf_origin(const struct conf *conf, const char *name, char text[CONF_ORIGIN_BYTES]);

/* Returns the path from the root; the caller frees it by free. Links stay, because an operator may exchange their targets.
   For what is opened again later: with -d the daemon leaves the folder in which it was started. */
char *conf_absolute(const char *path);

/* Returns the log level that -v asks for. */
enum log_level conf_log_level(const struct conf *conf);

/*
 * Reads defaults, file and command line once more into fresh, for a running daemon. argc and argv are those of
 * conf_load, in the order that it has left. The file is running->config_path.
 *
 * FS_OK; else CONF_EXIT or FS_ENOMEM, and one line in why (cut to why_bytes) names origin, option and accepted range.
 * Call conf_free(fresh) in every case. Changes nothing but fresh, not even the log level. Only the thread that called
 * conf_load may call it. Blocks on the file.
 */
int conf_reload(struct conf *fresh, const struct conf *running, int argc, char **argv, char *why,
		size_t why_bytes) FS_MUST_CHECK;

/* An option whose value differs in two structs. */
struct conf_change {
	const struct conf_option *option;
	bool reloadable; /* its row has CONF_RELOAD */
	const char *before, *after; /* in the file's form; "" for no value */
};
typedef void conf_change_fn(void *context, const struct conf_change *change);

/* Calls each() for every option, and for every suboption with an effect, whose value differs. The texts live until
   each() returns. */
void conf_each_change(const struct conf *before, const struct conf *after, conf_change_fn *each, void *context);

/* Copies fresh's value of the option to conf. The option must not be a STRING, as a text has one owner. */
void conf_adopt(struct conf *conf, const struct conf *fresh, const struct conf_option *option);

/* Logs the notes, each at its level. */
void conf_log_notes(const struct conf *conf);

/* Sets all fields to their defaults, and reads nothing. For tests and tools. Call conf_free afterwards. */
void conf_init(struct conf *conf);

/*
 * Sets one option by its long name, as a line of the file would. FS_OK; or FS_ENOTFOUND for an unknown option,
 * FS_EINVAL for a bad value, FS_ENOMEM, each with the reason in why (cut to why_bytes).
 */
int conf_set(struct conf *conf, const char *name, const char *value, char *why, size_t why_bytes) FS_MUST_CHECK;

/* Frees strings and notes. The struct may then be loaded again. A zeroed struct is allowed. */
void conf_free(struct conf *conf);

typedef void conf_each_fn(void *context, const struct conf_option *option, const char *value);

/*
 * Calls each() for every option in the order of options.def, with its present value in the file's form ("64m", "1d",
 * "auto", "yes"; "" for no value). The text lives until each() returns.
 */
void conf_describe(const struct conf *conf, conf_each_fn *each, void *context);

/* Prints --help. */
void conf_print_help(FILE *out);

/* Prints the license, for -i. */
void conf_print_license(FILE *out);

/* Prints the sample file, for --print-sample-config. */
void conf_print_sample(FILE *out);

/* Prints bash's arrays of options and suboptions, which packaging/completion/flashield.bash reads. */
void conf_print_completion(FILE *out);

/* The parts of manual pages and guides that are made from the rows: tables in Markdown, lists in mdoc. */
enum conf_reference {
	CONF_REFERENCE_MD_OPTIONS,
	CONF_REFERENCE_MD_SUBOPTIONS,
	CONF_REFERENCE_MD_EXTSTORE, /* extstore's suboptions */
	CONF_REFERENCE_MD_MEMCACHED, /* the options that memcached has as flags */
	CONF_REFERENCE_MAN_OPTIONS,
	CONF_REFERENCE_MAN_FILE, /* options as lines of the file */
	CONF_REFERENCE_MAN_SUBOPTIONS
};

/* Prints one of these parts, without the marks around it. */
void conf_print_reference(FILE *out, enum conf_reference part);

/* Does --compat-version name memcached 1.6.release or a later one? False for text that is no version. */
static inline bool conf_compat_from(const struct conf *conf, unsigned release)
{
	return conf->compat_release >= release;
}

/* Sets the lines that -V adds about the build, each with a line end; NULL, as at first: none. The text must outlive all loads.
   Call it before conf_load. */
void conf_set_build(const char *lines);

/* Prints -V: memcached's line on out, because scripts read it; our own version and the build on err. */
void conf_print_version(FILE *out, FILE *err, const char *compat_version);

#endif
