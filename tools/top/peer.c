/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/peer.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define FIRST_WAIT_US 500000
#define MOST_DOUBLINGS 4u
#define DEFAULT_PORT "11211"

static const char questions[] =
	"stats\r\nstats flash\r\nstats classifier\r\nstats apps\r\nstats latency\r\nstats segments\r\n"
	"stats hotkeys\r\nstats slow 50\r\nstats contents\r\nstats limits\r\n";

int64_t monotonic_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void peer_init(struct peer *peer, const struct access *access, const char *address, int64_t timeout_us)
{
	*peer = (struct peer){
		.address = address, .timeout_us = timeout_us, .access = access, .client = CLIENT_CLOSED
	};
}

static void close_socket(struct peer *peer)
{
	client_close(&peer->client);
	peer->reached = false;
}

static void free_addresses(struct peer *peer)
{
	if (peer->addresses)
		freeaddrinfo(peer->addresses);
	peer->addresses = peer->next_address = NULL;
}

void peer_fini(struct peer *peer)
{
	close_socket(peer);
	free_addresses(peer);
}

static void __attribute__((format(printf, 3, 4))) fail(struct peer *peer, int64_t now_us, const char *format, ...)
{
	unsigned doublings = peer->failures < MOST_DOUBLINGS ? peer->failures : MOST_DOUBLINGS;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(peer->error, sizeof(peer->error), format, arguments);
	va_end(arguments);
	close_socket(peer);
	free_addresses(peer);
	peer->state = PEER_DOWN;
	peer->deadline_us = now_us + ((int64_t)FIRST_WAIT_US << doublings);
	peer->failures++;
	peer->wanted = true;
	peer->was_idle = false;
}

/* ---- connecting -------------------------------------------------------------------------------- */

static void begin_poll(struct peer *peer, int64_t now_us)
{
	sample_clear(&peer->sample);
	peer->state = PEER_ASKING;
	peer->deadline_us = now_us + peer->timeout_us;
	peer->wanted = false;
	peer->input_length = peer->sent = 0;
	peer->report = REPORT_GENERAL;
	peer->rows = 0;
}

/* "[::1]:11211" and "::1" are hosts of IPv6; in "host:port" the last colon counts. */
static void split_address(const char *address, char host[256], const char **port)
{
	const char *colon = strrchr(address, ':');
	bool bracketed = address[0] == '[' && strchr(address, ']');
	size_t length = strlen(address);

	*port = DEFAULT_PORT;
	if (bracketed) {
		address++;
		length = (size_t)(strchr(address, ']') - address);
		if (address[length + 1] == ':')
			*port = address + length + 2;
	} else if (colon && strchr(address, ':') == colon) {
		length = (size_t)(colon - address);
		*port = colon + 1;
	}
	snprintf(host, 256, "%.*s", (int)length, length > 0 ? address : "127.0.0.1");
	if (length == 0)
		snprintf(host, 256, "127.0.0.1");
}

/* Goes on with handshake and login. */
static void proceed(struct peer *peer, int64_t now_us)
{
	int code = client_proceed(&peer->client);

	if (code == FS_EAGAIN)
		return;
	if (code != FS_OK) {
		fail(peer, now_us, "%s%.180s", peer->client.state == CLIENT_LOGS_IN ? "login: " : "",
		     client_why(&peer->client));
		return;
	}
	peer->state = PEER_IDLE;
	if (peer->wanted)
		begin_poll(peer, now_us);
}

