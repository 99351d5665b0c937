/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts and stops the parts behind the reports: counting by application, and the threads of watch and dump. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/events.h"
#include "conf/conf.h"
#include "server/admin/admin.h"
#include "server/admin/dump.h"
#include "server/admin/tuning.h"
#include "server/admin/watch.h"
#include "server/count/contents.h"
#include "server/count/hotkeys.h"
#include "server/count/observe.h"
#include "server/metrics/metrics.h"
#include "server/net/net.h"
#include "server/store/store.h"

/* Sets the crawler up as the options say; "lru_crawler" may change that later. */
static void start_crawler(const struct server *server)
{
	const struct store_crawler crawler = { .enabled = server->conf->lru_crawler,
					       .sleep_us = (uint32_t)server->conf->lru_crawler_sleep,
					       .to_crawl = (uint32_t)server->conf->lru_crawler_tocrawl };

	store_set_crawler(server->store, &crawler);
}

int admin_start(struct server *server, char reason[256])
{
	const struct conf *conf = server->conf;
	int code;

	observe_init(conf);
	contents_init(conf->app_delimiter, clk_now_ms(clk_boot()));
	tuning_init(conf);
	start_crawler(server);
	events_set_ring_bytes(conf->worker_logbuf_size);
	code = watch_start(&server->watch, conf->watcher_logbuf_size);
	if (code == FS_OK)
		code = dump_start(&server->dump, server->store);
	if (code != FS_OK) {
		snprintf(reason, 256, "can't start the threads of watch and lru_crawler: %s", fs_strerror(code));
		admin_stop(server);
	}
	return code;
}

void admin_second(void)
{
	uint64_t now_ms = clk_now_ms(clk_boot());

	hotkeys_tick(now_ms);
	contents_tick(now_ms);
}

void admin_stop(struct server *server)
{
	dump_stop(server->dump);
	watch_stop(server->watch);
}

void admin_destroy(struct server *server)
{
	dump_destroy(server->dump);
	watch_destroy(server->watch);
	server->dump = NULL;
	server->watch = NULL;
	events_fini();
	contents_fini();
	observe_fini();
}

/* ---- commands to the daemon as a whole --------------------------------------------------------- */

void admin_shutdown(const struct server *server)
{
	net_stop(server->net);
}

bool admin_has_certificates(const struct server *server)
{
	return server->conf->enable_ssl || metrics_has_certificates(server->metrics);
}

int admin_refresh_certificates(const struct server *server, char reason[256])
{
	const bool of_metrics = metrics_has_certificates(server->metrics);
	char other[256] = "";
	int code = FS_OK, other_code;

	if (server->conf->enable_ssl)
		code = net_refresh_certificates(server->net, reason);
	if (!of_metrics)
		return code;
	other_code = metrics_refresh_certificates(server->metrics, other);
	if (code == FS_OK && other_code != FS_OK)
		memcpy(reason, other, sizeof(other));
	return code != FS_OK ? code : other_code;
}
