/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting and stopping what stands behind the reports. */
#include <stdio.h>

#include "base/events.h"
#include "conf/conf.h"
#include "server/admin/admin.h"
#include "server/admin/observe.h"
#include "server/admin/watch.h"

int admin_start(struct server *server, char reason[256])
{
	const struct conf *conf = server->conf;
	int code;

	observe_init(conf);
	events_set_ring_bytes(conf->worker_logbuf_size);
	code = watch_start(&server->watch, conf->watcher_logbuf_size);
	if (code != FS_OK) {
		snprintf(reason, 256, "can't start the thread of watch: %s", fs_strerror(code));
		admin_stop(server);
	}
	return code;
}

void admin_stop(struct server *server)
{
	watch_stop(server->watch);
}

void admin_destroy(struct server *server)
{
	watch_destroy(server->watch);
	server->watch = NULL;
	events_fini();
	observe_fini();
}
