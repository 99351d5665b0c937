/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sched/clients.h"

#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "server/store/store.h"
#include "tests/sched/fibers.h"
#include "tests/sched/finding.h"
#include "tests/sched/life.h"
#include "tests/sched/rules.h"
#include "tests/sched/wraps.h"

#define CLIENTS_MOST 8u
#define CONNECTIONS_MOST 8u
#define SECOND_NS 1000000000ull
#define SLACK_NS (3 * SECOND_NS) /* seconds are rounded twice */
#define HOT_KEYS 10u
#define HOT_COMMANDS 300u /* until others are hot */
#define HEARD_KEYS 16u
#define GLANCES 10u /* of 100 answers */
#define USED_KEYS 32u
#define PATIENCE_NS (600 * SECOND_NS) /* a command that isn't answered by then never is */

struct client;

struct connection {
	struct client *client;
	bool busy;
	char name[40];
	struct store_request request;
	struct model_view view;
	struct model_change *change;
	uint64_t named, expires_ns, begun_ns;
	struct model_flush *flush; /* NULL: it is none */
	bool fills; /* its next command sets the key that its last one has missed */
};

struct client {
	struct world *world;
	struct store *store;
	struct store_worker *worker;
	struct rng rng;
	unsigned fiber, key; /* key: the next one that is read; MODEL_KEYS: keys are random */
	uint64_t found;
	bool sets; /* sets alone */
	uint64_t commands; /* of its own, if it has a number of them */
	uint16_t used[USED_KEYS]; /* those that it has asked for, by turns */
	unsigned uses;
	struct connection connection[CONNECTIONS_MOST];
	struct model_flush flush;
};

static struct client clients[CLIENTS_MOST];
static unsigned count;
static uint64_t left; /* commands of all */
static uint64_t given;
static unsigned serving; /* clients that have not ended */
static uint16_t heard[HEARD_KEYS]; /* what the engine's own threads have worked at, by turns */
static unsigned heards;

/* ---- answers --------------------------------------------------------------------------------- */

static void take_value(struct connection *c)
{
	struct store_request *request = &c->request;
	struct model *model = &c->client->world->model;

	model->gets++;
	c->fills = request->result == STORE_MISS && c->client->key == MODEL_KEYS && rng_below(&c->client->rng, 2);
	if (request->result != STORE_HIT)
		return;
	model->hits++;
	model->flash_hits += request->value.from_flash;
	c->client->found++;
	model_seen(model, &c->view, request->value.cas, request->value.data, request->value.length);
	store_value_release(c->client->worker, &request->value);
}

static void take_store(struct connection *c)
{
	struct store_request *request = &c->request;
	struct model *model = &c->client->world->model;

	switch (request->result) {
	case STORE_STORED:
		if (request->op == STORE_CAS)
			model_compared(model, &c->view, c->named, request->cas);
		model_stored(model, &c->view, c->change, request->cas);
		return;
	case STORE_NOT_STORED:
	case STORE_MISS:
		if (request->op != STORE_ADD)
			model_absent(model, &c->view);
		break;
	case STORE_EXISTS:
	case STORE_NO_MEMORY:
	case STORE_TOO_LARGE:
		break;
	default:
		finding("key %u: op %d has the result %d", c->view.key, (int)request->op, (int)request->result);
	}
	model_refused(model, &c->view, c->change);
}

static void take_number(struct connection *c)
{
	struct store_request *request = &c->request;
	struct model *model = &c->client->world->model;

	if (request->result == STORE_HIT) {
		model_stored(model, &c->view, c->change, request->cas);
		model_counted(model, &c->view, request->cas, request->number);
		return;
	}
	if (request->result == STORE_MISS)
		model_absent(model, &c->view);
	else if (request->result != STORE_NO_MEMORY)
		finding("key %u: a number has the result %d", c->view.key, (int)request->result);
	model_refused(model, &c->view, c->change);
}

/* An answer: is all true that the engine has of the key, and of another one? */
static void glance(struct connection *c)
{
	struct client *client = c->client;

	if (client->sets || client->key < MODEL_KEYS)
		return;
	if (c->request.op != STORE_GET && rng_below(&client->rng, 2) == 0)
		rules_glance(client->world, client->store, c->view.key);
	if (heards && rng_below(&client->rng, 100) < GLANCES)
		rules_glance(client->world, client->store,
			     heard[rng_below(&client->rng, heards < HEARD_KEYS ? heards : HEARD_KEYS)]);
}

