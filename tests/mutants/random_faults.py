#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes N random changes of the product's C sources (changes.py), one at a time, and tells which of them no test finds.

As many are drawn of each folder as of any other, by the seed: the same sources, N and seed give the same ones. All are built
at once in one copy of the tree: a function has a copy of its body for each of its changes, and a number in the environment
chooses one. So a change costs no compilation, only its tests:

    own         unit tests of the source's name
    folder      other unit tests of its folder
    above       unit tests of the folders that use it
    sched       some seeds of the engine under the scheduler, where the change is in the engine
    protocol    tests of the daemon for the folder, which the table below names
    asan        under ASan and UBSan, what survives all these: its own tests, its folder's, the daemon's

Each test runs once without a change. That tells what it takes, and which functions it enters: it runs with changes of these
alone. The cheapest test of a stage comes first, and the first that fails ends the search. Tests of the store that hold with
either index run with each.

A test that uses several times the CPU time that it takes without a change, or stands still, has found it. One that fails or is
skipped without a change is left out and named. What doesn't compile isn't counted. What survives is listed with its place: some of
it can't be told from the original by any test.
"""
import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading

import changes
import run
from testrun import reports, units

COPY = os.path.join(run.COPIES, "random")
SCHED_SEEDS = 12
STAGES = ("own", "folder", "above", "sched", "protocol", "asan")
UNDER_ASAN = ("own", "folder", "protocol")  # stages whose tests run there again
# Which unit tests use a folder, beside its own.
ABOVE = {"base": ("base", "classifier", "flashindex", "segments", "server/store"), "classifier": ("server/store",),
         "flashindex": ("server/store",), "flashindex/frugal": ("server/store",), "segments": ("server/store",),
         "server/store": ("server/store",), "server": ("server/auth", "server/count", "server/metrics", "server/net", "server/proto"),
         "conf": ("conf", "classifier")}
# Tests of the daemon, by the longest name that the folder begins with.
PROTOCOL = {"server/proto": "compare meta_compare place meta_place pymemcache binary admin limits large udp auth", "server/net": "listen tls udp limits process service stream watch pressure sweep",
            "server/admin": "stats dump watch reload options admin latency hotkeys slow contents model app_limits boards tls", "server/auth": "auth",
            "server/count": "hotkeys slow contents latency", "server/metrics": "metrics metrics_access", "conf": "options check_config reload",
            "server/store": "model restart region_room journal stop", "server": "process service stop check_config seccomp options stats drive model"}
ENGINE = ("base", "classifier", "flashindex", "segments", "server/store")
CPU_TIMES, CPU_MORE = 4, 4  # of the CPU time that a test takes without a change, and seconds
LOOK_SECONDS = 1  # between two looks at a test's threads
STILL_SECONDS = 20  # a test all of whose threads sleep for so long waits for what never comes
REPORTED = 99  # the exit code of a test whose daemon had a report of a sanitizer
ASLEEP_TIMES, ASLEEP_MORE = 60, 120  # of its CPU time, and seconds asleep in all: the last resort, for what wakes up again and again
ERROR = re.compile(r"^([\w/.]+):(\d+):\d+: (?:fatal )?error:", re.M)


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


def with_each_index(names):
    """A third word is the index of the store."""
    either = {f"server/store/{test}" for test in units.FRUGAL}
    return [*names, *(f"{name} {index}" for name in names if name in either for index in units.FRUGAL_INDEXES)]


def tests_for(path, variant, stage):
    """As run.py knows them."""
    folder, stem = folder_of(path), os.path.basename(path)[:-2]
    if stage == "own":
        return [f"{variant} {name}" for name in with_each_index(units_in(f"{folder}/test_{stem}.c") + units_in(f"{folder}/test_{stem}_*.c"))]
    if stage == "folder":
        return [f"{variant} {name}" for name in with_each_index(units_in(f"{folder}/test_*.c"))]
    if stage == "above":
        trees = ABOVE.get(longest(ABOVE, folder), ())
        return [f"{variant} {name}" for tree in trees for name in with_each_index(units_in(f"{tree}/**/test_*.c"))]
    if stage == "asan":
        return [test for inner in UNDER_ASAN for test in tests_for(path, "asan", inner)] if variant != "asan" else []
    if stage == "sched":
        there = os.path.exists(os.path.join(run.TOP, "tests/sched/main.c")) and any(within(folder, name) for name in ENGINE)
        return [f"sched {SCHED_SEEDS}"] if there else []
    names = PROTOCOL.get(longest(PROTOCOL, folder), "")
    return [f"{variant} protocol test_{name}.py" for name in names.split() if os.path.exists(os.path.join(run.TOP, f"tests/protocol/test_{name}.py"))]


# ---- a test, by its CPU time ---------------------------------------------------------------------


def cpu_of_session(session):
    """(ticks of CPU, whether a thread runs or waits for a drive) of the processes in it."""
    ticks, wants = 0, False
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as opened:
                fields = opened.read().rpartition(")")[2].split()
            if int(fields[3]) != session:
                continue
            ticks += int(fields[11]) + int(fields[12])
            for task in os.listdir(f"/proc/{entry}/task"):
                with open(f"/proc/{entry}/task/{task}/stat", encoding="ascii", errors="replace") as opened:
                    wants |= opened.read().rpartition(")")[2].split()[0] in "RD"
        except OSError:
            continue  # it has ended meanwhile
    return ticks, wants


def end_session(pid):
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def environment_of(test):
    index = test.split()[2:] if not run.is_protocol(test) else []
    return dict(units.frugal_environment(*index) if index else {}, CMOCKA_MESSAGE_OUTPUT="TAP",
                FLASHIELD_BIN=os.path.join(COPY, run.target_of(test)))


def run_test(test, env, cpu_seconds, asleep_seconds):
    """(exit code, output, CPU seconds). A report of a sanitizer, of a daemon too, is a failure."""
    asked = reports.Reports()
    with asked as sanitizers:
        code, output, took = run_bounded(test, {**environment_of(test), **sanitizers, **env}, cpu_seconds, asleep_seconds)
        found = asked.found()
    return code or (REPORTED if found else 0), "\n".join([output, *found]), took


def run_bounded(test, env, cpu_seconds, asleep_seconds):
    """(exit code, output, CPU seconds). 124: it stood still or slept too long, and was ended with all its children. On a busy
    machine a thread that wants to run may wait for long: that doesn't count."""
    limit = ["prlimit", f"--cpu={int(cpu_seconds)}", "--"]
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:  # what a killed test leaves behind goes with it
        os.chmod(folder, 0o755)  # some tests become another user
        full = dict(os.environ, TMPDIR=folder, **env)
        for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):  # the outer make's job server isn't ours
            full.pop(name, None)
        with open(os.path.join(folder, "output"), "w+", encoding="utf-8", errors="replace") as output:
            process = subprocess.Popen(limit + run.command_of(test), cwd=COPY, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                       env=full, start_new_session=True)
            ended, ticks, still, asleep, stands = os.pidfd_open(process.pid), 0, 0, 0, False
            try:
                while not stands and not select.select([ended], [], [], LOOK_SECONDS)[0]:
                    ticks_now, wants = cpu_of_session(process.pid)
                    asleep += not wants
                    still, ticks = (0 if wants or ticks_now != ticks else still + 1), ticks_now
                    stands = still >= STILL_SECONDS or asleep >= asleep_seconds
            finally:
                os.close(ended)
                end_session(process.pid)  # what a test left behind too
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if stands:
                return 124, "", 0
            output.seek(0)
            return process.returncode, output.read(), used.ru_utime + used.ru_stime


