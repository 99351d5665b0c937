/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One connection's bytes: commands gathered and sent without ever blocking on a server that waits
 * for us to read, answers parsed where they lie. Threads: one owner.
 */
#ifndef MODEL_WIRE_H
#define MODEL_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire {
	int fd; /* -1: closed */
	char *out, *in;
	size_t out_room, out_length, out_sent;
	size_t in_room, in_length, in_at;
	size_t chunk; /* wire_send gives the socket at most this much at a time, 0 = all */
	bool ended; /* the server closed its side */
};

/* Connects (blocking) and asks for the version, so that the server surely knows the connection. */
bool wire_open(struct wire *wire, const char *host, unsigned port);
/* The kernel takes no more than about so many bytes for us: the server's sends are cut short. */
void wire_narrow(struct wire *wire, int bytes);
/* Abrupt: with a reset, whatever is under way. */
void wire_close(struct wire *wire, bool abrupt);
void wire_fini(struct wire *wire);

void wire_put(struct wire *wire, const void *bytes, size_t length);
void wire_print(struct wire *wire, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *wire_room(struct wire *wire, size_t length); /* to be written by the caller; counts as put */
static inline size_t wire_unsent(const struct wire *wire)
{
	return wire->out_length - wire->out_sent;
}

bool wire_send(struct wire *wire); /* what goes; false: the connection broke */
bool wire_receive(struct wire *wire); /* what is there; false: broke; ended is set at its end */

/* A whole line at offset behind what was consumed, without its end; NULL: not there yet. */
const char *wire_line(const struct wire *wire, size_t offset, size_t *length);
static inline size_t wire_available(const struct wire *wire)
{
	return wire->in_length - wire->in_at;
}
static inline const char *wire_at(const struct wire *wire, size_t offset)
{
	return wire->in + wire->in_at + offset;
}
void wire_consume(struct wire *wire, size_t bytes);

/* Sends one command and waits for its line; for set-up and flush_all. False: broke. */
bool wire_ask(struct wire *wire, const char *command, char *line, size_t room);
/* A stats command: calls each(context, name, value) for every line. False: broke. */
bool wire_stats(struct wire *wire, const char *command,
		void (*each)(void *context, const char *name, const char *value), void *context);

#endif
