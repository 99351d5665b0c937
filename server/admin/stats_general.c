/* SPDX-License-Identifier: BSD-3-Clause */
/* "stats" and "stats settings": memcached's names, in its order. */
#include "server/admin/admin.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "conf/conf.h"
#include "conf/counters.h"
#include "conf/version.h"
#include "server/net/net.h"
#include "server/store/store.h"

static void number(struct stats_out *out, const char *name, uint64_t value)
{
	stats_add(out, name, "%" PRIu64, value);
}

static void duration(struct stats_out *out, const char *name, const struct timeval *time)
{
	stats_add(out, name, "%ld.%06ld", (long)time->tv_sec, (long)time->tv_usec);
}

static void process_rows(const struct server *server, const struct store_status *store,
			 const struct net_status *net, struct stats_out *out)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	number(out, "pid", (uint64_t)getpid());
	number(out, "uptime", store->now_seconds);
	stats_add(out, "time", "%" PRId64, clk_wall_seconds());
	stats_add(out, "version", "%s", SERVER_MEMCACHED_VERSION);
	stats_add(out, "flashield_version", "%s", FS_VERSION);
	stats_add(out, "libevent", "%s", net->event_version);
	number(out, "pointer_size", 8 * sizeof(void *));
	duration(out, "rusage_user", &usage.ru_utime);
	duration(out, "rusage_system", &usage.ru_stime);
	number(out, "max_connections", (uint64_t)server->conf->conn_limit);
	number(out, "curr_connections", net->connections);
	number(out, "connection_structures", net->connection_peak);
}

static void memory_rows(const struct server *server, const struct store_status *store,
			const struct net_status *net, struct stats_out *out)
{
	unsigned power = 0;

	while (power < 63 && store->hash_buckets >> (power + 1))
		power++;
	number(out, "limit_maxbytes", store->memory_limit);
	number(out, "accepting_conns", net->accepting);
	number(out, "time_in_listen_disabled_us", net->not_accepting_us);
	number(out, "threads", (uint64_t)server->conf->threads);
	number(out, "hash_power_level", power);
	number(out, "hash_bytes", store->dram_table_bytes);
	number(out, "hash_is_expanding", 0);
	number(out, "bytes", store->curr_bytes);
	number(out, "curr_items", store->curr_items);
	number(out, "memory_used", store->memory_used);
	number(out, "memory_resident", store->memory_resident);
	number(out, "dram_items", store->dram_items);
	number(out, "dram_bytes", store->dram_bytes);
	number(out, "dram_budget", store->dram_budget);
}

void stats_general(const struct server *server, struct stats_out *out)
{
	struct store_status store;
	struct net_status net;

	store_get_status(server->store, &store);
	net_get_status(server->net, &net);
	process_rows(server, &store, &net, out);
	for (enum ctr counter = 0; counter < CTR_COUNT; counter++) {
		const struct ctr_info *info = ctr_info(counter);

		if (info->group == CTR_GROUP_GENERAL)
			number(out, info->name, ctr_sum(counter));
	}
	memory_rows(server, &store, &net, out);
}

/* ---- settings -------------------------------------------------------------------------------- */

static const char *yes_no(bool value)
{
	return value ? "yes" : "no";
}

static void option_row(void *context, const struct conf_option *option, const char *value)
{
	char name[64];
	size_t i;

	for (i = 0; option->name[i] && i < sizeof(name) - 1; i++)
		name[i] = option->name[i] == '-' ? '_' : option->name[i];
	name[i] = 0;
	stats_add(context, name, "%s", *value ? value : "NULL");
}

void stats_settings(const struct server *server, struct stats_out *out)
{
	const struct conf *conf = server->conf;
	enum log_level level = log_level();
	struct net_status net;

	net_get_status(server->net, &net);
	number(out, "maxbytes", conf->memory_limit_bytes);
	number(out, "maxconns", (uint64_t)conf->conn_limit);
	stats_add(out, "tcpport", "%d", conf->port < 0 ? net.tcp_port : conf->port);
	stats_add(out, "udpport", "%d", conf->udp_port);
	stats_add(out, "inter", "%s", conf->listen ? conf->listen : "NULL");
	stats_add(out, "verbosity", "%d", level > LOG_LEVEL_NOTICE ? (int)level - LOG_LEVEL_NOTICE : 0);
	stats_add(out, "evictions", "%s", conf->disable_evictions ? "off" : "on");
	stats_add(out, "domain_socket", "%s", conf->unix_socket ? conf->unix_socket : "NULL");
	stats_add(out, "umask", "%o", conf->unix_mask);
	stats_add(out, "shutdown_command", "no");
	number(out, "num_threads", (uint64_t)conf->threads);
	stats_add(out, "stat_key_prefix", ":");
	stats_add(out, "detail_enabled", "no");
	number(out, "reqs_per_event", (uint64_t)conf->max_reqs_per_event);
	stats_add(out, "cas_enabled", "%s", yes_no(!conf->disable_cas));
	number(out, "tcp_backlog", (uint64_t)conf->listen_backlog);
	stats_add(out, "binding_protocol", "ascii");
	stats_add(out, "auth_enabled_sasl", "no");
	stats_add(out, "auth_enabled_ascii", "no");
	number(out, "item_size_max", conf->max_item_size_bytes);
	stats_add(out, "maxconns_fast", "yes");
	stats_add(out, "flush_enabled", "yes");
	stats_add(out, "dump_enabled", "no");
	stats_add(out, "idle_timeout", "0");
	stats_add(out, "track_sizes", "no");
	stats_add(out, "inline_ascii_response", "no");
	stats_add(out, "ssl_enabled", "no");
	conf_describe(conf, option_row, out);
}
