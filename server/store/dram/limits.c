/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/dram/limits.h"

#define FLOORS_MOST(budget) ((budget) / 8 * 7) /* of what items may cost */
#define FLASH_FLOORS_MOST(capacity) ((capacity) / 4 * 3) /* of the flash: the rest is rewritten for others */
#define HOLD_MS 1000u
#define WALK_LINES 8u /* in one hold of a stripe */
#define WALK_OBJECTS 4096u /* in one step */
#define FILL_MS 1000u /* a limit of a byte per second fills its bucket too */
#define BURST_S 10 /* of a limit on writes may be written at once, or a segment */

/* ---- names ----------------------------------------------------------------------------------- */

/* Names come from the operator, so nobody can choose collisions. Ends and length differ in nearly all sets of names. */
static inline uint32_t limits_hash(const char *name, size_t length)
{
	uint64_t first = 0, last = 0;

	if (length >= 8) {
		memcpy(&first, name, 8);
		memcpy(&last, name + length - 8, 8);
	} else if (length >= 4) {
		memcpy(&first, name, 4);
		memcpy(&last, name + length - 4, 4);
	} else {
		for (size_t i = 0; i < length; i++)
			first = first << 8 | (unsigned char)name[i];
	}
	return (uint32_t)(((first * 0x9e3779b97f4a7c15ull ^ last) + length) * 0xd6e8feb86659fd93ull >>
			  (64 - LIMITS_SLOT_BITS));
}

/* Returns the name's application; or NULL, with the empty slot where the search has ended. */
static inline struct limited *limits_seek(const struct limits *limits, const char *name, size_t length, uint32_t *slot)
{
	for (*slot = limits_hash(name, length);; *slot = (*slot + 1) % LIMITS_SLOTS) {
		struct limited *app = atomic_load_explicit(&limits->slot[*slot], memory_order_acquire);

		if (!app || (app->name_length == length && memcmp(app->name, name, length) == 0))
			return app;
	}
}

struct limited *limits_find(const struct limits *limits, const char *key, size_t key_length)
{
	size_t most = atomic_load_explicit(&limits->longest, memory_order_relaxed) + 1u;
	const char *end = memchr(key, limits->delimiter, key_length < most ? key_length : most);
	uint32_t slot;

	return end && end > key ? limits_seek(limits, key, (size_t)(end - key), &slot) : NULL;
}

/* The name is new, and there is room for it. Readers see it once all of it is there. */
static struct limited *limits_add(struct limits *limits, const char *name, uint32_t slot)
{
	struct limited *app = mem_aligned(CACHE_LINE, sizeof(*app));
	uint32_t count = atomic_load_explicit(&limits->count, memory_order_relaxed);

	must(app && count < STORE_LIMITED_MOST);
	memset(app, 0, sizeof(*app));
	app->name_length = (uint8_t)strlen(name);
	memcpy(app->name, name, app->name_length);
	atomic_store(&app->ceiling, APP_LIMIT_NONE);
	atomic_store(&app->flash_ceiling, APP_LIMIT_NONE);
	atomic_store(&app->write, APP_LIMIT_NONE);
	if (app->name_length > atomic_load_explicit(&limits->longest, memory_order_relaxed))
		atomic_store(&limits->longest, app->name_length);
	atomic_store_explicit(&limits->of[count], app, memory_order_release);
	atomic_store_explicit(&limits->count, count + 1, memory_order_release);
	atomic_store_explicit(&limits->slot[slot], app, memory_order_release);
	return app;
}

static unsigned limits_count_new(const struct limits *limits, const struct app_limits *wanted)
{
	unsigned new = 0;
	uint32_t slot;

	for (unsigned i = 0; i < wanted->count; i++)
		new += limits_seek(limits, wanted->of[i].name, strlen(wanted->of[i].name), &slot) == NULL;
	return new;
}

/* ---- setting --------------------------------------------------------------------------------- */

