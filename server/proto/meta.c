/* SPDX-License-Identifier: BSD-3-Clause */
/* The meta commands: parsed ones in, requests to the store out. */
#include "server/proto/meta_internal.h"

#include "base/clock.h"
#include "base/metrics/counters.h"
#include "conf/conf.h"

_Static_assert(META_ANSWERS == 8, "new_request counts the longest head with the flags c f h k l O s t");

/* Returns a reply for a request on this key. The key lies at the end of the reply's text. A head made at the text's
   beginning never reaches it: the longest head has 380 bytes, or 384 with a key in base64, which has 186 bytes at
   most. */
static struct reply *meta_new_request(struct conn *conn, const struct meta_command *meta, enum text_kind kind,
				      enum store_op op)
{
	struct reply *reply = conn_reply_take(conn);
	struct store_request *request;

	if (!reply)
		return NULL;
	request = &reply->request;
	request->op = op;
	request->key = memcpy(reply->text + REPLY_TEXT_BYTES - meta->key_length, meta->key, meta->key_length);
	request->key_length = meta->key_length;
	request->hash = conn_hash(conn, meta->key, meta->key_length);
	request->item = NULL;
	request->has_options = true;
	request->options = (struct store_options){ .meta = true };
	reply->kind = (uint8_t)kind;
	reply->text_length = 0;
	reply->pending = reply->ordered = false;
	reply->has_value = reply->noreply = false;
	reply->tail_length = 2;
	return reply;
}

static void set_own(struct reply *reply, const struct meta_command *meta)
{
	struct meta_own *own = meta_own(reply);

	must(meta->answer_count <= META_ANSWERS && meta->opaque_length <= META_OPAQUE_MAX);
	own->answer_count = meta->answer_count;
	memcpy(own->answers, meta->answers, sizeof(own->answers));
	own->opaque_length = meta->opaque_length;
	if (meta->opaque_length > 0)
		memcpy(own->opaque, meta->opaque, meta->opaque_length);
	own->quiet = meta_given(meta, 'q');
	own->value = meta_given(meta, 'v');
	own->encoded = meta_given(meta, 'b');
	own->before = meta->old_ttl;
	own->made = meta->made_ttl == meta_given(meta, 'N') + meta_given(meta, 'T') ? 2 : meta->made_ttl;
	own->unless_same = meta_given(meta, 'C');
	own->known_cas = own->unless_same ? meta->cas : 0;
	own->length = meta->value_length;
}

/* Sets the options of the request that all commands have in common. */
static void meta_set_options(struct conn *conn, struct store_request *request, const struct meta_command *meta)
{
	const struct store *store = conn->server->store;

	if (meta_given(meta, 'T')) {
		request->options.touch = true;
		request->expiry = store_expiry(store, meta->exptime);
	}
	if (meta_given(meta, 'N')) {
		request->options.vivify = true;
		request->options.vivify_last = meta->vivify_last;
		request->options.vivify_expiry = store_expiry(store, meta->vivify_exptime);
	}
	if (meta_given(meta, 'E')) {
		request->options.own_cas = true;
		request->options.new_cas = meta->new_cas;
	}
}

static void meta_compare(struct store_request *request, const struct meta_command *meta)
{
	request->options.compare_cas = true;
	request->cas = meta->cas;
}

static enum text_step meta_execute(struct conn *conn, struct reply *reply, bool changes)
{
	if (proto_execute(conn, reply)) {
		meta_answer(conn, reply);
		return TEXT_NEXT;
	}
	reply->pending = true;
	reply->ordered = changes;
	conn_queue(conn, reply);
	return TEXT_NEXT;
}

/* ---- mg, me ---------------------------------------------------------------------------------- */

/* Returns the seconds that are left until a time in memcached's form: relative, or beyond 30 days the clock's. 0: it has
   passed. */
static uint32_t seconds_until(int64_t exptime)
{
	int64_t seconds = exptime > STORE_RELATIVE_EXPTIME_MAX ? exptime - clk_wall_seconds() : exptime;

	return seconds <= 0 ? 0 : seconds < UINT32_MAX ? (uint32_t)seconds : UINT32_MAX;
}

static enum text_step run_get(struct conn *conn, const struct meta_command *meta)
{
	struct reply *reply = meta_new_request(conn, meta, TEXT_KIND_META_GET, STORE_GET);
	struct store_options *options;

	if (!reply)
		return TEXT_CLOSE;
	set_own(reply, meta);
	options = &reply->request.options;
	meta_set_options(conn, &reply->request, meta);
	if (meta_given(meta, 'R')) {
		options->recache_seconds = seconds_until(meta->recache_exptime);
		options->recache = options->recache_seconds > 0;
		options->recache_first = meta->recache_first;
	}
	options->keep_clock = meta_given(meta, 'u');
	return meta_execute(conn, reply, options->touch || options->vivify || options->recache);
}

static enum text_step run_debug(struct conn *conn, const struct meta_command *meta)
{
	struct reply *reply = meta_new_request(conn, meta, TEXT_KIND_META_DEBUG, STORE_GET);

	if (!reply)
		return TEXT_CLOSE;
	ctr_add(CTR_cmd_meta, 1);
	meta_own(reply)->encoded = meta_given(meta, 'b');
	reply->request.options.keep_clock = true;
	reply->request.options.uncounted = true;
	return meta_execute(conn, reply, false);
}

/* ---- ms -------------------------------------------------------------------------------------- */