static void connected(struct peer *peer, int64_t now_us)
{
	char host[256] = "";
	const char *port;
	bool has_host = peer->addresses != NULL;
	int one = 1;

	if (has_host) {
		setsockopt(peer->client.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
		split_address(peer->address, host, &port);
	}
	free_addresses(peer);
	peer->reached = true;
	if (client_start(&peer->client, peer->access, peer->client.fd, has_host ? host : NULL) != FS_OK)
		fail(peer, now_us, "%s", client_why(&peer->client));
	else
		proceed(peer, now_us);
}

static void try_address(struct peer *peer, const struct sockaddr *address, socklen_t length, int64_t now_us)
{
	peer->client.fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (peer->client.fd < 0) {
		fail(peer, now_us, "%s", strerror(errno));
		return;
	}
	peer->state = PEER_CONNECTING;
	peer->deadline_us = now_us + peer->timeout_us;
	if (connect(peer->client.fd, address, length) == 0)
		connected(peer, now_us);
	else if (errno != EINPROGRESS)
		fail(peer, now_us, "%s", strerror(errno));
}

/* Tries the next of the host's addresses, if there is one. */
static bool try_next(struct peer *peer, int64_t now_us)
{
	while (peer->next_address) {
		struct addrinfo *tried = peer->next_address;

		close_socket(peer);
		peer->next_address = tried->ai_next;
		peer->client.fd = socket(tried->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		if (peer->client.fd < 0)
			continue;
		peer->state = PEER_CONNECTING;
		peer->deadline_us = now_us + peer->timeout_us;
		if (connect(peer->client.fd, tried->ai_addr, tried->ai_addrlen) == 0) {
			connected(peer, now_us);
			return true;
		}
		if (errno == EINPROGRESS)
			return true;
	}
	return false;
}

static void connect_host(struct peer *peer, int64_t now_us)
{
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	char host[256];
	const char *port;
	int code;

	split_address(peer->address, host, &port);
	/* getaddrinfo() would cut it to 16 bits. */
	if (strspn(port, "0123456789") == strlen(port) && strtoul(port, NULL, 10) - 1 > 65534) {
		fail(peer, now_us, "no port from 1 to 65535");
		return;
	}
	code = getaddrinfo(host, port, &hints, &peer->addresses);
	if (code != 0) {
		peer->addresses = NULL;
		fail(peer, now_us, "%s", gai_strerror(code));
		return;
	}
	peer->next_address = peer->addresses;
	if (!try_next(peer, now_us))
		fail(peer, now_us, "%s", strerror(errno));
}

static void connect_path(struct peer *peer, int64_t now_us)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(peer->address) >= sizeof(address.sun_path)) {
		fail(peer, now_us, "%s", strerror(ENAMETOOLONG));
		return;
	}
	memcpy(address.sun_path, peer->address, strlen(peer->address) + 1);
	try_address(peer, (const struct sockaddr *)&address, sizeof(address), now_us);
}

static void open_connection(struct peer *peer, int64_t now_us)
{
	if (strchr(peer->address, '/'))
		connect_path(peer, now_us);
	else
		connect_host(peer, now_us);
}

static void finish_connecting(struct peer *peer, int64_t now_us)
{
	socklen_t size = sizeof(int);
	int code = 0;

	getsockopt(peer->client.fd, SOL_SOCKET, SO_ERROR, &code, &size);
	if (code == 0)
		connected(peer, now_us);
	else if (!try_next(peer, now_us))
		fail(peer, now_us, "%s", strerror(code));
}

/* ---- asking ------------------------------------------------------------------------------------ */

static void lost(struct peer *peer, const char *why, int64_t now_us)
{
	/* A connection that was only kept for the next poll is opened anew without an error. */
	if (peer->was_idle && peer->report == REPORT_GENERAL && peer->rows == 0 && peer->input_length == 0) {
		close_socket(peer);
		peer->was_idle = false;
		peer->wanted = true;
		open_connection(peer, now_us);
		return;
	}
	fail(peer, now_us, "%s", why);
}

static bool send_questions(struct peer *peer, int64_t now_us)
{
	while (peer->sent < sizeof(questions) - 1) {
		ssize_t sent = client_send(&peer->client, questions + peer->sent, sizeof(questions) - 1 - peer->sent);

		if (sent < 0 && errno == EAGAIN)
			return true;
		if (sent <= 0) {
			lost(peer, client_why(&peer->client), now_us);
			return false;
		}
		peer->sent += (size_t)sent;
	}
	return true;
}

/* Takes one line. True when it was the last line of all reports. */
static bool take_line(struct peer *peer, char *line, size_t length, int64_t now_us)
{
	const char *name = "", *value = "";

	switch (answer_line(line, length, &name, &value)) {
	case ANSWER_ROW:
		if (++peer->rows > ANSWER_ROWS)
			fail(peer, now_us, "a report of more than %u rows", ANSWER_ROWS);
		else
			sample_row(&peer->sample, peer->report, name, value);
		return false;
	case ANSWER_REFUSED:
		/* Without the first report there is nothing to show; the server may want a password. */
		if (peer->report == REPORT_GENERAL) {
			fail(peer, now_us, "stats: %.150s", line);
			return false;
		}
		break;
	case ANSWER_END:
		break;
	case ANSWER_BAD:
		fail(peer, now_us, "no memcached server: \"%.60s\"", line);
		return false;
	}
	peer->rows = 0;
	return ++peer->report == REPORTS;
}

