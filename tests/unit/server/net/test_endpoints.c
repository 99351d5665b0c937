/* SPDX-License-Identifier: BSD-3-Clause */
/* What the daemon is bound to. Nothing listens here. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "conf/conf.h"
#include "server/net/net.h"

#define TRIES 100 /* ports that somebody else may have taken meanwhile */

struct bound {
	char *listen, *path;
	int port, udp_port; /* -1: any */
};

/* Binds what the options name. Returns the endpoints, or NULL: a port isn't free. *port: TCP's, or UDP's without it. */
static char *endpoints_of(const struct bound *bound, int *port)
{
	struct conf conf;
	const struct server server = { .conf = &conf };
	const struct net_setup setup = { .server = &server };
	struct net_status status;
	char reason[256] = "", *endpoints = NULL;
	struct net *net;

	conf_init(&conf);
	conf.listen = bound->listen;
	conf.port = bound->port;
	conf.udp_port = bound->udp_port;
	conf.unix_socket = bound->path;
	if (net_listen(&net, &setup, reason) == FS_OK) {
		endpoints = net_endpoints(net);
		net_get_status(net, &status);
		*port = status.tcp_port ? status.tcp_port : status.udp_port;
		net_close(net);
	} else {
		assert_non_null(strstr(reason, strerror(EADDRINUSE)));
	}
	conf.listen = conf.unix_socket = NULL;
	conf_free(&conf);
	return endpoints;
}

/* The port of the options is one that is free; each % of expected stands for it. */
static void expect_endpoints(struct bound bound, const char *expected)
{
	const struct bound any = { .listen = (char[]){ "127.0.0.1" }, .port = -1 };
	char text[200] = "", *endpoints = NULL;
	bool tcp = bound.port != 0, udp = bound.udp_port != 0;
	int port = 0;

	for (unsigned i = 0; !endpoints && i < TRIES; i++) {
		mem_free(endpoints_of(&any, &port));
		bound.port = tcp ? port : 0;
		bound.udp_port = udp ? port : 0;
		endpoints = endpoints_of(&bound, &port);
	}
	assert_non_null(endpoints);
	for (const char *at = expected; *at; at++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), *at == '%' ? "%d" : "%c",
			 *at == '%' ? port : *at);
	assert_string_equal(endpoints, text);
	mem_free(endpoints);
}

static void addresses_are_those_that_are_bound(void **state)
{
	char one[] = "127.0.0.1", two[] = "127.0.0.2 127.0.0.1", twice[] = "127.0.0.1,127.0.0.1", four[] = "0.0.0.0";

	(void)state;
	expect_endpoints((struct bound){ .listen = one, .port = 1 }, "127.0.0.1:%");
	expect_endpoints((struct bound){ .listen = two, .port = 1 }, "127.0.0.1:%\n127.0.0.2:%");
	expect_endpoints((struct bound){ .listen = twice, .port = 1, .udp_port = 1 }, "127.0.0.1:%\nudp:127.0.0.1:%");
	expect_endpoints((struct bound){ .listen = one, .udp_port = 1 }, "udp:127.0.0.1:%");
	expect_endpoints((struct bound){ .listen = four, .port = 1 }, "0.0.0.0:%");
}

/* Of both families, or of the one that the machine has. */
static void without_listen_a_port_stands_for_all_addresses(void **state)
{
	char empty[] = "";

	(void)state;
	expect_endpoints((struct bound){ .port = 1 }, "%");
	expect_endpoints((struct bound){ .port = 1, .udp_port = 1 }, "%\nudp:%");
	expect_endpoints((struct bound){ .listen = empty, .udp_port = 1 }, "udp:%");
}

/* It is, where the machine has IPv6. */
static void listing_both_families_is_the_same(void **state)
{
	char both[] = "0.0.0.0,[::]", six[] = "[::1]";
	const struct bound any = { .listen = six, .port = -1 };
	char *endpoints;
	int port;

	(void)state;
	endpoints = endpoints_of(&any, &port);
	if (!endpoints)
		skip();
	mem_free(endpoints);
	expect_endpoints((struct bound){ .listen = six, .port = 1 }, "[::1]:%");
	expect_endpoints((struct bound){ .listen = both, .port = 1 }, "%");
	expect_endpoints((struct bound){ .listen = both, .port = 1, .udp_port = 1 }, "%\nudp:%");
}

/* By the path from the root, whatever folder it was named from. */
static void a_socket_is_known_by_its_whole_path(void **state)
{
	char folder[100], path[120], *expected, name[] = "a b", *endpoints, *whole;
	int port;

	(void)state;
	snprintf(folder, sizeof(folder), "%.60s/ends-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(folder));
	assert_int_equal(chdir(folder), 0);
	whole = realpath(folder, NULL);
	assert_int_not_equal(asprintf(&expected, "unix:%s/a b", whole), -1);
	endpoints = endpoints_of(&(struct bound){ .path = name, .port = 1 }, &port);
	assert_string_equal(endpoints, expected);
	mem_free(endpoints);
	snprintf(path, sizeof(path), "%s/../%s/a b", folder, strrchr(folder, '/') + 1);
	endpoints = endpoints_of(&(struct bound){ .path = path }, &port);
	assert_string_equal(endpoints, expected);
	mem_free(endpoints);
	free(expected);
	free(whole);
	assert_int_equal(chdir("/"), 0);
	assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_those_that_are_bound),
		cmocka_unit_test(without_listen_a_port_stands_for_all_addresses),
		cmocka_unit_test(listing_both_families_is_the_same),
		cmocka_unit_test(a_socket_is_known_by_its_whole_path),
	};

	return cmocka_run_group_tests_name("net: endpoints", tests, NULL, NULL);
}
