/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of server/metrics share: the answer to a scrape, as bytes. */
#ifndef FS_SERVER_METRICS_METRICS_INTERNAL_H
#define FS_SERVER_METRICS_METRICS_INTERNAL_H

#include <stddef.h>

#include "base/error.h"

#ifdef __cplusplus
extern "C" {
#endif

struct server;

/* Returns all figures in Prometheus' text format (version 0.0.4), of *length bytes. The caller frees them. NULL: memory
   is out. Any thread. */
FS_MUST_CHECK char *metrics_text(const struct server *server, size_t *length);

#ifdef __cplusplus
}
#endif

#endif
