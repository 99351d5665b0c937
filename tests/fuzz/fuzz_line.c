/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text protocol's parser on a line. Its ways for what clients mostly write agree with those for all lines; what it
 * has read, written down again, is read as the same.
 */
#include "server/proto/proto.h"
#include "tests/fuzz/fuzz.h"

enum shape { KEYS, EXPIRY_KEYS, STORE, STORE_CAS, DELTA, KEY, TOUCH, DELAY, LEVEL, WORDS, META };

static const struct row {
	const char *name;
	enum shape shape;
} rows[TEXT_COMMANDS] = {
#define ROW(name, id, shape, least, most) [TEXT_##id] = { name, shape },
	TEXT_COMMAND_TABLE(ROW)
#undef ROW
};

static bool same_bytes(const char *a, size_t a_length, const char *b, size_t b_length)
{
	return a_length == b_length && (a_length == 0 || memcmp(a, b, a_length) == 0);
}

static bool has_key(enum shape shape)
{
	return shape == STORE || shape == STORE_CAS || shape == DELTA || shape == KEY || shape == TOUCH;
}

static void require_inside(const char *at, const char *end, const char *line, size_t length)
{
	require(line <= at && at <= end && end <= line + length);
}

/* Pointers lead into the line, numbers are in their ranges. */
static void check_fields(const struct text_command *command, const char *line, size_t length)
{
	enum shape shape;

	require(command->id < TEXT_COMMANDS);
	shape = rows[command->id].shape;
	if (has_key(shape)) {
		require(command->key_length >= 1 && command->key_length <= TEXT_KEY_MAX);
		require_inside(command->key, command->key + command->key_length, line, length);
		require(!memchr(command->key, ' ', command->key_length));
	} else if (shape == KEYS || shape == EXPIRY_KEYS || shape == WORDS || shape == META) {
		require_inside(command->rest, command->rest_end, line, length);
	}
	if (shape == STORE || shape == STORE_CAS)
		require(command->value_length <= TEXT_VALUE_MAX);
}

static void require_same(const struct text_command *a, const struct text_command *b)
{
	enum shape shape = rows[a->id].shape;

	require(a->id == b->id && a->noreply == b->noreply);
	if (has_key(shape))
		require(same_bytes(a->key, a->key_length, b->key, b->key_length));
	if (shape == STORE || shape == STORE_CAS)
		require(a->flags == b->flags && a->value_length == b->value_length);
	if (shape == STORE || shape == STORE_CAS || shape == TOUCH || shape == DELAY || shape == EXPIRY_KEYS)
		require(a->exptime == b->exptime);
	if (shape == STORE_CAS || shape == DELTA || shape == LEVEL)
		require(a->number == b->number);
}

/* The keys of a multiget are words, none too long, and as many in both. */
static void require_same_keys(const struct text_command *a, const struct text_command *b)
{
	const char *at = a->rest, *other = b->rest, *word, *other_word;
	size_t length, other_length;

	while (text_word(&at, a->rest_end, &word, &length)) {
		require(text_word(&other, b->rest_end, &other_word, &other_length));
		require(length <= TEXT_KEY_MAX && same_bytes(word, length, other_word, other_length));
	}
	require(!text_word(&other, b->rest_end, &other_word, &other_length));
}

/* A second space behind the name leads around each of the short ways. */
static void compare_with_long_way(enum text_grammar grammar, const char *line, size_t length, enum text_error error,
				  const struct text_command *command)
{
	const char *end = line + length, *at = line, *name;
	struct text_command other;
	size_t before, name_length;
	char *wide;

	if (!text_word(&at, end, &name, &name_length) || at == end)
		return;
	before = (size_t)(at - line);
	wide = malloc(length + 1);
	if (!wide)
		abort();
	memcpy(wide, line, before);
	wide[before] = ' ';
	memcpy(wide + before + 1, at, length - before);
	require(text_parse(grammar, wide, length + 1, &other) == error);
	if (error == TEXT_ERROR_OK) {
		require_same(command, &other);
		if (rows[command->id].shape == KEYS || rows[command->id].shape == EXPIRY_KEYS)
			require_same_keys(command, &other);
	} else if (error != TEXT_ERROR_UNKNOWN) {
		require(command->noreply == other.noreply);
	}
	free(wide);
}

/* As a client would write it. 0: it would not. */
static size_t print(const struct text_command *c, char *out, size_t size)
{
	const char *name = rows[c->id].name, *noreply = c->noreply ? " noreply" : "";
	unsigned long long number = c->number;
	long long exptime = c->exptime;

	switch (rows[c->id].shape) {
	case STORE:
		return (size_t)snprintf(out, size, "%s %.*s %u %lld %u%s", name, c->key_length, c->key, c->flags,
					exptime, c->value_length, noreply);
	case STORE_CAS:
		return (size_t)snprintf(out, size, "%s %.*s %u %lld %u %llu%s", name, c->key_length, c->key, c->flags,
					exptime, c->value_length, number, noreply);
	case DELTA:
		return (size_t)snprintf(out, size, "%s %.*s %llu%s", name, c->key_length, c->key, number, noreply);
	case TOUCH:
		return (size_t)snprintf(out, size, "%s %.*s %lld%s", name, c->key_length, c->key, exptime, noreply);
	case KEY:
		return (size_t)snprintf(out, size, "%s %.*s%s", name, c->key_length, c->key, noreply);
	case DELAY:
		return (size_t)snprintf(out, size, "%s %lld%s", name, exptime, noreply);
	case LEVEL:
		return (size_t)snprintf(out, size, "%s %llu%s", name, number, noreply);
	default:
		return 0;
	}
}

static void print_and_parse(enum text_grammar grammar, const struct text_command *command)
{
	struct text_command again;
	char text[512], *line;
	size_t length;

	if (command->key && memchr(command->key, 0, command->key_length)) /* printf would end there */
		return;
	length = print(command, text, sizeof(text));
	if (length == 0)
		return;
	line = fuzz_copy(text, length);
	require(text_parse(grammar, line, length, &again) == TEXT_ERROR_OK);
	require_same(command, &again);
	free(line);
}

static void parse_by(enum text_grammar grammar, const char *line, size_t size)
{
	struct text_command command = { 0 };
	enum text_error error = text_parse(grammar, line, size, &command);

	require(error < TEXT_ERRORS && (error == TEXT_ERROR_OK) == (*text_error_answer(error) == 0));
	require(!command.value_follows || command.value_length <= TEXT_VALUE_MAX);
	if (error == TEXT_ERROR_OK) {
		enum shape shape = rows[command.id].shape;

		check_fields(&command, line, size);
		print_and_parse(grammar, &command);
		require(text_may_be_long(line, size) == (shape == KEYS || shape == EXPIRY_KEYS));
	}
	compare_with_long_way(grammar, line, size, error, &command);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *line = fuzz_copy(data, size);

	parse_by(TEXT_GRAMMAR_OLD, line, size);
	parse_by(TEXT_GRAMMAR_NEW, line, size);
	free(line);
	return 0;
}
