/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/check_config.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/log.h"
#include "base/log_file.h"
#include "conf/conf.h"
#include "server/auth/auth.h"
#include "server/metrics/metrics.h"
#include "server/net/net.h"
#include "server/privileges.h"
#include "server/store/check.h"
#include "server/store/store.h"

struct check {
	const struct conf *conf;
	int exit_code; /* of the first fault; 0: none */
};

/* option is its long name, or NULL where the reason begins with it, or names several. */
static void tell_config_fault(struct check *check, const char *option, int exit_code, const char *reason)
{
	char origin[CONF_ORIGIN_BYTES] = "";
	const char *dashes = option ? "--" : "", *colon = option ? ": " : "";
	const char *bare = reason + strspn(reason, "-");
	char named[32] = "";

	if (check->exit_code == 0)
		check->exit_code = exit_code;
	if (option || sscanf(bare, "%31[a-z-]", named) == 1)
		conf_origin(check->conf, option ? option : named, origin);
	if (*origin) {
		dashes = "";
		reason = option ? reason : bare;
	}
	if (log_to_journal())
		log_error("%s%s%s%s%s", origin, dashes, option ? option : "", colon, reason);
	else
		fprintf(stderr, "%s%s%s%s%s\n", origin, dashes, option ? option : "", colon, reason);
}

static void tell_net_fault(void *context, const char *option, int code, const char *reason)
{
	tell_config_fault(context, option, code == FS_ERANGE ? EX_USAGE : EX_OSERR, reason);
}

/* The flash is opened before the user is changed, and read as that user by a later start: both must find it good. */
static void check_flash(struct check *check, const struct store_config *store)
{
	char reason[256] = "";
	int code = store_check(store, reason);

	if (code != FS_OK)
		tell_config_fault(check, NULL, code == FS_EINVAL || code == FS_ERANGE ? EX_USAGE : EX_OSERR, reason);
}

static void check_user(struct check *check)
{
	const char *name = check->conf->user;
	const struct passwd *user;
	char reason[256] = "";

	if (geteuid() != 0 || !name)
		return;
	user = getpwnam(name);
	if (!user) {
		snprintf(reason, sizeof(reason), "can't find the user %.200s to switch to", name);
		tell_config_fault(check, "user", EX_NOUSER, reason);
	} else if (privileges_become(name, user->pw_uid, user->pw_gid, reason) != 0) {
		tell_config_fault(check, "user", EX_OSERR, reason);
	}
}

static void check_log_file(struct check *check)
{
	char reason[256] = "";

	if (check->conf->log_file && log_file_check(check->conf->log_file, reason) != FS_OK)
		tell_config_fault(check, "log-file", EX_OSERR, reason + strlen("--log-file: "));
}

/* A start goes on without it, so that it is no fault: nothing is kept over a stop. */
static void check_state_dir(const struct check *check)
{
	const char *folder = check->conf->state_dir;
	char origin[CONF_ORIGIN_BYTES];

	if (folder && faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) != 0)
		log_warn("%s--state-dir: %s: %m: nothing can be kept there over a stop",
			 conf_origin(check->conf, "state-dir", origin), folder);
}

static void check_model(struct check *check, const struct store_config *store)
{
	const struct store_models models = { .given = check->conf->model, .pinned = check->conf->model_pinned };
	char reason[256] = "";
	int code = store_check_model(store, &models, reason);

	if (code != FS_OK)
		tell_config_fault(check, "model", code == FS_EINVAL ? EX_USAGE : EX_OSERR,
				  *reason ? reason : fs_strerror(code));
}

static void tell_metrics_fault(void *context, const char *reason)
{
	tell_config_fault(context, NULL, EX_USAGE, reason);
}

static void check_users(struct check *check)
{
	char reason[256] = "";
	struct auth *auth;

	if (auth_open(&auth, check->conf, reason) != FS_OK)
		tell_config_fault(check, check->conf->auth_file ? "auth-file" : "enable-sasl", EXIT_FAILURE, reason);
	else
		auth_close(auth);
}

int check_config(const struct conf *conf, const struct store_config *store)
{
	struct check check = { conf, conf->exit_code };

	conf_log_notes(conf);
	log_set_level(LOG_LEVEL_WARN); /* opening a store has lines about its sizes */
	net_check(conf, tell_net_fault, &check);
	check_flash(&check, store);
	check_user(&check);
	check_log_file(&check);
	check_state_dir(&check);
	net_warn_renewal(conf);
	check_model(&check, store);
	check_users(&check);
	metrics_check(conf, tell_metrics_fault, &check);
	return check.exit_code;
}
