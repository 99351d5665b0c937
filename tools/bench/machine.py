# SPDX-License-Identifier: BSD-3-Clause
"""The surroundings of a run: machine, kernel, file system, time, load."""
import contextlib
import os
import time

from study import cpus


def size_text(size):
    """Writes three significant digits with a unit of a power of 1024."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    unit = 0
    while unit < len(units) - 1 and abs(size) >= 1024 * 0.9995:
        size /= 1024
        unit += 1
    if unit == 0 and size == int(size):
        return f"{size:.0f} B"
    return f"{size:.{2 if abs(size) < 10 else 1 if abs(size) < 100 else 0}f} {units[unit]}"


def line_of(path, label=""):
    """Returns the rest of the first line that starts with the label."""
    with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith(label):
                return line[len(label):].strip(" \t:\n")
    return "unknown"


def file_system_of(folder):
    """Returns "ext4 on /dev/vda1", of the last mount over the longest part of the folder's path."""
    path, longest, found = os.path.realpath(folder), "", "unknown"
    with contextlib.suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            before, _, after = line.partition(" - ")
            mount = before.split()[4]
            if os.path.commonpath([path, mount]) == mount and len(mount) >= len(longest) and after:
                longest, found = mount, " on ".join(after.split()[:2])
    return found


def about(bench):
    options, facts = bench.options, bench.figures.about
    kernel = os.uname()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    facts["date"] = time.strftime("%F %T %z")
    facts["machine"] = (f"{line_of('/proc/cpuinfo', 'model name')}, {os.cpu_count()} cores of which this run may use "
                        f"{len(cpus())}, {size_text(memory)} of memory")
    facts["kernel"] = f"{kernel.sysname} {kernel.release} {kernel.machine}"
    facts["flash files"] = f"in {options.dir}: {file_system_of(options.dir)}"
    facts["load average"] = " ".join(line_of("/proc/loadavg").split()[:3]) + " at the start"
    facts["CPUs"] = (f"servers on {options.server_cpu}, load generator on {options.load_cpu}"
                     if options.server_cpu >= 0 else "unpinned")
    facts["run"] = f"scale {options.scale:g}, {options.rounds} rounds"
