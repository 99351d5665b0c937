/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figures that memcached lets an operator change while it runs, by "lru", "slabs" and "extstore". They have no meaning
 * here, as there are neither slabs nor LRU lists. The commands answer all the same, and "stats settings" shows what
 * they have set. At first the figures are those of the options.
 *
 * Threads: any; each field is an atomic of its own.
 */
#ifndef FS_SERVER_ADMIN_TUNING_H
#define FS_SERVER_ADMIN_TUNING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct conf;

/* TUNING(type, field): named like the rows of "stats settings". */
#define TUNING_TABLE(TUNING) \
	TUNING(uint32_t, hot_lru_pct) \
	TUNING(uint32_t, warm_lru_pct) \
	TUNING(double, hot_max_factor) \
	TUNING(double, warm_max_factor) \
	TUNING(uint32_t, slab_automove) \
	TUNING(double, slab_automove_ratio) \
	TUNING(double, slab_automove_freeratio) \
	TUNING(uint32_t, slab_automove_window) \
	TUNING(uint32_t, ext_item_size) \
	TUNING(uint32_t, ext_item_age) \
	TUNING(uint32_t, ext_low_ttl) \
	TUNING(uint32_t, ext_recache_rate) \
	TUNING(uint32_t, ext_compact_under) \
	TUNING(uint32_t, ext_drop_under) \
	TUNING(uint32_t, ext_max_sleep) \
	TUNING(double, ext_max_frag) \
	TUNING(bool, ext_drop_unread)

struct tuning {
#define TUNING_FIELD(type, field) _Atomic type field;
	TUNING_TABLE(TUNING_FIELD)
#undef TUNING_FIELD
};

extern struct tuning tuning;

/* Sets the fields of a copy of the options to the values that they have been tuned to. */
void tuning_show(struct conf *copy);
/* Sets all fields from the options, before any thread starts. */
void tuning_init(const struct conf *conf);

#endif
