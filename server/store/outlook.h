/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a start of the daemon would find, and do, with flash, region and state directory as they are: for
 * flashield-inspect. outlook_judge is a start in which everything is read and judged by the very code of a start, and
 * which ends before the first byte is changed (store_config.look_only); so it takes the time and the memory of a start.
 * outlook_find reads the heads of the files alone.
 *
 * Files are only read. No lock is taken; the caller knows that no daemon has the flash. Threads: one at a time.
 */
#ifndef FS_STORE_OUTLOOK_H
#define FS_STORE_OUTLOOK_H

#include "server/store/store.h"

#define OUTLOOK_PATH_BYTES 8300

/* The head of one file. */
struct outlook_file {
	char path[OUTLOOK_PATH_BYTES]; /* "": the configuration has no folder for it */
	/* FS_OK; FS_ENOTFOUND; FS_EVERSION: of another format version; FS_ECORRUPT, FS_ESHORT: damaged; FS_ESYS: it can't
	   be read (error), or for the region isn't in a folder for one (why). Only with FS_OK: */
	int code;
	int error; /* errno */
	char why[256];
	uint8_t uuid[16]; /* of the flash; zeros without */
	bool sealed; /* region: a run has it */
	uint64_t epoch; /* the attach epoch of the run */
	bool this_boot;
	uint64_t time_us; /* when clients were last served: boot-time clock; in a journal the wall clock, to a second */
	bool counted; /* saved objects of DRAM ... */
	uint64_t objects; /* ... and no more of them are in the file */
};

struct outlook_files {
	struct outlook_file state, region, items;
};

/* Fills out. config->flash_path isn't NULL. */
void outlook_find(const struct store_config *config, struct outlook_files *out);
/* Fills out with the journal in config->state_dir of the flash that has this identity and so many segments; path is that of
   its files without their numbers, and this_boot doesn't count. FS_ENOTFOUND: no journal of this flash. Reads all of it. */
void outlook_find_journal(const struct store_config *config, const uint8_t uuid[16], uint32_t segments,
			  struct outlook_file *out);

/* Notes of CAS ids in config->state_dir, one for each daemon. */
struct outlook_ids {
	unsigned notes, damaged; /* damaged: that can't be read as a number; they count among notes */
	uint64_t end; /* the highest of them: ids below may have been given; 0: there is none */
};

/* Fills out. */
void outlook_find_ids(const struct store_config *config, struct outlook_ids *out);

struct outlook {
	bool refused; /* there would be no daemon, for this reason */
	char reason[256];
	bool warm; /* the flash would be served with its objects */
	const char *word; /* as store_status.start_word and start_text, like those of DRAM below; static storage */
	char text[192];
	uint64_t objects; /* on flash */
	bool dram_warm; /* objects of DRAM would be loaded */
	const char *dram_word, *dram_text;
};

/* Fills out with what a start with this configuration would do. config->daemon doesn't count: saved objects are judged
   as if the same daemon started. */
void outlook_judge(const struct store_config *config, struct outlook *out);

#endif