static void limited_set(struct limited *app, const struct app_limit *limit, uint64_t burst)
{
	bool writes = limit->write != APP_LIMIT_NONE && limit->write > 0;

	/* A bucket that begins is full, like that of a start. */
	if (writes && atomic_load(&app->write) == APP_LIMIT_NONE)
		atomic_store(&app->tokens, (int64_t)burst);
	atomic_store(&app->floor, limit->dram_floor);
	atomic_store(&app->ceiling, limit->dram_ceiling);
	atomic_store(&app->flash_floor, limit->flash_floor);
	atomic_store(&app->flash_ceiling, limit->flash_ceiling);
	atomic_store(&app->write, limit->write);
	atomic_store(&app->active, true);
}

static void limited_clear(struct limited *app)
{
	atomic_store(&app->active, false);
	atomic_store(&app->floor, 0);
	atomic_store(&app->floor_held, 0);
	atomic_store(&app->ceiling, APP_LIMIT_NONE);
	atomic_store(&app->flash_floor, 0);
	atomic_store(&app->flash_floor_held, 0);
	atomic_store(&app->flash_ceiling, APP_LIMIT_NONE);
	atomic_store(&app->write, APP_LIMIT_NONE);
}

static bool app_limits_have(const struct app_limits *limits, const struct limited *app)
{
	for (unsigned i = 0; i < limits->count; i++)
		if (strlen(limits->of[i].name) == app->name_length &&
		    memcmp(limits->of[i].name, app->name, app->name_length) == 0)
			return true;
	return false;
}

static uint64_t limits_burst(const struct store *store, uint64_t write)
{
	return write * BURST_S > store->segment_bytes ? write * BURST_S : store->segment_bytes;
}

/* Sets all limits, of which the names fit in. True: there are new names. */
static bool limits_set(struct store *store, struct limits *limits, const struct app_limits *wanted)
{
	bool any_new = false, writes = false;

	for (uint32_t n = 0; n < limits_names(limits); n++)
		if (!app_limits_have(wanted, limits_number(limits, n)))
			limited_clear(limits_number(limits, n));
	for (unsigned i = 0; i < wanted->count; i++) {
		const struct app_limit *limit = &wanted->of[i];
		uint32_t slot;
		struct limited *app = limits_seek(limits, limit->name, strlen(limit->name), &slot);

		any_new |= !app;
		limited_set(app ? app : limits_add(limits, limit->name, slot), limit,
			    limits_burst(store, limit->write));
		writes |= limit->write != APP_LIMIT_NONE || limit->flash_ceiling != APP_LIMIT_NONE;
	}
	atomic_store(&limits->writes, writes);
	return any_new;
}

static struct limits *limits_make(const struct store *store)
{
	struct limits *limits = mem_must_zalloc(sizeof(*limits));

	limits->delimiter = store->config.app_delimiter;
	limits->tokens_at_ms = limits->held_ms = clk_now_ms(store->clock);
	return limits;
}

void limits_init(struct store *store)
{
	const struct app_limits *wanted = store->config.limits;

	store->config.limits = NULL; /* the caller may drop it */
	if (!wanted || wanted->count == 0)
		return;
	struct limits *limits = limits_make(store);
	(void)limits_set(store, limits, wanted);
	atomic_store(&store->limits, limits);
	limits_hold_floors(store, clk_now_ms(store->clock), true);
}

void limits_fini(struct store *store)
{
	struct limits *limits = store_limits(store);

	for (uint32_t n = 0; limits && n < limits_names(limits); n++) {
		mem_free(limits_number(limits, n)->on_flash);
		mem_free(limits_number(limits, n));
	}
	if (limits)
		mem_free(limits->flash_objects);
	mem_free(limits);
	atomic_store(&store->limits, NULL);
}