static void take_answer(struct connection *c)
{
	struct store_request *request = &c->request;
	struct model *model = &c->client->world->model;

	c->busy = false;
	if (c->flush) {
		model_flushed(model, c->flush);
		c->flush = NULL;
		return;
	}
	switch (request->op) {
	case STORE_GET:
		take_value(c);
		break;
	case STORE_GAT:
		model_touched(model, &c->view, request->result == STORE_HIT, c->expires_ns);
		take_value(c);
		break;
	case STORE_TOUCH:
		model_touched(model, &c->view, request->result == STORE_TOUCHED, c->expires_ns);
		if (request->result == STORE_MISS)
			model_absent(model, &c->view);
		break;
	case STORE_DELETE:
		if (request->result == STORE_NO_MEMORY && !c->client->world->config.evict)
			break; /* under -M it is refused when the object can't be read */
		if (request->result != STORE_DELETED && request->result != STORE_MISS)
			finding("key %u: a delete has the result %d", c->view.key, (int)request->result);
		model_absent(model, &c->view);
		break;
	case STORE_INCR:
	case STORE_DECR:
		take_number(c);
		break;
	default:
		take_store(c);
	}
	glance(c);
}

static void on_done(struct store_request *request)
{
	take_answer(request->owner);
}

/* ---- commands -------------------------------------------------------------------------------- */

/* One that is hot; one that the engine works at; one that the client has used of late; or any. */
static unsigned choose_any(struct client *client)
{
	const struct world *world = client->world;
	unsigned keys = world->keys, hot = (unsigned)(given / HOT_COMMANDS * 37 % keys);
	struct rng *rng = &client->rng;

	if (rng_below(rng, 100) < world->hot)
		return (hot + (unsigned)rng_below(rng, HOT_KEYS)) % keys;
	if (heards && rng_below(rng, 100) < world->follows)
		return heard[(heards - 1 -
			      (unsigned)rng_below(rng, 1 + rng_below(rng, heards < HEARD_KEYS ? heards : HEARD_KEYS))) %
			     HEARD_KEYS];
	if (client->uses && rng_below(rng, 100) < world->repeats)
		return client->used[rng_below(rng, client->uses < USED_KEYS ? client->uses : USED_KEYS)];
	return (unsigned)rng_below(rng, keys);
}

static unsigned choose_key(struct client *client)
{
	unsigned key;

	if (client->key < MODEL_KEYS)
		return client->key++;
	key = choose_any(client);
	client->used[client->uses++ % USED_KEYS] = (uint16_t)key;
	return key;
}

bool clients_is_one(unsigned fiber)
{
	for (unsigned i = 0; i < count; i++)
		if (clients[i].fiber == fiber)
			return true;
	return fiber == 0;
}

void clients_hear(const char *key, size_t length)
{
	unsigned number = 0, scale = 1;

	if (clients_is_one(fiber_self()))
		return;
	for (; length > 0 && key[length - 1] >= '0' && key[length - 1] <= '9' && scale < MODEL_KEYS * 10;
	     length--, scale *= 10)
		number += (unsigned)(key[length - 1] - '0') * scale;
	if (number < MODEL_KEYS)
		heard[heards++ % HEARD_KEYS] = (uint16_t)number;
}

static uint32_t choose_length(struct client *client)
{
	uint64_t dice = rng_below(&client->rng, 400), mean = client->world->length;

	return (uint32_t)rng_below(&client->rng, dice == 0 ? MODEL_VALUE_MOST - 64 : dice < 20 ? 10 * mean : 2 * mean);
}

static int64_t choose_exptime(struct connection *c)
{
	struct rng *rng = &c->client->rng;
	int64_t seconds = rng_below(rng, 6) ? 0 : 1 + (int64_t)rng_below(rng, 30);

	c->expires_ns = seconds ? fiber_now_ns() + (uint64_t)seconds * SECOND_NS + SLACK_NS : MODEL_EVER;
	return seconds;
}

static bool execute(struct connection *c, enum store_op op)
{
	c->request.op = op;
	c->request.done = on_done;
	c->request.owner = c;
	c->request.key = c->name;
	c->request.key_length = (uint8_t)model_name(c->view.key, c->name);
	c->request.hash = store_hash(c->client->store, c->name, c->request.key_length);
	c->begun_ns = fiber_now_ns();
	c->busy = true;
	if (!store_execute(c->client->worker, &c->request))
		return false;
	take_answer(c);
	return true;
}

