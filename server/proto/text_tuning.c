/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text protocol's commands for parts of memcached: crawler, LRU, slabs, extstore. The crawler's commands act. The
 * others answer as memcached does with those parts switched off, and keep the figures that they are given
 * (admin/tuning.h).
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/conf.h"
#include "server/admin/dump.h"
#include "server/admin/tuning.h"
#include "server/proto/text_internal.h"

#define WORDS_MAX 7u
#define WORD_BYTES 32u /* of a longer one only the start is kept; no word of these commands is longer */
#define CLASS_LIST_BYTES 1024u

/* The words behind a command's name. */
struct words {
	enum text_grammar grammar; /* of their numbers */
	unsigned count; /* WORDS_MAX + 1: there are more */
	char word[WORDS_MAX][WORD_BYTES];
	const char *second; /* in the line, at its full length */
	size_t second_length;
};

static void copy_words(const struct conn *conn, const struct text_command *command, struct words *out)
{
	const char *at = command->rest, *word;
	size_t length;

	*out = (struct words){ .grammar = text_grammar_of(conn) };
	while (text_word(&at, command->rest_end, &word, &length)) {
		if (out->count == WORDS_MAX) {
			out->count++;
			return;
		}
		memcpy(out->word[out->count], word, length < WORD_BYTES ? length : WORD_BYTES - 1);
		if (out->count == 1) {
			out->second = word;
			out->second_length = length;
		}
		out->count++;
	}
}

static bool word_equals(const struct words *words, unsigned i, const char *text)
{
	return i < words->count && strcmp(words->word[i], text) == 0;
}

/* Of a number of more than 32 bits memcached took the lower ones. */
static bool get_low_number(const struct words *words, const char *text, uint32_t *out)
{
	uint64_t number;

	if (!text_unsigned(words->grammar, text, strlen(text), &number) ||
	    (words->grammar == TEXT_GRAMMAR_NEW && number > UINT32_MAX))
		return false;
	*out = (uint32_t)number;
	return true;
}

static bool get_real(const char *text, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	return end != text && (!*end || isspace((unsigned char)*end)) && errno == 0;
}

static enum text_step say_unless_noreply(struct conn *conn, const struct text_command *command, const char *line)
{
	return text_is_noreply(command, TEXT_WORDS_MOST) ? TEXT_NEXT : text_say(conn, line);
}

#define OK "OK\r\n"
#define ERROR "ERROR\r\n"
#define FORMAT "CLIENT_ERROR bad command line format\r\n"
#define BAD_CLASS "BADCLASS invalid class id\r\n"

/* ---- lru_crawler ----------------------------------------------------------------------------- */

/* Reads "all", "hash" (both set *all), or numbers separated by commas. Returns NULL, or the error's line. */
static const char *parse_classes(const struct words *words, bool *all, bool classes[DUMP_CLASSES])
{
	char list[CLASS_LIST_BYTES], *rest = list;
	bool none = true;
	uint32_t number;

	*all = word_equals(words, 1, "all") || word_equals(words, 1, "hash");
	if (*all)
		return NULL;
	if (words->second_length >= sizeof(list))
		return BAD_CLASS;
	memcpy(list, words->second, words->second_length);
	list[words->second_length] = 0;
	memset(classes, 0, DUMP_CLASSES * sizeof(*classes));
	for (const char *one = strsep(&rest, ","); one; one = strsep(&rest, ",")) {
		if (!*one)
			continue;
		if (!get_low_number(words, one, &number) || number == 0 || number > store_class_count() ||
		    number >= DUMP_CLASSES)
			return BAD_CLASS;
		classes[number] = true;
		none = false;
	}
	return none ? "NOTSTARTED no items to crawl\r\n" : NULL;
}

static bool crawler_enabled(const struct conn *conn)
{
	struct store_crawler crawler;

	store_get_crawler(conn->server->store, &crawler);
	return crawler.enabled;
}

static enum text_step list_objects(struct conn *conn, const struct words *words, enum dump_form form)
{
	struct dump_wish wish = { .form = form,
				  .ok_first = conf_compat_from(conn->server->conf, COMPAT_DUMP_OK),
				  .blank_last = conf_compat_from(conn->server->conf, COMPAT_DUMP_BLANK) };
	const char *wrong;

