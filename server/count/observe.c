/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/count/observe.h"

#include <endian.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/events.h"
#include "conf/conf.h"
#include "server/conn/conn.h"
#include "server/count/hotkeys.h"
#include "server/count/prefixes.h"
#include "server/count/slow.h"

/* The counters of an application. */
enum app_counter {
	APP_MISSES,
	APP_DRAM_HITS,
	APP_FLASH_HITS,
	APP_SETS,
	APP_DELETES,
	APP_OTHERS,
	APP_BYTES_READ,
	APP_BYTES_WRITTEN,
	APP_COUNTERS,
	/* The kind of a get, whose result chooses one of these three. Gets and hits are sums of them, as a difference
	   of two counts that are read one after the other could fall now and then. */
	APP_GETS = APP_MISSES
};
_Static_assert(OBSERVE_NAME_MAX == PREFIX_NAME_MAX, "names are prefixes");
_Static_assert(APP_COUNTERS <= PREFIX_COUNTERS, "a row of counters holds them");

_Static_assert((int)CONF_HOTKEYS_HASHES == HOTKEYS_HASHES && (int)CONF_HOTKEYS_OFF == HOTKEYS_OFF,
	       "the option's words stand in this order");

/* The counters of a prefix, as "stats detail" shows them. */
enum detail_counter { DETAIL_GET, DETAIL_HIT, DETAIL_SET, DETAIL_DELETE };

#define EACH_BYTE 0x0101010101010101ull

enum extra { EXTRA_DETAIL = 1, EXTRA_SLOW = 2 };

static struct {
	struct prefixes *apps, *details;
	atomic_uint extras; /* enum extra: what is done beside counting */
	bool by_user;
	char app_delimiter, detail_delimiter;
	uint64_t app_delimiters; /* eight of them */
	unsigned life; /* counts calls of observe_init: threads may outlive the tables */
} observed;

void observe_init(const struct conf *conf)
{
	observed.life++;
	hotkeys_init(hotkeys_allowed((enum hotkeys_shown)conf->hotkeys, !conf->disable_dumping),
		     clk_now_ms(clk_boot()));
	observed.apps = prefixes_create(APPS_MAX);
	observed.details = prefixes_create(DETAIL_PREFIXES_MAX);
	observed.by_user = conf->app_source == CONF_APP_SOURCE_USER;
	observed.app_delimiter = conf->app_delimiter;
	observed.app_delimiters = EACH_BYTE * (unsigned char)conf->app_delimiter;
	observed.detail_delimiter = conf->detail_delimiter;
	slow_init();
	atomic_store(&observed.extras, 0);
	observe_switch_detail(conf->detail_enabled);
	observe_set_slow(&(struct slow_settings){ .threshold_us = conf->slow_log_threshold_us,
						  .keys = conf->slow_log_keys && !conf->disable_dumping });
}

void observe_fini(void)
{
	hotkeys_fini();
	slow_fini();
	prefixes_destroy(observed.apps);
	prefixes_destroy(observed.details);
	observed.apps = observed.details = NULL;
}

uint64_t observe_untouched(void)
{
	return prefixes_untouched(observed.apps) + prefixes_untouched(observed.details);
}

/* ---- the application of a request -------------------------------------------------------------- */

#define START_BYTES 8u
#define SEEN 16u /* applications that a thread finds without a look into the table */

/*
 * An application that this thread has counted for. It is found by the first START_BYTES of the key. A name of fewer
 * bytes is in them with its delimiter, so that no other name matches. Of a longer name the rest is compared too.
 */
struct seen {
	uint64_t start; /* zeros behind the delimiter; 0: the entry is empty */
	const char *name;
	size_t length;
	struct prefix_row *row;
};

static _Thread_local struct {
	unsigned life; /* observed.life when none and seen were set */
	/* Requests and bytes until the next samples for hotkeys.h; below zero: one is due. When bytes are due, until_request is
	   0, so that requests look at it alone, and kept_request has its value. */
	int32_t until_request, kept_request;
	int64_t until_bytes;
	bool waited; /* the request that is observed had to wait */
	struct prefix_row *none; /* counts requests without an application */
	struct seen seen[SEEN];
} own;

