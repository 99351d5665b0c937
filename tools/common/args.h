/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of command-line options. A value that is not of its form or outside its range ends the
 * program: one line names the option, what was given and what is accepted; exit status 2.
 *
 * Threads: the main thread, at start-up.
 */
#ifndef FS_TOOLS_COMMON_ARGS_H
#define FS_TOOLS_COMMON_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* The exit status of all tools beside 0: 1 = the run found wrong data, 2 = the run failed. */
enum { EXIT_WRONG = 1, EXIT_TROUBLE = 2 };

/* Prints a line "program: text" on standard error and ends the program with exit status 2. */
_Noreturn void arg_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The following functions return the value of text, which lies in low..high. option is the name for the error line. */

/* Reads a whole number; the suffixes k, m, g are powers of 1000. */
uint64_t arg_count(const char *option, const char *text, uint64_t low, uint64_t high);

/* Reads a decimal number; a fraction like "1/100" is one too. */
double arg_real(const char *option, const char *text, double low, double high);

/* Reads bytes; the suffixes k m g t are powers of 1024. */
uint64_t arg_size(const char *option, const char *text, uint64_t low, uint64_t high);

/* Reads a time in microseconds; the suffixes are us ms s m h d, and a number without one is in seconds. */
uint64_t arg_time_us(const char *option, const char *text, uint64_t low_us, uint64_t high_us);

/* Returns the index of text in a NULL-terminated list of words. */
int arg_word(const char *option, const char *text, const char *const *words);

/* The form of an option's value, and the type of the variable that receives it. */
enum arg_kind {
	ARG_ON, /* no value; bool: becomes true */
	ARG_OFF, /* no value; bool: becomes false */
	ARG_TEXT, /* const char *: points into argv */
	ARG_COUNT, /* uint64_t */
	ARG_COUNT32, /* uint32_t */
	ARG_REAL, /* double */
	ARG_SIZE32, /* uint32_t */
	ARG_TIME_US, /* int64_t */
	ARG_WORD, /* an enum, or int: the index of the word */
	ARG_CALL, /* call receives the variable and the text */
};

struct arg_option {
	const char *name;
	enum arg_kind kind;
	void *to;
	double low, high; /* of numbers; high 0: any */
	const char *const *words;
	void (*call)(void *to, const char *text);
	char letter; /* the short form; 0: none */
};

/* ARG makes a row, whose fields beyond the first three are named. ARGS_END ends the table. */
#define ARG(name_, kind_, to_, ...) \
	{ \
		.name = name_, .kind = kind_, .to = to_, ##__VA_ARGS__ \
	}
#define ARGS_END \
	{ \
		.name = NULL \
	}

/* Stores the options of argv in the variables of their rows. The rows end with ARGS_END. "--help" prints help,
   "--version" the version; both end the program. Returns the index of the first word that is no option. */
FS_MUST_CHECK int args_parse(int argc, char **argv, const struct arg_option *options, const char *help);

#endif
