/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sched/fibers.h"

#include <errno.h>
#include <link.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "base/rng.h"
#include "tests/sched/finding.h"

#define STACK_BYTES (1u << 20)
#define EVENTS_MOST 4096u
#define TLS_MOST 4096u
/* Points without a change of time that only a loop without end can take. */
#define FREEZE_MOST_SHIFT 24 /* 2^24 ns = 16 ms */
#define SITE_LEAST_SHIFT 14u
#define SITE_MOST_SHIFT 29u
#define STARVE_PERIOD 20000u
#define CALM_TICK_NS 200u

enum state { FREE, RUNNABLE, WAITING, ENDED };

struct fiber {
	enum state state;
	bool woken; /* since it began to wait */
	const void *address; /* that it waits at; NULL: none */
	uint64_t until_ns;
	uint64_t rank;
	uint64_t free_until_ns; /* no site stops it before */
	const char *name;
	void *(*run)(void *context);
	void *context, *result;
	int error; /* errno */
	sigjmp_buf jump;
	ucontext_t first; /* until it has run */
	bool begun;
	void *stack;
	uint8_t tls[TLS_MOST];
};

struct event {
	uint64_t ns, order;
	void (*call)(void *context);
	void *context;
};

static struct fiber fibers[FIBERS_MOST];
static unsigned count, self;
static struct fiber_options options;
static struct rng rng;
static uint64_t now_ns, next_ns, points, switches, hash, call_point, starve_until;
static unsigned starved;
static int64_t left; /* points until the next choice */
static void (*call_then)(void);
static bool (*only)(unsigned number); /* these fibers alone may go on; NULL: all */
static bool running;

static struct event events[EVENTS_MOST]; /* a heap */
static unsigned event_count;
static uint64_t event_order;

/* ---- thread-local variables ------------------------------------------------------------------ */

static uint8_t *tls;
static const uint8_t *tls_image;
static size_t tls_bytes, tls_image_bytes;

static int find_tls(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size, (void)context;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type != PT_TLS)
			continue;
		tls = info->dlpi_tls_data;
		tls_bytes = part->p_memsz;
		tls_image = (const uint8_t *)(info->dlpi_addr + part->p_vaddr);
		tls_image_bytes = part->p_filesz;
	}
	return 1; /* the program is the first one, and no library's are needed */
}

/* ---- time ------------------------------------------------------------------------------------ */

static bool is_before(const struct event *a, const struct event *b)
{
	return a->ns < b->ns || (a->ns == b->ns && a->order < b->order);
}

static void swap_events(unsigned a, unsigned b)
{
	struct event kept = events[a];

	events[a] = events[b];
	events[b] = kept;
}

void fiber_at(uint64_t ns, void (*call)(void *context), void *context)
{
	unsigned at = event_count++;

	if (event_count > EVENTS_MOST)
		finding("too many events");
	events[at] = (struct event){ ns, event_order++, call, context };
	for (; at > 0 && is_before(&events[at], &events[(at - 1) / 2]); at = (at - 1) / 2)
		swap_events(at, (at - 1) / 2);
	if (ns < next_ns)
		next_ns = ns;
}

static struct event take_event(void)
{
	struct event first = events[0];
	unsigned at = 0;

	events[0] = events[--event_count];
	for (;;) {
		unsigned least = at, child = 2 * at + 1;

		if (child < event_count && is_before(&events[child], &events[least]))
			least = child;
		if (child + 1 < event_count && is_before(&events[child + 1], &events[least]))
			least = child + 1;
		if (least == at)
			return first;
		swap_events(at, least);
		at = least;
	}
}

static void find_next_ns(void)
{
	next_ns = event_count > 0 ? events[0].ns : FIBER_FOREVER;
	for (unsigned i = 0; i < count; i++)
		if (fibers[i].state == WAITING && fibers[i].until_ns < next_ns)
			next_ns = fibers[i].until_ns;
}

/* Wakes whose time has come, and calls the events that are due. */
static void bring_up_to_date(void)
{
	while (event_count > 0 && events[0].ns <= now_ns) {
		struct event event = take_event();

		event.call(event.context);
	}
	for (unsigned i = 0; i < count; i++)
		if (fibers[i].state == WAITING && fibers[i].until_ns <= now_ns)
			fibers[i].state = RUNNABLE;
	find_next_ns();
}

uint64_t fiber_now_ns(void)
{
	return now_ns;
}

void fiber_pass(uint64_t ns)
{
	now_ns += ns;
	if (now_ns >= next_ns)
		bring_up_to_date();
}

/* ---- choices --------------------------------------------------------------------------------- */

uint64_t fiber_random(uint64_t n)
{
	return rng_below(&rng, n);
}

static bool can_go_on(unsigned number)
{
	return fibers[number].state == RUNNABLE && (!only || only(number));
}

static bool any_can(void)
{
	for (unsigned i = 0; i < count; i++)
		if (can_go_on(i))
			return true;
	return false;
}

