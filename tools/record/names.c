/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/record/names.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <string.h>

#include "base/assert.h"
#include "base/rng.h"
#include "tools/common/args.h"

enum { SECRET_BYTES = 16, SALT_HASH_BYTES = 32 };

static void make_secret(const char *salt, unsigned char secret[SECRET_BYTES])
{
	unsigned char hash[SALT_HASH_BYTES];
	size_t length = 0;

	if (!salt) {
		rng_secret(secret, SECRET_BYTES);
		return;
	}
	if (!EVP_Q_digest(NULL, "SHA256", NULL, salt, strlen(salt), hash, &length))
		arg_die("--salt: OpenSSL has no SHA256");
	memcpy(secret, hash, SECRET_BYTES);
}

void names_init(struct names *names, const char *salt)
{
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "SIPHASH", NULL);
	unsigned char secret[SECRET_BYTES];
	size_t size = sizeof(uint64_t);
	const OSSL_PARAM parameters[] = { OSSL_PARAM_construct_size_t(OSSL_MAC_PARAM_SIZE, &size),
					  OSSL_PARAM_construct_end() };

	make_secret(salt, secret);
	names->context = mac ? EVP_MAC_CTX_new(mac) : NULL;
	EVP_MAC_free(mac);
	if (!names->context || !EVP_MAC_init(names->context, secret, sizeof(secret), parameters))
		arg_die("OpenSSL has no SipHash for the names of keys");
	memset(secret, 0, sizeof(secret));
}

void names_fini(struct names *names)
{
	EVP_MAC_CTX_free(names->context);
}

uint64_t names_of(const struct names *names, const void *bytes, size_t length)
{
	unsigned char out[sizeof(uint64_t)] = { 0 };
	uint64_t name = 0;
	size_t size = 0;

	must(EVP_MAC_init(names->context, NULL, 0, NULL) && EVP_MAC_update(names->context, bytes, length) &&
	     EVP_MAC_final(names->context, out, &size, sizeof(out)));
	for (unsigned i = 0; i < sizeof(out); i++)
		name |= (uint64_t)out[i] << 8 * i;
	return name;
}
