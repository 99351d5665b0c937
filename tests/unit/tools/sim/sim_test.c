/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_test.h"

#include <ctype.h>

struct sim_space objects_space(uint64_t dram, uint64_t flash)
{
	return (struct sim_space){ .dram_bytes = dram, .flash_bytes = flash, .segment_bytes = 1, .objects_only = true };
}

static const char *whole, *script; /* the script, and what is left of it */

static uint64_t next_get(void *context, uint32_t object)
{
	(void)context;
	for (unsigned i = 1; script[i]; i++)
		if (tolower(script[i]) == (int)('a' + object))
			return islower(script[i]) && script[i - 1] != '-' ? (uint64_t)(script - whole) + i : UINT64_MAX;
	return UINT64_MAX;
}

struct sim_figures play_script(const char *text, const struct sim_space *space, double clwa, const char *requests,
			       uint32_t value_bytes, const char *hits)
{
	struct sim_config config = { .space = *space, .clwa = clwa, .objects = LETTERS, .apps = 1, .seed = 1 };
	const struct sim_policy_ops *ops;
	struct sim_policy *policy;
	struct sim_figures figures;
	char reason[256] = "", got[SCRIPT_MOST] = "";
	unsigned gets = 0;

	assert_true(strlen(requests) < SCRIPT_MOST);
	assert_int_equal(sim_policy_parse(text, &ops, &config.reinsert, &config.parameter, reason), FS_OK);
	if (ops->needs_future)
		config.next_get = next_get;
	assert_int_equal(ops->create(&policy, &config, reason), FS_OK);
	whole = requests;
	for (script = requests; *script; script++) {
		bool removes = *script == '-';
		uint64_t number = (uint64_t)(script - requests);
		struct sim_access access = {
			.key_bytes = 1, .value_bytes = value_bytes, .time_us = number * 1000000, .number = number
		};

		script += removes;
		access.object = (uint32_t)(tolower(*script) - 'a');
		if (removes) {
			ops->remove(policy, &access);
		} else if (isupper(*script)) {
			ops->set(policy, &access, false);
		} else {
			bool hit = ops->get(policy, &access);

			got[gets++] = hit ? '+' : '.';
			if (!hit)
				ops->set(policy, &access, true);
		}
	}
	if (hits)
		assert_string_equal(got, hits);
	ops->figures(policy, &figures);
	ops->destroy(policy);
	return figures;
}

struct sim_figures play_objects(const char *policy, uint64_t dram, uint64_t flash, const char *requests,
				const char *hits)
{
	struct sim_space space = objects_space(dram, flash);

	return play_script(policy, &space, 0, requests, 1, hits);
}
