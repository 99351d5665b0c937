/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The meta commands' parser: a pure function from a line to a struct. It knows neither connections nor the store.
 * Specification: protocol.txt of memcached. Error lines and their order are those that 1.6.18 was seen to answer, or
 * 1.6.45 (enum text_grammar in proto.h); the flags E and x, s with ms, and N with append and prepend are those that
 * releases up to 1.6.45 added.
 *
 *   mg <key> <flag>*     ms <key> <bytes> <flag>*     md <key> <flag>*     ma <key> <flag>*     me <key> [b]
 *
 * A flag is a letter and, right behind it, its token. mg, ms, md and ma take all flags; one that has no meaning for the
 * command changes nothing.
 *
 * Threads: any; nothing here has a state.
 */
#ifndef FS_SERVER_PROTO_META_PARSE_H
#define FS_SERVER_PROTO_META_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "server/proto/proto.h"

#define META_WORDS 18 /* after the command's name, at most; in the new grammar one more */
#define META_OPAQUE_MAX 31 /* bytes */
#define META_DECODED_MAX (TEXT_KEY_MAX / 4 * 3) /* bytes of a key that comes in base64 */
#define META_ENCODED_MAX (TEXT_KEY_MAX / 4 * 4)

/*
 * The flags. FLAG(letter, KIND), where the kinds are:
 *
 *   PLAIN     a letter alone
 *   ANSWERED  a letter alone; the answer has the flag too
 *   OPAQUE    with a token, which the answer has too
 *   BASE64    the key comes in base64
 *   MODE      its token is one letter
 *   NUMBER    its token is a number
 */
#define META_FLAG_TABLE(FLAG) \
	FLAG('I', PLAIN) \
	FLAG('L', PLAIN) \
	FLAG('P', PLAIN) \
	FLAG('q', PLAIN) \
	FLAG('u', PLAIN) \
	FLAG('v', PLAIN) \
	FLAG('x', PLAIN) \
	FLAG('c', ANSWERED) \
	FLAG('f', ANSWERED) \
	FLAG('h', ANSWERED) \
	FLAG('k', ANSWERED) \
	FLAG('l', ANSWERED) \
	FLAG('s', ANSWERED) \
	FLAG('t', ANSWERED) \
	FLAG('O', OPAQUE) \
	FLAG('b', BASE64) \
	FLAG('M', MODE) \
	FLAG('C', NUMBER) \
	FLAG('D', NUMBER) \
	FLAG('E', NUMBER) \
	FLAG('F', NUMBER) \
	FLAG('J', NUMBER) \
	FLAG('N', NUMBER) \
	FLAG('R', NUMBER) \
	FLAG('T', NUMBER)

enum meta_kind { META_NO_FLAG, META_PLAIN, META_ANSWERED, META_OPAQUE, META_BASE64, META_MODE, META_NUMBER };

/* The most flags that an answer can have: each flag once, as a second one of its kind is an error. */
enum {
#define META_FLAG_ANSWERS(letter, kind) +(META_##kind == META_ANSWERED || META_##kind == META_OPAQUE)
	META_ANSWERS = 0 META_FLAG_TABLE(META_FLAG_ANSWERS)
#undef META_FLAG_ANSWERS
};

