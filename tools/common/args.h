/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of command-line options. A value that is not of its form or outside its range ends the
 * program: one line names the option, what was given and what is accepted; exit status 2.
 *
 * Threads: the main thread, at start-up.
 */
#ifndef FS_TOOLS_COMMON_ARGS_H
#define FS_TOOLS_COMMON_ARGS_H

#include <stdint.h>

/* What all tools exit with beside 0: 1 = the run found wrong data, 2 = it could not be done. */
enum { EXIT_WRONG = 1, EXIT_TROUBLE = 2 };

/* A line "program: text" on standard error, then exit status 2. */
_Noreturn void arg_die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A whole number; suffixes k, m, g are thousands. */
uint64_t arg_count(const char *option, const char *text, uint64_t low, uint64_t high);

/* A decimal number; a fraction "1/100" is one too. */
double arg_real(const char *option, const char *text, double low, double high);

/* Bytes: suffixes k m g t, powers of 1024. */
uint64_t arg_size(const char *option, const char *text, uint64_t low, uint64_t high);

/* Microseconds: suffixes us ms s m h d; without one, seconds. */
uint64_t arg_time_us(const char *option, const char *text, uint64_t low_us, uint64_t high_us);

/* The index of text in a NULL-terminated list of words. */
int arg_word(const char *option, const char *text, const char *const *words);

#endif
