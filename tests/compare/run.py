#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Thousands of scripted sessions, generated from the tables of commands, with Debian's memcached and with ours: the same
bytes must come back, the same connections be closed, the same counters move.

    run.py [--seed N] [--only REGEX] [--verbose]

A line for each group: "PASS text set: 1187 sessions, 0 differences, 34 intended". FLASHIELD_BIN and MEMCACHED_BIN name the
daemons. Exit code 1 if one differs in a way that intended.py doesn't have, or if an entry there excuses nothing.
"""
import argparse
import collections
import os
import pathlib
import re
import shutil
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "protocol")]

import intended  # noqa: E402
import meta_sessions  # noqa: E402
import text_sessions  # noqa: E402
from helpers import Daemon, memcached_command  # noqa: E402
from pair import Pair  # noqa: E402

SHOWN = 5  # differences of a group


def all_groups(seed):
    return {**text_sessions.groups(), **meta_sessions.groups(seed)}


def show(different):
    for name, ours, theirs in [(found.session.name, found.ours, found.theirs) for found in different[:SHOWN]]:
        print(f"  {name}\n    ours:   {str(ours)[:400]}\n    theirs: {str(theirs)[:400]}")
    if len(different) > SHOWN:
        print(f"  ... and {len(different) - SHOWN} more")


class Report:
    def __init__(self):
        self.sessions = self.differences = self.failed = 0
        self.excused = collections.Counter()

    def group(self, name, sessions, pair, **options):
        before = time.monotonic()
        different, excused = pair.compare(sessions, **options)
        self.sessions += len(sessions)
        self.differences += len(different)
        self.failed += bool(different)
        print(f"{'FAIL' if different else 'PASS'} {name}: {len(sessions)} sessions, {len(different)} differences, {excused} "
              f"intended ({time.monotonic() - before:.1f} s)", flush=True)
        show(different)

    def end(self, everything):
        for entry in intended.INTENDED:
            if everything and not self.excused[entry.name]:
                print(f"FAIL intended difference '{entry.name}' excuses nothing")
                self.failed += 1
        print(f"{self.sessions} sessions, {self.differences} differences, {sum(self.excused.values())} excused by "
              f"{len(+self.excused)} intended ones: " + ", ".join(f"{name} {count}" for name, count in self.excused.items()))
        return 1 if self.failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    if not shutil.which(memcached_command()):
        print("SKIP comparison: memcached is not installed")
        return 0
    print(f"seed {arguments.seed}")
    report = Report()
    with Daemon(["-m", "64"]) as ours, Daemon(["-m", "64", "-U", "0"], program=memcached_command()) as theirs:
        pair = Pair(ours, theirs)
        for name, sessions in all_groups(arguments.seed).items():
            if re.search(arguments.only, name):
                report.group(name, sessions, pair)
        report.excused += pair.excused
    return report.end(not arguments.only)


if __name__ == "__main__":
    os.chdir(HERE)
    sys.exit(main())
