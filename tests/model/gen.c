/* SPDX-License-Identifier: BSD-3-Clause */
/* Random commands: batches of 1 to 64, often many on the same key, of every kind. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/model/model.h"
#include "tests/model/options.h"

#define BATCH_BYTES_MAX (1u << 20)
#define MANY_MAX 100
#define MOMENT_NS 10000000u

const char *const OP_NAMES[OP_KINDS] = { "get", "gat",  "set",  "add",    "replace", "append", "prepend",
					 "cas", "incr", "decr", "delete", "touch",   "quit",   "flush_all" };

static uint64_t below(struct conn *conn, uint64_t n)
{
	return rng_below(&conn->thread->rng, n);
}

static bool chance(struct conn *conn, unsigned percent)
{
	return below(conn, 100) < percent;
}

/* One of a table of weights. */
static unsigned pick(struct conn *conn, const uint8_t *weights, unsigned count)
{
	unsigned sum = 0, i = 0;

	for (unsigned j = 0; j < count; j++)
		sum += weights[j];
	for (uint64_t die = below(conn, sum); die >= weights[i]; i++)
		die -= weights[i];
	return i;
}

/* ---- keys, sizes, times ---------------------------------------------------------------------- */

/* Some keys are asked for more than others, so that CLOCK and re-insertion have something to do. */
static uint32_t some_owned(struct conn *conn)
{
	uint32_t all = options.threads * options.connections, i = 0;

	for (unsigned tries = 0; tries < 8; tries++) {
		double die = rng_real(&conn->thread->rng);

		i = (uint32_t)(die * die * conn->keys);
		if (!conn->key[i].quarantine)
			break;
	}
	return key_code(AREA_OWNED, conn->number + i * all);
}

static uint32_t size_of_value(struct conn *conn)
{
	static const uint8_t weights[] = { 6, 44, 110, 32, 7, 1 };

	switch (pick(conn, weights, sizeof(weights))) {
	case 0:
		return (uint32_t)below(conn, 4);
	case 1:
		return (uint32_t)below(conn, 64);
	case 2:
		return 64 + (uint32_t)below(conn, 600);
	case 3:
		return 600 + (uint32_t)below(conn, 3000);
	case 4:
		return options.large + (uint32_t)below(conn, options.large * 3);
	default:
		return (uint32_t)below(conn, options.value_max);
	}
}

static int64_t some_exptime(struct conn *conn)
{
	static const uint8_t weights[] = { 90, 3, 3, 2, 2 };

	if (options.ttl_percent > 0 && chance(conn, options.ttl_percent))
		return 1;
	switch (pick(conn, weights, sizeof(weights))) {
	case 1:
		return -1;
	case 2:
		return 1;
	case 3:
		return 3600;
	case 4:
		return (int64_t)time(NULL) + 86400;
	default:
		return 0;
	}
}

/* ---- commands -------------------------------------------------------------------------------- */

static struct op *push(struct conn *conn, enum op_kind kind, uint32_t code)
{
	struct op *op = &conn->queue[(conn->head + conn->count++) % QUEUE];

	*op = (struct op){ .kind = kind, .code = code, .count = 1, .sent_ns = now_ns() };
	conn->thread->ops++;
	return op;
}

static bool room(const struct conn *conn)
{
	return conn->count + 4 < QUEUE;
}

static const char *tail(const struct op *op)
{
	return op->noreply ? " noreply\r\n" : "\r\n";
}

/* A storage command's line; the value follows. */
static void line(struct conn *conn, const struct op *op, uint32_t flags, uint32_t length)
{
	char name[KEY_NAME_MAX + 1];

	key_name(op->code, name);
	wire_print(&conn->wire, "%s %s %u %" PRId64 " %u", OP_NAMES[op->kind], name, flags, op->exptime, length);
	if (op->kind == OP_CAS)
		wire_print(&conn->wire, " %" PRIu64, op->cas);
	wire_print(&conn->wire, "%s", tail(op));
}

static void store_owned(struct conn *conn, enum op_kind kind, uint32_t code)
{
	struct owned_key *key = owned_find(conn, code);
	struct op *op = push(conn, kind, code);
	bool join = kind == OP_APPEND || kind == OP_PREPEND;
	uint32_t length = join ? (uint32_t)below(conn, 300) : size_of_value(conn), all;

	op->too_large = chance(conn, 1) && chance(conn, 30);
	if (op->too_large)
		length = options.item_limit + (uint32_t)below(conn, 1u << 17);
	if (!join && !op->too_large && mix64(code) % 4 == 0 && chance(conn, 70))
		value_number(&op->value, chance(conn, 5) ? UINT64_MAX - below(conn, 9) : below(conn, 2000), 0);
	else
		value_text(&op->value, ++key->version, length);
	all = value_length(&op->value);
	op->noreply = chance(conn, 8);
	op->exptime = join ? 0 : some_exptime(conn);
	op->value.flags = chance(conn, 60) ? 0 : (uint32_t)below(conn, 1u << 16);
	op->cas = key->cas_seen;
	if (kind == OP_CAS && chance(conn, 20))
		op->cas -= op->cas > 1;
	line(conn, op, op->value.flags, all);
	value_bytes(&op->value, code, wire_room(&conn->wire, all));
	wire_put(&conn->wire, "\r\n", 2);
}