	if (!crawler_enabled(conn))
		return text_say(conn, "CLIENT_ERROR lru crawler disabled\r\n");
	if (conn->server->conf->disable_dumping)
		return text_say(conn,
				form == DUMP_MG ? "ERROR key dump not allowed\r\n" : "ERROR metadump not allowed\r\n");
	if (!conn_begins_pipeline(conn))
		return text_say(conn, form == DUMP_MG ? "ERROR cannot pipeline other commands before mgdump\r\n"
						      : "ERROR cannot pipeline other commands before metadump\r\n");
	wrong = parse_classes(words, &wish.all, wish.classes);
	if (wrong)
		return text_say(conn, wrong);
	switch (dump_begin(conn->server->dump, conn, &wish)) {
	case FS_OK:
		return TEXT_LEND;
	case FS_EBUSY:
		return text_say(conn, "BUSY currently processing crawler request\r\n");
	default:
		return text_say(conn, "ERROR\r\n");
	}
}

static enum text_step answer_crawl(struct conn *conn, const struct words *words)
{
	bool all, classes[DUMP_CLASSES];
	const char *wrong;

	if (!crawler_enabled(conn))
		return text_say(conn, "CLIENT_ERROR lru crawler disabled\r\n");
	wrong = parse_classes(words, &all, classes);
	if (wrong)
		return text_say(conn, wrong);
	if (!store_crawl(conn->server->store))
		return text_say(conn, "BUSY currently processing crawler request\r\n");
	return text_say(conn, OK);
}

static enum text_step switch_crawler(struct conn *conn, bool on)
{
	struct store_crawler crawler;

	store_get_crawler(conn->server->store, &crawler);
	if (on && crawler.enabled)
		return text_say(conn, "ERROR failed to start lru crawler thread\r\n"); /* it runs already */
	crawler.enabled = on;
	store_set_crawler(conn->server->store, &crawler);
	return text_say(conn, OK);
}

static enum text_step pace_crawler(struct conn *conn, const struct words *words)
{
	struct store_crawler crawler;
	uint32_t number;

	if (!get_low_number(words, words->word[1], &number))
		return text_say(conn, FORMAT);
	store_get_crawler(conn->server->store, &crawler);
	if (word_equals(words, 0, "tocrawl"))
		crawler.to_crawl = number;
	else if (number <= STORE_CRAWL_SLEEP_MAX_US)
		crawler.sleep_us = number;
	else
		return text_say(conn, "CLIENT_ERROR sleep must be one second or less\r\n");
	store_set_crawler(conn->server->store, &crawler);
	return text_say(conn, OK);
}

enum text_step text_lru_crawler(struct conn *conn, const struct text_command *command)
{
	struct words words;

	copy_words(conn, command, &words);
	/* No form of it has room for a noreply: it is an error that nobody is told. */
	if (text_grammar_of(conn) == TEXT_GRAMMAR_NEW && text_is_noreply(command, TEXT_WORDS_MOST))
		return TEXT_NEXT;
	if (words.count == 1 && (word_equals(&words, 0, "enable") || word_equals(&words, 0, "disable")))
		return switch_crawler(conn, word_equals(&words, 0, "enable"));
	if (words.count != 2)
		return text_say(conn, ERROR);
	if (word_equals(&words, 0, "metadump"))
		return list_objects(conn, &words, DUMP_META);
	if (word_equals(&words, 0, "mgdump"))
		return list_objects(conn, &words, DUMP_MG);
	if (word_equals(&words, 0, "crawl"))
		return answer_crawl(conn, &words);
	if (word_equals(&words, 0, "sleep") || word_equals(&words, 0, "tocrawl"))
		return pace_crawler(conn, &words);
	return text_say(conn, ERROR);
}

/* ---- lru, slabs ------------------------------------------------------------------------------- */