int store_set_limits(struct store *store, const struct app_limits *wanted)
{
	struct limits *limits = store_limits(store);

	if (!limits && wanted->count == 0)
		return FS_OK;
	if (store->frugal)
		return FS_EINVAL; /* ITEM_LIMITED has another meaning there */
	if (limits && limits_names(limits) + limits_count_new(limits, wanted) > STORE_LIMITED_MOST)
		return FS_ERANGE;
	if (!limits) {
		limits = limits_make(store);
		(void)limits_set(store, limits, wanted);
		atomic_store(&limits->walks_asked, 1);
		atomic_store_explicit(&store->limits, limits, memory_order_release);
	} else if (limits_set(store, limits, wanted)) {
		atomic_fetch_add(&limits->walks_asked, 1);
	}
	limits_hold_floors(store, clk_now_ms(store->clock), true);
	store->wake(store);
	return FS_OK;
}

/* ---- accounts -------------------------------------------------------------------------------- */

static void limited_add(struct limited *app, int64_t bytes, int64_t items)
{
	atomic_fetch_add_explicit(&app->bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&app->items, items, memory_order_relaxed);
}

void limits_link(struct limits *limits, struct item *item)
{
	struct limited *app = limits_of(limits, item);

	debug_must(item->state & ITEM_LINKED && !(item->state & ITEM_LIMITED));
	if (!app)
		return;
	item->state |= ITEM_LIMITED;
	limited_add(app, (int64_t)item_cost(item), 1);
}

void limits_unlink(struct limits *limits, struct item *item)
{
	struct limited *app = limits_of(limits, item);

	must(item->state & ITEM_LIMITED && app); /* names stay */
	item->state &= (uint8_t)~ITEM_LIMITED;
	limited_add(app, -(int64_t)item_cost(item), -1);
}

void limits_replace(struct limits *limits, struct item *old, struct item *new)
{
	struct limited *app = limits_of(limits, new);
	int64_t more = (int64_t)item_cost(new) - (int64_t)item_cost(old);

	must(old->state & ITEM_LIMITED && app);
	old->state &= (uint8_t)~ITEM_LIMITED;
	new->state |= ITEM_LIMITED;
	if (more != 0)
		atomic_fetch_add_explicit(&app->bytes, more, memory_order_relaxed);
}

bool limits_any_exceeds(const struct limits *limits)
{
	for (uint32_t n = 0; n < limits_names(limits); n++)
		if (limited_exceeds(limits_number(limits, n), 0))
			return true;
	return false;
}

bool limits_have_room(const struct store *store, const char *key, size_t key_length, uint64_t cost)
{
	const struct limits *limits = store_limits(store);
	const struct limited *app = limits ? limits_find(limits, key, key_length) : NULL;

	return !app || !limited_exceeds(app, cost);
}

/* ---- floors ---------------------------------------------------------------------------------- */

/* The part of a floor that is held, where all of them are sum and may be most. */
static uint64_t floor_part(uint64_t floor, uint64_t sum, uint64_t most)
{
	return sum > most ? (uint64_t)((double)floor * ((double)most / (double)sum)) : floor;
}

void limits_hold_floors(struct store *store, uint64_t now_ms, bool now)
{
	struct limits *limits = store_limits(store);
	uint64_t sum = 0, flash_sum = 0, most, flash_most;

	if (!limits || (!now && now_ms < limits->held_ms + HOLD_MS))
		return;
	if (!now)
		limits->held_ms = now_ms;
	most = FLOORS_MOST(store_item_budget(store));
	flash_most = FLASH_FLOORS_MOST(atomic_load(&store->flash_capacity));
	for (uint32_t n = 0; n < limits_names(limits); n++) {
		sum += atomic_load(&limits_number(limits, n)->floor);
		flash_sum += atomic_load(&limits_number(limits, n)->flash_floor);
	}
	for (uint32_t n = 0; n < limits_names(limits); n++) {
		struct limited *app = limits_number(limits, n);

		atomic_store_explicit(&app->floor_held, floor_part(atomic_load(&app->floor), sum, most),
				      memory_order_relaxed);
		atomic_store_explicit(&app->flash_floor_held,
				      floor_part(atomic_load(&app->flash_floor), flash_sum, flash_most),
				      memory_order_relaxed);
	}
}

