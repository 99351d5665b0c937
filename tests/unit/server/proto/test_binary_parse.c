/* SPDX-License-Identifier: BSD-3-Clause */
/* The binary protocol's parser: packets in, structs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "server/proto/binary.h"

struct packet {
	uint8_t magic, opcode, extras;
	uint16_t key;
	uint32_t body, opaque;
	uint64_t cas;
};

static void write_header(char *out, const struct packet *packet)
{
	memset(out, 0x5a, BINARY_HEADER_BYTES); /* datatype and vbucket: anything */
	out[0] = (char)packet->magic;
	out[1] = (char)packet->opcode;
	binary_put16(out + 2, packet->key);
	out[4] = (char)packet->extras;
	binary_put32(out + 8, packet->body);
	binary_put32(out + 12, packet->opaque);
	binary_put64(out + 16, packet->cas);
}

/* From a block of its exact size, so that sanitizers see a byte too many. */
static enum binary_error parse(const struct packet *packet, struct binary_command *out)
{
	char *bytes = malloc(BINARY_HEADER_BYTES);
	enum binary_error error;

	assert_non_null(bytes);
	write_header(bytes, packet);
	error = binary_parse_header(bytes, out);
	free(bytes);
	return error;
}

static void expect(uint8_t opcode, uint8_t extras, uint16_t key, uint32_t value, enum binary_error error)
{
	struct packet packet = { BINARY_MAGIC_REQUEST, opcode, extras, key, (uint32_t)extras + key + value, 1, 0 };
	struct binary_command command;
	enum binary_error got = parse(&packet, &command);

	if (got != error)
		fail_msg("opcode 0x%02x with %u extras, key of %u, value of %u: %d", opcode, extras, key, value,
			 (int)got);
}

static void a_wrong_magic_is_no_packet(void **state)
{
	struct packet packet = { BINARY_MAGIC_ANSWER, 0x0a, 0, 0, 0, 0, 0 };
	struct binary_command command;

	(void)state;
	assert_int_equal(parse(&packet, &command), BINARY_ERROR_MAGIC);
	packet.magic = 'g';
	assert_int_equal(parse(&packet, &command), BINARY_ERROR_MAGIC);
}

static void lengths_beyond_the_body_are_found_first(void **state)
{
	struct packet packet = { BINARY_MAGIC_REQUEST, 0x00, 0, 5, 4, 7, 0 };
	struct binary_command command;

	(void)state;
	assert_int_equal(parse(&packet, &command), BINARY_ERROR_LENGTHS);
	assert_int_equal(command.opaque, 7);
	packet = (struct packet){ BINARY_MAGIC_REQUEST, 0x01, 8, 1, 8, 0, 0 };
	assert_int_equal(parse(&packet, &command), BINARY_ERROR_LENGTHS);
	packet = (struct packet){ BINARY_MAGIC_REQUEST, 0xee, 255, 65535, 65789, 0, 0 };
	assert_int_equal(parse(&packet, &command), BINARY_ERROR_LENGTHS);
	packet.body++;
	assert_int_equal(parse(&packet, &command), BINARY_ERROR_KEY);
}

static void keys_are_at_most_250_bytes(void **state)
{
	(void)state;
	expect(0x00, 0, 250, 0, BINARY_ERROR_NONE);
	expect(0x00, 0, 251, 0, BINARY_ERROR_KEY);
	expect(0x01, 8, 251, 5, BINARY_ERROR_KEY);
	expect(0x10, 0, 251, 0, BINARY_ERROR_KEY);
	expect(0x60, 0, 251, 0, BINARY_ERROR_KEY);
}

static void unknown_opcodes_are_told_apart(void **state)
{
	static const uint8_t known_last = 0x24;

	(void)state;
	expect(0x1f, 0, 0, 0, BINARY_ERROR_UNKNOWN);
	for (unsigned opcode = known_last + 1; opcode < 256; opcode++)
		expect((uint8_t)opcode, 4, 3, 2, BINARY_ERROR_UNKNOWN);
	expect(0x1b, 0, 0, 0, BINARY_ERROR_UNKNOWN); /* a verbosity without a level */
	expect(0x1b, 4, 0, 0, BINARY_ERROR_NONE);
}

/* One row: extras that are right, whether a key may or must be there, whether a value may. */
static void expect_shape(uint8_t opcode, uint8_t extras, bool key, bool key_needed, bool value)
{
	expect(opcode, extras, key ? 1 : 0, 0, BINARY_ERROR_NONE);
	expect(opcode, (uint8_t)(extras + 1), key ? 1 : 0, 0, BINARY_ERROR_SHAPE);
	if (extras > 0 && opcode != 0x08 && opcode != 0x18)
		expect(opcode, (uint8_t)(extras - 1), key ? 1 : 0, 0, BINARY_ERROR_SHAPE);
	expect(opcode, extras, 0, 0, key_needed ? BINARY_ERROR_SHAPE : BINARY_ERROR_NONE);
	expect(opcode, extras, 1, 0, key ? BINARY_ERROR_NONE : BINARY_ERROR_SHAPE);
	expect(opcode, extras, key ? 1 : 0, 1, value ? BINARY_ERROR_NONE : BINARY_ERROR_SHAPE);
}

