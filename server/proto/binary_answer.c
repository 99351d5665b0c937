/* SPDX-License-Identifier: BSD-3-Clause */
/* The binary protocol's answers. */
#include "server/proto/binary_internal.h"

#include "base/assert.h"
#include "conf/conf.h"

static const struct status {
	uint16_t number, length;
	const char *text;
} statuses[BINARY_STATUSES] = {
#define BINARY_STATUS_ROW(id, number, text) { number, sizeof(text) - 1, text },
	BINARY_STATUS_TABLE(BINARY_STATUS_ROW)
#undef BINARY_STATUS_ROW
};

static void put_header(char *out, uint8_t opcode, uint32_t opaque, enum binary_status status, uint8_t extras,
		       uint16_t key, uint32_t body, uint64_t cas)
{
	out[0] = (char)BINARY_MAGIC_ANSWER;
	out[1] = (char)opcode;
	binary_put16(out + 2, key);
	out[4] = (char)extras;
	out[5] = 0;
	binary_put16(out + 6, statuses[status].number);
	binary_put32(out + 8, body);
	binary_put32(out + 12, opaque);
	binary_put64(out + 16, cas);
}

void binary_make_header(char *out, const struct binary_command *command, enum binary_status status, uint16_t key_length,
			uint32_t body_length)
{
	put_header(out, command->opcode, command->opaque, status, 0, key_length, body_length, 0);
}

void binary_put(struct conn *conn, const struct binary_command *command, enum binary_status status, const char *key,
		uint32_t key_length, const char *value, uint32_t value_length)
{
	uint32_t bytes = BINARY_HEADER_BYTES + key_length + value_length;
	char *out = conn_room(conn, bytes);

	put_header(out, command->opcode, command->opaque, status, 0, (uint16_t)key_length, key_length + value_length,
		   0);
	if (key_length > 0)
		memcpy(out + BINARY_HEADER_BYTES, key, key_length);
	if (value_length > 0)
		memcpy(out + BINARY_HEADER_BYTES + key_length, value, value_length);
	conn_commit(conn, bytes);
}

void binary_put_status(struct conn *conn, const struct binary_command *command, enum binary_status status)
{
	binary_put(conn, command, status, NULL, 0, statuses[status].text, statuses[status].length);
}

/* ---- requests on keys ------------------------------------------------------------------------ */

static bool binary_is_get(const struct reply *reply)
{
	return reply->request.op == STORE_GET || reply->request.op == STORE_GAT;
}

/* The status that tells the client the store's result. */
static enum binary_status binary_status_of(const struct store_request *request)
{
	switch (request->result) {
	case STORE_MISS:
		return BINARY_STATUS_NOT_FOUND;
	case STORE_NOT_STORED:
		return request->op == STORE_ADD       ? BINARY_STATUS_EXISTS
		       : request->op == STORE_REPLACE ? BINARY_STATUS_NOT_FOUND
						      : BINARY_STATUS_NOT_STORED;
	case STORE_EXISTS:
		return BINARY_STATUS_EXISTS;
	case STORE_NOT_NUMBER:
		return BINARY_STATUS_NOT_NUMBER;
	case STORE_TOO_LARGE: /* append, prepend: memcached's answer; delete: that of a refused set */
		return request->op == STORE_DELETE ? BINARY_STATUS_TOO_LARGE : BINARY_STATUS_NOT_STORED;
	case STORE_NO_MEMORY:
		return request->op == STORE_INCR || request->op == STORE_DECR ? BINARY_STATUS_NO_MEMORY_COUNTING
									      : BINARY_STATUS_NO_MEMORY;
	default:
		return BINARY_STATUS_OK;
	}
}

static uint64_t binary_shown_cas(const struct reply *reply, uint64_t cas)
{
	return reply->conn->server->conf->disable_cas ? 0 : cas;
}

