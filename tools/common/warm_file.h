/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of flashield-dump: objects in parts, each with checksums. Numbers are little-endian.
 *
 *   head    0  magic "FSWARM\r\n"   8  version (u32)     12  zero (u32)       16  created, wall seconds (i64)
 *          24  check (u64) of bytes 0 to 23
 *   part    0  magic "PART" (u32)   4  number from 0     8   objects (u32)    12  bytes of the objects (u32)
 *          16  check (u64) of the objects' bytes        24  check (u64) of bytes 0 to 23       32  the objects
 *   end     a part with the magic "LAST", the number of parts before it, no objects and no bytes
 *
 *   object  0  client flags (u64)   8  expiry, wall seconds, -1: never (i64)
 *          16  bytes of the value (u32)    20  bytes of the key (u16)    22  zero (u16)    24  key, value
 *
 * Checks are XXH3 with 64 bits and seed 0. A reader hands no object out before its whole part is read and checked.
 *
 * Threads: one owner. Both functions of a writer and a reader block on the file.
 */
#ifndef FS_TOOLS_COMMON_WARM_FILE_H
#define FS_TOOLS_COMMON_WARM_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"

#define WARM_VERSION 1u
#define WARM_KEY_BYTES 250u
#define WARM_PART_BYTES (1u << 20) /* a part ends when it has so many bytes */
#define WARM_VALUE_BYTES (1u << 30) /* the longest value */
#define WARM_ERROR_BYTES 256

struct warm_object {
	const char *key, *value; /* borrowed */
	uint64_t client_flags;
	int64_t expires; /* wall seconds, -1: never */
	uint32_t value_bytes; /* at most WARM_VALUE_BYTES */
	uint16_t key_bytes; /* 1 to WARM_KEY_BYTES */
};

struct warm_buffer {
	char *bytes;
	size_t used, room;
};

/* ---- writing ------------------------------------------------------------------------------------ */

struct warm_writer {
	FILE *file; /* borrowed */
	uint32_t parts, objects; /* written parts; objects of the open one */
	struct warm_buffer part;
};

/* Writes the head. FS_OK, or FS_ESYS. */
FS_MUST_CHECK int warm_writer_init(struct warm_writer *writer, FILE *file, int64_t created);
/* Adds an object, which goes to the file with its part. FS_OK; FS_ESYS: the file can't be written; FS_ENOMEM. */
FS_MUST_CHECK int warm_writer_add(struct warm_writer *writer, const struct warm_object *object);
/* Writes the open part and the end, and flushes the file. FS_OK, or FS_ESYS. */
FS_MUST_CHECK int warm_writer_end(struct warm_writer *writer);
/* Frees the memory. */
void warm_writer_fini(struct warm_writer *writer);

/* ---- reading ------------------------------------------------------------------------------------ */

struct warm_reader {
	FILE *file; /* borrowed */
	int64_t created;
	uint64_t offset; /* of the next byte in the file */
	uint32_t parts, left; /* read parts; objects of the current one that are still to come */
	size_t at; /* of the next object in the part */
	struct warm_buffer part;
	char error
		[WARM_ERROR_BYTES]; /* after FS_ECORRUPT, FS_EVERSION, FS_EFOREIGN and FS_ESYS: what is wrong, and at which offset */
};

/* Reads the head. FS_OK; FS_EFOREIGN: it is no such file; FS_EVERSION: it has another version; FS_ECORRUPT; FS_ESYS. */
FS_MUST_CHECK int warm_reader_init(struct warm_reader *reader, FILE *file);
/* Reads the next object, which is valid until the next call. FS_OK; FS_ENOTFOUND: the file has ended, and was whole;
   FS_ECORRUPT: it is damaged or cut off; FS_ESYS; FS_ENOMEM. An error is final. */
FS_MUST_CHECK int warm_reader_next(struct warm_reader *reader, struct warm_object *object);
/* Frees the memory. */
void warm_reader_fini(struct warm_reader *reader);

#endif
