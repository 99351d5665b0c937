/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "stats items", "slabs", "sizes" and "cachedump": memcached's reports by slab class, made from the allocator's size
 * classes.
 * There is one list of objects, not four by temperature: the rows of the cold list cover all objects.
 */
#include "server/admin/admin.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "conf/conf.h"
#include "server/store/store.h"

#define PAGE_BYTES (1u << 20) /* a page in "stats slabs" */
#define CACHEDUMP_BYTES (2u << 20) /* memcached's bound on an answer */

static void class_row(struct stats_out *out, const char *prefix, unsigned class, const char *name, uint64_t value)
{
	char row[64];

	snprintf(row, sizeof(row), "%s%u:%s", prefix, class, name);
	stats_add(out, row, "%" PRIu64, value);
}

/* ---- items -------------------------------------------------------------------------------------- */

static void items_of(struct stats_out *out, unsigned class, const struct store_class_status *of, bool lists,
		     bool temporary)
{
	class_row(out, "items:", class, "number", of->items);
	if (lists) {
		class_row(out, "items:", class, "number_hot", 0);
		class_row(out, "items:", class, "number_warm", 0);
		class_row(out, "items:", class, "number_cold", of->items);
		if (temporary)
			class_row(out, "items:", class, "number_temp", 0);
		class_row(out, "items:", class, "age_hot", 0);
		class_row(out, "items:", class, "age_warm", 0);
	}
	class_row(out, "items:", class, "age", of->age_seconds);
	class_row(out, "items:", class, "mem_requested", of->requested_bytes);
	class_row(out, "items:", class, "evicted", of->evicted);
	class_row(out, "items:", class, "evicted_nonzero", of->evicted_nonzero);
	class_row(out, "items:", class, "evicted_time", of->evicted_time);
	class_row(out, "items:", class, "outofmemory", of->out_of_memory);
	class_row(out, "items:", class, "tailrepairs", 0);
	class_row(out, "items:", class, "reclaimed", of->reclaimed);
	class_row(out, "items:", class, "expired_unfetched", of->expired_unfetched);
	class_row(out, "items:", class, "evicted_unfetched", of->evicted_unfetched);
	if (lists)
		class_row(out, "items:", class, "evicted_active", of->evicted_active);
	class_row(out, "items:", class, "crawler_reclaimed", of->crawler_reclaimed);
	class_row(out, "items:", class, "crawler_items_checked", of->crawler_checked);
	class_row(out, "items:", class, "lrutail_reflocked", 0);
	if (!lists)
		return;
	class_row(out, "items:", class, "moves_to_cold", 0);
	class_row(out, "items:", class, "moves_to_warm", 0);
	class_row(out, "items:", class, "moves_within_lru", 0);
	class_row(out, "items:", class, "direct_reclaims", of->direct_reclaims);
	class_row(out, "items:", class, "hits_to_hot", 0);
	class_row(out, "items:", class, "hits_to_warm", 0);
	class_row(out, "items:", class, "hits_to_cold", of->get_hits);
	class_row(out, "items:", class, "hits_to_temp", 0);
}

void stats_items(const struct server *server, struct stats_out *out)
{
	for (unsigned class = 1; class <= store_class_count(); ++class) {
		struct store_class_status status;

		store_get_class(server->store, class, &status);
		if (status.items > 0)
			items_of(out, class, &status, server->conf->lru_maintainer, server->conf->temp_lru);
	}
}

/* ---- slabs -------------------------------------------------------------------------------------- */

/* The allocator's pages don't belong to one class of ours, so the rows show as many as the objects would fill. */
static void slab_of(struct stats_out *out, unsigned class, const struct store_class_status *of)
{
	uint64_t bytes = store_class_bytes(class), per_page = bytes < PAGE_BYTES ? PAGE_BYTES / bytes : 1;

	class_row(out, "", class, "chunk_size", bytes);
	class_row(out, "", class, "chunks_per_page", per_page);
	class_row(out, "", class, "total_pages", (of->items + per_page - 1) / per_page);
	class_row(out, "", class, "total_chunks", of->items);
	class_row(out, "", class, "used_chunks", of->items);
	class_row(out, "", class, "free_chunks", 0);
	class_row(out, "", class, "free_chunks_end", 0);
	class_row(out, "", class, "get_hits", of->get_hits);
	class_row(out, "", class, "cmd_set", of->set_count);
	class_row(out, "", class, "delete_hits", of->delete_hits);
	class_row(out, "", class, "incr_hits", of->incr_hits);
	class_row(out, "", class, "decr_hits", of->decr_hits);
	class_row(out, "", class, "cas_hits", of->cas_hits);
	class_row(out, "", class, "cas_badval", of->cas_badval);
	class_row(out, "", class, "touch_hits", of->touch_hits);
}