/* memcached takes "tune" with its lists switched off, but neither "mode" nor "temp_ttl". */
static const char *tune_lru(const struct words *words)
{
	uint32_t hot, warm;
	double hot_factor, warm_factor;

	if (words->count < 5 || !word_equals(words, 0, "tune") || !get_low_number(words, words->word[1], &hot) ||
	    !get_low_number(words, words->word[2], &warm) || !get_real(words->word[3], &hot_factor) ||
	    !get_real(words->word[4], &warm_factor))
		return ERROR;
	if ((uint64_t)hot + warm > 80)
		return "ERROR hot and warm pcts must not exceed 80\r\n";
	if (hot_factor <= 0 || warm_factor <= 0)
		return "ERROR hot/warm age factors must be greater than 0\r\n";
	atomic_store(&tuning.hot_lru_pct, hot);
	atomic_store(&tuning.warm_lru_pct, warm);
	atomic_store(&tuning.hot_max_factor, hot_factor);
	atomic_store(&tuning.warm_max_factor, warm_factor);
	return OK;
}

enum text_step text_lru(struct conn *conn, const struct text_command *command)
{
	struct words words;

	copy_words(conn, command, &words);
	return say_unless_noreply(conn, command, tune_lru(&words));
}

static const char *set_ratio(const struct words *words, _Atomic double *field)
{
	double ratio;

	if (words->count < 3 || !get_real(words->word[2], &ratio))
		return ERROR;
	atomic_store(field, ratio);
	return OK;
}

static const char *set_window(const struct words *words)
{
	uint32_t window;

	if (words->count < 3 || !get_low_number(words, words->word[2], &window))
		return FORMAT;
	if (window < 3 || window > 1800)
		return "CLIENT_ERROR automove window too low or too high\r\n";
	atomic_store(&tuning.slab_automove_window, window);
	return OK;
}

static const char *answer_automove(const struct words *words)
{
	uint32_t level;

	if (word_equals(words, 1, "ratio"))
		return set_ratio(words, &tuning.slab_automove_ratio);
	if (word_equals(words, 1, "freeratio"))
		return set_ratio(words, &tuning.slab_automove_freeratio);
	if (word_equals(words, 1, "window"))
		return set_window(words);
	if (!get_low_number(words, words->word[1], &level))
		return FORMAT;
	if (level > 2)
		return ERROR;
	atomic_store(&tuning.slab_automove, level);
	return OK;
}

enum text_step text_slabs(struct conn *conn, const struct text_command *command)
{
	struct words words;

	copy_words(conn, command, &words);
	if (words.count == 3 && word_equals(&words, 0, "reassign"))
		return text_say(conn, "CLIENT_ERROR slab reassignment disabled\r\n");
	if (words.count >= 2 && word_equals(&words, 0, "automove"))
		return say_unless_noreply(conn, command, answer_automove(&words));
	return text_say_as_asked(conn, command, ERROR);
}

/* ---- extstore ---------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	_Atomic uint32_t *field;
} numbers[] = {
	{ "item_size", &tuning.ext_item_size },
	{ "item_age", &tuning.ext_item_age },
	{ "low_ttl", &tuning.ext_low_ttl },
	{ "recache_rate", &tuning.ext_recache_rate },
	{ "compact_under", &tuning.ext_compact_under },
	{ "drop_under", &tuning.ext_drop_under },
	{ "max_sleep", &tuning.ext_max_sleep },
};

static bool set_extstore(const struct words *words)
{
	uint32_t number, chunks;
	double real;

	if (word_equals(words, 0, "free_memchunks"))
		return words->count >= 3 && get_low_number(words, words->word[1], &number) && number >= 1 &&
		       number <= store_class_count() && get_low_number(words, words->word[2], &chunks);
	if (word_equals(words, 0, "max_frag")) {
		if (!get_real(words->word[1], &real))
			return false;
		atomic_store(&tuning.ext_max_frag, real);
		return true;
	}
	if (!get_low_number(words, words->word[1], &number))
		return false;
	if (word_equals(words, 0, "drop_unread")) {
		atomic_store(&tuning.ext_drop_unread, number != 0);
		return true;
	}
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (word_equals(words, 0, numbers[i].name)) {
			atomic_store(numbers[i].field, number);
			return true;
		}
	return false;
}

enum text_step text_extstore(struct conn *conn, const struct text_command *command)
{
	struct words words;

	copy_words(conn, command, &words);
	return say_unless_noreply(conn, command, words.count >= 2 && set_extstore(&words) ? OK : ERROR);
}