/* The key of a get is already in its position in the reply's text. */
static uint16_t make_hit(const struct reply *reply, char *out)
{
	const struct binary_own *own = (const void *)reply->own;
	const struct store_value *value = &reply->request.value;
	uint16_t key = own->with_key ? reply->request.key_length : 0;

	put_header(out, own->opcode, own->opaque, BINARY_STATUS_OK, BINARY_FLAGS_BYTES, key,
		   BINARY_FLAGS_BYTES + key + value->length, binary_shown_cas(reply, value->cas));
	binary_put32(out + BINARY_HEADER_BYTES, value->client_flags);
	if (key > 0 && out != reply->text)
		memcpy(out + BINARY_HEAD_BYTES, reply->text + BINARY_HEAD_BYTES, key);
	return (uint16_t)(BINARY_HEAD_BYTES + key);
}

/* A miss has the key instead of a text, if the command's answers name the key. */
static uint16_t make_miss(const struct reply *reply, enum binary_status status, char *out)
{
	const struct binary_own *own = (const void *)reply->own;
	uint16_t key = own->with_key ? reply->request.key_length : 0;
	uint16_t text = key > 0 ? 0 : statuses[status].length;

	if (own->silent || (reply->noreply && binary_is_get(reply) && status == BINARY_STATUS_NOT_FOUND))
		return 0;
	if (key > 0)
		memmove(out + BINARY_HEADER_BYTES, reply->text + BINARY_HEAD_BYTES, key);
	memcpy(out + BINARY_HEADER_BYTES + key, statuses[status].text, text);
	put_header(out, own->opcode, own->opaque, status, 0, key, (uint32_t)key + text, 0);
	return (uint16_t)(BINARY_HEADER_BYTES + key + text);
}

/* The answer to a success that is no get: no body, a number, or (touch) client flags. */
static uint16_t make_done(const struct reply *reply, char *out)
{
	const struct binary_own *own = (const void *)reply->own;
	const struct store_request *request = &reply->request;
	bool stored = request->result == STORE_STORED || request->result == STORE_HIT;
	uint8_t extras = 0;
	uint32_t body = 0;
	uint64_t cas = stored ? request->cas : 0;

	if (reply->noreply)
		return 0;
	if (request->result == STORE_TOUCHED) {
		body = extras = BINARY_FLAGS_BYTES;
		cas = request->value.cas;
		binary_put32(out + BINARY_HEADER_BYTES, request->value.client_flags);
	} else if (request->result == STORE_HIT) {
		body = sizeof(uint64_t);
		binary_put64(out + BINARY_HEADER_BYTES, request->number);
	}
	put_header(out, own->opcode, own->opaque, BINARY_STATUS_OK, extras, 0, body, binary_shown_cas(reply, cas));
	return (uint16_t)(BINARY_HEADER_BYTES + body);
}

/* Writes the answer without the value, at most REPLY_TEXT_BYTES, into out, which may be the reply's own text. Returns
   its length; 0: a quiet command has none. */
static uint16_t make_packet(const struct reply *reply, char *out)
{
	enum binary_status status = binary_status_of(&reply->request);

	if (status != BINARY_STATUS_OK)
		return make_miss(reply, status, out);
	return binary_is_get(reply) ? make_hit(reply, out) : make_done(reply, out);
}

static bool packet_has_value(const struct reply *reply)
{
	return binary_is_get(reply) && reply->request.result == STORE_HIT;
}

void binary_answer(struct conn *conn, struct reply *reply)
{
	struct store_value *value = &reply->request.value;
	uint32_t length;
	char *out;

	if (packet_has_value(reply) && value->length > CONN_COPY_BYTES) {
		binary_compose(reply);
		conn_queue(conn, reply);
		return;
	}
	out = conn_room(conn, REPLY_TEXT_BYTES + CONN_COPY_BYTES);
	length = make_packet(reply, out);
	if (packet_has_value(reply)) {
		memcpy(out + length, value->data, value->length);
		length += value->length;
		store_value_release(conn->store, value);
	}
	conn_commit(conn, length);
	conn_reply_give(conn, reply);
}

void binary_compose(struct reply *reply)
{
	reply->has_value = packet_has_value(reply);
	reply->text_length = make_packet(reply, reply->text);
	must(reply->text_length <= REPLY_TEXT_BYTES);
}

_Static_assert(BINARY_HEAD_BYTES + BINARY_KEY_MAX <= REPLY_TEXT_BYTES, "a get's head fits");