class Without:
    """What each test takes without a change, and which changed functions it enters. A test that fails or is skipped then is left out, and told.
    What is known of a program is kept beside it, until it is built anew."""

    def __init__(self, longest_cpu):
        self.longest, self.path = longest_cpu, os.path.join(COPY, "build", "without.json")
        self.known, self.locks, self.lock = {}, collections.defaultdict(threading.Lock), threading.Lock()
        self.kept = json.loads(run.contents(self.path)) if os.path.exists(self.path) else {}

    def of(self, test):
        """(CPU seconds, numbers of changes) or None."""
        with self.lock:
            mine = self.locks[test]
        with mine:
            if test not in self.known:
                self.known[test] = self.remembered(test) or self.learn(test)
                if self.known[test]:
                    self.keep(test, *self.known[test])
            found = self.known[test]
            return found if found and found[0] <= self.longest else None

    def remembered(self, test):
        built_at, took, numbers = self.kept.get(test, (None, 0, ()))
        return (took, set(numbers)) if built_at == self.built_at(test) else None

    def keep(self, test, took, numbers):
        with self.lock:
            self.kept[test] = self.built_at(test), took, sorted(numbers)
            with open(self.path, "w", encoding="ascii") as opened:
                json.dump(self.kept, opened)

    @staticmethod
    def built_at(test):
        return max(os.stat(os.path.join(COPY, path)).st_mtime_ns for path in (run.target_of(test), run.source_of(test)))

    def learn(self, test):
        with tempfile.NamedTemporaryFile(prefix="mutant-seen-") as seen:
            seen.truncate(65536)
            os.chmod(seen.name, 0o666)  # some tests become another user
            code, output, took = run_test(test, {"CHANGE_SEEN": seen.name}, self.longest, run.FIRST_SECONDS * 4)
            if code in (-signal.SIGXCPU, -signal.SIGKILL):
                run.say(f"   left out: {test} takes more than {self.longest:.0f} s of CPU")
                return None
            if code != 0:
                run.say(f"   left out: {test} fails without a change: {run.found_by(output, code)}")
                return None
            if run.all_skipped(output):
                run.say(f"   left out: {test} is skipped")
                return None
            seen.seek(0)
            return took, {number for number, byte in enumerate(seen.read()) if byte}

    def that_enter(self, tests, number):
        """Those that enter the function of the change, the cheapest first."""
        known = [(self.of(test), test) for test in tests]
        return [test for took, test in sorted((found[0], test) for found, test in known if found and number in found[1])]


