/* SPDX-License-Identifier: BSD-3-Clause */
/* The binary protocol's commands on keys: parsed ones in, requests to the store out. */
#include "server/proto/binary_internal.h"

#include "conf/conf.h"

static const uint8_t op_of[BINARY_IDS] = {
	[BINARY_GET] = STORE_GET,       [BINARY_GAT] = STORE_GAT,         [BINARY_TOUCH] = STORE_TOUCH,
	[BINARY_SET] = STORE_SET,       [BINARY_ADD] = STORE_ADD,         [BINARY_REPLACE] = STORE_REPLACE,
	[BINARY_APPEND] = STORE_APPEND, [BINARY_PREPEND] = STORE_PREPEND, [BINARY_DELETE] = STORE_DELETE,
	[BINARY_INCR] = STORE_INCR,     [BINARY_DECR] = STORE_DECR,
};

/* Returns a reply for a request on the command's key. The key is copied, as the input may be gone before the request is
   done. */
static struct reply *binary_new_request(struct conn *conn, const struct binary_command *command, uint64_t hash)
{
	struct reply *reply = conn_reply_take(conn);
	struct binary_own *own;

	if (!reply)
		return NULL;
	own = (void *)reply->own;
	own->opaque = command->opaque;
	own->opcode = command->opcode;
	own->with_key = command->flags & BINARY_WITH_KEY;
	own->silent = false;
	memcpy(reply->text + BINARY_HEAD_BYTES, command->key, command->key_length);
	reply->request.op = op_of[command->id];
	reply->request.key = reply->text + BINARY_HEAD_BYTES;
	reply->request.key_length = (uint8_t)command->key_length;
	reply->request.hash = hash;
	reply->request.item = NULL;
	reply->request.cas = command->cas;
	reply->request.expiry = 0;
	reply->request.never_refused = false;
	reply->request.has_options = false;
	reply->noreply = command->flags & BINARY_QUIET;
	reply->text_length = 0;
	reply->tail_length = 0;
	reply->pending = reply->ordered = reply->has_value = false;
	return reply;
}

/* Has a request that waits for flash answered when it is done. */
static void wait_for_flash(struct conn *conn, struct reply *reply)
{
	reply->pending = true;
	reply->ordered = reply->request.op != STORE_GET;
	conn_queue(conn, reply);
}

static void binary_execute(struct conn *conn, struct reply *reply)
{
	if (proto_execute(conn, reply))
		binary_answer(conn, reply);
	else
		wait_for_flash(conn, reply);
}

static uint32_t expiry_of(const struct conn *conn, uint32_t exptime)
{
	return store_expiry(conn->server->store, (int64_t)exptime);
}

/* If the client gives an id, delete, incr, decr, append and prepend act only on an object with that id. */
static void compare_cas(struct store_request *request, const struct binary_command *command)
{
	if (command->cas == 0)
		return;
	if (!request->has_options)
		request->options = (struct store_options){ 0 };
	request->has_options = request->options.compare_cas = true;
}

static void count_with(struct conn *conn, struct store_request *request, const struct binary_command *command)
{
	request->delta = command->delta;
	if (command->exptime == BINARY_NO_CREATE)
		return;
	request->has_options = true;
	request->options = (struct store_options){ .vivify = true,
						   .initial = command->initial,
						   .vivify_expiry = expiry_of(conn, command->exptime) };
}

enum binary_step binary_key(struct conn *conn, const struct binary_command *command)
{
	struct reply *reply = binary_new_request(conn, command, conn_hash(conn, command->key, command->key_length));

	if (!reply)
		return BINARY_CLOSE;
	switch (command->id) {
	case BINARY_GAT:
	case BINARY_TOUCH:
		reply->request.expiry = expiry_of(conn, command->exptime);
		break;
	case BINARY_INCR:
	case BINARY_DECR:
		count_with(conn, &reply->request, command);
		compare_cas(&reply->request, command);
		break;
	case BINARY_DELETE:
		compare_cas(&reply->request, command);
		reply->request.options.uncounted = command->cas != 0;
		break;
	default:
		break;
	}
	binary_execute(conn, reply);
	return BINARY_NEXT;
}

/* ---- set, add, replace, append, prepend ------------------------------------------------------ */

/* The client takes the old value of a refused set as replaced: it is deleted, silently. */
static bool delete_refused(struct conn *conn, const struct binary_command *command, uint64_t hash,
			   enum store_result why)
{
	struct reply *reply = binary_new_request(conn, command, hash);
	struct binary_own *own;

	if (!reply)
		return false;
	own = (void *)reply->own;
	own->silent = true;
	reply->request.op = STORE_DELETE;
	reply->request.has_options = true;
	reply->request.options = (struct store_options){ .refused = why };
	if (proto_execute(conn, reply))
		conn_reply_give(conn, reply);
	else /* under -M the old object may have to be read */
		wait_for_flash(conn, reply);
	return true;
}

/* As in memcached, only the text protocol counts values that are too large or find no memory. */
static enum binary_step binary_refuse_store(struct conn *conn, const struct binary_command *command, uint64_t hash,
					    enum store_result why)
{
	struct reply *answer;

	if (command->id == BINARY_SET && !delete_refused(conn, command, hash, why))
		return BINARY_CLOSE;
	answer = binary_new_request(conn, command, hash); /* it is not executed */
	if (!answer)
		return BINARY_CLOSE;
	answer->request.op = STORE_DELETE;
	answer->request.result = why;
	if (command->value_length > BINARY_BODY_MAX) {
		binary_answer(conn, answer);
		return BINARY_CLOSE;
	}
	value_skip(conn, command->value_length);
	conn->session.reply = answer;
	return BINARY_NEXT;
}

bool binary_skip_go_on(struct conn *conn)
{
	struct reply *answer = conn->session.reply;

	if (!value_skip_go_on(conn))
		return false;
	conn->session.reply = NULL;
	if (answer)
		binary_answer(conn, answer);
	return true;
}

/*
 * With an id, set, add and replace do the same: they replace the object if it has that id. Each of them may find it
 * missing, and add may store. With -C there are no ids, and none is compared.
 */
static void choose_store(struct conn *conn, struct reply *reply, const struct binary_command *command)
{
	bool joins = command->id == BINARY_APPEND || command->id == BINARY_PREPEND;

	if (command->cas == 0 || conn->server->conf->disable_cas)
		return;
	if (joins)
		compare_cas(&reply->request, command);
	else
		reply->request.op = STORE_CAS;
}

enum binary_step binary_store(struct conn *conn, const struct binary_command *command)
{
	uint64_t hash = conn_hash(conn, command->key, command->key_length);
	enum store_result why;
	struct reply *reply;
	struct item *item;

	item = store_item_create(conn->store, command->key, command->key_length, command->client_flags,
				 expiry_of(conn, command->exptime), command->value_length, &why);
	if (!item)
		return binary_refuse_store(conn, command, hash, why);
	reply = binary_new_request(conn, command, hash);
	if (!reply) {
		store_item_drop(conn->store, item);
		return BINARY_CLOSE;
	}
	reply->request.item = item;
	choose_store(conn, reply, command);
	value_begin(conn, reply, command->value_length);
	return BINARY_NEXT;
}

bool binary_store_go_on(struct conn *conn)
{
	struct reply *reply = conn->session.reply;

	if (!value_receive(conn))
		return false;
	conn->session.state = SESSION_LINE;
	conn->session.reply = NULL;
	binary_execute(conn, reply);
	return true;
}
