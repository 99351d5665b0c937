/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A line of "watch fetchers mutations", read into a struct:
 *
 *   ts=1795389701.41939 gid=25 type=item_get key=a%3Ab status=found clsid=1 cfd=24 size=20
 *   ts=1795389701.41968 gid=26 type=item_store key=a%3Ab status=stored cmd=set ttl=0 clsid=1 cfd=24 size=20
 *
 * memcached 1.6.20 and newer also have "type=deleted" (of the stream "deletions"), Flashield has "type=item_delete" as
 * well, and stores whose command is incr, decr, touch or gat. Flashield's item_get ends with the tier ("from="), and
 * names the command ("cmd=") unless it is a get. Behind the point of ts is a whole number of microseconds, without
 * leading zeros in memcached's lines.
 *
 * Pure functions. Bytes come from a server and are checked.
 */
#ifndef FS_TOOLS_RECORD_LINE_H
#define FS_TOOLS_RECORD_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_KEY_MAX 250

enum line_kind {
	LINE_GET, /* a key was looked up; found */
	LINE_STORE, /* a value came in; found: it was stored */
	LINE_UPDATE, /* of Flashield: incr, decr or touch; found: there was an object */
	LINE_DELETE, /* of Flashield: a delete command; found: there was an object */
	LINE_DELETED, /* of memcached: an object was deleted */
	LINE_SKIPPED, /* `size` lines are missing here, as the watcher was too slow */
	LINE_IGNORED, /* tells nothing that another line doesn't */
	LINE_BROKEN,
};

struct line {
	enum line_kind kind;
	uint64_t gid; /* the order in which the server wrote the lines; 0: unknown */
	int64_t time_us; /* since 1970 */
	char key[LINE_KEY_MAX]; /* without encoding */
	uint32_t key_length;
	bool found;
	bool fills; /* STORE: a set or an add, which may bring what a get has missed */
	bool tells_tier; /* GET: of Flashield, whose look-ups for other commands are LINE_IGNORED */
	int32_t connection; /* the server's descriptor; -1: unknown */
	int64_t size; /* of the value; -1: unknown */
	int64_t ttl_s; /* 0: none; -1: it had expired when it came in */
};

/* Reads a line without its end. A line that makes no sense has the kind LINE_BROKEN. */
void line_parse(const char *text, size_t length, struct line *line);

#endif
