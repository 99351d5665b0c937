/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * "stats settings": memcached's rows, in its order and forms, and then Flashield's own options. Rows that a later release
 * than the one of --compat-version brought are left out.
 *
 * An option that has no effect here is shown as it was given, for scripts that compare the settings with those they
 * want. Flashield's own options have their names of the configuration file, with "_" for "-", and their values as
 * there.
 */
#include "server/admin/admin.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/log.h"
#include "conf/conf.h"
#include "server/admin/reload.h"
#include "server/admin/tuning.h"
#include "server/count/observe.h"
#include "server/net/net.h"
#include "server/store/store.h"

struct source {
	const struct conf *conf;
	struct net_status net;
};

/* How a field of struct conf is shown. */
enum form {
	FORM_INT, /* int */
	FORM_OCTAL, /* unsigned */
	FORM_SIZE, /* uint64_t */
	FORM_REAL, /* double, two places */
	FORM_REAL_3, /* double, three places */
	FORM_YES, /* bool: yes or no */
	FORM_NOT, /* bool: no or yes */
	FORM_CHAR, /* char */
	FORM_TEXT, /* char *; "NULL" when there is none */
	FORM_POINTER, /* char *; "(null)", as printf has it, when there is none */
	FORM_GIVEN, /* char *: yes if it was given */
	FORM_COMPUTED, /* by a function */
	FORM_CONSTANT /* memcached has it, Flashield doesn't */
};

struct row {
	const char *name;
	enum form form;
	size_t offset;
	void (*show)(const struct source *from, struct stats_out *out, const char *name);
	const char *text;
};

/* ---- rows that no single field tells ----------------------------------------------------------- */

static void show_tcp_port(const struct source *from, struct stats_out *out, const char *name)
{
	stats_add(out, name, "%d", from->conf->port < 0 ? from->net.tcp_port : from->conf->port);
}

static void show_udp_port(const struct source *from, struct stats_out *out, const char *name)
{
	stats_add(out, name, "%d", from->conf->udp_port < 0 ? from->net.udp_port : from->conf->udp_port);
}

static void show_verbosity(const struct source *from, struct stats_out *out, const char *name)
{
	enum log_level level = log_level();
	int verbosity = level > LOG_LEVEL_NOTICE ? (int)level - LOG_LEVEL_NOTICE : 0;

	/* -vvv acts as -vv here. It is shown as it was given, as long as no client has lowered the level. */
	if (level == LOG_LEVEL_DEBUG && from->conf->verbose > verbosity)
		verbosity = from->conf->verbose;
	stats_add(out, name, "%d", verbosity);
}

static void show_evictions(const struct source *from, struct stats_out *out, const char *name)
{
	stats_add(out, name, "%s", from->conf->disable_evictions ? "off" : "on");
}

/* memcached serves UDP with one thread if UDP has an interface of its own, otherwise with all. */
static void show_udp_threads(const struct source *from, struct stats_out *out, const char *name)
{
	bool several = from->conf->listen && strchr(from->conf->listen, ',');

	stats_add(out, name, "%d", several ? 1 : from->conf->threads);
}

static void show_protocol(const struct source *from, struct stats_out *out, const char *name)
{
	static const char *const words[] = {
		[CONF_PROTOCOL_AUTO] = "auto-negotiate",
		[CONF_PROTOCOL_ASCII] = "ascii",
		[CONF_PROTOCOL_BINARY] = "binary",
	};

	stats_add(out, name, "%s", words[from->conf->binding_protocol]);
}

static void show_hash(const struct source *from, struct stats_out *out, const char *name)
{
	static const char *const words[] = { "jenkins", "murmur3", "xxh3" }; /* in the order of extended.def */

	stats_add(out, name, "%s", words[from->conf->hash_algorithm]);
}

/* OpenSSL's bits as memcached shows them: a certificate is asked for, required, asked for only once. */
static void show_verify_mode(const struct source *from, struct stats_out *out, const char *name)
{
	static const int bits[] = { 0, 1, 1 | 2, 1 | 2 | 4 };

	stats_add(out, name, "%d", bits[from->conf->ssl_verify_mode]);
}

/* A figure that 1.6.39 and earlier releases showed as a text that is not there. */
static void show_napi_ids(const struct source *from, struct stats_out *out, const char *name)
{
	stats_add(out, name, "%s", conf_compat_from(from->conf, 40) ? "0" : "(null)");
}

