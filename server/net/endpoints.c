/* SPDX-License-Identifier: BSD-3-Clause */
/* What the daemon is bound to, as text: by it one daemon is told from another (server/store/state/endpoints.h). */
#include "server/net/net_internal.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "conf/conf.h"

#define ALL_FOUR "0.0.0.0:"
#define ALL_SIX "[::]:"
#define LOCAL "unix:"
#define LINE_BYTES 4200 /* of a path, or an address */

struct lines {
	const struct net *net;
	char **line;
	unsigned count;
};

static void add_endpoint(struct lines *lines, const char *head, const char *text)
{
	size_t bytes = strlen(head) + strlen(text) + 1;
	char *line = mem_must_zalloc(bytes);
	char **grown = mem_realloc(lines->line, (lines->count + 1) * sizeof(*grown));

	must(grown);
	snprintf(line, bytes, "%s%s", head, text);
	lines->line = grown;
	lines->line[lines->count++] = line;
}

static bool is_dual(int fd)
{
	int only = 1;
	socklen_t length = sizeof(only);

	return getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &length) == 0 && !only;
}

/* address: as address_text writes it, behind "tcp", "tcp6", "udp" or "udp6". Without -l all addresses are meant, also where
   the machine has no IPv6. */
static void add_address(struct lines *lines, int fd, const char *address)
{
	const char *bare = strchr(address, ':') + 1;
	const char *listed = lines->net->server->conf->listen;
	const char *head = strncmp(address, "udp", 3) == 0 ? "udp:" : "";
	bool all = !inherited_any(lines->net) && (!listed || !*listed), six = strncmp(bare, ALL_SIX, 5) == 0;

	if (six && (all || is_dual(fd)))
		bare += strlen(ALL_SIX);
	else if (all && strncmp(bare, ALL_FOUR, strlen(ALL_FOUR)) == 0)
		bare += strlen(ALL_FOUR);
	add_endpoint(lines, head, bare);
}

static void add_datagrams(void *context, const struct net_conn_status *conn)
{
	add_address(context, conn->fd, conn->address);
}

/* The same addresses in another order are the same daemon. */
static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* One of the lines, or of those before it, with that head and tail; NULL: there is none. */
static char *find_line(const struct lines *lines, const char *head, const char *tail)
{
	char wanted[LINE_BYTES];

	snprintf(wanted, sizeof(wanted), "%s%s", head, tail);
	for (unsigned i = 0; i < lines->count; i++)
		if (strcmp(lines->line[i], wanted) == 0)
			return lines->line[i];
	return NULL;
}

/* All addresses of both families are all addresses. */
static void join_families(const struct lines *lines, const char *four, const char *six, const char *both)
{
	for (unsigned i = 0; i < lines->count; i++) {
		char *line = lines->line[i], *other;

		if (strncmp(line, four, strlen(four)) != 0)
			continue;
		other = find_line(lines, six, line + strlen(four));
		if (!other)
			continue;
		snprintf(other, strlen(other) + 1, "%s%s", both, line + strlen(four));
		memcpy(line, other, strlen(other) + 1);
	}
}

static char *join_lines(struct lines *lines)
{
	size_t bytes = 1, length = 0;
	char *text;

	if (lines->count > 0)
		qsort(lines->line, lines->count, sizeof(*lines->line), compare_lines);
	for (unsigned i = 0; i < lines->count; i++)
		bytes += strlen(lines->line[i]) + 1;
	text = mem_must_zalloc(bytes);
	for (unsigned i = 0; i < lines->count; i++)
		if (i == 0 || strcmp(lines->line[i], lines->line[i - 1]) != 0)
			length += (size_t)snprintf(text + length, bytes - length, "%s%s", length ? "\n" : "",
						   lines->line[i]);
	return text;
}

char *net_endpoints(const struct net *net)
{
	struct lines lines = { .net = net };
	char *text;

	for (const struct listener *l = net->listeners; l; l = l->next)
		if (!l->local)
			add_address(&lines, l->fd, l->address);
		else if (net->unix_path)
			add_endpoint(&lines, LOCAL, net->unix_path);
		else
			add_endpoint(&lines, "", l->address);
	udp_each(net, 0, add_datagrams, &lines);
	join_families(&lines, ALL_FOUR, ALL_SIX, "");
	join_families(&lines, "udp:" ALL_FOUR, "udp:" ALL_SIX, "udp:");
	text = join_lines(&lines);
	for (unsigned i = 0; i < lines.count; i++)
		mem_free(lines.line[i]);
	mem_free(lines.line);
	return text;
}
