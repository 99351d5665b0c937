/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sched/life.h"

#include <execinfo.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/metrics/counters.h"
#include "tests/sched/clients.h"
#include "tests/sched/finding.h"
#include "tests/sched/rules.h"
#include "tests/sched/wraps.h"

#define DOWNTIME_US 60000000
#define SAVE_US 10000000
#define REBUILD_TENTHS 50u /* of a second, for which the walk after a crash is waited for */
#define CALM_COMMANDS 500u
#define LOOK_NS 300000u /* between two looks whether the moment of the end has come */
#define OTHERS_LEAST_SHIFT 18u /* ns for which others go on before a kill: 0.3 ms to 0.5 s */
#define OTHERS_SHIFTS 12u
#define CPU_SECONDS 120u /* of a life; a loop that makes no point ends there */

extern unsigned atomics_relaxed;

static struct world *the_world; /* of this process; NULL: none lives */

/* ---- the end --------------------------------------------------------------------------------- */

static void note_figures(struct world *world)
{
	world->points += fiber_points();
	world->switches += fiber_switches();
	world->hash = world->hash * 31 + fiber_hash() + fiber_now_ns();
	world->now_ns = fiber_now_ns();
	world->segments_written += ctr_total(CTR_segments_written);
	world->reclaimed += ctr_total(CTR_segments_reclaimed);
}

void finding(const char *format, ...)
{
	struct world *world = the_world;
	void *frames[48];
	va_list arguments;
	char text[512];

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (!world) {
		fprintf(stderr, "%s\n", text);
		_exit(EXIT_FINDING);
	}
	the_world = NULL; /* what follows finds nothing more */
	world->found = true;
	snprintf(world->finding, sizeof(world->finding), "%s", text);
	world->finding_point = fiber_points();
	note_figures(world);
	dprintf(STDERR_FILENO, "%s\n", text);
	fibers_show(STDERR_FILENO);
	dprintf(STDERR_FILENO, "the fiber's stack:\n");
	backtrace_symbols_fd(frames, backtrace(frames, 48), STDERR_FILENO);
	_exit(EXIT_FINDING);
}

static _Noreturn void end(struct world *world, enum life_end how)
{
	world->ended = how;
	note_figures(world);
	_exit(EXIT_SUCCESS);
}

void life_killed(void)
{
	struct world *world = the_world;

	model_killed(&world->model);
	drive_outlives(&world->drive);
	end(world, LIFE_KILL);
}

void life_await_others(void)
{
	fiber_sleep_until(fiber_now_ns() + ((uint64_t)1 << (OTHERS_LEAST_SHIFT + fiber_random(OTHERS_SHIFTS))));
}

