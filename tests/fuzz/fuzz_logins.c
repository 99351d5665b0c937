/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The file of the metrics endpoint's users (--metrics-auth-file). It is taken as a whole or not at all. Each user that is
 * taken is a line of the file, with a hash that bcrypt can have made; written down and read again the users are the same.
 */
#include "server/metrics/users_internal.h"
#include "tests/fuzz/fuzz.h"

#define HASH_CHARACTERS "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789$"

static bool is_line_of(const char *text, size_t size, const char *line)
{
	size_t length = strlen(line);

	for (const char *at = text; at && at < text + size;) {
		const char *end = memchr(at, '\n', (size_t)(text + size - at));
		size_t bytes = (size_t)((end ? end : text + size) - at);

		if (bytes >= length && memcmp(at, line, length) == 0 && (bytes == length || at[length] == '\r'))
			return true;
		at = end ? end + 1 : NULL;
	}
	return false;
}

static void check_user(const struct user *user, const char *text, size_t size)
{
	char line[USERS_NAME_MOST + USERS_HASH_LENGTH + 2];

	require(strlen(user->name) >= 1 && !strpbrk(user->name, ":\r\n"));
	require(strlen(user->hash) == USERS_HASH_LENGTH && strspn(user->hash, HASH_CHARACTERS) == USERS_HASH_LENGTH);
	snprintf(line, sizeof(line), "%s:%s", user->name, user->hash);
	require(is_line_of(text, size, line));
}

static void check_again(const struct users_list *list)
{
	size_t bytes = list->count * (USERS_NAME_MOST + USERS_HASH_LENGTH + 3), length = 0;
	char *text = malloc(bytes), reason[256] = "";
	struct users_list again;

	require(text);
	for (size_t i = 0; i < list->count; i++)
		length += (size_t)snprintf(text + length, bytes - length, "%s:%s\n", list->user[i].name,
					   list->user[i].hash);
	require(users_text_read("again", text, length, &again, reason) == FS_OK && again.count == list->count);
	require(memcmp(again.user, list->user, list->count * sizeof(*list->user)) == 0);
	users_list_free(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size), reason[256] = "";
	struct users_list list;

	if (users_text_read("FILE", text, size, &list, reason) == FS_OK) {
		require(list.count > 0 && !*reason);
		for (size_t i = 0; i < list.count; i++)
			check_user(&list.user[i], text, size);
		check_again(&list);
	} else {
		require(!list.user && strncmp(reason, "--metrics-auth-file: FILE:", 26) == 0);
	}
	users_list_free(&list);
	free(text);
	return 0;
}
