/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "stats": exactly the rows that memcached, of the release that --compat-version names, has for the given options, in its
 * order and forms, as exporters and agents read them by name. Flashield's own rows are in "stats flash", "classifier", "segments" and "apps".
 */
#include "server/admin/admin.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/events.h"
#include "base/metrics/counters.h"
#include "conf/conf.h"
#include "server/admin/watch.h"
#include "server/net/net.h"
#include "server/store/store.h"

/* The figures that the rows are made from. They are read once for all of them. */
struct source {
	const struct server *server;
	const struct conf *conf;
	struct store_status store;
	struct store_crawler crawls;
	struct store_crawler_status crawler;
	struct net_status net;
	struct rusage usage;
	struct events_status events;
	struct watch_status watch;
};

/* memcached leaves out whole sections when an option switches their part off. Some rows came or went with a release
   1.6.N: FROM_N, BEFORE_N. */
enum section {
	ALWAYS,
	REFUSING,
	FLASH,
	FLASH_FROM_25,
	FLASH_FROM_34,
	CRAWLER,
	MAINTAINER,
	REASSIGN,
	REASSIGN_BEFORE_34,
	REASSIGN_FROM_34,
	REASSIGN_FROM_40,
	TLS,
	TLS_FROM_30,
	TLS_CACHE,
	IDLE
};

static bool section_is_shown(const struct source *from, enum section section)
{
	switch (section) {
	case FLASH_FROM_25:
		return from->store.flash && conf_compat_from(from->conf, 25);
	case FLASH_FROM_34:
		return from->store.flash && conf_compat_from(from->conf, 34);
	case REASSIGN_BEFORE_34:
		return from->conf->slab_reassign && !conf_compat_from(from->conf, 34);
	case REASSIGN_FROM_34:
		return from->conf->slab_reassign && conf_compat_from(from->conf, 34);
	case REASSIGN_FROM_40:
		return from->conf->slab_reassign && conf_compat_from(from->conf, 40);
	case TLS_FROM_30:
		return from->conf->enable_ssl && conf_compat_from(from->conf, 30);
	case REFUSING:
		return from->conf->maxconns_fast;
	case FLASH:
		return from->store.flash;
	case CRAWLER:
		return from->crawls.enabled; /* "lru_crawler" switches it, too */
	case MAINTAINER:
		return from->conf->lru_maintainer;
	case REASSIGN:
		return from->conf->slab_reassign;
	case TLS:
		return from->conf->enable_ssl;
	case TLS_CACHE:
		return from->conf->enable_ssl && from->conf->ssl_session_cache;
	case IDLE:
		return from->conf->idle_timeout_seconds != 0;
	default:
		return true;
	}
}

/* ---- rows that are no plain number ------------------------------------------------------------- */

static void general_number(struct stats_out *out, const char *name, uint64_t value)
{
	stats_add(out, name, "%" PRIu64, value);
}

static void timeval_row(struct stats_out *out, const char *name, const struct timeval *time)
{
	stats_add(out, name, "%ld.%06ld", (long)time->tv_sec, (long)time->tv_usec);
}

static void show_version(const struct source *from, struct stats_out *out, const char *name)
{
	stats_add(out, name, "%s", from->conf->compat_version);
}

static void show_libevent(const struct source *from, struct stats_out *out, const char *name)
{
	stats_add(out, name, "%s", from->net.event_version);
}

static void show_user_time(const struct source *from, struct stats_out *out, const char *name)
{
	timeval_row(out, name, &from->usage.ru_utime);
}

static void show_system_time(const struct source *from, struct stats_out *out, const char *name)
{
	timeval_row(out, name, &from->usage.ru_stime);
}

/* The reason for which a page of a slab could not be moved the last time: there are none. */
static void show_busy_status(const struct source *from, struct stats_out *out, const char *name)
{
	(void)from;
	stats_add(out, name, "none");
}

/* The percentage of memory that small objects hold which extstore leaves there: flash takes objects of any size here. */
static void show_pressure(const struct source *from, struct stats_out *out, const char *name)
{
	(void)from;
	stats_add(out, name, "0.00");
}

