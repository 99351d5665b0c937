/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/admin/reload.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/fault.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/log_file.h"
#include "conf/app_limits.h"
#include "conf/conf.h"
#include "conf/units.h"
#include "server/admin/admin.h"
#include "server/auth/auth.h"
#include "server/count/hotkeys.h"
#include "server/count/observe.h"
#include "server/count/slow.h"
#include "server/metrics/metrics.h"
#include "server/net/net.h"
#include "server/store/store.h"

struct reload {
	const struct server *server;
	int argc;
	char **argv;
	struct conf applied; /* as last read; its texts belong to server->conf, except for app_limit */
	struct lock lock; /* a leaf; covers app_limit against reload_show */
	char *app_limit; /* the text in force, on the heap; NULL: none */
	char *new_app_limit; /* the same of the one that is being taken */
	_Atomic int verbose;
	unsigned changes; /* found by the reading under way */
	char trouble[512]; /* of the last reading; "": none */
	char restart_options[256]; /* names; "": none */
	struct reload_status status;
	struct store_tuning tuning;
	const struct conf *fresh;
};

static char no_memory_text[] = "(out of memory)"; /* in place of a text that is there */

/* NULL: there is no text, or no memory for the copy. */
static char *copy_text(const char *text)
{
	size_t bytes = text ? strlen(text) + 1 : 0;
	char *copy = text ? mem_alloc(bytes) : NULL;

	if (copy)
		memcpy(copy, text, bytes);
	return copy;
}

/* Makes the new text the one in force, and frees the old one. */
static void keep_app_limit(struct reload *reload)
{
	char *old = reload->app_limit;

	lock_acquire(&reload->lock);
	reload->app_limit = reload->applied.app_limit = reload->new_app_limit;
	reload->new_app_limit = NULL;
	lock_release(&reload->lock);
	mem_free(old);
}

struct reload *reload_create(const struct server *server, int argc, char **argv)
{
	struct reload *reload = mem_must_zalloc(sizeof(*reload));

	reload->server = server;
	reload->argc = argc;
	reload->argv = argv;
	reload->applied = *server->conf;
	lock_init(&reload->lock, LOCK_LEAF);
	reload->new_app_limit = copy_text(server->conf->app_limit);
	must(reload->new_app_limit || !server->conf->app_limit); /* at the start only */
	keep_app_limit(reload);
	atomic_init(&reload->verbose, server->conf->verbose);
	if (server->conf->config_path && access(server->conf->config_path, R_OK) != 0)
		log_warn("SIGHUP will not read %s again: %m", server->conf->config_path);
	return reload;
}

void reload_destroy(struct reload *reload)
{
	if (!reload)
		return;
	mem_free(reload->app_limit);
	lock_fini(&reload->lock);
	mem_free(reload);
}

const char *reload_trouble(const struct reload *reload)
{
	return reload->trouble;
}

const char *reload_restart_options(const struct reload *reload)
{
	return reload->restart_options;
}

const struct reload_status *reload_status(const struct reload *reload)
{
	return &reload->status;
}

/* Keeps the first trouble of a reading. */
static void keep_trouble(struct reload *reload, const char *what, const char *why)
{
	if (!*reload->trouble)
		snprintf(reload->trouble, sizeof(reload->trouble), "%s: %s", what, why);
}

void reload_show(const struct server *server, struct conf *copy)
{
	struct store_tuning tuning;
	struct store_status status;
	struct slow_settings slow;

	if (!server->reload)
		return;
	copy->verbose = atomic_load(&server->reload->verbose);
	store_get_tuning(server->store, &tuning);
	copy->hot_fraction = tuning.hot_fraction;
	copy->flash_write_limit = units_rate_of(tuning.flash_write_limit, tuning.flash_write_dwpd);
	copy->flash_write_ratio = tuning.flash_write_ratio;
	copy->promote_miss_cost = tuning.promote_miss_cost;
	copy->flash_read_timeout_us = tuning.read_timeout_ms * 1000ull;
	copy->admission = (int)tuning.admission;
	copy->hotkeys = (int)hotkeys_are_shown();
	slow_get(&slow);
	copy->slow_log_threshold_us = slow.threshold_us;
	copy->slow_log_keys = slow.keys;
	store_get_status(server->store, &status);
	copy->memory_limit_bytes = status.memory_limit;
	lock_acquire(&server->reload->lock);
	copy->app_limit = fault_fires(FAULT_settings_memory) ? NULL : copy_text(server->reload->app_limit);
	if (!copy->app_limit && server->reload->app_limit)
		copy->app_limit = no_memory_text;
	lock_release(&server->reload->lock);
}