static void lose_power(void)
{
	struct world *world = the_world;

	model_killed(&world->model);
	drive_power_cut(&world->drive);
	files_power_cut(&world->files);
	world->boots++;
	end(world, LIFE_CUT);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void on_signal(int number)
{
	finding("signal %d (%s)", number,
		number == SIGXCPU ? "too much CPU: a loop without a point?" : strsignal(number));
}

static void take_signals(void)
{
	static char stack[64 << 10];
	const stack_t other = { .ss_sp = stack, .ss_size = sizeof(stack) };
	const struct rlimit limit = { CPU_SECONDS, CPU_SECONDS + 5 };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	static const int numbers[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGXCPU };

	sigaltstack(&other, NULL);
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		sigaction(numbers[i], &action, NULL);
	setrlimit(RLIMIT_CPU, &limit);
}

/* ---- the engine ------------------------------------------------------------------------------ */

/* A step of the cleaner's work on a segment is done. */
static void on_step(void *context)
{
	(void)context;
	fiber_window();
}

static struct store *open_store(struct world *world)
{
	struct store_config config = world->config;
	char reason[256], path[PATH_BYTES + 8], boot[16];
	struct store *store;
	int code;

	snprintf(path, sizeof(path), "%s/flash", world->folder);
	snprintf(boot, sizeof(boot), "boot-%u", world->boots);
	config.clock = clk_boot();
	config.unwatched = true;
	config.workers = world->clients + 1; /* one reads all keys */
	config.flash_path = path;
	config.flash_device = drive_open(&world->drive);
	config.state_dir = world->state_dir ? world->files.state : NULL;
	config.region_dir = world->region_dir ? world->files.region : NULL;
	config.restart_max_downtime_us = DOWNTIME_US;
	config.boot_id = boot;
	config.daemon = "11211";
	code = store_open(&store, &config, reason);
	if (code != FS_OK)
		finding("the store does not open: %s: %s", fs_strerror(code), reason);
	return store;
}

static void note_start(struct world *world, struct store *store)
{
	struct store_status status;

	store_get_status(store, &status);
	log_notice("life %u: starts %s: %s", world->life, status.start_word, status.start_text);
	world->starts[strcmp(status.start_word, "rebuilt") == 0                                              ? 2
		      : strcmp(status.start_word, "warm") == 0 || strcmp(status.start_word, "attached") == 0 ? 1
													     : 0]++;
}

static void stop(struct world *world, struct store *store, const struct life_plan *plan)
{
	const struct store_end last = { .deadline_us = clk_now_us(clk_boot()) + SAVE_US };

	(void)world;
	store_stop(store);
	if (plan->saves)
		(void)store_save_items(store, &last);
	(void)store_save(store);
	store_close(store);
}

/* Alone or beside the clients: what the last life has left is seen, as far as it isn't overwritten. */
static void read_what_is_left(struct world *world, struct store *store)
{
	for (unsigned waited = 0; rules_rebuilds(store) && waited < REBUILD_TENTHS; waited++)
		fiber_sleep_until(fiber_now_ns() + 100000000);
	(void)clients_read_all(world, store);
}

/* Returns when the clients have ended: by themselves, or as the moment has come. */
static void await_end(struct store *store, const struct life_plan *plan)
{
	while (plan->moment != MOMENT_NONE && clients_run()) {
		fiber_sleep_until(fiber_now_ns() + LOOK_NS);
		if (!rules_is_moment(store, plan->moment))
			continue;
		if (plan->end == LIFE_STOP)
			break;
		if (plan->holds)
			fibers_hold(clients_is_one);
		life_await_others();
		if (plan->end == LIFE_CUT)
			lose_power();
		life_killed();
	}
	if (plan->moment != MOMENT_NONE)
		clients_stop();
	clients_join();
}

/* The last life: faults stop, and the engine has to get well. */
static void get_well(struct world *world, struct store *store)
{
	fault_disarm_all();
	drive_heal(&world->drive);
	world->files.armed = false;
	fibers_calm();
	for (unsigned waited = 0; drive_is_busy(&world->drive) && waited < DRIVE_HANGS_S; waited++)
		fiber_sleep_until(fiber_now_ns() + 1000000000); /* what hangs was asked for before */
	clients_begin(world, store, world->seed ^ 0xca1, CALM_COMMANDS);
	clients_join();
	rules_liveness(world, store);
	rules_check(world, store);
	(void)clients_read_all(world, store);
	rules_rest(store);
	rules_check(world, store);
}

void life_live(struct world *world)
{
	const struct life_plan *plan = &world->plan[world->life];
	bool is_last = world->life + 1 == world->lives;
	struct fiber_options fibers = plan->fibers;
	struct store *store;

	the_world = world;
	take_signals();
	log_set_level(getenv("SCHED_VERBOSE") ? LOG_LEVEL_DEBUG : LOG_LEVEL_NOTICE);
	world->now_ns += plan->pause_ns;
	if (world->life > 0 && world->ended == LIFE_CUT)
		world->boot_ns = world->now_ns - 1000000000;
	fibers.now_ns = world->now_ns;
	atomics_relaxed = fibers.relaxed;
	wraps_begin(&(struct wraps_options){
		.seed = fibers.seed + 1, .boot_ns = world->boot_ns, .spurious = world->spurious });
	fibers_begin(&fibers);
	files_begin(&world->files);
	if (plan->end != LIFE_STOP)
		fiber_call_at_point(plan->end_point, plan->end == LIFE_KILL ? life_killed : lose_power);
	fault_call(FAULT_cleaner_step, on_step, NULL);
	setenv("FLASHIELD_FAULTS", plan->faults, 1);
	if (fault_init_from_environment() != FS_OK)
		finding("the faults are not understood: %s", plan->faults);
	store = open_store(world);
	store_claim(store, "11211");
	if (store_start(store) != FS_OK)
		finding("the store does not start");
	store_serves(store);
	drive_arm(&world->drive);
	world->files.armed = true;
	note_start(world, store);
	if (world->life > 0)
		rules_glance_at_all(world, store);
	if (world->life > 0 && plan->reads_first)
		read_what_is_left(world, store);
	clients_begin(world, store, fibers.seed, plan->commands);
	if (world->life > 0 && !plan->reads_first)
		read_what_is_left(world, store);
	await_end(store, plan);
	if (is_last && world->calm)
		get_well(world, store);
	stop(world, store, plan);
	if (drive_is_busy(&world->drive))
		finding("the store is closed, and the drive has requests");
	end(world, LIFE_STOP);
}
