#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Thousands of scripted sessions, generated from the tables of commands, with Debian's memcached and with ours: the same
bytes must come back, the same connections be closed, the same counters move.

    run.py [--seed N] [--only REGEX] []

A line for each group: "PASS text set: 1187 sessions, 0 differences, 34 intended". FLASHIELD_BIN and MEMCACHED_BIN name the
daemons. Exit code 1 if one differs in a way that intended.py doesn't have, or if an entry there excuses nothing.
"""
import argparse
import collections
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "protocol")]

import intended  # noqa: E402
import admin_sessions  # noqa: E402
import binary_sessions
import meta_sessions
import pipelines
import text_sessions
from helpers import Daemon, memcached_command
from pair import Pair

SHOWN = 5  # differences of a group

# Pairs of daemons: name, options of both, of memcached alone, groups, how many sessions (None: all), how many at a time.
ALL = None
PAIRS = [
    ("", [], [], r"text|meta|binary|pipelines", ALL, 48),
    ("", [], [], r"admin", ALL, 1),
    ("parts off", [], ["-o", "no_lru_maintainer,no_slab_reassign"], r"admin (lru|slabs)$", ALL, 1),
]


def all_groups(seed):
    return {**text_sessions.groups(), **meta_sessions.groups(seed), **binary_sessions.groups(seed), **pipelines.groups(seed),
            **admin_sessions.groups()}


def show(different):
    for name, ours, theirs in [(found.session.name, found.ours, found.theirs) for found in different[:SHOWN]]:
        print(f"  {name}\n    ours:   {str(ours)[:400]}\n    theirs: {str(theirs)[:400]}")
    if len(different) > SHOWN:
        print(f"  ... and {len(different) - SHOWN} more")


def run_pair(report, arguments, name, options, theirs, groups, count, width):
    groups = {f"{group} {name}".rstrip(): sessions for group, sessions in groups.items()}
    groups = {group: sessions for group, sessions in groups.items() if re.search(arguments.only, group)}
    if not groups:
        return
    chance = random.Random(arguments.seed)
    with Daemon(options, stderr=subprocess.DEVNULL) as ours, \
            Daemon([*options, "-U", "0", *theirs], program=memcached_command(), stderr=subprocess.DEVNULL) as memcached:
        pair = Pair(ours, memcached, width)
        for group, sessions in groups.items():
            report.group(group, sessions if count is None else chance.sample(sessions, min(count, len(sessions))), pair)
        report.excused += pair.excused


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
    groups = all_groups(arguments.seed)
    for name, options, theirs, wanted, count, width in PAIRS:
        run_pair(report, arguments, name, ["-m", "64", *options], theirs,
                 {group: sessions for group, sessions in groups.items() if re.match(wanted, group)}, count, width)
    return report.end(not arguments.only)


if __name__ == "__main__":
    os.chdir(HERE)
    sys.exit(main())