/* ---- the walk -------------------------------------------------------------------------------- */

static unsigned walk_line(struct limits *limits, struct stripe *stripe, uint32_t line)
{
	unsigned met = 0;

	stripe_prefetch(stripe, line);
	for (unsigned link = 0; link < LINE_LINKS; link++) {
		struct item *item = stripe_item(stripe, line, link);

		if (!item)
			continue;
		met++;
		if (!(item->state & ITEM_LIMITED))
			limits_link(limits, item);
	}
	return met;
}

/* Visits some lines. True: those were the stripe's last. */
static bool walk_lines(struct limits *limits, struct stripe *stripe, unsigned *met)
{
	bool last;

	lock_acquire(&stripe->lock);
	uint32_t line = position_line(&limits->walk_at, stripe), end = line + WALK_LINES;
	for (; line < end && line < stripe_lines(stripe); line++)
		*met += 1 + walk_line(limits, stripe, line);
	last = line >= stripe_lines(stripe);
	position_set(&limits->walk_at, stripe, last ? 0 : line);
	lock_release(&stripe->lock);
	return last;
}

/* A walk that was asked for while another one is under way begins when that one ends: what that has passed may have names
   that are new. */
bool limits_count_step(struct store *store)
{
	struct limits *limits = store_limits(store);
	unsigned met = 0;

	if (!limits || atomic_load(&limits->walks_asked) == atomic_load(&limits->walks_done))
		return false;
	if (limits->walk == 0) {
		limits->walk = atomic_load(&limits->walks_asked);
		limits->walk_stripe = 0;
		limits->walk_at = (struct line_position){ 0 };
	}
	while (met < WALK_OBJECTS && limits->walk_stripe < store->stripe_count)
		limits->walk_stripe += walk_lines(limits, &store->stripes[limits->walk_stripe], &met);
	if (limits->walk_stripe == store->stripe_count) {
		atomic_store(&limits->walks_done, limits->walk);
		limits->walk = 0;
	}
	return true;
}

/* ---- writes ---------------------------------------------------------------------------------- */

static bool limited_may_write(const struct limited *app, int64_t ahead)
{
	uint64_t write = atomic_load_explicit(&app->write, memory_order_relaxed);

	if (write == APP_LIMIT_NONE)
		return true;
	return write > 0 && atomic_load_explicit(&app->tokens, memory_order_relaxed) > ahead;
}

bool limits_may_write(const struct store *store, const char *key, size_t key_length)
{
	const struct limits *limits = store_limits(store);
	struct limited *app;

	if (!limits || !atomic_load_explicit(&limits->writes, memory_order_relaxed))
		return true;
	app = limits_find(limits, key, key_length);
	if (!app || (limited_may_write(app, 0) && !limited_exceeds_flash(app, 0)))
		return true;
	atomic_fetch_add_explicit(&app->write_refusals, 1, memory_order_relaxed);
	return false;
}

void limits_fill(struct store *store, uint64_t now_ms)
{
	struct limits *limits = store_limits(store);

	if (!limits || !atomic_load(&limits->writes) || now_ms < limits->tokens_at_ms + FILL_MS)
		return;
	for (uint32_t n = 0; n < limits_names(limits); n++) {
		struct limited *app = limits_number(limits, n);
		uint64_t write = atomic_load(&app->write);
		int64_t tokens = atomic_load(&app->tokens), most;

		if (write == APP_LIMIT_NONE || write == 0)
			continue;
		most = (int64_t)limits_burst(store, write);
		tokens += (int64_t)((double)write * (double)(now_ms - limits->tokens_at_ms) / 1000);
		atomic_store(&app->tokens, tokens < most ? tokens : most);
	}
	limits->tokens_at_ms = now_ms;
}

