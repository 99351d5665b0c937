/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/model/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ASK_TIMEOUT_MS 60000

static void grow(char **buffer, size_t *room, size_t needed)
{
	if (*room >= needed)
		return;
	*room = needed * 2 > 65536 ? needed * 2 : 65536;
	*buffer = realloc(*buffer, *room);
	if (!*buffer)
		abort();
}

bool wire_open(struct wire *wire, const char *host, unsigned port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int one = 1;
	char line[128];

	wire->out_length = wire->out_sent = wire->in_length = wire->in_at = 0;
	wire->ended = false;
	wire->chunk = 0;
	wire->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (wire->fd < 0 || inet_pton(AF_INET, host, &address.sin_addr) != 1 ||
	    connect(wire->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		return false;
	setsockopt(wire->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return wire_ask(wire, "version\r\n", line, sizeof(line)) && strncmp(line, "VERSION", 7) == 0;
}

void wire_narrow(struct wire *wire, int bytes)
{
	setsockopt(wire->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
}

void wire_close(struct wire *wire, bool abrupt)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 0 };

	if (wire->fd < 0)
		return;
	if (abrupt)
		setsockopt(wire->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(wire->fd);
	wire->fd = -1;
}

void wire_fini(struct wire *wire)
{
	wire_close(wire, false);
	free(wire->out);
	free(wire->in);
	memset(wire, 0, sizeof(*wire));
	wire->fd = -1;
}

char *wire_room(struct wire *wire, size_t length)
{
	if (wire->out_sent == wire->out_length)
		wire->out_sent = wire->out_length = 0;
	grow(&wire->out, &wire->out_room, wire->out_length + length);
	wire->out_length += length;
	return wire->out + wire->out_length - length;
}

void wire_put(struct wire *wire, const void *bytes, size_t length)
{
	memcpy(wire_room(wire, length), bytes, length);
}

void wire_print(struct wire *wire, const char *format, ...)
{
	char text[1024];
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	if (length < 0 || (size_t)length >= sizeof(text))
		abort();
	wire_put(wire, text, (size_t)length);
}

bool wire_send(struct wire *wire)
{
	while (wire_unsent(wire) > 0) {
		size_t length = wire->chunk && wire->chunk < wire_unsent(wire) ? wire->chunk : wire_unsent(wire);
		ssize_t n = send(wire->fd, wire->out + wire->out_sent, length, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		wire->out_sent += (size_t)n;
		if (wire->chunk)
			break;
	}
	return true;
}

bool wire_receive(struct wire *wire)
{
	for (int rounds = 0; rounds < 16; rounds++) {
		ssize_t n;

		if (wire->in_at == wire->in_length)
			wire->in_at = wire->in_length = 0;
		if (wire->in_at > 1u << 20) {
			memmove(wire->in, wire->in + wire->in_at, wire->in_length - wire->in_at);
			wire->in_length -= wire->in_at;
			wire->in_at = 0;
		}
		grow(&wire->in, &wire->in_room, wire->in_length + 65536);
		n = recv(wire->fd, wire->in + wire->in_length, wire->in_room - wire->in_length, MSG_DONTWAIT);
		if (n == 0) {
			wire->ended = true;
			return true;
		}
		if (n < 0)
			return errno == EAGAIN || errno == EINTR;
		wire->in_length += (size_t)n;
	}
	return true;
}

const char *wire_line(const struct wire *wire, size_t offset, size_t *length)
{
	const char *start = wire->in + wire->in_at + offset, *end;

	if (wire_available(wire) <= offset)
		return NULL;
	end = memchr(start, '\n', wire_available(wire) - offset);
	if (!end)
		return NULL;
	*length = (size_t)(end - start);
	if (*length > 0 && start[*length - 1] == '\r')
		--*length;
	return start;
}

void wire_consume(struct wire *wire, size_t bytes)
{
	wire->in_at += bytes;
}

/* Sends all and waits until more has come. */
static bool exchange(struct wire *wire)
{
	size_t before = wire->in_length - wire->in_at;

	while (wire->in_length - wire->in_at == before) {
		struct pollfd poller = { .fd = wire->fd, .events = POLLIN };

		if (!wire_send(wire) || wire->ended)
			return false;
		if (wire_unsent(wire) > 0)
			poller.events |= POLLOUT;
		if (poll(&poller, 1, ASK_TIMEOUT_MS) <= 0)
			return false;
		if (poller.revents & ~POLLOUT && !wire_receive(wire))
			return false;
	}
	return true;
}

bool wire_ask(struct wire *wire, const char *command, char *line, size_t room)
{
	const char *start;
	size_t length;

	wire_put(wire, command, strlen(command));
	while (!(start = wire_line(wire, 0, &length)))
		if (!exchange(wire))
			return false;
	snprintf(line, room, "%.*s", (int)length, start);
	wire_consume(wire, length + 2);
	return true;
}

bool wire_stats(struct wire *wire, const char *command,
		void (*each)(void *context, const char *name, const char *value), void *context)
{
	wire_put(wire, command, strlen(command));
	for (;;) {
		char text[512], name[128], value[256];
		const char *start;
		size_t length;

		while (!(start = wire_line(wire, 0, &length)))
			if (!exchange(wire))
				return false;
		snprintf(text, sizeof(text), "%.*s", (int)length, start);
		wire_consume(wire, length + 2);
		if (strcmp(text, "END") == 0)
			return true;
		if (sscanf(text, "STAT %127s %255[^\n]", name, value) == 2)
			each(context, name, value);
		else if (strncmp(text, "STAT ", 5) != 0)
			return true; /* an error line: this server has no such statistics */
	}
}
