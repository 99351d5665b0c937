/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/stop.h"

#include <signal.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/fault.h"

static _Atomic bool is_cut;
static uint64_t deadline_us; /* of the boot-time clock */

static void on_signal(int number)
{
	(void)number;
	stop_cut();
}

void stop_take_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGUSR1 };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	sigfillset(&action.sa_mask);
	for (unsigned i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)sigaction(numbers[i], &action, NULL);
}

uint64_t stop_saving_us(const struct conf *conf)
{
	uint64_t pause_us = conf->restart_max_downtime_us / 2;

	/* The pause that the next start judges goes on meanwhile: a longer saving would be in vain. */
	return conf->stop_deadline_us < pause_us ? conf->stop_deadline_us : pause_us;
}

void stop_begins(const struct conf *conf)
{
	deadline_us = clk_now_us(clk_boot()) + stop_saving_us(conf);
}

void stop_cut(void)
{
	atomic_store(&is_cut, true);
}

bool stop_was_early(void)
{
	return atomic_exchange(&is_cut, false);
}

static void on_progress(void *context, uint64_t bytes, uint64_t of_bytes)
{
	service_progress(context, "Stopping: memory is being saved", bytes, of_bytes);
}

void stop_save(struct store *store, struct service *service)
{
	const struct store_end end = {
		.deadline_us = deadline_us, .cut = &is_cut, .progress = on_progress, .context = service
	};

	if (fault_fires(FAULT_saving_stands))
		(void)raise(SIGSTOP);
	store_save_items(store, &end);
	if (fault_fires(FAULT_saving_stands))
		(void)raise(SIGSTOP);
	store_save(store);
}
