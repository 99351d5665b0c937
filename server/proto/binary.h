/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The binary protocol's layout, and a parser that is a pure function from bytes to a struct: it knows
 * neither connections nor the store. It refuses the packets that memcached 1.6.18 was seen to refuse.
 *
 *   byte  0      1       2       4       5         6        8       12      16    24
 *         magic  opcode  key     extras  datatype  vbucket  body    opaque  CAS   extras | key | value
 *                        length  length            /status  length          id    \_____ body ______/
 *
 * All numbers are big-endian. Datatype and vbucket of a request are ignored.
 *
 * Threads: any; nothing here has a state.
 */
#ifndef FS_SERVER_PROTO_BINARY_H
#define FS_SERVER_PROTO_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define BINARY_HEADER_BYTES 24u
#define BINARY_MAGIC_REQUEST 0x80u
#define BINARY_MAGIC_ANSWER 0x81u
#define BINARY_KEY_MAX 250u
#define BINARY_BODY_MAX ((uint32_t)INT32_MAX) /* a longer body ends the connection */
#define BINARY_NO_CREATE UINT32_MAX /* as exptime of incr and decr: an absent key stays absent */

/*
 * The commands. COMMAND(opcode, ID, SHAPE, flags). Shapes, as extras | key | value:
 *
 *   KEY     none | 1 .. 250 | none
 *   STORE   client flags, exptime | 1 .. 250 | any
 *   JOIN    none | 1 .. 250 | any
 *   DELTA   delta (8), initial value (8), exptime | 1 .. 250 | none
 *   TOUCH   exptime | 1 .. 250 | none
 *   FLUSH   none, or exptime | none | none
 *   LEVEL   a number | none | none
 *   STAT    none | 0 .. 250 | none
 *   EMPTY   none | none | none
 *   SASL    none | 1 .. 250: a mechanism | any
 */
#define BINARY_QUIET 1u /* only errors are answered; of a get, only a hit */
#define BINARY_WITH_KEY 2u /* the answer names the key */
#define BINARY_OPEN 4u /* allowed before the client has logged in */

#define BINARY_COMMAND_TABLE(COMMAND) \
	COMMAND(0x00, GET, KEY, 0) \
	COMMAND(0x01, SET, STORE, 0) \
	COMMAND(0x02, ADD, STORE, 0) \
	COMMAND(0x03, REPLACE, STORE, 0) \
	COMMAND(0x04, DELETE, KEY, 0) \
	COMMAND(0x05, INCR, DELTA, 0) \
	COMMAND(0x06, DECR, DELTA, 0) \
	COMMAND(0x07, QUIT, EMPTY, 0) \
	COMMAND(0x08, FLUSH, FLUSH, 0) \
	COMMAND(0x09, GET, KEY, BINARY_QUIET) \
	COMMAND(0x0a, NOOP, EMPTY, 0) \
	COMMAND(0x0b, VERSION, EMPTY, BINARY_OPEN) \
	COMMAND(0x0c, GET, KEY, BINARY_WITH_KEY) \
	COMMAND(0x0d, GET, KEY, BINARY_WITH_KEY | BINARY_QUIET) \
	COMMAND(0x0e, APPEND, JOIN, 0) \
	COMMAND(0x0f, PREPEND, JOIN, 0) \
	COMMAND(0x10, STAT, STAT, 0) \
	COMMAND(0x11, SET, STORE, BINARY_QUIET) \
	COMMAND(0x12, ADD, STORE, BINARY_QUIET) \
	COMMAND(0x13, REPLACE, STORE, BINARY_QUIET) \
	COMMAND(0x14, DELETE, KEY, BINARY_QUIET) \
	COMMAND(0x15, INCR, DELTA, BINARY_QUIET) \
	COMMAND(0x16, DECR, DELTA, BINARY_QUIET) \
	COMMAND(0x17, QUIT, EMPTY, BINARY_QUIET) \
	COMMAND(0x18, FLUSH, FLUSH, BINARY_QUIET) \
	COMMAND(0x19, APPEND, JOIN, BINARY_QUIET) \
	COMMAND(0x1a, PREPEND, JOIN, BINARY_QUIET) \
	COMMAND(0x1b, VERBOSITY, LEVEL, 0) \
	COMMAND(0x1c, TOUCH, TOUCH, 0) \
	COMMAND(0x1d, GAT, TOUCH, 0) \
	COMMAND(0x1e, GAT, TOUCH, BINARY_QUIET) \
	COMMAND(0x20, SASL_LIST, EMPTY, BINARY_OPEN) \
	COMMAND(0x21, SASL_AUTH, SASL, BINARY_OPEN) \
	COMMAND(0x22, SASL_STEP, SASL, BINARY_OPEN) \
	COMMAND(0x23, GAT, TOUCH, BINARY_WITH_KEY) \
	COMMAND(0x24, GAT, TOUCH, BINARY_WITH_KEY | BINARY_QUIET)

