/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/dram/limits.h"

#include "base/fault.h"

#define FLOORS_MOST(budget) ((budget) / 8 * 7) /* of what items may cost */
#define FLASH_FLOORS_MOST(capacity) ((capacity) / 4 * 3) /* of the flash: the rest is rewritten for others */
#define HOLD_MS 1000u
#define WALK_LINES 8u /* in one hold of a stripe */
#define WALK_OBJECTS 4096u /* in one step */
#define FILL_MS 1000u /* a limit of a byte per second fills its bucket too */
#define BURST_S 10 /* of a limit on writes may be written at once, or a segment */

/* ---- names ----------------------------------------------------------------------------------- */

struct limited *limits_find_long(const struct limits *limits, const char *key, size_t key_length)
{
	const struct app_name name = app_name_of(key, key_length, limits->delimiters,
						 atomic_load_explicit(&limits->longest, memory_order_relaxed));
	uint32_t slot;

	return name.length > 0 ? limits_seek(limits, key, &name, &slot) : NULL;
}

/* Writes the name with its delimiter, as keys begin. Returns its length with it. */
static size_t limits_begin_key(const struct limits *limits, const char *name, char out[APP_LIMIT_NAME_MAX + 1])
{
	size_t length = strlen(name);

	must(length > 0 && length <= APP_LIMIT_NAME_MAX);
	memcpy(out, name, length);
	out[length] = (char)(limits->delimiters & 0xff);
	return length + 1;
}

static struct limited *limits_named(const struct limits *limits, const char *text)
{
	char key[APP_LIMIT_NAME_MAX + 1];
	size_t length = limits_begin_key(limits, text, key);
	const struct app_name name = app_name_of(key, length, limits->delimiters, length);
	uint32_t slot;

	return limits_seek(limits, key, &name, &slot);
}

/* Returns an application that can't be found yet; NULL: memory is out. */
static struct limited *limited_make(const struct limits *limits, const char *text)
{
	struct limited *app = fault_fires(FAULT_limits_memory) ? NULL : mem_zaligned(CACHE_LINE, sizeof(*app));

	if (!app)
		return NULL;
	size_t length = limits_begin_key(limits, text, app->name);
	const struct app_name name = app_name_of(app->name, length, limits->delimiters, length);
	app->name_first = name.first;
	app->name_last = name.last;
	app->name_length = (uint8_t)name.length;
	atomic_store(&app->ceiling, APP_LIMIT_NONE);
	atomic_store(&app->flash_ceiling, APP_LIMIT_NONE);
	atomic_store(&app->write, APP_LIMIT_NONE);
	return app;
}

/* The name is new, and there is room for it. Readers see it once all of it is there. */
static void limits_add(struct limits *limits, struct limited *app)
{
	const struct app_name name =
		app_name_of(app->name, app->name_length + 1u, limits->delimiters, app->name_length);
	uint32_t count = atomic_load_explicit(&limits->count, memory_order_relaxed), slot;

	must(count < STORE_LIMITED_MOST && !limits_seek(limits, app->name, &name, &slot));
	if (app->name_length > atomic_load_explicit(&limits->longest, memory_order_relaxed))
		atomic_store(&limits->longest, app->name_length);
	atomic_store_explicit(&limits->of[count], app, memory_order_release);
	atomic_store_explicit(&limits->count, count + 1, memory_order_release);
	atomic_store_explicit(&limits->slot[slot], app, memory_order_release);
}

