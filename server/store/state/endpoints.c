/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/endpoints.h"

#include <string.h>

#include "base/alloc.h"

#define LOCAL "unix:"
#define DATAGRAMS "udp:"

static bool begins_with(const char *at, size_t length, const char *word)
{
	return length >= strlen(word) && memcmp(at, word, strlen(word)) == 0;
}

const char *endpoint_next(const char *at, struct endpoint *out)
{
	size_t length = strcspn(at, "\n"), colon;
	const char *next = at[length] ? at + length + 1 : at + length;

	if (length == 0)
		return NULL;
	*out = (struct endpoint){ .local = begins_with(at, length, LOCAL),
				  .datagrams = begins_with(at, length, DATAGRAMS) };
	if (out->local || out->datagrams) {
		const char *behind = (const char *)memchr(at, ':', length) + 1;

		length -= (size_t)(behind - at);
		at = behind;
	}
	out->host = at;
	out->host_length = length;
	if (out->local)
		return next;
	for (colon = length; colon > 0 && at[colon - 1] != ':'; colon--)
		;
	out->host_length = colon > 0 ? colon - 1 : 0;
	out->port = at + colon;
	out->port_length = length - colon;
	return next;
}

char *endpoints_name(const char *endpoints)
{
	size_t length = 0;
	struct endpoint endpoint;
	char *name = mem_must_zalloc(strlen(endpoints) + 1);
	const char *at = endpoints, *next;

	for (; (next = endpoint_next(at, &endpoint)); at = next) {
		size_t line = strcspn(at, "\n");

		if (endpoint.datagrams)
			continue;
		if (length > 0)
			name[length++] = '\n';
		memcpy(name + length, at, line);
		length += line;
	}
	if (length == 0)
		memcpy(name, endpoints, strlen(endpoints));
	return name;
}

static bool host_is(const struct endpoint *endpoint, const char *host)
{
	return endpoint->host_length == strlen(host) && memcmp(endpoint->host, host, endpoint->host_length) == 0;
}

static bool is_six(const struct endpoint *endpoint)
{
	return endpoint->host_length > 0 && endpoint->host[0] == '[';
}

static bool endpoint_covers(const struct endpoint *all, const struct endpoint *some)
{
	bool same = all->host_length == some->host_length && memcmp(all->host, some->host, all->host_length) == 0;

	if (all->local || some->local)
		return all->local && some->local && same;
	if (all->datagrams != some->datagrams || all->port_length != some->port_length ||
	    memcmp(all->port, some->port, all->port_length) != 0)
		return false;
	return same || all->host_length == 0 || (host_is(all, "0.0.0.0") && some->host_length > 0 && !is_six(some)) ||
	       (host_is(all, "[::]") && is_six(some));
}

bool endpoints_overlap(const char *one, const char *other)
{
	struct endpoint a, b;

	for (const char *i = one; (i = endpoint_next(i, &a));)
		for (const char *j = other; (j = endpoint_next(j, &b));)
			if (endpoint_covers(&a, &b) || endpoint_covers(&b, &a))
				return true;
	return false;
}

bool endpoints_cover(const char *all, const char *some)
{
	struct endpoint a, b;

	for (const char *i = some; (i = endpoint_next(i, &b));) {
		bool covered = false;

		for (const char *j = all; !covered && (j = endpoint_next(j, &a));)
			covered = endpoint_covers(&a, &b);
		if (!covered)
			return false;
	}
	return true;
}
