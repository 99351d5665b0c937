/* SPDX-License-Identifier: BSD-3-Clause */
/* The text protocol's commands on keys: parsed ones in, requests to the store out. */
#include "server/proto/text_internal.h"

#include "base/metrics/counters.h"

#define BLOCK_KEYS 16u /* keys of a multiget that are looked ahead at together */

static const uint8_t op_of[TEXT_COMMANDS] = {
	[TEXT_SET] = STORE_SET,       [TEXT_ADD] = STORE_ADD,         [TEXT_REPLACE] = STORE_REPLACE,
	[TEXT_APPEND] = STORE_APPEND, [TEXT_PREPEND] = STORE_PREPEND, [TEXT_CAS] = STORE_CAS,
	[TEXT_INCR] = STORE_INCR,     [TEXT_DECR] = STORE_DECR,       [TEXT_DELETE] = STORE_DELETE,
	[TEXT_TOUCH] = STORE_TOUCH,   [TEXT_GET] = STORE_GET,         [TEXT_GETS] = STORE_GET,
	[TEXT_BGET] = STORE_GET,      [TEXT_GAT] = STORE_GAT,         [TEXT_GATS] = STORE_GAT,
};

/* Returns a reply for a request on this key. The key lies in the input, and may stay there while the request isn't
   pending. */
static struct reply *text_new_request(struct conn *conn, enum store_op op, const char *key, size_t length,
				      uint64_t hash)
{
	struct reply *reply = conn_reply_take(conn);

	if (!reply)
		return NULL;
	reply->request.op = op;
	reply->request.key = key;
	reply->request.key_length = (uint8_t)length;
	reply->request.hash = hash;
	reply->request.item = NULL;
	reply->text_length = 0;
	reply->pending = reply->ordered = false;
	reply->has_value = reply->noreply = reply->show_cas = false;
	reply->tail_length = 2;
	reply->kind = TEXT_KIND_LINE;
	reply->request.has_options = false;
	return reply;
}

/* The input may be gone before the request is done: copies the key to its position in the answer. */
static inline void keep_key(struct reply *reply)
{
	memcpy(reply->text + TEXT_HEAD, reply->request.key, reply->request.key_length);
	reply->request.key = reply->text + TEXT_HEAD;
}

/* Has a request that waits for flash answered when it is done. */
static void wait_for_flash(struct conn *conn, struct reply *reply)
{
	/* A set's key is there already, and a meta command keeps its key elsewhere in the reply. */
	if (reply->request.key < reply->text || reply->request.key >= reply->text + sizeof(reply->text))
		keep_key(reply);
	reply->pending = true;
	reply->ordered = reply->request.op != STORE_GET;
	conn_queue(conn, reply);
}

static void text_execute(struct conn *conn, struct reply *reply)
{
	if (proto_execute(conn, reply))
		text_answer(conn, reply);
	else
		wait_for_flash(conn, reply);
}

/* ---- get, gets, gat, gats -------------------------------------------------------------------- */

static enum text_step get_key(struct conn *conn, const struct foreseen *key)
{
	struct reply *reply;

	if (conn_must_wait(conn, key->hash)) {
		conn->wait = CONN_WAIT_REPLIES;
		return TEXT_WAIT;
	}
	reply = text_new_request(conn, conn->session.op, key->key, key->length, key->hash);
	if (!reply)
		return TEXT_CLOSE;
	reply->request.expiry = conn->session.expiry;
	reply->request.never_refused = true; /* an error amid values would be taken for the end of all */
	reply->request.fate = &conn->session.fate;
	reply->show_cas = conn->session.show_cas;
	text_execute(conn, reply);
	return TEXT_NEXT;
}

/* False: the turn ends before this key. */
static bool count_key(struct conn *conn)
{
	struct session *session = &conn->session;

	if (session->keys == TEXT_COMMAND_KEYS) {
		if (conn->turns == 0)
			return false;
		conn->turns--;
		session->keys = 0;
	}
	session->keys++;
	return true;
}

/* Finds the next keys of the line, at most BLOCK_KEYS, and returns their number. The memory that they need is on its
   way while the first ones are answered. */
static unsigned next_block(struct conn *conn, struct foreseen *block)
{
	const char *at = conn->input.bytes + conn->input.start, *end = conn->input.bytes + conn->session.keys_end;
	uint64_t hashes[BLOCK_KEYS];
	unsigned count = 0;
	size_t length;

	while (count < BLOCK_KEYS && text_word(&at, end, &block[count].key, &length)) {
		block[count].length = (uint32_t)length;
		block[count].hash = hashes[count] = conn_hash(conn, block[count].key, length);
		count++;
	}
	if (count > 1)
		store_foresee(conn->store, hashes, count);
	return count;
}

/* It may take several turns. The line stays in the input, and nothing is received into that meanwhile. */
enum text_step text_keys_go_on(struct conn *conn)
{
	struct input *input = &conn->input;
	struct session *session = &conn->session;
	struct foreseen block[BLOCK_KEYS];
	unsigned count;

