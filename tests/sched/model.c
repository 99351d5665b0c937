/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sched/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "tests/sched/fibers.h"
#include "tests/sched/finding.h"

#define HEAD_MAGIC 0x64616568u
#define PIECE_MAGIC 0x63656970u
#define BASE 1000000u /* a number begins in the middle of so many */

struct head {
	uint32_t magic, key;
	uint64_t number;
	uint32_t length, zero;
};

struct piece {
	uint32_t magic, key;
	uint64_t number;
};
_Static_assert(sizeof(struct piece) == MODEL_PIECE, "as told");

enum model_kind model_kind(unsigned key)
{
	return key % 8 == 1 ? MODEL_LOG : key % 8 == 2 ? MODEL_NUMBER : MODEL_PLAIN;
}

unsigned model_name(unsigned key, char name[40])
{
	return (unsigned)snprintf(name, 40, key % 5 == 0 ? "app%u:a-longer-name-%u" : "k%.0u%u", key % 3, key);
}

/* ---- views ----------------------------------------------------------------------------------- */

struct model_view model_look(struct model *model, unsigned key)
{
	struct model_key *k = &model->key[key];

	return (struct model_view){ .key = key,
				    .turn = ++model->turn,
				    .floor = k->floor,
				    .dead = k->dead,
				    .begun_ns = fiber_now_ns(),
				    .begun = ++k->begun,
				    .flying = k->flying };
}

