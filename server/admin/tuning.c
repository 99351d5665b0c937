/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/admin/tuning.h"

#include "conf/conf.h"

struct tuning tuning;

void tuning_init(const struct conf *conf)
{
#define TUNING_BEGIN(type, field) atomic_store(&tuning.field, (type)conf->field);
	TUNING_TABLE(TUNING_BEGIN)
#undef TUNING_BEGIN
}

void tuning_show(struct conf *copy)
{
#define TUNING_SHOW(type, field) copy->field = atomic_load(&tuning.field);
	TUNING_TABLE(TUNING_SHOW)
#undef TUNING_SHOW
}
