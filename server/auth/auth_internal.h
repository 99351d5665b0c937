/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside authentication: auth.c opens, checks and reloads, auth_file.c reads the password file, auth_sasl.c talks to
 * libsasl2.
 *
 * No password is kept. Each user has a digest of the name and one of the password: HMAC-SHA-256 with a key that is made
 * at the start and never leaves the process. A client's name and password are digested likewise and compared with every
 * entry, so that the time tells neither which users exist nor how much of a password is right.
 */
#ifndef FS_SERVER_AUTH_INTERNAL_H
#define FS_SERVER_AUTH_INTERNAL_H

#include <stdint.h>

#include "base/lock.h"
#include "server/auth/auth.h"

#define AUTH_KEY_BYTES 32u
#define AUTH_DIGEST_BYTES 32u /* of SHA-256 */
#define AUTH_FILE_MAX_BYTES (1u << 20) /* of a password file */

struct auth_entry {
	unsigned char user[AUTH_DIGEST_BYTES], password[AUTH_DIGEST_BYTES];
};

struct auth_entries {
	struct auth_entry *entry;
	size_t count;
};

struct auth {
	char *path; /* of the password file, from the root: with -d the daemon leaves its folder; NULL: none */
	unsigned char key[AUTH_KEY_BYTES];
	struct lock lock; /* a leaf, covers entries */
	struct auth_entries entries;
	bool sasl; /* libsasl2 is started */
	char *mechanisms;
};

/* Fills an entry's digests. Returns false if libcrypto fails: the entry must not be used then. Any thread. */
FS_MUST_CHECK bool auth_digest(const unsigned char key[AUTH_KEY_BYTES], const char *user, size_t user_length,
			       const char *password, size_t password_length, struct auth_entry *out);

/* Reads a password file into new entries, which the caller frees by auth_entries_free. FS_OK, or a code as auth_open's
   with the reason. Blocks on the file. */
FS_MUST_CHECK int auth_file_read(const char *path, const unsigned char key[AUTH_KEY_BYTES], struct auth_entries *out,
				 char reason[256]);
/* Wipes and frees the entries. */
void auth_entries_free(struct auth_entries *entries);

/* Starts libsasl2, once in a process, and sets auth->mechanisms. FS_OK, or a code with the reason. Main thread. */
FS_MUST_CHECK int auth_sasl_open(struct auth *auth, char reason[256]);
/* Ends libsasl2 if it was started. Main thread, when no session is left. */
void auth_sasl_close(struct auth *auth);

#endif
