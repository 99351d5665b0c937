/* SPDX-License-Identifier: BSD-3-Clause */
/* struct conf: its defaults, single values and notes. Loads it from defaults, file and command line. */
#include "conf/conf.h"

#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "conf/conf_internal.h"

/* --- notes and single values ----------------------------------------------------------------- */

void conf_note(struct conf *conf, enum log_level level, const char *format, ...)
{
	struct conf_note **tail = &conf->notes, *note;
	char text[CONF_WHY_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	note = mem_must_zalloc(sizeof(*note) + strlen(text) + 1);
	note->level = level;
	memcpy(note->text, text, strlen(text) + 1);
	while (*tail)
		tail = &(*tail)->next;
	*tail = note;
}

static unsigned release_of(const char *version)
{
	unsigned number[3];

	/* sscanf would take signs and blanks. */
	if (strspn(version, "0123456789.") < sizeof("1.6.0") - 1 ||
	    sscanf(version, "%9u.%9u.%9u", &number[0], &number[1], &number[2]) != 3)
		return 0;
	if (number[0] != 1 || number[1] != 6)
		return number[0] > 1 || (number[0] == 1 && number[1] > 6) ? UINT_MAX : 0;
	return number[2];
}

void conf_init(struct conf *conf)
{
	memset(conf, 0, sizeof(*conf));
	for (int i = 0; i < conf_row_count; i++) {
		const struct conf_option *option = &conf_rows[i].option;

		if (conf_rows[i].kind == CONF_ROW_OPTION && option->default_text)
			must(conf_value_set(conf, option, option->default_text, false) == FS_OK);
	}
	conf->compat_release = release_of(conf->compat_version);
	conf_extended_init(conf);
}

void conf_free(struct conf *conf)
{
	for (int i = 0; i < conf_row_count; i++) {
		const struct conf_option *option = &conf_rows[i].option;

		if (conf_rows[i].kind == CONF_ROW_OPTION && option->type == CONF_TYPE_STRING) {
			char **field = (char **)((char *)conf + option->offset);

			free(*field);
			*field = NULL;
		}
	}
	conf_extended_free(conf);
	if (conf->faults)
		free(conf->faults->path);
	mem_free(conf->faults);
	conf->faults = NULL;
	free(conf->config_path);
	conf->config_path = NULL;
	while (conf->notes) {
		struct conf_note *note = conf->notes;

		conf->notes = note->next;
		mem_free(note);
	}
}

int conf_row_set(struct conf *conf, const struct conf_row *row, const char *value, bool append, char *why,
		 size_t why_bytes)
{
	char accepted[CONF_ACCEPTED_BYTES], shown[CONF_SHOWN_BYTES];
	int rc;

	if (row->kind == CONF_ROW_ACTION) {
		if (!(row->option.flags & CONF_IN_FILE)) {
			snprintf(why, why_bytes, "it belongs on the command line");
			return FS_EINVAL;
		}
		return conf_extended(conf, value, why, why_bytes);
	}
	rc = conf_value_set(conf, &row->option, value, append);
	if (rc == FS_ENOMEM)
		snprintf(why, why_bytes, "%s", fs_strerror(rc));
	else if (rc != FS_OK)
		snprintf(why, why_bytes, "\"%s\" is not %s", conf_shown(value, shown),
			 conf_accepted(&row->option, accepted));
	else if (row->option.offset == offsetof(struct conf, detail_delimiter))
		conf->detail_enabled = true; /* giving the delimiter turns it on, as in memcached */
	else if (row->option.offset == offsetof(struct conf, binding_protocol))
		conf->protocol_given = true;
	else if (row->option.offset == offsetof(struct conf, port))
		conf->port_given = true;
	else if (row->option.offset == offsetof(struct conf, flash_path))
		conf->flash_by_ext_path = false;
	else if (row->option.offset == offsetof(struct conf, compat_version))
		conf->compat_release = release_of(conf->compat_version);
	return rc;
}

int conf_set(struct conf *conf, const char *name, const char *value, char *why, size_t why_bytes)
{
	int row = conf_find_row(name);
	char shown[CONF_SHOWN_BYTES];

	if (row < 0) {
		snprintf(why, why_bytes, "there is no option \"%s\"", conf_shown(name, shown));
		return FS_ENOTFOUND;
	}
	return conf_row_set(conf, &conf_rows[row], value, true, why, why_bytes);
}

void conf_describe(const struct conf *conf, conf_each_fn *each, void *context)
{
	for (int i = 0; i < conf_row_count; i++) {
		char text[CONF_VALUE_BYTES];

		if (conf_rows[i].kind == CONF_ROW_OPTION)
			each(context, &conf_rows[i].option, conf_value_text(conf, &conf_rows[i].option, text));
	}
}

/* --- loading --------------------------------------------------------------------------------- */

void conf_log_notes(const struct conf *conf)
{
	for (const struct conf_note *note = conf->notes; note; note = note->next)
		log_line(note->level, "%s", note->text);
}

enum log_level conf_log_level(const struct conf *conf)
{
	return conf->verbose >= 2 ? LOG_LEVEL_DEBUG : conf->verbose == 1 ? LOG_LEVEL_INFO : LOG_LEVEL_NOTICE;
}

char *conf_absolute(const char *path)
{
	char *folder = *path == '/' ? NULL : getcwd(NULL, 0), *result;

	if (asprintf(&result, "%s%s%s", folder ? folder : "", folder ? "/" : "", path) < 0)
		result = NULL;
	must(result);
	free(folder);
	return result;
}

int conf_read(struct conf *conf, int argc, char **argv, const char *config_path, FILE *out, FILE *err)
{
	struct conf_walk looking = { .origin = "", .out = out, .err = err };
	struct conf_walk applying = { .applying = true, .origin = "", .out = out, .err = err };
	bool in_file;

	conf_init(conf);
	if (conf_walk_has(argc, argv, "check-config"))
		conf_faults_begin(conf);
	if (conf_walk(conf, argc, argv, &looking) != FS_OK)
		return CONF_EXIT;
	if (conf->faults && looking.file) {
		conf->faults->path = strdup(looking.file);
		must(conf->faults->path);
	}
	if (looking.file) {
		conf->config_path = conf_absolute(config_path ? config_path : looking.file);
		conf->exit_code =
			conf_fault(conf, conf_load_file(conf, config_path ? config_path : looking.file, argv[0], err));
		if (conf->exit_code)
			return CONF_EXIT;
	}
	in_file = conf->ext_path_given; /* the command line's ext_path replaces the file's */
	conf->ext_path_given = false;
	if (conf_walk(conf, argc, argv, &applying) != FS_OK)
		return CONF_EXIT;
	conf->ext_path_given = conf->ext_path_given || in_file;
	conf->exit_code = conf_check(conf, err);
	if (conf->exit_code == 0)
		conf->exit_code = conf_fault(conf, conf_state_paths(conf, err));
	if (conf->faults)
		conf->exit_code = conf->faults->exit_code;
	return conf->exit_code && !conf->faults ? CONF_EXIT : FS_OK;
}

int conf_load(struct conf *conf, int argc, char **argv, FILE *out, FILE *err)
{
	int result = conf_read(conf, argc, argv, NULL, out, err);

	if (result == FS_OK)
		log_set_level(conf_log_level(conf));
	return result;
}
