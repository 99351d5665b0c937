/* SPDX-License-Identifier: BSD-3-Clause */
/* The pages for probes over HTTP, in each state of the daemon, and the end while clients hang. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "conf/conf.h"
#include "server/conn/server.h"
#include "server/count/observe.h"
#include "server/metrics/metrics.h"
#include "server/net/net.h"
#include "server/store/store.h"

#define HANGING 80 /* more than the server takes at a time */

struct fixture {
	struct conf conf;
	struct server server;
	struct metrics *metrics;
	uint16_t port;
	char answer[4096];
};

static int begin(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct store_config config;
	char reason[256] = "";

	assert_non_null(f);
	conf_init(&f->conf);
	f->server.conf = &f->conf;
	observe_init(&f->conf);
	store_config_init(&config);
	config.workers = 1;
	if (store_open(&f->server.store, &config, reason) != FS_OK ||
	    metrics_start(&f->metrics, &f->server, "127.0.0.1:0", reason) != FS_OK)
		fail_msg("%s", reason);
	f->port = (uint16_t)atoi(strrchr(metrics_address(f->metrics), ':') + 1);
	*state = f;
	return 0;
}

static int end(void **state)
{
	struct fixture *f = *state;

	metrics_stop(f->metrics);
	store_close(f->server.store);
	observe_fini();
	conf_free(&f->conf);
	free(f);
	return 0;
}

static int connected(const struct fixture *f)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(f->port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* The answer, header and all. The server closes after it, as HTTP/1.0 has it. */
static const char *get(struct fixture *f, const char *path)
{
	char request[256];
	int fd = connected(f), length = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n\r\n", path);
	size_t had = 0;
	ssize_t got;

	assert_int_equal(write(fd, request, (size_t)length), length);
	while ((got = read(fd, f->answer + had, sizeof(f->answer) - 1 - had)) > 0)
		had += (size_t)got;
	close(fd);
	f->answer[had] = 0;
	return f->answer;
}

static void assert_page(const char *answer, const char *status, const char *body)
{
	const char *blank = strstr(answer, "\r\n\r\n");

	if (!strstr(answer, status) || !blank || strcmp(blank + 4, body) != 0)
		fail_msg("not %s with %s: %s", status, body, answer);
}

static void ready_follows_the_daemon(void **state)
{
	struct fixture *f = *state;

	assert_page(get(f, "/ready"), " 503 ", "starting\nflash: none\n");
	metrics_set_serving(f->metrics, METRICS_SERVES);
	assert_page(get(f, "/ready"), " 200 ", "ready\nflash: none\n");
	metrics_set_serving(f->metrics, METRICS_STOPS);
	assert_page(get(f, "/ready"), " 503 ", "stopping\nflash: none\n");
}

static void alive_at_any_time(void **state)
{
	struct fixture *f = *state;

	for (int serving = METRICS_STARTS; serving <= METRICS_STOPS; serving++) {
		metrics_set_serving(f->metrics, (enum metrics_serving)serving);
		assert_page(get(f, "/healthz"), " 200 ", "alive\n");
	}
}

/* They say nothing. Who comes after them waits until their time is over, and the end doesn't wait. */
static void the_end_waits_for_nobody(void **state)
{
	struct fixture *f = *state;
	int fds[HANGING];
	char byte;

	for (unsigned i = 0; i < HANGING; i++)
		fds[i] = connected(f);
	metrics_stop(f->metrics);
	f->metrics = NULL;
	for (unsigned i = 0; i < HANGING; i++) {
		assert_true(read(fds[i], &byte, 1) <= 0);
		close(fds[i]);
	}
}

static void silent_clients_are_closed(void **state)
{
	struct fixture *f = *state;
	int fds[HANGING];
	char byte;

	for (unsigned i = 0; i < HANGING; i++)
		fds[i] = connected(f);
	assert_page(get(f, "/healthz"), " 200 ", "alive\n");
	for (unsigned i = 0; i < HANGING; i++) {
		assert_true(read(fds[i], &byte, 1) <= 0);
		close(fds[i]);
	}
}

static void a_taken_port_is_told(void **state)
{
	struct fixture *f = *state;
	struct metrics *second;
	char reason[256] = "";

	assert_int_equal(metrics_start(&second, &f->server, metrics_address(f->metrics), reason), FS_ESYS);
	assert_null(second);
	assert_ptr_equal(strstr(reason, metrics_address(f->metrics)), reason);
	assert_non_null(strstr(reason, ": Address already in use"));
}

static void an_address_may_have_brackets(void **state)
{
	struct fixture *f = *state;
	struct metrics *second;
	char reason[256] = "";

	assert_int_equal(metrics_start(&second, &f->server, "[127.0.0.1]:0", reason), FS_OK);
	assert_non_null(second);
	assert_string_equal(reason, "");
	assert_int_not_equal(atoi(strrchr(metrics_address(second), ':') + 1), 0);
	metrics_stop(second);
}

static void off_is_nothing(void **state)
{
	struct fixture *f = *state;
	struct metrics *none;
	char reason[256] = "";

	assert_int_equal(metrics_start(&none, &f->server, "off", reason), FS_OK);
	assert_null(none);
	assert_null(metrics_address(none));
	metrics_set_serving(none, METRICS_SERVES);
	metrics_stop(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ready_follows_the_daemon, begin, end),
		cmocka_unit_test_setup_teardown(alive_at_any_time, begin, end),
		cmocka_unit_test_setup_teardown(the_end_waits_for_nobody, begin, end),
		cmocka_unit_test_setup_teardown(silent_clients_are_closed, begin, end),
		cmocka_unit_test_setup_teardown(a_taken_port_is_told, begin, end),
		cmocka_unit_test_setup_teardown(an_address_may_have_brackets, begin, end),
		cmocka_unit_test_setup_teardown(off_is_nothing, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
