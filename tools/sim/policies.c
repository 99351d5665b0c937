/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/sim/policies.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sim_policy_ops *const sim_policies[] = {
	&sim_engine,    &sim_lru,        &sim_fifo,
	&sim_clock1,    &sim_clock2,     &sim_clock3,
	&sim_victim,    &sim_ripq,       &sim_extstore,
	&sim_s3fifo,    &sim_slsm,       &sim_slsm_keys,
	&sim_random_p,  &sim_second_hit, &sim_read_or_second_hit,
	&sim_read_once, &sim_freq,       &sim_oracle,
	NULL,
};

static const struct sim_policy_ops *find(const char *name, size_t length)
{
	for (unsigned i = 0; sim_policies[i]; i++)
		if (strlen(sim_policies[i]->name) == length && memcmp(sim_policies[i]->name, name, length) == 0)
			return sim_policies[i];
	return NULL;
}

static int parse_parameter(const char *text, const struct sim_policy_ops *policy, double *parameter, char reason[256])
{
	char *end;

	if (!policy->parameter) {
		snprintf(reason, 256, "%s has no parameter \"%s\"", policy->name, text);
		return FS_EINVAL;
	}
	*parameter = strtod(text, &end);
	if (!*text || *end || !(*parameter >= policy->parameter_low && *parameter <= policy->parameter_high)) {
		snprintf(reason, 256, "%s: \"%s\" is no number from %g to %g (%s)", policy->name, text,
			 policy->parameter_low, policy->parameter_high, policy->parameter);
		return FS_EINVAL;
	}
	return FS_OK;
}

int sim_policy_parse(const char *text, const struct sim_policy_ops **policy, bool *reinsert, double *parameter,
		     char reason[256])
{
	size_t length = strcspn(text, ":");
	const char *rest = text + length;

	*policy = find(text, length);
	*reinsert = false;
	if (!*policy) {
		snprintf(reason, 256, "there is no policy \"%.*s\"", (int)(length < 64 ? length : 64), text);
		return FS_EINVAL;
	}
	*parameter = (*policy)->parameter_default;
	if (strncmp(rest, ":reinsert", 9) == 0 && (rest[9] == '\0' || rest[9] == ':')) {
		if (!(*policy)->reinserts) {
			snprintf(reason, 256, "%s has no form with \":reinsert\"", (*policy)->name);
			return FS_EINVAL;
		}
		*reinsert = true;
		rest += 9;
	}
	return *rest ? parse_parameter(rest + 1, *policy, parameter, reason) : FS_OK;
}
