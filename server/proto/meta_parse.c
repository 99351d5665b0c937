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

static enum meta_error parse_flag_number(struct meta_command *out, char flag, const char *token, size_t length)
{
	uint64_t flags;

	switch (flag) {
	case 'C':
		return text_unsigned(token, length, &out->cas) ? META_ERROR_OK : META_ERROR_TOKEN;
	case 'E':
		return text_unsigned(token, length, &out->new_cas) ? META_ERROR_OK : META_ERROR_TOKEN;
	case 'D':
		return text_unsigned(token, length, &out->delta) ? META_ERROR_OK : META_ERROR_DELTA;
	case 'J':
		return text_unsigned(token, length, &out->initial) ? META_ERROR_OK : META_ERROR_INITIAL;
	case 'F':
		if (!text_unsigned(token, length, &flags))
			return META_ERROR_FORMAT;
		out->client_flags = (uint32_t)flags;
		return META_ERROR_OK;
	case 'N':
		out->vivify_last = meta_given(out, 'T');
		return text_signed(token, length, &out->vivify_exptime) ? META_ERROR_OK : META_ERROR_TOKEN;
	case 'R':
		return text_signed(token, length, &out->recache_exptime) ? META_ERROR_OK : META_ERROR_TOKEN;
	default:
		out->old_ttl = meta_given(out, 't');
		out->recache_first = meta_given(out, 'R');
		return text_signed(token, length, &out->exptime) ? META_ERROR_OK : META_ERROR_TOKEN;
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
static enum meta_error parse_token(struct meta_command *out, enum meta_kind kind, const char *word, size_t length)
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
		if (length != 2)
			return META_ERROR_MODE_LENGTH;
		out->mode = *token;
		return META_ERROR_OK;
	case META_NUMBER:
		return parse_flag_number(out, *word, token, length - 1);
	default:
		return META_ERROR_OK;
	}
}

/* False: an unknown flag, or a second one of its kind, ends the parsing. Of several bad tokens the last one is
   answered. */
static bool parse_flag(struct meta_command *out, const char *word, size_t length, enum meta_error *error)
{
	unsigned char flag = (unsigned char)*word;
	enum meta_kind kind = flag < sizeof(kinds) ? (enum meta_kind)kinds[flag] : META_NO_FLAG;
	enum meta_error wrong;

	if (kind == META_NO_FLAG || meta_given(out, *word)) {
		*error = kind == META_NO_FLAG && flag < 127 ? META_ERROR_FLAG : META_ERROR_DUPLICATE;
		return false;
	}
	out->given |= meta_flag_bit(*word);
	wrong = parse_token(out, kind, word, length);
	/* A bad F is answered only if no other token is bad. */
	if (wrong != META_ERROR_OK && (wrong != META_ERROR_FORMAT || *error == META_ERROR_OK))
		*error = wrong;
	return true;
}

/* Parses at most `most` flags, and sets *error if one of them is wrong. False: there are more. */
static bool parse_flags(const char *at, const char *end, unsigned most, struct meta_command *out,
			enum meta_error *error)
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
			parsing = parse_flag(out, word, (size_t)(at - word), error);
	}
}

/* ---- commands -------------------------------------------------------------------------------- */

/* mg, md, ma: parses the flags behind the key. */
static enum meta_error parse_options(enum text_id id, const char *at, const char *end, struct meta_command *out)
{
	enum meta_error error = META_ERROR_OK;

	if (!parse_flags(at, end, FLAG_WORDS, out, &error))
		return id == TEXT_META_GET ? META_ERROR_MANY_TO_GET : META_ERROR_MANY;
	if (error != META_ERROR_OK)
		return id == TEXT_META_GET ? error : META_ERROR_FLAG_OR_DUPLICATE;
	if (id != TEXT_META_ARITHMETIC || !meta_given(out, 'M'))
		return META_ERROR_OK;
	if (out->mode == '+' || out->mode == '-')
		out->mode = out->mode == '+' ? 'I' : 'D';
	return out->mode == 'I' || out->mode == 'D' ? META_ERROR_OK : META_ERROR_MODE_ARITHMETIC;
}

/* ms: with a valid length a data block follows, which must be skipped if a flag is wrong. */
static enum meta_error parse_meta_store(const char *at, const char *end, struct meta_command *out)
{
	enum meta_error error = META_ERROR_OK;
	const char *word = NULL;
	size_t length = 0;
	int64_t bytes;

	/* Without a word, length is 0, which is no number. */
	(void)!text_word(&at, end, &word, &length);
	if (!parse_flags(at, end, FLAG_WORDS - 1, out, &error))
		return META_ERROR_MANY;
	if (!text_signed(word, length, &bytes) || bytes < 0 || bytes > TEXT_VALUE_MAX)
		return META_ERROR_FORMAT;
	out->value_length = (uint32_t)bytes;
	out->body_follows = true;
	if (error != META_ERROR_OK)
		return error;
	if (!meta_given(out, 'M'))
		out->mode = 'S';
	return memchr("SEAPR", out->mode, 5) ? META_ERROR_OK : META_ERROR_MODE_SET;
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

enum meta_error meta_parse(enum text_id id, const char *at, const char *end, struct meta_command *out)
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
		return id == TEXT_META_DEBUG ? META_ERROR_FORMAT : META_ERROR_NO_KEY;
	if (length > TEXT_KEY_MAX)
		return META_ERROR_FORMAT;
	out->key_length = (uint8_t)length;
	if (id == TEXT_META_DEBUG)
		return parse_debug(at, end, out);
	error = id == TEXT_META_SET ? parse_meta_store(at, end, out) : parse_options(id, at, end, out);
	if (error == META_ERROR_OK && out->opaque_length > META_OPAQUE_MAX)
		return META_ERROR_OPAQUE;
	return error;
}