void limits_begin_plan(struct store *store)
{
	const struct limits *limits = store_limits(store);

	for (uint32_t n = 0; limits && n < limits_names(limits); n++)
		limits_number(limits, n)->planned = limits_number(limits, n)->planned_cost = 0;
}

bool limits_take(struct store *store, const struct item *item, uint32_t record_bytes)
{
	const struct limits *limits = store_limits(store);
	struct limited *app = limits ? limits_of(limits, item) : NULL;
	uint64_t cost = item_cost(item);

	if (!app)
		return true;
	if (limited_needs(app, cost + (uint64_t)app->planned_cost))
		return false;
	if (!limited_may_write(app, app->planned) ||
	    limited_exceeds_flash(app, (uint64_t)app->planned + record_bytes)) {
		atomic_fetch_add_explicit(&app->write_refusals, 1, memory_order_relaxed);
		return false;
	}
	app->planned += record_bytes;
	app->planned_cost += (int64_t)cost;
	return true;
}

bool limits_need_flash(const struct store *store, const struct item *item)
{
	const struct limits *limits = store_limits(store);
	const struct limited *app = limits ? limits_of(limits, item) : NULL;

	return app && limited_needs_flash(app, (uint64_t)app->planned);
}

void limits_note_written(struct store *store, const struct item *item, uint32_t segment, bool moved)
{
	const struct limits *limits = store_limits(store);
	struct limited *app = limits ? limits_of(limits, item) : NULL;
	uint32_t bytes = item_record_bytes(item);

	if (!app)
		return;
	atomic_fetch_add_explicit(&app->write_bytes, bytes, memory_order_relaxed);
	if (atomic_load(&app->write) != APP_LIMIT_NONE)
		atomic_fetch_sub_explicit(&app->tokens, bytes, memory_order_relaxed);
	app->flash_kept -= app->flash_kept < bytes ? app->flash_kept : bytes;
	if (moved && app->on_flash && segment < limits->segments)
		app->on_flash[segment] += bytes;
}

/* ---- figures --------------------------------------------------------------------------------- */

bool store_get_limited(const struct store *store, unsigned n, struct store_limited *out)
{
	const struct limits *limits = store_limits(store);
	const struct limited *app;
	int64_t items;

	if (!limits || n >= limits_names(limits))
		return false;
	app = limits_number(limits, n);
	items = atomic_load(&app->items);
	*out = (struct store_limited){ .limit = { .dram_floor = atomic_load(&app->floor),
						  .dram_ceiling = atomic_load(&app->ceiling),
						  .flash_floor = atomic_load(&app->flash_floor),
						  .flash_ceiling = atomic_load(&app->flash_ceiling),
						  .write = atomic_load(&app->write) },
				       .limited = atomic_load(&app->active),
				       .floor_held = atomic_load(&app->floor_held),
				       .flash_floor_held = atomic_load(&app->flash_floor_held),
				       .flash_bytes = atomic_load(&app->flash_bytes),
				       .flash_counted = atomic_load(&app->flash_counted) / 1000.0,
				       .dram_bytes = limited_bytes(app),
				       .dram_items = items > 0 ? (uint64_t)items : 0,
				       .ceiling_evictions = atomic_load(&app->ceiling_evictions),
				       .floor_evictions = atomic_load(&app->floor_evictions),
				       .write_bytes = atomic_load(&app->write_bytes),
				       .write_refusals = atomic_load(&app->write_refusals) };
	memcpy(out->limit.name, app->name, app->name_length);
	return true;
}

bool store_limits_are_counted(const struct store *store)
{
	const struct limits *limits = store_limits(store);

	return !limits || atomic_load(&limits->walks_asked) == atomic_load(&limits->walks_done);
}