static void __attribute__((cold, noinline)) begin_life(void)
{
	own.none = prefixes_row(observed.apps, 0);
	memset(own.seen, 0, sizeof(own.seen));
	own.life = observed.life;
}

/* Returns the key's first bytes, the first one lowest, with zeros behind a short key. */
static inline uint64_t start_of(const char *key, size_t length)
{
	uint64_t start = 0;

	if (__builtin_expect(length >= START_BYTES, 1)) {
		memcpy(&start, key, START_BYTES);
		return le64toh(start);
	}
	for (size_t i = 0; i < length; i++)
		start |= (uint64_t)(unsigned char)key[i] << (8 * i);
	return start;
}

/* The lowest bit set in the result is the highest bit of the lowest byte that is 0. Returns 0 if no byte is 0. */
static inline uint64_t zero_byte(uint64_t bytes)
{
	return (bytes - EACH_BYTE) & ~bytes & (EACH_BYTE << 7);
}

/* Returns the key's start, cut behind the delimiter if that is in it; *is_short tells that. */
static inline uint64_t cut_start(const struct store_request *request, bool *is_short)
{
	uint64_t start = start_of(request->key, request->key_length);
	uint64_t end = zero_byte(start ^ observed.app_delimiters);

	*is_short = end != 0;
	return end ? start & (end ^ (end - 1)) : start;
}

/* The only entry that may hold the application with this start. */
static inline struct seen *seen_for(uint64_t start)
{
	return &own.seen[start * 0x9e3779b97f4a7c15ull >> 60];
}

/* Is this name, which starts like the key, all of the key before the delimiter? */
static bool is_long_name(const struct seen *seen, const char *key, size_t length)
{
	return seen->length >= START_BYTES && seen->length < length && key[seen->length] == observed.app_delimiter &&
	       memcmp(key + START_BYTES, seen->name + START_BYTES, seen->length - START_BYTES) == 0;
}

static struct prefix_row *row_of_key(const struct store_request *request, uint64_t start, bool is_short)
{
	const char *key = request->key, *end;
	struct seen *seen = seen_for(start);
	unsigned number;

	if (!is_short && seen->start == start && is_long_name(seen, key, request->key_length))
		return seen->row;
	end = memchr(key, observed.app_delimiter, request->key_length);
	number = end && end > key ? prefixes_find(observed.apps, key, (size_t)(end - key)) : 0;
	if (number == 0)
		return own.none;
	seen->start = start;
	seen->name = prefixes_name(observed.apps, number, &seen->length);
	seen->row = prefixes_row(observed.apps, number);
	return seen->row;
}

static struct prefix_row *row_of_user(const char *user)
{
	size_t length = user ? strnlen(user, PREFIX_NAME_MAX) : 0;

	return length > 0 ? prefixes_row(observed.apps, prefixes_find(observed.apps, user, length)) : own.none;
}

/* ---- what applications have asked for ---------------------------------------------------------- */

/* The counter of an application that a request belongs to. */
static const uint8_t APP_COUNTER_OF[] = {
	[STORE_GET] = APP_GETS,       [STORE_GAT] = APP_GETS,    [STORE_SET] = APP_SETS,    [STORE_ADD] = APP_SETS,
	[STORE_REPLACE] = APP_SETS,   [STORE_CAS] = APP_SETS,    [STORE_APPEND] = APP_SETS, [STORE_PREPEND] = APP_SETS,
	[STORE_DELETE] = APP_DELETES, [STORE_INCR] = APP_OTHERS, [STORE_DECR] = APP_OTHERS, [STORE_TOUCH] = APP_OTHERS,
};

/* Is this the delete that follows from a refused set? It is no delete of the client's. */
static inline bool is_refused_set(const struct store_request *request)
{
	return request->op == STORE_DELETE && request->has_options && request->options.refused;
}

/* Returns the bytes of the value that was found or stored. */
static inline uint64_t moved_bytes(const struct store_request *request)
{
	unsigned counter = APP_COUNTER_OF[request->op];

	if (counter == APP_GETS && request->result == STORE_HIT)
		return request->value.length;
	return counter == APP_SETS && request->result == STORE_STORED ? request->number : 0;
}

