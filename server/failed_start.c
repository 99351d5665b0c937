/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/failed_start.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/log_file.h"
#include "server/service.h"

/* The errno that says the same as the code; 0: none does. */
static int errno_of(int code)
{
	switch (code) {
	case FS_ESYS:
		return errno;
	case FS_EINVAL:
	case FS_ERANGE:
		return EINVAL;
	case FS_EBUSY:
		return EBUSY;
	case FS_ENOMEM:
		return ENOMEM;
	case FS_EFOREIGN:
		return EEXIST;
	default:
		return 0;
	}
}

void failed_start_notify(const char *reason, int code)
{
	int error = errno_of(code), length = (int)strcspn(reason, "\n");
	char text[512];

	if (error != 0)
		snprintf(text, sizeof(text), "ERRNO=%d\nSTATUS=The start failed: %.*s", error, length, reason);
	else
		snprintf(text, sizeof(text), "STATUS=The start failed: %.*s", length, reason);
	service_tell_early(text);
}

int failed_start(const char *reason, int exit_code, int code)
{
	failed_start_notify(reason, code);
	if (log_to_journal()) {
		log_event(LOG_LEVEL_ERROR, "start_failed", LOG_FIELDS(LOG_NUMBER("EXIT_CODE", exit_code)), "%s",
			  reason);
	} else if (log_file_is_open()) {
		log_file_tell(reason);
		log_error("the start failed: %s", reason);
	} else {
		fprintf(stderr, "%s\n", reason);
	}
	return exit_code;
}