static void show_flags_size(const struct source *from, struct stats_out *out, const char *name)
{
	if (conf_compat_from(from->conf, 22))
		stats_add(out, name, "%zu", sizeof(uint32_t));
}

static void show_tls_version(const struct source *from, struct stats_out *out, const char *name)
{
	stats_add(out, name, "tlsv1.%d", from->conf->ssl_min_version);
}

/* ---- the table ----------------------------------------------------------------------------------- */

#define ROW(name, form, field) \
	{ \
#name, FORM_##form, offsetof(struct conf, field), NULL, NULL \
	}
#define SHOWN(name, show) \
	{ \
#name, FORM_COMPUTED, 0, show, NULL \
	}
#define ALWAYS(name, text) \
	{ \
#name, FORM_CONSTANT, 0, NULL, text \
	}

static const struct row rows[] = {
	ROW(maxbytes, SIZE, memory_limit_bytes),
	ROW(maxconns, INT, conn_limit),
	SHOWN(tcpport, show_tcp_port),
	SHOWN(udpport, show_udp_port),
	ROW(inter, TEXT, listen),
	SHOWN(verbosity, show_verbosity),
	ALWAYS(oldest, "0"),
	SHOWN(evictions, show_evictions),
	ROW(domain_socket, TEXT, unix_socket),
	ROW(umask, OCTAL, unix_mask),
	ROW(shutdown_command, YES, enable_shutdown),
	ROW(growth_factor, REAL, slab_growth_factor),
	ROW(chunk_size, INT, slab_min_size),
	ROW(num_threads, INT, threads),
	SHOWN(num_threads_per_udp, show_udp_threads),
	ROW(stat_key_prefix, CHAR, detail_delimiter),
	ROW(detail_enabled, YES, detail_enabled),
	ROW(reqs_per_event, INT, max_reqs_per_event),
	ROW(cas_enabled, NOT, disable_cas),
	ROW(tcp_backlog, INT, listen_backlog),
	SHOWN(binding_protocol, show_protocol),
	ROW(auth_enabled_sasl, YES, enable_sasl),
	ROW(auth_enabled_ascii, GIVEN, auth_file),
	ROW(item_size_max, SIZE, max_item_size_bytes),
	ROW(maxconns_fast, YES, maxconns_fast),
	ROW(hashpower_init, INT, hashpower),
	ROW(slab_reassign, YES, slab_reassign),
	ROW(slab_automove, INT, slab_automove),
	ROW(slab_automove_ratio, REAL, slab_automove_ratio),
	ROW(slab_automove_window, INT, slab_automove_window),
	ROW(slab_chunk_max, INT, slab_chunk_max),
	ROW(lru_crawler, YES, lru_crawler),
	ROW(lru_crawler_sleep, INT, lru_crawler_sleep),
	ROW(lru_crawler_tocrawl, SIZE, lru_crawler_tocrawl),
	ROW(tail_repair_time, INT, tail_repair_time),
	ROW(flush_enabled, NOT, disable_flush_all),
	ROW(dump_enabled, NOT, disable_dumping),
	SHOWN(hash_algorithm, show_hash),
	ROW(lru_maintainer_thread, YES, lru_maintainer),
	ROW(lru_segmented, YES, lru_maintainer),
	ROW(hot_lru_pct, INT, hot_lru_pct),
	ROW(warm_lru_pct, INT, warm_lru_pct),
	ROW(hot_max_factor, REAL, hot_max_factor),
	ROW(warm_max_factor, REAL, warm_max_factor),
	ROW(temp_lru, YES, temp_lru),
	ROW(temporary_ttl, SIZE, temporary_ttl),
	ROW(idle_timeout, INT, idle_timeout_seconds),
	ROW(watcher_logbuf_size, SIZE, watcher_logbuf_size),
	ROW(worker_logbuf_size, SIZE, worker_logbuf_size),
	ROW(read_buf_mem_limit, SIZE, read_buf_mem_limit),
	ROW(track_sizes, YES, track_sizes),
	ALWAYS(inline_ascii_response, "no"),
	ROW(ext_item_size, SIZE, ext_item_size),
	ROW(ext_item_age, SIZE, ext_item_age),
	ROW(ext_low_ttl, SIZE, ext_low_ttl),
	ROW(ext_recache_rate, SIZE, ext_recache_rate),
	ROW(ext_wbuf_size, SIZE, ext_wbuf_size),
	ROW(ext_compact_under, SIZE, ext_compact_under),
	ROW(ext_drop_under, SIZE, ext_drop_under),
	ROW(ext_max_sleep, SIZE, ext_max_sleep),
	ROW(ext_max_frag, REAL, ext_max_frag),
	ROW(slab_automove_freeratio, REAL_3, slab_automove_freeratio),
	ROW(ext_drop_unread, YES, ext_drop_unread),
	ROW(ssl_enabled, YES, enable_ssl),
	ROW(ssl_chain_cert, POINTER, ssl_chain_cert),
	ROW(ssl_key, POINTER, ssl_key),
	SHOWN(ssl_verify_mode, show_verify_mode),
	ROW(ssl_keyformat, INT, ssl_keyformat),
	ROW(ssl_ciphers, TEXT, ssl_ciphers),
	ROW(ssl_ca_cert, TEXT, ssl_ca_cert),
	ROW(ssl_wbuf_size, SIZE, ssl_wbuf_size_bytes),
	ROW(ssl_session_cache, YES, ssl_session_cache),
	ROW(ssl_kernel_tls, YES, ssl_kernel_tls),
	SHOWN(ssl_min_version, show_tls_version),
	SHOWN(num_napi_ids, show_napi_ids),
	ROW(memory_file, POINTER, memory_file),
	SHOWN(client_flags_size, show_flags_size),
};

