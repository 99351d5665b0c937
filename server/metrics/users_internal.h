/* SPDX-License-Identifier: BSD-3-Clause */
/* What users.c and users_file.c share: the users of one reading of the file. */
#ifndef FS_SERVER_METRICS_USERS_INTERNAL_H
#define FS_SERVER_METRICS_USERS_INTERNAL_H

#include <stddef.h>

#include "server/metrics/users.h"

#define USERS_NAME_MOST 255u
#define USERS_HASH_LENGTH 60u /* of bcrypt's text: "$2y$10$", salt and hash */
#define USERS_FILE_MOST (1u << 20) /* bytes */

struct user {
	char name[USERS_NAME_MOST + 1];
	char hash[USERS_HASH_LENGTH + 1];
};

struct users_list {
	struct user *user;
	size_t count;
};

/* Reads a file into a new list, which the caller frees by users_list_free. FS_OK, or FS_EINVAL with the reason. */
FS_MUST_CHECK int users_file_read(const char *path, struct users_list *out, char reason[256]);
/* The same of its text; path is for the reason. */
FS_MUST_CHECK int users_text_read(const char *path, const char *text, size_t length, struct users_list *out,
				  char reason[256]);
/* Wipes and frees the list. */
void users_list_free(struct users_list *list);

#endif
