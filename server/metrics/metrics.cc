/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Prometheus' text format by prometheus-cpp: collect.c gives the families, the library writes them.
 * No exception leaves this file: the function that C calls catches all of them.
 */
#include "server/metrics/metrics.h"
#include "server/metrics/metrics_internal.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace
{

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

struct Scrape {
	std::vector<MetricFamily> families;
	bool failed = false; /* out of memory: the scrape gets nothing */
};

MetricType type_of(int type)
{
	switch (type) {
	case METRICS_COUNTER:
		return MetricType::Counter;
	case METRICS_HISTOGRAM:
		return MetricType::Histogram;
	default:
		return MetricType::Gauge;
	}
}

/* An exception can't pass the frames of C between here and the library. */
template <typename Step> void guarded(void *context, Step step) noexcept
{
	Scrape *scrape = static_cast<Scrape *>(context);

	try {
		if (!scrape->failed)
			step(*scrape);
	} catch (...) {
		scrape->failed = true;
	}
}

void begin(void *context, const char *name, int type, const char *help)
{
	guarded(context, [=](Scrape &scrape) {
		MetricFamily family;

		family.name = name;
		family.help = help;
		family.type = type_of(type);
		scrape.families.push_back(std::move(family));
	});
}

ClientMetric &add(Scrape &scrape, const char *names, const char *const *values)
{
	std::vector<ClientMetric> &metrics = scrape.families.back().metric;

	metrics.emplace_back();
	for (unsigned i = 0; *names; i++) {
		size_t length = std::strcspn(names, ",");

		metrics.back().label.push_back({ std::string(names, length), values[i] });
		names += length + (names[length] != 0);
	}
	return metrics.back();
}

void sample(void *context, const char *names, const char *const *values, double value)
{
	guarded(context, [=](Scrape &scrape) {
		ClientMetric &metric = add(scrape, names, values);

		if (scrape.families.back().type == MetricType::Counter)
			metric.counter.value = value;
		else
			metric.gauge.value = value;
	});
}

void histogram(void *context, const char *names, const char *const *values, const double *bounds_seconds,
	       const uint64_t *cumulative, unsigned bounds, uint64_t count, double sum_seconds)
{
	guarded(context, [=](Scrape &scrape) {
		ClientMetric &metric = add(scrape, names, values);

		metric.histogram.sample_count = count;
		metric.histogram.sample_sum = sum_seconds;
		for (unsigned i = 0; i < bounds; i++)
			metric.histogram.bucket.push_back({ cumulative[i], bounds_seconds[i] });
		metric.histogram.bucket.push_back({ count, INFINITY });
	});
}

} // namespace

char *metrics_text(const struct server *server, size_t *length)
{
	try {
		Scrape scrape;
		const struct metrics_sink sink = { &scrape, begin, sample, histogram };

		metrics_collect(server, &sink);
		if (scrape.failed)
			return nullptr;

		const std::string text = prometheus::TextSerializer().Serialize(scrape.families);
		char *copy = static_cast<char *>(std::malloc(text.size() + 1));

		if (copy)
			std::memcpy(copy, text.c_str(), text.size() + 1);
		*length = text.size();
		return copy;
	} catch (...) {
		return nullptr;
	}
}
