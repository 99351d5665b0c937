/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/opening.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "server/stop.h"

enum phase { LOOKING, SETTLED, ENDING };

static struct {
	const struct conf *conf;
	struct service *service;
	_Atomic int phase;
	pthread_t thread;
	sigset_t before; /* the main thread's mask */
	int signals, over; /* descriptors; -1: there is no thread */
} opening = { .signals = -1, .over = -1 };

/* Only this one thread gets here. The main thread may wait for the drive, so nothing of its own is touched. */
static _Noreturn void end_the_start(void)
{
	log_event(LOG_LEVEL_NOTICE, "stopping", NULL, "the start is ended by a signal; it has changed nothing");
	service_stopping(opening.service);
	if (opening.conf->unix_socket)
		unlink(opening.conf->unix_socket);
	_exit(EXIT_SUCCESS);
}

static void *watch(void *context)
{
	struct pollfd watched[] = { { .fd = opening.signals, .events = POLLIN },
				    { .fd = opening.over, .events = POLLIN } };
	struct signalfd_siginfo taken;

	(void)context;
	for (;;) {
		int looking = LOOKING;

		if (poll(watched, 2, -1) < 0)
			continue;
		if (watched[1].revents)
			return NULL;
		if (!watched[0].revents || read(opening.signals, &taken, sizeof(taken)) != sizeof(taken))
			continue;
		if (atomic_compare_exchange_strong(&opening.phase, &looking, ENDING))
			end_the_start();
		stop_cut();
	}
}

void opening_begin(const struct conf *conf, struct service *service)
{
	sigset_t taken;

	opening.conf = conf;
	opening.service = service;
	sigemptyset(&taken);
	sigaddset(&taken, SIGINT);
	sigaddset(&taken, SIGTERM);
	sigaddset(&taken, SIGUSR1);
	if (pthread_sigmask(SIG_BLOCK, &taken, &opening.before) != 0)
		return;
	opening.signals = signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
	opening.over = eventfd(0, EFD_CLOEXEC);
	if (opening.signals >= 0 && opening.over >= 0 && thread_start(&opening.thread, watch, NULL) == 0)
		return;
	if (opening.over >= 0)
		close(opening.over);
	opening.over = -1;
	opening_end();
}

void opening_settle(void)
{
	int looking = LOOKING;

	if (atomic_compare_exchange_strong(&opening.phase, &looking, SETTLED) || looking == SETTLED)
		return;
	for (;;)
		pause(); /* the other thread ends the process */
}

void opening_end(void)
{
	uint64_t one = 1;
	int error = errno; /* of the store's */

	/* An error that ends the start races with a signal, and wins. */
	opening_settle();
	if (opening.over >= 0) {
		while (write(opening.over, &one, sizeof(one)) != sizeof(one))
			;
		pthread_join(opening.thread, NULL);
		close(opening.over);
	}
	if (opening.signals >= 0)
		close(opening.signals);
	opening.signals = opening.over = -1;
	pthread_sigmask(SIG_SETMASK, &opening.before, NULL);
	errno = error;
}