static unsigned choose_uniform(void)
{
	unsigned n = 0, chosen;

	for (unsigned i = 0; i < count; i++)
		n += can_go_on(i);
	chosen = (unsigned)rng_below(&rng, n);
	for (unsigned i = 0;; i++)
		if (can_go_on(i) && chosen-- == 0)
			return i;
}

static unsigned choose_ranked(void)
{
	unsigned best = FIBERS_MOST;

	for (unsigned i = 0; i < count; i++)
		if (can_go_on(i) && (best == FIBERS_MOST || fibers[i].rank > fibers[best].rank))
			best = i;
	return best;
}

static unsigned choose_starving(void)
{
	unsigned chosen = choose_uniform();

	if (points >= starve_until) {
		starved = (unsigned)rng_below(&rng, count);
		starve_until = points + rng_below(&rng, STARVE_PERIOD);
	}
	for (unsigned tries = 0; tries < 8 && chosen == starved; tries++)
		chosen = choose_uniform();
	return chosen;
}

/* Somebody has to be able to go on. */
static unsigned choose(void)
{
	while (!any_can()) {
		if (next_ns == FIBER_FOREVER)
			finding("deadlock: every fiber waits, and nothing is to come");
		if (next_ns > now_ns)
			now_ns = next_ns;
		bring_up_to_date();
	}
	switch (options.policy) {
	case FIBER_RANKED:
		return choose_ranked();
	case FIBER_STARVED:
		return choose_starving();
	default:
		return choose_uniform();
	}
}

static void set_left(void)
{
	left = 1 + (int64_t)rng_below(&rng, 2 * (uint64_t)options.points);
}

/* ---- switching ------------------------------------------------------------------------------- */

static void fiber_main(void)
{
	struct fiber *fiber = &fibers[self];

	fiber->result = fiber->run(fiber->context);
	fiber->state = ENDED;
	fiber_wake_all(fiber);
	fiber_wait(NULL, FIBER_FOREVER); /* never comes back */
}

static void switch_to(unsigned to)
{
	struct fiber *from = &fibers[self], *next = &fibers[to];

	hash = mix64(hash ^ (points << 8) ^ to);
	if (to == self)
		return;
	switches++;
	from->error = errno;
	memcpy(from->tls, tls, tls_bytes);
	if (sigsetjmp(from->jump, 0) == 0) {
		self = to;
		memcpy(tls, next->tls, tls_bytes);
		errno = next->error;
		if (next->begun)
			siglongjmp(next->jump, 1);
		next->begun = true;
		setcontext(&next->first);
	}
}

static void choose_and_switch(void)
{
	set_left();
	switch_to(choose());
}

void fiber_point(unsigned weight)
{
	if (!running || weight == 0)
		return;
	points++;
	now_ns += options.tick_ns;
	if (now_ns >= next_ns)
		bring_up_to_date();
	if (points == call_point)
		call_then();
	left -= weight;
	if (left > 0)
		return;
	if (options.freeze && rng_below(&rng, 1000000) < (uint64_t)options.freeze * options.points) {
		fiber_sleep_until(now_ns + ((uint64_t)1 << rng_below(&rng, FREEZE_MOST_SHIFT)));
		return;
	}
	if (options.policy == FIBER_RANKED && rng_below(&rng, 4) == 0)
		fibers[self].rank = rng_below(&rng, 4) ? 0 : rng_next(&rng);
	choose_and_switch();
}

/* A fiber that stood still runs about as long before it does again. */
void fiber_stand_still(void)
{
	struct fiber *fiber = &fibers[self];
	uint64_t ns = (uint64_t)1 << (SITE_LEAST_SHIFT + rng_below(&rng, SITE_MOST_SHIFT - SITE_LEAST_SHIFT));

	fiber->free_until_ns = now_ns + ns + rng_below(&rng, ns);
	fiber_sleep_until(now_ns + ns);
}

/* Some dangerous sites stop most of the fibers that pass, others few. */
static bool site_stops(uintptr_t site)
{
	uint64_t h;

	if (options.sites == 0)
		return false;
	h = mix64((uint64_t)site ^ options.seed);
	return h % options.sites == 0 && fibers[self].free_until_ns <= now_ns &&
	       rng_below(&rng, (uint64_t)1 << 2 * (h >> 32 & 3)) == 0;
}

void fiber_point_at(unsigned weight, uintptr_t site)
{
	if (running && site_stops(site))
		fiber_stand_still();
	fiber_point(weight);
}

void fiber_window(void)
{
	if (rng_below(&rng, 100) < options.windows && fibers[self].free_until_ns <= now_ns)
		fiber_stand_still();
	else
		fiber_yield();
}