static struct model_change *find(struct model_key *k, uint64_t number)
{
	for (unsigned i = 0; i < MODEL_CHANGES; i++)
		if (k->change[i].state != CHANGE_NONE && k->change[i].number == number)
			return &k->change[i];
	return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

#define PATTERN_STEP 31u /* between the values of a change and the next */
#define PATTERN_BYTES (MODEL_VALUE_MOST + PATTERN_STEP * 1024u)

/* Returns the bytes of a change's value: a part of one long text. */
static const char *bytes_of(uint64_t number)
{
	static char pattern[PATTERN_BYTES];
	static bool made;

	for (uint32_t i = 0; !made && i < PATTERN_BYTES; i++)
		pattern[i] = (char)mix64(i);
	made = true;
	return pattern + number % 1024 * PATTERN_STEP;
}

uint32_t model_value(unsigned key, uint64_t number, uint32_t length, char *out)
{
	struct head head = { HEAD_MAGIC, key, number, length, 0 };

	if (model_kind(key) == MODEL_NUMBER)
		return (uint32_t)snprintf(out, 24, "%" PRIu64, number * BASE + BASE / 2);
	memcpy(out, &head, sizeof(head));
	memcpy(out + sizeof(head), bytes_of(number), length);
	return (uint32_t)sizeof(head) + length;
}

uint32_t model_piece(unsigned key, uint64_t number, char *out)
{
	struct piece piece = { PIECE_MAGIC, key, number };

	memcpy(out, &piece, sizeof(piece));
	return MODEL_PIECE;
}

/* ---- changes --------------------------------------------------------------------------------- */

struct model_change *model_begin(struct model *model, const struct model_view *view, bool is_head, uint32_t length,
				 int32_t count, uint64_t expires_ns)
{
	struct model_key *k = &model->key[view->key];
	struct model_change *oldest = NULL;

	for (unsigned i = 0; i < MODEL_CHANGES; i++) {
		struct model_change *change = &k->change[i];

		if (change->state != CHANGE_FLYING &&
		    (!oldest || change->state == CHANGE_NONE ||
		     (oldest->state != CHANGE_NONE && change->number < oldest->number)))
			oldest = change;
	}
	if (!oldest)
		return NULL;
	if (oldest->state != CHANGE_NONE && oldest->number > k->forgotten)
		k->forgotten = oldest->number;
	if (oldest->state != CHANGE_NONE && oldest->id > k->forgotten_id)
		k->forgotten_id = oldest->id;
	*oldest = (struct model_change){ .state = CHANGE_FLYING,
					 .is_head = is_head,
					 .number = ++model->numbers,
					 .begun = view->turn,
					 .expires_ns =
						 k->touching && k->touched_ns > expires_ns ? k->touched_ns : expires_ns,
					 .length = length,
					 .count = count };
	k->flying++;
	model->changes++;
	return oldest;
}

/* Those that were over when the view was taken are replaced, from now on. */
static void kill_older(struct model *model, struct model_key *k, uint64_t turn, uint64_t id,
		       const struct model_change *except)
{
	for (unsigned i = 0; i < MODEL_CHANGES; i++) {
		struct model_change *change = &k->change[i];

		if (change == except || change->state == CHANGE_NONE || change->dead)
			continue;
		if ((change->state != CHANGE_FLYING && change->ended < turn) || (change->id && change->id < id))
			change->dead = model->turn;
	}
}

/* An id of a change is known from now on. */
static void learn(struct model *model, unsigned key, struct model_change *change, uint64_t id)
{
	struct model_key *k = &model->key[key];

	if (change->id && change->id != id)
		finding("key %u: change %" PRIu64 " has the ids %" PRIu64 " and %" PRIu64, key, change->number,
			change->id, id);
	for (unsigned i = 0; i < MODEL_CHANGES; i++)
		if (&k->change[i] != change && k->change[i].state != CHANGE_NONE && k->change[i].id == id)
			finding("key %u: changes %" PRIu64 " and %" PRIu64 " have both the id %" PRIu64, key,
				k->change[i].number, change->number, id);
	change->id = id;
	if (id > k->floor)
		k->floor = id;
	if (change->is_head)
		kill_older(model, k, change->begun, id, change);
}

static void ends(struct model *model, const struct model_view *view, struct model_change *change)
{
	change->state = CHANGE_DONE;
	change->ended = ++model->turn;
	model->key[view->key].flying--;
}

void model_stored(struct model *model, const struct model_view *view, struct model_change *change, uint64_t id)
{
	if (id <= view->floor || id <= view->dead)
		finding("key %u: change %" PRIu64 " got the id %" PRIu64 " behind %" PRIu64, view->key, change->number,
			id, view->floor > view->dead ? view->floor : view->dead);
	ends(model, view, change);
	learn(model, view->key, change, id);
}

void model_refused(struct model *model, const struct model_view *view, struct model_change *change)
{
	if (change->id)
		finding("key %u: change %" PRIu64 " was refused, and seen with the id %" PRIu64, view->key,
			change->number, change->id);
	ends(model, view, change);
	change->state = CHANGE_NONE;
}

void model_compared(struct model *model, const struct model_view *view, uint64_t named, uint64_t id)
{
	struct model_key *k = &model->key[view->key];

	if (named <= view->dead || named < view->floor)
		finding("key %u: a cas replaced %" PRIu64 ", behind %" PRIu64, view->key, named,
			named <= view->dead ? view->dead : view->floor);
	for (unsigned i = 0; i < MODEL_CHANGES; i++)
		if (k->change[i].state != CHANGE_NONE && k->change[i].id > named && k->change[i].id < id)
			finding("key %u: a cas replaced %" PRIu64 " by %" PRIu64 ", and %" PRIu64 " is between them",
				view->key, named, id, k->change[i].id);
}

void model_absent(struct model *model, const struct model_view *view)
{
	struct model_key *k = &model->key[view->key];

	model->turn++;
	if (view->floor > k->dead)
		k->dead = view->floor;
	kill_older(model, k, view->turn, view->floor + 1, NULL);
}

void model_touch_begins(struct model *model, const struct model_view *view, uint64_t expires_ns)
{
	struct model_key *k = &model->key[view->key];

	k->flying++;
	if (k->touching++ == 0 || k->touched_ns < expires_ns)
		k->touched_ns = expires_ns; /* changes that begin meanwhile may have it, too */
	for (unsigned i = 0; i < MODEL_CHANGES; i++)
		if (k->change[i].expires_ns < expires_ns)
			k->change[i].expires_ns = expires_ns;
}

void model_touched(struct model *model, const struct model_view *view, bool found, uint64_t expires_ns)
{
	struct model_key *k = &model->key[view->key];

	model->turn++;
	k->flying--;
	k->touching--;
	if (found && view->flying == 0 && k->begun == view->begun)
		for (unsigned i = 0; i < MODEL_CHANGES; i++)
			k->change[i].expires_ns = expires_ns;
}

/* ---- what is seen ---------------------------------------------------------------------------- */

struct parts {
	struct model_change *head; /* NULL: forgotten */
	uint64_t head_number;
	unsigned pieces;
	uint64_t piece[4 * MODEL_CHANGES];
};

static void check_part(const struct model_view *view, const struct model_change *change)
{
	if (change && change->dead && change->dead <= view->turn)
		finding("key %u: change %" PRIu64 " returned: it was gone at turn %" PRIu64
			", the get began at %" PRIu64,
			view->key, change->number, change->dead, view->turn);
}

static void foreign(const struct model_view *view, const char *what, uint64_t number)
{
	finding("key %u: foreign bytes: %s %" PRIu64, view->key, what, number);
}

static void take_piece(struct model *model, const struct model_view *view, const char *bytes, struct parts *parts)
{
	struct piece piece;

	memcpy(&piece, bytes, sizeof(piece));
	if (piece.key != view->key || piece.number > model->numbers || parts->pieces == 4 * MODEL_CHANGES)
		foreign(view, "a piece of change", piece.number);
	for (unsigned i = 0; i < parts->pieces; i++)
		if (parts->piece[i] == piece.number)
			finding("key %u: the piece of change %" PRIu64 " is there twice", view->key, piece.number);
	parts->piece[parts->pieces++] = piece.number;
	check_part(view, find(&model->key[view->key], piece.number));
}

static bool is_piece(const char *bytes, uint32_t length)
{
	uint32_t magic;

	if (length < MODEL_PIECE)
		return false;
	memcpy(&magic, bytes, sizeof(magic));
	return magic == PIECE_MAGIC;
}

static void take_head(struct model *model, const struct model_view *view, const char **bytes, uint32_t *length,
		      struct parts *parts)
{
	struct head head;

