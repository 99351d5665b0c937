/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SASL by libsasl2, as an application called "memcached". /etc/sasl/memcached.conf or /etc/sasl2/memcached.conf names
 * the mechanisms and the store of passwords, unless the environment's SASL_CONF_PATH names another folder.
 */
#include "server/auth/auth_internal.h"

#include <pthread.h>
#include <sasl/sasl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/log.h"

#define APPLICATION "memcached"
#define USER_MAX 256

struct auth_sasl {
	sasl_conn_t *conn;
	bool started; /* libsasl2 has accepted a mechanism */
	char user[USER_MAX];
};

static char hostname[256]; /* the realm of user names without one; set once, before other threads start */

/* ---- what libsasl2 calls --------------------------------------------------------------------- */

static void *mutex_new(void)
{
	pthread_mutex_t *mutex = mem_alloc(sizeof(*mutex));

	if (mutex && pthread_mutex_init(mutex, NULL) != 0) {
		mem_free(mutex);
		mutex = NULL;
	}
	return mutex;
}

static int mutex_lock(void *mutex)
{
	return pthread_mutex_lock(mutex) == 0 ? SASL_OK : SASL_FAIL;
}

static int mutex_unlock(void *mutex)
{
	return pthread_mutex_unlock(mutex) == 0 ? SASL_OK : SASL_FAIL;
}

static void mutex_free(void *mutex)
{
	pthread_mutex_destroy(mutex);
	mem_free(mutex);
}

/* Levels above SASL_LOG_DEBUG are traces, which may contain secrets. */
static int on_log(void *context, int level, const char *text)
{
	(void)context;
	if (level == SASL_LOG_NONE || level > SASL_LOG_DEBUG || !text)
		return SASL_OK;
	if (level == SASL_LOG_ERR)
		log_limited(LOG_LEVEL_WARN, "SASL: %s", text);
	else
		log_debug("SASL: %s", text);
	return SASL_OK;
}

/* ---- start and end --------------------------------------------------------------------------- */

static void choose_folder(void)
{
	char folder[] = "/etc/sasl";

	if (getenv("SASL_CONF_PATH"))
		return; /* libsasl2 reads the variable itself */
	if (access("/etc/sasl/" APPLICATION ".conf", R_OK) == 0)
		sasl_set_path(SASL_PATH_TYPE_CONFIG, folder);
}

static sasl_conn_t *new_conn(void)
{
	sasl_conn_t *conn = NULL;

	if (sasl_server_new(APPLICATION, hostname, NULL, NULL, NULL, NULL, 0, &conn) != SASL_OK)
		return NULL;
	return conn;
}

static int find_mechanisms(struct auth *auth)
{
	sasl_conn_t *conn = new_conn();
	const char *list = NULL;
	unsigned length = 0;

	if (!conn)
		return FS_ENOMEM;
	if (sasl_listmech(conn, NULL, "", " ", "", &list, &length, NULL) != SASL_OK)
		length = 0;
	auth->mechanisms = mem_zalloc(length + 1);
	if (auth->mechanisms && length > 0)
		memcpy(auth->mechanisms, list, length);
	sasl_dispose(&conn);
	return auth->mechanisms ? FS_OK : FS_ENOMEM;
}

int auth_sasl_open(struct auth *auth, char reason[256])
{
	static sasl_callback_t callbacks[] = {
		{ SASL_CB_LOG, (int (*)(void))(void (*)(void))on_log, NULL },
		{ SASL_CB_LIST_END, NULL, NULL },
	};
	int code;

	must(!auth->sasl && !auth->mechanisms); /* libsasl2 is started once in a process */
	if (gethostname(hostname, sizeof(hostname) - 1) != 0)
		hostname[0] = 0;
	sasl_set_mutex(mutex_new, mutex_lock, mutex_unlock, mutex_free);
	choose_folder();
	code = sasl_server_init(callbacks, APPLICATION);
	if (code != SASL_OK) {
		snprintf(reason, 256, "Error initializing sasl: %s", sasl_errstring(code, NULL, NULL));
		return FS_ESYS;
	}
	auth->sasl = true;
	code = find_mechanisms(auth);
	if (code != FS_OK)
		snprintf(reason, 256, "SASL: out of memory");
	else if (!*auth->mechanisms)
		log_warn("SASL: no mechanism is offered, so nobody can log in");
	return code;
}

void auth_sasl_close(struct auth *auth)
{
	must(auth->sasl);
	mem_free(auth->mechanisms);
	sasl_server_done();
}

const char *auth_sasl_mechanisms(const struct auth *auth)
{
	return auth->mechanisms;
}

/* ---- an exchange ----------------------------------------------------------------------------- */

static struct auth_sasl *new_session(void)
{
	struct auth_sasl *sasl = mem_zalloc(sizeof(*sasl));

	if (!sasl)
		return NULL;
	sasl->conn = new_conn();
	if (sasl->conn)
		return sasl;
	mem_free(sasl);
	return NULL;
}

static bool note_user(struct auth_sasl *sasl)
{
	const void *user = NULL;

	if (sasl_getprop(sasl->conn, SASL_USERNAME, &user) != SASL_OK || !user)
		return false;
	snprintf(sasl->user, sizeof(sasl->user), "%s", (const char *)user);
	return true;
}

/* An exchange that has begun is never reused: libsasl2 would keep the state of its first mechanism. */
static bool begin_anew(struct auth_sasl **sasl)
{
	auth_sasl_free(*sasl);
	*sasl = new_session();
	return *sasl != NULL;
}

enum auth_sasl_result auth_sasl_step(struct auth *auth, struct auth_sasl **sasl, const char *mechanism,
				     const char *data, size_t length, const char **challenge, size_t *challenge_length)
{
	unsigned bytes = 0;
	int code;

	must(auth->sasl);
	*challenge = NULL;
	*challenge_length = 0;
	if (mechanism && !begin_anew(sasl))
		return AUTH_SASL_REFUSED;
	if (!mechanism && (!*sasl || !(*sasl)->started))
		return AUTH_SASL_REFUSED;
	must(!*(*sasl)->user); /* the step that finds the user ends the exchange: no further one comes */
	if (mechanism)
		code = sasl_server_start((*sasl)->conn, mechanism, length > 0 ? data : NULL, (unsigned)length,
					 challenge, &bytes);
	else
		code = sasl_server_step((*sasl)->conn, data, (unsigned)length, challenge, &bytes);
	*challenge_length = *challenge ? bytes : 0;
	(*sasl)->started = code == SASL_CONTINUE;
	if (code == SASL_CONTINUE)
		return AUTH_SASL_CONTINUE;
	return code == SASL_OK && note_user(*sasl) ? AUTH_SASL_OK : AUTH_SASL_REFUSED;
}

const char *auth_sasl_user(const struct auth_sasl *sasl)
{
	return sasl->user;
}

void auth_sasl_free(struct auth_sasl *sasl)
{
	if (!sasl)
		return;
	sasl_dispose(&sasl->conn);
	mem_free(sasl);
}