/* The errors of a line, and their answers. ERR(ID, answer) */
#define META_ERROR_TABLE(ERR) \
	ERR(OK, "") \
	ERR(NO_KEY, "ERROR\r\n") /* of the old grammar; FORMAT in the new one */ \
	ERR(FORMAT, "CLIENT_ERROR bad command line format\r\n") \
	ERR(MANY_TO_GET, "CLIENT_ERROR options flags are too long\r\n") \
	ERR(MANY, "CLIENT_ERROR options flags too long\r\n") /* of the old grammar, but for mg */ \
	ERR(FLAG, "CLIENT_ERROR invalid flag\r\n") \
	ERR(DUPLICATE, "CLIENT_ERROR duplicate flag\r\n") \
	ERR(FLAG_OR_DUPLICATE, "CLIENT_ERROR invalid or duplicate flag\r\n") \
	ERR(KEY, "CLIENT_ERROR error decoding key\r\n") \
	ERR(TOKEN, "CLIENT_ERROR bad token in command line format\r\n") \
	ERR(DELTA, "CLIENT_ERROR invalid numeric delta value\r\n") \
	ERR(INITIAL, "CLIENT_ERROR invalid numeric initial value\r\n") \
	ERR(MODE_LENGTH, "CLIENT_ERROR incorrect length for M token\r\n") \
	ERR(MODE_SET, "CLIENT_ERROR invalid mode for ms M token\r\n") \
	ERR(MODE_ARITHMETIC, "CLIENT_ERROR invalid mode for ma M token\r\n") \
	ERR(OPAQUE, "CLIENT_ERROR opaque token too long\r\n")

enum meta_error {
#define META_ERROR_ENUM(id, answer) META_ERROR_##id,
	META_ERROR_TABLE(META_ERROR_ENUM)
#undef META_ERROR_ENUM
		META_ERRORS
};

/* Returns the line that answers an error, line end included; "" for OK. Constant text. */
const char *meta_error_answer(enum meta_error error);

/* Pointers lead into the line; the one of a key in base64 leads into the struct itself. A token's field is set if its
   flag was given. */
struct meta_command {
	const char *key;
	const char *opaque; /* O: without the letter */
	uint64_t given; /* the flags, a bit each: meta_given() */
	uint64_t cas, new_cas; /* C, E */
	uint64_t delta, initial; /* D, J */
	int64_t exptime; /* T */
	int64_t vivify_exptime; /* N */
	int64_t recache_exptime; /* R */
	uint32_t client_flags; /* F; 0 without it */
	uint32_t value_length; /* ms */
	uint8_t key_length; /* 1 .. TEXT_KEY_MAX */
	uint8_t opaque_length; /* 0 .. META_OPAQUE_MAX */
	uint8_t answer_count;
	char mode; /* M: ms: S E A P R; ma: I D; without it S and I */
	bool old_ttl; /* t comes before T: it asks for the time to live before T */
	bool vivify_last; /* N comes after T: an object that is made gets N's time */
	uint8_t made_ttl; /* t of an object that is made: how many of N and T come before t, 0 .. 2 */
	bool recache_first; /* R comes before T */
	bool body_follows; /* ms, also with an error: a data block of value_length bytes comes next */
	char answers[META_ANSWERS]; /* flags that are answered, in the order asked */
	char decoded[META_DECODED_MAX];
};

/* Returns the bit of a flag ('@' .. '~') in meta_command's given. */
static inline uint64_t meta_flag_bit(char flag)
{
	return 1ull << (flag - '@');
}

/* Returns true if the command has this flag. */
static inline bool meta_given(const struct meta_command *command, char flag)
{
	return command->given & meta_flag_bit(flag);
}

/*
 * Parses the text [at, end) behind the name of command id, which is one of the meta commands. Returns META_ERROR_OK, or
 * the error; only body_follows and value_length are valid then. No side effects; reads [at, end) only. *out must not
 * be moved as long as its key is used, which may point into it.
 */
FS_MUST_CHECK enum meta_error meta_parse(enum text_grammar grammar, enum text_id id, const char *at, const char *end,
					 struct meta_command *out);

/* Writes the base64 of a key of length bytes (at most META_DECODED_MAX) into out[META_ENCODED_MAX], without a
   terminator. Returns its length. */
unsigned meta_encode_key(const char *key, unsigned length, char *out);

/* Decodes the base64 of a key, at most TEXT_KEY_MAX bytes, into out[META_DECODED_MAX]. Returns the key's length, or 0
   if it is no key. As memcached does, it passes over characters that don't belong, and ends with the first padding. */
unsigned meta_decode_key(const char *text, size_t length, char *out);

#endif
