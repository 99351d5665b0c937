/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses a line of each format into a trace_row. */
#include <string.h>

#include "tools/common/trace.h"

#define MAX_FIELDS 16

const char *const trace_format_names[] = { "auto", "flashield", "memcachier", "twitter", "meta", NULL };

const struct trace_columns trace_meta_columns = {
	.op_time = 0, .key = 1, .key_size = 2, .op = 3, .op_count = 4, .size = 5, .ttl = 7, .usecase = 8
};

static const char flashield_header[] = "time_ms,app,op,key,key_size,value_size,ttl_s";

struct field {
	const char *text;
	uint32_t length;
};

/* Splits at commas. The number of fields, or MAX_FIELDS + 1 if there are more. */
static int split(const char *line, size_t length, struct field *fields)
{
	const char *end = line + length;
	int count = 0;

	for (;;) {
		const char *comma = memchr(line, ',', (size_t)(end - line));
		const char *stop = comma ? comma : end;

		if (count == MAX_FIELDS)
			return MAX_FIELDS + 1;
		fields[count++] = (struct field){ line, (uint32_t)(stop - line) };
		if (!comma)
			return count;
		line = comma + 1;
	}
}

/* Up to 15 digits, with "-1" allowed for unknown. */
static bool whole(struct field field, int64_t *value)
{
	int64_t number = 0;

	if (field.length == 2 && field.text[0] == '-' && field.text[1] == '1') {
		*value = -1;
		return true;
	}
	if (field.length == 0 || field.length > 15)
		return false;
	for (uint32_t i = 0; i < field.length; i++) {
		unsigned digit = (unsigned)(field.text[i] - '0');

		if (digit > 9)
			return false;
		number = number * 10 + digit;
	}
	*value = number;
	return true;
}

/* Decimal seconds to microseconds, without the rounding of a double. */
static bool seconds(struct field field, int64_t *us)
{
	const char *dot = memchr(field.text, '.', field.length);
	struct field whole_part = field;
	int64_t value, fraction = 0, unit = 100000;

	if (dot)
		whole_part.length = (uint32_t)(dot - field.text);
	if (whole_part.length > 12 || !whole(whole_part, &value))
		return false;
	for (const char *c = dot ? dot + 1 : NULL; c && c < field.text + field.length; c++, unit /= 10) {
		if (*c < '0' || *c > '9')
			return false;
		fraction += (*c - '0') * unit;
	}
	*us = value < 0 ? -1 : value * 1000000 + fraction;
	return true;
}

static bool size_field(struct field field, int64_t limit, int32_t *out)
{
	int64_t value;

	if (!whole(field, &value) || value > limit)
		return false;
	*out = (int32_t)value;
	return true;
}

static bool ttl_field(struct field field, uint32_t *out)
{
	int64_t value;

	if (!whole(field, &value))
		return false;
	*out = value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
	return true;
}

static bool is_word(struct field field, const char *word)
{
	return strlen(word) == field.length && strncasecmp(field.text, word, field.length) == 0;
}

/* Each operation that replaces a value or a part of it counts as a write of the key. */
static bool op_field(struct field field, enum trace_op *op)
{
	static const struct {
		const char *word;
		enum trace_op op;
	} words[] = {
		{ "get", TRACE_GET },       { "set", TRACE_SET },       { "delete", TRACE_DELETE },
		{ "add", TRACE_ADD },       { "gets", TRACE_GET },      { "get_lease", TRACE_GET },
		{ "set_lease", TRACE_SET }, { "replace", TRACE_SET },   { "cas", TRACE_SET },
		{ "append", TRACE_SET },    { "prepend", TRACE_SET },   { "incr", TRACE_INCR },
		{ "decr", TRACE_INCR },     { "lease_get", TRACE_GET }, { "lease_set", TRACE_SET },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (is_word(field, words[i].word)) {
			*op = words[i].op;
			return true;
		}
	}
	*op = TRACE_OTHER;
	return field.length > 0 && ((field.text[0] | 0x20) >= 'a' && (field.text[0] | 0x20) <= 'z');
}

static int broken(const char **why, const char *reason)
{
	*why = reason;
	return FS_EINVAL;
}

