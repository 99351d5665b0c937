/* SPDX-License-Identifier: BSD-3-Clause */
/* The main thread's part of the network: start, signals, stop. */
#include "server/net/net_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/resident.h"
#include "conf/conf.h"

/* ---- signals and other threads --------------------------------------------------------------- */

static void on_signal(evutil_socket_t signal_number, short what, void *context)
{
	struct net *net = context;

	(void)what;
	if (signal_number == SIGHUP) {
		if (net->hooks->reload)
			net->hooks->reload(net->hooks->context);
		return;
	}
	if (net->draining) {
		net->hurried = true;
		if (net->hooks->hurry)
			net->hooks->hurry(net->hooks->context);
		event_base_loopbreak(net->base);
		return;
	}
	if (signal_number == SIGUSR1)
		log_notice("Gracefully stopping");
	else
		log_notice("signal %d (%s): stopping", (int)signal_number, strsignal((int)signal_number));
	event_base_loopbreak(net->base);
}

static int take_signals(struct net *net)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGUSR1, SIGHUP };

	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (event_assign(&net->signals[i], net->base, numbers[i], EV_SIGNAL | EV_PERSIST, on_signal, net) !=
			    0 ||
		    event_add(&net->signals[i], NULL) != 0)
			return FS_ENOMEM;
	return FS_OK;
}

static void on_main_wake(evutil_socket_t fd, short what, void *context)
{
	struct net *net = context;
	uint64_t count;

	(void)what;
	if (read(fd, &count, sizeof(count)) < 0)
		return;
	if (atomic_load(&net->stop_asked))
		event_base_loopbreak(net->base);
	else if (!net->draining)
		listen_resume(net);
}

void net_wake(struct net *net)
{
	const uint64_t one = 1;

	/* A full eventfd wakes the main thread just as well. */
	if (write(net->wake_fd, &one, sizeof(one)) < 0)
		return;
}

void net_stop(struct net *net)
{
	atomic_store(&net->stop_asked, true);
	net_wake(net);
}

static int listen_to_others(struct net *net)
{
	if (event_assign(&net->wake_event, net->base, net->wake_fd, EV_READ | EV_PERSIST, on_main_wake, net) != 0)
		return FS_ENOMEM;
	return event_add(&net->wake_event, NULL) == 0 ? FS_OK : FS_ENOMEM;
}

/* ---- start and stop -------------------------------------------------------------------------- */

int net_listen(struct net **out, const struct net_setup *setup, char reason[256])
{
	const struct conf *conf = setup->server->conf;
	struct net *net = mem_must_zalloc(sizeof(*net));
	int code;

	net->server = setup->server;
	net->choose_protocol = setup->choose_protocol;
	net->datagram_protocol = setup->server->conf->binding_protocol;
	net->inherited = setup->inherited;
	net->inherited_count = setup->inherited_count;
	net->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (net->wake_fd < 0) {
		snprintf(reason, 256, "eventfd: %m");
		net_close(net);
		return FS_ESYS;
	}
	listen_raise_limit(net);
	code = conf->enable_ssl ? certificates_open(&net->certificates, conf, reason) : FS_OK;
	if (code == FS_OK)
		code = listen_open(net, reason);
	if (code != FS_OK) {
		int error = errno;

		net_close(net);
		errno = error;
		return code;
	}
	*out = net;
	return FS_OK;
}

void net_check(const struct conf *conf, net_fault_fn *fault, void *context)
{
	const struct server server = { .conf = conf };
	struct net net = { .server = &server };
	char reason[256] = "";
	int code = conf->enable_ssl ? certificates_open(&net.certificates, conf, reason) : FS_OK;

	if (code != FS_OK)
		fault(context, "enable-ssl", code, reason);
	if (code == FS_OK && (code = bind_check(&net, reason)) != FS_OK)
		fault(context, conf->unix_socket ? "unix-socket" : "listen", code, reason);
	certificates_close(net.certificates);
}

static void on_clock_second(evutil_socket_t fd, short what, void *context)
{
	struct net *net = context;

	(void)fd;
	(void)what;
	atomic_store_explicit(&net->now_seconds, (uint32_t)(clk_now_us(clk_boot()) / 1000000), memory_order_relaxed);
	sweep_ring(net);
	if (net->hooks->second && net->worker_count > 0)
		net->hooks->second(net->hooks->context);
}

bool net_alive(const struct net *net, uint32_t within_seconds)
{
	uint32_t now_seconds = atomic_load_explicit(&net->now_seconds, memory_order_relaxed);

	for (unsigned i = 0; i < net->worker_count; i++)
		if (now_seconds - atomic_load_explicit(&net->workers[i].beat_seconds, memory_order_relaxed) >
		    within_seconds)
			return false;
	return true;
}

