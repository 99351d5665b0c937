/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of the model: never kept as bytes, always as the recipe that makes them.
 *
 *   value = piece, piece, ...      a set makes one piece, append and prepend add one
 *   piece = TEXT (key, version, length)   "k12.34." and filler that follows from both
 *         | NUMBER (number, width)        decimal digits, then spaces up to width
 *
 * So a byte that belongs to another key, another version or another place shows at once.
 * Threads: any; no shared state.
 */
#ifndef MODEL_VALUE_H
#define MODEL_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEY_NAME_MAX 250
#define PIECES_MAX 6

/* A key is named by its area and its number in it. */
enum area { AREA_OWNED, AREA_SHARED, AREA_COUNTER };
#define AREA_SHIFT 30

static inline uint32_t key_code(enum area area, uint32_t number)
{
	return (uint32_t)area << AREA_SHIFT | number;
}

static inline enum area key_area(uint32_t code)
{
	return (enum area)(code >> AREA_SHIFT);
}

static inline uint32_t key_number(uint32_t code)
{
	return code & ((1u << AREA_SHIFT) - 1);
}

/* "a3:k123", for one key in ten padded up to 250 bytes. Returns its length; out is terminated. */
size_t key_name(uint32_t code, char out[KEY_NAME_MAX + 1]);

enum piece_kind { PIECE_TEXT, PIECE_NUMBER };

struct piece {
	uint64_t content; /* TEXT: version; NUMBER: the number */
	uint32_t length; /* NUMBER: with its spaces */
	enum piece_kind kind;
};

struct value {
	struct piece piece[PIECES_MAX];
	unsigned pieces;
	uint32_t flags;
	uint64_t cas; /* as a gets showed it, 0 = not seen yet */
	uint64_t cas_floor; /* its id is above this one */
	uint64_t deadline_ms; /* must be gone after it, 0 = never */
};

void value_text(struct value *value, uint64_t version, uint32_t length);
void value_number(struct value *value, uint64_t number, uint32_t width);
/* False when there is no room for another piece. Empty pieces vanish. */
bool value_join(struct value *value, const struct piece *piece, bool at_end);
uint32_t value_length(const struct value *value);
uint32_t digits_of(uint64_t number);
/* Is it one number, perhaps with spaces? */
bool value_is_number(const struct value *value, uint64_t *number);
/* length bytes at out. */
void value_bytes(const struct value *value, uint32_t code, char *out);
bool value_equals(const struct value *value, uint32_t code, const char *data, size_t length);
void value_thread_end(void); /* frees what value_equals keeps for the calling thread */

/* A value of a shared key says by itself who it is: "s12 w3 v456 l789 " and filler. */
#define SHARED_VALUE_MIN 48
void shared_value_bytes(uint32_t code, unsigned writer, uint64_t version, uint32_t length, char *out);
/* Whole and of this key? Then its version. */
bool shared_value_parse(uint32_t code, const char *data, size_t length, uint64_t *version);

#endif
