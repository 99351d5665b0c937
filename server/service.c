/* SPDX-License-Identifier: BSD-3-Clause */
/* The service manager's protocol. Only this file includes libsystemd. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "server/service.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics/counters.h"
#include "conf/conf.h"
#include "conf/units.h"
#include "server/admin/reload.h"
#include "server/conn/server.h"
#include "server/net/net.h"
#include "server/store/move.h"
#include "server/store/store.h"

#define JOURNAL_SOCKET "/run/systemd/journal/socket"
#define IDENTIFIER "flashield"
#define FIELD_BYTES 512 /* of one field of a journal entry */
#define STATUS_SECONDS 10u /* between two lines of state */
#define EXTEND_US 120000000u /* the time that a step which goes on asks for */
#define PROGRESS_US 1000000u /* between two messages about it */
#define WATCHDOG_LEAST_US 2000000u /* the watchdog is fed once a second at most */

struct service {
	struct net_socket *sockets;
	char **names; /* of sd_listen_fds_with_names */
	unsigned count;
	bool notifies; /* there is a NOTIFY_SOCKET */
	bool complained; /* the log has a line that the service manager can't be told */
	bool ready_owed; /* READY=1 was not taken, and is sent again */
	uint64_t watchdog_us; /* the service manager's patience; 0: no watchdog */
	uint64_t fed_us, progress_us; /* boot clock */
	uint32_t seconds; /* of service_second */
	uint64_t hits, gets; /* at the last line of state */
	char status[512];
};

/* ---- the journal ------------------------------------------------------------------------------- */

struct entry {
	struct iovec pieces[8 + LOG_FIELDS_MOST];
	int count;
	char texts[7 + LOG_FIELDS_MOST][FIELD_BYTES];
};

static void add_journal_piece(struct entry *entry, const char *name, const char *value)
{
	char *text = entry->texts[entry->count];
	int length;

	must((size_t)entry->count < sizeof(entry->texts) / sizeof(entry->texts[0]));
	length = snprintf(text, FIELD_BYTES, "%s=%s", name, value);

	entry->pieces[entry->count].iov_base = text;
	entry->pieces[entry->count++].iov_len = length < FIELD_BYTES ? (size_t)length : FIELD_BYTES - 1;
}

static void add_number(struct entry *entry, const char *name, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	add_journal_piece(entry, name, text);
}

static void add_fields(struct entry *entry, const struct log_field *fields)
{
	char name[64];

	for (unsigned i = 0; i < LOG_FIELDS_MOST && fields[i].name; i++) {
		snprintf(name, sizeof(name), "FLASHIELD_%s", fields[i].name);
		if (fields[i].text)
			add_journal_piece(entry, name, fields[i].text);
		else
			add_number(entry, name, fields[i].number);
	}
}

/* The library reports success when nobody listens, so the socket is looked for first. */
static bool to_journal(const struct log_record *record)
{
	struct entry entry = { .count = 0 };
	char thread[16] = "", message[FIELD_BYTES * 5];
	int length;

	if (access(JOURNAL_SOCKET, W_OK) != 0)
		return false;
	add_number(&entry, "PRIORITY", (uint64_t)record->priority);
	add_journal_piece(&entry, "SYSLOG_IDENTIFIER", IDENTIFIER);
	add_journal_piece(&entry, "CODE_FILE", record->origin->file);
	add_number(&entry, "CODE_LINE", (uint64_t)record->origin->line);
	add_journal_piece(&entry, "CODE_FUNC", record->origin->function);
	if (pthread_getname_np(pthread_self(), thread, sizeof(thread)) == 0)
		add_journal_piece(&entry, "THREAD", thread);
	if (record->event)
		add_journal_piece(&entry, "FLASHIELD_EVENT", record->event);
	if (record->fields)
		add_fields(&entry, record->fields);
	length = snprintf(message, sizeof(message), "MESSAGE=%s", record->text);
	entry.pieces[entry.count].iov_base = message;
	entry.pieces[entry.count++].iov_len = (size_t)length < sizeof(message) ? (size_t)length : sizeof(message) - 1;
	return sd_journal_sendv(entry.pieces, entry.count) >= 0;
}

