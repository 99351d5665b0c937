/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts that the files with the samples of /metrics share. Each row of metrics.def has a function that gives its samples:
 * in collect_requests.c if they tell of requests, else in collect.c.
 *
 * Threads: that of the scrape.
 */
#ifndef FS_SERVER_METRICS_COLLECT_INTERNAL_H
#define FS_SERVER_METRICS_COLLECT_INTERNAL_H

#include <sys/resource.h>

#include "base/metrics/metrics.h"
#include "server/metrics/metrics.h"
#include "server/net/net.h"
#include "server/store/move.h"
#include "server/store/store.h"

struct conf;

/* The figures that the samples are made from. They are read once for all of them. */
struct source {
	const struct server *server;
	const struct conf *conf;
	const struct metrics_sink *sink;
	struct store_status store;
	struct store_move_status move;
	struct net_status net;
	struct metrics_status own; /* of the endpoint itself */
	struct rusage usage;
};

/* Gives a sample with a value for each label; a value that is NAN gives none. */
void give_sample(const struct source *from, enum metric metric, const char *const *values, double value);
/* Does the same for a metric with one label. */
void give_one(const struct source *from, enum metric metric, const char *label, double value);

/* VALUE(name, expression): a metric without labels, from struct source *from. */
#define VALUE(name, expression) \
	void show_##name(const struct source *from) \
	{ \
		give_sample(from, METRIC_##name, NULL, expression); \
	}

/* Each gives the samples of a row of metrics.def. */
#define METRIC(name, type, labels, text) void show_##name(const struct source *from);
#include "base/metrics/metrics.def"
#undef METRIC

#endif