/* ---- rows that are worked out -------------------------------------------------------------------- */

static uint64_t power_level(const struct source *from)
{
	unsigned power = 0;

	while (power < 63 && from->store.hash_buckets >> (power + 1))
		power++;
	return power;
}

/* Bytes of the segments in use that no live object has. */
static uint64_t flash_fragmented(const struct source *from)
{
	uint64_t used = from->store.segments.live * from->store.info.segment_bytes,
		 live = store_flash_bytes(&from->store);

	return used > live ? used - live : 0;
}

static uint64_t certificate_age(const struct source *from)
{
	int64_t age = clk_wall_seconds() - (int64_t)from->net.certificates_at;

	return age > 0 ? (uint64_t)age : 0;
}

/* ---- the table ------------------------------------------------------------------------------------ */

/*
 * In memcached's order.
 *   COUNT(section, name)            the counter of that name
 *   COUNT_AS(section, name, counter)
 *   VALUE(section, name, expression)  of struct source *from
 *   SHOW(section, name, function)
 *   NONE(section, name)             0: there is no such thing here
 */
#define ROWS(COUNT, COUNT_AS, VALUE, SHOW, NONE) \
	VALUE(ALWAYS, pid, (uint64_t)getpid()) \
	VALUE(ALWAYS, uptime, from->store.now_seconds) \
	VALUE(ALWAYS, time, (uint64_t)clk_wall_seconds()) \
	SHOW(ALWAYS, version, show_version) \
	SHOW(ALWAYS, libevent, show_libevent) \
	VALUE(ALWAYS, pointer_size, 8 * sizeof(void *)) \
	SHOW(ALWAYS, rusage_user, show_user_time) \
	SHOW(ALWAYS, rusage_system, show_system_time) \
	VALUE(ALWAYS, max_connections, (uint64_t)from->conf->conn_limit) \
	VALUE(ALWAYS, curr_connections, from->net.connections) \
	COUNT(ALWAYS, total_connections) \
	COUNT(REFUSING, rejected_connections) \
	VALUE(ALWAYS, connection_structures, from->net.connection_peak) \
	NONE(ALWAYS, response_obj_oom) \
	NONE(ALWAYS, response_obj_count) \
	NONE(ALWAYS, response_obj_bytes) \
	NONE(ALWAYS, read_buf_count) \
	NONE(ALWAYS, read_buf_bytes) \
	NONE(ALWAYS, read_buf_bytes_free) \
	NONE(ALWAYS, read_buf_oom) \
	NONE(ALWAYS, reserved_fds) \
	COUNT(ALWAYS, cmd_get) \
	COUNT(ALWAYS, cmd_set) \
	COUNT(ALWAYS, cmd_flush) \
	COUNT(ALWAYS, cmd_touch) \
	COUNT(ALWAYS, cmd_meta) \
	COUNT(ALWAYS, get_hits) \
	COUNT(ALWAYS, get_misses) \
	COUNT(ALWAYS, get_expired) \
	COUNT(ALWAYS, get_flushed) \
	COUNT_AS(FLASH, get_extstore, flash_hits) \
	COUNT_AS(FLASH, get_aborted_extstore, flash_read_timeouts) \
	NONE(FLASH, get_oom_extstore) \
	COUNT_AS(FLASH, recache_from_extstore, flash_promotions) \
	COUNT_AS(FLASH, miss_from_extstore, flash_read_errors) \
	COUNT_AS(FLASH, badcrc_from_extstore, flash_checksum_errors) \
	COUNT(ALWAYS, delete_misses) \
	COUNT(ALWAYS, delete_hits) \
	COUNT(ALWAYS, incr_misses) \
	COUNT(ALWAYS, incr_hits) \
	COUNT(ALWAYS, decr_misses) \
	COUNT(ALWAYS, decr_hits) \
	COUNT(ALWAYS, cas_misses) \
	COUNT(ALWAYS, cas_hits) \
	COUNT(ALWAYS, cas_badval) \
	COUNT(ALWAYS, touch_hits) \
	COUNT(ALWAYS, touch_misses) \
	COUNT(ALWAYS, store_too_large) \
	COUNT(ALWAYS, store_no_memory) \
	COUNT(ALWAYS, auth_cmds) \
	COUNT(ALWAYS, auth_errors) \
	COUNT(IDLE, idle_kicks) \
	COUNT(ALWAYS, bytes_read) \
	COUNT(ALWAYS, bytes_written) \
	VALUE(ALWAYS, limit_maxbytes, from->store.memory_limit) \
	VALUE(ALWAYS, accepting_conns, from->net.accepting) \
	COUNT(ALWAYS, listen_disabled_num) \
	VALUE(ALWAYS, time_in_listen_disabled_us, from->net.not_accepting_us) \
	VALUE(ALWAYS, threads, (uint64_t)from->conf->threads) \
	COUNT(ALWAYS, conn_yields) \
	VALUE(ALWAYS, hash_power_level, power_level(from)) \
	VALUE(ALWAYS, hash_bytes, from->store.dram_table_bytes) \
	NONE(ALWAYS, hash_is_expanding) \
	NONE(REASSIGN, slab_reassign_rescues) \
	NONE(REASSIGN, slab_reassign_chunk_rescues) \
	NONE(REASSIGN_BEFORE_34, slab_reassign_evictions_nomem) \
	NONE(REASSIGN, slab_reassign_inline_reclaim) \
	NONE(REASSIGN, slab_reassign_busy_items) \
	NONE(REASSIGN, slab_reassign_busy_deletes) \
	NONE(REASSIGN_FROM_34, slab_reassign_busy_nomem) \
	SHOW(REASSIGN_FROM_40, slab_reassign_last_busy_status, show_busy_status) \
	NONE(REASSIGN, slab_reassign_running) \
	NONE(REASSIGN, slabs_moved) \
	VALUE(CRAWLER, lru_crawler_running, from->crawler.running) \
	COUNT(CRAWLER, lru_crawler_starts) \
	NONE(MAINTAINER, lru_maintainer_juggles) \
	NONE(ALWAYS, malloc_fails) \
	VALUE(ALWAYS, log_worker_dropped, from->events.dropped) \
	VALUE(ALWAYS, log_worker_written, from->events.written) \
	VALUE(ALWAYS, log_watcher_skipped, from->watch.skipped) \
	VALUE(ALWAYS, log_watcher_sent, from->watch.sent) \
	VALUE(ALWAYS, log_watchers, from->watch.watchers) \
	COUNT(TLS_CACHE, ssl_new_sessions) \
	COUNT(TLS, ssl_handshake_errors) \
	COUNT(TLS_FROM_30, ssl_proto_errors) \
	VALUE(TLS, time_since_server_cert_refresh, certificate_age(from)) \
	SHOW(FLASH_FROM_34, extstore_memory_pressure, show_pressure) \
	COUNT_AS(FLASH, extstore_compact_lost, flash_objects_dropped) \
	COUNT_AS(FLASH, extstore_compact_rescues, flash_objects_reinserted) \
	NONE(FLASH_FROM_25, extstore_compact_resc_cold) \
	NONE(FLASH_FROM_25, extstore_compact_resc_old) \
	NONE(FLASH, extstore_compact_skipped) \
	COUNT_AS(FLASH, extstore_page_allocs, segments_written) \
	COUNT_AS(FLASH, extstore_page_evictions, segments_reclaimed) \
	COUNT_AS(FLASH, extstore_page_reclaims, segments_reclaimed) \
	VALUE(FLASH, extstore_pages_free, from->store.segments.free) \
	VALUE(FLASH, extstore_pages_used, from->store.segments.live) \
	COUNT_AS(FLASH, extstore_objects_evicted, flash_ghosts_made) \
	COUNT_AS(FLASH, extstore_objects_read, flash_reads) \
	COUNT_AS(FLASH, extstore_objects_written, flash_objects_written) \
	VALUE(FLASH, extstore_objects_used, store_flash_objects(&from->store)) \
	NONE(FLASH, extstore_bytes_evicted) \
	COUNT_AS(FLASH, extstore_bytes_written, flash_bytes_written) \
	COUNT_AS(FLASH, extstore_bytes_read, flash_bytes_read) \
	VALUE(FLASH, extstore_bytes_used, store_flash_bytes(&from->store)) \
	VALUE(FLASH, extstore_bytes_fragmented, flash_fragmented(from)) \
	VALUE(FLASH, extstore_limit_maxbytes, from->store.info.flash_bytes) \
	NONE(FLASH, extstore_io_queue) \
	NONE(ALWAYS, unexpected_napi_ids) \
	NONE(ALWAYS, round_robin_fallback) \
	VALUE(ALWAYS, bytes, from->store.curr_bytes) \
	VALUE(ALWAYS, curr_items, from->store.curr_items) \
	COUNT(ALWAYS, total_items) \
	NONE(ALWAYS, slab_global_page_pool) \
	COUNT(ALWAYS, expired_unfetched) \
	COUNT(ALWAYS, evicted_unfetched) \
	COUNT(MAINTAINER, evicted_active) \
	COUNT(ALWAYS, evictions) \
	COUNT(ALWAYS, reclaimed) \
	COUNT(ALWAYS, crawler_reclaimed) \
	COUNT(ALWAYS, crawler_items_checked) \
	NONE(ALWAYS, lrutail_reflocked) \
	NONE(MAINTAINER, moves_to_cold) \
	NONE(MAINTAINER, moves_to_warm) \
	NONE(MAINTAINER, moves_within_lru) \
	COUNT(MAINTAINER, direct_reclaims) \
	NONE(MAINTAINER, lru_bumps_dropped)

