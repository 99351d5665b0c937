/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/admin/observe.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/events.h"
#include "conf/conf.h"
#include "server/admin/prefixes.h"
#include "server/net/conn.h"

/* By application. */
enum app_counter { APP_GETS, APP_HITS, APP_FLASH_HITS, APP_SETS, APP_DELETES, APP_OTHERS, APP_BYTES_READ, APP_COUNTERS };
_Static_assert(APP_COUNTERS <= PREFIX_COUNTERS, "a row of counters holds them");

static const char *const app_names[APP_COUNTERS] = {
	"get_count", "get_hits", "flash_hits", "set_count", "delete_count", "other_count", "value_bytes_read",
};

/* By prefix, as "stats detail" has them. */
enum detail_counter { DETAIL_GET, DETAIL_HIT, DETAIL_SET, DETAIL_DELETE };

static struct {
	struct prefixes *apps, *details;
	atomic_bool detail;
	bool by_user;
	char app_delimiter, detail_delimiter;
} observed;

void observe_init(const struct conf *conf)
{
	observed.apps = prefixes_create(APPS_MAX);
	observed.details = prefixes_create(DETAIL_PREFIXES_MAX);
	observed.by_user = conf->app_source == CONF_APP_SOURCE_USER;
	observed.app_delimiter = conf->app_delimiter;
	observed.detail_delimiter = conf->detail_delimiter;
	atomic_store(&observed.detail, conf->detail_enabled);
}

void observe_fini(void)
{
	prefixes_destroy(observed.apps);
	prefixes_destroy(observed.details);
	observed.apps = observed.details = NULL;
}

/* ---- kinds of requests ------------------------------------------------------------------------ */

enum kind { KIND_GET, KIND_SET, KIND_DELETE, KIND_OTHER };

static enum kind kind_of(const struct store_request *request)
{
	switch (request->op) {
	case STORE_GET:
	case STORE_GAT:
		return KIND_GET;
	case STORE_SET:
	case STORE_ADD:
	case STORE_REPLACE:
	case STORE_APPEND:
	case STORE_PREPEND:
	case STORE_CAS:
		return KIND_SET;
	case STORE_DELETE:
		return KIND_DELETE;
	default:
		return KIND_OTHER;
	}
}

/* ---- applications ------------------------------------------------------------------------------ */

static void count_app(const struct conn *conn, const struct store_request *request, enum kind kind)
{
	static const uint8_t counter_of[] = { [KIND_GET] = APP_GETS, [KIND_SET] = APP_SETS,
					      [KIND_DELETE] = APP_DELETES, [KIND_OTHER] = APP_OTHERS };
	const char *name = request->key, *end;
	size_t length;
	unsigned app;

	if (observed.by_user) {
		name = conn->user ? conn->user : "";
		length = strnlen(name, PREFIX_NAME_MAX);
	} else {
		end = memchr(name, observed.app_delimiter, request->key_length);
		length = end ? (size_t)(end - name) : 0;
	}
	app = length > 0 ? prefixes_find(observed.apps, name, length) : 0;
	prefixes_add(observed.apps, app, counter_of[kind], 1);
	if (kind == KIND_GET && request->result == STORE_HIT) {
		prefixes_add(observed.apps, app, APP_HITS, 1);
		prefixes_add(observed.apps, app, APP_BYTES_READ, request->value.length);
		if (request->value.from_flash)
			prefixes_add(observed.apps, app, APP_FLASH_HITS, 1);
	}
}

static void app_rows(struct stats_out *out, unsigned app)
{
	uint64_t sums[PREFIX_COUNTERS];
	char key[3 * PREFIX_NAME_MAX + 1], row[sizeof(key) + 32];
	const char *name;
	size_t length;

	name = prefixes_name(observed.apps, app, &length);
	prefixes_sum(observed.apps, app, sums);
	events_key(name, length, key);
	for (unsigned i = 0; i < APP_COUNTERS; i++) {
		snprintf(row, sizeof(row), "%s:%s", app == 0 ? "(none)" : key, app_names[i]);
		stats_add(out, row, "%" PRIu64, sums[i]);
	}
}

