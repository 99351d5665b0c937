/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that both the cache and /metrics are given is refused, and only then. */
#include <string.h>

#include "tests/unit/conf/conf_test.h"

static void expect_one_port(const char *words, const char *address)
{
	char text[256];

	snprintf(
		text, sizeof(text),
		"--metrics-listen: at %s the cache itself listens, by -p/--port or -l/--listen; take another port, or off\n",
		address);
	expect_refusal(words, NULL, 64, text);
}

static void expect_taken(const char *words)
{
	struct loaded loaded;

	load(&loaded, words, NULL);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.rc, FS_OK);
	unload(&loaded);
}

static void one_port_for_both_is_refused(void **state)
{
	(void)state;
	expect_one_port("-p 9151", "127.0.0.1:9151");
	expect_one_port("-p 9151 -l localhost", "127.0.0.1:9151");
	expect_one_port("-l 10.0.0.1,127.0.0.1:9151", "127.0.0.1:9151");
	expect_one_port("-Z -l notls:127.0.0.1:9151", "127.0.0.1:9151");
	expect_one_port("--metrics-listen 0.0.0.0:11211 -l 10.0.0.1", "0.0.0.0:11211");
	expect_one_port("--metrics-listen [::1]:11211 -l [::1]", "[::1]:11211");
	expect_one_port("--metrics-listen [::1]:11300 -l [::1]:11300", "[::1]:11300");
}

static void two_places_are_taken(void **state)
{
	(void)state;
	expect_taken("-p 9152");
	expect_taken("-p 9151 -l 10.0.0.1");
	expect_taken("-p 9151 -l 127.0.0.1:11211");
	expect_taken("-p 9151 -s /tmp/socket");
	expect_taken("-p 9151 --metrics-listen off");
	expect_taken("-p 0 -U 9151");
	expect_taken("-p -1 --metrics-listen 127.0.0.1:0");
	expect_taken("-p 11211 --metrics-listen [::1]:11211 -l 127.0.0.1");
}

static void off_has_two_spellings(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "--metrics-listen=", NULL);
	assert_string_equal(loaded.conf.metrics_listen, "off");
	unload(&loaded);
	load(&loaded, "--metrics-listen 127.0.0.1:0", NULL);
	assert_string_equal(loaded.conf.metrics_listen, "127.0.0.1:0");
	unload(&loaded);
}

static void what_is_no_port_is_refused(void **state)
{
	static const char *const values[] = { "localhost",  "localhost/9",  "localhost;9",
					      "127.0.0.1:", "127.0.0.1:x",  "[::1]9",
					      "*9",         "127.0.0.1:9x", "127.0.0.1:000009" };

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		char words[64], text[256];

		snprintf(words, sizeof(words), "--metrics-listen=%s", values[i]);
		snprintf(text, sizeof(text),
			 "--metrics-listen: \"%s\" is not ADDRESS:PORT, [IPV6]:PORT, *:PORT or off, with a port "
			 "from 0 (any that is free) to 65535\n",
			 values[i]);
		expect_refusal(words, NULL, 64, text);
	}
}

static void the_last_port_is_one_and_none_follows(void **state)
{
	struct loaded loaded;

	(void)state;
	expect_refusal(
		"--metrics-listen 127.0.0.1:65536", NULL, 64,
		"--metrics-listen: \"127.0.0.1:65536\" is not ADDRESS:PORT, [IPV6]:PORT, *:PORT or off, with a port "
		"from 0 (any that is free) to 65535\n");
	load(&loaded, "--metrics-listen 127.0.0.1:65535", NULL);
	assert_string_equal(loaded.err, "");
	assert_string_equal(loaded.conf.metrics_listen, "127.0.0.1:65535");
	unload(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_port_for_both_is_refused),
		cmocka_unit_test(two_places_are_taken),
		cmocka_unit_test(off_has_two_spellings),
		cmocka_unit_test(what_is_no_port_is_refused),
		cmocka_unit_test(the_last_port_is_one_and_none_follows),
	};

	return cmocka_run_group_tests_name("conf: ports", tests, NULL, NULL);
}
