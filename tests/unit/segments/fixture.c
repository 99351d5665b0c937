/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/segments/fixture.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

static void configure(struct flash *flash, const char *path, uint64_t bytes, uint64_t segment_bytes, unsigned functions)
{
	memset(flash, 0, sizeof(*flash));
	clk_scripted_init(&flash->clock, 1000000);
	flash->config = (struct seg_config){
		.clock = &flash->clock,
		.path = path,
		.flash_bytes = bytes,
		.segment_bytes = segment_bytes,
		.functions = functions,
		.crossings = true,
		.error_budget = 4,
	};
	flash->table = mem_must_zalloc(seg_region_bytes(seg_count_for(bytes, segment_bytes) + 1, segment_bytes, true));
}

int flash_open_on(struct flash *flash, struct ram_device *ram, uint64_t segment_bytes, unsigned functions)
{
	int rc;

	configure(flash, NULL, ram->dev.bytes, segment_bytes, functions);
	flash->ram = ram;
	rc = seg_open_on(&flash->seg, &flash->config, flash->table, &ram->dev);
	if (rc != FS_OK)
		mem_free(flash->table);
	return rc;
}

int flash_open_ram(struct flash *flash, uint32_t segments, uint64_t segment_bytes, unsigned functions, uint8_t *memory)
{
	return flash_open_on(flash, ram_device_create(LAYOUT_SUPER_BYTES + segments * segment_bytes, memory),
			     segment_bytes, functions);
}

int flash_open_file(struct flash *flash, const char *path, uint64_t bytes, uint64_t segment_bytes)
{
	int rc;

	configure(flash, path, bytes, segment_bytes, SEG_MAX_FUNCTIONS);
	rc = seg_open(&flash->seg, &flash->config, flash->table);
	if (rc != FS_OK)
		mem_free(flash->table);
	return rc;
}

void flash_close(struct flash *flash)
{
	seg_close(flash->seg);
	mem_free(flash->table);
}

void object_value(const struct object *object, char *value)
{
	struct rng rng;
	uint64_t bits = 0;

	rng_init(&rng, object->number);
	for (uint32_t i = 0; i < object->value_length; i++) {
		if (i % 8 == 0)
			bits = rng_next(&rng);
		value[i] = (char)(bits >> (i % 8 * 8));
	}
}

void assert_is_object(const struct object *object, const struct seg_record *record)
{
	char *value = mem_alloc(object->value_length + 1);

	object_value(object, value);
	assert_int_equal(record->key_length, object->key_length);
	assert_memory_equal(record->key, object->key, object->key_length);
	assert_int_equal(record->value_length, object->value_length);
	assert_memory_equal(record->value, value, object->value_length);
	assert_int_equal(record->cas, object->number + 1);
	assert_int_equal(record->client_flags, (uint32_t)(object->number * 3));
	assert_int_equal(record->expiry, (uint32_t)(object->number * 5));
	assert_int_equal(record->item_flags, object->number % 16);
	for (unsigned i = 0; i < sizeof(record->features); i++)
		assert_int_equal(record->features[i], (uint8_t)(object->number + i));
	mem_free(value);
}

void batch_make(struct batch *batch, uint64_t first, uint32_t count, uint32_t shortest, uint32_t longest)
{
	struct rng rng;

	memset(batch, 0, sizeof(*batch));
	rng_init(&rng, first * 7919 + count);
	batch->count = count;
	batch->objects = mem_must_zalloc(count * sizeof(*batch->objects) + 1);
	batch->candidates = mem_must_zalloc(count * sizeof(*batch->candidates) + 1);
	batch->value = mem_alloc((uint64_t)longest + 1);
	for (uint32_t i = 0; i < count; i++) {
		struct object *object = &batch->objects[i];

		object->number = first + i;
		object->key_length = (uint8_t)snprintf(object->key, sizeof(object->key), "key-%llu",
						       (unsigned long long)object->number);
		object->value_length = shortest + (uint32_t)rng_below(&rng, longest - shortest + 1);
		object->place = hash64(object->key, object->key_length, 99);
		batch->candidates[i] = (struct seg_candidate){
			.item = object,
			.place = object->place,
			.length = (uint32_t)seg_record_length(object->key_length, object->value_length),
		};
	}
}

