/* SPDX-License-Identifier: BSD-3-Clause */
/* "stats conns": listening sockets and connections, as memcached shows them. */
#include "server/admin/admin.h"

#include <stdio.h>
#include <string.h>

#include "server/net/net.h"

static void conn_row(struct stats_out *out, int fd, const char *name, const char *value)
{
	char full[48];

	snprintf(full, sizeof(full), "%d:%s", fd, name);
	stats_add(out, full, "%s", value);
}

static void see_conn_row(void *context, const struct net_conn_status *conn)
{
	struct stats_out *out = context;
	char seconds[16];

	if (strncmp(conn->address, "udp", 3) == 0)
		conn_row(out, conn->fd, "UDP", "UDP");
	conn_row(out, conn->fd, "addr", conn->address);
	if (conn->listen_address)
		conn_row(out, conn->fd, "listen_addr", conn->listen_address);
	conn_row(out, conn->fd, "state", conn->state);
	snprintf(seconds, sizeof(seconds), "%u", conn->idle_seconds);
	conn_row(out, conn->fd, "secs_since_last_cmd", seconds);
}

void stats_conns(const struct server *server, struct stats_out *out)
{
	net_each_connection(server->net, out->asking, see_conn_row, out);
}
