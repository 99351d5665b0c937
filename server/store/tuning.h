/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that may change while the store runs. A part of store.h, which has the rest of the contract. Any thread. */
#ifndef FS_STORE_TUNING_H
#define FS_STORE_TUNING_H

#include <stdint.h>

#include "classifier/classifier.h"

struct store;

/*
 * Values of struct store_config that may change while the store runs. Each is an atomic of its own, and cleaner and
 * workers take a new value within a turn. hot_fraction and flash_write_limit act from the cleaner's next step on; a
 * lower limit also cuts the bytes that were saved up under a higher one. read_timeout_ms holds for reads under way too.
 * promote_miss_cost acts when the share of copies moves next. admission: see clf_set_admission. Without flash the values
 * are kept and have no effect. Concurrent calls may interleave field by field.
 */
struct store_tuning {
	double hot_fraction;
	uint64_t flash_write_limit;
	double flash_write_dwpd;
	double flash_write_ratio;
	double promote_miss_cost;
	uint32_t read_timeout_ms;
	enum clf_admission admission;
};
/* Fills out with the present values. */
void store_get_tuning(const struct store *store, struct store_tuning *out);
/* Sets all seven; their ranges are those of struct store_config and are not checked. */
void store_set_tuning(struct store *store, const struct store_tuning *tuning);

#endif
