/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The values of one server's reports at one time.
 *
 * A value that the server didn't send, or that is no number, is NAN. Arithmetic on it stays NAN, and NAN is shown as
 * "-". So a server that lacks a report needs no special case anywhere.
 *
 * Threads: one owner. Nothing is allocated.
 */
#ifndef FS_TOOLS_TOP_SAMPLE_H
#define FS_TOOLS_TOP_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The reports, in the order they are asked for. */
enum report {
	REPORT_GENERAL,
	REPORT_FLASH,
	REPORT_CLASSIFIER,
	REPORT_APPS,
	REPORT_LATENCY,
	REPORT_SEGMENTS,
	REPORT_HOTKEYS,
	REPORT_SLOW,
	REPORT_CONTENTS,
	REPORT_LIMITS,
	REPORTS
};

enum field {
#define FIELD(name, report, kind, aggregate, also) FIELD_##name,
#include "tools/top/fields.def"
#undef FIELD
	FIELD_COUNT
};

enum field_kind { FIELD_COUNTER, FIELD_GAUGE };
enum field_aggregate { FIELD_SUM, FIELD_MAX, FIELD_MIN };

struct field_info {
	const char *name;
	enum report report;
	enum field_kind kind;
	enum field_aggregate aggregate;
	const char *also;
};
/* Returns the row of fields.def, constant. */
const struct field_info *field_info(enum field field);

/* The kinds of durations, which are the rows of base/metrics/latency.def, and the columns of "stats latency". */
enum timing {
#define LATENCY(name, metric, label, text) TIMING_##name,
#include "base/metrics/latency.def"
#undef LATENCY
	TIMINGS
};
enum timing_part {
	TIMING_COUNT,
	TIMING_MEAN,
	TIMING_P50,
	TIMING_P90,
	TIMING_P99,
	TIMING_P999,
	TIMING_MAX,
	TIMING_PARTS
};

#define APP_NAME_BYTES 64
#define APPS_MAX 80u /* our daemon knows 64 and two more; further ones are left out */

enum app_count {
	APP_GETS,
	APP_HITS,
	APP_FLASH_HITS,
	APP_SETS,
	APP_DELETES,
	APP_OTHERS,
	APP_BYTES_READ,
	APP_BYTES_WRITTEN,
	APP_COUNTS
};

struct app {
	char name[APP_NAME_BYTES];
	double count[APP_COUNTS];
};

/* The hottest keys, as "stats hotkeys" ranks them: by a measure, over a window. */
enum hot_measure { HOT_REQUESTS, HOT_BYTES, HOT_READS, HOT_MEASURES };
enum hot_window { HOT_MINUTE, HOT_TEN_MINUTES, HOT_WINDOWS };
#define HOT_KEYS 20u
#define HOT_KEY_BYTES 96

struct hot_key {
	char name[HOT_KEY_BYTES]; /* the key as the server shows it, or "hash=..."; "": the rank is empty */
	double amount[HOT_MEASURES]; /* in the window */
};

struct hot_keys {
	double seconds, total; /* of the window; of all keys, by the measure that ranks */
	struct hot_key key[HOT_KEYS]; /* the hottest first */
};

/* The newest slow requests, as "stats slow" has them. */
enum slow_part { SLOW_TOTAL, SLOW_QUEUE, SLOW_RUN, SLOW_FLASH, SLOW_SEND, SLOW_PARTS };
#define SLOW_REQUESTS 50u
#define SLOW_WORD_BYTES 16

struct slow_request {
	char command[SLOW_WORD_BYTES]; /* "": there is none */
	char status[SLOW_WORD_BYTES], tier[SLOW_WORD_BYTES];
	char name[HOT_KEY_BYTES]; /* the key as the server shows it, or "hash=..." */
	char peer[HOT_KEY_BYTES]; /* the client's address, where it is known */
	double at; /* seconds since 1970 */
	double us[SLOW_PARTS]; /* microseconds */
	double together; /* requests that were answered with it, itself included */
};

