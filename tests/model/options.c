/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/model/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"

struct options options = {
	.host = "127.0.0.1",
	.port = 11211,
	.threads = 2,
	.connections = 4,
	.keys = 20000,
	.shared_keys = 300,
	.counters = 20,
	.item_limit = 1 << 20,
	.large = 4096,
	.value_max = 60000,
	.seconds = 10,
	.flush_every = 5,
	.patience = 30,
	.drops = true,
	.name = "model",
};

static const struct {
	struct option option;
	const char *text;
} TABLE[] = {
	{ { "server", 1, NULL, 's' }, "HOST:PORT of the daemon under test" },
	{ { "seconds", 1, NULL, 't' }, "how long to run" },
	{ { "wait", 1, NULL, 'w' }, "how much longer, at most, while what --require names is not reached" },
	{ { "threads", 1, NULL, 'T' }, "client threads" },
	{ { "connections", 1, NULL, 'c' }, "connections of each thread" },
	{ { "keys", 1, NULL, 'k' }, "keys that belong to one connection each" },
	{ { "shared-keys", 1, NULL, 'K' }, "keys that all connections write" },
	{ { "counters", 1, NULL, 'C' }, "keys that all connections increment" },
	{ { "seed", 1, NULL, 'S' }, "of all randomness; printed at the start" },
	{ { "item-limit", 1, NULL, 'I' }, "the server's item size limit in bytes" },
	{ { "large", 1, NULL, 'L' }, "size in bytes from which on a value is large" },
	{ { "value-max", 1, NULL, 'M' }, "largest value that is to be stored" },
	{ { "ttl-percent", 1, NULL, 'x' }, "share of writes that expire after a second, beside the usual few" },
	{ { "rmw-percent", 1, NULL, 'y' }, "share of commands on shared keys that are neither a get nor a set" },
	{ { "rate", 1, NULL, 'R' }, "commands per second of each thread, 0 for all that go" },
	{ { "flush-every", 1, NULL, 'f' }, "seconds between flush_alls, 0 for none" },
	{ { "patience", 1, NULL, 'p' }, "seconds without an answer that are a failure" },
	{ { "no-drops", 0, NULL, 'd' }, "keep all connections" },
	{ { "strict-miss", 0, NULL, 'm' }, "a value that was missed once must not come back" },
	{ { "require", 1, NULL, 'r' }, "names from stats that must be above 0 at the end, with commas between" },
	{ { "name", 1, NULL, 'n' }, "of the configuration, for the summary line" },
	{ { "help", 0, NULL, 'h' }, "this text" },
};
#define ROWS (sizeof(TABLE) / sizeof(TABLE[0]))

static void help(void)
{
	puts("model_client: random commands against a memcached server and a model of it.");
	puts("A get may miss, but never returns a wrong or an older value.\n");
	for (size_t i = 0; i < ROWS; i++)
		printf("  --%-14s %s\n", TABLE[i].option.name, TABLE[i].text);
	exit(0);
}

static void set_server(const char *text)
{
	const char *colon = strrchr(text, ':');

	if (!colon || (size_t)(colon - text) >= sizeof(options.host)) {
		fprintf(stderr, "model_client: --server is HOST:PORT\n");
		exit(2);
	}
	snprintf(options.host, sizeof(options.host), "%.*s", (int)(colon - text), text);
	options.port = (unsigned)strtoul(colon + 1, NULL, 10);
}

static void set(int letter, const char *text)
{
	uint32_t number = text ? (uint32_t)strtoul(text, NULL, 0) : 0;

	switch (letter) {
	case 's':
		set_server(text);
		break;
	case 't':
		options.seconds = strtod(text, NULL);
		break;
	case 'w':
		options.wait = strtod(text, NULL);
		break;
	case 'T':
		options.threads = number;
		break;
	case 'c':
		options.connections = number;
		break;
	case 'k':
		options.keys = number;
		break;
	case 'K':
		options.shared_keys = number;
		break;
	case 'C':
		options.counters = number;
		break;
	case 'S':
		options.seed = strtoull(text, NULL, 0);
		break;
	case 'I':
		options.item_limit = number;
		break;
	case 'L':
		options.large = number;
		break;
	case 'M':
		options.value_max = number;
		break;
	case 'y':
		options.rmw_percent = number;
		break;
	case 'x':
		options.ttl_percent = number;
		break;
	case 'R':
		options.rate = strtod(text, NULL);
		break;
	case 'f':
		options.flush_every = strtod(text, NULL);
		break;
	case 'p':
		options.patience = strtod(text, NULL);
		break;
	case 'd':
		options.drops = false;
		break;
	case 'm':
		options.strict_miss = true;
		break;
	case 'r':
		options.require = text;
		break;
	case 'n':
		options.name = text;
		break;
	case 'h':
		help();
		break;
	default:
		exit(2);
	}
}

void options_parse(int argc, char **argv)
{
	struct option list[ROWS + 1] = { 0 };
	int letter;

	for (size_t i = 0; i < ROWS; i++)
		list[i] = TABLE[i].option;
	while ((letter = getopt_long(argc, argv, "", list, NULL)) != -1)
		set(letter, optarg);
	if (options.seed == 0)
		rng_secret(&options.seed, sizeof(options.seed));
	if (options.threads == 0 || options.threads > THREADS_MAX || options.connections == 0 ||
	    options.connections > CONNECTIONS_MAX || options.keys < options.threads * options.connections * 16 ||
	    options.shared_keys == 0 || options.counters == 0 || options.value_max + 1024 > options.item_limit) {
		fprintf(stderr, "model_client: at least one thread and connection, 16 keys for each "
				"connection, one "
				"shared key and counter, and --value-max below --item-limit less 1024\n");
		exit(2);
	}
}
