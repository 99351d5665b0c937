/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of several nodes by libmemcached's ketama, driven by lines, for tests/nodes/test_life.py.
 *
 *   ketama_client HOST:PORT...
 *   set KEY VALUE      STORED, or ERROR and libmemcached's text
 *   get KEY            VALUE and the value, MISS, or ERROR and the text
 *   delete KEY         DELETED, MISS, or ERROR and the text
 *
 * One answer for each line, at once. A node that fails once is left out for a second.
 */
#include <libmemcached/memcached.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 8192
#define PATIENCE_MS 10000

static void must_set(memcached_st *client, memcached_behavior_t behavior, uint64_t value)
{
	memcached_return_t result = memcached_behavior_set(client, behavior, value);

	if (result == MEMCACHED_SUCCESS)
		return;
	fprintf(stderr, "behavior %d: %s\n", (int)behavior, memcached_strerror(client, result));
	exit(1);
}

static memcached_st *create(int node_count, char **nodes)
{
	memcached_st *client = memcached_create(NULL);

	if (!client)
		exit(1);
	must_set(client, MEMCACHED_BEHAVIOR_KETAMA, 1);
	must_set(client, MEMCACHED_BEHAVIOR_TCP_NODELAY, 1);
	must_set(client, MEMCACHED_BEHAVIOR_CONNECT_TIMEOUT, PATIENCE_MS);
	must_set(client, MEMCACHED_BEHAVIOR_POLL_TIMEOUT, PATIENCE_MS);
	must_set(client, MEMCACHED_BEHAVIOR_REMOVE_FAILED_SERVERS, 1);
	must_set(client, MEMCACHED_BEHAVIOR_SERVER_FAILURE_LIMIT, 1);
	must_set(client, MEMCACHED_BEHAVIOR_RETRY_TIMEOUT, 1);
	must_set(client, MEMCACHED_BEHAVIOR_DEAD_TIMEOUT, 1);
	for (int i = 0; i < node_count; i++) {
		char *colon = strrchr(nodes[i], ':');

		if (!colon)
			exit(1);
		*colon = '\0';
		if (memcached_server_add(client, nodes[i], (in_port_t)atoi(colon + 1)) != MEMCACHED_SUCCESS)
			exit(1);
	}
	return client;
}

static void error(memcached_st *client, memcached_return_t result)
{
	printf("ERROR %s\n", memcached_strerror(client, result));
}

static void get(memcached_st *client, const char *key)
{
	memcached_return_t result;
	uint32_t flags;
	size_t bytes;
	char *value = memcached_get(client, key, strlen(key), &bytes, &flags, &result);

	if (result == MEMCACHED_SUCCESS)
		printf("VALUE %.*s\n", (int)bytes, value ? value : "");
	else if (result == MEMCACHED_NOTFOUND)
		printf("MISS\n");
	else
		error(client, result);
	free(value);
}

static void set(memcached_st *client, const char *key, const char *value)
{
	memcached_return_t result = memcached_set(client, key, strlen(key), value, strlen(value), 0, 0);

	if (result == MEMCACHED_SUCCESS)
		printf("STORED\n");
	else
		error(client, result);
}

static void remove_key(memcached_st *client, const char *key)
{
	memcached_return_t result = memcached_delete(client, key, strlen(key), 0);

	if (result == MEMCACHED_SUCCESS)
		printf("DELETED\n");
	else if (result == MEMCACHED_NOTFOUND)
		printf("MISS\n");
	else
		error(client, result);
}

static bool execute(memcached_st *client, char *line)
{
	char *command = strtok(line, " \n"), *key = strtok(NULL, " \n"), *value = strtok(NULL, " \n");

	if (!command || !key)
		return false;
	if (strcmp(command, "get") == 0 && !value)
		get(client, key);
	else if (strcmp(command, "set") == 0 && value)
		set(client, key, value);
	else if (strcmp(command, "delete") == 0 && !value)
		remove_key(client, key);
	else
		return false;
	return fflush(stdout) == 0;
}

int main(int argc, char **argv)
{
	memcached_st *client = create(argc - 1, argv + 1);
	char line[LINE_BYTES];
	int code = 0;

	while (!code && fgets(line, sizeof(line), stdin))
		code = execute(client, line) ? 0 : 1;
	memcached_free(client);
	return code;
}
