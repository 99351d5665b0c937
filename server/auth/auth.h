/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Authentication: the password file of -Y (text protocol) and SASL (-S, binary protocol). It knows neither connections
 * nor objects: from names, secrets and SASL's bytes it decides whether a client may use the cache.
 *
 * The password file has lines "user:password", as memcached's -Y takes them. A reload replaces all of it: a check sees
 * the old file or the new one. Names and passwords are compared in constant time, with all entries each time.
 *
 * Threads: auth_check and the SASL functions from any thread (a SASL session from one at a time); open, reload
 * and close from the main thread. Secrets are wiped before their memory is freed.
 *
 * Errors: codes of base/error.h, with a reason for the operator that contains no secret.
 */
#ifndef FS_SERVER_AUTH_AUTH_H
#define FS_SERVER_AUTH_AUTH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct auth;
struct conf;

/* Reads the password file and starts libsasl2, as far as the options ask for them. FS_OK: *out is the caller's; it is
   NULL if no option asks for either. FS_EINVAL: the file has a bad line, whose number is in the reason. FS_ESYS: it
   can't be read, or the system gives no random bytes. FS_ENOMEM: memory is out. */
FS_MUST_CHECK int auth_open(struct auth **out, const struct conf *conf, char reason[256]);
void auth_close(struct auth *auth); /* NULL is nothing */

/* For SIGHUP: reads the password file again, if there is one. FS_OK, or a code of auth_open with the reason; the old
   entries stay then. */
FS_MUST_CHECK int auth_reload(struct auth *auth, char reason[256]);

/* auth_has_passwords returns true if there is a password file, auth_has_sasl if SASL is on. Any thread. */
bool auth_has_passwords(const struct auth *auth);
bool auth_has_sasl(const struct auth *auth);

/* Returns true if there is such a user with this password. Takes a leaf lock, under which a reload swaps the entries;
   never waits for the file. */
FS_MUST_CHECK bool auth_check(struct auth *auth, const char *user, size_t user_length, const char *password,
			      size_t password_length);

/* ---- SASL ------------------------------------------------------------------------------------ */

enum auth_sasl_result {
	AUTH_SASL_OK, /* authenticated: auth_sasl_user */
	AUTH_SASL_CONTINUE, /* the challenge goes to the client */
	AUTH_SASL_REFUSED
};

struct auth_sasl; /* one connection's exchange */

/* Returns the mechanisms, separated by blanks; "" without any. Valid until auth_close. */
const char *auth_sasl_mechanisms(const struct auth *auth);
/*
 * Does one step of an exchange. With a mechanism, which the client has named, the exchange begins anew; with NULL, data
 * is the answer to a challenge. *sasl is made if it is NULL, and is the caller's. *challenge belongs to the session and
 * lives until its next step. May block, on libsasl2's files and helpers (saslauthd). The result is AUTH_SASL_REFUSED
 * also when memory is out.
 */
FS_MUST_CHECK enum auth_sasl_result auth_sasl_step(struct auth *auth, struct auth_sasl **sasl, const char *mechanism,
						   const char *data, size_t length, const char **challenge,
						   size_t *challenge_length);
const char *auth_sasl_user(const struct auth_sasl *sasl); /* "" until AUTH_SASL_OK; valid until the next step */
void auth_sasl_free(struct auth_sasl *sasl); /* NULL is nothing */

#endif
