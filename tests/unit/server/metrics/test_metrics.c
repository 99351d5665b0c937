/* SPDX-License-Identifier: BSD-3-Clause */
/* What /metrics shows, without HTTP: each row of the tables once, with its labels, and values that a counter may have. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/metrics/latency.h"
#include "base/metrics/metrics.h"
#include "conf/conf.h"
#include "server/conn/conn.h"
#include "server/conn/server.h"
#include "server/count/contents.h"
#include "server/count/observe.h"
#include "server/metrics/label.h"
#include "server/metrics/metrics.h"
#include "server/net/net.h"
#include "server/store/store.h"

#define SERIES_MAX 2000u
#define FAMILIES (METRIC_COUNT + CTR_COUNT)
#define TEXT_BYTES 1400u

/* ---- a daemon without threads, and what it shows ------------------------------------------------ */

struct series {
	unsigned family;
	char labels[TEXT_BYTES]; /* "name=value," for each */
	double value; /* of a histogram its count */
};

struct scrape {
	unsigned families, count;
	char names[FAMILIES + 1][80];
	char helps[FAMILIES + 1][400];
	int types[FAMILIES + 1];
	struct series series[SERIES_MAX];
};

struct fixture {
	struct conf conf;
	struct server server;
	struct scrape first, second;
	char path[64]; /* of the flash file; empty: none */
};

static void begin(void *context, const char *name, int type, const char *help)
{
	struct scrape *scrape = context;

	assert_true(scrape->families < FAMILIES);
	snprintf(scrape->names[scrape->families], sizeof(scrape->names[0]), "%s", name);
	snprintf(scrape->helps[scrape->families], sizeof(scrape->helps[0]), "%s", help);
	scrape->types[scrape->families++] = type;
}

static struct series *add(struct scrape *scrape, const char *names, const char *const *values)
{
	struct series *series = &scrape->series[scrape->count++];
	size_t used = 0;

	assert_true(scrape->families > 0 && scrape->count <= SERIES_MAX);
	series->family = scrape->families - 1;
	series->labels[0] = 0;
	for (unsigned i = 0; *names; i++) {
		size_t length = strcspn(names, ",");

		assert_non_null(values[i]);
		used += (size_t)snprintf(series->labels + used, TEXT_BYTES - used, "%.*s=%s,", (int)length, names,
					 values[i]);
		assert_true(used < TEXT_BYTES);
		names += length + (names[length] != 0);
	}
	return series;
}

static void sample(void *context, const char *names, const char *const *values, double value)
{
	struct scrape *scrape = context;

	assert_int_not_equal(scrape->types[scrape->families - 1], METRICS_HISTOGRAM);
	add(scrape, names, values)->value = value;
}

static void histogram(void *context, const char *names, const char *const *values, const double *bounds,
		      const uint64_t *cumulative, unsigned count, uint64_t all, double sum)
{
	struct scrape *scrape = context;

	assert_int_equal(scrape->types[scrape->families - 1], METRICS_HISTOGRAM);
	assert_true(isfinite(sum) && sum >= 0);
	for (unsigned i = 1; i < count; i++)
		assert_true(bounds[i] > bounds[i - 1] && cumulative[i] >= cumulative[i - 1]);
	assert_true(count > 0 && bounds[0] > 0 && cumulative[count - 1] <= all);
	add(scrape, names, values)->value = (double)all;
}

static void collect(struct fixture *f, struct scrape *out)
{
	const struct metrics_sink sink = { out, begin, sample, histogram };

	memset(out, 0, sizeof(*out));
	metrics_collect(&f->server, &sink);
}

static void set(struct fixture *f, const char *name, const char *value)
{
	char why[256];

	if (conf_set(&f->conf, name, value, why, sizeof(why)) != FS_OK)
		fail_msg("%s=%s: %s", name, value, why);
}

