# SPDX-License-Identifier: BSD-3-Clause
"""Does a daemon wait for its clients? Then it has read what they sent, and all its threads sleep. A daemon that a busy or a
stopped machine holds up doesn't."""
import array
import fcntl
import os
import re
import time

SIOCOUTQ = 0x5411  # bytes that the other end's kernel has not acknowledged (tcp(7))
PAUSE_SECONDS, PAUSES = 0.001, 100

STATUS = re.compile(r"^State:\s+(\S)|^(?:non)?voluntary_ctxt_switches:\s+(\d+)", re.MULTILINE)


def sleeping(pid):
    """{thread: how often it has gone to sleep}, or None if one is awake, stopped or in a call to the disk."""
    found = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/status", encoding="utf-8", errors="replace") as status:
            states, counts = zip(*STATUS.findall(status.read()))
        if "".join(states) != "S":
            return None
        found[task] = sum(int(count) for count in counts if count)
    return found


def has_arrived(connection):
    """Did all that we sent reach the other end's kernel? Data wakes its reader before it is acknowledged."""
    left = array.array("i", [0])
    fcntl.ioctl(connection, SIOCOUTQ, left)
    return left[0] == 0


def rest(processes, connections):
    """Have these processes nothing to do for these TCP connections? Nobody else may send meanwhile. An answer may have come before the
    last of them went to sleep: whoever asks reads once more."""
    for _ in range(PAUSES):
        if all(map(has_arrived, connections)):
            before = list(map(sleeping, processes))
            if None not in before and before == list(map(sleeping, processes)):
                return True
        time.sleep(PAUSE_SECONDS)
    return False