	do {
		count = next_block(conn, block);
		for (unsigned i = 0; i < count; i++) {
			enum text_step step;

			if (!conn_may_go(conn))
				return TEXT_WAIT;
			if (!count_key(conn))
				return TEXT_YIELD;
			step = get_key(conn, &block[i]);
			if (step != TEXT_NEXT) {
				session->keys--;
				return step;
			}
			input->start = (uint32_t)(block[i].key + block[i].length - input->bytes);
		}
	} while (count == BLOCK_KEYS);
	debug_must(session->line_end <= input->end);
	input->start = session->line_end;
	session->state = SESSION_LINE;
	conn_put_text(conn, "END\r\n");
	return TEXT_NEXT;
}

enum text_step text_keys_begin(struct conn *conn, const struct text_command *command)
{
	struct session *session = &conn->session;
	bool touches = op_of[command->id] == STORE_GAT;

	session->state = SESSION_KEYS;
	session->op = op_of[command->id];
	session->keys = 0;
	session->fate = (struct store_fate){ .taken = false };
	session->show_cas = command->id == TEXT_GETS || command->id == TEXT_GATS;
	session->expiry = touches ? store_expiry(conn->server->store, command->exptime) : 0;
	session->keys_end = (uint32_t)(command->rest_end - conn->input.bytes);
	session->line_end = conn->input.start;
	conn->input.start = (uint32_t)(command->rest - conn->input.bytes);
	return text_keys_go_on(conn);
}

/* ---- set, add, replace, append, prepend, cas ------------------------------------------------- */

/* The line that answers a set whose item could not be made. */
static const char *refusal_line(enum store_result why)
{
	return why == STORE_TOO_LARGE ? TEXT_TOO_LARGE : TEXT_NO_MEMORY;
}

/* Throws the value away, and answers behind it. */
static void refuse_value(struct conn *conn, uint32_t value_length, bool noreply, enum store_result why)
{
	ctr_add(why == STORE_TOO_LARGE ? CTR_store_too_large : CTR_store_no_memory, 1);
	text_skip_value(conn, value_length);
	if (!noreply)
		conn->session.late = refusal_line(why);
}

void text_refuse_store(struct conn *conn, const char *key, size_t length, uint32_t value_length, bool noreply,
		       enum store_result why)
{
	struct reply *reply = text_new_request(conn, STORE_DELETE, key, length, conn_hash(conn, key, length));

	if (!reply) {
		conn->failed = true;
		return;
	}
	reply->request.has_options = true;
	reply->request.options = (struct store_options){ .refused = why };
	reply->noreply = true; /* session.late is the answer, whatever comes of the delete */
	refuse_value(conn, value_length, noreply, why);
	if (proto_execute(conn, reply))
		conn_reply_give(conn, reply);
	else /* under -M the old object may have to be read */
		wait_for_flash(conn, reply);
}

static void refuse_store_line(struct conn *conn, const struct text_command *command, enum store_result why)
{
	if (command->id == TEXT_SET)
		text_refuse_store(conn, command->key, command->key_length, command->value_length, command->noreply,
				  why);
	else
		refuse_value(conn, command->value_length, command->noreply, why);
}

enum text_step text_store_begin(struct conn *conn, const struct text_command *command)
{
	const struct store *store = conn->server->store;
	uint64_t hash = conn_hash(conn, command->key, command->key_length);
	enum store_result why;
	struct reply *reply;
	struct item *item;

	item = store_item_create(conn->store, command->key, command->key_length, command->flags,
				 store_expiry(store, command->exptime), command->value_length, &why);
	if (!item) {
		refuse_store_line(conn, command, why);
		return TEXT_NEXT;
	}
	reply = text_new_request(conn, op_of[command->id], command->key, command->key_length, hash);
	if (!reply) {
		store_item_drop(conn->store, item);
		return TEXT_CLOSE;
	}
	reply->request.item = item;
	reply->request.cas = command->number;
	reply->noreply = command->noreply;
	keep_key(reply);
	value_begin(conn, reply, command->value_length);
	return TEXT_NEXT;
}

bool text_store_go_on(struct conn *conn)
{
	struct input *input = &conn->input;
	struct reply *reply = conn->session.reply;
	bool complete;

	if (!value_receive(conn) || input->end - input->start < 2)
		return false;
	complete = memcmp(input->bytes + input->start, "\r\n", 2) == 0;
	input->start += 2;
	conn->session.state = SESSION_LINE;
	conn->session.reply = NULL;
	if (complete) {
		text_execute(conn, reply);
		return true;
	}
	ctr_add(CTR_cmd_set, 1); /* as memcached does */
	if (!reply->noreply)
		conn_put_text(conn, "CLIENT_ERROR bad data chunk\r\n");
	store_item_drop(conn->store, reply->request.item);
	conn_reply_give(conn, reply);
	return true;
}

/* ---- incr, decr, delete, touch --------------------------------------------------------------- */

enum text_step text_change(struct conn *conn, const struct text_command *command)
{
	const struct store *store = conn->server->store;
	uint64_t hash = conn_hash(conn, command->key, command->key_length);
	struct reply *reply = text_new_request(conn, op_of[command->id], command->key, command->key_length, hash);

	if (!reply)
		return TEXT_CLOSE;
	reply->request.delta = command->number;
	reply->request.expiry = command->id == TEXT_TOUCH ? store_expiry(store, command->exptime) : 0;
	reply->noreply = command->noreply;
	if (command->id == TEXT_DELETE && command->noreply) {
		reply->request.has_options = true;
		reply->request.options = (struct store_options){ .blind = true };
	}
	text_execute(conn, reply);
	return TEXT_NEXT;
}
