/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static int privileges_error(char reason[256], const char *what)
{
	snprintf(reason, 256, "%s: %m", what);
	return -1;
}

/* Empties the set of capabilities that an exec could give. Only a process with CAP_SETPCAP can; others don't need it,
   as the daemon never calls exec. */
static void empty_bounding_set(void)
{
	for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0)
			return;
}

int privileges_become(const char *name, uid_t uid, gid_t gid, char reason[256])
{
	if (uid != 0)
		empty_bounding_set();
	if (initgroups(name, gid) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0) {
		snprintf(reason, 256, "can't become user %.100s: %m", name);
		return -1;
	}
	if (uid != 0 && setuid(0) == 0) {
		snprintf(reason, 256, "can't become user %.100s for good: root can be had back", name);
		return -1;
	}
	return 0;
}

/* A service's filter of system calls may forbid the call that gives capabilities up, so that is only done if there are
   any. */
static bool has_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3];
	uint32_t any = 0;

	if (syscall(SYS_capget, &head, now) != 0)
		return true;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		any |= now[i].effective | now[i].permitted | now[i].inheritable;
	return any != 0;
}

int privileges_drop(char reason[256])
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return privileges_error(reason, "can't give up new privileges");
	if (geteuid() == 0 || !has_capabilities())
		return 0;
	/* This clears the ambient capabilities too: they are always among the permitted and the inheritable ones. */
	if (syscall(SYS_capset, &head, none) != 0)
		return privileges_error(reason, "can't give up capabilities");
	return 0;
}