static void each_command_has_its_shape(void **state)
{
	static const uint8_t keys[] = { 0x00, 0x04, 0x09, 0x0c, 0x0d, 0x14 },
			     stores[] = { 0x01, 0x02, 0x03, 0x11, 0x12, 0x13 },
			     joins[] = { 0x0e, 0x0f, 0x19, 0x1a, 0x21, 0x22 }, deltas[] = { 0x05, 0x06, 0x15, 0x16 },
			     touches[] = { 0x1c, 0x1d, 0x1e, 0x23, 0x24 }, empties[] = { 0x07, 0x0a, 0x0b, 0x17, 0x20 };

	(void)state;
	for (size_t i = 0; i < sizeof(keys); i++)
		expect_shape(keys[i], 0, true, true, false);
	for (size_t i = 0; i < sizeof(stores); i++)
		expect_shape(stores[i], 8, true, true, true);
	for (size_t i = 0; i < sizeof(joins); i++)
		expect_shape(joins[i], 0, true, true, true);
	for (size_t i = 0; i < sizeof(deltas); i++)
		expect_shape(deltas[i], 20, true, true, false);
	for (size_t i = 0; i < sizeof(touches); i++)
		expect_shape(touches[i], 4, true, true, false);
	for (size_t i = 0; i < sizeof(empties); i++)
		expect_shape(empties[i], 0, false, false, false);
	expect_shape(0x10, 0, true, false, false);
	expect_shape(0x08, 4, false, false, false);
	expect_shape(0x18, 4, false, false, false);
	expect(0x08, 0, 0, 0, BINARY_ERROR_NONE);
	expect(0x08, 3, 0, 0, BINARY_ERROR_SHAPE);
}

static void fields_are_big_endian(void **state)
{
	static const char incr[] = "\x80\x15\x00\x03\x14\x00\x00\x00\x00\x00\x00\x17\x01\x02\x03\x04"
				   "\x11\x12\x13\x14\x15\x16\x17\x18"
				   "\x21\x22\x23\x24\x25\x26\x27\x28\x31\x32\x33\x34\x35\x36\x37\x38\xff\xff\xff\xfe"
				   "key";
	struct binary_command command;

	(void)state;
	assert_int_equal(binary_parse_header(incr, &command), BINARY_ERROR_NONE);
	assert_int_equal(command.id, BINARY_INCR);
	assert_int_equal(command.flags, BINARY_QUIET);
	assert_int_equal(command.opaque, 0x01020304);
	assert_true(command.cas == 0x1112131415161718);
	assert_int_equal(command.value_length, 0);
	assert_null(command.key);
	binary_parse_extras(&command, incr + BINARY_HEADER_BYTES);
	assert_true(command.delta == 0x2122232425262728);
	assert_true(command.initial == 0x3132333435363738);
	assert_int_equal(command.exptime, 0xfffffffe);
	assert_memory_equal(command.key, "key", 3);
}

static void a_value_may_have_four_gigabytes_as_far_as_the_header_goes(void **state)
{
	struct packet packet = { BINARY_MAGIC_REQUEST, 0x01, 8, 1, UINT32_MAX, 0, 0 };
	struct binary_command command;

	(void)state;
	assert_int_equal(parse(&packet, &command), BINARY_ERROR_NONE);
	assert_true(command.value_length == UINT32_MAX - 9);
}

static void numbers_are_written(void **state)
{
	char out[8];

	(void)state;
	binary_put16(out, 0x0102);
	assert_memory_equal(out, "\x01\x02", 2);
	binary_put32(out, 0x01020304);
	assert_memory_equal(out, "\x01\x02\x03\x04", 4);
	binary_put64(out, 0x0102030405060708);
	assert_memory_equal(out, "\x01\x02\x03\x04\x05\x06\x07\x08", 8);
	assert_true(binary_get64(out) == 0x0102030405060708);
	assert_true(binary_get32(out + 4) == 0x05060708);
}

/* Any bytes: the answer is in bounds, and what is accepted says no more than is there. */
static void random_headers(void **state)
{
	struct rng rng;

	(void)state;
	rng_init(&rng, 2026);
	for (unsigned round = 0; round < 200000; round++) {
		struct packet packet = { BINARY_MAGIC_REQUEST,
					 (uint8_t)rng_below(&rng, 48),
					 (uint8_t)(4 * rng_below(&rng, 6)),
					 (uint16_t)rng_below(&rng, 300),
					 (uint32_t)rng_below(&rng, 400),
					 0,
					 0 };
		struct binary_command command;
		enum binary_error error = parse(&packet, &command);
		uint32_t head = (uint32_t)packet.extras + packet.key;
		char *body;

		assert_in_range(error, BINARY_ERROR_NONE, BINARY_ERROR_SHAPE);
		if (error != BINARY_ERROR_NONE)
			continue;
		assert_true(head <= packet.body && packet.key <= BINARY_KEY_MAX);
		body = malloc(head > 0 ? head : 1);
		assert_non_null(body);
		memset(body, 'k', head);
		binary_parse_extras(&command, body);
		assert_true(packet.key == 0 || command.key + packet.key == body + head);
		free(body);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wrong_magic_is_no_packet),
		cmocka_unit_test(lengths_beyond_the_body_are_found_first),
		cmocka_unit_test(keys_are_at_most_250_bytes),
		cmocka_unit_test(unknown_opcodes_are_told_apart),
		cmocka_unit_test(each_command_has_its_shape),
		cmocka_unit_test(fields_are_big_endian),
		cmocka_unit_test(a_value_may_have_four_gigabytes_as_far_as_the_header_goes),
		cmocka_unit_test(numbers_are_written),
		cmocka_unit_test(random_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