	if (*length < sizeof(head))
		foreign(view, "length", *length);
	memcpy(&head, *bytes, sizeof(head));
	if (head.magic != HEAD_MAGIC || head.key != view->key || head.number > model->numbers || head.zero ||
	    head.length > *length - sizeof(head) || head.length > MODEL_VALUE_MOST)
		foreign(view, "the head of change", head.number);
	if (memcmp(bytes_of(head.number), *bytes + sizeof(head), head.length) != 0)
		foreign(view, "the value of change", head.number);
	parts->head_number = head.number;
	parts->head = find(&model->key[view->key], head.number);
	if (parts->head && (!parts->head->is_head || parts->head->length != head.length))
		foreign(view, "the length of change", head.number);
	*bytes += sizeof(head) + head.length;
	*length -= (uint32_t)sizeof(head) + head.length;
}

static void take_apart(struct model *model, const struct model_view *view, const char *bytes, uint32_t length,
		       struct parts *parts)
{
	while (is_piece(bytes, length)) {
		take_piece(model, view, bytes, parts);
		bytes += MODEL_PIECE;
		length -= MODEL_PIECE;
	}
	take_head(model, view, &bytes, &length, parts);
	while (is_piece(bytes, length)) {
		take_piece(model, view, bytes, parts);
		bytes += MODEL_PIECE;
		length -= MODEL_PIECE;
	}
	if (length > 0 || (parts->pieces > 0 && model_kind(view->key) != MODEL_LOG))
		foreign(view, "bytes behind change", parts->head_number);
}

static bool has_piece(const struct parts *parts, uint64_t number)
{
	for (unsigned i = 0; i < parts->pieces; i++)
		if (parts->piece[i] == number)
			return true;
	return false;
}

/* Each piece that was acknowledged between the head and the id is there, and the last one has the id. */
static void check_pieces(struct model *model, const struct model_view *view, uint64_t id, const struct parts *parts)
{
	struct model_key *k = &model->key[view->key];

	for (unsigned i = 0; i < MODEL_CHANGES; i++) {
		const struct model_change *change = &k->change[i];
		bool is_there = has_piece(parts, change->number);

		if (change->state == CHANGE_NONE || change->is_head || !change->id)
			continue;
		if (is_there && change->id > id)
			finding("key %u: the id is %" PRIu64 ", and it has the piece of %" PRIu64, view->key, id,
				change->id);
		if (!is_there && parts->head && parts->head->id && change->id > parts->head->id && change->id <= id)
			finding("key %u: the piece of change %" PRIu64 " is lost", view->key, change->number);
	}
}

/* The change that has this id is the newest part: one part has it, and those whose ids are known are older. */
static void name_newest(struct model *model, const struct model_view *view, uint64_t id, const struct parts *parts)
{
	struct model_key *k = &model->key[view->key];
	struct model_change *unknown = NULL;
	unsigned unknowns = 0;

	if (parts->pieces == 0 && parts->head) {
		learn(model, view->key, parts->head, id);
		return;
	}
	for (unsigned i = 0; i < parts->pieces; i++) {
		struct model_change *change = find(k, parts->piece[i]);

		if (change && change->id == id)
			return;
		if (!change)
			return; /* forgotten: it may be the newest */
		if (!change->id) {
			unknown = change;
			unknowns++;
		}
	}
	if (unknowns == 1)
		learn(model, view->key, unknown, id);
}

static void check_id(const struct model_view *view, uint64_t id)
{
	if (id < view->floor)
		finding("key %u: stale: the id is %" PRIu64 ", and %" PRIu64 " was there before the get began",
			view->key, id, view->floor);
	if (id <= view->dead)
		finding("key %u: returned: the id is %" PRIu64 ", and up to %" PRIu64
			" all was gone before the get began",
			view->key, id, view->dead);
}

static void check_expiry(const struct model_view *view, const struct model_change *change)
{
	if (change && view->begun_ns > change->expires_ns)
		finding("key %u: change %" PRIu64 " had expired %" PRIu64 " ms before the get began", view->key,
			change->number, (view->begun_ns - change->expires_ns) / 1000000);
}

static void check_number(struct model *model, const struct model_view *view, uint64_t id, uint64_t number)
{
	struct model_key *k = &model->key[view->key];
	struct model_change *head = find(k, number / BASE);
	int64_t count = (int64_t)(number % BASE) - BASE / 2, least, most;

	if (number / BASE > model->numbers || number / BASE == 0)
		foreign(view, "the number", number);
	check_part(view, head);
	check_expiry(view, head);
	if (!head || !head->is_head || !head->id)
		return;
	least = most = 0;
	for (unsigned i = 0; i < MODEL_CHANGES; i++) {
		const struct model_change *change = &k->change[i];

		if (change->state == CHANGE_NONE || change->is_head)
			continue;
		if (change->id > head->id && change->id <= id)
			least += change->count, most += change->count;
		else if (!change->id && change->count > 0)
			most++;
		else if (!change->id)
			least--;
	}
	if (k->forgotten < head->number && k->forgotten_id < head->id && (count < least || count > most))
		finding("key %u: the count of change %" PRIu64 " is %" PRId64 ", and should be %" PRId64 " to %" PRId64,
			view->key, head->number, count, least, most);
}

static void saw(struct model *model, const struct model_view *view, uint64_t id)
{
	struct model_key *k = &model->key[view->key];

	k->seen = id;
	if (id > k->floor)
		k->floor = id;
}

void model_seen(struct model *model, const struct model_view *view, uint64_t id, const char *value, uint32_t length)
{
	struct parts parts = { .pieces = 0 };

	model->turn++;
	check_id(view, id);
	if (model_kind(view->key) == MODEL_NUMBER) {
		char text[32];
		uint64_t number;

		if (length == 0 || length > 24)
			foreign(view, "length", length);
		memcpy(text, value, length);
		text[length] = '\0';
		number = strtoull(text, NULL, 10);
		check_number(model, view, id, number);
		saw(model, view, id);
		return;
	}
	take_apart(model, view, value, length, &parts);
	check_part(view, parts.head);
	check_expiry(view, parts.head);
	check_pieces(model, view, id, &parts);
	name_newest(model, view, id, &parts);
	saw(model, view, id);
}

void model_counted(struct model *model, const struct model_view *view, uint64_t id, uint64_t number)
{
	check_number(model, view, id, number);
}

/* ---- all keys -------------------------------------------------------------------------------- */

void model_flush_begins(struct model *model, struct model_flush *flush)
{
	flush->turn = ++model->turn;
	for (unsigned key = 0; key < MODEL_KEYS; key++)
		flush->floor[key] = model->key[key].floor;
}

void model_flushed(struct model *model, const struct model_flush *flush)
{
	for (unsigned key = 0; key < MODEL_KEYS; key++) {
		const struct model_view view = { .key = key, .turn = flush->turn, .floor = flush->floor[key] };

		model_absent(model, &view);
	}
}

void model_killed(struct model *model)
{
	model->turn++;
	for (unsigned key = 0; key < MODEL_KEYS; key++) {
		struct model_key *k = &model->key[key];

		k->flying = k->touching = 0;
		for (unsigned i = 0; i < MODEL_CHANGES; i++)
			if (k->change[i].state == CHANGE_FLYING) {
				k->change[i].state = CHANGE_UNKNOWN;
				k->change[i].ended = model->turn;
			}
	}
}
