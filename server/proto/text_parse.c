/* SPDX-License-Identifier: BSD-3-Clause */
/* The text protocol's parser: a line in, a struct out. */
#include "server/proto/proto.h"

#include <string.h>

enum shape { KEYS, EXPIRY_KEYS, STORE, STORE_CAS, DELTA, KEY, TOUCH, DELAY, LEVEL, WORDS, META };

struct row {
	char name[16]; /* zero-padded: the first eight bytes are compared as one number */
	uint8_t length;
	uint8_t shape;
	uint16_t least, most;
};

static const struct row rows[TEXT_COMMANDS] = {
#define TEXT_COMMAND_ROW(name, id, shape, least, most) [TEXT_##id] = { name, sizeof(name) - 1, shape, least, most },
	TEXT_COMMAND_TABLE(TEXT_COMMAND_ROW)
#undef TEXT_COMMAND_ROW
};

static const char *const answers[TEXT_ERRORS] = {
#define TEXT_ERROR_ANSWER(id, answer) answer,
	TEXT_ERROR_TABLE(TEXT_ERROR_ANSWER)
#undef TEXT_ERROR_ANSWER
};

const char *text_error_answer(enum text_error error)
{
	return answers[error];
}

/* ---- words ------------------------------------------------------------------------------------ */

#define MOST_WORDS 7 /* cas with noreply has six; a seventh shows that there are too many */
#define SHORTEST_COMMAND 2u /* bytes */

struct words {
	struct {
		const char *text;
		size_t length;
	} word[MOST_WORDS];
	unsigned count;
};

bool text_word(const char **at, const char *end, const char **word, size_t *length)
{
	const char *start = *at, *stop;

	while (start < end && *start == ' ')
		start++;
	if (start == end) {
		*at = end;
		return false;
	}
	stop = memchr(start, ' ', (size_t)(end - start));
	if (!stop)
		stop = end;
	*word = start;
	*length = (size_t)(stop - start);
	*at = stop;
	return true;
}

static void split_words(const char *at, const char *end, struct words *words)
{
	words->count = 0;
	while (words->count < MOST_WORDS &&
	       text_word(&at, end, &words->word[words->count].text, &words->word[words->count].length))
		words->count++;
}

/* Returns true if the last word is "noreply". Of more than TEXT_WORDS_MOST words the last one is the one of this
   number, as in memcached. */
static bool ends_in_noreply(const char *at, const char *end)
{
	const char *word = "";
	size_t length = 0;

	for (unsigned count = 0; count < TEXT_WORDS_MOST && text_word(&at, end, &word, &length); count++)
		;
	return length == 7 && memcmp(word, "noreply", 7) == 0;
}

static bool word_is(const struct words *words, unsigned i, const char *text, size_t length)
{
	return words->word[i].length == length && memcmp(words->word[i].text, text, length) == 0;
}

static bool parse_unsigned(enum text_grammar grammar, const struct words *words, unsigned i, uint64_t *out)
{
	return text_unsigned(grammar, words->word[i].text, words->word[i].length, out);
}

static bool parse_signed(enum text_grammar grammar, const struct words *words, unsigned i, int64_t *out)
{
	return text_signed(grammar, words->word[i].text, words->word[i].length, out);
}

/* ---- the command word ------------------------------------------------------------------------ */

/* Returns the first word, if it has at most eight bytes, as a number, its first byte lowest. *bytes is its length, or 9
   and more if it is longer. */
static uint64_t first_word(const char *line, size_t length, size_t *bytes)
{
	const uint64_t ones = 0x0101010101010101ull;
	uint64_t word = 0, spaces;

	if (length < sizeof(word)) {
		memcpy(&word, line, length);
		memset((char *)&word + length, ' ', sizeof(word) - length);
	} else {
		memcpy(&word, line, sizeof(word));
	}
	spaces = word ^ (' ' * ones);
	spaces = (spaces - ones) & ~spaces & (0x80 * ones); /* the lowest bit that is set belongs to a space */
	if (spaces) {
		*bytes = (size_t)__builtin_ctzll(spaces) / 8;
		return word & (((uint64_t)1 << (8 * *bytes)) - 1);
	}
	*bytes = sizeof(word);
	while (*bytes < length && line[*bytes] != ' ' && *bytes < sizeof(rows[0].name))
		(*bytes)++;
	return word;
}

