/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --check-config: would the store open with these options?
 *
 * Nothing is changed, made or locked, on disk or in the folder of the region, as a daemon may be running or may have been killed:
 * flash path and region are only read, and the store is opened on a device in memory, whose pages take no memory until they
 * are written. Whether the region's folder has room enough is not asked. With more than 1 GiB of memory_bytes it is not opened, as that would take a
 * part of them: then sizes are checked one against the other, but not whether all parts fit.
 *
 * Threads: one, before the process has others. Blocks on the files.
 */
#ifndef FS_SERVER_STORE_CHECK_H
#define FS_SERVER_STORE_CHECK_H

#include "base/error.h"

struct store_config;
struct store_models;

/* FS_OK, or the code of store_open with its reason. */
FS_MUST_CHECK int store_check(const struct store_config *config, char reason[256]);
/* FS_OK, or the code of store_open_models for the given model with its reason. */
FS_MUST_CHECK int store_check_model(const struct store_config *config, const struct store_models *models,
				    char reason[256]);

#endif