/* Takes the whole lines of the input. True when the last line of all reports is among them. */
static bool take_input(struct peer *peer, int64_t now_us)
{
	char *start = peer->input, *end = peer->input + peer->input_length, *newline;
	bool complete = false;

	while (!complete && (newline = memchr(start, '\n', (size_t)(end - start))) != NULL) {
		size_t length = (size_t)(newline - start);

		if (length > 0 && start[length - 1] == '\r')
			length--;
		if (length > ANSWER_LINE_BYTES)
			break;
		start[length] = 0;
		complete = take_line(peer, start, length, now_us);
		if (peer->state != PEER_ASKING)
			return false;
		start = newline + 1;
	}
	peer->input_length = (size_t)(end - start);
	memmove(peer->input, start, peer->input_length);
	if (!complete && peer->input_length > ANSWER_LINE_BYTES) {
		fail(peer, now_us, "a line of more than %u bytes", ANSWER_LINE_BYTES);
		return false;
	}
	if (complete && peer->input_length > 0) {
		fail(peer, now_us, "more answers than questions");
		return false;
	}
	return complete;
}

/* Reads once, and takes what has come. True when a poll is complete. */
static bool read_on(struct peer *peer, int64_t now_us)
{
	ssize_t got =
		client_receive(&peer->client, peer->input + peer->input_length, PEER_INPUT_BYTES - peer->input_length);

	if (got < 0 && errno == EAGAIN)
		return false;
	if (got <= 0) {
		lost(peer, got == 0 ? "the server closed the connection" : client_why(&peer->client), now_us);
		return false;
	}
	peer->input_length += (size_t)got;
	if (!take_input(peer, now_us))
		return false;
	sample_complete(&peer->sample, now_us);
	peer->state = PEER_IDLE;
	peer->failures = 0;
	peer->was_idle = true;
	peer->error[0] = 0;
	return true;
}

static bool ask_on(struct peer *peer, short revents, int64_t now_us)
{
	bool complete = false;

	if (!send_questions(peer, now_us) || !(revents & (POLLIN | POLLHUP | POLLERR)))
		return false;
	do
		complete = read_on(peer, now_us);
	while (!complete && peer->state == PEER_ASKING && client_has_more(&peer->client));
	return complete;
}

/* ---- states ------------------------------------------------------------------------------------ */

void peer_ask(struct peer *peer, int64_t now_us)
{
	if (peer->state == PEER_ASKING)
		return; /* the server is slower than the interval */
	peer->wanted = true;
	if (peer->state == PEER_IDLE)
		begin_poll(peer, now_us);
	else if (peer->state == PEER_DOWN && now_us >= peer->deadline_us)
		open_connection(peer, now_us);
}

short peer_events(const struct peer *peer)
{
	if (peer->state == PEER_CONNECTING)
		return peer->reached ? peer->client.wants : POLLOUT;
	if (peer->state == PEER_ASKING)
		return peer->sent < sizeof(questions) - 1 ? POLLIN | POLLOUT : POLLIN;
	return 0;
}

int64_t peer_due_us(const struct peer *peer)
{
	bool waits = peer->state == PEER_CONNECTING || peer->state == PEER_ASKING ||
		     (peer->state == PEER_DOWN && peer->wanted);

	return waits ? peer->deadline_us : INT64_MAX;
}

bool peer_step(struct peer *peer, short revents, int64_t now_us)
{
	switch (peer->state) {
	case PEER_DOWN:
		if (peer->wanted && now_us >= peer->deadline_us)
			open_connection(peer, now_us);
		return false;
	case PEER_CONNECTING:
		if (revents && peer->reached)
			proceed(peer, now_us);
		else if (revents)
			finish_connecting(peer, now_us);
		else if (now_us >= peer->deadline_us && !try_next(peer, now_us))
			fail(peer, now_us, "no connection within %g s", (double)peer->timeout_us / 1e6);
		return false;
	case PEER_ASKING:
		if (now_us >= peer->deadline_us) {
			fail(peer, now_us, "no answer within %g s", (double)peer->timeout_us / 1e6);
			return false;
		}
		return ask_on(peer, revents, now_us);
	case PEER_IDLE:
		break;
	}
	return false;
}
