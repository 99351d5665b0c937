/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/tools/bench/fake_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "tools/bench/load_internal.h"

#define CONNECTIONS 64
#define INPUT_MOST (1 << 20)
#define OUTPUT_MOST (4 << 20)

struct peer {
	int fd;
	char *input;
	size_t input_bytes;
	size_t skip; /* of a value that was refused early */
};

struct talk {
	struct fake_server *fake;
	struct load_keys keys;
	struct peer peers[CONNECTIONS];
	unsigned peers_used;
	char *output;
	size_t output_bytes;
	bool close_after; /* the peer, when output is sent */
};

static void say(struct talk *talk, const void *bytes, size_t length)
{
	must(talk->output_bytes + length <= OUTPUT_MOST);
	memcpy(talk->output + talk->output_bytes, bytes, length);
	talk->output_bytes += length;
}

static void say_text(struct talk *talk, const char *text)
{
	say(talk, text, strlen(text));
}

/* The number of a key as the load generator writes them. */
static uint64_t number_of(const struct talk *talk, const char *key)
{
	uint64_t number = 0;

	for (unsigned i = KEY_PREFIX_BYTES; i < talk->keys.key_bytes; i++)
		number = number * 10 + (uint64_t)(key[i] - '0');
	return number;
}

static size_t whole_value(const struct talk *talk, uint64_t number, char *out)
{
	struct value_parts parts;

	value_parts(&talk->keys, number, &parts);
	memcpy(out, parts.front, parts.front_bytes);
	memcpy(out + parts.front_bytes, parts.middle, parts.middle_bytes);
	memcpy(out + parts.front_bytes + parts.middle_bytes, parts.back, parts.back_bytes);
	return parts.front_bytes + parts.middle_bytes + parts.back_bytes;
}

static void say_value(struct talk *talk, uint64_t number, enum fake_lie lie)
{
	static char value[INPUT_MOST];
	char head[KEY_BYTES_MOST + 64], key[KEY_BYTES_MOST];
	size_t length = whole_value(talk, lie == FAKE_OTHER_VALUE ? number + 1 : number, value);
	size_t sent = length - (lie == FAKE_TRUNCATES || lie == FAKE_SHORTENS);

	if (lie == FAKE_FLIPS_BYTE)
		value[talk->fake->lie_at] ^= 1;
	load_key_write(&talk->keys, lie == FAKE_OTHER_KEY ? number + 1 : number, key);
	snprintf(head, sizeof(head), "VALUE %.*s %d %zu\r\n", (int)talk->keys.key_bytes, key,
		 lie == FAKE_HAS_FLAGS ? 7 : 0, lie == FAKE_SHORTENS ? sent : length);
	say_text(talk, head);
	if (lie == FAKE_CLOSES) {
		say(talk, value, length / 2);
		talk->close_after = true;
		return;
	}
	say(talk, value, sent);
	say_text(talk, "\r\n");
	if (lie == FAKE_REPEATS_VALUE)
		say_value(talk, number, FAKE_HONEST);
}

/* Lies that are lines of their own. False: there is nothing more to say to this get. */
static bool say_line(struct talk *talk, enum fake_lie lie)
{
	switch (lie) {
	case FAKE_SERVER_ERROR:
		say_text(talk, "SERVER_ERROR out of patience\r\n");
		return false;
	case FAKE_ANSWERS_TWICE:
		say_text(talk, "END\r\nEND\r\n");
		return false;
	case FAKE_UNKNOWN_LINE:
		say_text(talk, "EN\r\n");
		return false;
	case FAKE_BARE_NEWLINE:
		say_text(talk, "END\n");
		return false;
	case FAKE_ENDLESS_LINE:
		for (int i = 0; i < 4096; i++)
			say_text(talk, "V");
		return false;
	default:
		return true;
	}
}

static void count_get(struct fake_server *fake, uint64_t number)
{
	uint64_t offset = number - fake->spec->first_key;

	fake->get_keys++;
	if (offset < FAKE_KEYS) {
		fake->asked[offset]++;
		fake->read_back += fake->set[offset] > 0;
	}
}

static void serve_get(struct talk *talk, const char *line, size_t length)
{
	struct fake_server *fake = talk->fake;
	size_t step = talk->keys.key_bytes + 1;
	bool more = true;
	uint64_t keys = 0;

	fake->gets++;
	for (size_t at = 4; at + step - 1 <= length; at += step) {
		uint64_t number = number_of(talk, line + at);
		enum fake_lie lie = number == fake->lie_key ? fake->lie : FAKE_HONEST;

		keys++;
		count_get(fake, number);
		if (more && !talk->close_after && number - fake->present_first < fake->present_keys) {
			more = say_line(talk, lie);
			if (more)
				say_value(talk, number, lie);
		}
	}
	if (keys > fake->longest_get)
		fake->longest_get = keys;
	if (more && !talk->close_after)
		say_text(talk, "END\r\n");
}

