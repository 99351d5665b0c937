/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "tools/bench/load_internal.h"

/* "set KEY 0 0 SIZE\r\n" ... "\r\n" beside the key, with all digits of a size. */
#define SET_FRAME_BYTES 32
#define GET_FRAME_BYTES 6
/* Values above this are sent from the filler itself; below, a copy is cheaper than a part of its own. */
#define VALUE_COPIED_MOST 2048
#define PARTS_PER_SEND 1024 /* the kernel takes no more (UIO_MAXIOV) */

void batch_limits_init(struct batch_limits *limits, const struct load_spec *spec, const struct load_keys *keys)
{
	size_t key = keys->key_bytes + 1;
	size_t copied = keys->size_most < VALUE_COPIED_MOST ? keys->size_most : VALUE_COPIED_MOST;
	size_t set = SET_FRAME_BYTES + key + (copied > 2 * VALUE_STAMP_BYTES ? copied : 2 * VALUE_STAMP_BYTES);
	size_t get;

	limits->commands = spec->pipeline ? spec->pipeline : 1;
	limits->keys_per_get = spec->keys_per_get ? spec->keys_per_get : 1;
	/* LOAD_SET_GET reads the keys that it has set with `commands` commands, by at most as many. */
	limits->keys = spec->kind == LOAD_SET || spec->kind == LOAD_SET_GET ? limits->commands
									    : limits->commands * limits->keys_per_get;
	get = GET_FRAME_BYTES + key * limits->keys_per_get;
	limits->out_bytes = limits->commands * (set > get ? set : get);
	limits->parts = 1 + 2 * limits->commands;
}

void connection_init(struct connection *connection, const struct batch_limits *limits)
{
	memset(connection, 0, sizeof(*connection));
	connection->fd = -1;
	connection->out = mem_must_zalloc(limits->out_bytes);
	connection->parts = mem_must_zalloc(limits->parts * sizeof(*connection->parts));
	connection->commands = mem_must_zalloc(limits->commands * sizeof(*connection->commands));
	connection->keys = mem_must_zalloc(limits->keys * sizeof(*connection->keys));
}

void connection_fini(struct connection *connection)
{
	if (connection->fd >= 0)
		close(connection->fd);
	mem_free(connection->out);
	mem_free(connection->parts);
	mem_free(connection->commands);
	mem_free(connection->keys);
}

/* --- making --- */

static char *put(char *at, const void *bytes, size_t length)
{
	memcpy(at, bytes, length);
	return at + length;
}

/* Writes the key and remembers it. */
static char *put_key(struct load *load, struct connection *connection, uint64_t number, char *at)
{
	load_key_write(&load->keys, number, at);
	connection->keys[connection->keys_used++] = (struct sent_key){ .number = number, .text = at };
	return at + load->keys.key_bytes;
}

static char *put_number(char *at, uint32_t number)
{
	char digits[10];
	int count = 0;

	do
		digits[count++] = (char)('0' + number % 10);
	while ((number /= 10) != 0);
	while (count)
		*at++ = digits[--count];
	return at;
}

/* Ends the part that is being written at `at` and begins another one there. */
static void part_end(struct connection *connection, const char *at)
{
	struct iovec *part = &connection->parts[connection->parts_used - 1];

	part->iov_len = (size_t)(at - (char *)part->iov_base);
}

static void part_begin(struct connection *connection, char *at)
{
	connection->parts[connection->parts_used++].iov_base = at;
}

static char *put_set(struct load *load, struct connection *connection, uint64_t number, char *at)
{
	struct value_parts value;

	at = put(at, "set ", 4);
	at = put_key(load, connection, number, at);
	at = put(at, " 0 0 ", 5);
	value_parts(&load->keys, number, &value);
	at = put_number(at, value.front_bytes + value.middle_bytes + value.back_bytes);
	at = put(at, "\r\n", 2);
	at = put(at, value.front, value.front_bytes);
	if (value.middle_bytes <= VALUE_COPIED_MOST - 2 * VALUE_STAMP_BYTES) {
		at = put(at, value.middle, value.middle_bytes);
	} else {
		part_end(connection, at);
		connection->parts[connection->parts_used++] = (struct iovec){
			.iov_base = (void *)(uintptr_t)value.middle, /* sendmsg only reads it */
			.iov_len = value.middle_bytes,
		};
		part_begin(connection, at);
	}
	at = put(at, value.back, value.back_bytes);
	at = put(at, "\r\n", 2);
	connection->commands[connection->commands_used++] = (struct sent_command){ .is_set = true, .keys = 1 };
	return at;
}

