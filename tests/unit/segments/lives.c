/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/segments/lives.h"

#include <string.h>

struct life live_once(uint8_t *memory, uint64_t cas_count)
{
	struct flash flash;
	struct seg_info info;
	struct life life = { .epoch = 0 };
	uint64_t end;

	assert_int_equal(flash_open_ram(&flash, 2, LIFE_SEGMENT, 16, memory), FS_OK);
	seg_get_info(flash.seg, &info);
	memcpy(life.uuid, info.uuid, sizeof(life.uuid));
	memcpy(life.secret, flash.seg->super.secret, sizeof(life.secret));
	life.hash_seed = info.hash_seed;
	life.epoch = flash.seg->super.attach_epoch;
	life.sequence = flash.seg->next_sequence;
	assert_int_equal(seg_reserve_cas(flash.seg, cas_count, &life.first_cas, &end), FS_OK);
	assert_int_equal(end - life.first_cas, cas_count);
	flash_close(&flash);
	return life;
}

bool same_flash(const struct life *a, const struct life *b)
{
	return memcmp(a->uuid, b->uuid, sizeof(a->uuid)) == 0;
}
