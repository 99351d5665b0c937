/* SPDX-License-Identifier: BSD-3-Clause */
#include <crypt.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/lock.h"
#include "conf/conf.h"
#include "server/metrics/users_internal.h"

#define DIGEST_BYTES 32u /* of SHA-256 */
#define REMEMBERED 16u /* right credentials, and as many wrong ones */
#define PEERS 64u
#define PEER_WAIT_US 1000000u
#define SHARE 4 /* checks take one part in so many of a CPU's time, in the long run, */
#define CREDIT_MOST_US 1000000 /* and no more than this beyond it at once */

/* Digests of name, hash and password. The right ones have a ring of their own, so that no guess pushes one of them out. */
struct remembered {
	unsigned char digest[REMEMBERED][DIGEST_BYTES];
	unsigned next, count;
};

struct peer {
	unsigned char address[16]; /* IPv4 as in ::ffff:a.b.c.d, IPv6 without its last 64 bits */
	uint64_t until_us; /* no check before */
};

struct users {
	char *path; /* from the root, as with -d the daemon leaves its folder; constant, like clock and key */
	const struct clk *clock;
	unsigned char key[DIGEST_BYTES]; /* of the digests */
	struct lock lock; /* covers all below, but runs */
	struct users_list list;
	struct remembered right, wrong;
	struct peer peers[PEERS]; /* whose password was wrong; the oldest makes room */
	int64_t credit_us; /* time that checks may take; no check without any. One that takes more leaves it negative */
	uint64_t credited_us; /* when credit_us was reckoned */
	struct crypt_data crypt; /* libcrypt's memory, of 32 KiB */
	_Atomic uint64_t runs;
};

/* ---- what was found before ---------------------------------------------------------------------- */

static bool digest_of_login(const struct users *users, const struct user *user, const char *name, const char *password,
			    unsigned char out[DIGEST_BYTES])
{
	const char *const parts[] = { name, user->hash, password };
	char *text, *at;
	size_t bytes = 0;
	unsigned written = DIGEST_BYTES;
	bool made;

	for (unsigned i = 0; i < 3; i++)
		bytes += strlen(parts[i]) + 1;
	text = at = mem_must_zalloc(bytes);
	for (unsigned i = 0; i < 3; i++)
		at = stpcpy(at, parts[i]) + 1;
	made = HMAC(EVP_sha256(), users->key, sizeof(users->key), (unsigned char *)text, bytes, out, &written) != NULL;
	OPENSSL_cleanse(text, bytes);
	mem_free(text);
	return made;
}

static bool remembers(const struct remembered *remembered, const unsigned char digest[DIGEST_BYTES])
{
	unsigned found = 0;

	for (unsigned i = 0; i < remembered->count; i++)
		found |= CRYPTO_memcmp(remembered->digest[i], digest, DIGEST_BYTES) == 0;
	return found != 0;
}

static void remember(struct remembered *remembered, const unsigned char digest[DIGEST_BYTES])
{
	memcpy(remembered->digest[remembered->next], digest, DIGEST_BYTES);
	remembered->next = (remembered->next + 1) % REMEMBERED;
	if (remembered->count < REMEMBERED)
		remembered->count++;
}

/* ---- how often ---------------------------------------------------------------------------------- */

static void peer_address(const struct sockaddr *from, unsigned char out[16])
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };

	memset(out, 0, 16);
	if (from && from->sa_family == AF_INET) {
		memcpy(out, mapped, sizeof(mapped));
		memcpy(out + 12, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
	} else if (from && from->sa_family == AF_INET6) {
		const unsigned char *address = ((const struct sockaddr_in6 *)(const void *)from)->sin6_addr.s6_addr;

		memcpy(out, address, memcmp(address, mapped, sizeof(mapped)) == 0 ? 16 : 8);
	}
}

/* The peer's entry; else the one whose wait ends first, for it to have. */
static struct peer *peer_entry(struct users *users, const unsigned char address[16], bool *known)
{
	struct peer *oldest = &users->peers[0];

	*known = false;
	for (unsigned i = 0; i < PEERS; i++) {
		struct peer *peer = &users->peers[i];

		if (peer->until_us != 0 && memcmp(peer->address, address, 16) == 0) {
			*known = true;
			return peer;
		}
		if (peer->until_us < oldest->until_us)
			oldest = peer;
	}
	return oldest;
}

/* ---- the check ---------------------------------------------------------------------------------- */

/* The user of this name. *exists: there is one; else it is the first user, whose hash is checked in vain. */
static const struct user *user_for(const struct users *users, const char *name, bool *exists)
{
	for (size_t i = 0; i < users->list.count; i++)
		if (strcmp(users->list.user[i].name, name) == 0) {
			*exists = true;
			return &users->list.user[i];
		}
	*exists = false;
	return &users->list.user[0];
}

