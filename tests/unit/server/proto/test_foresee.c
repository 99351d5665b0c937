/* SPDX-License-Identifier: BSD-3-Clause */
/* The look ahead at the keys of commands in the input: these keys and no others, whatever lies between them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "server/proto/binary_internal.h"
#include "server/proto/text_internal.h"

#define COMMANDS 40u

static struct store *store;
static struct server server;
static struct conn conn = { .server = &server };
static char bytes[COMMANDS * 2000];
static char keys[COMMANDS][100];
static struct rng rng;

static int open_store(void **state)
{
	struct store_config config;
	char reason[256];

	(void)state;
	store_config_init(&config);
	if (store_open(&store, &config, reason) != FS_OK)
		return -1;
	server.store = store;
	conn.input.bytes = bytes;
	return 0;
}

static int close_store(void **state)
{
	(void)state;
	store_close(store);
	return 0;
}

static uint32_t random_below(uint32_t limit)
{
	return (uint32_t)rng_below(&rng, limit);
}

/* A key of 1 to 90 bytes, which no other command has. */
static const char *make_key(unsigned n)
{
	int length = snprintf(keys[n], sizeof(keys[n]), "%u", n);

	for (uint32_t more = random_below(90); more > 0; more--)
		keys[n][length++] = 'k';
	keys[n][length] = 0;
	return keys[n];
}

static void put(const void *from, size_t length)
{
	memcpy(bytes + conn.input.end, from, length);
	conn.input.end += (uint32_t)length;
}

/* Data that looks like commands. */
static void put_data(uint32_t length)
{
	static const char trap[] = "get trap\r\n";

	for (uint32_t i = 0; i < length; i++)
		put(&trap[i % (sizeof(trap) - 1)], 1);
}

static void put_text(unsigned n)
{
	uint32_t kind = random_below(4), length = random_below(2) ? random_below(1500) : random_below(12);
	const char *key = make_key(n), *end = random_below(2) ? "\r\n" : "\n";
	char line[200];

	if (kind == 0)
		snprintf(line, sizeof(line), "get %s%s", key, end);
	else if (kind == 1)
		snprintf(line, sizeof(line), "mg %s%s%s", key, random_below(2) ? " v k" : "", end);
	else if (kind == 2)
		snprintf(line, sizeof(line), "set %s %u 0 %u%s", key, random_below(1000), length, end);
	else
		snprintf(line, sizeof(line), "ms %s %u%s%s", key, length, random_below(2) ? " T0 F1" : "", end);
	put(line, strlen(line));
	if (kind < 2)
		return;
	put_data(length);
	put("\r\n", 2);
}

static void put_packet(unsigned n)
{
	bool is_set = random_below(2);
	const char *key = make_key(n);
	uint32_t key_length = (uint32_t)strlen(key), extras = is_set ? 8 : 0, value = is_set ? random_below(1500) : 0;
	uint32_t body = extras + key_length + value;
	const unsigned char head[24] = { 0x80,
					 is_set ? 1 : 0,
					 (unsigned char)(key_length >> 8),
					 (unsigned char)key_length,
					 (unsigned char)extras,
					 0,
					 0,
					 0,
					 0,
					 0,
					 (unsigned char)(body >> 8),
					 (unsigned char)body };

	put(head, sizeof(head));
	put("\0\0\0\0\0\0\0\0", extras);
	put(key, key_length);
	put_data(value);
}

static void assert_foreseen(unsigned (*foresee)(const struct conn *conn, struct foreseen *out, unsigned most),
			    unsigned most, unsigned wanted)
{
	struct foreseen found[COMMANDS];

	assert_int_equal(foresee(&conn, found, most), wanted);
	for (unsigned n = 0; n < wanted; n++) {
		assert_int_equal(found[n].length, strlen(keys[n]));
		assert_memory_equal(found[n].key, keys[n], found[n].length);
		assert_int_equal(found[n].hash, store_hash(store, keys[n], found[n].length));
	}
}

static void begin_input(uint64_t seed)
{
	rng_init(&rng, seed);
	conn.input.start = conn.input.end = 0;
	conn.session.state = SESSION_LINE;
	conn.session.scanned = 0;
}

static void each_line_s_key_is_foreseen(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		begin_input(seed);
		for (unsigned n = 0; n < COMMANDS; n++)
			put_text(n);
		assert_foreseen(text_foresee, COMMANDS, COMMANDS);
		assert_foreseen(text_foresee, 7, 7);
	}
}

static void each_packet_s_key_is_foreseen(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		begin_input(seed);
		for (unsigned n = 0; n < COMMANDS; n++)
			put_packet(n);
		assert_foreseen(binary_foresee, COMMANDS, COMMANDS);
		assert_foreseen(binary_foresee, 7, 7);
	}
}

/* The last line or packet may not be there as a whole. */
static void nothing_behind_the_input_is_looked_at(void **state)
{
	struct foreseen found[COMMANDS];

	(void)state;
	begin_input(1);
	for (unsigned n = 0; n < 4; n++)
		put_text(n);
	for (uint32_t whole = conn.input.end; conn.input.end > 0; conn.input.end--) {
		unsigned count = text_foresee(&conn, found, COMMANDS);

		assert_true(count <= 4 && (conn.input.end < whole || count == 4));
		for (unsigned n = 0; n < count; n++)
			assert_true(found[n].length == strlen(keys[n]) &&
				    found[n].key + found[n].length <= bytes + conn.input.end);
	}
	assert_int_equal(text_foresee(&conn, found, COMMANDS), 0);
	assert_int_equal(binary_foresee(&conn, found, COMMANDS), 0);
}

static void in_the_middle_of_a_value_nothing_is_foreseen(void **state)
{
	struct foreseen found[COMMANDS];

	(void)state;
	begin_input(1);
	put_text(0);
	conn.session.state = SESSION_SWALLOW;
	assert_int_equal(text_foresee(&conn, found, COMMANDS), 0);
	assert_int_equal(binary_foresee(&conn, found, COMMANDS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_line_s_key_is_foreseen),
		cmocka_unit_test(each_packet_s_key_is_foreseen),
		cmocka_unit_test(nothing_behind_the_input_is_looked_at),
		cmocka_unit_test(in_the_middle_of_a_value_nothing_is_foreseen),
	};

	return cmocka_run_group_tests_name("proto: foresee", tests, open_store, close_store);
}