static enum store_op op_of_mode(const struct meta_command *meta)
{
	switch (meta->mode) {
	case 'E':
		return STORE_ADD;
	case 'A':
		return STORE_APPEND;
	case 'P':
		return STORE_PREPEND;
	case 'R': /* with an id to compare, cas answers the same for a missing key */
		return meta_given(meta, 'C') ? STORE_SET : STORE_REPLACE;
	default:
		return STORE_SET;
	}
}

/* The value is thrown away. The old one is deleted, as the client takes it as replaced, whatever the mode was. */
static enum text_step refuse_value(struct conn *conn, const struct meta_command *meta, enum store_result why)
{
	text_refuse_store(conn, meta->key, meta->key_length, meta->value_length, false, why);
	return TEXT_NEXT;
}

static enum text_step run_set(struct conn *conn, const struct meta_command *meta)
{
	enum store_op op = op_of_mode(meta);
	bool joins = op == STORE_APPEND || op == STORE_PREPEND;
	/* append and prepend keep flags and expiry of the object. If they make an object (N), N has its expiry. */
	int64_t exptime = meta_given(meta, joins ? 'N' : 'T') ? (joins ? meta->vivify_exptime : meta->exptime) : 0;
	struct store_options *options;
	enum store_result why;
	struct reply *reply;
	struct item *item;

	item = store_item_create(conn->store, meta->key, meta->key_length, meta->client_flags,
				 store_expiry(conn->server->store, exptime), meta->value_length, &why);
	if (!item)
		return refuse_value(conn, meta, why);
	reply = meta_new_request(conn, meta, TEXT_KIND_META_SET, op);
	if (!reply) {
		store_item_drop(conn->store, item);
		return TEXT_CLOSE;
	}
	set_own(reply, meta);
	meta_set_options(conn, &reply->request, meta);
	options = &reply->request.options;
	options->touch = false;
	options->vivify = joins && options->vivify;
	reply->request.item = item;
	/* memcached compares no id for an add, and no id 0 for append and prepend. */
	if (meta_given(meta, 'C') && op != STORE_ADD && (!joins || meta->cas != 0))
		meta_compare(&reply->request, meta);
	options->invalidate = meta_given(meta, 'I') && op == STORE_SET && meta_given(meta, 'C') && meta->cas != 0;
	value_begin(conn, reply, meta->value_length);
	return TEXT_NEXT;
}

/* ---- md, ma ---------------------------------------------------------------------------------- */

static enum text_step run_delete(struct conn *conn, const struct meta_command *meta)
{
	struct reply *reply = meta_new_request(conn, meta, TEXT_KIND_META_DELETE, STORE_DELETE);
	struct store_options *options;

	if (!reply)
		return TEXT_CLOSE;
	set_own(reply, meta);
	meta_set_options(conn, &reply->request, meta);
	options = &reply->request.options;
	options->vivify = false;
	options->invalidate = meta_given(meta, 'I');
	options->drop_value = meta_given(meta, 'x');
	options->touch = options->touch && options->invalidate;
	if (meta_given(meta, 'C'))
		meta_compare(&reply->request, meta);
	/* A quiet delete tells neither that the key was there nor that it wasn't. */
	options->blind = meta_given(meta, 'q') && !options->compare_cas && !options->invalidate && !options->drop_value;
	return meta_execute(conn, reply, true);
}

static enum text_step run_arithmetic(struct conn *conn, const struct meta_command *meta)
{
	struct reply *reply =
		meta_new_request(conn, meta, TEXT_KIND_META_ARITHMETIC, meta->mode == 'D' ? STORE_DECR : STORE_INCR);
	struct store_request *request;

	if (!reply)
		return TEXT_CLOSE;
	set_own(reply, meta);
	request = &reply->request;
	meta_set_options(conn, request, meta);
	request->delta = meta_given(meta, 'D') ? meta->delta : 1;
	request->options.initial = meta_given(meta, 'J') ? meta->initial : 0;
	if (meta_given(meta, 'C') && meta->cas != 0) /* memcached compares no id 0 */
		meta_compare(request, meta);
	return meta_execute(conn, reply, true);
}

/* ---- all ------------------------------------------------------------------------------------- */

static enum text_step refuse_line(struct conn *conn, const struct meta_command *meta, enum meta_error error)
{
	const char *answer = meta_error_answer(error);

	if (meta->body_follows) {
		text_skip_value(conn, meta->value_length);
		conn->session.late = answer;
	} else {
		conn_put(conn, answer, (uint32_t)strlen(answer));
	}
	return TEXT_NEXT;
}

enum text_step meta_run(struct conn *conn, const struct text_command *command)
{
	struct meta_command meta;
	enum meta_error error = meta_parse(text_grammar_of(conn), command->id, command->rest, command->rest_end, &meta);

	if (error != META_ERROR_OK)
		return refuse_line(conn, &meta, error);
	switch (command->id) {
	case TEXT_META_GET:
		return run_get(conn, &meta);
	case TEXT_META_SET:
		return run_set(conn, &meta);
	case TEXT_META_DELETE:
		return run_delete(conn, &meta);
	case TEXT_META_ARITHMETIC:
		return run_arithmetic(conn, &meta);
	default:
		return run_debug(conn, &meta);
	}
}

bool meta_must_wait(struct conn *conn, const struct text_command *command)
{
	struct meta_command meta;

	if (meta_parse(text_grammar_of(conn), command->id, command->rest, command->rest_end, &meta) != META_ERROR_OK ||
	    !conn_must_wait(conn, store_hash(conn->server->store, meta.key, meta.key_length)))
		return false;
	conn->wait = CONN_WAIT_REPLIES;
	return true;
}