void reload_shown(const struct server *server, struct conf *copy)
{
	if (!server->reload)
		return;
	if (copy->app_limit != no_memory_text)
		mem_free(copy->app_limit);
	copy->app_limit = NULL;
}

/* ---- options --------------------------------------------------------------------------------- */

static void take_verbose(struct reload *reload)
{
	atomic_store(&reload->verbose, reload->fresh->verbose);
	log_set_level(conf_log_level(reload->fresh));
}

static int take_memory_limit(struct reload *reload)
{
	return store_set_memory_limit(reload->server->store, reload->fresh->memory_limit_bytes);
}

static void take_write_limit(struct reload *reload)
{
	reload->tuning.flash_write_limit = units_rate_bytes(reload->fresh->flash_write_limit);
	reload->tuning.flash_write_dwpd = units_rate_dwpd(reload->fresh->flash_write_limit);
}

/* conf_reload has judged the text. FS_ERANGE: there were so many names since the start that the store has no room for more. */
static int take_app_limits(struct reload *reload)
{
	const char *text = reload->fresh->app_limit;
	char why[APP_LIMITS_WHY_BYTES];
	struct app_limits limits;
	int result = app_limits_parse(text, reload->server->conf->app_delimiter, &limits, why);

	if (result != FS_OK)
		return result;
	if (text) {
		reload->new_app_limit = mem_alloc(strlen(text) + 1);
		if (!reload->new_app_limit)
			return FS_ENOMEM;
		memcpy(reload->new_app_limit, text, strlen(text) + 1);
	}
	result = store_set_limits(reload->server->store, &limits);
	if (result != FS_OK) {
		mem_free(reload->new_app_limit);
		reload->new_app_limit = NULL;
	}
	return result;
}

static void take_slow_log(const struct reload *reload)
{
	observe_set_slow(&(struct slow_settings){ .threshold_us = reload->fresh->slow_log_threshold_us,
						  .keys = reload->fresh->slow_log_keys &&
							  !reload->server->conf->disable_dumping });
}

static bool option_is(const struct conf_option *option, size_t offset)
{
	return option->offset == offset;
}

/* Puts an option's new value into effect. After an error the old one is in force; FS_ERANGE: the new one needs a restart. */
static int take_option(struct reload *reload, const struct conf_option *option)
{
	const struct conf *fresh = reload->fresh;

	if (option_is(option, offsetof(struct conf, verbose)))
		take_verbose(reload);
	else if (option_is(option, offsetof(struct conf, memory_limit_bytes)))
		return take_memory_limit(reload);
	else if (option_is(option, offsetof(struct conf, app_limit)))
		return take_app_limits(reload);
	else if (option_is(option, offsetof(struct conf, hot_fraction)))
		reload->tuning.hot_fraction = fresh->hot_fraction;
	else if (option_is(option, offsetof(struct conf, flash_write_limit)))
		take_write_limit(reload);
	else if (option_is(option, offsetof(struct conf, flash_write_ratio)))
		reload->tuning.flash_write_ratio = fresh->flash_write_ratio;
	else if (option_is(option, offsetof(struct conf, promote_miss_cost)))
		reload->tuning.promote_miss_cost = fresh->promote_miss_cost;
	else if (option_is(option, offsetof(struct conf, flash_read_timeout_us)))
		reload->tuning.read_timeout_ms = (uint32_t)(fresh->flash_read_timeout_us / 1000);
	else if (option_is(option, offsetof(struct conf, admission)))
		reload->tuning.admission = (enum clf_admission)fresh->admission;
	else if (option_is(option, offsetof(struct conf, hotkeys)))
		hotkeys_show(
			hotkeys_allowed((enum hotkeys_shown)fresh->hotkeys, !reload->server->conf->disable_dumping));
	else if (option_is(option, offsetof(struct conf, slow_log_threshold_us)) ||
		 option_is(option, offsetof(struct conf, slow_log_keys)))
		take_slow_log(reload);
	else
		return FS_ERANGE;
	return FS_OK;
}

static const char *shown_value(const char *value)
{
	return *value ? value : "none";
}

/* Keeps what was taken as the value that the next reading compares with. */
static void keep_option(struct reload *reload, const struct conf_option *option)
{
	if (option_is(option, offsetof(struct conf, app_limit)))
		keep_app_limit(reload); /* frees the text of before */
	else
		conf_adopt(&reload->applied, reload->fresh, option);
}

