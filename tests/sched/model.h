/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each key may be. It outlives the lives of the engine, and is filled by the clients: at the beginning of a command and
 * at its answer. A get may miss at any time. What it returns must be possible:
 *
 *   stale      its id is below one that was acknowledged, or seen, before the get began
 *   returned   its id, or a change in it, had been deleted, flushed or expired before the get began
 *   foreign    its bytes are not those that the change with this number wrote, or another key's
 *   lost       it lacks a piece, or a count, that was acknowledged between its first change and its id
 *   twice      two changes have one id; a cas replaced another version than the one that it named
 *
 * A change whose answer never came, as the process was killed, may have happened or not, until a get shows it.
 *
 * Kinds of keys: of a plain one each change replaces all. A log is a head and pieces before and behind it. A number is the
 * count of its increments, on a base of its head's number.
 */
#ifndef FS_TESTS_SCHED_MODEL_H
#define FS_TESTS_SCHED_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define MODEL_KEYS 1536u
#define MODEL_CHANGES 24u
#define MODEL_VALUE_MOST (48u << 10)
#define MODEL_EVER UINT64_MAX

enum model_kind { MODEL_PLAIN, MODEL_LOG, MODEL_NUMBER };
enum model_state { CHANGE_NONE, CHANGE_FLYING, CHANGE_DONE, CHANGE_UNKNOWN };

struct model_change {
	enum model_state state;
	bool is_head; /* it replaces all */
	uint64_t number; /* of the run's changes; in the value */
	uint64_t id; /* 0: not known */
	uint64_t begun, ended; /* turns of the model */
	uint64_t dead; /* the turn from which on it may not be seen; 0: it may */
	uint64_t expires_ns; /* may not be seen later; MODEL_EVER */
	uint32_t length; /* a head's value */
	int32_t count; /* a number's: +1, -1 */
};

struct model_key {
	struct model_change change[MODEL_CHANGES];
	uint64_t floor, dead; /* ids: below the first none is seen, up to the second neither */
	uint64_t seen; /* the id that was seen last */
	uint64_t forgotten, forgotten_id; /* changes up to this number, or this id, may be none of those above */
	uint64_t begun; /* commands on the key so far */
	uint32_t flying; /* that change something */
	uint32_t touching; /* of these, touches */
	uint64_t touched_ns; /* the latest expiry that one of them may give */
};

struct model {
	uint64_t turn, numbers;
	uint64_t gets, hits, flash_hits, changes; /* so far */
	struct model_key key[MODEL_KEYS];
};

/* What the model knew when a command began. */
struct model_view {
	unsigned key;
	uint64_t turn, floor, dead, begun_ns, begun;
	uint32_t flying;
};

enum model_kind model_kind(unsigned key);
/* Writes the name of a key, of 32 bytes at the most, and returns its length. */
unsigned model_name(unsigned key, char name[40]);

struct model_view model_look(struct model *model, unsigned key);

/* A change begins. Its number is what its value is made of. NULL: too many are under way. expires_ns: MODEL_EVER or a time.
   A head of kind NUMBER, or a piece, has no length. */
struct model_change *model_begin(struct model *model, const struct model_view *view, bool is_head, uint32_t length,
				 int32_t count, uint64_t expires_ns);
/* Fills the value of a head, and returns its length. */
uint32_t model_value(unsigned key, uint64_t number, uint32_t length, char *out);
/* Fills the piece of a change, and returns its length. */
#define MODEL_PIECE 16u
uint32_t model_piece(unsigned key, uint64_t number, char *out);

/* It was stored, with that id. */
void model_stored(struct model *model, const struct model_view *view, struct model_change *change, uint64_t id);
/* It has changed nothing. */
void model_refused(struct model *model, const struct model_view *view, struct model_change *change);
/* A cas that named an id has stored. To be called before model_stored. */
void model_compared(struct model *model, const struct model_view *view, uint64_t named, uint64_t id);
/* A delete has been answered, or a command that needs an object was told that there is none. */
void model_absent(struct model *model, const struct model_view *view);
/* A touch begins, and is answered. */
void model_touch_begins(struct model *model, const struct model_view *view, uint64_t expires_ns);
void model_touched(struct model *model, const struct model_view *view, bool found, uint64_t expires_ns);
/* A get was answered with a value. */
void model_seen(struct model *model, const struct model_view *view, uint64_t id, const char *value, uint32_t length);
/* An increment was answered with this number. */
void model_counted(struct model *model, const struct model_view *view, uint64_t id, uint64_t number);

/* flush_all: the first is called when it begins, the second when it was answered. */
struct model_flush {
	uint64_t turn, floor[MODEL_KEYS];
};
void model_flush_begins(struct model *model, struct model_flush *flush);
void model_flushed(struct model *model, const struct model_flush *flush);

/* The process was killed: what was under way may have happened. */
void model_killed(struct model *model);

#endif