/* A refused set makes the object go that was there, as the protocols do. */
static void refuse(struct connection *c, enum store_result why)
{
	model_refused(&c->client->world->model, &c->view, c->change);
	if (why != STORE_NO_MEMORY && why != STORE_TOO_LARGE)
		finding("an item was refused with %d", (int)why);
}

static void store(struct connection *c, enum store_op op, bool is_head)
{
	static char bytes[MODEL_VALUE_MOST + 64];
	struct client *client = c->client;
	struct model *model = &client->world->model;
	uint32_t length = choose_length(client), size;
	int64_t exptime = choose_exptime(c);
	enum store_result why = STORE_HIT;
	struct item *item;
	char name[40];

	c->change = model_begin(model, &c->view, is_head, length, 0, is_head ? c->expires_ns : MODEL_EVER);
	if (!c->change)
		return;
	size = is_head ? model_value(c->view.key, c->change->number, length, bytes)
		       : model_piece(c->view.key, c->change->number, bytes);
	if (!is_head || model_kind(c->view.key) == MODEL_NUMBER)
		c->change->length = 0;
	item = store_item_create(client->worker, name, model_name(c->view.key, name),
				 rng_below(&client->rng, 4) ? 0 : 7, store_expiry(client->store, exptime), size, &why);
	if (!item) {
		refuse(c, why);
		return;
	}
	/* The item's making may have let others go on: the bytes are made anew. */
	if (is_head)
		(void)model_value(c->view.key, c->change->number, length, bytes);
	else
		(void)model_piece(c->view.key, c->change->number, bytes);
	memcpy(store_item_value(item), bytes, size);
	c->request.item = item;
	c->request.cas = c->named;
	(void)execute(c, op);
}

static void count_by_one(struct connection *c)
{
	bool up = rng_below(&c->client->rng, 3) > 0;

	c->change = model_begin(&c->client->world->model, &c->view, false, 0, up ? 1 : -1, MODEL_EVER);
	if (!c->change)
		return;
	c->request.delta = 1;
	(void)execute(c, up ? STORE_INCR : STORE_DECR);
}

static void touch(struct connection *c, enum store_op op)
{
	int64_t exptime = choose_exptime(c);

	c->request.expiry = store_expiry(c->client->store, exptime);
	model_touch_begins(&c->client->world->model, &c->view, c->expires_ns);
	(void)execute(c, op);
}

static void flush_all(struct connection *c)
{
	struct client *client = c->client;

	model_flush_begins(&client->world->model, &client->flush);
	c->flush = &client->flush;
	c->request.done = on_done;
	c->request.owner = c;
	c->begun_ns = fiber_now_ns();
	c->busy = true;
	if (store_flush(client->worker, &c->request, 0))
		take_answer(c);
}

static bool one_flushes(const struct client *client)
{
	for (unsigned i = 0; i < CONNECTIONS_MOST; i++)
		if (client->connection[i].flush)
			return true;
	return false;
}

static void store_any(struct connection *c, uint64_t dice)
{
	c->named = c->client->world->model.key[c->view.key].seen;
	if (dice < 55 || (dice < 75 && !c->named))
		store(c, STORE_SET, true);
	else if (dice < 75)
		store(c, STORE_CAS, true);
	else
		store(c, dice < 90 ? STORE_ADD : STORE_REPLACE, true);
}

static void ask(struct connection *c)
{
	struct client *client = c->client;
	struct rng *rng = &client->rng;
	unsigned gets = client->world->gets, deletes = client->world->deletes;
	uint64_t dice = rng_below(rng, 100), changes = rng_below(rng, 100);
	enum model_kind kind;

	given++;
	memset(&c->request, 0, sizeof(c->request));
	if (client->key == MODEL_KEYS && !client->sets && !c->fills && rng_below(rng, 3000) == 0 &&
	    !one_flushes(client)) {
		flush_all(c);
		return;
	}
	c->view = model_look(&client->world->model, c->fills ? c->view.key : choose_key(client));
	kind = model_kind(c->view.key);
	if (client->sets || c->fills)
		c->fills = false, store(c, client->sets ? STORE_SET : STORE_ADD, true);
	else if (client->key < MODEL_KEYS || dice < gets)
		(void)execute(c, STORE_GET);
	else if (dice < gets + deletes)
		(void)execute(c, STORE_DELETE);
	else if (dice < gets + deletes + 3)
		touch(c, STORE_TOUCH);
	else if (dice < gets + deletes + 6)
		touch(c, STORE_GAT);
	else if (kind == MODEL_LOG && changes < 70)
		store(c, changes < 46 ? STORE_APPEND : STORE_PREPEND, false);
	else if (kind == MODEL_NUMBER && changes < 70)
		count_by_one(c);
	else
		store_any(c, rng_below(rng, 100));
}

