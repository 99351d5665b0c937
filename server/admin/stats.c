/* SPDX-License-Identifier: BSD-3-Clause */
/* Which report "stats" asks for. */
#include "server/admin/admin.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "conf/counters.h"

#define END "END\r\n"

void stats_add(struct stats_out *out, const char *name, const char *format, ...)
{
	char value[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	out->row(out, name, value);
}

static const char *report_general(const struct server *server, const char *words, struct stats_out *out)
{
	(void)words;
	stats_general(server, out);
	return END;
}

static const char *report_settings(const struct server *server, const char *words, struct stats_out *out)
{
	(void)words;
	stats_settings(server, out);
	return END;
}

static const char *report_flash(const struct server *server, const char *words, struct stats_out *out)
{
	(void)words;
	stats_flash(server, out);
	return END;
}

static const char *report_classifier(const struct server *server, const char *words, struct stats_out *out)
{
	(void)words;
	stats_classifier(server, out);
	return END;
}

static const char *report_segments(const struct server *server, const char *words, struct stats_out *out)
{
	(void)words;
	stats_segments(server, out);
	return END;
}

static const char *reset(const struct server *server, const char *words, struct stats_out *out)
{
	(void)server;
	(void)words;
	(void)out;
	ctr_reset();
	return "RESET\r\n";
}

/* There are no slab classes, and prefixes and connections are not counted: nothing to tell. */
static const char *nothing(const struct server *server, const char *words, struct stats_out *out)
{
	(void)server;
	(void)words;
	(void)out;
	return END;
}

static const char *sizes(const struct server *server, const char *words, struct stats_out *out)
{
	(void)server;
	(void)words;
	stats_add(out, "sizes_status", "disabled");
	return END;
}

static const char *detail(const struct server *server, const char *words, struct stats_out *out)
{
	(void)server;
	(void)out;
	if (strcmp(words, "dump") == 0)
		return END;
	if (strcmp(words, "on") == 0 || strcmp(words, "off") == 0)
		return "OK\r\n";
	return "CLIENT_ERROR usage: stats detail on|off|dump\r\n";
}

static const char *cachedump(const struct server *server, const char *words, struct stats_out *out)
{
	unsigned class, limit;

	(void)server;
	(void)out;
	return sscanf(words, "%u %u", &class, &limit) == 2 ? END : "CLIENT_ERROR bad command line\r\n";
}

static const struct report {
	const char *name;
	const char *(*report)(const struct server *server, const char *words, struct stats_out *out);
} reports[] = {
	{ "", report_general },
	{ "settings", report_settings },
	{ "reset", reset },
	{ "flash", report_flash },
	{ "classifier", report_classifier },
	{ "segments", report_segments },
	{ "items", nothing },
	{ "slabs", nothing },
	{ "conns", nothing },
	{ "extstore", nothing },
	{ "sizes", sizes },
	{ "detail", detail },
	{ "cachedump", cachedump },
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
		if (strcmp(name, reports[i].name) == 0)
			return reports[i].report(server, rest, out);
	return "ERROR\r\n";
}