/* A get of `count` keys: new ones, or those of `again`. */
static char *put_get(struct load *load, struct connection *connection, const struct sent_key *again, uint32_t count,
		     char *at)
{
	at = put(at, "get", 3);
	for (uint32_t i = 0; i < count; i++) {
		*at++ = ' ';
		at = put_key(load, connection, again ? again[i].number : load_sequence_next(&load->sequence), at);
	}
	at = put(at, "\r\n", 2);
	connection->commands[connection->commands_used++] = (struct sent_command){ .keys = count };
	return at;
}

/* Reads what the batch before has set. Its keys are forgotten one by one as they are overwritten: the i-th
   new key's number is read before it is written. */
static char *put_read_back(struct load *load, struct connection *connection, unsigned sets, char *at)
{
	for (unsigned done = 0, count; done < sets; done += count) {
		count = sets - done < load->limits.keys_per_get ? sets - done : load->limits.keys_per_get;
		at = put_get(load, connection, connection->keys + done, count, at);
	}
	return at;
}

/* One command of new keys, of at most `left` operations. */
static char *put_next(struct load *load, struct connection *connection, uint64_t left, char *at)
{
	const struct load_spec *spec = &load->spec;
	uint32_t keys = load->limits.keys_per_get;

	if (spec->kind == LOAD_SET || spec->kind == LOAD_SET_GET ||
	    (spec->kind == LOAD_MIXED && rng_real(&load->rng) < spec->set_share))
		return put_set(load, connection, load_sequence_next(&load->sequence), at);
	return put_get(load, connection, NULL, keys < left ? keys : (uint32_t)left, at);
}

uint64_t batch_make(struct load *load, struct connection *connection)
{
	unsigned sets = connection->commands_used;
	bool reads_back = connection->reads_back;
	uint64_t operations = 0;
	char *at = connection->out;

	connection->parts_used = 0;
	connection->part = 0;
	connection->commands_used = 0;
	connection->command = 0;
	connection->keys_used = 0;
	part_begin(connection, at);
	if (reads_back) {
		at = put_read_back(load, connection, sets, at);
		operations = sets;
	} else {
		/* A set that is read back is two operations; the second is taken from what is left here
		   too, so that it may be one more than was asked for. */
		unsigned each = load->spec.kind == LOAD_SET_GET ? 2 : 1;

		while (connection->commands_used < load->limits.commands && operations * each < load->left) {
			at = put_next(load, connection, load->left - operations, at);
			operations += connection->commands[connection->commands_used - 1].keys;
		}
		load->left -= operations * each < load->left ? operations * each : load->left;
	}
	part_end(connection, at);
	must((size_t)(at - connection->out) <= load->limits.out_bytes);
	connection->reads_back = load->spec.kind == LOAD_SET_GET && !reads_back;
	connection->key = 0;
	connection->key_end = connection->commands[0].keys;
	return operations;
}

/* --- sending --- */

/* Takes `sent` bytes off the parts. */
static void parts_advance(struct connection *connection, size_t sent)
{
	while (connection->part < connection->parts_used) {
		struct iovec *part = &connection->parts[connection->part];

		if (sent < part->iov_len) {
			part->iov_base = (char *)part->iov_base + sent;
			part->iov_len -= sent;
			return;
		}
		sent -= part->iov_len;
		connection->part++;
	}
}

int batch_send(struct connection *connection)
{
	while (connection->part < connection->parts_used) {
		unsigned parts = connection->parts_used - connection->part;
		struct msghdr message = {
			.msg_iov = connection->parts + connection->part,
			.msg_iovlen = parts < PARTS_PER_SEND ? parts : PARTS_PER_SEND,
		};
		ssize_t sent;

		/* The plain call is the cheaper one for what nearly all batches are: a single part. */
		if (parts == 1)
			sent = send(connection->fd, message.msg_iov->iov_base, message.msg_iov->iov_len, MSG_NOSIGNAL);
		else
			sent = sendmsg(connection->fd, &message, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? FS_EAGAIN : FS_ESYS;
		parts_advance(connection, (size_t)sent);
	}
	return 0;
}
