/* SPDX-License-Identifier: BSD-3-Clause */
/* Refuses options that contradict each other, with memcached's error line where memcached refuses them too. */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "conf/app_limits.h"
#include "conf/conf_internal.h"
#include "conf/units.h"

#define ITEM_DEFAULT 1048576
#define SLAB_CHUNK_DEFAULT 524288
#define CHUNK_KIB_MAX 1024
#define WINDOW_MAX 1800
#define SLAB_SIZE_STEP 8
#define LRU_SHARE_MAX 80
#define MANY_THREADS 64

static int refuse(const struct conf *conf, FILE *err, const char *option, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
static int refuse_as_there(const struct conf *conf, FILE *err, const char *option, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static int refuse(const struct conf *conf, FILE *err, const char *option, const char *format, ...)
{
	va_list arguments;

	conf_tell_option(conf, err, option);
	va_start(arguments, format);
	vfprintf(err, format, arguments);
	va_end(arguments);
	fputc('\n', err);
	return CONF_EXIT_VALUE;
}

/* memcached's own error line, which names no option; with --check-config the option comes before it. */
static int refuse_as_there(const struct conf *conf, FILE *err, const char *option, const char *format, ...)
{
	va_list arguments;

	if (conf->faults)
		conf_tell_option(conf, err, option);
	va_start(arguments, format);
	vfprintf(err, format, arguments);
	va_end(arguments);
	fputc('\n', err);
	return CONF_EXIT_VALUE;
}

/* --- authentication -------------------------------------------------------------------------- */

/* Each way of authentication has one protocol, which -B may confirm. */
static int check_authentication(struct conf *conf, FILE *err)
{
	if (conf->enable_sasl) {
		if (conf->protocol_given && conf->binding_protocol != CONF_PROTOCOL_BINARY)
			return refuse_as_there(conf, err, "protocol",
					       "ERROR: You cannot allow the ASCII protocol while using SASL.");
		if (conf->udp_port != 0)
			return refuse_as_there(conf, err, "udp-port",
					       "ERROR: Cannot enable UDP while using binary SASL authentication.");
		conf->binding_protocol = CONF_PROTOCOL_BINARY;
	} else if (conf->auth_file) {
		if (conf->protocol_given && conf->binding_protocol != CONF_PROTOCOL_ASCII)
			return refuse_as_there(conf, err, "protocol",
					       "ERROR: You cannot allow the BINARY protocol while using ascii "
					       "authentication tokens.");
		if (conf->udp_port != 0)
			return refuse_as_there(conf, err, "udp-port",
					       "Cannot use UDP with ascii authentication enabled (-U 0 to disable)");
		conf->binding_protocol = CONF_PROTOCOL_ASCII;
	}
	return 0;
}

/* --- sizes ----------------------------------------------------------------------------------- */

static int check_slab_sizes(const struct conf *conf, FILE *err)
{
	uint64_t most = conf->slab_chunk_max > 0 ? (uint64_t)conf->slab_chunk_max : conf->max_item_size_bytes;
	uint64_t before = 0;
	char *copy, *rest, *word;
	int exit_code = 0;

	if (!conf->slab_sizes)
		return 0;
	copy = rest = strdup(conf->slab_sizes);
	must(copy);
	while (exit_code == 0 && (word = strsep(&rest, "-")) != NULL) {
		uint64_t size = strtoull(word, NULL, 10);

		if (!*word && rest) /* memcached ignores empty words too */
			continue;
		if (size < (uint64_t)conf->slab_min_size || size > most)
			exit_code = refuse_as_there(conf, err, "extended",
						    "slab size %" PRIu64 " is out of valid range", size);
		else if (size <= before)
			exit_code = refuse_as_there(
				conf, err, "extended",
				"slab size %" PRIu64 " cannot be lower than or equal to a previous class size", size);
		else if (before && size <= before + SLAB_SIZE_STEP)
			exit_code = refuse_as_there(conf, err, "extended",
						    "slab size %" PRIu64
						    " must be at least %d bytes larger than previous class",
						    size, SLAB_SIZE_STEP);
		before = size;
	}
	free(copy);
	return exit_code;
}

/*
 * memcached's limits on slab_chunk_max hold when the operator has given one. Its default doesn't bound -I: there are no
 * chunks here, and an -I of 1k needs no further option.
 */
static int check_chunks(const struct conf *conf, FILE *err)
{
	long long chunk = conf->slab_chunk_max;

	if (chunk == SLAB_CHUNK_DEFAULT || chunk <= 0)
		return 0;
	if ((uint64_t)chunk > conf->max_item_size_bytes)
		return refuse_as_there(conf, err, "extended",
				       "slab_chunk_max (bytes: %lld) cannot be larger than -I (item_size_max %" PRIu64
				       ")",
				       chunk, conf->max_item_size_bytes);
	if (conf->max_item_size_bytes % (uint64_t)chunk)
		return refuse_as_there(conf, err, "max-item-size",
				       "-I (item_size_max: %" PRIu64
				       ") must be evenly divisible by slab_chunk_max (bytes: %lld)",
				       conf->max_item_size_bytes, chunk);
	return 0;
}

static int check_item_size(struct conf *conf, FILE *err)
{
	char item[UNITS_TEXT_BYTES], memory[UNITS_TEXT_BYTES];

	if (conf->max_item_size_bytes <= conf->memory_limit_bytes / 2)
		return 0;
	if (!conf->faults)
		return refuse_as_there(conf, err, "max-item-size",
				       "Cannot set item size limit higher than 1/2 of memory max.");
	return refuse(conf, err, "max-item-size", "%s is more than half of -m/--memory-limit, which is %s",
		      units_format_size(conf->max_item_size_bytes, item),
		      units_format_size(conf->memory_limit_bytes, memory));
}

static int check_slabs(struct conf *conf, FILE *err)
{
	int exit_code = check_chunks(conf, err);

	return exit_code ? exit_code : check_slab_sizes(conf, err);
}

static int check_segment_size(struct conf *conf, FILE *err)
{
	char segment[UNITS_TEXT_BYTES], flash[UNITS_TEXT_BYTES];

	if (!conf->segment_size_bytes || !conf->flash_size_bytes ||
	    conf->segment_size_bytes <= conf->flash_size_bytes / 4)
		return 0;
	return refuse(conf, err, "segment-size", "%s is more than a quarter of --flash-size, which is %s",
		      units_format_size(conf->segment_size_bytes, segment),
		      units_format_size(conf->flash_size_bytes, flash));
}

static int check_index(struct conf *conf, FILE *err)
{
	if (conf->index != CONF_INDEX_FRUGAL)
		return 0;
	if (conf->disable_evictions)
		return refuse(conf, err, "index",
			      "frugal: it can't go with -M/--disable-evictions, as it may lose an object");
	if (conf->journal == CONF_JOURNAL_SYNC)
		return refuse(
			conf, err, "index",
			"frugal: it can't go with --journal=sync, as its overwrites and deletions have no entry in the journal");
	if (conf->app_limit)
		return refuse(
			conf, err, "index",
			"frugal: it can't go with --app-limit, as it can't tell how much an application has on flash");
	return 0;
}

/* --- the rest -------------------------------------------------------------------------------- */

static int check_lru(struct conf *conf, FILE *err)
{
	if (conf->hot_lru_pct + conf->warm_lru_pct > LRU_SHARE_MAX)
		return refuse_as_there(conf, err, "extended",
				       "hot_lru_pct + warm_lru_pct cannot be more than %d%% combined", LRU_SHARE_MAX);
	if (conf->temp_lru && !conf->lru_maintainer)
		return refuse_as_there(conf, err, "extended", "temporary_ttl requires lru_maintainer to be enabled");
	return 0;
}

/* As in memcached, a UDP port that is given alone is the TCP port too. */
static void derive_port(struct conf *conf)
{
	if (conf->udp_port != 0 && !conf->port_given)
		conf->port = conf->udp_port;
}

/* extstore counts pages, and starts to make room when a hundredth of them is left, before 1.6.38 a quarter. */
static void derive_pages(struct conf *conf)
{
	uint64_t pages, part = conf_compat_from(conf, 38) ? 100 : 4;

	if (!conf->ext_path_given || conf->ext_page_size == 0 || conf->ext_compact_under != 0)
		return;
	pages = conf->flash_size_bytes / conf->ext_page_size / part;
	conf->ext_compact_under = conf->ext_drop_under = pages > 0 || part == 4 ? pages : 1;
}

/* memcached has the upper bound since 1.6.45. */
static int check_window(struct conf *conf, FILE *err)
{
	if (conf->slab_automove_window <= WINDOW_MAX || !conf_compat_from(conf, 45))
		return 0;
	refuse_as_there(conf, err, "extended", "slab_automove_window must be > 2 and < 1800");
	return EXIT_FAILURE; /* as for the lower bound */
}

/* The windows that memcached has unless one is given. */
static void derive_window(struct conf *conf)
{
	if (conf->slab_automove_window == 0)
		conf->slab_automove_window = conf_compat_from(conf, 34) ? 10 : 30;
}

/* memcached took bytes at first, though it spoke of KiB. From 1.6.24 on it takes KiB, and refuses larger numbers, which
   are still bytes here. */
static void derive_chunk_unit(struct conf *conf)
{
	if (conf->slab_chunk_max > 0 && conf->slab_chunk_max <= CHUNK_KIB_MAX && conf_compat_from(conf, 24))
		conf->slab_chunk_max *= 1024;
}

/* With no_chunked_items memcached's chunks are as large as the default item. With any other -I it falls back to its
   default. */
static void derive_chunks(struct conf *conf)
{
	if (conf->slab_chunk_max == 0)
		conf->slab_chunk_max = conf->max_item_size_bytes == ITEM_DEFAULT ? ITEM_DEFAULT : SLAB_CHUNK_DEFAULT;
}

static int check_model(struct conf *conf, FILE *err)
{
	return conf->model_pinned && !conf->model
		       ? refuse(conf, err, "model-pinned", "it keeps the model of --model, which is not given")
		       : 0;
}

static int check_metrics_tls(struct conf *conf, FILE *err)
{
	const char *alone = conf->metrics_tls_cert  ? NULL
			    : conf->metrics_tls_key ? "metrics-tls-key"
			    : conf->metrics_tls_ca  ? "metrics-tls-ca"
						    : NULL;

	return alone ? refuse(conf, err, alone, "it needs --metrics-tls-cert") : 0;
}

static int check_app_limits(struct conf *conf, FILE *err)
{
	char why[APP_LIMITS_WHY_BYTES], floors[UNITS_TEXT_BYTES], most[UNITS_TEXT_BYTES];
	struct app_limits limits;
	bool dram = false;

	if (app_limits_parse(conf->app_limit, conf->app_delimiter, &limits, why) != FS_OK)
		return refuse(conf, err, "app-limit", "%s", why);
	for (unsigned i = 0; i < limits.count; i++)
		dram |= limits.of[i].dram_floor > 0 || limits.of[i].dram_ceiling != APP_LIMIT_NONE;
	if (dram && conf->disable_evictions)
		return refuse(conf, err, "app-limit",
			      "limits on dram choose what is evicted, and -M (--disable-evictions) forbids eviction");
	if (app_limits_floors(&limits) <= APP_LIMIT_FLOORS(conf->memory_limit_bytes))
		return 0;
	return refuse(conf, err, "app-limit",
		      "the floors of dram are %s together, and may be at most three quarters of --memory-limit: %s",
		      units_show_size(app_limits_floors(&limits), floors),
		      units_show_size(APP_LIMIT_FLOORS(conf->memory_limit_bytes), most));
}

static void note_effects(struct conf *conf)
{
	bool off = strcmp(conf->metrics_listen, "off") == 0;

	if (off && (conf->metrics_tls_cert || conf->metrics_auth_file))
		conf_note(conf, LOG_LEVEL_WARN,
			  "--metrics-tls-cert and --metrics-auth-file have no effect with --metrics-listen=off");
	if (conf->threads > MANY_THREADS)
		conf_note(conf, LOG_LEVEL_WARN, "-t %d: more threads than the machine has cores make it slower",
			  conf->threads);
	if (conf->slab_growth_factor != 1.25)
		conf_note(conf, LOG_LEVEL_INFO, "-f is without effect: there are no slabs here");
	if (conf->slab_min_size != 48)
		conf_note(conf, LOG_LEVEL_INFO, "-n is without effect: there are no slabs here");
	if (conf->napi_ids > 0)
		conf_note(conf, LOG_LEVEL_INFO, "-N is without effect: connections go to the workers in turn");
	if (conf->memory_file)
		conf_note(conf, LOG_LEVEL_WARN,
			  "-e %s is without effect: what memory holds outlives a clean stop with --state-dir instead",
			  conf->memory_file);
	if (!conf->flash_path && (conf->flash_size_bytes || conf->segment_size_bytes))
		conf_note(conf, LOG_LEVEL_WARN, "--flash-size and --segment-size have no effect without --flash-path");
	if (!conf->flash_path && conf->model)
		conf_note(conf, LOG_LEVEL_WARN, "--model has no effect without --flash-path");
	if (!conf->flash_path && conf->region_dir)
		conf_note(conf, LOG_LEVEL_WARN, "--region-dir has no effect without --flash-path");
	if (conf->app_limit && conf->app_source == CONF_APP_SOURCE_USER)
		conf_note(conf, LOG_LEVEL_WARN,
			  "--app-limit goes by the start of keys, while --app-source=user counts by users");
	if (!conf->flash_path && conf->promote != CONF_PROMOTE_OFF)
		conf_note(conf, LOG_LEVEL_WARN, "--promote has no effect without --flash-path");
}

static int check_napi_ids(struct conf *conf, FILE *err)
{
	return conf->napi_ids > conf->threads
		       ? refuse_as_there(conf, err, "napi-ids",
					 "Number of napi_ids(%d) cannot be greater than number of threads(%d)",
					 conf->napi_ids, conf->threads)
		       : 0;
}

#define FIELD(name) offsetof(struct conf, name)

int conf_check(struct conf *conf, FILE *err)
{
	/* A check of two options says nothing where the value of one was refused. */
	static const struct {
		int (*check)(struct conf *conf, FILE *err);
		size_t one, other; /* fields */
	} checks[] = {
		{ check_item_size, FIELD(max_item_size_bytes), FIELD(memory_limit_bytes) },
		{ check_slabs, FIELD(max_item_size_bytes), FIELD(slab_min_size) },
		{ check_window, FIELD(slab_automove_window), FIELD(slab_automove_window) },
		{ check_segment_size, FIELD(segment_size_bytes), FIELD(flash_size_bytes) },
		{ check_index, FIELD(index), FIELD(journal) },
		{ check_lru, FIELD(port), FIELD(port) },
		{ check_authentication, FIELD(binding_protocol), FIELD(udp_port) },
		{ conf_check_metrics, FIELD(metrics_listen), FIELD(metrics_listen) },
		{ conf_check_ports, FIELD(metrics_listen), FIELD(port) },
		{ check_metrics_tls, FIELD(metrics_tls_cert), FIELD(metrics_tls_key) },
		{ check_model, FIELD(model), FIELD(model_pinned) },
		{ check_napi_ids, FIELD(napi_ids), FIELD(threads) },
		{ check_app_limits, FIELD(app_limit), FIELD(memory_limit_bytes) },
	};

	derive_port(conf);
	derive_chunk_unit(conf);
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		int exit_code;

		if (conf_is_refused(conf, checks[i].one) || conf_is_refused(conf, checks[i].other))
			continue;
		exit_code = conf_fault(conf, checks[i].check(conf, err));
		if (exit_code)
			return exit_code;
	}
	derive_window(conf);
	derive_pages(conf);
	derive_chunks(conf);
	note_effects(conf);
	return 0;
}
