/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures of the network may be read from before it serves until it is closed: a scrape comes at any time. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "server/net/net.h"
#include "server/store/store.h"

#define WORKERS 3

struct serving {
	struct conf conf;
	struct server server;
	struct net *net;
	_Atomic bool over;
	_Atomic unsigned reads;
};

static const struct protocol *no_protocol(const struct conf *conf, int binding, unsigned char first)
{
	(void)conf;
	(void)binding;
	(void)first;
	return NULL;
}

static void *read_figures(void *context)
{
	struct serving *s = context;
	struct net_status status;

	while (!atomic_load(&s->over)) {
		net_get_status(s->net, &status);
		assert_true(status.tcp_port > 0);
		atomic_fetch_add(&s->reads, 1);
	}
	return NULL;
}

/* The reader has looked since: it looks again and again. */
static void await_reads(struct serving *s)
{
	unsigned before = atomic_load(&s->reads);

	while (atomic_load(&s->reads) - before < 2)
		sched_yield();
}

static void on_ready(void *context)
{
	struct serving *s = context;

	await_reads(s);
	net_stop(s->net);
}

static void figures_can_be_read_at_any_time(void **state)
{
	static struct serving s;
	const struct net_hooks hooks = { .context = &s, .ready = on_ready };
	const struct net_setup setup = { .server = &s.server, .choose_protocol = no_protocol };
	struct store_config config;
	char reason[256] = "", listen[] = "127.0.0.1";
	pthread_t reader;

	(void)state;
	conf_init(&s.conf);
	s.conf.threads = WORKERS;
	s.conf.port = -1;
	s.conf.listen = listen;
	s.server.conf = &s.conf;
	store_config_init(&config);
	config.workers = WORKERS;
	assert_int_equal(store_open(&s.server.store, &config, reason), FS_OK);
	assert_int_equal(net_listen(&s.net, &setup, reason), FS_OK);
	assert_int_equal(pthread_create(&reader, NULL, read_figures, &s), 0);
	await_reads(&s);
	if (net_serve(s.net, &hooks, reason) != FS_OK)
		fail_msg("%s", reason);
	await_reads(&s);
	atomic_store(&s.over, true);
	pthread_join(reader, NULL);
	net_close(s.net);
	store_close(s.server.store);
	s.conf.listen = NULL;
	conf_free(&s.conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_can_be_read_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
