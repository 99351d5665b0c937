/* SPDX-License-Identifier: BSD-3-Clause */
/* "stats settings": memcached's names, in its order. */
#include "server/admin/admin.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/log.h"
#include "conf/conf.h"
#include "server/net/net.h"

static void number(struct stats_out *out, const char *name, uint64_t value)
{
	stats_add(out, name, "%" PRIu64, value);
}

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