static void tell_failed(struct reload *reload, const char *name, const char *reason)
{
	char what[128];

	snprintf(what, sizeof(what), "%s stays as it was", name);
	log_event(LOG_LEVEL_WARN, "reload_failed", LOG_FIELDS(LOG_TEXT("OPTION", name), LOG_TEXT("REASON", reason)),
		  "%s: %s", what, reason);
	keep_trouble(reload, what, reason);
}

static void tell_restart(struct reload *reload, const struct conf_change *change, const char *before, const char *after)
{
	const char *name = change->option->name;
	size_t used = strlen(reload->restart_options);

	log_event(LOG_LEVEL_WARN, "restart_needed",
		  LOG_FIELDS(LOG_TEXT("OPTION", name), LOG_TEXT("BEFORE", before), LOG_TEXT("AFTER", after)),
		  change->reloadable ? "%s: %s -> %s is too far from the value at the start, and needs a restart"
				     : "%s: %s -> %s needs a restart",
		  name, before, after);
	snprintf(reload->restart_options + used, sizeof(reload->restart_options) - used, "%s%s", used > 0 ? ", " : "",
		 name);
	atomic_fetch_add(&reload->status.restart_options, 1);
}

static void on_change(void *context, const struct conf_change *change)
{
	struct reload *reload = context;
	const char *name = change->option->name, *before = shown_value(change->before),
		   *after = shown_value(change->after);
	int result = change->reloadable ? take_option(reload, change->option) : FS_ERANGE;

	reload->changes++;
	if (result == FS_OK) {
		log_event(LOG_LEVEL_NOTICE, "reload",
			  LOG_FIELDS(LOG_TEXT("OPTION", name), LOG_TEXT("BEFORE", before), LOG_TEXT("AFTER", after)),
			  "%s: %s -> %s", name, before, after);
		keep_option(reload, change->option);
	} else if (result != FS_ERANGE) {
		tell_failed(reload, name, fs_strerror(result));
	} else {
		tell_restart(reload, change, before, after);
	}
}

static void reload_options(struct reload *reload)
{
	struct conf fresh;
	char why[1024];

	if (conf_reload(&fresh, reload->server->conf, reload->argc, reload->argv, why, sizeof(why)) != FS_OK) {
		log_event(LOG_LEVEL_WARN, "reload_failed", LOG_FIELDS(LOG_TEXT("REASON", why)),
			  "options stay as they were: %s", why);
		keep_trouble(reload, "options stay as they were", why);
	} else {
		reload->changes = 0;
		*reload->restart_options = '\0';
		atomic_store(&reload->status.restart_options, 0);
		reload->fresh = &fresh;
		store_get_tuning(reload->server->store, &reload->tuning);
		conf_each_change(&reload->applied, &fresh, on_change, reload);
		store_set_tuning(reload->server->store, &reload->tuning);
		reload->fresh = NULL;
		if (reload->changes == 0)
			log_event(LOG_LEVEL_NOTICE, "reload", NULL, "options were read again: none has changed");
	}
	conf_free(&fresh);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void reload_users(struct reload *reload)
{
	char reason[256] = "";

	if (auth_reload(reload->server->auth, reason) == FS_OK) {
		log_notice("users were read again");
		return;
	}
	log_warn("users stay as they were: %s", reason);
	keep_trouble(reload, "users stay as they were", reason);
}

/* A model that is in the file already stays as it is, and so does one that was trained since. */
static void reload_model(struct reload *reload)
{
	const struct server *server = reload->server;
	char reason[256] = "";

	if (store_reload_model(server->store, server->model, server->conf->model_pinned, reason) == FS_OK)
		return;
	log_warn("--model: the model stays as it was: %s", reason);
	keep_trouble(reload, "the model stays as it was", reason);
}

void reload_all(struct reload *reload)
{
	const struct server *server = reload->server;
	char reason[256] = "";

	*reload->trouble = 0;
	if (log_file_reopen(reason) != FS_OK) {
		log_warn("the log goes on in the old file: %s", reason);
		keep_trouble(reload, "the log goes on in the old file", reason);
	}
	reload_options(reload);
	if (server->model)
		reload_model(reload);
	if (server->auth)
		reload_users(reload);
	if (metrics_reload_users(server->metrics, reason) != FS_OK)
		keep_trouble(reload, "users of /metrics stay as they were", reason); /* it is in the log, as below */
	if (admin_has_certificates(server) && admin_refresh_certificates(server, reason) != FS_OK)
		keep_trouble(reload, "certificates stay as they were", reason);
	atomic_store(&reload->status.failed, *reload->trouble != 0);
	if (*reload->trouble)
		atomic_fetch_add(&reload->status.failures, 1);
}
