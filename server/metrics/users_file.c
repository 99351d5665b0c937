/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the file of --metrics-auth-file: "name:hash" lines, as "htpasswd -B" writes them. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/crypto.h>

#include "base/alloc.h"
#include "base/file.h"
#include "server/metrics/users_internal.h"

#define WRONG_BYTES 96
#define SALT_AND_HASH "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

void users_list_free(struct users_list *list)
{
	if (list->user)
		OPENSSL_cleanse(list->user, list->count * sizeof(*list->user));
	mem_free(list->user);
	*list = (struct users_list){ 0 };
}

/* "$2y$10$" and 53 characters; a is the oldest letter of bcrypt, b the newest, y that of other tools. */
static bool is_bcrypt(const char *hash)
{
	return strlen(hash) == USERS_HASH_LENGTH && strncmp(hash, "$2", 2) == 0 && strchr("aby", hash[2]) &&
	       hash[3] == '$' && strspn(hash + 4, "0123456789") == 2 && hash[6] == '$' &&
	       strspn(hash + 7, SALT_AND_HASH) == USERS_HASH_LENGTH - 7;
}

static const struct user *find_user(const struct users_list *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->user[i].name, name) == 0)
			return &list->user[i];
	return NULL;
}

static bool refuse_line(char wrong[WRONG_BYTES], const char *text)
{
	snprintf(wrong, WRONG_BYTES, "%s", text);
	return false;
}

/* Adds the user of a line, which ends with 0. False, with what is wrong. */
static bool take_user(struct users_list *list, const char *line, char wrong[WRONG_BYTES])
{
	const char *colon = strchr(line, ':');
	struct user *user = &list->user[list->count];
	unsigned long cost;

	if (!colon || colon == line || (size_t)(colon - line) > USERS_NAME_MOST)
		return refuse_line(wrong, "the line is not \"name:hash\", with a name of 1 to 255 bytes");
	if (!is_bcrypt(colon + 1))
		return refuse_line(wrong, "the password is not a bcrypt hash, as \"htpasswd -nB NAME\" makes one");
	cost = strtoul(colon + 5, NULL, 10);
	if (cost < USERS_COST_LEAST || cost > USERS_COST_MOST) {
		snprintf(wrong, WRONG_BYTES, "the cost of the hash is %lu, and not from %u to %u", cost,
			 USERS_COST_LEAST, USERS_COST_MOST);
		return false;
	}
	snprintf(user->name, sizeof(user->name), "%.*s", (int)(colon - line), line);
	if (find_user(list, user->name))
		return refuse_line(wrong, "the name is there a second time");
	snprintf(user->hash, sizeof(user->hash), "%s", colon + 1);
	list->count++;
	return true;
}

static size_t count_lines(const char *text, size_t length)
{
	size_t lines = 1;

	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	return lines;
}

int users_text_read(const char *path, const char *text, size_t length, struct users_list *out, char reason[256])
{
	const char *end = text + length;
	char wrong[WRONG_BYTES] = "";
	unsigned number = 0;

	*out = (struct users_list){ .user = mem_must_zalloc(count_lines(text, length) * sizeof(*out->user)) };
	for (const char *at = text; at < end && !*wrong; number++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t bytes = (size_t)((newline ? newline : end) - at);
		char line[USERS_NAME_MOST + 2 + USERS_HASH_LENGTH + 2];

		/* A longer line is none of a user: what is cut off doesn't matter. */
		snprintf(line, sizeof(line), "%.*s", (int)(bytes < sizeof(line) ? bytes : sizeof(line)), at);
		line[strcspn(line, "\r")] = 0;
		if (memchr(at, 0, bytes))
			(void)!refuse_line(wrong, "the line has a byte 0");
		else if (*line && *line != '#')
			(void)!take_user(out, line, wrong);
		at = newline ? newline + 1 : end;
	}
	if (!*wrong && out->count > 0)
		return FS_OK;
	if (*wrong)
		snprintf(reason, 256, "--metrics-auth-file: %.120s:%u: %s", path, number, wrong);
	else
		snprintf(reason, 256, "--metrics-auth-file: %.120s: there is no user in it", path);
	users_list_free(out);
	return FS_EINVAL;
}

int users_file_read(const char *path, struct users_list *out, char reason[256])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code = FS_EINVAL;
	char *text = fd >= 0 ? mem_zalloc(USERS_FILE_MOST) : NULL;
	ssize_t length = text ? file_read_all(fd, text, USERS_FILE_MOST) : -1;

	*out = (struct users_list){ 0 };
	if (length < 0)
		snprintf(reason, 256, "--metrics-auth-file: %.120s: %s", path, strerror(errno));
	else
		code = users_text_read(path, text, (size_t)length, out, reason);
	if (text && length > 0)
		OPENSSL_cleanse(text, (size_t)length);
	mem_free(text);
	if (fd >= 0)
		close(fd);
	return code;
}