/* What is in the cache, as "stats contents" estimates it: sums by application and tier, and histograms of all objects of a tier. */
enum tier { TIER_DRAM, TIER_FLASH, TIERS };
enum content_amount { CONTENT_OBJECTS, CONTENT_BYTES, CONTENT_VALUE_BYTES, CONTENT_AMOUNTS };
enum content_measure { CONTENT_SIZE, CONTENT_AGE, CONTENT_TTL, CONTENT_IDLE, CONTENT_MEASURES };
#define CONTENT_ALL "(all)" /* the name of the sums over all applications */
#define CONTENT_BUCKETS 16u

struct content {
	char name[APP_NAME_BYTES];
	double amount[TIERS][CONTENT_AMOUNTS];
};

struct histogram {
	struct histogram_bucket {
		char name[12]; /* the upper bound of what is in it: "256", "10m", "more" */
		double objects;
	} bucket[CONTENT_BUCKETS];
	unsigned count;
};

/* Applications with limits, as "stats limits" has them: bytes in memory and on flash with their floors and ceilings, bytes
   a second that may go to flash, and, since the server's start, objects evicted at the ceiling and bytes that went to flash,
   and objects that the limit on writes kept from it. NAN: there is no such limit. */
enum limit_amount {
	LIMIT_DRAM,
	LIMIT_DRAM_FLOOR,
	LIMIT_DRAM_CEILING,
	LIMIT_EVICTIONS,
	LIMIT_FLASH,
	LIMIT_FLASH_FLOOR,
	LIMIT_FLASH_CEILING,
	LIMIT_WRITE,
	LIMIT_WRITTEN,
	LIMIT_REFUSALS,
	LIMIT_AMOUNTS
};
#define LIMITED_MAX 64u /* our daemon has no more; further ones are left out */

struct limited_app {
	char name[APP_NAME_BYTES];
	double amount[LIMIT_AMOUNTS];
};

struct sample {
	int64_t at_us; /* the time when the last report was complete, by a clock that never goes back */
	double value[FIELD_COUNT];
	double timing[TIMINGS][TIMING_PARTS]; /* counts, and microseconds */
	struct app apps[APPS_MAX];
	unsigned app_count;
	struct hot_keys hot[HOT_MEASURES][HOT_WINDOWS];
	struct slow_request slow[SLOW_REQUESTS]; /* the newest first */
	unsigned slow_count;
	struct content contents[APPS_MAX];
	unsigned content_count;
	struct histogram histograms[TIERS][CONTENT_MEASURES];
	struct limited_app limited[LIMITED_MAX];
	unsigned limited_count;
	bool has[REPORTS]; /* the server knows this report */
	char version[24]; /* of memcached, or the version that our daemon claims to be compatible with */
	char flashield[24]; /* our daemon's own version; "" of another server */
	char model[16];
	char reason[160];
	char offline_reason[96];
	char held_by[16]; /* what holds writes to flash back */
};

/* Makes all values unknown. */
void sample_clear(struct sample *sample);

/* Takes a row of a report. Unknown names and values that are no number are ignored. */
void sample_row(struct sample *sample, enum report report, const char *name, const char *value);

/* Call it after the last row: a field without a value takes that of its second name (`also`). */
void sample_complete(struct sample *sample, int64_t at_us);

/* Takes a row of "stats hotkeys"; sample_row calls it. */
void sample_hot_row(struct sample *sample, const char *name, const char *value);
/* Takes a row of "stats slow"; likewise. */
void sample_slow_row(struct sample *sample, const char *name, const char *value);
/* Takes a row of "stats contents"; likewise. */
void sample_contents_row(struct sample *sample, const char *name, const char *value);
/* Takes a row of "stats limits"; likewise. */
void sample_limits_row(struct sample *sample, const char *name, const char *value);
/* Returns the amount's name in that report. */
const char *limit_amount_name(enum limit_amount amount);
/* Finds "name=TEXT" among the words of a value, and copies TEXT, cut to bytes - 1. False: it isn't there. */
bool sample_find_word(const char *value, const char *name, char *out, size_t bytes);
/* Returns the number of that word, or NAN. */
double sample_find_number(const char *value, const char *name);
/* Copies the word "key=..." of a value, or else "hash=" and its number. "" if it has neither. */
void sample_find_key(const char *value, char out[HOT_KEY_BYTES]);
/* Returns a finite number with nothing behind it, or NAN. */
double sample_number(const char *text);

/* Returns the application of this name, or NULL. */
const struct app *sample_app(const struct sample *sample, const char *name);

#endif