void stats_slabs(const struct server *server, struct stats_out *out)
{
	struct store_status store;
	unsigned active = 0;

	for (unsigned class = 1; class <= store_class_count(); ++class) {
		struct store_class_status status;

		store_get_class(server->store, class, &status);
		if (status.items == 0 && status.set_count == 0)
			continue;
		slab_of(out, class, &status);
		active++;
	}
	store_get_status(server->store, &store);
	stats_add(out, "active_slabs", "%u", active);
	/* memcached keeps a page from its first object on, also when all are deleted */
	stats_add(out, "total_malloced", "%" PRIu64,
		  active > 0 && store.dram_bytes < PAGE_BYTES ? PAGE_BYTES : store.dram_bytes);
}

/* ---- sizes -------------------------------------------------------------------------------------- */

static void size_row(void *context, uint32_t bytes, uint64_t objects)
{
	char row[16];

	snprintf(row, sizeof(row), "%u", bytes);
	stats_add(context, row, "%" PRIu64, objects);
}

/* Sizes are counted when this is asked for. So "sizes_enable" switches on nothing but the answer. */
const char *stats_sizes(const struct server *server, bool enabled, struct stats_out *out)
{
	if (!enabled) {
		stats_add(out, "sizes_status", "disabled");
		return STATS_END;
	}
	if (store_count_sizes(server->store, size_row, out) != FS_OK)
		return "SERVER_ERROR out of memory generating stats\r\n";
	return STATS_END;
}

/* ---- cachedump ---------------------------------------------------------------------------------- */

struct cachedump {
	struct stats_out *out;
	unsigned class, left;
	size_t bytes;
};

static bool dump_item(void *context, const struct store_seen *object)
{
	struct cachedump *dump = context;
	char line[STORE_KEY_MAX + 96];
	int length;

	if (object->class != dump->class)
		return true;
	length = snprintf(line, sizeof(line), "ITEM %.*s [%u b; %" PRId64 " s]\r\n", object->key_length, object->key,
			  object->value_length, object->expires < 0 ? 0 : object->expires);
	if (dump->left == 0 || dump->bytes + (size_t)length > CACHEDUMP_BYTES)
		return false;
	dump->left--;
	dump->bytes += (size_t)length;
	if (dump->out->line)
		dump->out->line(dump->out, line, (size_t)length);
	return true;
}

static bool get_class_number(const struct server *server, const char **text, unsigned *number)
{
	bool strict = conf_compat_from(server->conf, 40);
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(*text, &end, 10);
	if (end == *text || (*end && *end != ' ') || **text == '-' || errno != 0)
		return false;
	if (strict && (value > UINT32_MAX || **text < '0' || **text > '9'))
		return false;
	*text = end + strspn(end, " ");
	*number = (unsigned)value; /* as memcached did: the lower 32 bits */
	return true;
}

const char *stats_cachedump(const struct server *server, const char *words, struct stats_out *out)
{
	struct cachedump dump = { .out = out };
	unsigned limit;

	if (server->conf->disable_dumping)
		return "CLIENT_ERROR stats cachedump not allowed\r\n";
	if (!*words || !strchr(words, ' '))
		return "CLIENT_ERROR bad command line\r\n";
	if (!get_class_number(server, &words, &dump.class) || !get_class_number(server, &words, &limit))
		return "CLIENT_ERROR bad command line format\r\n";
	if (dump.class == 0)
		return STATS_END;
	if (dump.class > store_class_count())
		return "CLIENT_ERROR Illegal slab id\r\n";
	dump.left = limit > 0 ? limit : UINT32_MAX;
	if (store_walk(server->store, false, dump_item, &dump) != FS_OK)
		return "SERVER_ERROR out of memory generating stats\r\n";
	return STATS_END;
}