static int open_fixture(void **state, bool flash)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct store_config config;
	char reason[256] = "";

	assert_non_null(f);
	conf_init(&f->conf);
	set(f, "listen", "127.0.0.1");
	set(f, "port", "-1");
	store_config_init(&config);
	config.workers = 1;
	if (flash) {
		snprintf(f->path, sizeof(f->path), "/tmp/flashield-metrics-%d", (int)getpid());
		config.flash_path = f->path;
		config.flash_bytes = 4u << 20;
		config.segment_bytes = 64u << 10;
		config.memory_bytes = 8u << 20;
	}
	f->server.conf = &f->conf;
	observe_init(&f->conf);
	if (net_listen(&f->server.net, &(struct net_setup){ .server = &f->server }, reason) != FS_OK ||
	    store_open(&f->server.store, &config, reason) != FS_OK)
		fail_msg("%s", reason);
	*state = f;
	return 0;
}

static int begin_dram(void **state)
{
	return open_fixture(state, false);
}

static int begin_flash(void **state)
{
	return open_fixture(state, true);
}

static int end(void **state)
{
	struct fixture *f = *state;

	store_close(f->server.store);
	net_close(f->server.net);
	observe_fini();
	if (f->path[0])
		unlink(f->path);
	conf_free(&f->conf);
	free(f);
	return 0;
}

/* The value of the series; fails when there is none. */
static bool has_value(const struct scrape *scrape, const char *name)
{
	for (unsigned i = 0; i < scrape->count; i++)
		if (strcmp(scrape->names[scrape->series[i].family], name) == 0)
			return true;
	return false;
}

static double value_of(const struct scrape *scrape, const char *name, const char *labels)
{
	for (unsigned i = 0; i < scrape->count; i++)
		if (strcmp(scrape->names[scrape->series[i].family], name) == 0 &&
		    strcmp(scrape->series[i].labels, labels) == 0)
			return scrape->series[i].value;
	fail_msg("no %s{%s}", name, labels);
	return 0;
}

/* ---- the tables --------------------------------------------------------------------------------- */

static void each_row_is_given_once_in_order(void **state)
{
	struct fixture *f = *state;
	struct scrape *got = &f->first;

	collect(f, got);
	assert_int_equal(got->families, FAMILIES);
	for (unsigned i = 0; i < METRIC_COUNT; i++) {
		assert_string_equal(got->names[i], metric_info((enum metric)i)->name);
		assert_string_equal(got->helps[i], metric_info((enum metric)i)->text);
		assert_int_equal(got->types[i], metric_info((enum metric)i)->type);
	}
	for (unsigned i = 0; i < CTR_COUNT; i++) {
		assert_string_equal(got->names[METRIC_COUNT + i], metric_counter_name((enum ctr)i));
		assert_string_equal(got->helps[METRIC_COUNT + i], ctr_info((enum ctr)i)->text);
		assert_int_equal(got->types[METRIC_COUNT + i], METRICS_COUNTER);
	}
}

static bool may_be_left_out(const char *help)
{
	return strstr(help, "left out w") != NULL;
}

static void each_family_has_samples_and_none_twice(void **state)
{
	struct fixture *f = *state;
	const struct scrape *got = &f->first;
	unsigned next = 0;

	collect(f, &f->first);
	for (unsigned i = 0; i < got->count; i++) {
		while (got->series[i].family > next && may_be_left_out(got->helps[next]))
			next++;
		assert_true(got->series[i].family == next || got->series[i].family + 1 == next);
		next = got->series[i].family + 1;
		for (unsigned j = i + 1; j < got->count && got->series[j].family == got->series[i].family; j++)
			assert_string_not_equal(got->series[i].labels, got->series[j].labels);
	}
	assert_int_equal(next, FAMILIES);
}

