/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/replay/server_stats.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define ANSWER_BYTES (256u << 10)
#define ANSWER_MS 10000

static bool is_whole(const char *text, size_t length)
{
	static const char *const ends[] = { "END\r\n", "ERROR\r\n", "OK\r\n", "RESET\r\n" };
	const char *last = length > 2 ? memrchr(text, '\n', length - 1) : NULL;

	if (length < 2 || text[length - 1] != '\n')
		return false;
	last = last ? last + 1 : text;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (strcmp(last, ends[i]) == 0)
			return true;
	return strstr(last, "_ERROR ") != NULL || strncmp(last, "VERSION ", strlen("VERSION ")) == 0;
}

/* One command and its answer as text; empty if the server doesn't answer. */
static void ask(struct client *client, const char *command, char *answer)
{
	struct pollfd pollfd = { .fd = client->fd, .events = POLLIN };
	size_t used = 0;

	answer[0] = 0;
	if (client_send(client, command, strlen(command)) < 0)
		return;
	while (used < ANSWER_BYTES - 1 && !is_whole(answer, used)) {
		ssize_t got;

		if (!client_has_more(client) && poll(&pollfd, 1, ANSWER_MS) <= 0)
			return;
		got = client_receive(client, answer + used, ANSWER_BYTES - 1 - used);
		if (got < 0 && errno == EAGAIN)
			continue;
		if (got <= 0)
			return;
		used += (size_t)got;
		answer[used] = 0;
	}
}

static void add_entry(struct server_stats *stats, enum stats_group group, const char *line)
{
	struct stats_entry entry = { .group = group };

	if (sscanf(line, "STAT %63s %159[^\r\n]", entry.name, entry.value) != 2)
		return;
	if (stats->count == stats->room) {
		stats->room = stats->room ? stats->room * 2 : 256;
		stats->entries = mem_realloc(stats->entries, stats->room * sizeof(entry));
		must(stats->entries);
	}
	stats->entries[stats->count++] = entry;
}

void server_stats_read(struct server_stats *stats)
{
	static const char *const commands[STATS_GROUPS] = { "stats\r\n", "stats flash\r\n", "stats classifier\r\n",
							    "stats settings\r\n" };
	char *answer = mem_must_zalloc(ANSWER_BYTES);

	stats->count = 0;
	for (int group = 0; group < STATS_GROUPS; group++) {
		ask(stats->client, commands[group], answer);
		for (char *line = answer; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL)
			add_entry(stats, (enum stats_group)group, line);
	}
	mem_free(answer);
}

void server_stats_fini(struct server_stats *stats)
{
	mem_free(stats->entries);
}

/* Asks, and tells whether the answer begins so; else said has the server's words, or why there are none. */
static bool is_answered(struct client *client, const char *command, const char *wanted, char said[CLIENT_ERROR_BYTES])
{
	char *answer = mem_must_zalloc(ANSWER_BYTES);
	bool answered;

	ask(client, command, answer);
	answered = strncmp(answer, wanted, strlen(wanted)) == 0;
	client_quote(answer, strcspn(answer, "\r\n"), said, CLIENT_ERROR_BYTES);
	if (!answer[0])
		snprintf(said, CLIENT_ERROR_BYTES, "%s", client_why(client)[0] ? client_why(client) : "no answer");
	mem_free(answer);
	return answered;
}

bool server_tells_version(struct client *client, char said[CLIENT_ERROR_BYTES])
{
	return is_answered(client, "version\r\n", "VERSION ", said);
}

bool server_flush(struct client *client, char said[CLIENT_ERROR_BYTES])
{
	return is_answered(client, "flush_all\r\n", "OK\r\n", said);
}

const char *server_stats_text(const struct server_stats *stats, enum stats_group group, const char *name)
{
	for (size_t i = 0; i < stats->count; i++)
		if (stats->entries[i].group == group && strcmp(stats->entries[i].name, name) == 0)
			return stats->entries[i].value;
	return NULL;
}

bool server_stats_number(const struct server_stats *stats, enum stats_group group, const char *name, double *value)
{
	const char *text = server_stats_text(stats, group, name);
	char *rest;

	if (!text)
		return false;
	*value = strtod(text, &rest);
	return rest != text && *rest == 0 && !isnan(*value); /* a ratio of nothing is "nan" */
}

bool server_stats_added(const struct server_stats *before, const struct server_stats *after, enum stats_group group,
			const char *name, double *value)
{
	double was;

	if (!server_stats_number(before, group, name, &was) || !server_stats_number(after, group, name, value))
		return false;
	*value -= was;
	return true;
}
