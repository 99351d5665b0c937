/* SPDX-License-Identifier: BSD-3-Clause */
/* The meta commands' answers: a code, the flags that the command asked for, and a value. */
#include "server/proto/meta_internal.h"

#include "conf/conf.h"

/* The code of each result; a hit with a value has "VA" instead. */
static const char codes[][3] = {
	[STORE_HIT] = "HD",       [STORE_MISS] = "NF",    [STORE_STORED] = "HD",  [STORE_NOT_STORED] = "NS",
	[STORE_EXISTS] = "EX",    [STORE_DELETED] = "HD", [STORE_TOUCHED] = "HD", [STORE_NOT_NUMBER] = "",
	[STORE_TOO_LARGE] = "NS", [STORE_NO_MEMORY] = "",
};

static char *put_bytes(char *at, const char *text, unsigned length)
{
	memcpy(at, text, length);
	return at + length;
}

#define put_text(at, literal) put_bytes((at), (literal), sizeof(literal) - 1)

static char *put_flag_number(char *at, uint64_t number)
{
	return at + text_number(at, number);
}

static char *put_key(char *at, const struct store_request *request, bool encoded)
{
	if (encoded)
		return at + meta_encode_key(request->key, request->key_length, at);
	return put_bytes(at, request->key, request->key_length);
}

static uint64_t meta_shown_cas(const struct reply *reply, uint64_t cas)
{
	return reply->conn->server->conf->disable_cas ? 0 : cas;
}

/* Does the value, or ma's number, belong to the answer? Of an mg with C it does unless the client has it already. */
static bool is_value_wanted(const struct reply *reply)
{
	const struct meta_own *own = (const struct meta_own *)reply->own;

	if (reply->kind == TEXT_KIND_META_GET && own->unless_same && !reply->request.made &&
	    meta_shown_cas(reply, reply->request.value.cas) == own->known_cas)
		return false;
	return own->value;
}

/* ---- flags ----------------------------------------------------------------------------------- */

static char *put_ttl(char *at, struct reply *reply, bool before)
{
	const struct store_found *found = &reply->request.found;
	unsigned made = meta_own(reply)->made;
	int64_t ttl = before ? found->ttl_before_seconds : found->ttl_seconds;

	if (__builtin_expect(reply->request.made, 0))
		ttl = made == 0 ? -1 : made == 1 ? found->ttl_before_seconds : found->ttl_seconds;
	return ttl < 0 ? put_text(at, "-1") : put_flag_number(at, (uint64_t)ttl);
}

/* Appends what follows the letter of a flag of mg, whose object was found. */
static char *put_get_flag(char *at, struct reply *reply, char flag, bool before)
{
	const struct store_request *request = &reply->request;

	switch (flag) {
	case 'c':
		return put_flag_number(at, meta_shown_cas(reply, request->value.cas));
	case 'f':
		return put_flag_number(at, request->value.client_flags);
	case 'h':
		return put_flag_number(at, request->found.fetched);
	case 'l':
		return put_flag_number(at, request->found.idle_seconds);
	case 's':
		return put_flag_number(at, request->value.length);
	case 't':
		return put_ttl(at, reply, before);
	default:
		must(false); /* a flag that answers a mg has a case here */
		return at;
	}
}

/* Does this command answer this flag, with this result? (The key and the opaque token always come back.) */
static bool has_answer(const struct reply *reply, char flag)
{
	bool hit = reply->request.result == STORE_HIT;

	switch (reply->kind) {
	case TEXT_KIND_META_GET:
		return hit;
	case TEXT_KIND_META_SET:
		return flag == 'c' || flag == 's';
	case TEXT_KIND_META_ARITHMETIC:
		return hit && (flag == 'c' || flag == 't');
	default:
		return false;
	}
}

static char *put_flag(char *at, struct reply *reply, char flag)
{
	const struct store_request *request = &reply->request;
	const struct meta_own *own = meta_own(reply);
	bool stored = request->result == STORE_STORED;

	if (flag == 'k') {
		at = put_key(put_text(at, " k"), request, own->encoded);
		return own->encoded ? put_text(at, " b") : at;
	}
	if (flag == 'O')
		return put_bytes(put_text(at, " O"), own->opaque, own->opaque_length);
	if (!has_answer(reply, flag))
		return at;
	*at++ = ' ';
	*at++ = flag;
	if (reply->kind == TEXT_KIND_META_GET)
		return put_get_flag(at, reply, flag, own->before);
	if (flag == 't')
		return put_ttl(at, reply, own->before);
	if (flag == 's')
		return put_flag_number(at, stored ? request->number : own->length);
	return put_flag_number(at, stored || request->result == STORE_HIT ? meta_shown_cas(reply, request->cas) : 0);
}

/* W: this client is asked to make the value anew; Z: another one was; X: the value is stale. */
static char *put_marks(char *at, const struct store_found *found)
{
	if (found->win_sent && !found->won)
		at = put_text(at, " Z");
	if (found->stale)
		at = put_text(at, " X");
	return found->won ? put_text(at, " W") : at;
}

/* ---- heads ----------------------------------------------------------------------------------- */

/* q leaves out the expected answers: a miss of mg, and the success of the other commands; up to 1.6.39 not that of an ma
   that has made its object. */