/* get, gets, gat, gats with one key or with many; shared ones and counters among them. */
static void get(struct conn *conn, enum op_kind kind, uint32_t code, bool many)
{
	struct op *op = push(conn, kind, code);
	char name[KEY_NAME_MAX + 1];

	op->with_cas = chance(conn, 50);
	if (many) {
		op->count = 2 + (uint32_t)below(conn, MANY_MAX - 1);
		op->codes = malloc(op->count * sizeof(*op->codes));
		if (!op->codes)
			abort();
		op->codes[0] = code;
		for (uint32_t i = 1; i < op->count; i++)
			op->codes[i] = chance(conn, 85)
					       ? some_owned(conn)
					       : key_code(AREA_SHARED, (uint32_t)below(conn, options.shared_keys));
	}
	if (key_area(code) == AREA_COUNTER)
		op->seen = counter_floor(code);
	wire_print(&conn->wire, "%s%s", OP_NAMES[kind], op->with_cas ? "s" : "");
	if (kind == OP_GAT) {
		op->exptime = key_area(code) == AREA_OWNED && !many ? some_exptime(conn) : 0;
		wire_print(&conn->wire, " %" PRId64, op->exptime);
	}
	for (uint32_t i = 0; i < op->count; i++) {
		key_name(op->codes ? op->codes[i] : code, name);
		wire_print(&conn->wire, " %s", name);
	}
	wire_print(&conn->wire, "\r\n");
}

/* delete, touch, incr, decr: a line each. */
static struct op *plain(struct conn *conn, enum op_kind kind, uint32_t code, bool noreply, int64_t exptime)
{
	struct op *op = push(conn, kind, code);
	char name[KEY_NAME_MAX + 1];

	key_name(code, name);
	op->noreply = noreply;
	op->exptime = exptime;
	op->delta = 1 + below(conn, 5);
	if (chance(conn, 5) && key_area(code) == AREA_OWNED)
		op->delta = below(conn, 3000);
	wire_print(&conn->wire, "%s %s", OP_NAMES[kind], name);
	if (kind == OP_INCR || kind == OP_DECR)
		wire_print(&conn->wire, " %" PRIu64, op->delta);
	if (kind == OP_TOUCH)
		wire_print(&conn->wire, " %" PRId64, op->exptime);
	wire_print(&conn->wire, "%s", tail(op));
	return op;
}

static void one_owned(struct conn *conn, uint32_t code)
{
	static const uint8_t weights[OP_KINDS] = {
		[OP_GET] = 40,    [OP_GAT] = 4, [OP_SET] = 26, [OP_ADD] = 4,  [OP_REPLACE] = 3, [OP_APPEND] = 3,
		[OP_PREPEND] = 2, [OP_CAS] = 4, [OP_INCR] = 4, [OP_DECR] = 2, [OP_DELETE] = 5,  [OP_TOUCH] = 3,
	};
	const struct owned_key *key = owned_find(conn, code);
	enum op_kind kind = (enum op_kind)pick(conn, weights, OP_KINDS);

	if (key->quarantine)
		return;
	if (key->wild && chance(conn, 70))
		kind = chance(conn, 70) ? OP_SET : OP_DELETE;
	switch (kind) {
	case OP_GET:
	case OP_GAT:
		get(conn, kind, code, chance(conn, 8));
		break;
	case OP_DELETE:
	case OP_TOUCH:
	case OP_INCR:
	case OP_DECR:
		plain(conn, kind, code, chance(conn, 8), kind == OP_TOUCH ? some_exptime(conn) : 0);
		break;
	default:
		store_owned(conn, kind, code);
	}
}

/* ---- shared keys ----------------------------------------------------------------------------- */

static void store_shared(struct conn *conn, enum op_kind kind, uint32_t code)
{
	uint64_t seen = 0, cas = 0, version, start = now_ns();
	uint32_t length = size_of_value(conn);
	struct op *op;

	if (kind == OP_CAS && !shared_cas_of(code, &conn->thread->rng, &seen, &cas))
		kind = OP_SET;
	version = shared_begin(code, false, start);
	if (!version) {
		get(conn, OP_GET, code, false);
		return;
	}
	if (length < SHARED_VALUE_MIN)
		length = SHARED_VALUE_MIN;
	op = push(conn, kind, code);
	op->sent_ns = start;
	op->version = version;
	op->seen = seen;
	op->cas = cas;
	op->noreply = kind == OP_SET && chance(conn, 10);
	line(conn, op, (uint32_t)version, length);
	shared_value_bytes(code, conn->number, version, length, wire_room(&conn->wire, length));
	wire_put(&conn->wire, "\r\n", 2);
	if (op->noreply) { /* the answer to this get tells that the set was carried out */
		get(conn, OP_GET, code, false);
		conn->queue[(conn->head + conn->count - 1) % QUEUE].version = version;
	}
}

