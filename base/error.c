/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/error.h"

const char *fs_strerror(int code)
{
	switch (code) {
#define FS_ERROR_TEXT(name, number, text) \
	case number: \
		return text;
		FS_ERROR_TABLE(FS_ERROR_TEXT)
#undef FS_ERROR_TEXT
	default:
		return "unknown error code";
	}
}
