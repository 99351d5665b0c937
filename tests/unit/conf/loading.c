/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/conf/conf_test.h"

#define WORDS_MAX 32

static char file_name[64];

static void write_file(const char *text)
{
	FILE *file;
	int fd;

	strcpy(file_name, "/tmp/flashield-conf-XXXXXX");
	fd = mkstemp(file_name);
	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* text with each @ replaced by the file's name; to be freed. */
static char *with_file_name(const char *text)
{
	char *result = calloc(1, strlen(text) * sizeof(file_name) + 1);

	for (; *text; text++) {
		if (*text == '@')
			strcat(result, file_name);
		else
			strncat(result, text, 1);
	}
	return result;
}

void load(struct loaded *loaded, const char *words, const char *file_text)
{
	char program[] = "flashield", *argv[WORDS_MAX + 2] = { program }, *copy, *rest;
	size_t out_bytes, err_bytes;
	FILE *out = open_memstream(&loaded->out, &out_bytes);
	FILE *err = open_memstream(&loaded->err, &err_bytes);
	int argc = 1;

	if (file_text)
		write_file(file_text);
	copy = rest = with_file_name(words);
	while (argc <= WORDS_MAX && (argv[argc] = strsep(&rest, " ")) != NULL)
		if (*argv[argc])
			argc++;
	argv[argc] = NULL;
	log_set_level(LOG_LEVEL_ERROR);
	loaded->rc = conf_load(&loaded->conf, argc, argv, out, err);
	fclose(out);
	fclose(err);
	free(copy);
	if (file_text)
		unlink(file_name);
}

void unload(struct loaded *loaded)
{
	conf_free(&loaded->conf);
	free(loaded->out);
	free(loaded->err);
}

void expect_refusal(const char *words, const char *file_text, int exit_code, const char *text)
{
	struct loaded loaded;
	char *expected;

	load(&loaded, words, file_text);
	expected = with_file_name(text);
	assert_string_equal(loaded.err, expected);
	assert_int_equal(loaded.rc, CONF_EXIT);
	assert_int_equal(loaded.conf.exit_code, exit_code);
	assert_string_equal(loaded.out, "");
	free(expected);
	unload(&loaded);
}
