/* SPDX-License-Identifier: BSD-3-Clause */
/* --check-config: loading goes on after a mistake, so that all of them are told. */
#include <string.h>

#include "base/alloc.h"
#include "conf/conf_internal.h"

void conf_faults_begin(struct conf *conf)
{
	conf->faults = mem_must_zalloc(sizeof(*conf->faults));
}

int conf_fault(struct conf *conf, int exit_code)
{
	if (!conf->faults || exit_code == 0)
		return exit_code;
	if (conf->faults->exit_code == 0)
		conf->faults->exit_code = exit_code;
	return 0;
}

static int row_at(size_t offset)
{
	for (int i = 0; i < conf_row_count; i++)
		if (conf_rows[i].kind == CONF_ROW_OPTION && conf_rows[i].option.offset == offset)
			return i;
	return -1;
}

bool conf_is_refused(const struct conf *conf, size_t offset)
{
	int row = row_at(offset);

	return conf->faults && row >= 0 && conf->faults->refused[row];
}

void conf_keep_line(struct conf *conf, int row, int line)
{
	if (conf->faults)
		conf->faults->lines[row] = line;
}

const char *conf_origin(const struct conf *conf, const char *name, char text[CONF_ORIGIN_BYTES])
{
	int row = conf_find_row(name);

	*text = 0;
	if (conf->faults && row >= 0 && conf->faults->lines[row] > 0)
		snprintf(text, CONF_ORIGIN_BYTES, "%s:%d: ", conf->faults->path, conf->faults->lines[row]);
	return text;
}

void conf_tell_option(const struct conf *conf, FILE *err, const char *name)
{
	char origin[CONF_ORIGIN_BYTES];

	conf_origin(conf, name, origin);
	fprintf(err, "%s%s%s: ", origin, *origin ? "" : "--", name);
}

void conf_tell_each(FILE *err, const char *origin, const char *name, const char *why, bool one_line)
{
	fprintf(err, "%s%s%s", origin, name, *name ? ": " : "");
	for (; *why; why++) {
		if (*why == CONF_NEXT_FAULT && why[1])
			fprintf(err, "\n%s%s%s", origin, name, *name ? ": " : "");
		else if (*why != CONF_NEXT_FAULT)
			fputc(*why == '\n' && one_line ? ' ' : *why, err);
	}
	fputc('\n', err);
}
