/* SPDX-License-Identifier: BSD-3-Clause */
/* The meta commands' parser: a line in, a struct out. */
#include "server/proto/meta_parse.h"

#include <string.h>

#include "base/assert.h"

#define FLAG_WORDS (META_WORDS - 1) /* after the key */

static const char *const answers[META_ERRORS] = {
#define META_ERROR_ANSWER(id, answer) answer,
	META_ERROR_TABLE(META_ERROR_ANSWER)
#undef META_ERROR_ANSWER
};

const char *meta_error_answer(enum meta_error error)
{
	return answers[error];
}

/* ---- flags ----------------------------------------------------------------------------------- */

static const uint8_t kinds[128] = {
#define META_FLAG_KIND(letter, kind) [letter] = META_##kind,
	META_FLAG_TABLE(META_FLAG_KIND)
#undef META_FLAG_KIND
};

static enum meta_error parse_flag_number(enum text_grammar grammar, struct meta_command *out, char flag,
					 const char *token, size_t length)
{
	uint64_t flags;

	switch (flag) {
	case 'C':
		return text_unsigned(grammar, token, length, &out->cas) ? META_ERROR_OK : META_ERROR_TOKEN;
	case 'E':
		return text_unsigned(grammar, token, length, &out->new_cas) ? META_ERROR_OK : META_ERROR_TOKEN;
	case 'D':
		return text_unsigned(grammar, token, length, &out->delta) ? META_ERROR_OK : META_ERROR_DELTA;
	case 'J':
		return text_unsigned(grammar, token, length, &out->initial) ? META_ERROR_OK : META_ERROR_INITIAL;
	case 'F':
		if (!text_unsigned(grammar, token, length, &flags) ||
		    (grammar == TEXT_GRAMMAR_NEW && flags > UINT32_MAX))
			return META_ERROR_FORMAT;
		out->client_flags = (uint32_t)flags;
		return META_ERROR_OK;
	case 'N':
		out->vivify_last = meta_given(out, 'T');
		return text_signed(grammar, token, length, &out->vivify_exptime) ? META_ERROR_OK : META_ERROR_TOKEN;
	case 'R':
		return text_signed(grammar, token, length, &out->recache_exptime) ? META_ERROR_OK : META_ERROR_TOKEN;
	default:
		out->old_ttl = meta_given(out, 't');
		out->recache_first = meta_given(out, 'R');
		return text_signed(grammar, token, length, &out->exptime) ? META_ERROR_OK : META_ERROR_TOKEN;
	}
}

static enum meta_error decode_key(struct meta_command *out)
{
	unsigned length = meta_decode_key(out->key, out->key_length, out->decoded);

	if (length == 0)
		return META_ERROR_KEY;
	out->key = out->decoded;
	out->key_length = (uint8_t)length;
	return META_ERROR_OK;
}

/* Parses a flag that is known and wasn't given before. */
static enum meta_error parse_token(enum text_grammar grammar, struct meta_command *out, enum meta_kind kind,
				   const char *word, size_t length)
{
	const char *token = word + 1;

	switch (kind) {
	case META_OPAQUE:
		out->opaque = token;
		out->opaque_length = length - 1 > META_OPAQUE_MAX ? META_OPAQUE_MAX + 1 : (uint8_t)(length - 1);
		__attribute__((fallthrough)); /* it is answered too */
	case META_ANSWERED:
		if (*word == 't')
			out->made_ttl = meta_given(out, 'N') + meta_given(out, 'T');
		must(out->answer_count < META_ANSWERS);
		out->answers[out->answer_count++] = *word;
		return META_ERROR_OK;
	case META_BASE64:
		return decode_key(out);
	case META_MODE:
		if (length != 2 && grammar == TEXT_GRAMMAR_OLD)
			return META_ERROR_MODE_LENGTH;
		out->mode = length > 1 ? *token : '\0';
		return META_ERROR_OK;
	case META_NUMBER:
		return parse_flag_number(grammar, out, *word, token, length - 1);
	default:
		return META_ERROR_OK;
	}
}

/* False: an unknown flag, or a second one of its kind, ends the parsing. Of several bad tokens the last one is
   answered. */
static bool parse_flag(enum text_grammar grammar, struct meta_command *out, const char *word, size_t length,
		       enum meta_error *error)
{
	unsigned char flag = (unsigned char)*word;
	enum meta_kind kind = flag < sizeof(kinds) ? (enum meta_kind)kinds[flag] : META_NO_FLAG;
	enum meta_error wrong;

	if (kind == META_NO_FLAG || meta_given(out, *word)) {
		*error = kind == META_NO_FLAG && flag < 127 ? META_ERROR_FLAG : META_ERROR_DUPLICATE;
		return false;
	}
	out->given |= meta_flag_bit(*word);
	wrong = parse_token(grammar, out, kind, word, length);
	/* A bad F is answered only if no other token is bad. */
	if (wrong != META_ERROR_OK && (wrong != META_ERROR_FORMAT || *error == META_ERROR_OK))
		*error = wrong;
	return true;
}

/* Parses at most `most` flags, and sets *error if one of them is wrong. False: there are more. */
static bool parse_flags(enum text_grammar grammar, const char *at, const char *end, unsigned most,
			struct meta_command *out, enum meta_error *error)
{
	bool parsing = true;
	const char *word;

	for (unsigned count = 0;; count++) {
		while (at < end && *at == ' ')
			at++;
		if (at == end)
			return true;
		if (count == most)
			return false;
		word = at++;
		while (at < end && *at != ' ') /* most flags are a letter and nothing more */
			at++;
		if (parsing)
			parsing = parse_flag(grammar, out, word, (size_t)(at - word), error);
	}
}