static inline void take_bytes(uint64_t bytes)
{
	own.until_bytes -= (int64_t)bytes;
	if (__builtin_expect(own.until_bytes < 0, 0)) {
		own.kept_request = own.until_request;
		own.until_request = 0;
	}
}

static inline void count_app(struct prefix_row *row, const struct store_request *request)
{
	unsigned counter = APP_COUNTER_OF[request->op];

	if (counter == APP_GETS && request->result == STORE_HIT) {
		prefix_row_add(row, APP_BYTES_READ, request->value.length);
		take_bytes(request->value.length);
		counter = __builtin_expect(request->value.from_flash, 0) ? APP_FLASH_HITS : APP_DRAM_HITS;
	} else if (counter == APP_SETS && request->result == STORE_STORED) {
		prefix_row_add(row, APP_BYTES_WRITTEN, request->key_length + request->number);
		take_bytes(request->number);
	} else if (counter == APP_DELETES && is_refused_set(request)) {
		return;
	}
	prefix_row_add(row, counter, 1);
}

static bool read_app(unsigned index, struct observe_app *out,
		     void (*read)(const struct prefixes *prefixes, unsigned number, uint64_t out[PREFIX_COUNTERS]))
{
	uint64_t values[PREFIX_COUNTERS];

	if (index > prefixes_count(observed.apps))
		return false;
	read(observed.apps, index, values);
	out->name = prefixes_name(observed.apps, index, &out->name_length);
	out->dram_hits = values[APP_DRAM_HITS];
	out->flash_hits = values[APP_FLASH_HITS];
	out->misses = values[APP_MISSES];
	out->sets = values[APP_SETS];
	out->deletes = values[APP_DELETES];
	out->others = values[APP_OTHERS];
	out->read_bytes = values[APP_BYTES_READ];
	out->written_bytes = values[APP_BYTES_WRITTEN];
	return true;
}

bool observe_app(unsigned index, struct observe_app *out)
{
	return read_app(index, out, prefixes_total);
}

bool observe_app_since_reset(unsigned index, struct observe_app *out)
{
	return read_app(index, out, prefixes_sum);
}

unsigned observe_app_count(void)
{
	return prefixes_count(observed.apps);
}

/* ---- stats detail ------------------------------------------------------------------------------ */

static void switch_extra(enum extra extra, bool on)
{
	if (on)
		atomic_fetch_or(&observed.extras, extra);
	else
		atomic_fetch_and(&observed.extras, ~(unsigned)extra);
}

void observe_switch_detail(bool on)
{
	switch_extra(EXTRA_DETAIL, on);
}

bool observe_detail(void)
{
	return atomic_load_explicit(&observed.extras, memory_order_relaxed) & EXTRA_DETAIL;
}

void observe_set_slow(const struct slow_settings *settings)
{
	slow_set(settings);
	switch_extra(EXTRA_SLOW, settings->threshold_us > 0);
}

/* As in memcached, a key without the delimiter has no prefix and is not counted. */
static void count_detail(const struct store_request *request, enum app_counter kind)
{
	static const uint8_t counter_of[] = {
		[APP_GETS] = DETAIL_GET, [APP_SETS] = DETAIL_SET, [APP_DELETES] = DETAIL_DELETE
	};
	const char *end = memchr(request->key, observed.detail_delimiter, request->key_length);
	struct prefix_row *row;
	unsigned prefix;

	if (!end || kind == APP_OTHERS || is_refused_set(request))
		return;
	prefix = prefixes_find(observed.details, request->key, (size_t)(end - request->key));
	if (prefix == 0)
		return;
	row = prefixes_row(observed.details, prefix);
	prefix_row_add(row, counter_of[kind], 1);
	if (kind == APP_GETS && request->result == STORE_HIT)
		prefix_row_add(row, DETAIL_HIT, 1);
}

