/* SPDX-License-Identifier: BSD-3-Clause */
/* The address of --metrics-listen, and whether the cache would listen there too. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "conf/conf_internal.h"
#include "conf/listen.h"

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-"
#define IPV6_CHARACTERS "0123456789abcdefABCDEF:.%"
#define PORT_MAX 65535

/* The end of the address in "ADDRESS:PORT", "[IPV6]:PORT", "*:PORT" or ":PORT"; NULL when the text has none of these forms. Only
   binding shows whether the address exists. */
static const char *end_of_address(const char *text)
{
	size_t length;

	if (*text == ':' || *text == '*')
		return text + (*text == '*');
	if (*text != '[') {
		length = strspn(text, NAME_CHARACTERS);
		return length > 0 ? text + length : NULL;
	}
	length = strspn(text + 1, IPV6_CHARACTERS);
	return length > 0 && text[length + 1] == ']' ? text + length + 2 : NULL;
}

/* The port in ":PORT", or -1. */
static long port_of(const char *text)
{
	size_t digits = *text == ':' ? strspn(text + 1, "0123456789") : 0;
	long port;

	if (digits < 1 || digits > 5 || text[1 + digits])
		return -1;
	port = strtol(text + 1, NULL, 10);
	return port <= PORT_MAX ? port : -1;
}

static bool is_off(const char *text)
{
	return !text || !*text || strcmp(text, "off") == 0;
}

/* Each way to switch the endpoint off becomes "off". */
int conf_check_metrics(struct conf *conf, FILE *err)
{
	const char *text = conf->metrics_listen, *end = text ? end_of_address(text) : NULL;
	char shown[CONF_SHOWN_BYTES];

	if (is_off(text)) {
		free(conf->metrics_listen);
		conf->metrics_listen = strdup("off");
		must(conf->metrics_listen);
		return 0;
	}
	if (end && port_of(end) >= 0)
		return 0;
	conf_tell_option(conf, err, "metrics-listen");
	fprintf(err,
		"\"%s\" is not ADDRESS:PORT, [IPV6]:PORT, *:PORT or off, with a port from 0 (any that is free) to %d\n",
		conf_shown(text, shown), PORT_MAX);
	return CONF_EXIT_VALUE;
}

/* --- ports ----------------------------------------------------------------------------------- */

#define HOST_BYTES 256

struct end_point {
	char host[HOST_BYTES]; /* "": all interfaces */
	long port;
};

static void set_host(struct end_point *point, const char *host, size_t length)
{
	snprintf(point->host, HOST_BYTES, "%.*s", (int)(length < HOST_BYTES ? length : HOST_BYTES - 1), host);
	if (strcmp(point->host, "*") == 0 || strcmp(point->host, "0.0.0.0") == 0 || strcmp(point->host, "::") == 0)
		*point->host = 0;
	else if (strcmp(point->host, "localhost") == 0)
		snprintf(point->host, HOST_BYTES, "127.0.0.1");
}

/* HOST, HOST:PORT, [IPV6]:PORT or a bare IPv6 address, as -l has it. */
static struct end_point end_point_of(const char *text, size_t length, long port)
{
	struct end_point point = { .port = port };
	const char *colon = memchr(text, ':', length), *bracket = memchr(text, ']', length);

	if (*text == '[' && bracket) {
		set_host(&point, text + 1, (size_t)(bracket - text) - 1);
		colon = bracket + 1 < text + length ? bracket + 1 : NULL;
	} else if (colon && !memchr(colon + 1, ':', length - (size_t)(colon - text) - 1)) {
		set_host(&point, text, (size_t)(colon - text));
	} else {
		set_host(&point, text, length);
		colon = NULL;
	}
	if (colon)
		point.port = strtol(colon + 1, NULL, 10);
	return point;
}

static bool is_one(const struct end_point *one, const struct end_point *other)
{
	return one->port == other->port && one->port > 0 &&
	       (!*one->host || !*other->host || strcmp(one->host, other->host) == 0);
}

/* Does one of -l's addresses, or -p alone, bind the end point? */
static bool cache_listens_at(const struct conf *conf, const struct end_point *wanted)
{
	const char *at = conf->listen ? conf->listen : "*";

	while (*at) {
		size_t length = strcspn(at, ",; "), rest;
		char why[CONF_LISTEN_WHY_BYTES];
		struct conf_listen listen;
		struct end_point point;

		(void)!conf_listen_read(conf, at, length, &listen, why); /* binding tells a wrong word */
		rest = length - (size_t)(listen.address - at);
		point = end_point_of(listen.address, rest, conf->port);
		if (rest > 0 && is_one(&point, wanted))
			return true;
		at += length;
		at += strspn(at, ",; ");
	}
	return false;
}

int conf_check_ports(struct conf *conf, FILE *err)
{
	struct end_point wanted;

	if (is_off(conf->metrics_listen) || conf->unix_socket || conf->port == 0)
		return 0;
	wanted = end_point_of(conf->metrics_listen, strlen(conf->metrics_listen), 0);
	if (!cache_listens_at(conf, &wanted))
		return 0;
	conf_tell_option(conf, err, "metrics-listen");
	fprintf(err, "at %s the cache itself listens, by -p/--port or -l/--listen; take another port, or off\n",
		conf->metrics_listen);
	return CONF_EXIT_VALUE;
}
