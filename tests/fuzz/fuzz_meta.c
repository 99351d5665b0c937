/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The meta commands' parser on a line, whose first byte chooses the command. What it has read, written down again, is
 * read as the same; keys go into base64 and back.
 */
#include <limits.h>

#include "server/proto/meta_parse.h"
#include "tests/fuzz/fuzz.h"

static const enum text_id ids[] = { TEXT_META_GET, TEXT_META_SET, TEXT_META_DELETE, TEXT_META_ARITHMETIC,
				    TEXT_META_DEBUG };

static const char answered[] = "cfhklstO", numbers[] = "CDEFJNRT";

#define TEXT_BYTES 2048u

struct text {
	char bytes[TEXT_BYTES];
	size_t length;
};

static void put(struct text *text, const void *bytes, size_t length)
{
	require(length <= sizeof(text->bytes) - text->length);
	memcpy(text->bytes + text->length, bytes, length);
	text->length += length;
}

static void put_flag(struct text *text, char flag)
{
	put(text, " ", 1);
	put(text, &flag, 1);
}

static void put_number(struct text *text, char flag, bool is_signed, uint64_t number)
{
	char digits[32];
	int length = is_signed ? snprintf(digits, sizeof(digits), "%lld", (long long)number)
			       : snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);

	put_flag(text, flag);
	put(text, digits, (size_t)length);
}

static uint64_t number_of(const struct meta_command *meta, char flag)
{
	switch (flag) {
	case 'C':
		return meta->cas;
	case 'D':
		return meta->delta;
	case 'E':
		return meta->new_cas;
	case 'F':
		return meta->client_flags;
	case 'J':
		return meta->initial;
	case 'N':
		return (uint64_t)meta->vivify_exptime;
	case 'R':
		return (uint64_t)meta->recache_exptime;
	default:
		return (uint64_t)meta->exptime;
	}
}

/* A flag as it was read. M may have come with anything to a command without modes. */
static void put_again(struct text *text, const struct meta_command *meta, char flag)
{
	if (strchr(numbers, flag)) {
		put_number(text, flag, strchr("NRT", flag) != NULL, number_of(meta, flag));
		return;
	}
	put_flag(text, flag);
	if (flag == 'O')
		put(text, meta->opaque, meta->opaque_length);
	if (flag == 'M')
		put(text, &meta->mode, 1);
}

static void put_key(struct text *text, const struct meta_command *meta)
{
	char encoded[META_ENCODED_MAX];

	put(text, " ", 1);
	if (meta_given(meta, 'b'))
		put(text, encoded, meta_encode_key(meta->key, meta->key_length, encoded));
	else
		put(text, meta->key, meta->key_length);
}

/* What comes before the flags: the key, and of ms the length. NULL: there is nothing behind it. */
static const char *flags_of(enum text_id id, const char *line, const char *end)
{
	const char *word;
	size_t length;

	for (unsigned words = id == TEXT_META_SET ? 2 : 1; words > 0; words--)
		if (!text_word(&line, end, &word, &length))
			return end;
	return line;
}

static void print(enum text_id id, const struct meta_command *meta, const char *flags, const char *end,
		  struct text *text)
{
	const char *word;
	size_t length;

	text->length = 0;
	put_key(text, meta);
	if (id == TEXT_META_SET) {
		char digits[20];

		put(text, " ", 1);
		put(text, digits, text_number(digits, meta->value_length));
	}
	if (id == TEXT_META_DEBUG) { /* it passes over other words */
		if (meta_given(meta, 'b'))
			put_flag(text, 'b');
		return;
	}
	while (text_word(&flags, end, &word, &length))
		put_again(text, meta, *word);
}

/* The number of the word that is this flag. */
static unsigned place_of(char flag, const char *flags, const char *end)
{
	unsigned place = 0;
	const char *word;
	size_t length;

	for (; text_word(&flags, end, &word, &length); place++)
		if (*word == flag)
			return place;
	return UINT_MAX;
}

/* Which of the flags about times come first has a meaning. */
static void check_order(const struct meta_command *meta, const char *flags, const char *end)
{
	unsigned shown = place_of('t', flags, end), touch = place_of('T', flags, end);
	unsigned recache = place_of('R', flags, end), vivify = place_of('N', flags, end);

	require(meta_given(meta, 'T') == (touch != UINT_MAX) && meta_given(meta, 't') == (shown != UINT_MAX));
	if (meta_given(meta, 'T'))
		require(meta->old_ttl == (shown < touch) && meta->recache_first == (recache < touch));
	if (meta_given(meta, 'N'))
		require(meta->vivify_last == (touch < vivify));
	if (meta_given(meta, 't'))
		require(meta->made_ttl == (vivify < shown) + (touch < shown));
}