static int set_key(struct trace_row *row, struct field key, struct field app, const char **why)
{
	if (!key.length)
		return broken(why, "the key is empty");
	row->key = key.text;
	row->key_length = key.length;
	row->app = app.text;
	row->app_length = app.length;
	return FS_OK;
}

/* -1 is a number that isn't known. */
static bool is_name(struct field field)
{
	return field.length > 0 && !is_word(field, "-1");
}

static int parse_flashield(const struct field *f, int fields, struct trace_row *row, const char **why)
{
	int64_t time_ms;

	if (fields != 7)
		return broken(why, "not 7 columns");
	if (!whole(f[0], &time_ms))
		return broken(why, "time_ms is not a whole number");
	if (!is_name(f[1]))
		return broken(why, "app is empty or -1");
	if (!op_field(f[2], &row->op) || row->op == TRACE_OTHER)
		return broken(why, "op is not get, set or delete");
	if (!is_name(f[3]))
		return broken(why, "key is empty or -1");
	if (!size_field(f[4], 65535, &row->key_size))
		return broken(why, "key_size is not a whole number from -1 to 65535");
	if (!size_field(f[5], TRACE_MAX_VALUE_BYTES, &row->value_size))
		return broken(why, "value_size is not a whole number from -1 to 1 GiB");
	if (!ttl_field(f[6], &row->ttl_s))
		return broken(why, "ttl_s is not a whole number");
	row->time_us = time_ms < 0 ? -1 : time_ms * 1000;
	return set_key(row, f[3], f[1], why);
}

static int parse_memcachier(const struct field *f, int fields, struct trace_row *row, const char **why)
{
	static const enum trace_op types[] = { TRACE_OTHER, TRACE_GET,  TRACE_SET,   TRACE_DELETE,
					       TRACE_ADD,   TRACE_INCR, TRACE_OTHER, TRACE_OTHER };
	int64_t type, number;

	if (fields != 7)
		return broken(why, "not 7 columns");
	if (!seconds(f[0], &row->time_us))
		return broken(why, "the time is not a number of seconds");
	if (!whole(f[1], &number) || number < 0)
		return broken(why, "the application is not a whole number");
	if (!whole(f[2], &type) || type < 1 || type > 7)
		return broken(why, "the type is not 1 to 7");
	if (!size_field(f[3], 65535, &row->key_size))
		return broken(why, "the key size is not a whole number from -1 to 65535");
	if (!size_field(f[4], TRACE_MAX_VALUE_BYTES, &row->value_size))
		return broken(why, "the value size is not a whole number from -1 to 1 GiB");
	if (!whole(f[5], &number))
		return broken(why, "the key is not a whole number");
	row->op = types[type];
	return set_key(row, f[5], f[1], why);
}

/* Keys of this trace may contain commas, so the last five columns are found from the right. */
static int parse_twitter(const char *line, size_t length, struct trace_row *row, const char **why)
{
	const char *end = line + length;
	struct field f[7], app;
	const char *comma = memchr(line, ',', length);
	const char *colon;

	for (int i = 6; i >= 2; i--) {
		const char *stop = end;

		while (end > line && end[-1] != ',')
			end--;
		if (end <= line || !comma || end - 1 <= comma)
			return broken(why, "not 7 columns");
		f[i] = (struct field){ end, (uint32_t)(stop - end) };
		end--;
	}
	f[0] = (struct field){ line, (uint32_t)(comma - line) };
	f[1] = (struct field){ comma + 1, (uint32_t)(end - comma - 1) };
	if (!seconds(f[0], &row->time_us))
		return broken(why, "the time is not a number of seconds");
	if (!size_field(f[2], 65535, &row->key_size))
		return broken(why, "the key size is not a whole number");
	if (!size_field(f[3], TRACE_MAX_VALUE_BYTES, &row->value_size))
		return broken(why, "the value size is not a whole number up to 1 GiB");
	if (!op_field(f[5], &row->op))
		return broken(why, "the operation is not a word");
	if (!ttl_field(f[6], &row->ttl_s))
		return broken(why, "the TTL is not a whole number");
	colon = memchr(f[1].text, ':', f[1].length);
	app = colon ? (struct field){ f[1].text, (uint32_t)(colon - f[1].text) } : (struct field){ "-", 1 };
	/* A get that found nothing has size 0 there. */
	if (row->op == TRACE_GET && row->value_size == 0)
		row->value_size = -1;
	return set_key(row, f[1], app, why);
}

