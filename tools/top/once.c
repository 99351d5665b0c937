/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/top/once.h"

#include <errno.h>
#include <math.h>

#include "tools/common/args.h"

/* Whole numbers without decimals, others with the digits that matter. */
static void print_value(double value, FILE *out)
{
	if (value == floor(value) && fabs(value) < 1e15)
		fprintf(out, "%.0f", value);
	else
		fprintf(out, "%.6g", value);
}

static void print_pair(const char *name, double value, FILE *out)
{
	if (isnan(value))
		return;
	fprintf(out, " %s=", name);
	print_value(value, out);
}

static void print_timings(const struct basis *basis, FILE *out)
{
	static const char *const names[TIMINGS] = {
#define LATENCY(name, metric, label, text) #name,
#include "base/metrics/latency.def"
#undef LATENCY
	};
	static const char *const parts[TIMING_PARTS] = { "count",  "mean_us", "p50_us", "p90_us",
							 "p99_us", "p999_us", "max_us" };

	for (int i = 0; i < TIMINGS; i++) {
		if (!(basis->timing[i][TIMING_COUNT] > 0))
			continue;
		fprintf(out, "latency %s", names[i]);
		for (int j = 0; j < TIMING_PARTS; j++)
			print_pair(parts[j], basis->timing[i][j], out);
		print_pair("per_second", basis->timing_rate[i], out);
		print_pair("mean_now_us", basis->timing_time[i] / basis->timing_rate[i], out);
		fputc('\n', out);
	}
}

static void print_apps(const struct basis *basis, FILE *out)
{
	for (unsigned i = 0; i < basis->app_count; i++) {
		const double *rate = basis->app_rate[i].count, *total = basis->app_total[i].count;

		fprintf(out, "application %s", basis->app_rate[i].name);
		print_pair("gets", total[APP_GETS], out);
		print_pair("gets_per_second", rate[APP_GETS], out);
		print_pair("sets_per_second", rate[APP_SETS], out);
		if (total[APP_GETS] > 0) {
			print_pair("hit_ratio", fmin(total[APP_HITS] / total[APP_GETS], 1), out);
			print_pair("flash_hit_ratio", fmin(total[APP_FLASH_HITS] / total[APP_GETS], 1), out);
		}
		print_pair("read_bytes_per_second", rate[APP_BYTES_READ], out);
		print_pair("written_bytes_per_second", rate[APP_BYTES_WRITTEN], out);
		fputc('\n', out);
	}
}

static void print_hot_keys(const struct model *model, FILE *out)
{
	static const char *const measures[HOT_MEASURES] = { "requests", "bytes", "reads" };

	for (unsigned i = 0; i < model->count; i++) {
		const struct server *server = &model->servers[i];

		if (!server_answers(server))
			continue;
		for (int by = 0; by < HOT_MEASURES; by++) {
			const struct hot_keys *keys = &server->track.now.hot[by][HOT_MINUTE];

			for (unsigned rank = 0; rank < HOT_KEYS && keys->key[rank].name[0]; rank++) {
				fprintf(out, "hot_key %s by=%s rank=%u", keys->key[rank].name, measures[by], rank + 1);
				for (int m = 0; m < HOT_MEASURES; m++)
					print_pair(measures[m], keys->key[rank].amount[m], out);
				fprintf(out, " server=%s\n", server->peer.address);
			}
		}
	}
}

static void print_contents(const struct model *model, FILE *out)
{
	static const char *const tiers[TIERS] = { "dram", "flash" };
	static const char *const amounts[CONTENT_AMOUNTS] = { "objects", "bytes", "value_bytes" };

	for (unsigned i = 0; i < model->count; i++) {
		const struct server *server = &model->servers[i];
		const struct sample *sample = &server->track.now;

		for (unsigned n = 0; server_answers(server) && n < sample->content_count; n++)
			for (int tier = 0; tier < TIERS; tier++) {
				const double *amount = sample->contents[n].amount[tier];

				if (isnan(amount[CONTENT_OBJECTS]))
					continue;
				fprintf(out, "contents %s tier=%s", sample->contents[n].name, tiers[tier]);
				for (int a = 0; a < CONTENT_AMOUNTS; a++)
					print_pair(amounts[a], amount[a], out);
				fprintf(out, " server=%s\n", server->peer.address);
			}
	}
}

static void print_limits(const struct model *model, FILE *out)
{
	for (unsigned i = 0; i < model->count; i++) {
		const struct server *server = &model->servers[i];
		const struct sample *sample = &server->track.now;

		for (unsigned n = 0; server_answers(server) && n < sample->limited_count; n++) {
			const struct limited_app *app = &sample->limited[n];

			fprintf(out, "limit %s", app->name);
			for (int a = 0; a < LIMIT_AMOUNTS; a++)
				if (!isnan(app->amount[a]))
					print_pair(limit_amount_name((enum limit_amount)a), app->amount[a], out);
			fprintf(out, " server=%s\n", server->peer.address);
		}
	}
}

static void print_texts(const struct sample *sample, FILE *out)
{
	const struct {
		const char *name, *text;
	} texts[] = {
		{ "version", sample->version },
		{ "flashield_version", sample->flashield },
		{ "model", sample->model },
		{ "model_reason", sample->reason },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (texts[i].text[0])
			fprintf(out, "%-36s %s\n", texts[i].name, texts[i].text);
}

static void print_servers(const struct model *model, FILE *out)
{
	static const enum figure shown[] = { FIG_hit_ratio_now,
					     FIG_hit_ratio,
					     FIG_requests_per_second,
					     FIG_items,
					     FIG_memory_load,
					     FIG_flash_load,
					     FIG_flash_write_rate_bytes_per_second };

	for (unsigned i = 0; i < model->count; i++) {
		const struct server *server = &model->servers[i];

		if (!server_answers(server))
			continue;
		fprintf(out, "server %s", server->peer.address);
		for (size_t j = 0; j < sizeof(shown) / sizeof(shown[0]); j++)
			print_pair(figure_info(shown[j])->name, server->summary.figures[shown[j]], out);
		fputc('\n', out);
	}
}

void once_print(const struct model *model, FILE *out)
{
	for (unsigned i = 0; i < model->count; i++)
		if (server_answers(&model->servers[i])) {
			print_texts(&model->servers[i].track.now, out);
			break;
		}
	for (int i = 0; i < FIG_COUNT; i++)
		if (!isnan(model->all.figures[i])) {
			fprintf(out, "%-36s ", figure_info((enum figure)i)->name);
			print_value(model->all.figures[i], out);
			fputc('\n', out);
		}
	print_timings(&model->all.basis, out);
	print_apps(&model->all.basis, out);
	print_hot_keys(model, out);
	print_contents(model, out);
	print_limits(model, out);
	if (model->count > 1)
		print_servers(model, out);
}

int once_status(const struct model *model)
{
	unsigned silent = 0;

	for (unsigned i = 0; i < model->count; i++) {
		const struct peer *peer = &model->servers[i].peer;

		if (server_answers(&model->servers[i]))
			continue;
		silent++;
		fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, peer->address,
			peer->error[0] ? peer->error : "no answer");
	}
	return silent == 0 ? 0 : silent < model->count ? EXIT_WRONG : EXIT_TROUBLE;
}