/*
 * A counter of the group GENERAL without a COUNT row above fails to compile here: "stats_shows_<name> undeclared". Add
 * that row where memcached has it: no program can choose that.
 */
#define NAME_OF_COUNT(section, name) stats_shows_##name,
#define NAME_OF_OTHER(...)
enum { ROWS(NAME_OF_COUNT, NAME_OF_OTHER, NAME_OF_OTHER, NAME_OF_OTHER, NAME_OF_OTHER) };

#define SHOWN_GENERAL(name) _Static_assert(stats_shows_##name >= 0, "");
#define SHOWN_FLASH(name) /* "stats flash" shows the whole group */
#define SHOWN_CLASSIFIER(name) /* so does "stats classifier" */
#define COUNTER(name, group, unit, text) SHOWN_##group(name)
#include "base/metrics/counters.def"
#undef COUNTER

static void read_source(const struct server *server, struct source *from)
{
	*from = (struct source){ .server = server, .conf = server->conf };
	store_get_status(server->store, &from->store);
	store_get_crawler(server->store, &from->crawls);
	store_get_crawler_status(server->store, &from->crawler);
	net_get_status(server->net, &from->net);
	events_get_status(&from->events);
	watch_get_status(server->watch, &from->watch);
	getrusage(RUSAGE_SELF, &from->usage);
}

#define ROW_COUNT(section, name) ROW_COUNT_AS(section, name, name)
#define ROW_COUNT_AS(section, name, counter) \
	if (section_is_shown(from, section)) \
		general_number(out, #name, ctr_sum(CTR_##counter));
#define ROW_VALUE(section, name, expression) \
	if (section_is_shown(from, section)) \
		general_number(out, #name, (expression));
#define ROW_SHOW(section, name, function) \
	if (section_is_shown(from, section)) \
		function(from, out, #name);
#define ROW_NONE(section, name) ROW_VALUE(section, name, 0)

void stats_general(const struct server *server, struct stats_out *out)
{
	struct source source, *from = &source;

	read_source(server, from);
	ROWS(ROW_COUNT, ROW_COUNT_AS, ROW_VALUE, ROW_SHOW, ROW_NONE)
}