/* A ratio of nothing has no sample. Logarithms and weights alone, which are gauges of the model, may be negative. */
static void values_are_numbers(void **state)
{
	struct fixture *f = *state;
	const struct scrape *got = &f->first;

	collect(f, &f->first);
	for (unsigned i = 0; i < got->count; i++) {
		const struct series *series = &got->series[i];

		if (!isfinite(series->value))
			fail_msg("%s{%s} is %g", got->names[series->family], series->labels, series->value);
		if (series->value < 0 && !strstr(got->names[series->family], "_model_"))
			fail_msg("%s{%s} is negative", got->names[series->family], series->labels);
	}
}

static void ratios_of_nothing_are_left_out(void **state)
{
	struct fixture *f = *state;

	collect(f, &f->first);
	assert_true(value_of(&f->first, "flashield_model_in_use", "model=common,") == 0);
	assert_true(value_of(&f->first, "flashield_model_samples", "model=common,") == 0);
	assert_false(has_value(&f->first, "flashield_model_age_seconds"));
	assert_false(has_value(&f->first, "flashield_model_precision_ratio"));
	assert_false(has_value(&f->first, "flashield_clwa_ratio"));
}

/* The labels of config_info are options, found by their names. */
static void options_are_labels(void **state)
{
	struct fixture *f = *state;

	set(f, "admission", "read-once");
	set(f, "label-mode", "paper");
	set(f, "placement", "paper");
	set(f, "clock-mode", "mfu");
	set(f, "reinsertion", "live");
	set(f, "direct-io", "off");
	collect(f, &f->first);
	value_of(&f->first, "flashield_config_info",
		 "admission=read-once,label_mode=paper,placement=paper,clock_mode=mfu,reinsertion=live,direct_io=off,");
}

static void flash_is_told(void **state)
{
	struct fixture *f = *state;
	struct store_status status;

	store_get_status(f->server.store, &status);
	collect(f, &f->first);
	assert_true(value_of(&f->first, "flashield_flash_enabled", "") == 1);
	assert_true(value_of(&f->first, "flashield_segment_size_bytes", "") == 65536);
	assert_true(value_of(&f->first, "flashield_segments", "state=free,") == status.segments.free);
	assert_true(value_of(&f->first, "flashield_index_slots", "") == (double)status.index.slots);
	assert_true(status.segments.free > 0 && status.index.slots > 0);
}

/* ---- what has been counted ---------------------------------------------------------------------- */

static void a_reset_takes_nothing_back(void **state)
{
	struct fixture *f = *state;

	ctr_add(CTR_get_hits, 7);
	lat_record(LAT_miss, 2000, 3);
	collect(f, &f->first);
	ctr_reset();
	lat_reset();
	assert_int_equal(ctr_sum(CTR_get_hits), 0);
	ctr_add(CTR_get_hits, 1);
	lat_record(LAT_miss, 5000000, 1);
	collect(f, &f->second);
	assert_true(value_of(&f->second, "flashield_get_hits_total", "") ==
		    value_of(&f->first, "flashield_get_hits_total", "") + 1);
	assert_true(value_of(&f->first, "flashield_request_duration_seconds", "kind=miss,") >= 3);
	assert_true(value_of(&f->second, "flashield_request_duration_seconds", "kind=miss,") ==
		    value_of(&f->first, "flashield_request_duration_seconds", "kind=miss,") + 1);
}

static void ask(const char *key, size_t length, enum store_op op, enum store_result result, bool from_flash)
{
	struct conn conn = { 0 };
	struct store_request request = { .op = op, .key = key, .key_length = (uint8_t)length, .result = result };

	request.value.from_flash = from_flash;
	request.number = op == STORE_SET ? 100 : 0;
	observe(&conn, &request);
}