unsigned observe_detail_line(unsigned *at, char out[512])
{
	uint64_t sums[PREFIX_COUNTERS];
	const char *name;
	size_t length;

	do {
		if (*at >= prefixes_count(observed.details))
			return 0;
		prefixes_sum(observed.details, ++*at, sums);
	} while ((sums[DETAIL_GET] | sums[DETAIL_SET] | sums[DETAIL_DELETE]) == 0);
	name = prefixes_name(observed.details, *at, &length);
	return (unsigned)snprintf(
		out, 512, "PREFIX %.*s get %" PRIu64 " hit %" PRIu64 " set %" PRIu64 " del %" PRIu64 "\r\n",
		(int)length, name, sums[DETAIL_GET], sums[DETAIL_HIT], sums[DETAIL_SET], sums[DETAIL_DELETE]);
}

void observe_reset(void)
{
	prefixes_reset(observed.apps);
	prefixes_reset(observed.details);
}

/* ---- events ------------------------------------------------------------------------------------ */

static const char *const op_names[] = {
	[STORE_GET] = "get",         [STORE_GAT] = "gat",       [STORE_SET] = "set",         [STORE_ADD] = "add",
	[STORE_REPLACE] = "replace", [STORE_APPEND] = "append", [STORE_PREPEND] = "prepend", [STORE_CAS] = "cas",
	[STORE_INCR] = "incr",       [STORE_DECR] = "decr",     [STORE_DELETE] = "delete",   [STORE_TOUCH] = "touch",
};

uint64_t observe_moved_bytes(const struct store_request *request)
{
	return moved_bytes(request);
}

const char *observe_command_word(const struct store_request *request)
{
	return op_names[is_refused_set(request) ? STORE_SET : request->op];
}

/* The results in memcached's words; those that memcached doesn't have are words too. */
const char *observe_status_word(enum store_result result)
{
	switch (result) {
	case STORE_STORED:
		return "stored";
	case STORE_EXISTS:
		return "exists";
	case STORE_MISS:
		return "not_found";
	case STORE_TOO_LARGE:
		return "too_large";
	case STORE_NO_MEMORY:
		return "no_memory";
	case STORE_DELETED:
		return "deleted";
	case STORE_TOUCHED:
	case STORE_HIT:
		return "found";
	default:
		return "not_stored";
	}
}

static const char *const tiers[] = {
	[STORE_MET_NOTHING] = "none", [STORE_MET_IN_DRAM] = "dram", [STORE_MET_ON_FLASH] = "flash"
};

/* memcached's line for a key that a command has looked up, with the tier behind it; and the command, unless it is a
   get. */
static void emit_fetch(const struct conn *conn, const struct store_request *request, const struct store_told *told,
		       const char *key)
{
	bool get = request->op <= STORE_GAT;
	const char *command = is_refused_set(request)                              ? "set"
			      : !get                                               ? op_names[request->op]
			      : request->has_options && request->options.uncounted ? "me"
										   : NULL;

	if (told->met == STORE_MET_UNKNOWN)
		return; /* watching has begun since the look-up */
	events_emit(EVENT_FETCHERS, "type=item_get key=%s status=%s clsid=%u cfd=%d size=%u from=%s%s%s", key,
		    told->met == STORE_MET_NOTHING ? "not_found" : "found", told->met_class, conn_number(conn),
		    told->met_bytes, tiers[told->met], command ? " cmd=" : "", command ? command : "");
}

/* memcached's line since 1.6.20 for a delete that has found its object, with the tier behind it. */
static void emit_deletion(const struct store_request *request, const struct store_told *told, const char *key)
{
	bool stays = request->has_options && request->options.invalidate;

	if (request->result != STORE_DELETED || stays || told->met == STORE_MET_UNKNOWN)
		return;
	events_emit(EVENT_DELETIONS, "type=deleted key=%s cmd=%s clsid=%u size=%u from=%s", key,
		    request->has_options && request->options.meta ? "md" : "delete", told->met_class, told->met_bytes,
		    tiers[told->met]);
}

