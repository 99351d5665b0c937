/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A whole client's bytes as a fuzz input, given to the daemon twice: all at once, and cut into pieces. The answers are
 * the same, the connection ends where it must, and nothing is left behind.
 *
 *   options (1)  turns (1)  seed of the cuts (4)  not used (2)  | stream
 *
 * In the stream, FE ED and two more bytes are no bytes of the client's but happen to the daemon:
 *
 *   'm' any   what was read twice goes to flash
 *   'd' n     bytes on flash are damaged
 *   't' n     n seconds pass
 *   'r' any   the client ends the connection and opens another one
 */
#ifndef FS_TESTS_FUZZ_STREAM_H
#define FS_TESTS_FUZZ_STREAM_H

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/service.h"

#define STREAM_HEAD_BYTES 8u

/* Bits of the first byte. */
enum stream_option {
	STREAM_NO_IDS = 1,
	STREAM_NO_EVICT = 2,
	STREAM_LOGIN = 4,
	STREAM_FLASH = 8,
	STREAM_LARGE_ITEMS = 16,
	STREAM_OLD = 32 /* answers are those of memcached 1.6.18 */
};

struct stream {
	struct service_options options;
	uint32_t seed;
	const uint8_t *bytes;
	size_t length;
};

/* False: the input is too short to be one. */
bool stream_parse(struct stream *stream, const uint8_t *data, size_t size);

/* All answers, one connection after the other; to be freed. cuts: in pieces, or all at once. */
struct stream_answer {
	char *bytes;
	size_t length;
	size_t certain; /* so many bytes are the same in each run; SIZE_MAX: all. An innocent loss ends them */
};
struct stream_answer stream_run(const struct stream *stream, bool cuts);

/* Answers of the text protocol without those that tell of the daemon's own state: "STAT" lines. In place. */
void stream_leave_out_stats(struct stream_answer *answer);
/* A chunk of the answer that ends at `end` was kept, or left out, so that the bytes up to `to` are kept so far. Returns how many
   of the kept bytes are certain; `certain` is what the last call has returned, 0 at first. */
size_t stream_certain(const struct stream_answer *answer, const char *end, const char *to, size_t certain);
void stream_require_same(const struct stream_answer *whole, const struct stream_answer *pieces);

#endif
