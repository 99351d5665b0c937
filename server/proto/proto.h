/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protocols. A connection's first byte decides which one it speaks (proto_choose). Each protocol is a struct protocol
 * (conn/conn.h). This header also has the text protocol's parser, a pure function from a line to a struct: it knows
 * neither connections nor the store. Specification: protocol.txt of memcached 1.6; where that leaves something open,
 * the parser does what memcached 1.6.18 was seen to do, or 1.6.45 (enum text_grammar).
 *
 * Threads: any; nothing here has a state.
 */
#ifndef FS_SERVER_PROTO_PROTO_H
#define FS_SERVER_PROTO_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct conf;
struct protocol;

/*
 * Returns the protocol of a connection that starts with this byte: binary for its magic byte, text for any other,
 * unless the listener (binding: enum conf_protocol) or an option allows one protocol alone (-Y text, -S binary). A wrong byte is an error of that protocol
 * then. Never NULL.
 */
const struct protocol *proto_choose(const struct conf *conf, int binding, unsigned char first);

extern const struct protocol proto_text, proto_binary;

/*
 * The commands. COMMAND(name, ID, SHAPE, least, most): least to most words may follow the name. The most frequent
 * commands come first, as the table is searched in order. Shapes:
 *
 *   KEYS       <key>+                                       one or more keys
 *   EXPIRY_KEYS  <exptime> <key>*
 *   STORE      <key> <flags> <exptime> <bytes> [noreply]    and a data block
 *   STORE_CAS  <key> <flags> <exptime> <bytes> <cas> [noreply]
 *   DELTA      <key> <number> [noreply]
 *   KEY        <key> [0] [noreply]
 *   TOUCH      <key> <exptime> [noreply]
 *   DELAY      [<exptime>] [noreply]
 *   LEVEL      <number> [noreply]
 *   WORDS      anything: for the command to look at
 *   META       <key> <flag>*, or nothing (meta_parse.c)
 */
#define TEXT_MANY 0xffff
#define TEXT_COMMAND_TABLE(COMMAND) \
	COMMAND("get", GET, KEYS, 1, TEXT_MANY) \
	COMMAND("set", SET, STORE, 4, 5) \
	COMMAND("mg", META_GET, META, 0, TEXT_MANY) \
	COMMAND("ms", META_SET, META, 0, TEXT_MANY) \
	COMMAND("gets", GETS, KEYS, 1, TEXT_MANY) \
	COMMAND("delete", DELETE, KEY, 1, 3) \
	COMMAND("add", ADD, STORE, 4, 5) \
	COMMAND("incr", INCR, DELTA, 2, 3) \
	COMMAND("decr", DECR, DELTA, 2, 3) \
	COMMAND("cas", CAS, STORE_CAS, 5, 6) \
	COMMAND("touch", TOUCH, TOUCH, 2, 3) \
	COMMAND("gat", GAT, EXPIRY_KEYS, 1, TEXT_MANY) \
	COMMAND("gats", GATS, EXPIRY_KEYS, 1, TEXT_MANY) \
	COMMAND("replace", REPLACE, STORE, 4, 5) \
	COMMAND("append", APPEND, STORE, 4, 5) \
	COMMAND("prepend", PREPEND, STORE, 4, 5) \
	COMMAND("bget", BGET, KEYS, 1, TEXT_MANY) \
	COMMAND("md", META_DELETE, META, 0, TEXT_MANY) \
	COMMAND("ma", META_ARITHMETIC, META, 0, TEXT_MANY) \
	COMMAND("mn", META_NOOP, META, 0, TEXT_MANY) \
	COMMAND("me", META_DEBUG, META, 0, TEXT_MANY) \
	COMMAND("version", VERSION, WORDS, 0, TEXT_MANY) \
	COMMAND("stats", STATS, WORDS, 0, TEXT_MANY) \
	COMMAND("flush_all", FLUSH_ALL, DELAY, 0, 2) \
	COMMAND("verbosity", VERBOSITY, LEVEL, 1, 2) \
	COMMAND("quit", QUIT, WORDS, 0, TEXT_MANY) \
	COMMAND("shutdown", SHUTDOWN, WORDS, 0, TEXT_MANY) \
	COMMAND("cache_memlimit", CACHE_MEMLIMIT, WORDS, 0, TEXT_MANY) \
	COMMAND("watch", WATCH, WORDS, 0, TEXT_MANY) \
	COMMAND("lru_crawler", LRU_CRAWLER, WORDS, 0, TEXT_MANY) \
	COMMAND("lru", LRU, WORDS, 0, TEXT_MANY) \
	COMMAND("slabs", SLABS, WORDS, 0, TEXT_MANY) \
	COMMAND("extstore", EXTSTORE, WORDS, 0, TEXT_MANY) \
	COMMAND("refresh_certs", REFRESH_CERTS, WORDS, 0, TEXT_MANY) \
	COMMAND("flash_move", FLASH_MOVE, WORDS, 0, TEXT_MANY)