enum binary_id {
	BINARY_NONE, /* an opcode that no row has */
	BINARY_GET,
	BINARY_GAT,
	BINARY_TOUCH,
	BINARY_SET,
	BINARY_ADD,
	BINARY_REPLACE,
	BINARY_APPEND,
	BINARY_PREPEND,
	BINARY_DELETE,
	BINARY_INCR,
	BINARY_DECR,
	BINARY_NOOP,
	BINARY_VERSION,
	BINARY_STAT,
	BINARY_FLUSH,
	BINARY_VERBOSITY,
	BINARY_QUIT,
	BINARY_SASL_LIST,
	BINARY_SASL_AUTH,
	BINARY_SASL_STEP,
	BINARY_IDS
};

/* STATUS(ID, number, text of the answer). Rows with the same number differ in their text. */
#define BINARY_STATUS_TABLE(STATUS) \
	STATUS(OK, 0x00, "") \
	STATUS(NOT_FOUND, 0x01, "Not found") \
	STATUS(EXISTS, 0x02, "Data exists for key.") \
	STATUS(TOO_LARGE, 0x03, "Too large.") \
	STATUS(INVALID, 0x04, "Invalid arguments") \
	STATUS(NOT_STORED, 0x05, "Not stored.") \
	STATUS(NOT_NUMBER, 0x06, "Non-numeric server-side value for incr or decr") \
	STATUS(AUTH, 0x20, "Auth failure.") \
	STATUS(AUTH_CONTINUE, 0x21, "") \
	STATUS(UNKNOWN, 0x81, "Unknown command") \
	STATUS(NO_MEMORY, 0x82, "Out of memory allocating item") \
	STATUS(NO_MEMORY_COUNTING, 0x82, "Out of memory incrementing value") \
	STATUS(NO_MEMORY_AUTH, 0x82, "Out of memory")

enum binary_status {
#define BINARY_STATUS_ENUM(id, number, text) BINARY_STATUS_##id,
	BINARY_STATUS_TABLE(BINARY_STATUS_ENUM)
#undef BINARY_STATUS_ENUM
		BINARY_STATUSES
};

/* The errors of a header, in the order in which they are looked for. */
enum binary_error {
	BINARY_ERROR_NONE,
	BINARY_ERROR_MAGIC, /* no packet begins here */
	BINARY_ERROR_LENGTHS, /* extras and key are longer than the body: the start of the next packet is unknown */
	BINARY_ERROR_KEY, /* the key is longer than BINARY_KEY_MAX */
	BINARY_ERROR_UNKNOWN, /* no such opcode; also a malformed verbosity, as memcached 1.6 has no such command */
	BINARY_ERROR_SHAPE /* extras, key or value are not as the command's shape has them */
};

struct binary_command {
	/* By binary_parse_header: */
	uint8_t opcode;
	uint8_t id; /* enum binary_id */
	uint8_t flags; /* BINARY_QUIET ... */
	uint8_t extras_length;
	uint16_t key_length;
	uint32_t body_length, value_length;
	uint32_t opaque;
	uint64_t cas;
	/* By binary_parse_extras, those that the command's shape has: */
	const char *key; /* in the body; NULL without one */
	uint32_t client_flags;
	uint32_t exptime; /* unsigned: a number with the highest bit set is a time up to the year 2106 */
	uint32_t level;
	uint64_t delta, initial;
};

/*
 * Reads a header of BINARY_HEADER_BYTES into *out. Returns BINARY_ERROR_NONE, or the error. The fields of the header
 * are set unless it is BINARY_ERROR_MAGIC; value_length isn't with BINARY_ERROR_LENGTHS either. Without an error,
 * extras_length + key_length is at most BINARY_KEY_MAX + 20.
 */
FS_MUST_CHECK enum binary_error binary_parse_header(const char *bytes, struct binary_command *out);

/* Reads extras and key of a command, whose header had no error, from the first extras_length + key_length bytes of its
   body. command->key points into body. */
void binary_parse_extras(struct binary_command *command, const char *body);

/* binary_get* read a big-endian number at `at`, binary_put* write one there; `at` needs no alignment. */
uint32_t binary_get32(const char *at);
uint64_t binary_get64(const char *at);
void binary_put16(char *at, uint16_t number);
void binary_put32(char *at, uint32_t number);
void binary_put64(char *at, uint64_t number);

#endif
