/* SPDX-License-Identifier: BSD-3-Clause */
/* Throws away the value of a refused storage command. (The header has the functions that receive one, as each set needs
   them.) */
#include "server/proto/proto_internal.h"

void value_skip(struct conn *conn, uint64_t bytes)
{
	must(conn->session.state != SESSION_BODY);
	conn->session.state = SESSION_SWALLOW;
	conn->session.swallow = bytes;
}

bool value_skip_go_on(struct conn *conn)
{
	struct input *input = &conn->input;
	uint32_t there = input->end - input->start;
	uint32_t take = there < conn->session.swallow ? there : (uint32_t)conn->session.swallow;

	must(conn->session.state == SESSION_SWALLOW && input->start <= input->end);

	input->start += take;
	conn->session.swallow -= take;
	if (conn->session.swallow > 0)
		return false;
	conn->session.state = SESSION_LINE;
	return true;
}

void value_abandon(struct conn *conn)
{
	struct reply *reply = conn->session.reply;

	if (!reply)
		return;
	must(conn->session.state == SESSION_BODY && reply->conn == conn);
	store_item_drop(conn->store, reply->request.item);
	conn_reply_give(conn, reply);
	conn->session.reply = NULL;
}
