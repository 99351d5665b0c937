# SPDX-License-Identifier: BSD-3-Clause
"""Says of the time in which a step ran whether the machine was broken: a full disk, processes that the kernel killed for memory.

It looks at the machine, not at what tests print: a test that fills a disk of its own, as some do, breaks nothing.
"""
import os
import tempfile
import threading

SPACE_LEAST = 64 << 20  # bytes; with less than this free, a test's file may have found no space
FILES_LEAST = 100
LOOK_SECONDS = 0.2


def folders():
    """Where builds and tests write."""
    return sorted({os.getcwd(), tempfile.gettempdir()})


def out_of_space():
    """Which folder has no space now, or None."""
    for folder in folders():
        look = os.statvfs(folder)
        if look.f_bavail * look.f_frsize < SPACE_LEAST:
            return f"no space in {folder}"
        if look.f_files and look.f_favail < FILES_LEAST:
            return f"no file more can be made in {folder}"
    return None


def killed_for_memory():
    """Returns how many processes the kernel has killed for want of memory since it started."""
    with open("/proc/vmstat", encoding="ascii") as opened:
        return sum(int(line.split()[1]) for line in opened if line.startswith("oom_kill "))


class Watch:
    """Use with "with"; why is then a text, or None where the machine was whole."""

    def __init__(self):
        self.why = None
        self.over = threading.Event()
        self.looker = threading.Thread(target=self.look, daemon=True)

    def look(self):
        while not self.why and not self.over.wait(LOOK_SECONDS):
            self.why = out_of_space()

    def __enter__(self):
        self.why = out_of_space()
        self.killed = killed_for_memory()
        self.looker.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.looker.join()
        if not self.why and killed_for_memory() > self.killed:
            self.why = "the kernel killed a process, as memory was out"
