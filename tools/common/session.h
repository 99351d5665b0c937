/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions and answers over a client's connection, for tools that have nothing else to do meanwhile: it blocks. What is
 * put is sent while an answer is waited for, and answers are taken while it is sent, so that no side waits for ever.
 * Beside it: keys as the meta commands write them, and a tempo.
 *
 * Threads: one owner.
 */
#ifndef FS_TOOLS_COMMON_SESSION_H
#define FS_TOOLS_COMMON_SESSION_H

#include "tools/common/client.h"
#include "tools/common/warm_file.h"

struct session {
	struct client client;
	const char *server; /* borrowed, for messages */
	uint64_t timeout_us; /* without a byte in either direction */
	struct warm_buffer in, out;
	size_t in_start, out_start;
};

/* Connects and logs in. Ends the program, with the reason, if that fails. */
void session_open(struct session *session, const struct access *access, const char *server, uint64_t timeout_us);
void session_close(struct session *session);

/* Puts bytes behind what is to be sent. Ends the program when memory is out. */
void session_put(struct session *session, const void *bytes, size_t length);
/* Returns the next line, without its end and with a zero behind it, or so many bytes as they are; both are valid until the
   next call. Ends the program, with the reason, if the server goes away, says nothing in time, or
   sends a line without end. */
char *session_line(struct session *session, size_t *length);
const char *session_bytes(struct session *session, size_t length);

#define WIRE_KEY_BYTES 340u
/* Writes the key as a word of a meta command: as it is, or in base64 where it has blanks, control characters or more. *flag
   becomes "" or " b". Returns the word's length. */
size_t wire_key(const char *key, size_t length, char out[WIRE_KEY_BYTES], const char **flag);

/* A tempo: so many objects and bytes a second; 0: any. */
struct tempo {
	double objects_per_second, bytes_per_second;
	double due_s; /* when the next may begin, on the clock that never goes back */
};

/* Begins now. */
void tempo_init(struct tempo *tempo, double objects_per_second, double bytes_per_second);
/* Sleeps until so much more may be done; a signal ends the sleep. */
void tempo_wait(struct tempo *tempo, double objects, double bytes);

#endif
