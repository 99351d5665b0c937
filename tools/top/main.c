/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flashield-top asks servers for their reports each interval and shows the figures, on a terminal until the user
 * leaves, or once. One loop waits for the servers, the keys and the next round.
 */
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/common/args.h"
#include "tools/top/keys.h"
#include "tools/top/once.h"
#include "tools/top/options.h"
#include "tools/top/term.h"

#define REDRAW_US 500000 /* while a server is gone: the seconds to its next connection count down */

static volatile sig_atomic_t ended;

static void on_signal(int number)
{
	(void)number;
	ended = 1;
}

static void catch_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal }; /* no SA_RESTART: poll() returns */

	sigemptyset(&action.sa_mask);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

/* Waits for events of the servers or of keys_fd (-1: none), or until due_us. Returns true when the round has ended.
   *keys gets the events of keys_fd. */
static bool wait_for(struct model *model, int keys_fd, int64_t due_us, short *keys)
{
	struct pollfd waited[SERVERS_MAX + 1];
	int64_t now_us = monotonic_us(), left_us;
	bool round_ended = false;

	for (unsigned i = 0; i < model->count; i++) {
		const struct peer *peer = &model->servers[i].peer;

		waited[i] =
			(struct pollfd){ .fd = peer_events(peer) ? peer->client.fd : -1, .events = peer_events(peer) };
		due_us = peer_due_us(peer) < due_us ? peer_due_us(peer) : due_us;
	}
	waited[model->count] = (struct pollfd){ .fd = keys_fd, .events = POLLIN };
	left_us = due_us > now_us ? due_us - now_us : 0;
	if (poll(waited, model->count + 1, (int)(left_us + 999) / 1000) < 0)
		for (unsigned i = 0; i <= model->count; i++)
			waited[i].revents = 0;
	now_us = monotonic_us();
	for (unsigned i = 0; i < model->count; i++) {
		struct server *server = &model->servers[i];

		round_ended |= model_step(model, server, peer_step(&server->peer, waited[i].revents, now_us));
	}
	*keys = waited[model->count].revents;
	return round_ended;
}

/* ---- once -------------------------------------------------------------------------------------- */

static void one_round(struct model *model)
{
	int64_t until_us = monotonic_us() + 2 * INTERVAL_MOST_US;
	short keys;

	model_ask(model, monotonic_us());
	for (unsigned i = 0; i < model->count; i++)
		model_step(model, &model->servers[i], false); /* some servers fail at once */
	while (!ended && model->in_round)
		wait_for(model, -1, until_us, &keys);
}

static int run_once(struct model *model, int64_t interval_us)
{
	int64_t next_us = monotonic_us() + interval_us;
	bool any = false;
	short keys;

	one_round(model);
	for (unsigned i = 0; i < model->count; i++)
		any |= server_answers(&model->servers[i]);
	while (any && !ended && monotonic_us() < next_us)
		wait_for(model, -1, next_us, &keys);
	if (any && !ended) {
		one_round(model);
		once_print(model, stdout);
	}
	return fflush(stdout) != 0 || ended ? EXIT_TROUBLE : once_status(model);
}

/* ---- live -------------------------------------------------------------------------------------- */

static void draw(struct canvas *canvas, const struct model *model, const struct display *display)
{
	time_t now = time(NULL);
	struct tm local;
	char text[16] = "";
	int rows, columns;

	if (localtime_r(&now, &local))
		strftime(text, sizeof(text), "%H:%M:%S", &local);
	term_size(&rows, &columns);
	canvas_resize(canvas, rows, columns);
	screen_draw(canvas, model, display, monotonic_us(), text);
	term_show(canvas);
}

/* Takes all waiting keys. False when the user leaves. */
static bool take_keys(struct model *model, struct display *display, bool *changed)
{
	int key;

	while ((key = term_key()) != TERM_NONE) {
		unsigned apps = display->chosen ? model->servers[display->chosen - 1].summary.basis.app_count
						: model->all.basis.app_count;

		switch (keys_take(display, key, model->count, apps)) {
		case KEY_QUIT:
			return false;
		case KEY_RESET:
			model_rebase(model);
			*changed = true;
			break;
		case KEY_REPAINT:
			term_redraw();
			*changed = true;
			break;
		case KEY_DRAW:
			*changed = true;
			break;
		case KEY_NOTHING:
			break;
		}
	}
	return true;
}

static void run_live(struct model *model, struct display *display, struct canvas *canvas, int keys_fd)
{
	int64_t asked_us = monotonic_us() - display->interval_us;

	while (!ended) {
		int64_t now_us = monotonic_us(), due_us;
		bool changed = false;
		short keys = 0;

		if (!display->paused && now_us - asked_us >= display->interval_us) {
			/* Rounds keep their distance; a missed round is not repeated. */
			asked_us =
				now_us - asked_us < 2 * display->interval_us ? asked_us + display->interval_us : now_us;
			model_ask(model, now_us);
		}
		due_us = display->paused ? INT64_MAX / 2 : asked_us + display->interval_us;
		due_us = due_us > now_us + REDRAW_US ? now_us + REDRAW_US : due_us;
		changed = wait_for(model, keys_fd, due_us, &keys);
		changed |= monotonic_us() - now_us >= REDRAW_US;
		if (!take_keys(model, display, &changed) || (keys & (POLLHUP | POLLERR | POLLNVAL)))
			return;
		if (changed)
			draw(canvas, model, display);
	}
}

static int live(struct model *model, const struct top_options *options)
{
	struct display display = { .view = options->view, .sort = options->sort, .interval_us = options->interval_us };
	struct canvas canvas;
	char error[256];
	int keys_fd;

	if (!term_open(&keys_fd, error))
		arg_die("%s", error);
	canvas_init(&canvas, !options->ascii && term_is_utf8());
	draw(&canvas, model, &display);
	run_live(model, &display, &canvas, keys_fd);
	canvas_fini(&canvas);
	term_close();
	return 0;
}

int main(int argc, char **argv)
{
	struct top_options options;
	struct model *model;
	int status;

	setlocale(LC_CTYPE, "");
	top_options_parse(argc, argv, &options);
	catch_signals();
	model = model_create(&options.access, options.servers, options.server_count, options.timeout_us);
	if (options.once || !isatty(STDOUT_FILENO))
		status = run_once(model, options.interval_us);
	else
		status = live(model, &options);
	model_destroy(model);
	access_close(&options.access);
	return status;
}
