/* SPDX-License-Identifier: BSD-3-Clause */
/* The start: the file of saved objects is judged and removed, and its objects come into DRAM while clients are served. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/log.h"
#include "server/store/cleaner/cleaner_internal.h"
#include "server/store/cleaner/saved_items.h"
#include "server/store/state/losses.h"

#define CHANGED_SHARE 512 /* of -m, the most that the table of changed keys may take */
#define FREE_SHARE 256 /* of -m: kept free for sets; under -M, what objects may take beyond it */
#define NICENESS 10
#define MOST_CHUNK_BYTES (ITEM_VALUE_MAX + (2ull << 20))

struct item_loader {
	struct store_context context;
	struct parts_reader *reader; /* NULL: nothing to load, or all is done */
	uint32_t number; /* of the next part */
	uint8_t *bytes; /* of a part */
	uint64_t capacity;
	uint64_t objects, began_us, cas_next; /* objects: no fewer than in the file */
	bool full; /* an object had no room: with eviction, further ones are passed over */
	bool classifier, same; /* counts follow the objects; same: they may be used */
	bool counting; /* the next part has counts */
	uint32_t counts_number;
	pthread_t thread;
	bool threaded; /* the store's one thread's */
	_Atomic bool stopping;
	/* The loader's; read by any thread: */
	_Atomic int start;
	_Atomic bool loading;
	_Atomic uint64_t loaded, skipped, left;
};