/* ---- the loop -------------------------------------------------------------------------------- */

static bool is_over(const struct client *client)
{
	if (client->key < MODEL_KEYS)
		return client->key >= client->world->keys;
	return client->commands ? client->commands == 1 : left == 0;
}

static bool take_one(struct client *client)
{
	if (is_over(client))
		return false;
	if (client->commands)
		client->commands--;
	else if (client->key == MODEL_KEYS)
		left--;
	return true;
}

static bool all_are_busy(const struct client *client)
{
	for (unsigned i = 0; i < client->world->connections; i++)
		if (!client->connection[i].busy)
			return is_over(client);
	return true;
}

static void check_patience(const struct client *client)
{
	for (unsigned i = 0; i < CONNECTIONS_MOST; i++) {
		const struct connection *c = &client->connection[i];

		if (c->busy && fiber_now_ns() > c->begun_ns + PATIENCE_NS)
			finding("key %u: op %d was not answered for %llu s", c->view.key, (int)c->request.op,
				PATIENCE_NS / SECOND_NS);
	}
}

/* A client that nobody wakes can't look at the time itself. */
static void watch(void *context)
{
	for (unsigned i = 0; i < count; i++)
		check_patience(&clients[i]);
	fiber_at(fiber_now_ns() + PATIENCE_NS / 4, watch, context);
}

static void one_turn(struct client *client)
{
	struct store_worker_fds fds = store_worker_fds(client->worker);
	unsigned connections = client->world->connections;

	store_worker_turn(client->worker);
	for (unsigned i = 0; i < connections; i++)
		if (!client->connection[i].busy && rng_below(&client->rng, 2) && take_one(client))
			ask(&client->connection[i]);
	store_worker_poll(client->worker);
	store_worker_flush(client->worker);
	if (store_worker_has_work(client->worker))
		return;
	if (store_worker_pending(client->worker) > 0)
		wraps_wait_fds(fds.completions, fds.timer,
			       all_are_busy(client) ? FIBER_FOREVER
						    : fiber_now_ns() + rng_below(&client->rng, SECOND_NS));
	else if (rng_below(&client->rng, 4) == 0)
		fiber_sleep_until(fiber_now_ns() + rng_below(&client->rng, client->world->think_ns));
	else
		fiber_point(4);
}

static void prepare(struct client *client, struct world *world, struct store *store_, uint64_t seed)
{
	memset(client, 0, sizeof(*client));
	client->world = world;
	client->store = store_;
	client->key = MODEL_KEYS;
	rng_init(&client->rng, seed);
	for (unsigned i = 0; i < CONNECTIONS_MOST; i++)
		client->connection[i].client = client;
}

static void serve(struct client *client)
{
	if (store_worker_create(&client->worker, client->store) != FS_OK)
		finding("a worker can't be made");
	while (!is_over(client) || store_worker_pending(client->worker) > 0)
		one_turn(client);
	store_worker_destroy(client->worker);
}

static void *client_run(void *context)
{
	serve(context);
	serving--;
	return NULL;
}

void clients_begin(struct world *world, struct store *store_, uint64_t seed, uint64_t commands)
{
	static bool watched;

	left = commands;
	count = serving = world->clients;
	if (!watched)
		watch(NULL);
	watched = true;
	for (unsigned i = 0; i < count; i++) {
		prepare(&clients[i], world, store_, seed + i);
		clients[i].fiber = fiber_start(client_run, &clients[i]);
		fiber_name(clients[i].fiber, "client");
	}
}

bool clients_run(void)
{
	return serving > 0;
}

void clients_stop(void)
{
	left = 0;
}

void clients_join(void)
{
	for (unsigned i = 0; i < count; i++)
		(void)fiber_join(clients[i].fiber);
}

uint64_t clients_read_all(struct world *world, struct store *store_)
{
	static struct client reader;

	prepare(&reader, world, store_, 1);
	reader.key = 0;
	serve(&reader);
	return reader.found;
}

void clients_set_some(struct world *world, struct store *store_, uint64_t seed)
{
	static struct client setter;

	prepare(&setter, world, store_, seed);
	setter.sets = true;
	setter.commands = 20;
	serve(&setter);
}