static void applications_by_tier(void **state)
{
	struct fixture *f = *state;

	ask("shop:a", 6, STORE_GET, STORE_HIT, false);
	ask("shop:a", 6, STORE_GET, STORE_HIT, true);
	ask("shop:a", 6, STORE_GAT, STORE_MISS, false);
	ask("shop:a", 6, STORE_GET, STORE_MISS, false);
	ask("shop:a", 6, STORE_SET, STORE_STORED, false);
	collect(f, &f->first);
	assert_true(value_of(&f->first, "flashield_application_gets_total", "application=shop,result=dram_hit,") == 1);
	assert_true(value_of(&f->first, "flashield_application_gets_total", "application=shop,result=flash_hit,") == 1);
	assert_true(value_of(&f->first, "flashield_application_gets_total", "application=shop,result=miss,") == 2);
	assert_true(value_of(&f->first, "flashield_application_sets_total", "application=shop,") == 1);
	assert_true(value_of(&f->first, "flashield_application_written_bytes_total", "application=shop,") == 106);
}

/* Three of four requests are for one key, and all are for two. Shares are estimated from one request in a hundred. */
static void the_hottest_keys_have_a_share(void **state)
{
	struct fixture *f = *state;
	struct conn conn = { 0 };

	for (unsigned i = 0; i < 100000; i++) {
		bool hot = i % 4 != 0;
		struct store_request request = {
			.op = STORE_GET, .key = hot ? "hot" : "not", .key_length = 3, .hash = hot ? 1 : 2
		};

		observe(&conn, &request);
	}
	collect(f, &f->first);
	assert_in_range(100 * value_of(&f->first, "flashield_hotkeys_share_ratio", "by=requests,keys=1,"), 60, 90);
	assert_in_range(100 * value_of(&f->first, "flashield_hotkeys_share_ratio", "by=requests,keys=10,"), 98, 100);
}

/* What has no application and what is called like it are one series, not two of one name. */
static void a_namesake_of_the_nameless(void **state)
{
	struct fixture *f = *state;

	ask("nobody's", 8, STORE_GET, STORE_MISS, false);
	ask("others:x", 8, STORE_GET, STORE_MISS, false);
	collect(f, &f->first);
	assert_true(value_of(&f->first, "flashield_application_gets_total", "application=others,result=miss,") == 2);
	each_family_has_samples_and_none_twice(state);
}

static void store_objects(struct fixture *f, unsigned count)
{
	struct store_worker *worker;

	assert_int_equal(store_worker_create(&worker, f->server.store), FS_OK);
	for (unsigned i = 0; i < count; i++) {
		char key[] = { (char)('a' + i), 0 };
		enum store_result why;
		struct store_request request = { .op = STORE_SET, .key = key, .key_length = 1 };

		request.hash = store_hash(f->server.store, key, 1);
		request.item = store_item_create(worker, key, 1, 0, 0, 0, &why);
		assert_non_null(request.item);
		assert_true(store_execute(worker, &request));
		assert_int_equal(request.result, STORE_STORED);
	}
	store_worker_destroy(worker);
}

static void note_sample(const char *key, double weight)
{
	contents_note(NULL, &(struct store_sampled){
				    .key = key, .key_length = (uint8_t)strlen(key), .bytes = 150, .weight = weight });
}

/* A sample of weight 6 stands for 12 objects. */
static void objects_of_a_namesake_of_the_nameless(void **state)
{
	struct fixture *f = *state;

	store_objects(f, 12);
	contents_init(':', 0);
	note_sample("nobody's", 1);
	note_sample("others:x", 2);
	note_sample("shop:x", 3);
	collect(f, &f->first);
	assert_true(value_of(&f->first, "flashield_application_items", "application=others,tier=dram,") == 6);
	assert_true(value_of(&f->first, "flashield_application_items", "application=shop,tier=dram,") == 6);
	assert_true(value_of(&f->first, "flashield_application_item_bytes", "application=others,tier=dram,") == 900);
	assert_true(value_of(&f->first, "flashield_application_item_bytes", "application=shop,tier=dram,") == 900);
	each_family_has_samples_and_none_twice(state);
	contents_fini();
}