static int parse_meta(const struct trace_columns *c, const struct field *f, int fields, struct trace_row *row,
		      const char **why)
{
	const struct field none = { "-", 1 }, minus_one = { "-1", 2 }, zero = { "0", 1 }, one = { "1", 1 };
	int64_t count;

	if (fields <= c->key || fields <= c->op || fields <= c->size || fields < 4)
		return broken(why, "too few columns");
#define COLUMN(name, otherwise) (c->name >= 0 && c->name < fields ? f[c->name] : (otherwise))
	if (!seconds(COLUMN(op_time, minus_one), &row->time_us))
		return broken(why, "op_time is not a number of seconds");
	if (!size_field(COLUMN(key_size, minus_one), 65535, &row->key_size))
		return broken(why, "key_size is not a whole number");
	if (!op_field(f[c->op], &row->op))
		return broken(why, "op is not a word");
	if (!whole(COLUMN(op_count, one), &count) || count < 1 || count > 65535)
		return broken(why, "op_count is not from 1 to 65535");
	if (!size_field(f[c->size], TRACE_MAX_VALUE_BYTES, &row->value_size))
		return broken(why, "size is not a whole number up to 1 GiB");
	if (!ttl_field(COLUMN(ttl, zero), &row->ttl_s))
		return broken(why, "ttl is not a whole number");
	row->repeat = (uint32_t)count;
	/* A get that found nothing has size 0 there. */
	if (row->op == TRACE_GET && row->value_size == 0)
		row->value_size = -1;
	return set_key(row, f[c->key], COLUMN(usecase, none), why);
#undef COLUMN
}

int trace_parse_row(enum trace_format format, const struct trace_columns *columns, const char *line, size_t length,
		    struct trace_row *row, const char **why)
{
	struct field fields[MAX_FIELDS];
	int count;

	*row = (struct trace_row){ .repeat = 1 };
	if (format == TRACE_TWITTER)
		return parse_twitter(line, length, row, why);
	count = split(line, length, fields);
	if (count > MAX_FIELDS)
		return broken(why, "too many columns");
	switch (format) {
	case TRACE_FLASHIELD:
		return parse_flashield(fields, count, row, why);
	case TRACE_MEMCACHIER:
		return parse_memcachier(fields, count, row, why);
	case TRACE_META:
		return parse_meta(columns, fields, count, row, why);
	default:
		return broken(why, "the format is unknown");
	}
}

int trace_parse_meta_header(const char *line, size_t length, struct trace_columns *columns)
{
	struct field fields[MAX_FIELDS];
	int count = split(line, length, fields);
	const struct {
		const char *name;
		int8_t *column;
	} names[] = { { "op_time", &columns->op_time },   { "key", &columns->key },
		      { "key_size", &columns->key_size }, { "op", &columns->op },
		      { "op_count", &columns->op_count }, { "size", &columns->size },
		      { "ttl", &columns->ttl },           { "usecase", &columns->usecase } };

	memset(columns, -1, sizeof(*columns));
	for (int i = 0; i < count && i < MAX_FIELDS; i++)
		for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
			if (is_word(fields[i], names[n].name))
				*names[n].column = (int8_t)i;
	return columns->key >= 0 && columns->op >= 0 && columns->size >= 0 ? FS_OK : FS_EINVAL;
}

enum trace_format trace_detect(const char *line, size_t length, bool *is_header)
{
	struct trace_columns columns;
	struct trace_row row;
	const char *why;

	*is_header = true;
	if (length == strlen(flashield_header) && memcmp(line, flashield_header, length) == 0)
		return TRACE_FLASHIELD;
	if (trace_parse_meta_header(line, length, &columns) == FS_OK)
		return TRACE_META;
	*is_header = false;
	for (enum trace_format format = TRACE_FLASHIELD; format <= TRACE_META; format++) {
		if (trace_parse_row(format, &trace_meta_columns, line, length, &row, &why) != FS_OK)
			continue;
		if ((format == TRACE_TWITTER || format == TRACE_META) && row.op == TRACE_OTHER)
			continue;
		return format;
	}
	return TRACE_AUTO;
}