/* ---- commands -------------------------------------------------------------------------------- */

static enum meta_error check_mode(enum text_id id, struct meta_command *out)
{
	if (id == TEXT_META_SET) {
		if (!meta_given(out, 'M'))
			out->mode = 'S';
		return out->mode && memchr("SEAPR", out->mode, 5) ? META_ERROR_OK : META_ERROR_MODE_SET;
	}
	if (id != TEXT_META_ARITHMETIC || !meta_given(out, 'M'))
		return META_ERROR_OK;
	if (out->mode == '+' || out->mode == '-')
		out->mode = out->mode == '+' ? 'I' : 'D';
	return out->mode == 'I' || out->mode == 'D' ? META_ERROR_OK : META_ERROR_MODE_ARITHMETIC;
}

static bool parse_length(enum text_grammar grammar, const char *word, size_t length, struct meta_command *out)
{
	int64_t bytes;

	if (!text_signed(grammar, word, length, &bytes) || bytes < 0 || bytes > TEXT_VALUE_MAX)
		return false;
	out->value_length = (uint32_t)bytes;
	out->body_follows = true; /* it must be skipped if a flag is wrong */
	return true;
}

/* mg, md, ma: parses the flags behind the key. */
static enum meta_error parse_old_options(enum text_id id, const char *at, const char *end, struct meta_command *out)
{
	enum meta_error error = META_ERROR_OK;

	if (!parse_flags(TEXT_GRAMMAR_OLD, at, end, FLAG_WORDS, out, &error))
		return id == TEXT_META_GET ? META_ERROR_MANY_TO_GET : META_ERROR_MANY;
	if (error != META_ERROR_OK)
		return id == TEXT_META_GET ? error : META_ERROR_FLAG_OR_DUPLICATE;
	return check_mode(id, out);
}

static enum meta_error parse_old_store(const char *at, const char *end, struct meta_command *out)
{
	enum meta_error error = META_ERROR_OK;
	const char *word = NULL;
	size_t length = 0;

	/* Without a word, length is 0, which is no number. */
	(void)!text_word(&at, end, &word, &length);
	if (!parse_flags(TEXT_GRAMMAR_OLD, at, end, FLAG_WORDS - 1, out, &error))
		return META_ERROR_MANY;
	if (!parse_length(TEXT_GRAMMAR_OLD, word, length, out))
		return META_ERROR_FORMAT;
	return error != META_ERROR_OK ? error : check_mode(TEXT_META_SET, out);
}

/* ma has one answer to whatever is wrong with its key and flags. */
static enum meta_error new_error(enum text_id id, enum meta_error error)
{
	return id == TEXT_META_ARITHMETIC ? META_ERROR_FLAG_OR_DUPLICATE : error;
}

/* The length of ms comes first: with a valid one a value follows, whatever else is wrong. */
static enum meta_error parse_new_options(enum text_id id, size_t key_length, const char *at, const char *end,
					 struct meta_command *out)
{
	bool store = id == TEXT_META_SET;
	enum meta_error error = META_ERROR_OK;
	const char *word = NULL;
	size_t length = 0;

	if (store) {
		(void)!text_word(&at, end, &word, &length);
		if (!parse_length(TEXT_GRAMMAR_NEW, word, length, out))
			return META_ERROR_FORMAT;
	}
	if (key_length > TEXT_KEY_MAX)
		return new_error(id, META_ERROR_FORMAT);
	if (!parse_flags(TEXT_GRAMMAR_NEW, at, end, FLAG_WORDS + 1 - store, out, &error))
		return new_error(id, META_ERROR_MANY_TO_GET);
	return error != META_ERROR_OK ? new_error(id, error) : check_mode(id, out);
}

/* me: its only flag is a second word "b". */
static enum meta_error parse_debug(const char *at, const char *end, struct meta_command *out)
{
	const char *word;
	size_t length;

	if (!text_word(&at, end, &word, &length) || length != 1 || *word != 'b')
		return META_ERROR_OK;
	out->given = meta_flag_bit('b');
	return decode_key(out) == META_ERROR_OK ? META_ERROR_OK : META_ERROR_FORMAT;
}

enum meta_error meta_parse(enum text_grammar grammar, enum text_id id, const char *at, const char *end,
			   struct meta_command *out)
{
	enum meta_error error;
	size_t length;

	out->given = 0;
	out->client_flags = 0;
	out->opaque_length = out->answer_count = 0;
	out->body_follows = out->old_ttl = out->recache_first = out->vivify_last = false;
	out->made_ttl = 0;
	out->mode = 'I';
	if (!text_word(&at, end, &out->key, &length))
		return id == TEXT_META_DEBUG || grammar == TEXT_GRAMMAR_NEW ? META_ERROR_FORMAT : META_ERROR_NO_KEY;
	if (length > TEXT_KEY_MAX && (grammar == TEXT_GRAMMAR_OLD || id == TEXT_META_DEBUG))
		return META_ERROR_FORMAT;
	out->key_length = length > TEXT_KEY_MAX ? TEXT_KEY_MAX : (uint8_t)length;
	if (id == TEXT_META_DEBUG)
		return parse_debug(at, end, out);
	if (grammar == TEXT_GRAMMAR_NEW)
		error = parse_new_options(id, length, at, end, out);
	else
		error = id == TEXT_META_SET ? parse_old_store(at, end, out) : parse_old_options(id, at, end, out);
	if (error == META_ERROR_OK && out->opaque_length > META_OPAQUE_MAX)
		return META_ERROR_OPAQUE;
	return error;
}