void stats_apps(struct stats_out *out)
{
	unsigned count = prefixes_count(observed.apps);

	stats_add(out, "apps", "%u", count);
	for (unsigned app = 0; app <= count; app++)
		app_rows(out, app);
}

/* ---- stats detail ------------------------------------------------------------------------------ */

void observe_switch_detail(bool on)
{
	atomic_store(&observed.detail, on);
}

bool observe_detail(void)
{
	return atomic_load_explicit(&observed.detail, memory_order_relaxed);
}

/* As memcached: a key without the delimiter has no prefix, and is not counted. */
static void __attribute__((cold, noinline)) count_detail(const struct store_request *request, enum kind kind)
{
	static const uint8_t counter_of[] = { [KIND_GET] = DETAIL_GET, [KIND_SET] = DETAIL_SET,
					      [KIND_DELETE] = DETAIL_DELETE };
	const char *end = memchr(request->key, observed.detail_delimiter, request->key_length);
	unsigned prefix;

	if (!end || kind == KIND_OTHER)
		return;
	prefix = prefixes_find(observed.details, request->key, (size_t)(end - request->key));
	if (prefix == 0)
		return;
	prefixes_add(observed.details, prefix, counter_of[kind], 1);
	if (kind == KIND_GET && request->result == STORE_HIT)
		prefixes_add(observed.details, prefix, DETAIL_HIT, 1);
}

unsigned observe_detail_line(unsigned *at, char out[512])
{
	uint64_t sums[PREFIX_COUNTERS];
	const char *name;
	size_t length;

	if (*at >= prefixes_count(observed.details))
		return 0;
	name = prefixes_name(observed.details, ++*at, &length);
	prefixes_sum(observed.details, *at, sums);
	return (unsigned)snprintf(out, 512, "PREFIX %.*s get %" PRIu64 " hit %" PRIu64 " set %" PRIu64 " del %" PRIu64 "\r\n",
				  (int)length, name, sums[DETAIL_GET], sums[DETAIL_HIT], sums[DETAIL_SET],
				  sums[DETAIL_DELETE]);
}

void observe_reset(void)
{
	prefixes_reset(observed.apps);
	prefixes_reset(observed.details);
}

/* ---- events ------------------------------------------------------------------------------------ */

static const char *const op_names[] = {
	[STORE_GET] = "get",	   [STORE_GAT] = "gat",		[STORE_SET] = "set",   [STORE_ADD] = "add",
	[STORE_REPLACE] = "replace", [STORE_APPEND] = "append", [STORE_PREPEND] = "prepend", [STORE_CAS] = "cas",
	[STORE_INCR] = "incr",	   [STORE_DECR] = "decr",	[STORE_DELETE] = "delete", [STORE_TOUCH] = "touch",
};

/* memcached's words, and as words for what it has none. */
static const char *status_of(enum store_result result)
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

static void __attribute__((cold, noinline)) emit(const struct conn *conn, const struct store_request *request, enum kind kind)
{
	char key[3 * STORE_KEY_MAX + 1];
	bool hit = request->result == STORE_HIT;

	events_key(request->key, request->key_length, key);
	if (kind == KIND_GET && events_on(EVENT_FETCHERS))
		events_emit(EVENT_FETCHERS, "type=item_get key=%s status=%s from=%s cfd=%d size=%u", key,
			    hit ? "found" : "not_found", !hit ? "none" : request->value.from_flash ? "flash" : "dram",
			    conn_number(conn), hit ? request->value.length : 0);
	if ((kind != KIND_GET || request->op == STORE_GAT) && events_on(EVENT_MUTATIONS))
		events_emit(EVENT_MUTATIONS, "type=%s key=%s status=%s cmd=%s cfd=%d",
			    kind == KIND_DELETE ? "item_delete" : "item_store", key, status_of(request->result),
			    op_names[request->op], conn_number(conn));
}

void observe(const struct conn *conn, const struct store_request *request)
{
	enum kind kind = kind_of(request);

	count_app(conn, request, kind);
	if (__builtin_expect(observe_detail(), 0))
		count_detail(request, kind);
	if (__builtin_expect(events_on(EVENT_FETCHERS) || events_on(EVENT_MUTATIONS), 0))
		emit(conn, request, kind);
}