/* Names of any bytes, more of them than there are numbers, each of the length that takes most. */
static void many_strange_applications(void **state)
{
	struct fixture *f = *state;
	char key[LABEL_NAME_MAX];

	memset(key, 0xff, sizeof(key));
	key[sizeof(key) - 1] = ':';
	for (unsigned i = 0; i < APPS_MAX + 10; i++) {
		key[0] = (char)(i + 128);
		ask(key, sizeof(key), STORE_GET, STORE_MISS, false);
	}
	collect(f, &f->first);
	assert_true(value_of(&f->first, "flashield_application_gets_total", "application=others,result=miss,") == 10);
	each_family_has_samples_and_none_twice(state);
	values_are_numbers(state);
}

/* ---- label values ------------------------------------------------------------------------------- */

static void assert_label(const char *name, size_t length, const char *expected)
{
	char out[LABEL_BYTES], *copy = malloc(length + !length);

	assert_non_null(copy); /* so that a byte too many is seen */
	memcpy(copy, name, length);
	assert_int_equal(label_escape(copy, length, out), strlen(expected));
	assert_string_equal(out, expected);
	free(copy);
}

#define LABEL(name, expected) assert_label(name, sizeof(name) - 1, expected)

static void bytes_that_are_no_text_are_escaped(void **state)
{
	(void)state;
	LABEL("\x80", "\\x80");
	LABEL("\xff\xfe", "\\xff\\xfe");
	LABEL("a\xc3", "a\\xc3"); /* cut off */
	LABEL("\xc3(", "\\xc3("); /* not continued */
	LABEL("\xc0\xaf", "\\xc0\\xaf"); /* overlong */
	LABEL("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
	LABEL("\xf0\x80\x80\xaf", "\\xf0\\x80\\x80\\xaf");
	LABEL("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* a surrogate */
	LABEL("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* beyond Unicode */
	LABEL("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80");
	LABEL("\xe2\x82", "\\xe2\\x82");
}

static void controls_and_backslashes_are_escaped(void **state)
{
	(void)state;
	LABEL("a\nb\r\t", "a\\x0ab\\x0d\\x09");
	LABEL("a\0b", "a\\x00b");
	LABEL("\x7f", "\\x7f");
	LABEL("\\x41", "\\x5cx41"); /* not what "A" could have become */
}

static void text_stays(void **state)
{
	(void)state;
	LABEL("", "");
	LABEL("shop", "shop");
	LABEL("say \"hi\"", "say \"hi\"");
	LABEL("caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
	LABEL("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf");
	LABEL("\xee\x80\x80", "\xee\x80\x80");
}

int main(void)
{
#define WITH(begin, test) \
	{ \
		.name = #test " (" #begin ")", .test_func = test, .setup_func = begin, .teardown_func = end \
	}
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_that_are_no_text_are_escaped),
		cmocka_unit_test(controls_and_backslashes_are_escaped),
		cmocka_unit_test(text_stays),
		WITH(begin_dram, each_row_is_given_once_in_order),
		WITH(begin_flash, each_row_is_given_once_in_order),
		WITH(begin_dram, each_family_has_samples_and_none_twice),
		WITH(begin_flash, each_family_has_samples_and_none_twice),
		WITH(begin_dram, values_are_numbers),
		WITH(begin_flash, values_are_numbers),
		WITH(begin_dram, ratios_of_nothing_are_left_out),
		WITH(begin_flash, ratios_of_nothing_are_left_out),
		WITH(begin_dram, options_are_labels),
		WITH(begin_flash, flash_is_told),
		WITH(begin_dram, a_reset_takes_nothing_back),
		WITH(begin_dram, applications_by_tier),
		WITH(begin_dram, the_hottest_keys_have_a_share),
		WITH(begin_dram, a_namesake_of_the_nameless),
		WITH(begin_dram, objects_of_a_namesake_of_the_nameless),
		WITH(begin_dram, many_strange_applications),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