void batch_make_extents(struct batch *batch, uint32_t from)
{
	for (uint32_t i = from; i < batch->count; i++)
		batch->candidates[i].extent = 1;
}

void batch_fini(struct batch *batch)
{
	seg_plan_fini(&batch->plan);
	mem_free(batch->objects);
	mem_free(batch->candidates);
	mem_free(batch->value);
}

uint64_t filter_bytes(void *context, uint64_t n)
{
	(void)context;
	return n * 10 / 8 + 1;
}

const struct object *batch_placed(const struct batch *batch, uint32_t n)
{
	return batch->candidates[batch->plan.placed[n].candidate].item;
}

static void hand_out(void *context, uint32_t n, struct seg_record *out)
{
	struct batch *batch = context;
	const struct object *object = batch_placed(batch, n);

	object_value(object, batch->value);
	*out = (struct seg_record){
		.key = object->key,
		.value = batch->value,
		.key_length = object->key_length,
		.value_length = object->value_length,
		.item_flags = (uint8_t)(object->number % 16),
		.client_flags = (uint32_t)(object->number * 3),
		.expiry = (uint32_t)(object->number * 5),
		.cas = object->number + 1,
	};
	for (unsigned i = 0; i < sizeof(out->features); i++)
		out->features[i] = (uint8_t)(object->number + i);
}

static void pace(void *context, uint64_t bytes)
{
	((struct batch *)context)->paced += bytes;
}

const struct seg_writer_ops batch_ops = { .record = hand_out, .pace = pace };

int batch_plan(struct batch *batch, const struct segments *seg, enum seg_placement placement)
{
	return seg_plan_make(seg, placement, batch->candidates, batch->count, filter_bytes, NULL, &batch->plan);
}

int batch_write(struct batch *batch, struct flash *flash, uint32_t *segment)
{
	enum seg_state state;
	uint64_t written;
	uint8_t *filter;
	int rc = seg_next(flash->seg, segment, &state);

	if (rc == FS_OK)
		rc = batch_plan(batch, flash->seg, SEG_PLACE_SWEEP);
	if (rc != FS_OK)
		return rc;
	filter = mem_must_zalloc(filter_bytes(NULL, batch->plan.count));
	memset(filter, 0xf1, filter_bytes(NULL, batch->plan.count));
	rc = seg_write(flash->seg, *segment, &batch->plan, filter, filter_bytes(NULL, batch->plan.count), &batch_ops,
		       batch, &written);
	mem_free(filter);
	if (rc == FS_OK) {
		assert_int_equal(written, flash->config.segment_bytes);
		assert_int_equal(batch->paced, written);
	}
	return rc;
}

uint64_t object_x(const struct segments *seg, const struct object *object)
{
	uint64_t hash = hash64(object->key, object->key_length, seg->super.hash_seed);

	return mix64(hash ^ 0xb10057e0e5a11ba5ull);
}

int batch_write_bins(struct batch *batch, struct flash *flash, uint32_t *segment)
{
	enum seg_state state;
	uint64_t written;
	int rc = seg_next(flash->seg, segment, &state);

	for (uint32_t i = 0; i < batch->count; i++)
		batch->candidates[i].place = object_x(flash->seg, batch->candidates[i].item);
	if (rc == FS_OK)
		rc = seg_plan_bins(flash->seg, batch->candidates, batch->count, &batch->plan);
	if (rc == FS_OK)
		rc = seg_write(flash->seg, *segment, &batch->plan, NULL, 0, &batch_ops, batch, &written);
	return rc;
}

struct hist *durations_since(enum lat latency, const struct hist *earlier)
{
	struct hist *hist = hist_create();

	lat_read(latency, hist);
	if (earlier)
		hist_subtract(hist, earlier);
	return hist;
}
