/* SPDX-License-Identifier: BSD-3-Clause */
/* Creation, partitions and figures. */
#include "tests/unit/flashindex/frugal/world.h"

static void configurations_without_sense_are_refused(void **state)
{
	struct world w = { .config = { 0 } };
	struct frugal *frugal;

	(void)state;
	world_open(&w);
	for (unsigned n = 0; n < 6; n++) {
		struct frugal_config config = w.config;

		switch (n) {
		case 0:
			config.segments = 0;
			break;
		case 1:
			config.segments = FRUGAL_SEGMENTS_MOST + 1;
			break;
		case 2:
			config.partitions = 0;
			break;
		case 3:
			config.partitions = frugal_partitions_most(&config) + 1;
			break;
		case 4:
			config.objects = 0;
			break;
		default:
			config.share = 0;
		}
		assert_int_equal(frugal_create(&frugal, &config, w.region), FS_EINVAL);
		assert_null(frugal);
	}
	frugal_destroy(NULL);
	world_close(&w);
}

static void without_memory_there_is_no_index(void **state)
{
	struct frugal_config config = { .segments = 4,
					.segment_bytes = 65536,
					.partitions = 2,
					.objects = 100,
					.memory_most = 1 << 20,
					.share = 1 };
	uint64_t most[REGION_AREAS] = { [REGION_FRUGAL] = frugal_region_most(&config) };
	struct region *region;
	struct frugal *frugal;

	(void)state;
	if (!HAVE_FAULTS)
		skip();
	assert_int_equal(region_create(&region, most), FS_OK);
	/* The index itself, four arrays with a value for each segment, the prefilter, and two views. */
	for (unsigned n = 0; n < 8; n++) {
		fault_arm(FAULT_memory_alloc, FAULT_AFTER, n);
		assert_int_equal(frugal_create(&frugal, &config, region), FS_ENOMEM);
		assert_null(frugal);
		fault_disarm_all();
		/* What was committed is given back with the region's area. */
		region_decommit(region, REGION_FRUGAL);
	}
	fault_arm(FAULT_memory_alloc, FAULT_AFTER, 8);
	assert_int_equal(frugal_create(&frugal, &config, region), FS_OK);
	fault_disarm_all();
	frugal_destroy(frugal);
	region_destroy(region);
}

static void partitions_are_ranges_in_order(void **state)
{
	struct world w = { .config = { .partitions = 1000 } };
	uint32_t count[1000] = { 0 }, before = 0;

	(void)state;
	world_open(&w);
	assert_int_equal(frugal_partitions(w.frugal), 1000);
	assert_int_equal(frugal_partition_of(w.frugal, 0), 0);
	assert_int_equal(frugal_partition_of(w.frugal, UINT64_MAX), 999);
	for (uint64_t i = 0; i < 100000; i++) {
		uint32_t partition = frugal_partition_of(w.frugal, i * (UINT64_MAX / 100000));

		assert_true(partition >= before);
		before = partition;
		count[partition]++;
	}
	for (uint32_t p = 0; p < 1000; p++)
		assert_in_range(count[p], 99, 101);
	/* The table of kills has enough bits of a key for its partition. */
	for (uint32_t k = 0; k < WORLD_KEYS; k++)
		assert_int_equal(frugal_partition_of(w.frugal, entry_x(w.key[k].key.x >> 36 << 36)),
				 w.key[k].key.partition);
	world_close(&w);
}

static void figures_are_those_of_open_segments(void **state)
{
	struct world w = { .config = { .share = 0.25 } };
	struct frugal_status status;
	uint64_t records = 0, bytes = 0;

	(void)state;
	world_open(&w);
	frugal_get_status(w.frugal, &status);
	assert_int_equal(status.objects + status.segments + status.bundles + status.kills, 0);
	assert_true(status.prefilter_bytes > 0 && status.kill_bytes > 0);
	for (unsigned n = 0; n < 3; n++) {
		for (uint32_t k = n * 100; k < n * 100 + 50; k++)
			world_set(&w, k);
		(void)world_write(&w, 1, NULL);
	}
	for (uint32_t s = 0; s < WORLD_SEGMENTS; s++)
		for (uint32_t k = 0; w.segment[s].has && k < WORLD_KEYS; k++)
			records += w.segment[s].has[k];
	frugal_get_status(w.frugal, &status);
	assert_int_equal(status.segments, 3);
	assert_int_equal(status.objects, records);
	assert_int_equal(status.bytes, records * 300);
	for (uint32_t s = 0; s < w.config.segments; s++)
		bytes += frugal_segment_bytes(w.frugal, s);
	assert_int_equal(bytes, status.bytes);
	assert_int_equal(status.columns_in_memory, 3);
	assert_int_equal(status.bundle_bytes + status.prefilter_bytes + status.kill_bytes + status.other_bytes,
			 frugal_memory(w.frugal));
	world_merge(&w, 7, 0, true);
	frugal_get_status(w.frugal, &status);
	assert_int_equal(status.chain_segments, 1);
	assert_int_equal(status.columns_in_chain, 3);
	world_reclaim(&w, 0);
	frugal_get_status(w.frugal, &status);
	assert_true(status.objects < records);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(configurations_without_sense_are_refused),
		cmocka_unit_test(without_memory_there_is_no_index),
		cmocka_unit_test(partitions_are_ranges_in_order),
		cmocka_unit_test(figures_are_those_of_open_segments),
	};

	return cmocka_run_group_tests_name("frugal", tests, NULL, NULL);
}
