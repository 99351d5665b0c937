/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/tracegen/report.h"

#include <math.h>
#include <string.h>

#include "tools/common/text.h"

/* A figure that differs by more counts as missed. */
#define PERCENT_POINTS 0.5
#define PART 0.05

static double share(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

static void app_counts(const struct tally *tally, FILE *out)
{
	const struct plan *plan = tally->plan;
	const struct app *app = plan->app;
	char requests[TEXT_BYTES], wanted_requests[TEXT_BYTES], keys[TEXT_BYTES], wanted_keys[TEXT_BYTES];

	fprintf(out, "%4u %8s %8s  %8s %8s  %8.1f %8.1f ", app->id, text_count((double)tally->requests, requests),
		text_count(app->requests_m * 1e6 * plan->scale, wanted_requests), text_count((double)tally->keys, keys),
		text_count(app->keys * plan->scale, wanted_keys),
		(double)tally->requests / (double)(tally->keys ? tally->keys : 1), app->requests_m * 1e6 / app->keys);
}

static void app_mix(const struct tally *tally, FILE *out)
{
	const struct app *app = tally->plan->app;
	double requests = (double)tally->requests;

	fprintf(out, " %6.2f %6.2f %5.2f  %6.2f %6.2f %5.2f  ", share((double)tally->ops[EVENT_GET], requests),
		share((double)tally->ops[EVENT_SET], requests), share((double)tally->ops[EVENT_DELETE], requests),
		app->get, app->set, app->delete);
}

static void app_values(const struct tally *tally, FILE *out)
{
	const struct plan *plan = tally->plan;
	double mean = tally->value_rows ? tally->value_bytes / (double)tally->value_rows : 0;

	fprintf(out, "%8.0f %8.0f  ", mean, plan->app->mean_value);
	if (plan->app->hit <= 0)
		fprintf(out, "%6s %6s\n", "-", "-");
	else if (!tally_hit_counts(plan))
		fprintf(out, "%6s %6.2f  allocation too small\n", "-", plan->app->hit);
	else
		fprintf(out, "%6.2f %6.2f  %.2f\n", tally_hit_percent(tally), plan->app->hit, plan->alpha);
}

static void print_apps(const struct tally *tallies, uint32_t count, FILE *out)
{
	fprintf(out, "\nPer application: reached, then published (x scale)\n");
	fprintf(out, "%4s %17s  %17s  %17s  %20s  %20s  %17s  %13s  %s\n", "app", "requests", "keys",
		"requests per key", "get/set/delete %", "published", "mean value B", "LRU hit %", "alpha");
	for (uint32_t i = 0; i < count; i++) {
		app_counts(&tallies[i], out);
		app_mix(&tallies[i], out);
		app_values(&tallies[i], out);
	}
}

/* Prints one line of the whole: name, figure reached, figure published, difference. */
static void line(FILE *out, const char *name, double reached, double published, const char *unit, bool is_percent)
{
	double missed = reached - published;
	bool is_missed = is_percent ? fabs(missed) > PERCENT_POINTS : fabs(missed) > PART * published;

	fprintf(out, "  %-38s %12.2f %12.2f %s", name, reached, published, unit);
	if (is_missed && is_percent)
		fprintf(out, "   missed by %+.2f points", missed);
	else if (is_missed)
		fprintf(out, "   missed by %+.1f %%", 100 * missed / published);
	fputc('\n', out);
}

static void print_whole(const struct tally *all, FILE *out)
{
	double known = (double)(all->reads + all->writes + all->updates);

	fprintf(out, "\nThe whole, in the paper's accounting (gets of known size)\n  %-38s %12s %12s\n", "", "reached",
		"published");
	line(out, "reads", share((double)all->reads, known), 90.0, "%", true);
	line(out, "writes (first get of a key)", share((double)all->writes, known), 100 * PUBLISHED_WRITE_SHARE, "%",
	     true);
	line(out, "updates (size changed)", share((double)all->updates, known), 100 * PUBLISHED_UPDATE_SHARE, "%",
	     true);
	line(out, "unread writes, of the writes", share((double)all->unread, (double)all->writes),
	     100 * PUBLISHED_UNREAD_SHARE, "%", true);
	line(out, "mean object", all->writes ? all->object_bytes / (double)all->writes : 0, PUBLISHED_OBJECT_BYTES, "B",
	     false);
	line(out, "objects below 1 KB, of the writes", share((double)all->small, (double)all->writes),
	     100 * PUBLISHED_SMALL_SHARE, "%", true);
	line(out, "objects below 1 KB, of the sets", share((double)all->set_small, (double)all->ops[EVENT_SET]),
	     100 * PUBLISHED_SMALL_SHARE, "%", true);
	fprintf(out, "\nThe whole, all rows\n");
	line(out, "gets", share((double)all->ops[EVENT_GET], (double)all->requests), 81.97, "%", true);
	line(out, "sets", share((double)all->ops[EVENT_SET], (double)all->requests), 17.13, "%", true);
	line(out, "deletes", share((double)all->ops[EVENT_DELETE], (double)all->requests), 0.79, "%", true);
}

static void add(struct tally *all, const struct tally *tally)
{
	for (int op = 0; op < EVENT_OPS; op++)
		all->ops[op] += tally->ops[op];
	all->requests += tally->requests;
	all->keys += tally->keys;
	all->reads += tally->reads;
	all->writes += tally->writes;
	all->updates += tally->updates;
	all->unread += tally->unread;
	all->object_bytes += tally->object_bytes;
	all->small += tally->small;
	all->set_small += tally->set_small;
}

/* Prints the missed figures of each application, so that no reader must search for them. */
static void print_missed(const struct tally *tallies, uint32_t count, FILE *out)
{
	bool any = false;

	for (uint32_t i = 0; i < count; i++) {
		const struct tally *tally = &tallies[i];
		const struct app *app = tally->plan->app;
		double keys = app->keys * tally->plan->scale;
		double mean = tally->value_rows ? tally->value_bytes / (double)tally->value_rows : 0;
		char missed[256] = "";
		size_t used = 0;

#define MISSED(...) used += (size_t)snprintf(missed + used, sizeof(missed) - used, __VA_ARGS__)
		if (fabs((double)tally->keys - keys) > PART * keys + 1)
			MISSED(" keys %+.1f %%", share((double)tally->keys - keys, keys));
		if (fabs(mean - app->mean_value) > PART * app->mean_value)
			MISSED(" mean value %+.1f %%", share(mean - app->mean_value, app->mean_value));
		if (fabs(share((double)tally->ops[EVENT_GET], (double)tally->requests) - app->get) > PERCENT_POINTS)
			MISSED(" gets %+.2f points",
			       share((double)tally->ops[EVENT_GET], (double)tally->requests) - app->get);
		if (tally_hit_counts(tally->plan) && fabs(tally_hit_percent(tally) - app->hit) > PERCENT_POINTS)
			MISSED(" LRU hit %+.2f points", tally_hit_percent(tally) - app->hit);
#undef MISSED
		if (!missed[0])
			continue;
		fprintf(out, "%s  app %-4u%s\n", any ? "" : "\nMissed by more than 5 % or half a point\n", app->id,
			missed);
		any = true;
	}
}

void tracegen_report(const struct tracegen_options *options, const struct tally *tallies, uint32_t count,
		     uint64_t left_out, FILE *out)
{
	struct tally all = { 0 };
	char requests[TEXT_BYTES], keys[TEXT_BYTES], span[TEXT_BYTES];

	for (uint32_t i = 0; i < count; i++)
		add(&all, &tallies[i]);
	fprintf(out, "%s: %s requests, %s keys, %s, scale %.3g, seed %llu\n", options->output,
		text_grouped(all.requests, requests), text_grouped(all.keys, keys),
		text_duration(options->span_s, span), options->scale, (unsigned long long)options->seed);
	if (left_out)
		fprintf(out, "%s rows that this format has no word for (incr, stats, others) were left out\n",
			text_grouped(left_out, requests));
	print_apps(tallies, count, out);
	if (count == APP_COUNT)
		print_whole(&all, out);
	else
		fprintf(out, "\nThe whole is published for all twenty applications together only.\n");
	print_missed(tallies, count, out);
}
