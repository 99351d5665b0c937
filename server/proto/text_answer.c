/* SPDX-License-Identifier: BSD-3-Clause */
/* The text protocol's answers to requests on keys. */
#include "server/proto/text_internal.h"

#include "conf/conf.h"
#include "server/proto/meta_internal.h"

struct text {
	const char *bytes;
	uint8_t length;
};

#define TEXT(literal) \
	{ \
		literal, sizeof(literal) - 1 \
	}

/* The line of each result. The answer to a hit of incr or decr is a number; hits and misses of gets have no line. */
static const struct text by_result[] = {
	[STORE_HIT] = TEXT(""),
	[STORE_MISS] = TEXT("NOT_FOUND\r\n"),
	[STORE_STORED] = TEXT("STORED\r\n"),
	[STORE_NOT_STORED] = TEXT("NOT_STORED\r\n"),
	[STORE_EXISTS] = TEXT("EXISTS\r\n"),
	[STORE_DELETED] = TEXT("DELETED\r\n"),
	[STORE_TOUCHED] = TEXT("TOUCHED\r\n"),
	[STORE_NOT_NUMBER] = TEXT("CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"),
	[STORE_TOO_LARGE] = TEXT("NOT_STORED\r\n"), /* append, prepend: memcached's answer */
	[STORE_NO_MEMORY] = TEXT(TEXT_NO_MEMORY),
	[STORE_FLUSHED] = TEXT("OK\r\n"),
};

static const struct text too_large = TEXT(TEXT_TOO_LARGE);

static bool text_is_get(const struct reply *reply)
{
	return reply->request.op == STORE_GET || reply->request.op == STORE_GAT;
}

/* Fast for one digit or two, as flags and lengths mostly have. */
static char *put_short_number(char *at, uint64_t number)
{
	if (number < 10) {
		*at = (char)('0' + number);
		return at + 1;
	}
	return at + text_number(at, number);
}

/* Writes "VALUE <key> ..." into out, and returns its length. If out is the reply's text, the key may be in its position
   already. */
static uint16_t make_value_head(const struct reply *reply, char *out)
{
	const struct store_value *value = &reply->request.value;
	char *key = out + TEXT_HEAD, *at = key + reply->request.key_length;

	memcpy(out, "VALUE ", TEXT_HEAD);
	if (reply->request.key != key)
		memcpy(key, reply->request.key, reply->request.key_length);
	*at++ = ' ';
	at = put_short_number(at, value->client_flags);
	*at++ = ' ';
	at = put_short_number(at, value->length);
	if (reply->show_cas) {
		*at++ = ' ';
		at = put_short_number(at, reply->conn->server->conf->disable_cas ? 0 : value->cas);
	}
	*at++ = '\r';
	*at++ = '\n';
	return (uint16_t)(at - out);
}

static void answer_get(struct conn *conn, struct reply *reply)
{
	struct store_value *value = &reply->request.value;
	char *at;

	if (reply->request.result != STORE_HIT) {
		conn_reply_give(conn, reply);
		return;
	}
	if (value->length > CONN_COPY_BYTES) {
		reply->text_length = make_value_head(reply, reply->text);
		reply->has_value = true;
		conn_queue(conn, reply);
		return;
	}
	at = conn_room(conn, REPLY_TEXT_BYTES + CONN_COPY_BYTES + 2);
	at += make_value_head(reply, at);
	memcpy(at, value->data, value->length);
	at += value->length;
	*at++ = '\r';
	*at++ = '\n';
	if (!conn->failed)
		conn->output.tail = (uint32_t)(at - conn->output.bytes);
	store_value_release(conn->store, value);
	conn_reply_give(conn, reply);
}

/* Writes the answer, at most 70 bytes, to a request that is no get. Returns its length. */
static uint16_t make_line(const struct reply *reply, char *out)
{
	const struct store_request *request = &reply->request;
	const struct text *text = &by_result[request->result];

	must((size_t)request->result < sizeof(by_result) / sizeof(by_result[0]));

	if (request->result == STORE_TOO_LARGE && request->op == STORE_DELETE) /* the delete of a refused set */
		text = &too_large;

	if (reply->noreply)
		return 0;
	if (request->result == STORE_HIT) {
		unsigned length = text_number(out, request->number);

		memcpy(out + length, "\r\n", 2);
		return (uint16_t)(length + 2);
	}
	memcpy(out, text->bytes, text->length);
	return text->length;
}

void text_answer(struct conn *conn, struct reply *reply)
{
	if (__builtin_expect(reply->kind != TEXT_KIND_LINE, 0)) {
		meta_answer(conn, reply);
		return;
	}
	if (text_is_get(reply)) {
		answer_get(conn, reply);
		return;
	}
	if (!reply->noreply) {
		char *out = conn_room(conn, REPLY_TEXT_BYTES);

		conn_commit(conn, make_line(reply, out));
	}
	conn_reply_give(conn, reply);
}

void text_compose(struct reply *reply)
{
	if (reply->kind != TEXT_KIND_LINE) {
		meta_compose(reply);
		return;
	}
	if (!text_is_get(reply)) {
		reply->text_length = make_line(reply, reply->text);
		return;
	}
	reply->has_value = reply->request.result == STORE_HIT;
	reply->text_length = reply->has_value ? make_value_head(reply, reply->text) : 0;
}
