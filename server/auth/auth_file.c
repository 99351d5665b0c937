/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The password file: a line for each user, "user:password", as memcached reads it. The first colon ends the name, and
 * the password is the rest of the line. Both may be empty; a warning tells of an empty password, which is more likely a
 * variable that was not set than a wish. A carriage return at the line's end is no part of the password. Any other line,
 * even an empty one, is an error: it is better that nobody can log in than an unexpected user.
 */
#include "server/auth/auth_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/file.h"
#include "base/log.h"

void auth_entries_free(struct auth_entries *entries)
{
	if (entries->entry)
		OPENSSL_cleanse(entries->entry, entries->count * sizeof(*entries->entry));
	mem_free(entries->entry);
	*entries = (struct auth_entries){ 0 };
}

static size_t count_lines(const char *text, size_t length)
{
	size_t lines = length > 0 && text[length - 1] != '\n';

	for (size_t i = 0; i < length; i++)
		lines += text[i] == '\n';
	return lines;
}

/* *empty tells whether the password is. */
static bool read_entry(const char *line, size_t length, const unsigned char key[AUTH_KEY_BYTES], struct auth_entry *out,
		       bool *empty)
{
	const char *colon = memchr(line, ':', length);
	size_t user;

	if (!colon)
		return false;
	if (line[length - 1] == '\r')
		length--;
	user = (size_t)(colon - line);
	*empty = user + 1 == length;
	return auth_digest(key, line, user, colon + 1, length - user - 1, out);
}

static int read_lines(const char *path, const char *text, size_t length, const unsigned char key[AUTH_KEY_BYTES],
		      struct auth_entries *out, char reason[256])
{
	const char *end = text + length;
	size_t count = count_lines(text, length);

	out->entry = mem_zalloc((count + 1) * sizeof(*out->entry));
	if (!out->entry) {
		snprintf(reason, 256, "Authfile [%.150s]: %s", path, fs_strerror(FS_ENOMEM));
		return FS_ENOMEM;
	}
	for (const char *line = text; line < end; out->count++) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *stop = newline ? newline : end;
		bool empty;

		must(out->count < count); /* count_lines agrees with this loop about what a line is */
		if (!read_entry(line, (size_t)(stop - line), key, &out->entry[out->count], &empty)) {
			snprintf(reason, 256,
				 "Authfile [%.150s] has a malformed entry. Should be 'user:password' (line %zu)", path,
				 out->count + 1);
			auth_entries_free(out);
			return FS_EINVAL;
		}
		if (empty)
			log_warn("--auth-file: %s: line %zu has an empty password", path, out->count + 1);
		line = newline ? newline + 1 : end;
	}
	return FS_OK;
}

int auth_file_read(const char *path, const unsigned char key[AUTH_KEY_BYTES], struct auth_entries *out,
		   char reason[256])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), code = FS_ESYS;
	char *text = fd >= 0 ? mem_zalloc(AUTH_FILE_MAX_BYTES) : NULL;
	ssize_t length = text ? file_read_all(fd, text, AUTH_FILE_MAX_BYTES) : -1;

	*out = (struct auth_entries){ 0 };
	if (length < 0)
		snprintf(reason, 256, "Could not open authfile [%.150s] for reading, error %s", path, strerror(errno));
	else
		code = read_lines(path, text, (size_t)length, key, out, reason);
	if (text && length > 0)
		OPENSSL_cleanse(text, (size_t)length);
	mem_free(text);
	if (fd >= 0)
		close(fd);
	return code;
}
