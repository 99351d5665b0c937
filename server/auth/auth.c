/* SPDX-License-Identifier: BSD-3-Clause */
/* Authentication: opening, checking, reloading. */
#include "server/auth/auth_internal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "conf/conf.h"

static bool digest_of(const unsigned char key[AUTH_KEY_BYTES], const char *bytes, size_t length,
		      unsigned char out[AUTH_DIGEST_BYTES])
{
	unsigned int written = AUTH_DIGEST_BYTES;

	return HMAC(EVP_sha256(), key, AUTH_KEY_BYTES, (const unsigned char *)bytes, length, out, &written) != NULL;
}

bool auth_digest(const unsigned char key[AUTH_KEY_BYTES], const char *user, size_t user_length, const char *password,
		 size_t password_length, struct auth_entry *out)
{
	return digest_of(key, user, user_length, out->user) && digest_of(key, password, password_length, out->password);
}

bool auth_has_passwords(const struct auth *auth)
{
	return auth->path != NULL;
}

bool auth_has_sasl(const struct auth *auth)
{
	return auth->sasl;
}

bool auth_check(struct auth *auth, const char *user, size_t user_length, const char *password, size_t password_length)
{
	struct auth_entry asked;
	unsigned found = 0;

	if (!auth_digest(auth->key, user, user_length, password, password_length, &asked))
		return false;
	lock_acquire(&auth->lock);
	for (size_t i = 0; i < auth->entries.count;
	     i++) /* all entries, so that the time doesn't tell which one matches */
		found |= CRYPTO_memcmp(&auth->entries.entry[i], &asked, sizeof(asked)) == 0;
	lock_release(&auth->lock);
	OPENSSL_cleanse(&asked, sizeof(asked));
	return found != 0;
}

static int read_passwords(struct auth *auth, const char *path, char reason[256])
{
	struct auth_entries entries, old;
	int code = auth_file_read(path, auth->key, &entries, reason);

	if (code != FS_OK)
		return code;
	must(entries.entry); /* also of an empty file: from here on nobody may log in */
	lock_acquire(&auth->lock);
	old = auth->entries;
	auth->entries = entries;
	lock_release(&auth->lock);
	auth_entries_free(&old);
	return FS_OK;
}

int auth_reload(struct auth *auth, char reason[256])
{
	return auth->path ? read_passwords(auth, auth->path, reason) : FS_OK;
}

static int open_passwords(struct auth *auth, const char *path, char reason[256])
{
	auth->path = conf_absolute(path);
	return read_passwords(auth, path, reason);
}

int auth_open(struct auth **out, const struct conf *conf, char reason[256])
{
	struct auth *auth;
	int code = FS_OK;

	*out = NULL;
	if (!conf->auth_file && !conf->enable_sasl)
		return FS_OK;
	auth = mem_zalloc(sizeof(*auth));
	if (!auth) {
		snprintf(reason, 256, "%s", fs_strerror(FS_ENOMEM));
		return FS_ENOMEM;
	}
	lock_init(&auth->lock, LOCK_LEAF);
	if (RAND_bytes(auth->key, sizeof(auth->key)) != 1) {
		snprintf(reason, 256, "the system gives no random bytes, which the digests of passwords need");
		code = FS_ESYS;
	}
	if (code == FS_OK && conf->auth_file)
		code = open_passwords(auth, conf->auth_file, reason);
	if (code == FS_OK && conf->enable_sasl)
		code = auth_sasl_open(auth, reason);
	if (code != FS_OK) {
		auth_close(auth);
		return code;
	}
	*out = auth;
	return FS_OK;
}

void auth_close(struct auth *auth)
{
	if (!auth)
		return;
	if (auth->sasl)
		auth_sasl_close(auth);
	auth_entries_free(&auth->entries);
	lock_fini(&auth->lock);
	free(auth->path);
	OPENSSL_cleanse(auth->key, sizeof(auth->key));
	mem_free(auth);
}
