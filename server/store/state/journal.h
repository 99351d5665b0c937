/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The journal of a flash: each way in which a record on flash may stop to count is written down durably before any
 * command that depends on it is answered. After a crash of the host, whose index is gone with the DRAM, segments and
 * journal together tell which records still count (cleaner/rebuild.c walks the segments; losses.h is the store's side).
 *
 *   a record counts  =  its segment is committed (COMMIT, no UNCOMMIT), lies above the floor (FLOOR),
 *                       nobody has lost its slot (DEAD), nobody has changed its key during a rebuild (CHANGED),
 *                       and it is neither flushed (FLUSH) nor expired
 *
 * A slot names exactly one record: a position in a segment of one sequence number, and no sequence number is ever used
 * twice. So DEAD names the record by sequence and offset, whatever took the slot: a command, another key's command, a
 * full index. A record that is written down twice is dead all the same, so the order of entries doesn't matter (that of
 * flushes does), and an entry for a record that nobody would find does no harm. COMMIT comes after the data of the
 * segment is durable, and after a DEAD for each of its records that got no slot.
 *
 * Entries have 16 bytes. They are appended to a block in memory and get a ticket. One thread writes all that wait as one
 * block and makes it durable by one call (group commit): then journal_durable() has passed their tickets.
 *
 * On disk: files of rising numbers. Each begins with a head block, which repeats the state (floor, committed segments,
 * tables, flush) and names the older files that are still needed, with their lengths. A block has a head of 80 bytes
 * with identity, epoch, file, number, times, and a checksum over all of it; it is padded to a multiple of 512, so that
 * no sector is ever written twice. The next block is written once the one before it is durable.
 *
 *   file 7  | head: state, "needs file 5 with 812 blocks, file 6 with 1901" | block | block | ...
 *
 * The file before gets a last block, NEXT, once the head is durable, and before anything else is written. It is not among
 * the blocks that the head names. So a last file with it is none: the one behind it was deleted.
 *
 * A file is removed when the floor has passed all segments that its entries name, as the flash is written in a ring.
 * When all files together exceed most_bytes, the floor is raised over the oldest file's segments: these go on serving,
 * but a crash of the host loses them.
 *
 * What a reader makes of damage: the file with the highest number counts, if its head is whole. A torn head that nothing
 * follows is a rotation that the crash interrupted: the file before counts. A torn block at the end of the last file was
 * never durable, and no command that depends on it was answered. Anything else that is wrong (an older file that is
 * short, a last one with NEXT, a whole block behind a torn one) is FS_ECORRUPT, and the flash starts empty. Damage that looks like a torn last
 * block can't be told from one.
 *
 * Failure: when the journal can't be written it removes its files, durably; then all tickets count as durable, and the
 * next crash of the host means a cold start. When the files can't be removed either, answers wait, until
 * journal_disowned() tells that the flash has got an epoch that the journal doesn't have.
 *
 * A move of the flash (cleaner/move.c) gives it another epoch and, often, another name. The journal is whole for both flashes
 * meanwhile, as a record is named by sequence and offset, which a copy has too:
 *
 *   seal      the files get a second name each, of the flash to come, and an entry tells its epoch as one that the journal is of too
 *   confirm   the old names go; then a new file is begun, of that epoch
 *
 * In between no file is begun or removed. A block that is written is in both journals, because they are the same files.
 *
 * Times: each block has a reading of the wall clock and of the store's seconds at the same moment; a block without
 * entries is written when the last one is JOURNAL_BEAT_S old. The next boot takes the store's seconds up from there.
 *
 * Threads: append, durable and disowned: any thread; append takes a leaf lock and wakes the writer, so the caller holds no
 * leaf. One thread calls all else. Errors: codes of base/error.h.
 */
#ifndef FS_STORE_JOURNAL_H
#define FS_STORE_JOURNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/error.h"

#define JOURNAL_BEAT_S 5u
#define JOURNAL_FILES_MOST 64u /* older files that a head may name */
#define JOURNAL_TABLES_MOST 8u
#define JOURNAL_OPTIONS 4u

/* ---- the medium ------------------------------------------------------------------------------ */

/*
 * Where the files are: a directory (journal_directory) or a test's memory. All functions may block. 0 or a negative
 * errno. Nothing is durable before sync, except for what create and remove do.
 */
