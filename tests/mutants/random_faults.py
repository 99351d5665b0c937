#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes N random changes of the product's C sources (changes.py), one at a time, and tells which of them no test finds.

As many are drawn of each folder as of any other, by the seed: the same sources, N and seed give the same ones. Each is built
in a copy of the tree (run.py) and goes through these tests until one fails:

    own         unit tests of the source's name
    folder      other unit tests of its folder
    above       unit tests of the folders that use it
    sched       some seeds of the engine under the scheduler, where the change is in the engine
    protocol    tests of the daemon for the folder, which the table below names

A test that uses many times the CPU time that it takes without a change, or stands still, has found it. What doesn't compile
isn't counted. What survives is listed with its place: some of it can't be told from the original by any test.
"""
import argparse
import collections
import concurrent.futures
import glob
import os
import queue
import subprocess
import sys
import threading
import time

import changes
import run

SCHED_SEEDS = 12
STAGES = ("own", "folder", "above", "sched", "protocol")
# Which unit tests use a folder, beside its own.
ABOVE = {"base": ("flashindex", "segments", "server/store"), "classifier": ("server/store",), "flashindex": ("server/store",),
         "segments": ("server/store",), "server/store": ("server/store",), "server": ("server/net", "server/count", "server/metrics")}
# Tests of the daemon, by the longest name that the folder begins with.
PROTOCOL = {"server/proto": "core text binary meta_place limits large udp", "server/net": "listen tls udp limits slow_clients process stream core",
            "server/admin": "stats dump watch reload options admin latency hotkeys slow contents", "server/auth": "auth",
            "server/count": "hotkeys slow contents latency", "server/metrics": "metrics metrics_access", "conf": "options check_config reload",
            "server": "process service stop check_config seccomp options"}
ENGINE = ("base", "classifier", "flashindex", "segments", "server/store")
CPU_TIMES, CPU_MORE, WALL_TIMES, WALL_MORE = 5, 5, 20, 120  # of what a test takes without a change, and seconds


def folder_of(path):
    return path.rpartition("/")[0]


def within(folder, tree):
    return folder == tree or folder.startswith(tree + "/")


def product():
    """The sources' texts by path."""
    found = [path for path in run.listed() if path.endswith(".c") and path.split("/")[0] in run.PRODUCT]
    return {path: run.contents(os.path.join(run.TOP, path)).decode() for path in found}


# ---- tests ---------------------------------------------------------------------------------------


def units_in(pattern):
    found = glob.glob(os.path.join(run.TOP, "tests/unit", pattern), recursive=True)
    return sorted(os.path.relpath(path, os.path.join(run.TOP, "tests/unit"))[:-2] for path in found)


def longest(table, folder):
    return max((name for name in table if within(folder, name)), key=len, default=None)


def tests_for(path, variant, stage):
    """As run.py knows them."""
    folder, stem = folder_of(path), os.path.basename(path)[:-2]
    if stage == "own":
        return [f"{variant} {name}" for name in units_in(f"{folder}/test_{stem}.c") + units_in(f"{folder}/test_{stem}_*.c")]
    if stage == "folder":
        return [f"{variant} {name}" for name in units_in(f"{folder}/test_*.c")]
    if stage == "above":
        trees = ABOVE.get(longest(ABOVE, folder), ())
        return [f"{variant} {name}" for tree in trees for name in units_in(f"{tree}/**/test_*.c")]
    if stage == "sched":
        there = os.path.exists(os.path.join(run.TOP, "tests/sched/main.c")) and any(within(folder, name) for name in ENGINE)
        return [f"sched {SCHED_SEEDS}"] if there else []
    names = PROTOCOL.get(longest(PROTOCOL, folder), "") if not within(folder, "server/store") else ""
    return [f"{variant} protocol test_{name}.py" for name in names.split() if os.path.exists(os.path.join(run.TOP, f"tests/protocol/test_{name}.py"))]


# ---- a change ------------------------------------------------------------------------------------


class Without:
    """What each test takes without a change, in a copy that never has one. A test that fails then is left out, and told."""

    def __init__(self, copy):
        self.copy, self.took, self.lock = copy, {}, threading.Lock()

    def learn(self, tests):
        for variant in sorted({run.variant_of(test) for test in tests}):
            run.build(self.copy, {(variant, run.target_of(test)) for test in tests if run.variant_of(test) == variant}, run.CPUS)
        for test in tests:
            began = time.monotonic()
            code, output = run.run_test(self.copy, test, run.FIRST_SECONDS)
            self.took[test] = time.monotonic() - began if code == 0 else None
            if code != 0:
                run.say(f"   left out: {test} fails without a change: {run.found_by(output, code)}")

    def those_that_pass(self, tests):
        with self.lock:
            self.learn([test for test in tests if test not in self.took])
            return [test for test in tests if self.took[test] is not None]