static int start_clock(struct net *net)
{
	const struct timeval second = { .tv_sec = 1 };

	on_clock_second(-1, 0, net);
	if (event_assign(&net->second, net->base, -1, EV_PERSIST, on_clock_second, net) != 0)
		return FS_ENOMEM;
	return event_add(&net->second, &second) == 0 ? FS_OK : FS_ENOMEM;
}

static int start_serving(struct net *net)
{
	unsigned count = (unsigned)net->server->conf->threads;
	int code;

	net->base = event_base_new();
	net->workers = mem_zalloc(count * sizeof(*net->workers));
	if (!net->base || !net->workers)
		return FS_ENOMEM;
	code = take_signals(net);
	if (code == FS_OK)
		code = listen_to_others(net);
	if (code == FS_OK)
		code = start_clock(net);
	for (; code == FS_OK && net->worker_count < count; net->worker_count++)
		code = worker_init(&net->workers[net->worker_count], net);
	if (code == FS_OK)
		code = udp_start(net);
	for (unsigned i = 0; code == FS_OK && i < count; i++)
		code = worker_start(&net->workers[i]);
	return code == FS_OK ? listen_start(net) : code;
}

static void end_serving(struct net *net)
{
	listen_stop(net);
	for (unsigned i = 0; i < net->worker_count; i++)
		worker_stop(&net->workers[i]);
	udp_stop(net);
	for (unsigned i = 0; i < net->worker_count; i++)
		worker_fini(&net->workers[i]); /* net_close frees it: a scrape may be reading the figures */
	for (unsigned i = 0; i < sizeof(net->signals) / sizeof(net->signals[0]); i++)
		if (event_initialized(&net->signals[i]))
			event_del(&net->signals[i]);
	if (event_initialized(&net->wake_event))
		event_del(&net->wake_event);
	if (event_initialized(&net->second))
		event_del(&net->second);
	if (net->base)
		event_base_free(net->base);
	net->base = NULL;
}

int net_serve(struct net *net, const struct net_hooks *hooks, char reason[256])
{
	int code;

	net->hooks = hooks;
	net_warn_renewal(net->server->conf);
	code = start_serving(net);
	if (code == FS_OK) {
		if (hooks->ready)
			hooks->ready(hooks->context);
		event_base_loop(net->base, 0);
	} else {
		snprintf(reason, 256, "can't start to serve: %s",
			 code == FS_ESYS ? strerror(errno) : fs_strerror(code));
	}
	if (hooks->draining)
		hooks->draining(hooks->context);
	if (code == FS_OK)
		drain_all(net);
	if (hooks->stopping)
		hooks->stopping(hooks->context);
	end_serving(net);
	return code;
}

void net_close(struct net *net)
{
	if (!net)
		return;
	listen_close(net);
	udp_close_all(net);
	if (net->wake_fd >= 0)
		close(net->wake_fd);
	certificates_close(net->certificates);
	mem_free(net->workers);
	mem_free(net);
}

int net_refresh_certificates(struct net *net, char reason[256])
{
	int code;

	if (!net->certificates) {
		snprintf(reason, 256, "TLS is off");
		return FS_EINVAL;
	}
	code = certificates_refresh(net->certificates, reason);
	if (code == FS_OK)
		log_notice("certificates and keys were read again");
	else
		log_warn("certificates and keys stay as they were: %s", reason);
	return code;
}

uint64_t net_untouched(const struct net *net)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < net->worker_count; i++)
		sum += resident_untouched(net->workers[i].scratch, sizeof(*net->workers[i].scratch));
	return sum;
}

void net_get_status(const struct net *net, struct net_status *out)
{
	unsigned fixed = net->listener_count; /* memcached counts them as connections, and shows one fewer */

	*out = (struct net_status){
		.connections = atomic_load(&net->connections) + fixed - 1,
		.connection_peak = atomic_load(&net->connection_peak) + fixed,
		.accepting = atomic_load(&net->accepting_shown),
		.not_accepting_us = atomic_load(&net->not_accepting_us),
		.tcp_port = net->tcp_port,
		.udp_port = net->datagrams ? net->datagrams->port : 0,
		.event_version = event_get_version(),
	};
	certificates_get_status(net->certificates, out);
	for (unsigned i = 0; i < net->worker_count; i++)
		out->client_bytes += atomic_load_explicit(&net->workers[i].client_bytes, memory_order_relaxed);
}
