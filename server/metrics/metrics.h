/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * /metrics for Prometheus, and two pages for probes (Kubernetes' liveness and readiness): /healthz says "alive" as long as
 * the process answers; /ready is 200 while clients are served and 503 before and after, and tells the state of the flash.
 *
 *   Prometheus --HTTP(S)--> libmicrohttpd's thread: http.c --> metrics.cc --> collect.c --> counters, store_get_status, ...
 *                                                     `--> certs.c (TLS), users.c (logging in)
 *
 * /metrics can ask for a client's certificate and for a user with a password. Probes need the certificate, as it comes
 * with the connection, but no password; /ready then has its first line alone.
 *
 * Only http.c includes libmicrohttpd, only certs.c GnuTLS, and only metrics.cc prometheus-cpp. collect.c gives all samples to a
 * sink. It is C and needs no library, so that tests read the samples without HTTP.
 *
 * Threads: all requests run in the one thread of libmicrohttpd, one at a time, never in a worker. They read only figures
 * that any thread may read: the counters' sums, store_get_status, net_get_status, snapshots of histograms. Store and
 * network exist before metrics_start, and until metrics_stop has returned.
 */
#ifndef FS_SERVER_METRICS_METRICS_H
#define FS_SERVER_METRICS_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct conf;
struct metrics;
struct server;

/* What /ready says. */
enum metrics_serving { METRICS_STARTS, METRICS_SERVES, METRICS_STOPS };

/* Serves http://address/metrics and the pages for probes, or https:// with --metrics-tls-cert. address is as in
   --metrics-listen. FS_OK: *out is the caller's; NULL if address is "off". FS_ESYS: it can't be served, and the reason names
   the address. FS_EINVAL: certificates or users can't be read, and the reason begins with the option. *out is NULL then; the
   daemon can go on without it. The thread blocks all signals. Main thread, as the user who serves. */
FS_MUST_CHECK int metrics_start(struct metrics **out, const struct server *server, const char *address,
				char reason[256]);
/* Reads what metrics_start would read, and calls fault() with each reason why it would not start; no address is bound. Main
   thread. */
typedef void metrics_fault_fn(void *context, const char *reason);
void metrics_check(const struct conf *conf, metrics_fault_fn *fault, void *context);
/* Returns the address that is served, with the port that the kernel has chosen for 0. It lives until metrics_stop. NULL
   for NULL. Any thread. */
const char *metrics_address(const struct metrics *metrics);
/* Changes what /ready says; it begins with METRICS_STARTS. NULL is nothing. Any thread. */
void metrics_set_serving(struct metrics *metrics, enum metrics_serving serving);
/* Is it served by TLS? False for NULL. Any thread. */
bool metrics_has_certificates(const struct metrics *metrics);
/* Reads certificates, keys and authorities again; connections that are open keep theirs. FS_OK, or a code with the reason: the
   old ones stay in use then. Either is logged. Only with metrics_has_certificates. Any thread; blocks on files. */
FS_MUST_CHECK int metrics_refresh_certificates(struct metrics *metrics, char reason[256]);
/* Reads the users again, if there are any. Like the one before. NULL is nothing. */
FS_MUST_CHECK int metrics_reload_users(struct metrics *metrics, char reason[256]);

struct metrics_status {
	int64_t certificates_expire_at; /* wall seconds: the first of the chain that expires; 0: no TLS, or not known */
	bool renewal_failed; /* the last reading of certificates: those before it are in use */
	uint64_t renewal_failures; /* such readings after the start */
	uint64_t password_checks; /* runs of bcrypt since the start */
};
/* Fills out, with zeros for NULL. Any thread. */
void metrics_get_status(const struct metrics *metrics, struct metrics_status *out);
/* Waits for a scrape that is being made, closes all connections and frees all. NULL is nothing. Main thread, before
   anything that a scrape reads is freed. */
void metrics_stop(struct metrics *metrics);

/* ---- samples (collect.c) ---------------------------------------------------------------------- */

/* The values of base/metrics/metrics.h's enum metric_type. C++ can't include that header, because of its atomics. */
enum metrics_type { METRICS_GAUGE, METRICS_COUNTER, METRICS_HISTOGRAM };

/* The receiver of all families, one after the other: begin() comes first, then the family's samples. Texts are valid
   only during the call. */
struct metrics_sink {
	void *context;
	/* A family begins. type: enum metrics_type. */
	void (*begin)(void *context, const char *name, int type, const char *help);
	/* A gauge or a counter. names: its labels, separated by commas, as in metrics.def; values: one for each
	   label. */
	void (*sample)(void *context, const char *names, const char *const *values, double value);
	/* A histogram. cumulative[i] counts the durations up to bounds_seconds[i], ascending; count counts all of
	   them. */
	void (*histogram)(void *context, const char *names, const char *const *values, const double *bounds_seconds,
			  const uint64_t *cumulative, unsigned bounds, uint64_t count, double sum_seconds);
};

/* Calls the sink for each family, in the order of metrics.def, and then for the counters. Any thread; takes leaf locks
   and reads /proc. */
void metrics_collect(const struct server *server, const struct metrics_sink *sink);

#ifdef __cplusplus
}
#endif

#endif