static void require_same(enum text_id id, const struct meta_command *a, const struct meta_command *b)
{
	require(a->key_length == b->key_length && memcmp(a->key, b->key, a->key_length) == 0);
	require(a->given == b->given);
	if (id == TEXT_META_DEBUG)
		return;
	require(a->answer_count == b->answer_count && memcmp(a->answers, b->answers, a->answer_count) == 0);
	require(a->opaque_length == b->opaque_length);
	require(a->opaque_length == 0 || memcmp(a->opaque, b->opaque, a->opaque_length) == 0);
	require(a->mode == b->mode && a->old_ttl == b->old_ttl && a->recache_first == b->recache_first);
	require(a->vivify_last == b->vivify_last && a->made_ttl == b->made_ttl);
	require(a->client_flags == b->client_flags && a->body_follows == b->body_follows);
	require(id != TEXT_META_SET || a->value_length == b->value_length);
	for (const char *flag = numbers; *flag; flag++)
		require(!meta_given(a, *flag) || number_of(a, *flag) == number_of(b, *flag));
}

static void check_fields(enum text_id id, const struct meta_command *meta, const char *line, size_t length)
{
	bool decoded = meta_given(meta, 'b');
	const char *from = decoded ? meta->decoded : line,
		   *to = decoded ? meta->decoded + META_DECODED_MAX : line + length;

	require(meta->key_length >= 1 && meta->key_length <= TEXT_KEY_MAX);
	require(meta->key >= from && meta->key + meta->key_length <= to);
	if (id == TEXT_META_DEBUG)
		return;
	require(meta->answer_count <= META_ANSWERS && meta->opaque_length <= META_OPAQUE_MAX);
	for (unsigned i = 0; i < meta->answer_count; i++)
		require(strchr(answered, meta->answers[i]) && meta_given(meta, meta->answers[i]));
	if (meta_given(meta, 'O'))
		require(meta->opaque >= line && meta->opaque + meta->opaque_length <= line + length);
	require(id == TEXT_META_SET ? strchr("SEAPR", meta->mode) != NULL
				    : id != TEXT_META_ARITHMETIC || strchr("ID", meta->mode));
}

static void print_and_parse(enum text_grammar grammar, enum text_id id, const struct meta_command *meta,
			    const char *flags, const char *end)
{
	struct meta_command again;
	struct text text;
	char *line;

	print(id, meta, flags, end, &text);
	line = fuzz_copy(text.bytes, text.length);
	require(meta_parse(grammar, id, line, line + text.length, &again) == META_ERROR_OK);
	require_same(id, meta, &again);
	free(line);
}

static void encode_and_decode(const char *key, size_t length)
{
	char encoded[META_ENCODED_MAX], decoded[META_DECODED_MAX], *copy;
	unsigned count;

	if (length == 0 || length > META_DECODED_MAX)
		return;
	count = meta_encode_key(key, (unsigned)length, encoded);
	require(count == (length + 2) / 3 * 4);
	copy = fuzz_copy(encoded, count);
	require(meta_decode_key(copy, count, decoded) == length && memcmp(decoded, key, length) == 0);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const unsigned count = sizeof(ids) / sizeof(ids[0]), first = size > 0 ? data[0] : 0;
	enum text_id id = ids[first % count];
	enum text_grammar grammar = first / count % 2 ? TEXT_GRAMMAR_NEW : TEXT_GRAMMAR_OLD;
	size_t length = size > 0 ? size - 1 : 0;
	char *line = fuzz_copy(data + (size > 0), length);
	struct meta_command meta = { 0 };
	enum meta_error error = meta_parse(grammar, id, line, line + length, &meta);

	require(error < META_ERRORS && (error == META_ERROR_OK) == (*meta_error_answer(error) == 0));
	if (error == META_ERROR_OK) {
		const char *end = line + length, *flags = flags_of(id, line, end);

		check_fields(id, &meta, line, length);
		if (id != TEXT_META_DEBUG)
			check_order(&meta, flags, end);
		print_and_parse(grammar, id, &meta, flags, end);
	}
	encode_and_decode(line, length);
	free(line);
	return 0;
}