/* Returns the row of the line's first word, or NULL, and sets *bytes to the word's length. */
static const struct row *find_row(const char *line, size_t length, size_t *bytes)
{
	uint64_t word = first_word(line, length, bytes), name;

	for (const struct row *row = rows; row < rows + TEXT_COMMANDS; row++) {
		memcpy(&name, row->name, sizeof(name));
		if (name == word && row->length == *bytes &&
		    (*bytes <= sizeof(word) || memcmp(row->name, line, *bytes) == 0))
			return row;
	}
	return NULL;
}

bool text_may_be_long(const char *line, size_t length)
{
	const char *at = line, *word;
	size_t word_length, bytes;
	const struct row *row;

	if (!text_word(&at, line + length, &word, &word_length))
		return false;
	row = find_row(word, word_length, &bytes);
	return row && bytes == word_length && (row->shape == KEYS || row->shape == EXPIRY_KEYS);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static enum text_error parse_key(const struct words *words, struct text_command *out)
{
	if (words->word[0].length > TEXT_KEY_MAX)
		return TEXT_ERROR_FORMAT;
	out->key = words->word[0].text;
	out->key_length = (uint8_t)words->word[0].length;
	return TEXT_ERROR_OK;
}

/* Looks back for a space from the end of the longest possible key, as lines may have many MB. */
static bool has_long_word(const char *at, const char *end)
{
	while (end - at > TEXT_KEY_MAX) {
		const char *space = memrchr(at, ' ', TEXT_KEY_MAX + 1);

		if (!space)
			return true;
		at = space + 1;
	}
	return false;
}

/* A key that is too long fails the command before any of its keys is answered. */
static enum text_error parse_keys(const char *at, const char *end, struct text_command *out)
{
	const char *rest = at, *key;
	size_t length = 0;

	/* Most gets have a key right behind the name, and are too short for a key that is too long. */
	if (end - at < 2 || end - at > TEXT_KEY_MAX || at[1] == ' ') {
		if (!text_word(&rest, end, &key, &length))
			return TEXT_ERROR_INCOMPLETE;
		if (has_long_word(at, end))
			return TEXT_ERROR_FORMAT;
	}
	out->rest = at;
	out->rest_end = end;
	return TEXT_ERROR_OK;
}

static enum text_error parse_expiry_keys(enum text_grammar grammar, const char *at, const char *end,
					 struct text_command *out)
{
	const char *rest, *key;
	struct words words;
	size_t length;

	words.count = 1;
	if (!text_word(&at, end, &words.word[0].text, &words.word[0].length))
		return TEXT_ERROR_INCOMPLETE;
	rest = at;
	if (grammar == TEXT_GRAMMAR_NEW && !text_word(&rest, end, &key, &length))
		return TEXT_ERROR_INCOMPLETE;
	if (!parse_signed(grammar, &words, 0, &out->exptime))
		return TEXT_ERROR_EXPTIME;
	if (parse_keys(at, end, out) == TEXT_ERROR_FORMAT)
		return TEXT_ERROR_FORMAT;
	out->rest = at; /* an old gat without a key answers END */
	out->rest_end = end;
	return TEXT_ERROR_OK;
}

/* Reads flags and exptime, whose numbers are loose in both grammars. */
static bool parse_flags_and_time(const struct words *words, struct text_command *out)
{
	uint64_t flags;

	if (!parse_unsigned(TEXT_GRAMMAR_OLD, words, 1, &flags) ||
	    !parse_signed(TEXT_GRAMMAR_OLD, words, 2, &out->exptime))
		return false;
	out->flags = (uint32_t)flags;
	return true;
}

static bool parse_value_length(enum text_grammar grammar, const struct words *words, struct text_command *out)
{
	int64_t length;

	if (!parse_signed(grammar, words, 3, &length) || length < 0 || length > TEXT_VALUE_MAX)
		return false;
	out->value_length = (uint32_t)length;
	return true;
}

static enum text_error parse_store_line(const struct words *words, bool cas, struct text_command *out)
{
	if (parse_key(words, out) != TEXT_ERROR_OK || !parse_flags_and_time(words, out) ||
	    !parse_value_length(TEXT_GRAMMAR_OLD, words, out))
		return TEXT_ERROR_FORMAT;
	if (cas && !parse_unsigned(TEXT_GRAMMAR_OLD, words, 4, &out->number))
		return TEXT_ERROR_FORMAT;
	return TEXT_ERROR_OK;
}

/* A value follows as soon as its length is right, whatever else is wrong. */
static enum text_error parse_new_store_line(const struct words *words, const char *at, const char *end, bool cas,
					    struct text_command *out)
{
	if (!parse_value_length(TEXT_GRAMMAR_NEW, words, out))
		return TEXT_ERROR_FORMAT;
	out->value_follows = true;
	out->noreply = ends_in_noreply(at, end);
	if (parse_key(words, out) != TEXT_ERROR_OK || !parse_flags_and_time(words, out))
		return TEXT_ERROR_FORMAT;
	if (cas && (words->count < 5 || !parse_unsigned(TEXT_GRAMMAR_NEW, words, 4, &out->number)))
		return TEXT_ERROR_FORMAT;
	return TEXT_ERROR_OK;
}

static const char *plain_digits(const char *at, const char *end, uint32_t *number)
{
	const char *digit = at + 1, *stop = end - at < 10 ? end : at + 10;
	uint32_t value = 0;

	if (at >= end || *at != ' ')
		return NULL;
	for (; digit < stop; digit++) {
		uint32_t figure = (uint32_t)(unsigned char)*digit - '0';

		if (figure > 9)
			break;
		value = value * 10 + figure;
	}
	*number = value;
	return digit > at + 1 ? digit : NULL;
}

/* Reads a space and one to nine digits. Returns the position behind them, or NULL if there is something else. Most flags
   and times are a single digit, for which no loop is worth its instructions. */
static inline const char *plain_number(const char *at, const char *end, uint32_t *number)
{
	if (end - at > 2 && at[2] == ' ' && at[0] == ' ' && at[1] >= '0' && at[1] <= '9') {
		*number = (uint32_t)(at[1] - '0');
		return at + 2;
	}
	return plain_digits(at, end, number);
}

/* Parses, in one pass, a storage command as clients write it: " key flags exptime bytes" and nothing else. False: the
   words must be looked at one by one. */
static bool parse_plain_store(const char *at, const char *end, struct text_command *out)
{
	const char *space, *rest;
	uint32_t exptime;

	if (end - at < 2 || at[1] == ' ')
		return false;
	space = memchr(at + 1, ' ', (size_t)(end - at - 1));
	if (!space || space - at > TEXT_KEY_MAX)
		return false;
	out->key = at + 1;
	out->key_length = (uint8_t)(space - at - 1);
	rest = plain_number(space, end, &out->flags);
	rest = rest ? plain_number(rest, end, &exptime) : NULL;
	rest = rest ? plain_number(rest, end, &out->value_length) : NULL;
	out->exptime = rest ? exptime : 0;
	return rest == end;
}

static enum text_error parse_delete(const struct words *words, struct text_command *out)
{
	unsigned extra = words->count - 1 - out->noreply;

	/* Early versions of the protocol had a time behind the key; memcached took a zero for long. */
	if (extra > 1 || (extra == 1 && !word_is(words, 1, "0", 1)))
		return TEXT_ERROR_USAGE_DELETE;
	return parse_key(words, out);
}

static enum text_error parse_delay(enum text_grammar grammar, const struct words *words, struct text_command *out)
{
	out->exptime = 0;
	if (words->count > out->noreply && !parse_signed(grammar, words, 0, &out->exptime))
		return TEXT_ERROR_EXPTIME;
	return TEXT_ERROR_OK;
}

/* The shapes whose words mean the same in both grammars. */
static enum text_error parse_words(enum text_grammar grammar, const struct words *words, enum shape shape,
				   struct text_command *out)
{
	switch (shape) {
	case DELTA:
		if (parse_key(words, out) != TEXT_ERROR_OK)
			return TEXT_ERROR_FORMAT;
		return parse_unsigned(grammar, words, 1, &out->number) ? TEXT_ERROR_OK : TEXT_ERROR_DELTA;
	case TOUCH:
		if (parse_key(words, out) != TEXT_ERROR_OK)
			return TEXT_ERROR_FORMAT;
		return parse_signed(grammar, words, 1, &out->exptime) ? TEXT_ERROR_OK : TEXT_ERROR_EXPTIME;
	case DELAY:
		return parse_delay(grammar, words, out);
	default: /* LEVEL */
		if (!parse_unsigned(grammar, words, 0, &out->number))
			return TEXT_ERROR_FORMAT;
		return grammar == TEXT_GRAMMAR_NEW && out->number > UINT32_MAX ? TEXT_ERROR_FORMAT : TEXT_ERROR_OK;
	}
}

static enum text_error parse_old(const struct row *row, const struct words *words, struct text_command *out)
{
	enum shape shape = (enum shape)row->shape;

	if (words->count < row->least || words->count > row->most)
		return words->count < row->least ? TEXT_ERROR_INCOMPLETE : TEXT_ERROR_UNKNOWN;
	out->noreply = words->count > (shape == KEY) && word_is(words, words->count - 1, "noreply", 7);
	if (shape == STORE || shape == STORE_CAS)
		return parse_store_line(words, shape == STORE_CAS, out);
	return shape == KEY ? parse_delete(words, out) : parse_words(TEXT_GRAMMAR_OLD, words, shape, out);
}

/* Words beyond those that a command has are ignored. A key alone is no "noreply". */
static enum text_error parse_new(const struct row *row, const struct words *words, const char *at, const char *end,
				 struct text_command *out)
{
	enum shape shape = (enum shape)row->shape;

	if (words->count < (shape == STORE_CAS ? row->least - 1u : row->least))
		return TEXT_ERROR_INCOMPLETE;
	if (shape == STORE || shape == STORE_CAS)
		return parse_new_store_line(words, at, end, shape == STORE_CAS, out);
	out->noreply = words->count > (shape == KEY) && ends_in_noreply(at, end);
	return shape == KEY ? parse_key(words, out) : parse_words(TEXT_GRAMMAR_NEW, words, shape, out);
}

/* A line that starts with no command. */
static enum text_error __attribute__((cold, noinline))
parse_nothing(enum text_grammar grammar, const char *line, size_t length, const char *at, struct text_command *out)
{
	const char *end = line + length;

	if (grammar == TEXT_GRAMMAR_OLD)
		return at == end ? TEXT_ERROR_INCOMPLETE : TEXT_ERROR_UNKNOWN;
	out->noreply = ends_in_noreply(line, end);
	return length < SHORTEST_COMMAND ? TEXT_ERROR_INCOMPLETE : TEXT_ERROR_UNKNOWN;
}

enum text_error text_parse(enum text_grammar grammar, const char *line, size_t length, struct text_command *out)
{
	const char *end = line + length, *name = line, *at;
	const struct row *row;
	struct words words;
	size_t bytes;

	out->noreply = out->value_follows = false;
	out->key = NULL;
	while (name < end && *name == ' ')
		name++;
	row = find_row(name, (size_t)(end - name), &bytes);
	if (!row)
		return parse_nothing(grammar, line, length, name, out);
	out->id = (enum text_id)(row - rows);
	at = name + bytes;
	if (row->shape == KEYS)
		return parse_keys(at, end, out);
	if (row->shape == EXPIRY_KEYS)
		return parse_expiry_keys(grammar, at, end, out);
	if (row->shape == WORDS || row->shape == META) {
		out->rest = at;
		out->rest_end = end;
		return TEXT_ERROR_OK;
	}
	if (row->shape == STORE && parse_plain_store(at, end, out))
		return TEXT_ERROR_OK;
	out->key = NULL;
	split_words(at, end, &words);
	return grammar == TEXT_GRAMMAR_NEW ? parse_new(row, &words, at, end, out) : parse_old(row, &words, out);
}
