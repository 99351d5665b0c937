/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A state file: parts of bytes, each with a checksum, that a process writes once and the next one reads once, in the
 * same order. It becomes visible under its name when it is whole and durable, or not at all.
 *
 *   +------+-----------+-------+-----------+-------+- ... -+----------+
 *   | head | part head | bytes | part head | bytes |       | end head |
 *   +------+-----------+-------+-----------+-------+- ... -+----------+
 *
 * The file's head has a magic and a version. A part's head has the part's kind, number, position in the file, length and
 * checksum, and a checksum of its own. Bytes are padded to a multiple of 8. The end is a part of the kind PARTS_END.
 * Integers are in the machine's order, as only the same boot of the same machine reads the file.
 *
 * Threads: a writer or reader belongs to one thread. Everything here may block on the file system. Errors: codes of
 * base/error.h. Lengths in the file are compared with its size before they are believed.
 */
#ifndef FS_BASE_PARTS_H
#define FS_BASE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define PARTS_VERSION 4u

/* The kinds of parts, in the order in which they are written. The module that writes a part defines its bytes. */
enum parts_kind {
	PARTS_END,
	PARTS_STORE, /* server/store */
	PARTS_SEGMENTS, /* segments: one row for each */
	PARTS_CROSSINGS, /* segments: crossing maps, or no bytes */
	PARTS_INDEX, /* flashindex: sizes */
	PARTS_INDEX_SEGMENTS, /* one row for each segment */
	PARTS_FILTER, /* number: its segment */
	PARTS_TABLE, /* number: 0 .. 2 */
	PARTS_EXTENTS,
	PARTS_ITEMS_HEAD, /* server/store/cleaner: objects of DRAM, in a file of their own */
	PARTS_ITEMS, /* number: 0, 1, ... */
	PARTS_CLASSIFIER, /* classifier */
	PARTS_COUNTS, /* its counts; number: 0, 1, ... */
	PARTS_FRUGAL, /* frugal: sizes; where there is such an index, behind PARTS_EXTENTS, and so are the next four */
	PARTS_FRUGAL_WATERMARKS,
	PARTS_FRUGAL_PREFILTER,
	PARTS_FRUGAL_CHAIN, /* or no bytes */
	PARTS_FRUGAL_BUNDLE /* number: 0, 1, ..., the oldest first */
};

struct parts_writer;
struct parts_reader;

/* Begins a file that will be at path; until parts_finish it is path with ".new" behind, which is made anew, for its
   owner alone. FS_OK; FS_ESYS (errno), FS_ENOMEM, and *out is NULL. */
FS_MUST_CHECK int parts_create(struct parts_writer **out, const char *path);
/* Writes a part. After a failure, later calls do nothing, and parts_finish tells. */
void parts_put(struct parts_writer *writer, enum parts_kind kind, uint32_t number, const void *bytes, uint64_t length);
/* Makes durable what was put so far, so that parts_finish has little left to do. After a failure as parts_put. */
void parts_sync(struct parts_writer *writer);
/* Has nothing failed so far? */
bool parts_healthy(const struct parts_writer *writer);
/* A point between two parts of a file that is being written. */
struct parts_mark {
	uint64_t bytes; /* of the file up to there */
	uint64_t position; /* of the next part */
};
/* Returns the point behind the last part that was written whole. */
struct parts_mark parts_mark(const struct parts_writer *writer);
/* Did a part find no room (full file system, quota, limit on a file's size), and has nothing else failed? */
bool parts_lacks_room(const struct parts_writer *writer);
/* Returns the bytes of the file, with those of a part that found no room. */
uint64_t parts_reached(const struct parts_writer *writer);
/* Takes back all parts behind the mark, and a lack of room: parts may be put again. After another failure as parts_put. */
void parts_cut(struct parts_writer *writer, const struct parts_mark *mark);
/* Writes the end before parts_finish does, so that a lack of room for it can be taken back too. */
void parts_end(struct parts_writer *writer);
/* Writes the end, makes the file durable, gives it its name, makes that durable, and frees the writer. FS_OK, or
   FS_ESYS (errno): the file that path named before, if any, is unchanged or replaced as a whole. */
FS_MUST_CHECK int parts_finish(struct parts_writer *writer);

/* Opens the file. FS_OK: the caller calls parts_close. FS_ENOTFOUND: there is none. FS_EVERSION: of another version.
   FS_ECORRUPT: no state file. FS_ESHORT, FS_ESYS (errno), FS_ENOMEM. */
FS_MUST_CHECK int parts_open(struct parts_reader **out, const char *path);
/* Moves to the next part, which must be of this kind and number; its length is stored in *length, and is no more than
   the rest of the file. The bytes of a part before it were read by parts_get. PARTS_END has no bytes, and nothing is
   behind it. FS_OK; FS_ECORRUPT: a broken head, or another part; FS_ESHORT: the file ends before the part does; FS_ESYS (errno). */
FS_MUST_CHECK int parts_next(struct parts_reader *reader, enum parts_kind kind, uint32_t number, uint64_t *length);
/* Reads all bytes of the part that parts_next has found, once. FS_OK; FS_ECORRUPT: their checksum differs; FS_ESHORT,
   FS_ESYS (errno). After a failure the contents of bytes are undefined. */
FS_MUST_CHECK int parts_get(struct parts_reader *reader, void *bytes);
/* Does both for a part that must have this length; FS_ECORRUPT too when it has another. */
FS_MUST_CHECK int parts_take(struct parts_reader *reader, enum parts_kind kind, uint32_t number, void *bytes,
			     uint64_t length);
/* Closes the file. NULL does nothing. */
void parts_close(struct parts_reader *reader);

/* Removes the file and what an interrupted writer has left, durably. FS_OK, also when there is none; FS_ESYS
   (errno). */
FS_MUST_CHECK int parts_remove(const char *path);

#endif
