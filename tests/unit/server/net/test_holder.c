/* SPDX-License-Identifier: BSD-3-Clause */
/* Who holds an address: nobody is named where nobody holds it, and each socket that collides with it is found. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/net/net_internal.h"

static char said[NET_HOLDER_BYTES];
static struct sockaddr_storage bound; /* what open_on has bound */

static struct sockaddr *address_of(int family, const char *host, in_port_t port, struct sockaddr_storage *out)
{
	*out = (struct sockaddr_storage){ .ss_family = (sa_family_t)family };
	if (family == AF_INET) {
		struct sockaddr_in *four = (struct sockaddr_in *)(void *)out;

		four->sin_port = port;
		assert_int_equal(inet_pton(family, host, &four->sin_addr), 1);
	} else {
		struct sockaddr_in6 *six = (struct sockaddr_in6 *)(void *)out;

		six->sin6_port = port;
		assert_int_equal(inet_pton(family, host, &six->sin6_addr), 1);
	}
	return (struct sockaddr *)out;
}

/* A socket on a port that was free; -1: this machine has no such family. */
static int open_on(int family, int type, const char *host)
{
	int fd = socket(family, type, 0);
	socklen_t length = sizeof(bound);

	if (fd < 0 || bind(fd, address_of(family, host, 0, &bound), sizeof(bound)) != 0) {
		close(fd);
		return -1;
	}
	assert_int_equal(getsockname(fd, (struct sockaddr *)&bound, &length), 0);
	return fd;
}

static in_port_t bound_port(void)
{
	return bound.ss_family == AF_INET ? ((struct sockaddr_in *)(void *)&bound)->sin_port
					  : ((struct sockaddr_in6 *)(void *)&bound)->sin6_port;
}

/* Is the port of `bound` held at that host? Then by this process. */
static bool is_held(int type, int family, const char *host)
{
	char process[64];
	struct sockaddr_storage address;
	bool found;

	strcpy(said, "unchanged");
	found = holder_find(type, address_of(family, host, bound_port(), &address), said, sizeof(said));
	snprintf(process, sizeof(process), "process %ld (test_holder), user ", (long)getpid());
	assert_memory_equal(said, found ? process : "unchanged", found ? strlen(process) : sizeof("unchanged"));
	return found;
}

/* A socket that is bound and doesn't listen keeps its port from others, so that nobody listens there. */
static void nobody_is_named_where_nobody_listens(void **state)
{
	int fd = open_on(AF_INET, SOCK_STREAM, "127.0.0.1");

	(void)state;
	assert_true(fd >= 0);
	assert_false(is_held(SOCK_STREAM, AF_INET, "127.0.0.1"));
	assert_false(is_held(SOCK_STREAM, AF_INET, "0.0.0.0"));
	close(fd);
	fd = open_on(AF_INET6, SOCK_STREAM, "::");
	if (fd < 0)
		skip();
	assert_false(is_held(SOCK_STREAM, AF_INET6, "::1"));
	assert_false(is_held(SOCK_STREAM, AF_INET6, "::"));
	assert_false(is_held(SOCK_STREAM, AF_INET, "127.0.0.1"));
	close(fd);
}

static void an_address_is_text_too(void **state)
{
	char address[64];
	int fd = open_on(AF_INET, SOCK_STREAM, "127.0.0.1");

	(void)state;
	assert_true(fd >= 0 && listen(fd, 1) == 0);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(bound_port()));
	assert_true(net_find_holder(address, said, sizeof(said)));
	snprintf(address, sizeof(address), "[::ffff:127.0.0.1:%u", ntohs(bound_port()));
	assert_false(net_find_holder(address, said, sizeof(said)));
	assert_false(net_find_holder("127.0.0.1", said, sizeof(said)));
	assert_false(net_find_holder("[:1", said, sizeof(said)));
	assert_false(net_find_holder("", said, sizeof(said)));
	close(fd);
}

static void a_socket_is_found_where_it_collides(void **state)
{
	int fd = open_on(AF_INET, SOCK_STREAM, "127.0.0.1");

	(void)state;
	assert_true(fd >= 0 && listen(fd, 1) == 0);
	assert_true(is_held(SOCK_STREAM, AF_INET, "127.0.0.1"));
	assert_true(is_held(SOCK_STREAM, AF_INET, "0.0.0.0"));
	assert_false(is_held(SOCK_STREAM, AF_INET, "127.0.0.2"));
	close(fd);
	fd = open_on(AF_INET, SOCK_DGRAM, "127.0.0.1");
	assert_true(fd >= 0);
	assert_true(is_held(SOCK_DGRAM, AF_INET, "127.0.0.1"));
	assert_false(is_held(SOCK_DGRAM, AF_INET, "127.0.0.2"));
	close(fd);
}

/* A socket on "any" of IPv6 has the addresses of IPv4 too. */
static void a_socket_of_both_families_holds_both(void **state)
{
	int fd = open_on(AF_INET6, SOCK_STREAM, "::");

	(void)state;
	if (fd < 0)
		skip();
	assert_int_equal(listen(fd, 1), 0);
	assert_true(is_held(SOCK_STREAM, AF_INET6, "::1"));
	assert_true(is_held(SOCK_STREAM, AF_INET, "127.0.0.1"));
	close(fd);
	fd = open_on(AF_INET6, SOCK_STREAM, "::1");
	if (fd < 0)
		skip();
	assert_int_equal(listen(fd, 1), 0);
	assert_true(is_held(SOCK_STREAM, AF_INET6, "::1"));
	assert_true(is_held(SOCK_STREAM, AF_INET6, "::"));
	assert_false(is_held(SOCK_STREAM, AF_INET, "127.0.0.1"));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_is_named_where_nobody_listens),
		cmocka_unit_test(an_address_is_text_too),
		cmocka_unit_test(a_socket_is_found_where_it_collides),
		cmocka_unit_test(a_socket_of_both_families_holds_both),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
