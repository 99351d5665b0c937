/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/server/net/one_worker.h"

#include <string.h>
#include <sys/socket.h>

#include "conf/conf.h"

static struct conf conf;
static const struct listener listener;

struct server server;
struct net net;
struct worker worker;
int peer = -1;

int open_store(void **state)
{
	struct store_config config;
	char reason[256];

	(void)state;
	store_config_init(&config);
	config.memory_bytes = 8 << 20;
	conf.threads = 1;
	conf.memory_limit_bytes = config.memory_bytes;
	conf.max_reqs_per_event = 20;
	server.conf = &conf;
	return store_open(&server.store, &config, reason);
}

int close_store(void **state)
{
	(void)state;
	store_close(server.store);
	return 0;
}

struct conn *make_worker(const struct transport *transport, void *transport_data, const struct protocol *protocol)
{
	struct opening opening = { .listener = &listener, .transport = transport, .transport_data = transport_data };
	struct conn *conn;
	int pair[2];

	memset(&net, 0, sizeof(net));
	memset(&worker, 0, sizeof(worker));
	net.server = &server;
	net.workers = &worker;
	atomic_init(&net.connections, 1);
	assert_int_equal(worker_init(&worker, &net), FS_OK);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	opening.fd = pair[0];
	peer = pair[1];
	conn_open(&worker, &opening);
	conn = &LIST_FIRST(&worker.conns)->conn;
	conn->protocol = protocol;
	return conn;
}
