/* SPDX-License-Identifier: BSD-3-Clause */
/* Every policy, each in a file of its own. A new one is a file, a line here, and one in policies.c. */
#ifndef FS_TOOLS_SIM_POLICIES_H
#define FS_TOOLS_SIM_POLICIES_H

#include "tools/sim/sim.h"

extern const struct sim_policy_ops sim_engine;
extern const struct sim_policy_ops sim_lru, sim_fifo, sim_clock1, sim_clock2, sim_clock3;
extern const struct sim_policy_ops sim_victim, sim_ripq, sim_extstore, sim_s3fifo, sim_slsm, sim_slsm_keys;
extern const struct sim_policy_ops sim_random_p, sim_second_hit, sim_read_or_second_hit, sim_read_once, sim_freq,
	sim_oracle;

#endif
