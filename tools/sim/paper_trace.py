# SPDX-License-Identifier: BSD-3-Clause
"""Traces for the paper's tables: applications made by flashield-tracegen, reduced to what the paper's simulation plays, and
their statistics in the paper's accounting."""
import bisect
import os
import subprocess
import sys

POINTS = [16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576]  # of the distribution of sizes, in bytes


class Tally:
    """The paper's accounting: only gets of known size count. The first is a write, one with another size than the one before
    an update, all others are reads; an object is its key and value."""

    def __init__(self):
        self.reads = self.writes = self.updates = self.bytes = self.written_once = 0
        self.below = [0] * (len(POINTS) + 1)

    def first(self, object_bytes):
        self.writes += 1
        self.bytes += object_bytes
        self.below[bisect.bisect_right(POINTS, object_bytes)] += 1

    def figures(self):
        """By the names of table 2."""
        all_of_it = self.reads + self.writes + self.updates
        return {"mean object, B": self.bytes / self.writes, "reads %": 100 * self.reads / all_of_it,
                "writes %": 100 * self.writes / all_of_it, "updates %": 100 * self.updates / all_of_it,
                "unread writes %": 100 * self.written_once / self.writes}

    def share_below(self, point):
        """Percent of the objects written that are smaller."""
        return 100 * sum(self.below[:POINTS.index(point) + 1]) / self.writes


def reduce(source, target, tally):
    """Copies the gets of known size of one application, in the format flashield, and counts them."""
    sizes, read = {}, set()
    target.write(next(source))
    for line in source:
        fields = line.split(",", 6)
        if fields[2] != "get" or fields[5].startswith("-"):
            continue
        target.write(line)
        key, size = fields[3], fields[5]
        before = sizes.get(key)
        if before is None:
            tally.first(int(fields[4]) + int(size))
            sizes[key] = size
        elif before != size:
            tally.updates += 1
            sizes[key] = size
            read.add(key)
        else:
            tally.reads += 1
            read.add(key)
    tally.written_once += len(sizes) - len(read)


def generator_path():
    """flashield-tracegen as built or installed with this program."""
    return os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "flashield-tracegen")


def make(app, scale, seed, path, tally):
    """Writes an application's trace at 1/scale to the path."""
    command = [generator_path(), "--apps", str(app), "--scale", f"1/{scale}", "--seed", str(seed), "--quiet", "--output", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as made, open(path, "w", encoding="utf-8") as target:
        reduce(made.stdout, target, tally)
    if made.returncode:
        raise subprocess.CalledProcessError(made.returncode, command)
