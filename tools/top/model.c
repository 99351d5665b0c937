/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/model.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

struct model *model_create(const struct access *access, const char *const *addresses, unsigned count,
			   int64_t timeout_us)
{
	struct model *model = mem_must_zalloc(sizeof(*model));

	model->servers = mem_must_zalloc(count * sizeof(*model->servers));
	model->count = count;
	for (unsigned i = 0; i < count; i++) {
		peer_init(&model->servers[i].peer, access, addresses[i], timeout_us);
		basis_clear(&model->servers[i].summary.basis);
		figures_of(&model->servers[i].summary.basis, model->servers[i].summary.figures);
	}
	basis_clear(&model->all.basis);
	figures_of(&model->all.basis, model->all.figures);
	return model;
}

void model_destroy(struct model *model)
{
	for (unsigned i = 0; i < model->count; i++)
		peer_fini(&model->servers[i].peer);
	mem_free(model->servers);
	mem_free(model);
}

bool server_answers(const struct server *server)
{
	return server->track.has_now && server->peer.state != PEER_DOWN && server->peer.failures == 0;
}

static void push(struct history *history, const double figures[FIG_COUNT])
{
	const double values[SERIES_COUNT] = {
		[SERIES_HITS] = figures[FIG_hit_ratio_now],
		[SERIES_REQUESTS] = figures[FIG_requests_per_second],
		[SERIES_WRITTEN] = figures[FIG_flash_written_bytes_per_second],
		[SERIES_READ] = figures[FIG_flash_read_bytes_per_second],
	};

	if (history->count == HISTORY_VALUES) {
		for (int i = 0; i < SERIES_COUNT; i++)
			memmove(history->values[i], history->values[i] + 1,
				(HISTORY_VALUES - 1) * sizeof(history->values[i][0]));
		history->count--;
	}
	for (int i = 0; i < SERIES_COUNT; i++)
		history->values[i][history->count] = (float)values[i];
	history->count++;
}

static void summarize(struct summary *summary)
{
	figures_of(&summary->basis, summary->figures);
	push(&summary->history, summary->figures);
}

/* A server that doesn't answer keeps its last values on the screen, but its rates are unknown. */
static void forget_rates(struct basis *basis)
{
	for (int i = 0; i < FIELD_COUNT; i++)
		basis->rate[i] = NAN;
	for (int i = 0; i < TIMINGS; i++)
		basis->timing_rate[i] = basis->timing_time[i] = NAN;
	for (unsigned i = 0; i < basis->app_count; i++)
		for (int j = 0; j < APP_COUNTS; j++)
			basis->app_rate[i].count[j] = NAN;
}

static void end_round(struct model *model)
{
	basis_clear(&model->all.basis);
	for (unsigned i = 0; i < model->count; i++) {
		struct server *server = &model->servers[i];

		basis_of(&server->track, &server->summary.basis);
		if (!server_answers(server))
			forget_rates(&server->summary.basis);
		summarize(&server->summary);
		/* A lost server adds nothing to the sum. A single server keeps its last values on the screen. */
		if (server_answers(server) || model->count == 1)
			basis_add(&model->all.basis, &server->summary.basis);
	}
	summarize(&model->all);
	model->in_round = false;
	model->rounds++;
}

void model_ask(struct model *model, int64_t now_us)
{
	if (model->in_round)
		end_round(model);
	model->in_round = true;
	for (unsigned i = 0; i < model->count; i++) {
		peer_ask(&model->servers[i].peer, now_us);
		model->servers[i].pending = model->servers[i].peer.state != PEER_DOWN;
	}
}

bool model_step(struct model *model, struct server *server, bool sample)
{
	if (sample)
		track_add(&server->track, &server->peer.sample);
	if (sample || server->peer.state == PEER_DOWN)
		server->pending = false;
	for (unsigned i = 0; i < model->count; i++)
		if (model->servers[i].pending)
			return false;
	if (!model->in_round)
		return false;
	end_round(model);
	return true;
}

void model_rebase(struct model *model)
{
	model->based = true;
	for (unsigned i = 0; i < model->count; i++)
		track_rebase(&model->servers[i].track);
}

double history_most(const struct history *history, enum series series, int width)
{
	size_t shown = width < 0 ? 0 : (size_t)width < history->count ? (size_t)width : history->count;
	double most = 0;

	for (size_t i = history->count - shown; i < history->count; i++)
		if ((double)history->values[series][i] > most)
			most = (double)history->values[series][i];
	return most;
}
