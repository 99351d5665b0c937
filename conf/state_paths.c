/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts files with relative names into the state directory, if there is one. */
#include <stdlib.h>
#include <string.h>

#include "conf/conf_internal.h"

#define FOLDERS "STATE_DIRECTORY" /* of systemd.exec(5): absolute paths, separated by colons */
#define PATH_BYTES 4095 /* as many as --flash-path takes */

static int use_environment(struct conf *conf)
{
	const char *folders = getenv(FOLDERS);

	if (conf->state_dir || !folders || *folders != '/')
		return 0;
	conf->state_dir = strndup(folders, strcspn(folders, ":"));
	return conf->state_dir ? 0 : -1;
}

int conf_state_paths(struct conf *conf, FILE *err)
{
	char *path;

	if (use_environment(conf) != 0)
		goto out_of_memory;
	if (conf->journal == CONF_JOURNAL_SYNC && (!conf->state_dir || !conf->flash_path)) {
		conf_tell_option(conf, err, "journal");
		fprintf(err, "sync takes --flash-path and --state-dir\n");
		return CONF_EXIT_VALUE;
	}
	if (!conf->state_dir || !conf->flash_path || *conf->flash_path == '/')
		return 0;
	if (strlen(conf->state_dir) + 1 + strlen(conf->flash_path) > PATH_BYTES) {
		conf_tell_option(conf, err, "flash-path");
		fprintf(err, "together with --state-dir it is longer than %d bytes\n", PATH_BYTES);
		return CONF_EXIT_VALUE;
	}
	if (asprintf(&path, "%s/%s", conf->state_dir, conf->flash_path) < 0)
		goto out_of_memory;
	free(conf->flash_path);
	conf->flash_path = path;
	return 0;

out_of_memory:
	fprintf(err, "%s\n", fs_strerror(FS_ENOMEM));
	return CONF_EXIT_VALUE;
}