def judge(number, path, variant, stages, without):
    """(stage, words, CPU seconds): stage None: it survives."""
    done, spent = set(), 0
    for stage in stages:
        tests = [test for test in tests_for(path, variant, stage) if test not in done]
        done.update(tests)
        for test in without.that_enter(tests, number):
            took, _ = without.of(test)
            code, output, used = run_test(test, {"CHANGE": str(number)}, CPU_MORE + CPU_TIMES * took, ASLEEP_MORE + ASLEEP_TIMES * took)
            spent += used
            if code != 0:
                return stage, f"{test}: {run.found_by(output, code)}", spent
    entered = sum(1 for test in done if without.of(test) and number in without.of(test)[1])
    return None, f"{entered} tests enter the function" if entered else "no test enters the function", spent


# ---- the build -----------------------------------------------------------------------------------


def fill(texts):
    """Writes what differs alone, so that make builds no more than that."""
    for path in run.listed():
        target = os.path.join(COPY, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        source = os.path.join(run.TOP, path)
        if os.path.islink(source):
            if not os.path.lexists(target):
                os.symlink(os.readlink(source), target)
        elif path not in texts:
            wanted = run.contents(source)
            if not os.path.exists(target) or run.contents(target) != wanted:
                with open(target, "wb") as opened:
                    opened.write(wanted)
                os.chmod(target, os.stat(source).st_mode)
    for path, text in texts.items():
        if not os.path.exists(os.path.join(COPY, path)) or run.contents(os.path.join(COPY, path)).decode() != text:
            run.write(COPY, path, text)


def built(sources, drawn, numbers, tests, jobs):
    """Builds the tests with all changes. The numbers of those that compile; None where the sources themselves don't."""
    targets = set().union(*map(run.targets_of, tests))
    while True:
        texts, lines = {"base/change_chosen.c": changes.CHOSEN}, {}
        for path in {path for path, _ in drawn}:
            here = [(number, change) for number, (of, change) in enumerate(drawn, 1) if of == path and number in numbers]
            texts[path], lines[path] = changes.with_all(sources[path], here)
        fill(texts)
        wrong, words = set(), ""
        for variant in run.VARIANTS:
            wanted = sorted({target for of, target in targets if of == variant})
            if wanted:
                code, output = run.run(["make", f"-j{jobs}", "-k", "--no-print-directory", f"VARIANT={variant}", *wanted], COPY, None)
                found = {lines.get(path, {}).get(int(line)) for path, line in ERROR.findall(output)}
                wrong |= found
                words += output if code else ""
        if not words:
            return numbers
        if not wrong or None in wrong:
            run.say(run.tail(words))
            return None
        numbers = numbers - wrong


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
        made = sum(row.values())
        found = made - row["survived"]
        run.say(f"{name:24}{made:6}" + "".join(f"{row[stage]:10}" for stage in STAGES) + f"{row['survived']:10}{100 * found / made:8.0f}%")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, help="so many changes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--variant", default="debug", choices=("release", "debug", "asan"), help="of the tests")
    parser.add_argument("--folder", help="changes of this folder alone, and of those in it")
    parser.add_argument("--jobs", type=int, default=run.CPUS, help="so many tests at a time")
    parser.add_argument("--stages", default=",".join(STAGES), help="these alone, with commas between them")
    parser.add_argument("--longest", type=float, default=30, help="no test that takes more CPU seconds than this")
    parser.add_argument("--only", help="numbers of changes as the list has them, with commas between them")
    parser.add_argument("--list", action="store_true", help="the changes alone; nothing is built")
    args = parser.parse_args()
    args.stages = [stage for stage in STAGES if stage in args.stages.split(",")]
    return args


