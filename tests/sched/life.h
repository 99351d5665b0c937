/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One life of the engine: from its start to a stop, a kill or a power cut. Each is a process of its own, so that a kill leaves
 * nothing behind but what would be left of a daemon: drive, files, region. The world outlives them, in shared memory.
 */
#ifndef FS_TESTS_SCHED_LIFE_H
#define FS_TESTS_SCHED_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "server/store/store.h"
#include "tests/sched/drive.h"
#include "tests/sched/fibers.h"
#include "tests/sched/files.h"
#include "tests/sched/model.h"
#include "tests/sched/rules.h"

#define LIVES_MOST 6u
#define PATH_BYTES 128

enum life_end { LIFE_STOP, LIFE_KILL, LIFE_CUT, LIFE_ENDS };

struct life_plan {
	enum life_end end;
	uint64_t end_point; /* KILL, CUT: at this point, unless the life is over before */
	enum rules_moment moment; /* a STOP begins then, a KILL or CUT is there then, unless the life is over before */
	bool holds; /* between that moment and a KILL or CUT clients go on, and the engine's own threads stand still */
	bool reads_first; /* clients begin when all that the last life has left was read */
	uint64_t commands; /* of all clients, until they stop */
	uint64_t pause_ns; /* before it begins */
	struct fiber_options fibers;
	char faults[384]; /* as in FLASHIELD_FAULTS; killed_...: another way to end */
	bool saves; /* STOP: saves what memory holds */
};

/* What a seed chooses, and what has become of it. */
struct world {
	uint64_t seed;
	char text[512]; /* the options, for people */
	struct store_config config; /* without clock, device, paths */
	bool ages; /* the drive has sectors that can't be read, and no other fault */
	bool state_dir, region_dir, calm; /* calm: the last life ends with faults healed, and checks */
	unsigned clients, connections, keys, spurious;
	uint32_t length; /* of values, on average */
	unsigned gets, deletes; /* of 100 commands */
	/* Of 100 keys: one of a few; of the others: what the engine works at; of the others: what the client has used of late. */
	unsigned hot, follows, repeats;
	uint64_t think_ns; /* at most, of a client with nothing under way */
	unsigned lives;
	struct life_plan plan[LIVES_MOST];

	char folder[PATH_BYTES];
	uint64_t now_ns, boot_ns;
	unsigned boots;
	struct drive drive;
	struct files files;
	struct model model;

	unsigned life; /* that is lived, or was last */
	enum life_end ended; /* how */
	uint64_t points, switches, hash; /* of all lives */
	bool found; /* a finding */
	char finding[512];
	uint64_t finding_point;
	uint64_t segments_written, reclaimed, starts[3]; /* starts: cold, warm, rebuilt */
};

/* Lives the next life, in this process, which ends. */
_Noreturn void life_live(struct world *world);
/* Others go on for a while, so that clients change some keys. Then the process ends. */
void life_await_others(void);
/* The process is killed at this point; only what a kill leaves is left. */
_Noreturn void life_killed(void);

#endif