enum text_id {
#define TEXT_COMMAND_ENUM(name, id, shape, least, most) TEXT_##id,
	TEXT_COMMAND_TABLE(TEXT_COMMAND_ENUM)
#undef TEXT_COMMAND_ENUM
		TEXT_COMMANDS
};

/*
 * memcached 1.6.40 came with another parser, which reads lines with mistakes in other ways. A line without one means the
 * same in both grammars.
 *
 *                              up to 1.6.39                    from 1.6.40 on
 *   words too many             an error                        ignored
 *   numbers, but client        what strtoull takes: blanks     digits; a minus where a number
 *   flags and exptime of       around it, a sign               may be negative
 *   storage commands
 *   a faulty storage command   its value is taken for          its value is thrown away, if the
 *                              commands                        line has a valid length
 *   INCOMPLETE                 ERROR                           CLIENT_ERROR
 *   delete <key> 0             deletes                         deletes, as every word there does
 *   an unknown command that    is answered                     is not answered
 *   ends in noreply
 */
enum text_grammar { TEXT_GRAMMAR_OLD, TEXT_GRAMMAR_NEW };

/* The errors of a line, and their answers. ERR(ID, answer) */
#define TEXT_ERROR_TABLE(ERR) \
	ERR(OK, "") \
	ERR(UNKNOWN, "ERROR\r\n") \
	ERR(INCOMPLETE, \
	    "ERROR\r\n") /* a blank line, or a command without all its words; FORMAT's in the new grammar */ \
	ERR(FORMAT, "CLIENT_ERROR bad command line format\r\n") \
	ERR(EXPTIME, "CLIENT_ERROR invalid exptime argument\r\n") \
	ERR(DELTA, "CLIENT_ERROR invalid numeric delta argument\r\n") \
	ERR(USAGE_DELETE, "CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\r\n")

enum text_error {
#define TEXT_ERROR_ENUM(id, answer) TEXT_ERROR_##id,
	TEXT_ERROR_TABLE(TEXT_ERROR_ENUM)
#undef TEXT_ERROR_ENUM
		TEXT_ERRORS
};

/* Returns the line that answers an error, line end included; "" for OK. Constant text. */
const char *text_error_answer(enum text_error error);

#define TEXT_KEY_MAX 250
#define TEXT_LINE_MAX 2048 /* without a line end, and not a multiget */
#define TEXT_VALUE_MAX (INT32_MAX - 2)
#define TEXT_WORDS_MOST 22 /* the most words behind a command's name that memcached tells apart */

/* Pointers lead into the line. Fields that the command's shape has are set, others are not. */
struct text_command {
	enum text_id id;
	bool noreply;
	bool value_follows; /* with an error: a data block of value_length bytes comes next, which must be skipped */
	uint8_t key_length; /* 1 .. TEXT_KEY_MAX */
	const char *key; /* NULL where the shape has no key of its own */
	uint32_t flags;
	uint32_t value_length;
	int64_t exptime;
	uint64_t number; /* cas id, delta or level */
	const char *rest; /* KEYS: the keys; EXPIRY_KEYS: the keys after exptime; WORDS: the words */
	const char *rest_end;
};

/*
 * Parses a line of length bytes without its line end into *out. Returns TEXT_ERROR_OK, or the error. out->noreply is
 * valid in both cases: memcached stays silent about a wrong line that ends in "noreply". So is value_follows, which only
 * the new grammar sets. No side effects; reads [line, line + length) only.
 */
FS_MUST_CHECK enum text_error text_parse(enum text_grammar grammar, const char *line, size_t length,
					 struct text_command *out);

/* Finds the next word in [*at, end); words are separated by spaces. Moves *at behind it. Returns false if there is
   none. */
FS_MUST_CHECK bool text_word(const char **at, const char *end, const char **word, size_t *length);

/*
 * Read a word as a number (text_number.c). In the new grammar it is digits; in text_signed a minus may come before
 * them. In the old grammar they accept what memcached's strtoull does: control characters that are blanks (\t \v \f \r)
 * and a sign before the number, and anything behind such a blank. In text_unsigned a minus counts down from 2^64 then,
 * and a result of 2^63 or more is refused. They return false if the word is no number, or needs more than 64 bits. text
 * may be NULL if length is 0.
 */
FS_MUST_CHECK bool text_unsigned(enum text_grammar grammar, const char *text, size_t length, uint64_t *out);
FS_MUST_CHECK bool text_signed(enum text_grammar grammar, const char *text, size_t length, int64_t *out);

/* Returns true if a line that starts like this may grow beyond TEXT_LINE_MAX: it is a multiget. */
bool text_may_be_long(const char *line, size_t length);

/* Writes the decimal digits of a number into out, at most 20, without a terminator. Returns how many. */
unsigned text_number(char *out, uint64_t number);

#endif
