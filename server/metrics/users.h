/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The users of the metrics endpoint (--metrics-auth-file), who log in by HTTP's basic authentication.
 *
 * The file has a line for each user, "name:hash", with a bcrypt hash of the password, as "htpasswd -B" writes it and as
 * Prometheus' own exporters have it in basic_auth_users. Empty lines, and those that begin with "#", are passed over. A name has
 * 1 to 255 bytes.
 *
 * bcrypt is slow on purpose: with a cost of 10 a check takes some 50 ms of CPU, twice that for each step of the cost. So
 *
 *   - what was found right or wrong is remembered as a digest, by a key that never leaves the process: who scrapes again and
 *     again is checked once, and so is a client with an old password
 *   - checks take a quarter of a CPU in the long run, all clients together, with a second of time in hand for those that come
 *     at once; and an address whose password was wrong has its next check a second later. Until then it is told to come
 *     again (an IPv6 address counts by its first 64 bits)
 *   - the cost is at most USERS_COST_MOST: a check holds up the thread that serves
 *
 * A name that is unknown costs a check too, so that the time doesn't tell which names exist. No password is kept.
 *
 * Threads: users_check belongs to the thread that serves; open and close to the main thread; users_reload to any. Blocks on the
 * file. Errors: codes of base/error.h, with a reason that begins with the option and contains no secret.
 */
#ifndef FS_SERVER_METRICS_USERS_H
#define FS_SERVER_METRICS_USERS_H

#include <stdint.h>
#include <sys/socket.h>

#include "base/error.h"

#define USERS_COST_LEAST 4u /* of bcrypt */
#define USERS_COST_MOST 14u /* about a second */

struct clk;
struct users;

/* What comes of a check. */
enum users_check { USERS_RIGHT, USERS_WRONG, USERS_LATER };

/* Reads the file at path, which may be relative. FS_OK: *out is the caller's. FS_EINVAL: the file can't be read, or has a bad
   line, whose number is in the reason. FS_ESYS: the system gives no random bytes. clock bounds the checks; it must outlive
   the users. */
FS_MUST_CHECK int users_open(struct users **out, const char *path, const struct clk *clock, char reason[256]);
void users_close(struct users *users); /* NULL is nothing */
/* Reads the file again. FS_OK, or a code of users_open with the reason: the old users stay then. */
FS_MUST_CHECK int users_reload(struct users *users, char reason[256]);

/* May this user with this password read the figures? from is the client's address. Takes a leaf lock for as long as bcrypt
   runs. */
FS_MUST_CHECK enum users_check users_check(struct users *users, const char *name, const char *password,
					   const struct sockaddr *from);
/* Returns how many times bcrypt has run. */
uint64_t users_bcrypt_runs(const struct users *users);

#endif
