/* SPDX-License-Identifier: BSD-3-Clause */
/* Throws away the value of a refused storage command. (The header has the functions that receive one, as each set needs
   them.) */
#include "server/proto/proto_internal.h"

#include <string.h>

void value_skip(struct conn *conn, uint64_t bytes)
{
	must(conn->session.state != SESSION_BODY);
	must(!conn->session.reply && !conn->session.late);
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
	if (conn->session.late)
		conn_put(conn, conn->session.late, (uint32_t)strlen(conn->session.late));
	conn->session.late = NULL;
	return true;
}

void value_abandon(struct conn *conn)
{
	struct reply *reply = conn->session.reply;

	conn->session.late = NULL;
	if (!reply)
		return;
	must(reply->conn == conn && (conn->session.state == SESSION_BODY) == (reply->request.item != NULL));
	if (reply->request.item)
		store_item_drop(conn->store, reply->request.item);
	conn_reply_give(conn, reply);
	conn->session.reply = NULL;
}
