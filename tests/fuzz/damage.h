/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Damage to files: an input is a list of changes to bytes that the code itself has written, eight bytes each: kind, place,
 * offset from the place (2), value (4). So each input starts from a file that is right, and inputs outlive a change of
 * the format. Whether checksums are made right again afterwards is the target's.
 */
#ifndef FS_TESTS_FUZZ_DAMAGE_H
#define FS_TESTS_FUZZ_DAMAGE_H

#include "tests/fuzz/fuzz.h"

/* A file in memory. */
struct damaged {
	uint8_t *bytes;
	uint64_t length, room;
};

/* Where something begins that is worth changing. */
struct damage_place {
	struct damaged *file;
	uint64_t at;
};

/* Takes all changes that are left of the input, 64 at most. An offset counts modulo what is left of the file. */
void damage(struct taking *from, const struct damage_place *places, unsigned count);

bool damaged_differs(const struct damaged *a, const struct damaged *b);
/* A copy of the file with this room; free() takes its bytes. */
struct damaged damaged_copy(const void *bytes, uint64_t length, uint64_t room);

/* Reads the file at path, with so many bytes to grow by; bytes is NULL where there is none. free() takes them. */
struct damaged damaged_read(const char *path, uint64_t room);
/* Writes it to path, into the file that is there (a region knows its own inode); without bytes, removes that. */
void damaged_write(const char *path, const struct damaged *file);

/* Reads and writes little-endian numbers within the file: 0, and nothing, beyond its end. */
uint64_t damaged_number(const struct damaged *file, uint64_t at, unsigned bytes);
void damaged_put(struct damaged *file, uint64_t at, uint64_t number, unsigned bytes);

/* Makes the checksums of a state file (base/parts.h) right, as far as its parts follow each other. Fills places with the
   beginnings of parts and of their bytes, at most `most`, and returns how many there are. places may be NULL. */
unsigned parts_seal(struct damaged *file, struct damage_place *places, unsigned most);

#endif
