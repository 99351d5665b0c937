/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the operator writes: the first byte says where. 'f' a file (--config), 'o' a list for -o, else words of a command
 * line, a line each. What was accepted, described and read again as a file, is accepted and described as the same.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "conf/conf.h"
#include "tests/fuzz/fuzz.h"

#define WORDS 32u

/* The options as "name = value" lines, and what is against reading them again. */
struct described {
	char *text;
	size_t length;
	FILE *stream;
	bool unprintable; /* a value with bytes that no line of the file can have */
};

static void describe_one(void *context, const struct conf_option *option, const char *value)
{
	struct described *out = context;
	bool quoted = option->type == CONF_TYPE_STRING || option->type == CONF_TYPE_CHAR;

	if (!*value)
		return;
	for (const char *at = value; *at; at++)
		out->unprintable = out->unprintable || (unsigned char)*at < ' ' || *at == 127 || *at == '"';
	fprintf(out->stream, quoted ? "%s = \"%s\"\n" : "%s = %s\n", option->name, value);
}

static void describe(const struct conf *conf, struct described *out)
{
	*out = (struct described){ 0 };
	out->stream = open_memstream(&out->text, &out->length);
	require(out->stream);
	conf_describe(conf, describe_one, out);
	require(fclose(out->stream) == 0);
}

static FILE *nowhere(void)
{
	static FILE *null;

	if (!null)
		null = fopen("/dev/null", "w");
	require(null);
	return null;
}

/* FS_OK: *conf is to be described. It is to be freed in any case. */
static int load(struct conf *conf, int argc, char **argv, FILE *err)
{
	int code = conf_load(conf, argc, argv, nowhere(), err);

	log_set_level(LOG_LEVEL_ERROR);
	require(code == FS_OK || code == CONF_EXIT);
	return code;
}

static int load_file(struct conf *conf, const char *text, size_t length, FILE *err)
{
	char path[48], program[] = "flashield";
	char *argv[] = { program, path, NULL };
	int fd = memfd_create("conf", MFD_CLOEXEC), code;

	require(fd >= 0 && write(fd, text, length) == (ssize_t)length);
	snprintf(path, sizeof(path), "--config=/proc/self/fd/%d", fd);
	code = load(conf, 2, argv, err);
	close(fd);
	return code;
}

/* --config would read any file of the machine. */
static bool names_a_file(const char *word)
{
	return strncmp(word, "--c", 3) == 0 && strncmp(word, "--conn", 6) != 0;
}

static int load_words(struct conf *conf, char *text, size_t length)
{
	char *words[WORDS + 2] = { 0 }, program[] = "flashield", *end = text + length;
	int argc = 0;

	words[argc++] = program;
	while (text < end && argc <= (int)WORDS) {
		char *stop = memchr(text, '\n', (size_t)(end - text));

		if (names_a_file(text)) {
			conf_init(conf);
			return CONF_EXIT;
		}
		words[argc++] = text;
		if (!stop)
			break;
		*stop = 0;
		text = stop + 1;
	}
	return load(conf, argc, words, nowhere());
}

static int load_list(struct conf *conf, char *list)
{
	char program[] = "flashield", option[] = "-o";
	char *words[] = { program, option, list, NULL };

	return load(conf, 3, words, nowhere());
}

static int load_any(struct conf *conf, const uint8_t *data, size_t size)
{
	char *text = malloc(size); /* without the first byte, and with a 0 behind it */
	int code;

	if (!text)
		abort();
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	if (data[0] == 'f')
		code = load_file(conf, text, size - 1, nowhere());
	else if (data[0] == 'o')
		code = load_list(conf, text);
	else
		code = load_words(conf, text, size - 1);
	free(text);
	return code;
}

/* What only -o says, and what was given but is as the default, are not described: what was checked of them together with
   other options may not hold without them. */
static void read_again(const struct described *first)
{
	struct described second;
	struct conf conf = { 0 };

	if (load_file(&conf, first->text, first->length, stderr) == FS_OK) {
		describe(&conf, &second);
		if (strcmp(first->text, second.text) != 0)
			fprintf(stderr, "--- first:\n%s--- and then:\n%s", first->text, second.text);
		require(strcmp(first->text, second.text) == 0);
		free(second.text);
	} else {
		fprintf(stderr, "%s", first->text);
		require(false);
	}
	conf_free(&conf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct described described;
	struct conf conf = { 0 };

	if (size == 0)
		return 0;
	if (load_any(&conf, data, size) == FS_OK) {
		describe(&conf, &described);
		if (!described.unprintable)
			read_again(&described);
		free(described.text);
	}
	conf_free(&conf);
	return 0;
}