/* ---- start and end ----------------------------------------------------------------------------- */

static int take_sockets(struct service *service, char reason[256])
{
	int count = sd_listen_fds_with_names(1, &service->names);

	if (count < 0) {
		snprintf(reason, 256, "LISTEN_FDS, LISTEN_PID or LISTEN_FDNAMES of the environment are wrong: %s",
			 strerror(-count));
		return FS_EINVAL;
	}
	service->count = (unsigned)count;
	service->sockets = mem_must_zalloc((size_t)count * sizeof(*service->sockets) + 1);
	for (int i = 0; i < count; i++)
		service->sockets[i] = (struct net_socket){ SD_LISTEN_FDS_START + i, service->names[i] };
	return FS_OK;
}

static int take_watchdog(struct service *service, char reason[256])
{
	int found = sd_watchdog_enabled(1, &service->watchdog_us);

	if (found < 0) {
		snprintf(reason, 256, "WATCHDOG_USEC or WATCHDOG_PID of the environment are wrong: %s",
			 strerror(-found));
		return FS_EINVAL;
	}
	if (found == 0)
		service->watchdog_us = 0;
	if (found > 0 && service->watchdog_us < WATCHDOG_LEAST_US)
		log_warn("WatchdogSec= is too short: the watchdog is fed once a second");
	return FS_OK;
}

int service_open(struct service **out, char reason[256])
{
	struct service *service = mem_must_zalloc(sizeof(*service));
	int code;

	if (log_to_journal())
		log_set_sink(to_journal);
	service->notifies = getenv("NOTIFY_SOCKET") != NULL;
	code = take_sockets(service, reason);
	if (code == FS_OK)
		code = take_watchdog(service, reason);
	if (code != FS_OK) {
		service_close(service);
		return code;
	}
	*out = service;
	return FS_OK;
}

void service_close(struct service *service)
{
	if (!service)
		return;
	for (unsigned i = 0; i < service->count; i++)
		free(service->names[i]);
	free(service->names);
	mem_free(service->sockets);
	mem_free(service);
}

unsigned service_sockets(const struct service *service, const struct net_socket **out)
{
	*out = service ? service->sockets : NULL;
	return service ? service->count : 0;
}

/* ---- what the service manager is told ----------------------------------------------------------- */

/*
 * sd_notify blocks while the manager's queue is full, and a manager that hangs must not stop the cache. So this asks
 * the socket first. Other errors (a malformed address, a missing socket) are left to sd_notify.
 */
static bool would_wait(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const char *name = getenv("NOTIFY_SOCKET");
	size_t length = name ? strlen(name) : 0;
	struct pollfd manager = { .events = POLLOUT };
	bool full = false;

	if (length < 2 || length >= sizeof(address.sun_path))
		return false;
	memcpy(address.sun_path, name, length);
	if (*name == '@')
		address.sun_path[0] = 0;
	manager.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (manager.fd < 0)
		return false;
	if (connect(manager.fd, (struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) == 0)
		full = poll(&manager, 1, 0) == 0;
	close(manager.fd);
	return full;
}

/* False: the queue is full; a later call may succeed. */
static bool tell_manager(struct service *service, const char *text)
{
	int sent = !service->notifies ? 0 : would_wait() ? -EAGAIN : sd_notify(0, text);

	if (sent < 0 && !service->complained) {
		service->complained = true;
		log_warn("can't tell the service manager the daemon's state: %s", strerror(-sent));
	}
	return sent != -EAGAIN;
}

void service_progress(struct service *service, const char *what, uint64_t bytes, uint64_t of_bytes)
{
	uint64_t now_us = clk_now_us(clk_boot());
	char text[256], done[UNITS_TEXT_BYTES], all[UNITS_TEXT_BYTES];

	if (!service->notifies || (service->progress_us && now_us - service->progress_us < PROGRESS_US))
		return;
	service->progress_us = now_us;
	snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%u\nSTATUS=%s: %s of %s", EXTEND_US, what,
		 units_show_size(bytes, done), units_show_size(of_bytes, all));
	tell_manager(service, text);
}