struct journal_medium {
	int (*create)(struct journal_medium *medium, uint32_t number); /* an empty file, and its name durable */
	int (*write)(struct journal_medium *medium, uint32_t number, const void *bytes, uint64_t length,
		     uint64_t offset);
	/* -ENOENT when the file was deleted meanwhile. */
	int (*sync)(struct journal_medium *medium, uint32_t number);
	int (*remove)(struct journal_medium *medium, uint32_t number); /* durable; 0 also when there is none */
	/* Gives the file a second name, durably: it is the other medium's file of that number too, in place of one that is
	   there. Both are of one kind. */
	int (*share)(struct journal_medium *medium, uint32_t number, struct journal_medium *other);
	/* Are both the same place? */
	bool (*is_same)(const struct journal_medium *medium, const struct journal_medium *other);
	/* Returns the bytes that were read, fewer at the file's end; a negative errno. */
	int64_t (*read)(struct journal_medium *medium, uint32_t number, void *bytes, uint64_t length, uint64_t offset);
	/* Fills out with the numbers of all files, at most `most` of them, and returns how many there are. */
	int64_t (*list)(struct journal_medium *medium, uint32_t *out, uint32_t most);
	void (*close)(struct journal_medium *medium);
};

/* journal_file.c: files of this path with a dot and their number behind it. NULL: memory is out. */
FS_MUST_CHECK struct journal_medium *journal_directory(const char *path);
/* Files of a medium of journal_directory are that user's from now on, as far as the process may change it: those that are there,
   and those that it makes. Linux lets nobody else give them a second name (fs.protected_hardlinks). */
void journal_directory_own(struct journal_medium *medium, uid_t user, gid_t group);

/* Removes all files, durably, the oldest first: a crash in between leaves a last file that names one that is gone. 0 or a
   negative errno. */
FS_MUST_CHECK int journal_remove(struct journal_medium *medium);

/* ---- entries and state ----------------------------------------------------------------------- */

/* entry:         segment   small       value */
enum journal_kind {
	JOURNAL_DEAD = 1, /*    offset      sequence: the record there doesn't count */
	JOURNAL_CHANGED, /* sequence (16 high bits, 32 low ones), hash: no record of the key up to it counts */
	JOURNAL_COMMIT, /* segment table id    sequence: the segment is whole, and its slots lie in that table */
	JOURNAL_UNCOMMIT, /* segment           sequence: it is committed no more */
	JOURNAL_FLOOR, /*                   sequence: segments up to it don't count */
	JOURNAL_TABLE, /*       buckets     id: a table of the index */
	JOURNAL_FLUSH, /*                   id: objects up to it are flushed; a pending flush is over */
	JOURNAL_FLUSH_AT, /*                wall seconds of a pending flush_all; 0: none */
	JOURNAL_FILE, /* number in small, blocks in value: an older file that is needed; heads alone */
	JOURNAL_OPTION, /*      number      an option of the index, which must not change; heads alone */
	JOURNAL_NEXT, /*                    number of the file that follows, whose head is durable: a file's last entry */
	JOURNAL_SERVED, /*                  wall second at which clients were last served; 0: the run that writes serves them */
	JOURNAL_EPOCH, /*                   an attach epoch that the journal is of too; 0: none. Only while the flash moves */
	JOURNAL_KINDS
};

struct journal_entry {
	uint8_t kind;
	uint8_t zero;
	uint16_t segment;
	uint32_t small;
	uint64_t value;
};
_Static_assert(sizeof(struct journal_entry) == 16, "as on disk");

/* What counts besides the entries of DEAD and CHANGED. */
struct journal_state {
	uint32_t segments; /* of commit[] */
	struct journal_commit {
		uint64_t sequence; /* 0: the segment is not committed */
		uint32_t table;
	} * commit;
	struct journal_table {
		uint64_t buckets; /* 0: no table */
		uint32_t id;
	} table[JOURNAL_TABLES_MOST];
	uint64_t floor, flush_cas;
	uint64_t flush_at; /* wall seconds of a pending flush_all; 0: none */
	uint64_t served_s; /* wall second at which clients were last served; 0: that of the last block */
	uint64_t next_epoch; /* the journal is of that attach epoch too; 0: of none */
	uint64_t option[JOURNAL_OPTIONS];
};

/* Makes a state in which nothing is committed. FS_ENOMEM. */
FS_MUST_CHECK int journal_state_init(struct journal_state *state, uint32_t segments);
void journal_state_fini(struct journal_state *state);
/* Takes an entry into the state. False: its values are out of range, or its kind isn't one of a state. */
FS_MUST_CHECK bool journal_state_take(struct journal_state *state, const struct journal_entry *entry);
/* Returns the table with that id; NULL: there is none. */
const struct journal_table *journal_state_table(const struct journal_state *state, uint32_t id);

struct journal_file_state {
	uint32_t number;
	uint64_t blocks;
	uint64_t bytes;
	uint64_t newest; /* the highest sequence that an entry of it names */
};

/* ---- reading --------------------------------------------------------------------------------- */

