/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hot keys: which keys get the most requests, move the most bytes, and cost the most flash reads, over the last minute and
 * the last ten minutes.
 *
 *   observe() --one request in 100--> the thread's summaries --hotkeys_tick, hotkeys_read--> the present ten seconds
 *                                    (heavy.h)                                                      |
 *                   the last minute: six lists of ten seconds, and the present <--------- a list ---+
 *                   the last ten minutes: ten lists of a minute, and what came since        (heaviest 128 keys)
 *
 * Counts are estimates from a sample. Between two samples lie 0 to 198 others, at random, so that no pattern of requests
 * escapes; each stands for 100. Bytes have a sample of their own, in which a key's chance goes by its bytes: a sample stands for
 * as many bytes as 100 requests move. Of requests that waited for flash one in four is sampled. A request's bytes are those of
 * the value that was found or stored.
 *
 * Most requests pay a decrement, and those that move bytes a subtraction; the counts that fall below zero are the
 * caller's own (observe.c), which asks here for the next ones.
 *
 * Keys are clients' data: the operator may have hashes instead (key_hash.h), or nothing. A key's bytes lie in the heap
 * alone, which core dumps leave out.
 *
 * Memory, beside -m: 192 KiB for each thread that samples, 384 KiB for all together, and 48 lists of up to 128 keys.
 *
 * Threads: any. Sampling takes no lock and never waits; hotkeys_tick, hotkeys_read and hotkeys_show take a lock of rank
 * LOCK_STATE, which is held for up to a millisecond. hotkeys_init and hotkeys_fini run alone.
 */
#ifndef FS_SERVER_COUNT_HOTKEYS_H
#define FS_SERVER_COUNT_HOTKEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "server/count/heavy.h"

#define HOTKEYS_EACH 100u /* one request of so many is sampled */
#define HOTKEYS_READS_EACH 4u /* ... and of those that waited for flash */
#define HOTKEYS_MOST 100u /* keys that hotkeys_read returns at the most */

enum hotkeys_shown { HOTKEYS_KEYS, HOTKEYS_HASHES, HOTKEYS_OFF };
enum hotkeys_window { HOTKEYS_MINUTE, HOTKEYS_TEN_MINUTES, HOTKEYS_WINDOWS };

struct store_request;

/* Returns what is to be kept of keys when the operator asks for this, and whether keys may be dumped at all (not with -X). */
enum hotkeys_shown hotkeys_allowed(enum hotkeys_shown asked, bool may_dump);
/* Begins with nothing counted. now_ms: of the clock of hotkeys_tick. */
void hotkeys_init(enum hotkeys_shown shown, uint64_t now_ms);
/* Frees all, when no thread samples any more. */
void hotkeys_fini(void);

/* Sets what is kept of keys. A change forgets all that was counted. */
void hotkeys_show(enum hotkeys_shown shown);
/* Returns what is kept of keys now. */
enum hotkeys_shown hotkeys_are_shown(void);

/* Samples a request that is done and moved so many bytes. Returns after how many further requests of this thread the next one
   is due. */
int32_t hotkeys_sample_request(const struct store_request *request, uint64_t bytes);
/* Samples a request by its bytes: left is below zero, the bytes until the next sample less those that this request and
   others have moved. Returns the bytes until the next one, zero or more. */
int64_t hotkeys_sample_bytes(const struct store_request *request, uint64_t bytes, int64_t left);
/* Samples a request that waited for flash, and for which so many reads were made. Most calls cost a decrement. */
void hotkeys_note_reads(const struct store_request *request, uint64_t bytes, unsigned reads);

/* Ends the present ten seconds if they are over. To be called about once a second. now_ms: of a clock that never goes
   back. */
void hotkeys_tick(uint64_t now_ms);

/* Returns the heaviest keys of a window, the heaviest first, at most `most` (1 .. HOTKEYS_MOST) of them. total is an estimate
   of all keys' amounts in it. Windows are 60 to 70 and 600 to 670 s long, or as long as the daemon counts. The caller frees
   it by heavy_list_free. NULL when nothing is kept, or without memory. */
FS_MUST_CHECK struct heavy_list *hotkeys_read(enum heavy_measure by, enum hotkeys_window window, unsigned most);

#endif