void service_stage(struct service *service, const char *what)
{
	char text[256];

	if (!service->notifies)
		return;
	snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%u\nSTATUS=%s", EXTEND_US, what);
	tell_manager(service, text);
}

/* Makes the line of state anew. False: it is the same as before. */
static bool renew_status(struct service *service, const struct server *server)
{
	uint64_t hits = ctr_total(CTR_get_hits), gets = hits + ctr_total(CTR_get_misses);
	struct net_status net;
	struct store_status store;
	struct store_move_status move;
	const struct service_figures figures = { .store = &store,
						 .move = &move,
						 .flash_wanted = server->conf->flash_path != NULL,
						 .hits = hits - service->hits,
						 .gets = gets - service->gets };
	struct service_figures now = figures;
	char status[sizeof(service->status)];

	store_get_status(server->store, &store);
	store_move_get_status(server->store, &move);
	net_get_status(server->net, &net);
	now.accepting = net.accepting;
	now.port = server->conf->port < 0 ? net.tcp_port : 0;
	if (server->metrics_address && strcmp(server->metrics_address, server->conf->metrics_listen) != 0)
		now.metrics_address = server->metrics_address;
	now.metrics_trouble = server->metrics_trouble;
	now.reload_trouble = server->reload ? reload_trouble(server->reload) : NULL;
	now.restart_options = server->reload ? reload_restart_options(server->reload) : NULL;
	service->hits = hits;
	service->gets = gets;
	service_status_text(&now, status, sizeof(status));
	if (strcmp(status, service->status) == 0)
		return false;
	memcpy(service->status, status, sizeof(status));
	return true;
}

void service_ready(struct service *service, const struct server *server)
{
	char text[sizeof(service->status) + 64];

	if (!service->notifies)
		return;
	renew_status(service, server);
	snprintf(text, sizeof(text), "READY=1\nMAINPID=%ld\nSTATUS=%s", (long)getpid(), service->status);
	service->ready_owed = !tell_manager(service, text);
}

void service_reloading(struct service *service)
{
	struct timespec now;
	char text[128];

	if (!service->notifies)
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nSTATUS=Reading the configuration again",
		 (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000);
	tell_manager(service, text);
}

void service_stopping(struct service *service)
{
	if (service->notifies)
		tell_manager(service, "STOPPING=1\nSTATUS=Stopping");
}

void service_hand_over(pid_t child)
{
	char text[64];

	snprintf(text, sizeof(text), "MAINPID=%ld\nREADY=1", (long)child);
	(void)sd_notify(0, text); /* the child logs an error of its own messages */
}

void service_tell_early(const char *text)
{
	if (getenv("NOTIFY_SOCKET") && !would_wait())
		(void)sd_notify(0, text); /* there is nobody else to tell */
}

uint32_t service_patience_seconds(const struct service *service)
{
	uint32_t seconds = (uint32_t)(service->watchdog_us / 2000000);

	return service->watchdog_us == 0 ? 0 : seconds < 2 ? 2 : seconds;
}

/* Feeds it when half of its time is over; rounding makes that a little earlier. */
static void feed_watchdog(struct service *service)
{
	uint64_t now_us = clk_now_us(clk_boot());

	if (now_us - service->fed_us + 1500000 < service->watchdog_us / 2 && service->fed_us != 0)
		return;
	service->fed_us = now_us;
	tell_manager(service, "WATCHDOG=1");
}

void service_second(struct service *service, const struct server *server, bool alive)
{
	char text[sizeof(service->status) + 16];

	if (service->watchdog_us != 0 && alive)
		feed_watchdog(service);
	if (service->ready_owed)
		service_ready(service, server);
	if (!service->notifies || ++service->seconds % STATUS_SECONDS != 0 || !renew_status(service, server))
		return;
	snprintf(text, sizeof(text), "STATUS=%s", service->status);
	tell_manager(service, text);
}