/* ---- the report ---------------------------------------------------------------------------------- */

static void show_field(struct stats_out *out, const struct row *row, const void *field)
{
	const char *text;

	switch (row->form) {
	case FORM_INT:
		stats_add(out, row->name, "%d", *(const int *)field);
		break;
	case FORM_OCTAL:
		stats_add(out, row->name, "%o", *(const unsigned *)field);
		break;
	case FORM_SIZE:
		stats_add(out, row->name, "%" PRIu64, *(const uint64_t *)field);
		break;
	case FORM_REAL:
	case FORM_REAL_3:
		stats_add(out, row->name, "%.*f", row->form == FORM_REAL ? 2 : 3, *(const double *)field);
		break;
	case FORM_YES:
	case FORM_NOT:
		stats_add(out, row->name, "%s", *(const bool *)field == (row->form == FORM_YES) ? "yes" : "no");
		break;
	case FORM_CHAR:
		stats_add(out, row->name, "%c", *(const char *)field);
		break;
	case FORM_GIVEN:
		stats_add(out, row->name, "%s", *(char *const *)field ? "yes" : "no");
		break;
	case FORM_TEXT:
	case FORM_POINTER:
		text = *(char *const *)field;
		stats_add(out, row->name, "%s", text ? text : row->form == FORM_TEXT ? "NULL" : "(null)");
		break;
	case FORM_COMPUTED:
	case FORM_CONSTANT:
		break;
	}
}

/* Does memcached have this option too? Then its row is among memcached's. */
static bool is_memcacheds(const struct conf_option *option)
{
	if (option->letter)
		return true;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].form < FORM_COMPUTED && rows[i].offset == option->offset)
			return true;
	return false;
}

static void show_option(void *context, const struct conf_option *option, const char *value)
{
	char name[64];
	size_t i;

	if (is_memcacheds(option))
		return;
	for (i = 0; i < sizeof(name) - 1 && option->name[i]; i++)
		name[i] = option->name[i] == '-' ? '_' : option->name[i];
	name[i] = 0;
	stats_add(context, name, "%s", *value ? value : "NULL");
}

void stats_settings(const struct server *server, struct stats_out *out)
{
	struct conf now = *server->conf; /* its texts belong to server->conf */
	struct source from = { .conf = &now };
	struct store_crawler crawler;

	tuning_show(&now);
	reload_show(server, &now);
	if (server->metrics_address)
		now.metrics_listen = (char *)(uintptr_t)server->metrics_address; /* with the port in place of 0 */
	store_get_crawler(server->store, &crawler);
	now.lru_crawler = crawler.enabled;
	now.lru_crawler_sleep = (int)crawler.sleep_us;
	now.lru_crawler_tocrawl = crawler.to_crawl;
	now.detail_enabled = observe_detail();
	net_get_status(server->net, &from.net);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];

		if (row->form == FORM_COMPUTED)
			row->show(&from, out, row->name);
		else if (row->form == FORM_CONSTANT)
			stats_add(out, row->name, "%s", row->text);
		else
			show_field(out, row, (const char *)from.conf + row->offset);
	}
	conf_describe(&now, show_option, out);
	reload_shown(server, &now);
}
