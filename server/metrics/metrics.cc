/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The HTTP side of /metrics: prometheus-cpp's Exposer (civetweb's threads) asks for families, which collect.c gives.
 * No exception leaves this file: the functions that C calls catch all of them.
 */
#include "server/metrics/metrics.h"

#include <CivetServer.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <netdb.h>
#include <pthread.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace
{

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

/* A silent connection holds a thread until patience_ms is over. With 8 threads, 8 such connections a second delay no
   other client for longer than that. */
constexpr const char *threads = "8";
/* The time for a request to come, and for its answer to be taken. A stop may have to wait so long. */
constexpr const char *patience_ms = "1000";
/* civetweb's number for IPv6 in mg_check_feature. */
constexpr unsigned feature_ipv6 = 8;

/* ---- what collect.c tells, as the library has it ------------------------------------------------ */

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

class Figures final : public prometheus::Collectable
{
      public:
	explicit Figures(const struct server *server) : server_(server)
	{
	}

	std::vector<MetricFamily> Collect() const override
	{
		Scrape scrape;
		const struct metrics_sink sink = { &scrape, begin, sample, histogram };

		metrics_collect(server_, &sink);
		if (scrape.failed)
			scrape.families.clear();
		return std::move(scrape.families);
	}

      private:
	const struct server *server_;
};

/* ---- starting ----------------------------------------------------------------------------------- */

/* civetweb's first message in a start that fails. It comes in the thread that starts civetweb. */
thread_local char first_message[200];

int keep_first_message(const struct mg_connection *, const char *message)
{
	if (!first_message[0])
		std::snprintf(first_message, sizeof(first_message), "%s", message);
	return 1; /* civetweb writes no file of its own */
}

/* Threads inherit the mask: signals are the main thread's. */
class SignalsBlocked
{
      public:
	SignalsBlocked()
	{
		sigset_t all;

		sigfillset(&all);
		pthread_sigmask(SIG_BLOCK, &all, &before_);
	}
	~SignalsBlocked()
	{
		pthread_sigmask(SIG_SETMASK, &before_, nullptr);
	}
	SignalsBlocked(const SignalsBlocked &) = delete;
	SignalsBlocked &operator=(const SignalsBlocked &) = delete;

      private:
	sigset_t before_;
};

std::unique_ptr<prometheus::Exposer> listen_on(const char *address)
{
	const std::vector<std::string> options = { "listening_ports",    address,    "num_threads", threads,
						   "request_timeout_ms", patience_ms };
	CivetCallbacks callbacks;
	SignalsBlocked blocked;

	callbacks.log_message = keep_first_message;
	return std::make_unique<prometheus::Exposer>(options, &callbacks);
}

/* Port 0 becomes the port that the kernel has chosen. */
void name_port(std::string &address, const prometheus::Exposer &exposer)
{
	const size_t colon = address.rfind(':');
	const std::vector<int> ports = exposer.GetListeningPorts();

	if (std::strtol(address.c_str() + colon + 1, nullptr, 10) == 0 && !ports.empty())
		address.replace(colon + 1, std::string::npos, std::to_string(ports.front()));
}

/* ---- stopping ----------------------------------------------------------------------------------- */

/*
 * civetweb's thread that accepts notices that it must end when a client connects, or after 2 s. That is too long for a
 * cache that is being restarted. So this connects until the thread has ended.
 */
class Knocking
{
      public:
	explicit Knocking(const std::string &address)
	{
		SignalsBlocked blocked;

		try {
			thread_ = std::thread([this, address] { knock(address); });
		} catch (...) {
			return; /* the stop takes up to 2 s then */
		}
	}
	~Knocking()
	{
		done_ = true;
		if (thread_.joinable())
			thread_.join();
	}
	Knocking(const Knocking &) = delete;
	Knocking &operator=(const Knocking &) = delete;

      private:
	void knock(const std::string &address) noexcept
	{
		const size_t colon = address.rfind(':');
		const bool brackets = address[0] == '[';
		struct addrinfo hints = {}, *found = nullptr;

		try {
			const std::string host = address.substr(brackets, colon - 2 * brackets);

			hints.ai_socktype = SOCK_STREAM;
			if (getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) != 0)
				return;
		} catch (...) {
			return;
		}
		while (!done_) {
			connect_once(found);
			std::this_thread::sleep_for(std::chrono::milliseconds(5));
		}
		freeaddrinfo(found);
	}
	static void connect_once(const struct addrinfo *to) noexcept
	{
		int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		if (fd < 0)
			return;
		(void)!connect(fd, to->ai_addr,
			       to->ai_addrlen); /* it fails when nobody listens any more; then it isn't needed */
		close(fd);
	}

	std::atomic<bool> done_{ false };
	std::thread thread_;
};

} // namespace

struct metrics {
	std::string address;
	std::shared_ptr<Figures> figures;
	std::unique_ptr<prometheus::Exposer> exposer; /* destroyed first */
};

int metrics_start(struct metrics **out, const struct server *server, const char *address, char reason[256])
{
	*out = nullptr;
	first_message[0] = 0;
	if (std::strcmp(address, "off") == 0)
		return FS_OK;
	if (address[0] == '[' && !mg_check_feature(feature_ipv6)) {
		std::snprintf(reason, 256, "%s: the system's civetweb is built without IPv6", address);
		return FS_ESYS;
	}
	try {
		auto made = std::make_unique<struct metrics>();

		made->address = address;
		made->figures = std::make_shared<Figures>(server);
		made->exposer = listen_on(address);
		made->exposer->RegisterCollectable(made->figures);
		name_port(made->address, *made->exposer);
		*out = made.release();
		return FS_OK;
	} catch (const std::exception &failure) {
		std::snprintf(reason, 256, "%s: %s", address, first_message[0] ? first_message : failure.what());
	} catch (...) {
		std::snprintf(reason, 256, "%s: the address can't be served", address);
	}
	return FS_ESYS;
}

const char *metrics_address(const struct metrics *metrics)
{
	return metrics ? metrics->address.c_str() : nullptr;
}

void metrics_stop(struct metrics *metrics)
{
	if (!metrics)
		return;
	{
		Knocking knocking(metrics->address);

		metrics->exposer.reset();
	}
	delete metrics;
}