class Search:
    """Judges changes by stages, and says what found each."""

    def __init__(self, sources, drawn, args):
        self.sources, self.drawn, self.args = sources, drawn, args
        self.without, self.numbers = Without(args.longest), set(range(1, len(drawn) + 1))

    def build(self, stages, chosen):
        """The tests; None where the sources don't compile."""
        tests = {test for number in chosen for stage in stages for test in tests_for(self.drawn[number - 1][0], self.args.variant, stage)}
        numbers = built(self.sources, self.drawn, self.numbers, tests, self.args.jobs)
        self.numbers = numbers or set()
        return tests if numbers is not None else None

    def judge(self, stages, chosen, tests, last):
        """{number: stage}. last: what survives these stages survives all."""
        verdicts = {}
        with concurrent.futures.ThreadPoolExecutor(max_workers=self.args.jobs) as pool:
            list(pool.map(self.without.of, sorted(test for test in tests if not run.is_protocol(test))))
            judged = {pool.submit(judge, number, self.drawn[number - 1][0], self.args.variant, stages, self.without): number
                      for number in sorted(self.numbers & chosen)}
            for future in concurrent.futures.as_completed(judged):
                number, (stage, words, spent) = judged[future], future.result()
                place, line = where(self.sources, *self.drawn[number - 1])
                verdicts[number] = stage
                run.say(f"{stage or ('SURVIVED' if last else 'not yet'):10}{number:4} {place}: {self.drawn[number - 1][1].says}: {line}  ({words}; {spent:.1f} s)")
        return verdicts


def main():
    args = arguments()
    sources = {path: text for path, text in product().items() if not args.folder or within(folder_of(path), args.folder)}
    drawn = changes.draw(sources, min(args.count, changes.MOST), args.seed)
    if args.list:
        for number, (path, change) in enumerate(drawn, 1):
            run.say("{0:4} {1}: {3}: {2}".format(number, *where(sources, path, change), change.says))
        return 0
    left = {int(number) for number in args.only.split(",")} if args.only else set(range(1, len(drawn) + 1))
    search, verdicts = Search(sources, drawn, args), {}
    turns = [stages for stages in ([stage for stage in args.stages if stage != "asan"], [stage for stage in args.stages if stage == "asan"]) if stages]
    for stages in turns:  # the second is a build of its own, of what its tests need
        began = os.times()
        tests = search.build(stages, left)
        if tests is None:
            return 1
        ended = os.times()
        run.say(f"-- {len(drawn)} changes by seed {args.seed}, {len(search.numbers)} compile, {len(left)} left, "
                f"built in {ended[2] + ended[3] - began[2] - began[3]:.0f} s of CPU")
        verdicts.update(search.judge(stages, left, tests, stages is turns[-1]))
        left = {number for number, stage in verdicts.items() if stage is None}
    report([(drawn[number - 1][0], stage) for number, stage in verdicts.items()])
    return 0


if __name__ == "__main__":
    sys.exit(main())