static void count_one(_Atomic uint64_t *count)
{
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

/* ---- the judgement --------------------------------------------------------------------------- */

static enum saved_start start_of(int code)
{
	switch (code) {
	case FS_OK:
		return SAVED_START_WARM;
	case FS_ENOTFOUND:
		return SAVED_START_NO_FILE;
	case FS_EVERSION:
		return SAVED_START_VERSION;
	case FS_ECORRUPT:
	case FS_ESHORT:
		return SAVED_START_DAMAGED;
	default:
		return SAVED_START_UNREADABLE;
	}
}

/* Takes over what the saved objects depend on. A warm start of the flash has done so, with a flush that may have come
   after the head was written. */
static void take_head(struct store *store, const struct saved_head *head)
{
	if (store->index && restart_is_warm(store))
		return;
	store->origin_us = head->origin_us;
	restart_resume(store, head->stopped_us);
	atomic_store(&store->flush_cas, head->flush_cas);
	atomic_store(&store->flush_at, (uint32_t)head->flush_at);
	if (!store->segments)
		atomic_store(&store->cas_next, head->cas_next);
	kept_take(store);
	if (store->losses && head->flush_at) {
		uint32_t now = store_now_seconds(store, clk_now_us(store->clock));

		losses_flush_at(store, head->flush_at > now ? (uint32_t)head->flush_at - now : 0);
	}
	if (store->losses)
		losses_served(store);
}

/* Judges the file, and reads its head. */
static enum saved_start judge_file(struct store *store, const char *path, struct saved_head *head)
{
	struct item_loader *loader = store->loader;
	enum saved_start start;
	int result = parts_open(&loader->reader, path);

	if (result == FS_OK)
		result = parts_take(loader->reader, PARTS_ITEMS_HEAD, 0, head, sizeof(*head));
	start = start_of(result);
	if (start == SAVED_START_WARM)
		start = saved_head_judge(store, head);
	if (start == SAVED_START_WARM && store->classifier) {
		loader->classifier = true;
		start = start_of(clf_load(store->classifier, loader->reader, &loader->same));
	}
	return start;
}

/* Makes the table of changed keys. */
static bool prepare(struct store *store, const struct saved_head *head)
{
	struct item_loader *loader = store->loader;
	struct changed_keys *changed = changed_make(head->objects, store->config.memory_bytes / CHANGED_SHARE);

	if (!changed)
		return false;
	loader->objects = head->objects;
	loader->cas_next = head->cas_next;
	loader->began_us = clk_now_us(store->clock);
	context_init(&loader->context, store, store->config.seed + 3);
	atomic_store(&store->loader_bytes, changed->bytes);
	atomic_store(&store->changed, changed);
	atomic_store(&loader->loading, true);
	return true;
}

static enum saved_start open_file(struct store *store)
{
	bool off = store->config.restart_max_downtime_us == 0;
	struct item_loader *loader = store->loader;
	char path[SAVED_PATH_BYTES];
	struct saved_head head;
	enum saved_start start;

	if (!store->config.state_dir)
		return SAVED_START_NO_STATE_DIR;
	if (!store->config.look_only)
		(void)!saved_forget_others(store);
	saved_path(store, path);
	start = judge_file(store, path, &head);
	/* Another daemon's file stays, unless it is kin. The open file outlives its name: from here on no other start finds it. */
	if ((start != SAVED_START_OTHER_DAEMON || saved_is_made_stale(store, &head)) && !store->config.look_only &&
	    parts_remove(path) != FS_OK) {
		log_warn("memory: %s can't be removed: %s", path, strerror(errno));
		start = start == SAVED_START_WARM ? SAVED_START_KEPT : start;
	}
	if (off && start != SAVED_START_KEPT)
		start = SAVED_START_OFF;
	if (start == SAVED_START_WARM && !prepare(store, &head))
		start = SAVED_START_NO_MEMORY;
	if (start == SAVED_START_WARM) {
		take_head(store, &head);
	} else {
		parts_close(loader->reader);
		loader->reader = NULL;
	}
	return start;
}

void loader_open(struct store *store)
{
	enum saved_start start;

	store->loader = mem_must_zalloc(sizeof(*store->loader));
	start = open_file(store);
	atomic_store(&store->loader->start, (int)start);
	if (start == SAVED_START_WARM)
		log_notice("memory: warm start, with up to %" PRIu64 " objects to load", store->loader->objects);
	else if (start > SAVED_START_NO_FILE)
		log_notice("memory: %s", saved_start_text(start));
}

/* ---- objects --------------------------------------------------------------------------------- */

/*
 * Sets go before: the loader leaves as much free as the keeper does. Under -M what -m held at the stop has room again:
 * the loader's own memory, which goes with its end, doesn't count, and tables may come out larger with another hash seed.
 */
static bool has_room(struct store *store, uint64_t bytes)
{
	int64_t share = (int64_t)(store_memory_limit(store) / FREE_SHARE), keep;

	if (!store->config.evict)
		keep = -share - (int64_t)atomic_load(&store->loader_bytes);
	else
		keep = store->index ? (int64_t)(store->segment_bytes / 4) : share;
	return store_free_bytes(store) >= keep + (int64_t)mem_cost(bytes);
}

/* The file has the last used objects first, so with eviction it is used up to the first that has no room. Under -M, where
   any object matters as much, a smaller one may still have room. */
static bool is_over(const struct item_loader *loader, const struct store *store)
{
	return loader->full && store->config.evict;
}

/*
 * Is the object still the key's? The stripe is held. An object that was saved has no slot of its own; where a slot
 * might be the key's all the same, losing the object costs less than a doubt. Under -M nothing is lost for a doubt. In a
 * segment of bins there is no record of the key, by the kills that were saved, or one that is equal.
 */
static bool may_link(struct store *store, struct stripe *stripe, uint64_t hash, struct item *item)
{
	struct fidx_match match[FIDX_MAX_MATCHES];
	struct fidx_extent extent;
	struct fidx_key key;
	unsigned matches;
	bool has_extent;

	if (changed_has(atomic_load(&store->changed), hash) ||
	    stripe_find(stripe, hash, item_key(item), item->key_length))
		return false;
	if (!store->index || !store->config.evict)
		return true;
	if (bins_may_hold(store, hash))
		item->state |= ITEM_KEPT;
	fidx_key_of(store->index, hash, &key);
	return !flash_may_hold(store, &key, match, &matches, &extent, &has_extent);
}

static struct item *item_from_saved(struct item_loader *loader, const struct saved_item *saved, const char *key)
{
	bool extra = saved->shown_cas || saved->marks;
	struct item *item = (extra ? item_new_extra : item_new)(
		&loader->context, key, saved->key_length, saved->client_flags, saved->expiry, saved->value_length);

	if (!item)
		return NULL;
	memcpy(item_value(item), key + saved->key_length, saved->value_length);
	item_set_cas(item, saved->cas);
	item_set_features(item, &saved->features);
	item->state = saved->state & (ITEM_CLOCK | ITEM_FETCHED);
	if (extra) {
		item_extra(item)->shown_cas = saved->shown_cas;
		item_extra(item)->marks = saved->marks & (ITEM_STALE | ITEM_WIN_SENT);
	}
	return item;
}

static void load_item(struct store *store, const struct saved_item *saved, const char *key, uint32_t now_seconds)
{
	struct item_loader *loader = store->loader;
	uint64_t hash = store_hash(store, key, saved->key_length);
	struct stripe *stripe = store_stripe(store, hash);
	struct item *item = NULL;

	if (is_over(loader, store) || !has_room(store, saved_bytes(saved->key_length, saved->value_length))) {
		loader->full = true;
		return;
	}
	if (store_alive(store, saved->expiry, saved->cas, now_seconds) &&
	    limits_have_room(store, key, saved->key_length, saved_bytes(saved->key_length, saved->value_length)))
		item = item_from_saved(loader, saved, key);
	if (!item) {
		count_one(&loader->skipped);
		return;
	}
	lock_acquire(&stripe->lock);
	if (may_link(store, stripe, hash, item) && stripe_link(store, stripe, hash, item)) {
		if (saved->state & ITEM_CANDIDATE && store->classifier && !item_marked(item))
			candidate_set(store, stripe, item);
		item = NULL;
	}
	lock_release(&stripe->lock);
	count_one(item ? &loader->skipped : &loader->loaded);
	if (item)
		item_release(&loader->context, item);
}

/* Could this object be in the file? Its length is believed only if it is within the part. */
static bool is_sound(const struct item_loader *loader, const struct saved_item *saved, uint64_t left)
{
	return saved->key_length > 0 && saved->key_length <= STORE_KEY_MAX && saved->value_length <= ITEM_VALUE_MAX &&
	       saved_bytes(saved->key_length, saved->value_length) <= left && saved->cas > 0 &&
	       saved->cas < loader->cas_next;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void free_bytes(struct store *store)
{
	struct item_loader *loader = store->loader;

	mem_free(loader->bytes);
	loader->bytes = NULL;
	atomic_fetch_sub(&store->loader_bytes, loader->capacity);
	loader->capacity = 0;
}

/* Reads the next part into bytes. FS_OK, or a code of the parts. */
static int read_chunk(struct store *store, uint64_t *length)
{
	struct item_loader *loader = store->loader;
	enum parts_kind kind = loader->counting ? PARTS_COUNTS : PARTS_ITEMS;
	uint32_t *number = loader->counting ? &loader->counts_number : &loader->number;
	int result = parts_next(loader->reader, kind, *number, length);

	if (result != FS_OK)
		return result;
	if (*length < sizeof(struct saved_chunk) || *length > MOST_CHUNK_BYTES)
		return FS_ECORRUPT;
	if (*length > loader->capacity) {
		free_bytes(store);
		loader->bytes = mem_alloc(*length);
		if (!loader->bytes)
			return FS_ENOMEM;
		loader->capacity = *length;
		atomic_fetch_add(&store->loader_bytes, *length);
	}
	(*number)++;
	return parts_get(loader->reader, loader->bytes);
}

/* Loads a part. FS_OK, and *last; or why no more can be read. */
static int load_chunk(struct store *store, bool *last)
{
	struct item_loader *loader = store->loader;
	uint32_t now_seconds = store_now_seconds(store, clk_now_us(store->clock));
	struct saved_chunk chunk;
	uint64_t length, at = sizeof(chunk);
	int result = read_chunk(store, &length);

	if (result != FS_OK)
		return result;
	memcpy(&chunk, loader->bytes, sizeof(chunk));
	*last = chunk.last != 0;
	store_apply_due_flush(store, now_seconds);
	for (uint32_t n = 0; n < chunk.objects; n++) {
		struct saved_item saved;

		if (length - at < sizeof(saved))
			return FS_ECORRUPT;
		memcpy(&saved, loader->bytes + at, sizeof(saved));
		if (!is_sound(loader, &saved, length - at))
			return FS_ECORRUPT;
		if (store_too_large(store, saved.key_length, saved.value_length))
			count_one(&loader->skipped);
		else
			load_item(store, &saved, (const char *)loader->bytes + at + sizeof(saved), now_seconds);
		at += saved_bytes(saved.key_length, saved.value_length);
	}
	context_settle(&loader->context);
	return at == length ? FS_OK : FS_ECORRUPT;
}

/* Loads a part of counts. FS_OK, and *last; or why no more can be read. */
static int load_counts(struct store *store, bool *last)
{
	struct item_loader *loader = store->loader;
	struct saved_counts head;
	uint64_t length;
	int result = read_chunk(store, &length);

	if (result != FS_OK)
		return result;
	memcpy(&head, loader->bytes, sizeof(head));
	length -= sizeof(head);
	*last = length == 0;
	if (*last || !loader->same)
		return FS_OK;
	if (head.from % CLF_COUNTS_UNIT || length % CLF_COUNTS_UNIT ||
	    head.from > clf_counts_bytes(store->classifier) || length > clf_counts_bytes(store->classifier) - head.from)
		return FS_ECORRUPT;
	clf_counts_merge(store->classifier, head.from, loader->bytes + sizeof(head), length);
	return FS_OK;
}

/* No worker has the table of changed keys after each stripe was held once, as they take it from the store under one. */
static void drop_changed(struct store *store)
{
	struct changed_keys *changed = atomic_load(&store->changed);

	if (!changed)
		return;
	atomic_store(&store->changed, NULL);
	store_pass_stripes(store);
	atomic_fetch_sub(&store->loader_bytes, changed->bytes);
	mem_free(changed);
}

static void finish(struct store *store)
{
	struct item_loader *loader = store->loader;

	context_settle(&loader->context);
	parts_close(loader->reader);
	loader->reader = NULL;
	free_bytes(store);
	drop_changed(store);
	atomic_store(&loader->loading, false);
}

static void report(struct store *store, int result)
{
	struct item_loader *loader = store->loader;
	uint64_t loaded = atomic_load(&loader->loaded), skipped = atomic_load(&loader->skipped);
	double seconds = (double)(clk_now_us(store->clock) - loader->began_us) / 1e6;
	int error = errno;

	if (result != FS_OK || loader->full)
		atomic_store(&loader->left,
			     loader->objects > loaded + skipped ? loader->objects - loaded - skipped : 0);
	log_info("memory: %" PRIu64 " objects were loaded in %.3f s; %" PRIu64
		 " were not, as they have changed, have expired, are too large now, or may be on flash",
		 loaded, seconds, skipped);
	if (result != FS_OK)
		log_warn("memory: the rest of the saved objects can't be read: %s; up to %" PRIu64 " are lost",
			 result == FS_ESYS ? strerror(error) : fs_strerror(result), atomic_load(&loader->left));
	else if (loader->full)
		log_line(store->config.evict ? LOG_LEVEL_NOTICE : LOG_LEVEL_WARN,
			 "memory: -m is used up; up to %" PRIu64 " saved objects%s are lost",
			 atomic_load(&loader->left), store->config.evict ? ", the least recently used ones," : "");
}

bool loader_step(struct store *store)
{
	struct item_loader *loader = store->loader;
	bool last = false;
	int result;

	if (!loader->reader)
		return false;
	result = loader->counting ? load_counts(store, &last) : load_chunk(store, &last);
	if (result == FS_OK && !last && !(is_over(loader, store) && !loader->classifier))
		return true;
	if (!loader->counting)
		report(store, result);
	else if (result != FS_OK)
		log_warn("classifier: the rest of the saved counts can't be read: %s",
			 result == FS_ESYS ? strerror(errno) : fs_strerror(result));
	if (result == FS_OK && loader->classifier && !loader->counting) {
		loader->counting = true;
		drop_changed(store);
		return true;
	}
	finish(store);
	return false;
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void *loader_main(void *context)
{
	struct store *store = context;

	(void)setpriority(PRIO_PROCESS, 0, NICENESS); /* this thread's, on Linux */
	while (!atomic_load(&store->loader->stopping) && loader_step(store))
		;
	return NULL;
}

int loader_start(struct store *store)
{
	struct item_loader *loader = store->loader;

	if (!loader->reader)
		return FS_OK;
	errno = pthread_create(&loader->thread, NULL, loader_main, store);
	if (errno != 0)
		return FS_ESYS;
	pthread_setname_np(loader->thread, "loader");
	loader->threaded = true;
	return FS_OK;
}

void loader_stop(struct store *store)
{
	struct item_loader *loader = store->loader;

	if (!loader->threaded)
		return;
	atomic_store(&loader->stopping, true);
	pthread_join(loader->thread, NULL);
	loader->threaded = false;
}

void loader_close(struct store *store)
{
	if (!store->loader)
		return;
	must(!store->loader->threaded);
	finish(store);
	mem_free(store->loader);
	store->loader = NULL;
}

void loader_get_figures(const struct store *store, struct loader_figures *out)
{
	const struct item_loader *loader = store->loader;

	*out = (struct loader_figures){ .start = (enum saved_start)atomic_load(&loader->start),
					.loading = atomic_load(&loader->loading),
					.loaded = atomic_load(&loader->loaded),
					.skipped = atomic_load(&loader->skipped),
					.left = atomic_load(&loader->left) };
}