static bool is_silent(struct reply *reply)
{
	enum store_result result = reply->request.result;

	if (!meta_own(reply)->quiet)
		return false;
	if (reply->kind == TEXT_KIND_META_GET)
		return result == STORE_MISS;
	return result == STORE_STORED || result == STORE_DELETED ||
	       (result == STORE_HIT &&
		(!reply->request.made || conf_compat_from(reply->conn->server->conf, COMPAT_QUIET_MADE)));
}

static uint16_t make_error(const struct reply *reply, char *out)
{
	const char *line = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
	size_t length;

	if (reply->request.result == STORE_NO_MEMORY)
		line = reply->kind == TEXT_KIND_META_SET ? "SERVER_ERROR out of memory storing object\r\n"
							 : "SERVER_ERROR out of memory\r\n";
	length = strlen(line);
	memcpy(out, line, length);
	return (uint16_t)length;
}

/* Writes the answer up to the value, or with ma's number, into out. Returns its length; 0: it is left out. */
static uint16_t make_meta_head(struct reply *reply, char *out)
{
	const struct store_request *request = &reply->request;
	const struct meta_own *own = meta_own(reply);
	bool hit = request->result == STORE_HIT, value = hit && is_value_wanted(reply);
	bool number = value && reply->kind == TEXT_KIND_META_ARITHMETIC;
	const char *code = codes[request->result];
	char *at = out, digits[20];
	unsigned length = number ? text_number(digits, request->number) : request->value.length;

	if (is_silent(reply))
		return 0;
	if (!*code)
		return make_error(reply, out);
	if (value)
		at = put_flag_number(put_text(at, "VA "), length);
	else
		at = put_bytes(at, reply->kind == TEXT_KIND_META_GET && !hit ? "EN" : code, 2);
	for (unsigned i = 0; i < own->answer_count; i++)
		at = put_flag(at, reply, own->answers[i]);
	if (hit && reply->kind == TEXT_KIND_META_GET)
		at = put_marks(at, &request->found);
	at = put_text(at, "\r\n");
	if (number)
		at = put_text(put_bytes(at, digits, length), "\r\n");
	return (uint16_t)(at - out);
}

/* me: class and size are those of "lru_crawler metadump", "stats items" and "stats slabs". */
static uint16_t make_debug(struct reply *reply, char *out)
{
	const struct store_request *request = &reply->request;
	struct store_told told;
	bool forever, old;
	char *at;

	if (request->result != STORE_HIT)
		return (uint16_t)(put_text(out, "EN\r\n") - out);
	store_tell(reply->conn->server->store, request, &told);
	at = put_key(put_text(out, "ME "), request, meta_own(reply)->encoded);
	/* Before this release memcached put a minus before every time. */
	forever = request->found.ttl_seconds < 0;
	old = !conf_compat_from(reply->conn->server->conf, COMPAT_DEBUG_EXP);
	at = forever || old ? put_text(at, " exp=-") : put_text(at, " exp=");
	at = put_flag_number(at, forever ? 1 : (uint64_t)request->found.ttl_seconds);
	at = put_flag_number(put_text(at, " la="), request->found.idle_seconds);
	at = put_flag_number(put_text(at, " cas="), meta_shown_cas(reply, request->value.cas));
	at = request->found.fetched ? put_text(at, " fetch=yes cls=") : put_text(at, " fetch=no cls=");
	at = put_flag_number(at, told.class);
	at = put_flag_number(put_text(at, " size="), told.object_bytes);
	return (uint16_t)(put_text(at, "\r\n") - out);
}

/* Writes the head into out, and returns its length. *value: the value follows; otherwise the value, if any, is
   released. */
static uint16_t finish_head(struct reply *reply, char *out, bool *value)
{
	bool found = reply->request.op == STORE_GET && reply->request.result == STORE_HIT, debug;
	uint16_t length;

	debug = reply->kind == TEXT_KIND_META_DEBUG;
	length = debug ? make_debug(reply, out) : make_meta_head(reply, out);
	must(length <= REPLY_TEXT_BYTES);
	*value = found && !debug && is_value_wanted(reply);
	if (found && !*value)
		store_value_release(reply->conn->store, &reply->request.value);
	return length;
}

void meta_answer(struct conn *conn, struct reply *reply)
{
	const struct store_value *value = &reply->request.value;
	bool large =
		reply->request.op == STORE_GET && reply->request.result == STORE_HIT && value->length > CONN_COPY_BYTES;
	char *out = large ? reply->text : conn_room(conn, REPLY_TEXT_BYTES + CONN_COPY_BYTES + 2);
	bool has_value;
	char *at = out + finish_head(reply, out, &has_value);

	if (large) {
		reply->text_length = (uint16_t)(at - out);
		reply->has_value = has_value;
		conn_queue(conn, reply);
		return;
	}
	if (has_value)
		at = put_text(put_bytes(at, value->data, value->length), "\r\n");
	conn_commit(conn, (uint32_t)(at - out));
	if (has_value)
		store_value_release(conn->store, &reply->request.value);
	conn_reply_give(conn, reply);
}

void meta_compose(struct reply *reply)
{
	reply->text_length = finish_head(reply, reply->text, &reply->has_value);
}