static bool bcrypt_matches(struct users *users, const char *hash, const char *password)
{
	/* crypt_r would do, but ASan has one of its own, which makes the linker leave libcrypt out. */
	const char *made = crypt_rn(password, hash, &users->crypt, (int)sizeof(users->crypt));
	bool same = made && strlen(made) == USERS_HASH_LENGTH && CRYPTO_memcmp(made, hash, USERS_HASH_LENGTH) == 0;

	atomic_fetch_add_explicit(&users->runs, 1, memory_order_relaxed);
	OPENSSL_cleanse(&users->crypt, sizeof(users->crypt));
	return same;
}

/* Reckons the time that checks may take from now on. */
static void earn_credit(struct users *users, uint64_t now_us)
{
	users->credit_us += (int64_t)((now_us - users->credited_us) / SHARE);
	if (users->credit_us > CREDIT_MOST_US)
		users->credit_us = CREDIT_MOST_US;
	users->credited_us = now_us;
}

/* With the lock. Runs bcrypt if time and peer allow it. */
static enum users_check check_anew(struct users *users, const struct user *user, bool exists, const char *password,
				   const unsigned char digest[DIGEST_BYTES], const struct sockaddr *from)
{
	uint64_t began_us = clk_now_us(users->clock), ended_us;
	unsigned char address[16];
	struct peer *peer;
	bool known, same;

	peer_address(from, address);
	peer = peer_entry(users, address, &known);
	earn_credit(users, began_us);
	if (users->credit_us <= 0 || (known && began_us < peer->until_us))
		return USERS_LATER;
	same = bcrypt_matches(users, user->hash, password) && exists;
	ended_us = clk_now_us(users->clock);
	users->credit_us -= (int64_t)(ended_us - began_us);
	remember(same ? &users->right : &users->wrong, digest);
	if (same)
		return USERS_RIGHT;
	memcpy(peer->address, address, sizeof(address));
	peer->until_us = ended_us + PEER_WAIT_US;
	return USERS_WRONG;
}

enum users_check users_check(struct users *users, const char *name, const char *password, const struct sockaddr *from)
{
	unsigned char digest[DIGEST_BYTES];
	enum users_check result;
	const struct user *user;
	bool exists;

	lock_acquire(&users->lock);
	user = user_for(users, name, &exists);
	if (!digest_of_login(users, user, name, password, digest))
		result = USERS_LATER;
	else if (remembers(&users->right, digest))
		result = USERS_RIGHT;
	else if (remembers(&users->wrong, digest))
		result = USERS_WRONG;
	else
		result = check_anew(users, user, exists, password, digest, from);
	lock_release(&users->lock);
	return result;
}

uint64_t users_bcrypt_runs(const struct users *users)
{
	return atomic_load_explicit(&users->runs, memory_order_relaxed);
}

/* ---- the file ----------------------------------------------------------------------------------- */

static int take_file(struct users *users, const char *path, char reason[256])
{
	struct users_list list, old;
	int code = users_file_read(path, &list, reason);

	if (code != FS_OK)
		return code;
	lock_acquire(&users->lock);
	old = users->list;
	users->list = list;
	/* Who is no user any more must not be remembered as one. */
	users->right = users->wrong = (struct remembered){ 0 };
	lock_release(&users->lock);
	users_list_free(&old);
	return FS_OK;
}

int users_reload(struct users *users, char reason[256])
{
	return take_file(users, users->path, reason);
}

int users_open(struct users **out, const char *path, const struct clk *clock, char reason[256])
{
	struct users *users = mem_must_zalloc(sizeof(*users));
	int code = FS_OK;

	*out = NULL;
	lock_init(&users->lock, LOCK_LEAF);
	users->clock = clock;
	users->path = conf_absolute(path);
	users->credit_us = CREDIT_MOST_US;
	users->credited_us = clk_now_us(clock);
	if (RAND_bytes(users->key, sizeof(users->key)) != 1) {
		snprintf(reason, 256, "--metrics-auth-file: the system gives no random bytes, which the digests need");
		code = FS_ESYS;
	}
	if (code == FS_OK)
		code = take_file(users, path, reason);
	if (code == FS_OK)
		*out = users;
	else
		users_close(users);
	return code;
}

void users_close(struct users *users)
{
	if (!users)
		return;
	users_list_free(&users->list);
	lock_fini(&users->lock);
	free(users->path);
	OPENSSL_cleanse(users, sizeof(*users));
	mem_free(users);
}