struct journal_found {
	struct journal_state state;
	uint64_t epoch; /* of the start that wrote the last file */
	uint64_t wall_s, store_s; /* of the last block */
	struct journal_file_state file[JOURNAL_FILES_MOST + 1]; /* that are needed, the last one too, ascending */
	unsigned files;
	uint32_t highest; /* number of any file there is; 0: none */
};

/*
 * Reads the last file of the flash with this identity and number of segments, and judges the others. visit gets each
 * entry of DEAD and CHANGED; it may be NULL. FS_OK: the caller calls journal_found_fini. FS_ENOTFOUND: there is no
 * journal of this flash. FS_ECORRUPT: it can't be trusted. FS_EIO, FS_ENOMEM. After an error there is nothing to free,
 * but out->highest is filled in.
 */
FS_MUST_CHECK int journal_read(struct journal_medium *medium, const uint8_t uuid[16], uint32_t segments,
			       void (*visit)(void *context, const struct journal_entry *entry), void *context,
			       struct journal_found *out);
void journal_found_fini(struct journal_found *found);

/* ---- writing --------------------------------------------------------------------------------- */

struct journal;

struct journal_config {
	struct journal_medium *medium; /* the journal owns it from journal_create on */
	uint8_t uuid[16];
	uint64_t epoch;
	const struct clk *clock; /* for the beat */
	/* Fills in the two times of a block. The writer's thread. */
	void (*times)(void *context, uint64_t *wall_s, uint64_t *store_s);
	/* More tickets are durable, or failure is over. The writer's thread, without a lock. */
	void (*advanced)(void *context);
	/* There is something to write, or journal_needs_disowning() has become true. Any thread, no leaf held. */
	void (*wake)(void *context);
	/* The bytes of memory that the journal has change by so many. Any thread, with a leaf held. NULL: not called. */
	void (*resized)(void *context, int64_t bytes);
	void *context;
	uint64_t file_bytes; /* a new file is begun beyond */
	uint64_t most_bytes; /* of all files */
};

/*
 * Begins a new file, durably, whose head has this state and names these older files; files that it doesn't name are
 * removed. found: what journal_read has found, whose state counts on (the caller may have changed it); its contents are
 * taken over, the caller still calls journal_found_fini. FS_OK; FS_EIO (errno), FS_ENOMEM: there is no journal, medium is
 * closed, and the old files are removed if possible.
 */
FS_MUST_CHECK int journal_create(struct journal **out, const struct journal_config *config,
				 struct journal_found *found);
/* Frees it. What still waits is written if the caller has called journal_step before. NULL does nothing. */
void journal_destroy(struct journal *journal);
/* Returns the bytes of memory that it has when it is new; resized tells of more. */
uint64_t journal_memory_bytes(void);
/* Appends an entry. Returns its ticket. Without memory for the entry the journal fails at the next step. */
uint64_t journal_append(struct journal *journal, const struct journal_entry *entry);
/* Returns the highest ticket that is durable; UINT64_MAX when the journal has failed and is removed. */
uint64_t journal_durable(const struct journal *journal);
/* Returns the ticket of the newest entry. */
uint64_t journal_newest(const struct journal *journal);
/* Returns the floor as far as it is durable: losses at or below it need no entry. */
uint64_t journal_floor(const struct journal *journal);
/* Writes what waits as one block, and makes it durable; or a beat, or tries again to give up. True: there was something
   to do. The writer. Blocks. */
bool journal_step(struct journal *journal);
/* The three steps of a move; the writer. journal_seal: as above, for the epoch to come and the names in next, which the journal
   owns from then on; files that lie there are removed. 0, also when the journal has failed and is removed. A negative errno: it
   is not sealed; it goes on, or has failed if it could not be written. Blocks. */
FS_MUST_CHECK int journal_seal(struct journal *journal, struct journal_medium *next, uint64_t epoch);
/* Takes that back. Blocks. */
void journal_unseal(struct journal *journal);
/* The flash has the epoch. True: the old names are gone. Else the journal stays sealed until they are, which journal_step tries
   from then on. Blocks. */
FS_MUST_CHECK bool journal_confirm(struct journal *journal);

/* Has writing and removing failed, so that the flash must get another epoch? Any thread, no lock. */
bool journal_needs_disowning(const struct journal *journal);
/* The flash has one: from now on all tickets are durable. */
void journal_disowned(struct journal *journal);

struct journal_status {
	uint64_t entries, syncs, bytes, files; /* entries and syncs since the start; bytes and files on disk now */
	uint64_t waiting; /* entries that are not durable */
	uint64_t floor;
	bool broken; /* removed after a failure, or waiting to be */
};
/* Fills out. Any thread; takes a leaf lock. */
void journal_get_status(struct journal *journal, struct journal_status *out);

#endif