/* One that only looks whether others are done must not hold them up. */
void fiber_yield(void)
{
	points++;
	fibers[self].rank = 0;
	fiber_pass(options.tick_ns);
	if (options.policy == FIBER_RANKED && rng_below(&rng, 2))
		fibers[self].rank = rng_next(&rng) >> 2;
	set_left();
	hash ^= points;
	switch_to(options.policy == FIBER_RANKED ? choose_uniform() : choose());
}

bool fiber_wait(const void *address, uint64_t until_ns)
{
	struct fiber *fiber = &fibers[self];

	if (fiber->state == RUNNABLE)
		fiber->state = WAITING;
	fiber->address = address;
	fiber->until_ns = until_ns;
	fiber->woken = false;
	if (until_ns < next_ns)
		next_ns = until_ns;
	points++;
	choose_and_switch();
	fiber->address = NULL;
	return fiber->woken;
}

static void wake(struct fiber *fiber)
{
	fiber->state = RUNNABLE;
	fiber->woken = true;
}

void fiber_wake_all(const void *address)
{
	for (unsigned i = 0; i < count; i++)
		if (fibers[i].state == WAITING && fibers[i].address == address)
			wake(&fibers[i]);
}

void fiber_wake_one(const void *address)
{
	unsigned n = 0, chosen;

	for (unsigned i = 0; i < count; i++)
		n += fibers[i].state == WAITING && fibers[i].address == address;
	if (n == 0)
		return;
	chosen = (unsigned)rng_below(&rng, n);
	for (unsigned i = 0; i < count; i++)
		if (fibers[i].state == WAITING && fibers[i].address == address && chosen-- == 0)
			wake(&fibers[i]);
}

static const char asleep[1];

void fiber_sleep_until(uint64_t ns)
{
	(void)fiber_wait(asleep, ns);
}

/* ---- life ------------------------------------------------------------------------------------ */

void fibers_begin(const struct fiber_options *given)
{
	options = *given;
	rng_init(&rng, options.seed);
	now_ns = options.now_ns;
	next_ns = FIBER_FOREVER;
	dl_iterate_phdr(find_tls, NULL);
	if (tls_bytes > TLS_MOST)
		finding("more thread-local variables than a fiber has room for");
	fibers[0] = (struct fiber){ .state = RUNNABLE, .name = "main", .begun = true, .rank = rng_next(&rng) };
	count = 1;
	set_left();
	running = true;
}

void fibers_calm(void)
{
	options.freeze = options.sites = options.windows = 0;
	options.tick_ns = options.tick_ns < CALM_TICK_NS ? options.tick_ns : CALM_TICK_NS;
	options.policy = FIBER_UNIFORM;
}

void fibers_hold(bool (*goes_on)(unsigned number))
{
	only = goes_on;
}

static void prepare_first(struct fiber *fiber)
{
	getcontext(&fiber->first);
	fiber->first.uc_stack.ss_sp = fiber->stack;
	fiber->first.uc_stack.ss_size = STACK_BYTES;
	fiber->first.uc_link = NULL;
	makecontext(&fiber->first, fiber_main, 0);
}

unsigned fiber_start(void *(*run)(void *context), void *context)
{
	struct fiber *fiber;
	unsigned number = 1;

	while (number < count && fibers[number].state != FREE)
		number++;
	if (number == FIBERS_MOST)
		finding("too many fibers");
	fiber = &fibers[number];
	if (!fiber->stack)
		fiber->stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fiber->stack == MAP_FAILED || mprotect(fiber->stack, 4096, PROT_NONE) != 0)
		finding("no memory for a stack");
	fiber->state = RUNNABLE;
	fiber->begun = false;
	fiber->run = run;
	fiber->context = context;
	fiber->name = "fiber";
	fiber->rank = rng_next(&rng);
	memset(fiber->tls, 0, tls_bytes);
	memcpy(fiber->tls, tls_image, tls_image_bytes);
	prepare_first(fiber);
	if (number == count)
		count++;
	fiber_point(1);
	return number;
}

void *fiber_join(unsigned number)
{
	struct fiber *fiber = &fibers[number];

	while (fiber->state != ENDED)
		(void)fiber_wait(fiber, FIBER_FOREVER);
	fiber->state = FREE;
	return fiber->result;
}

unsigned fiber_self(void)
{
	return self;
}

void fiber_name(unsigned number, const char *name)
{
	fibers[number].name = name;
}

uint64_t fiber_points(void)
{
	return points;
}

void fiber_call_at_point(uint64_t point, void (*call)(void))
{
	call_point = point;
	call_then = call;
}

uint64_t fiber_switches(void)
{
	return switches;
}

uint64_t fiber_hash(void)
{
	return hash;
}

void fibers_show(int fd)
{
	static const char *const words[] = { "free", "can go on", "waits", "has ended" };

	for (unsigned i = 0; i < count; i++)
		if (fibers[i].state == RUNNABLE || fibers[i].state == WAITING)
			dprintf(fd, "  fiber %u, %s, %s%s\n", i, fibers[i].name, words[fibers[i].state],
				i == self && running ? " (it runs)" : "");
}