/* Adds the names that are new. FS_OK: *any tells whether there are some; FS_ERANGE and FS_ENOMEM: none was added. */
static int limits_add_new(struct limits *limits, const struct app_limits *wanted, bool *any)
{
	struct limited *new[APP_LIMITS_MOST];
	unsigned count = 0;
	int result = FS_OK;

	for (unsigned i = 0; i < wanted->count && result == FS_OK; i++) {
		if (limits_named(limits, wanted->of[i].name))
			continue;
		if (limits_names(limits) + count >= STORE_LIMITED_MOST)
			result = FS_ERANGE;
		else if (!(new[count] = limited_make(limits, wanted->of[i].name)))
			result = FS_ENOMEM;
		else
			count++;
	}
	for (unsigned i = 0; i < count; i++) {
		if (result == FS_OK)
			limits_add(limits, new[i]);
		else
			mem_free(new[i]);
	}
	*any = result == FS_OK && count > 0;
	return result;
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

/* Sets all limits, whose names are there. */
static void limits_set(struct store *store, struct limits *limits, const struct app_limits *wanted)
{
	bool ceilings = false, writes = false;

	for (uint32_t n = 0; n < limits_names(limits); n++)
		if (!app_limits_have(wanted, limits_number(limits, n)))
			limited_clear(limits_number(limits, n));
	for (unsigned i = 0; i < wanted->count; i++) {
		const struct app_limit *limit = &wanted->of[i];

		limited_set(limits_named(limits, limit->name), limit, limits_burst(store, limit->write));
		ceilings |= limit->dram_ceiling != APP_LIMIT_NONE;
		writes |= limit->write != APP_LIMIT_NONE || limit->flash_ceiling != APP_LIMIT_NONE;
	}
	atomic_store(&limits->ceilings, ceilings);
	atomic_store(&limits->writes, writes);
}

/* Returns limits without names; NULL: memory is out. */
static struct limits *limits_make(const struct store *store)
{
	struct limits *limits = mem_zalloc(sizeof(*limits));

	must(store->config.app_delimiter);
	if (limits) {
		limits->delimiters = APP_NAME_EACH_BYTE * (unsigned char)store->config.app_delimiter;
		limits->tokens_at_ms = limits->held_ms = clk_now_ms(store->clock);
	}
	return limits;
}

void limits_init(struct store *store)
{
	const struct app_limits *wanted = store->config.limits;
	bool any_new;

	store->config.limits = NULL; /* the caller may drop it */
	if (!wanted || wanted->count == 0)
		return;
	struct limits *limits = limits_make(store);
	must(limits && limits_add_new(limits, wanted, &any_new) == FS_OK); /* without memory there is no start */
	limits_set(store, limits, wanted);
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
	struct limits *limits = store_limits(store), *made = NULL;
	bool any_new;
	int result;

	if (!limits && wanted->count == 0)
		return FS_OK;
	if (store->frugal)
		return FS_EINVAL; /* ITEM_LIMITED has another meaning there */
	if (!limits)
		limits = made = limits_make(store);
	result = limits ? limits_add_new(limits, wanted, &any_new) : FS_ENOMEM;
	if (result != FS_OK) {
		mem_free(made);
		return result;
	}
	limits_set(store, limits, wanted);
	if (any_new)
		atomic_fetch_add(&limits->walks_asked, 1);
	if (made)
		atomic_store_explicit(&store->limits, made, memory_order_release);
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

void limits_note_candidate(struct limits *limits, const struct item *item, unsigned group, int64_t bytes)
{
	struct limited *app = limits_of(limits, item);

	must(app); /* names stay */
	atomic_fetch_add_explicit(&app->candidate_bytes[group], bytes, memory_order_relaxed);
}

void limits_link(struct store *store, struct item *item)
{
	struct limits *limits = store_limits(store);
	struct limited *app = limits_of(limits, item);

	debug_must(item->state & ITEM_LINKED && !(item->state & ITEM_LIMITED));
	if (!app)
		return;
	item->state |= ITEM_LIMITED;
	limited_add(app, (int64_t)item_cost(item), 1);
	if (item->state & ITEM_CANDIDATE)
		limits_note_candidate(limits, item, item_group(store, item), item_record_bytes(item));
}

void limits_unlink(struct limits *limits, struct item *item)
{
	struct limited *app = limits_of(limits, item);

	must(item->state & ITEM_LIMITED && app); /* names stay */
	debug_must(!(item->state & ITEM_CANDIDATE));
	item->state &= (uint8_t)~ITEM_LIMITED;
	limited_add(app, -(int64_t)item_cost(item), -1);
}

void limits_account_change(struct limits *limits, const struct item *old, const struct item *new)
{
	int64_t more = (int64_t)item_cost(new) - (int64_t)item_cost(old);

	if (more == 0)
		return;
	struct limited *app = limits_of(limits, new);
	must(app); /* names stay */
	atomic_fetch_add_explicit(&app->bytes, more, memory_order_relaxed);
}

bool limited_mostly_candidates(const struct limited *app)
{
	int64_t bytes = 0;

	for (unsigned g = 0; g < GROUPS; g++)
		bytes += atomic_load_explicit(&app->candidate_bytes[g], memory_order_relaxed);
	return bytes > (int64_t)(limited_bytes(app) / 4 * 3);
}

uint64_t limited_may_plan(const struct limited *app)
{
	uint64_t ceiling = atomic_load_explicit(&app->flash_ceiling, memory_order_relaxed);
	uint64_t write = atomic_load_explicit(&app->write, memory_order_relaxed);
	int64_t flash = (int64_t)atomic_load_explicit(&app->flash_bytes, memory_order_relaxed), most = 0, part;

	for (unsigned g = 0; g < GROUPS; g++)
		most += atomic_load_explicit(&app->candidate_bytes[g], memory_order_relaxed);
	part = (int64_t)limited_bytes(app) - (int64_t)atomic_load_explicit(&app->floor_held, memory_order_relaxed);
	most = part < most ? part : most;
	if (ceiling != APP_LIMIT_NONE) {
		part = (int64_t)ceiling - flash;
		most = part < most ? part : most;
	}
	if (write != APP_LIMIT_NONE) {
		part = write > 0 ? atomic_load_explicit(&app->tokens, memory_order_relaxed) : 0;
		most = part < most ? part : most;
	}
	return most > 0 ? (uint64_t)most : 0;
}

uint64_t limits_excess(const struct limits *limits, bool margins)
{
	uint64_t sum = 0;

	for (uint32_t n = 0; n < limits_names(limits); n++) {
		const struct limited *app = limits_number(limits, n);
		uint64_t margin = margins ? limited_margin(app) : 0;

		if (!limited_exceeds(app, margin / 2))
			continue;
		uint64_t wanted = limited_bytes(app) + margin, ceiling = atomic_load(&app->ceiling);
		sum += wanted > ceiling ? wanted - ceiling : 0;
	}
	return sum;
}

bool limits_have_room(const struct store *store, const char *key, size_t key_length, uint64_t cost)
{
	const struct limits *limits = store_limits(store);
	const struct limited *app = limits ? limits_find(limits, key, key_length) : NULL;

	return !app || !limited_exceeds(app, cost + limited_margin(app));
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

static unsigned walk_line(struct store *store, struct stripe *stripe, uint32_t line)
{
	unsigned met = 0;

	stripe_prefetch(stripe, line);
	for (unsigned link = 0; link < LINE_LINKS; link++) {
		struct item *item = stripe_item(stripe, line, link);

		if (!item)
			continue;
		met++;
		if (!(item->state & ITEM_LIMITED))
			limits_link(store, item);
	}
	return met;
}

/* Visits some lines. True: those were the stripe's last. */
static bool walk_lines(struct store *store, struct limits *limits, struct stripe *stripe, unsigned *met)
{
	bool last;

	lock_acquire(&stripe->lock);
	uint32_t line = position_line(&limits->walk_at, stripe), end = line + WALK_LINES;
	for (; line < end && line < stripe_lines(stripe); line++)
		*met += 1 + walk_line(store, stripe, line);
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

	if (!limits || limits_are_counted(limits))
		return false;
	if (limits->walk == 0) {
		limits->walk = atomic_load(&limits->walks_asked);
		limits->walk_stripe = 0;
		limits->walk_at = (struct line_position){ 0 };
	}
	while (met < WALK_OBJECTS && limits->walk_stripe < store->stripe_count)
		limits->walk_stripe += walk_lines(store, limits, &store->stripes[limits->walk_stripe], &met);
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

	return !limits || limits_are_counted(limits);
}
