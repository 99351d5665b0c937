/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the protocols: the code that the text and the binary protocol share. It executes a request, and it takes the
 * value of a storage command from the input, into the command's item or past it.
 *
 *   value_begin --> SESSION_BODY    --value_receive until true--> the protocol executes the command
 *   value_skip  --> SESSION_SWALLOW --value_skip_go_on until true--> SESSION_LINE
 *
 * Threads: the connection's worker.
 */
#ifndef FS_SERVER_PROTO_PROTO_INTERNAL_H
#define FS_SERVER_PROTO_PROTO_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "base/error.h"
#include "server/conn/conn.h"
#include "server/count/observe.h"

/*
 * Executes the request of a reply, and counts it if it is done at once. Returns true when it is done. Returns false
 * when it waits for flash: the caller queues the reply (conn_queue), and the network counts the request when it is
 * done.
 */
static inline bool proto_execute(struct conn *conn, struct reply *reply)
{
	if (!store_execute(conn->store, &reply->request))
		return false;
	observe(conn, &reply->request);
	return true;
}

/*
 * Executes a flush_all, for a reply whose flags and own data are the protocol's. Returns true when it may be answered.
 * Returns false when the journal doesn't have it yet: the reply is queued, and composed when it is done.
 */
static inline bool proto_flush(struct conn *conn, struct reply *reply, int64_t exptime)
{
	reply->pending = reply->ordered = reply->has_value = false;
	reply->text_length = 0;
	reply->tail_length = 0;
	if (store_flush(conn->store, &reply->request, exptime))
		return true;
	reply->pending = true;
	conn_queue(conn, reply);
	return false;
}

/* From here on the next length bytes of the input are the value of this reply's item. The session owns the reply and
   its item until the protocol takes them back (session.reply), or value_abandon frees them. */
static inline void value_begin(struct conn *conn, struct reply *reply, uint32_t length)
{
	must(!conn->session.reply);
	debug_must(conn->session.state != SESSION_BODY);
	conn->session.reply = reply;
	conn->session.state = SESSION_BODY;
	conn->body = store_item_value(reply->request.item);
	conn->body_left = length;
}

/* Moves the part of the value that the input has into the item. Returns true when the item has all of it. */
static inline bool value_receive(struct conn *conn)
{
	struct input *input = &conn->input;
	uint32_t there = input->end - input->start;
	uint32_t take = there < conn->body_left ? there : conn->body_left;

	if (take > 0) {
		memcpy(conn->body, input->bytes + input->start, take);
		conn->body += take;
		conn->body_left -= take;
		input->start += take;
	}
	return conn->body_left == 0;
}

/*
 * Throws the next bytes of the input away, which belong to a command that was refused. A client that writes its whole
 * value before it reads would take an answer in the middle for that of another command, and one that sends and receives
 * with small buffers would hang. So the answer comes behind the value: whoever refuses sets session.late (text) or
 * session.reply (binary: a finished request, which was not executed) after this call, and queues nothing that has bytes.
 */
void value_skip(struct conn *conn, uint64_t bytes);

/* Throws away those of them that the input has. Returns true when all of them are gone: session.late is answered then,
   and a command comes next. It leaves session.reply alone, which the protocol takes back and answers. */
FS_MUST_CHECK bool value_skip_go_on(struct conn *conn);

/* Frees the reply and the item of a connection that goes away before their value has come completely. */
void value_abandon(struct conn *conn);

#endif
