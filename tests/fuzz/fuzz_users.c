/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The password file (-Y). It is taken as a whole or not at all; then each of its pairs may log in, and no other pair of
 * its names and passwords.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "conf/conf.h"
#include "server/auth/auth.h"
#include "tests/fuzz/fuzz.h"

#define PAIRS 64u /* that are tried with each other */

struct word {
	const char *text;
	size_t length;
};

struct pairs {
	struct word user[PAIRS], password[PAIRS];
	unsigned count; /* of all; the first PAIRS are there */
	bool malformed;
};

/* As memcached reads it: user:password, a line each. Both may be empty. */
static void read_pair(struct pairs *pairs, const char *line, size_t length)
{
	const char *colon = memchr(line, ':', length), *end = line + length;

	if (length > 0 && end[-1] == '\r')
		end--;
	if (!colon) {
		pairs->malformed = true;
		return;
	}
	if (pairs->count < PAIRS) {
		pairs->user[pairs->count] = (struct word){ line, (size_t)(colon - line) };
		pairs->password[pairs->count] = (struct word){ colon + 1, (size_t)(end - colon - 1) };
	}
	pairs->count++;
}

static void read_pairs(struct pairs *pairs, const char *text, size_t length)
{
	const char *end = text + length;

	pairs->count = 0;
	pairs->malformed = false;
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		read_pair(pairs, text, (size_t)((newline ? newline : end) - text));
		text = newline ? newline + 1 : end;
	}
}

static bool same(const struct word *a, const struct word *b)
{
	return a->length == b->length && memcmp(a->text, b->text, a->length) == 0;
}

static bool is_pair(const struct pairs *pairs, const struct word *user, const struct word *password)
{
	for (unsigned i = 0; i < pairs->count; i++)
		if (same(&pairs->user[i], user) && same(&pairs->password[i], password))
			return true;
	return false;
}

static void try_all(struct auth *auth, const struct pairs *pairs)
{
	for (unsigned u = 0; u < pairs->count; u++)
		for (unsigned p = 0; p < pairs->count; p++) {
			const struct word *user = &pairs->user[u], *password = &pairs->password[p];
			const struct word less = { password->text, password->length - (password->length > 0) };

			require(auth_check(auth, user->text, user->length, password->text, password->length) ==
				is_pair(pairs, user, password));
			require(auth_check(auth, user->text, user->length, less.text, less.length) ==
				is_pair(pairs, user, &less));
		}
}

static int open_users(struct auth **auth, const char *text, size_t length)
{
	char path[32], reason[256] = "";
	int fd = memfd_create("users", MFD_CLOEXEC), code;
	struct conf conf;

	require(fd >= 0 && write(fd, text, length) == (ssize_t)length);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	conf_init(&conf);
	conf.auth_file = path;
	code = auth_open(auth, &conf, reason);
	conf.auth_file = NULL;
	conf_free(&conf);
	close(fd);
	require((code == FS_OK) == (*reason == 0));
	return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_copy(data, size);
	struct auth *auth = NULL;
	struct pairs pairs;

	read_pairs(&pairs, text, size);
	require((open_users(&auth, text, size) == FS_OK) == !pairs.malformed);
	if (pairs.malformed)
		require(!auth);
	else if (pairs.count <= PAIRS)
		try_all(auth, &pairs);
	auth_close(auth);
	free(text);
	return 0;
}