static void vanish_shared(struct conn *conn, enum op_kind kind, uint32_t code)
{
	uint64_t start = now_ns(), version = shared_begin(code, true, start);
	struct op *op;

	if (!version)
		return;
	op = plain(conn, kind, code, false, -1);
	op->sent_ns = start;
	op->version = version;
}

static void one_shared(struct conn *conn, uint32_t code)
{
	static const uint8_t usual[OP_KINDS] = {
		[OP_GET] = 45,    [OP_GAT] = 8, [OP_SET] = 26,   [OP_ADD] = 5,
		[OP_REPLACE] = 3, [OP_CAS] = 7, [OP_DELETE] = 4, [OP_TOUCH] = 2,
	};
	/* Without sets the key stays on flash, and the commands race there. */
	static const uint8_t rmw[OP_KINDS] = {
		[OP_GAT] = 40, [OP_ADD] = 8, [OP_REPLACE] = 6, [OP_CAS] = 12, [OP_DELETE] = 22, [OP_TOUCH] = 12,
	};
	const uint8_t *weights = options.rmw_percent && chance(conn, options.rmw_percent) ? rmw : usual;
	enum op_kind kind = (enum op_kind)pick(conn, weights, OP_KINDS);

	if (kind == OP_GET || kind == OP_GAT)
		get(conn, kind, code, false);
	else if (kind == OP_DELETE || kind == OP_TOUCH)
		vanish_shared(conn, kind, code);
	else
		store_shared(conn, kind, code);
}

static void one_counter(struct conn *conn, uint32_t code)
{
	uint64_t first, floor = counter_floor(code);
	uint64_t die = below(conn, 100);
	struct op *op;

	if (die < 15 && counter_begin(code, &first)) {
		op = push(conn, OP_ADD, code);
		op->version = first;
		value_number(&op->value, first, 0);
		line(conn, op, 0, value_length(&op->value));
		value_bytes(&op->value, code, wire_room(&conn->wire, value_length(&op->value)));
		wire_put(&conn->wire, "\r\n", 2);
	} else if (die < 17) {
		plain(conn, OP_DELETE, code, false, 0);
	} else if (die < 75) {
		op = plain(conn, OP_INCR, code, false, 0);
		op->seen = floor;
	} else {
		get(conn, OP_GET, code, false);
	}
}

/* Most of the time all connections pick the same shared key for a moment, and then another one, so
   that a key that has gone to flash meanwhile is met by many commands at once. */
static uint32_t some_shared(struct conn *conn)
{
	uint64_t moment = now_ns() / MOMENT_NS;
	uint64_t die = chance(conn, 75) ? mix64(options.seed + moment) : rng_next(&conn->thread->rng);

	return key_code(AREA_SHARED, (uint32_t)reduce64(die, options.shared_keys));
}

/* ---- batches --------------------------------------------------------------------------------- */

static uint32_t some_key(struct conn *conn)
{
	uint64_t die = below(conn, 100);

	if (die < 70)
		return some_owned(conn);
	if (die < 92)
		return some_shared(conn);
	return key_code(AREA_COUNTER, (uint32_t)below(conn, options.counters));
}

/* Among other commands and beside other connections: what was stored before is gone for all. */
static void flush_midway(struct conn *conn)
{
	uint64_t start = now_ns();
	uint64_t *versions = shared_flush_begin(start);
	struct op *op = push(conn, OP_FLUSH, 0);

	op->sent_ns = start;
	op->versions = versions;
	wire_put(&conn->wire, "flush_all\r\n", 11);
}

void gen_batch(struct conn *conn)
{
	uint32_t focus = some_key(conn);
	unsigned of_focus = chance(conn, 30) ? 60 : 5;

	if (chance(conn, 10))
		conn->depth = 1 + (unsigned)below(conn, chance(conn, 50) ? 64 : 8);
	bool flush = options.flush_every > 0 && below(conn, 15000) == 0;

	for (unsigned i = 0; i < conn->depth && room(conn) && wire_unsent(&conn->wire) < BATCH_BYTES_MAX; i++) {
		uint32_t code = chance(conn, of_focus) ? focus : some_key(conn);

		if (flush && i == conn->depth / 2)
			flush_midway(conn);
		switch (key_area(code)) {
		case AREA_OWNED:
			one_owned(conn, code);
			break;
		case AREA_SHARED:
			one_shared(conn, code);
			break;
		case AREA_COUNTER:
			one_counter(conn, code);
			break;
		}
	}
	if (options.drops && chance(conn, 1) && chance(conn, 10) && room(conn)) {
		push(conn, OP_QUIT, 0);
		wire_put(&conn->wire, "quit\r\n", 6);
		conn->quitting = true;
	}
}