/* memcached's line for a command that stores a value; ours for a delete. */
static void emit_mutation(const struct conn *conn, const struct store_request *request, const struct store_told *told,
			  const char *key)
{
	bool refused = is_refused_set(request);
	const char *type = request->op == STORE_DELETE && !refused ? "item_delete" : "item_store";
	const char *status = observe_status_word(request->result),
		   *command = op_names[refused ? STORE_SET : request->op];

	if (refused || (request->op >= STORE_SET && request->op <= STORE_CAS))
		events_emit(EVENT_MUTATIONS, "type=%s key=%s status=%s cmd=%s ttl=%u clsid=%u cfd=%d size=%u", type,
			    key, status, command, told->ttl_seconds, told->class, conn_number(conn), told->value_bytes);
	else
		events_emit(EVENT_MUTATIONS, "type=%s key=%s status=%s cmd=%s ttl=%u clsid=%u cfd=%d", type, key,
			    status, command, told->ttl_seconds, told->class, conn_number(conn));
}

static void emit_events(const struct conn *conn, const struct store_request *request, enum app_counter kind)
{
	char key[3 * STORE_KEY_MAX + 1];
	struct store_told told;

	events_key(request->key, request->key_length, key);
	store_tell(conn->server->store, request, &told);
	if (events_on(EVENT_FETCHERS))
		emit_fetch(conn, request, &told, key);
	if ((kind != APP_GETS || request->op == STORE_GAT) && events_on(EVENT_MUTATIONS))
		emit_mutation(conn, request, &told, key);
	if (request->op == STORE_DELETE && events_on(EVENT_DELETIONS))
		emit_deletion(request, &told, key);
}

#define WATCHED (1u << EVENT_FETCHERS | 1u << EVENT_MUTATIONS | 1u << EVENT_DELETIONS)

static void sample(const struct store_request *request)
{
	uint64_t bytes = moved_bytes(request);

	if (own.until_bytes < 0) {
		own.until_bytes = hotkeys_sample_bytes(request, bytes, own.until_bytes);
		own.until_request = own.kept_request - 1;
	}
	if (own.until_request < 0)
		own.until_request = hotkeys_sample_request(request, bytes);
}

static void __attribute__((cold, noinline)) tell_request(const struct conn *conn, const struct store_request *request)
{
	enum app_counter kind = APP_COUNTER_OF[request->op];

	sample(request);
	if (atomic_load_explicit(&observed.extras, memory_order_relaxed) & EXTRA_SLOW && !own.waited)
		slow_note(conn, request);
	if (observe_detail())
		count_detail(request, kind);
	if (events_on_any(WATCHED))
		emit_events(conn, request, kind);
}

static inline __attribute__((always_inline)) void count_and_tell(struct prefix_row *row, const struct conn *conn,
								 const struct store_request *request)
{
	count_app(row, request);
	if (__builtin_expect(
		    --own.until_request < 0 || atomic_load_explicit(&observed.extras, memory_order_relaxed) != 0, 0) ||
	    events_on_any(WATCHED))
		tell_request(conn, request);
}

/* Counts keys without an application, long names, and names that own.seen doesn't hold. */
static void __attribute__((noinline))
observe_any(const struct conn *conn, const struct store_request *request, uint64_t start, bool is_short)
{
	struct prefix_row *row;

	if (own.life != observed.life)
		begin_life();
	row = observed.by_user ? row_of_user(conn->user) : row_of_key(request, start, is_short);
	count_and_tell(row, conn, request);
}

/* It runs for each request: the path of most of them makes no call. */
void observe(const struct conn *conn, const struct store_request *request)
{
	bool is_short;
	uint64_t start = cut_start(request, &is_short);
	const struct seen *seen = seen_for(start);

	if (__builtin_expect(!is_short || seen->start != start || own.life != observed.life || observed.by_user, 0))
		observe_any(conn, request, start, is_short);
	else
		count_and_tell(seen->row, conn, request);
}

void observe_waited(const struct conn *conn, const struct store_request *request, uint64_t since_ns)
{
	if (request->flash_reads > 0)
		hotkeys_note_reads(request, moved_bytes(request), request->flash_reads);
	if (slow_is_on())
		slow_note_waited(conn, request, since_ns);
	own.waited = true;
	observe(conn, request);
	own.waited = false;
}