/* Returns how many bytes of the input the command takes; 0: it has not come whole. */
static size_t serve_set(struct talk *talk, struct peer *peer, const char *line, size_t line_bytes)
{
	struct fake_server *fake = talk->fake;
	static char value[INPUT_MOST];
	uint64_t number = number_of(talk, line + 4);
	size_t length = strtoul(line + 4 + talk->keys.key_bytes + 5, NULL, 10), expected;

	if (number == fake->lie_key && fake->lie == FAKE_REFUSES_EARLY) {
		peer->skip = length + 2;
		say_text(talk, "SERVER_ERROR object too large for cache\r\n");
		fake->sets++;
		return line_bytes;
	}
	if (peer->input_bytes < line_bytes + length + 2)
		return 0;
	expected = whole_value(talk, number, value);
	fake->sets++;
	if (length != expected || memcmp(line + line_bytes, value, length) != 0 ||
	    memcmp(line + line_bytes + length, "\r\n", 2) != 0)
		fake->bad_sets++;
	if (number - fake->spec->first_key < FAKE_KEYS)
		fake->set[number - fake->spec->first_key]++;
	say_text(talk, number == fake->lie_key && fake->lie == FAKE_SERVER_ERROR ? "SERVER_ERROR out of memory\r\n"
										 : "STORED\r\n");
	return line_bytes + length + 2;
}

/* One command, if it is there. Returns the bytes it took. */
static size_t serve_one(struct talk *talk, struct peer *peer)
{
	const char *line = peer->input, *end = memchr(line, '\n', peer->input_bytes);
	size_t line_bytes = end ? (size_t)(end - line) + 1 : 0;

	if (peer->skip) {
		size_t taken = peer->skip < peer->input_bytes ? peer->skip : peer->input_bytes;

		peer->skip -= taken;
		return taken;
	}
	if (!end)
		return 0;
	if (strncmp(line, "version", 7) == 0) {
		say_text(talk, "VERSION fake\r\n");
	} else if (strncmp(line, "get ", 4) == 0) {
		serve_get(talk, line, line_bytes - 2);
		sem_post(&talk->fake->served);
	} else if (strncmp(line, "set ", 4) == 0) {
		line_bytes = serve_set(talk, peer, line, line_bytes);
		if (line_bytes)
			sem_post(&talk->fake->served);
	} else {
		talk->fake->senseless = true;
	}
	return line_bytes;
}

/* Sends what was said. False: the peer has gone. */
static bool send_out(struct talk *talk, const struct peer *peer)
{
	size_t piece = talk->fake->piece ? talk->fake->piece : talk->output_bytes;
	bool good = true;

	for (size_t at = 0; good && at < talk->output_bytes; at += piece) {
		size_t length = talk->output_bytes - at < piece ? talk->output_bytes - at : piece;

		good = send(peer->fd, talk->output + at, length, MSG_NOSIGNAL) == (ssize_t)length;
	}
	talk->output_bytes = 0;
	return good;
}

/* Reads once and serves what is whole. False: the connection is over. */
static bool serve(struct talk *talk, struct peer *peer)
{
	ssize_t got = recv(peer->fd, peer->input + peer->input_bytes, INPUT_MOST - peer->input_bytes, 0);
	uint64_t commands = 0;
	size_t taken;

	if (got <= 0)
		return false;
	peer->input_bytes += (size_t)got;
	while (peer->input_bytes && (taken = serve_one(talk, peer)) != 0) {
		peer->input_bytes -= taken;
		memmove(peer->input, peer->input + taken, peer->input_bytes);
		commands++;
	}
	if (commands > talk->fake->most_pipelined)
		talk->fake->most_pipelined = commands;
	return send_out(talk, peer) && !talk->close_after;
}

static void peer_accept(struct talk *talk)
{
	struct peer *peer = &talk->peers[talk->peers_used++];
	int one = 1;

	must(talk->peers_used <= CONNECTIONS);
	peer->fd = accept(talk->fake->listener, NULL, NULL);
	must(peer->fd >= 0);
	must(setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0);
	peer->input = malloc(INPUT_MOST);
	must(peer->input);
}

static void peer_close(struct talk *talk, unsigned index)
{
	close(talk->peers[index].fd);
	free(talk->peers[index].input);
	talk->peers[index] = talk->peers[--talk->peers_used];
}

static void *fake_main(void *argument)
{
	struct talk *talk = calloc(1, sizeof(*talk));
	struct pollfd polled[CONNECTIONS + 1];

	must(talk);
	talk->fake = argument;
	talk->output = malloc(OUTPUT_MOST);
	must(talk->output && load_keys_init(&talk->keys, talk->fake->spec) == 0);
	do {
		polled[CONNECTIONS] = (struct pollfd){ .fd = talk->fake->listener, .events = POLLIN };
		for (unsigned i = 0; i < CONNECTIONS; i++)
			polled[i] = (struct pollfd){ .fd = i < talk->peers_used ? talk->peers[i].fd : -1,
						     .events = POLLIN };
		must(poll(polled, CONNECTIONS + 1, -1) > 0);
		for (unsigned i = talk->peers_used; i-- > 0;) {
			if (polled[i].revents && !serve(talk, &talk->peers[i]))
				peer_close(talk, i);
		}
		if (polled[CONNECTIONS].revents)
			peer_accept(talk);
	} while (talk->peers_used);
	load_keys_fini(&talk->keys);
	free(talk->output);
	free(talk);
	return NULL;
}

void fake_start(struct fake_server *fake)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);

	fake->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(fake->listener >= 0 && bind(fake->listener, (struct sockaddr *)&address, length) == 0 &&
	     listen(fake->listener, CONNECTIONS) == 0 &&
	     getsockname(fake->listener, (struct sockaddr *)&address, &length) == 0);
	fake->server = (struct load_server){ .port = ntohs(address.sin_port) };
	must(sem_init(&fake->served, 0, 0) == 0);
	must(pthread_create(&fake->thread, NULL, fake_main, fake) == 0);
}

void fake_join(struct fake_server *fake)
{
	pthread_join(fake->thread, NULL);
	close(fake->listener);
	sem_destroy(&fake->served);
}