def bounded(copy, test, took):
    """None: it passes; else what found the change."""
    prefix = ["prlimit", f"--cpu={CPU_MORE + int(CPU_TIMES * took)}", "--"]
    code, output = run.run_test(copy, test, WALL_MORE + WALL_TIMES * took, prefix)
    return None if code == 0 else f"{test}: {run.found_by(output, code)}"


def judge(copy, path, change, args, without):
    """(stage, words): stage None: it survives; "unbuilt": it doesn't count."""
    text = run.contents(os.path.join(copy, path)).decode()
    done = set()
    run.write(copy, path, text[:change.offset] + change.new + text[change.offset + change.length:])
    try:
        for stage in STAGES[:-1] if args.no_protocol else STAGES:
            tests = without.those_that_pass([test for test in tests_for(path, args.variant, stage) if test not in done])
            done.update(tests)
            if tests and run.build(copy, {(run.variant_of(test), run.target_of(test)) for test in tests}, 1):
                return "unbuilt", "it doesn't compile"
            for test in tests:
                words = bounded(copy, test, without.took[test])
                if words:
                    return stage, words
        return (None, "") if done else (None, "there is no test for it")
    finally:
        run.write(copy, path, text)


def where(sources, path, change):
    """path:line, and the line as it is."""
    line = sources[path].count("\n", 0, change.offset)
    return f"{path}:{line + 1}", sources[path].splitlines()[line].strip()


# ---- the report ----------------------------------------------------------------------------------


def report(verdicts):
    """A row for each folder: how many the stages found, and how many survive."""
    rows = collections.defaultdict(collections.Counter)
    for path, stage in verdicts:
        for name in (folder_of(path), "all"):
            rows[name][stage or "survived"] += 1
    run.say("\n" + f"{'folder':24}{'made':>6}" + "".join(f"{name:>10}" for name in STAGES) + f"{'survived':>10}{'killed':>9}")
    for name, row in sorted(rows.items(), key=lambda item: (item[0] == "all", item[0])):
        made = sum(row.values()) - row["unbuilt"]
        if made:
            found = made - row["survived"]
            run.say(f"{name:24}{made:6}" + "".join(f"{row[stage]:10}" for stage in STAGES) + f"{row['survived']:10}{100 * found / made:8.0f}%")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, help="so many changes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variant", default="asan", choices=("release", "debug", "asan"), help="of the tests")
    parser.add_argument("--folder", help="changes of this folder alone, and of those in it")
    parser.add_argument("--jobs", type=int, default=run.CPUS, help="so many changes at a time, a copy of the tree each")
    parser.add_argument("--no-protocol", action="store_true", help="no tests of the daemon")
    parser.add_argument("--list", action="store_true", help="the changes alone; nothing is built")
    return parser.parse_args()


def main():
    args = arguments()
    sources = {path: text for path, text in product().items() if not args.folder or within(folder_of(path), args.folder)}
    drawn = changes.draw(sources, args.count, args.seed)
    if args.list:
        for path, change in drawn:
            run.say("{0}: {2}: {1}".format(*where(sources, path, change), change.says))
        return 0
    first, *others = [os.path.join(run.COPIES, str(number)) for number in range(args.jobs + 1)]
    run.bring_up_to_date(first)
    without, free, verdicts = Without(first), queue.SimpleQueue(), []
    for copy in others:
        if not os.path.exists(copy):
            subprocess.run(["cp", "-a", first, copy], check=True)
        run.bring_up_to_date(copy)
        free.put(copy)
    run.say(f"-- {len(drawn)} changes by seed {args.seed}")

    def one(drawn_one):
        copy = free.get()
        try:
            return drawn_one, judge(copy, *drawn_one, args, without)
        finally:
            free.put(copy)

    with concurrent.futures.ThreadPoolExecutor(max_workers=args.jobs) as pool:
        for future in concurrent.futures.as_completed([pool.submit(one, each) for each in drawn]):
            (path, change), (stage, words) = future.result()
            verdicts.append((path, stage))
            place, line = where(sources, path, change)
            said = "SURVIVED" if stage is None else stage
            run.say(f"{said:10}{place}: {change.says}: {line}" + (f"  ({words})" if words else ""))
    report(verdicts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
