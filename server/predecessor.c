/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/predecessor.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "server/stop.h"
#include "server/store/daemon_lock.h"

#define MOMENT_MS 20 /* between two looks at the lock */
#define SILENT_US 200000u /* a run that ends right now needs no line */
#define TELL_US 1000000u /* between two messages to the service manager */
#define BESIDE_US 60000000u /* for what a run does before and behind the saving */

bool predecessor_wait(void *context, pid_t holder)
{
	static const struct timespec moment = { .tv_nsec = MOMENT_MS * 1000000 };
	struct predecessor *predecessor = context;
	uint64_t now_us = clk_now_us(clk_boot()), waited_us;
	uint64_t most_us = stop_saving_us(predecessor->conf) + BESIDE_US;
	char text[128], process[DAEMON_LOCK_HOLDER_BYTES];

	if (predecessor->began_us == 0)
		predecessor->began_us = now_us;
	waited_us = now_us - predecessor->began_us;
	daemon_lock_holder(holder, process);
	snprintf(text, sizeof(text), "Starting: %s has to end first, and saves its objects", process);
	if (!predecessor->logged && waited_us >= SILENT_US) {
		predecessor->logged = true;
		log_notice("%s, which serves the same clients, has not ended: the start waits for it, for up to %.0f s",
			   process, (double)most_us / 1e6);
	}
	if (waited_us >= SILENT_US && now_us - predecessor->told_us >= TELL_US) {
		predecessor->told_us = now_us;
		service_stage(predecessor->service, text);
	}
	if (waited_us >= most_us || (predecessor->logged && fault_fires(FAULT_predecessor_hangs)))
		return false;
	(void)nanosleep(&moment, NULL);
	return true;
}
