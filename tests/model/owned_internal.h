/* SPDX-License-Identifier: BSD-3-Clause */
/* The set of values that an owned key may have: for owned.c and owned_answer.c. */
#ifndef MODEL_OWNED_INTERNAL_H
#define MODEL_OWNED_INTERNAL_H

#include "tests/model/model.h"

bool owned_none(const struct owned_key *key); /* surely absent? */
void owned_clear(struct owned_key *key); /* surely absent from here on */
void owned_may_be(struct conn *conn, struct owned_key *key, const struct value *value);
void owned_go_wild(struct conn *conn, struct owned_key *key);

/* What op wrote, or (expired) nothing. answered: just now; else nobody knows when. */
void owned_is(struct conn *conn, struct owned_key *key, const struct op *op, bool answered);
/* Keeps what passes. */
void owned_filter(struct owned_key *key, bool (*keep)(const struct value *value, const void *context),
		  const void *context);
/* What had to be gone when the command was sent can't be what it met. */
void owned_expire(struct owned_key *key, const struct op *op);
bool owned_may_expire(const struct owned_key *key);
/* A new expiry. */
void owned_retime(struct owned_key *key, const struct op *op, bool answered);
/* append, prepend, incr, decr. number: the answer of the last two, NULL when there was none. */
void owned_change(struct conn *conn, struct owned_key *key, const struct op *op, const uint64_t *number);
bool owned_cas_may_match(const struct owned_key *key, uint64_t cas);

#endif
