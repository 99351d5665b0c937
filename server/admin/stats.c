/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the report that "stats" asks for. */
#include "server/admin/admin.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/metrics/counters.h"
#include "conf/conf.h"
#include "server/count/observe.h"
#include "server/store/store.h"

#define UNKNOWN "ERROR\r\n" /* there is no such report */

void stats_add(struct stats_out *out, const char *name, const char *format, ...)
{
	char value[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	out->row(out, name, value);
}

static const char *answer_reset(const struct server *server, const char *words, struct stats_out *out)
{
	(void)words;
	(void)out;
	ctr_reset();
	store_reset_classes(server->store);
	observe_reset();
	stats_latency_reset();
	return "RESET\r\n";
}

/* ---- stats sizes ------------------------------------------------------------------------------- */

static atomic_bool sizes_enabled;

static const char *answer_sizes(const struct server *server, const char *words, struct stats_out *out)
{
	(void)words;
	return stats_sizes(server, atomic_load(&sizes_enabled) || server->conf->track_sizes, out);
}

/* memcached had this before 1.6.25. As there, the answer has no END. */
static const char *switch_sizes(const struct server *server, struct stats_out *out, bool on)
{
	if (conf_compat_from(server->conf, 25))
		return UNKNOWN;
	atomic_store(&sizes_enabled, on);
	stats_add(out, "sizes_status", "%s", on ? "enabled" : "disabled");
	return "";
}

static const char *sizes_enable(const struct server *server, const char *words, struct stats_out *out)
{
	(void)words;
	return switch_sizes(server, out, true);
}

static const char *sizes_disable(const struct server *server, const char *words, struct stats_out *out)
{
	(void)words;
	return switch_sizes(server, out, false);
}

/* ---- stats detail ------------------------------------------------------------------------------- */

static const char *detail_dump(struct stats_out *out)
{
	char line[512];
	unsigned at = 0, length;

	while (out->line && (length = observe_detail_line(&at, line)) > 0)
		out->line(out, line, length);
	return STATS_END;
}

static bool starts_with_word(const char *words, const char *word)
{
	size_t length = strlen(word);

	return strncmp(words, word, length) == 0 && (!words[length] || words[length] == ' ');
}

static const char *answer_detail(const struct server *server, const char *words, struct stats_out *out)
{
	if (server->conf->disable_dumping && conf_compat_from(server->conf, 37)) /* it shows parts of keys */
		return "CLIENT_ERROR stats detail not allowed\r\n";
	if (starts_with_word(words, "dump"))
		return detail_dump(out);
	if (!starts_with_word(words, "on") && !starts_with_word(words, "off"))
		return "CLIENT_ERROR usage: stats detail on|off|dump\r\n";
	observe_switch_detail(starts_with_word(words, "on"));
	return "OK\r\n";
}

/* ---- which one ----------------------------------------------------------------------------------- */

/* Either rows makes a report of rows only, which END follows; or special returns the line that ends the answer. */
static const struct report {
	const char *name;
	void (*rows)(const struct server *server, struct stats_out *out);
	const char *(*special)(const struct server *server, const char *words, struct stats_out *out);
} reports[] = {
	{ "", stats_general, NULL },
	{ "settings", stats_settings, NULL },
	{ "reset", NULL, answer_reset },
	{ "items", stats_items, NULL },
	{ "slabs", stats_slabs, NULL },
	{ "conns", stats_conns, NULL },
	{ "extstore", stats_extstore, NULL },
	{ "sizes", NULL, answer_sizes },
	{ "sizes_enable", NULL, sizes_enable },
	{ "sizes_disable", NULL, sizes_disable },
	{ "detail", NULL, answer_detail },
	{ "cachedump", NULL, stats_cachedump },
	{ "flash", stats_flash, NULL },
	{ "classifier", stats_classifier, NULL },
	{ "segments", stats_segments, NULL },
	{ "latency", stats_latency, NULL },
	{ "memory", stats_memory, NULL },
	{ "apps", stats_apps, NULL },
	{ "limits", stats_limits, NULL },
	{ "contents", stats_contents, NULL },
	{ "hotkeys", NULL, stats_hotkeys },
	{ "slow", NULL, stats_slow },
};

const char *admin_stats(const struct server *server, const char *words, const char *end, struct stats_out *out)
{
	char text[128], *name, *rest = text;
	size_t length = (size_t)(end - words);

	if (length >= sizeof(text))
		length = sizeof(text) - 1;
	memcpy(text, words, length);
	text[length] = 0;
	rest += strspn(rest, " ");
	name = strsep(&rest, " ");
	rest = rest ? rest + strspn(rest, " ") : name + strlen(name);
	for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++)
		if (strcmp(name, reports[i].name) == 0) {
			if (!reports[i].rows)
				return reports[i].special(server, rest, out);
			reports[i].rows(server, out);
			return STATS_END;
		}
	return UNKNOWN;
}
