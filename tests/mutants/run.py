#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Puts each seeded fault of mutants.py into a copy of the tree, and sees that a test of "make test" finds it.

The copies are in build/mutants. First the named tests run without a fault: all must pass. Then each fault is put in,
what its test needs is built, and the test runs; one that hangs has found the fault too. A line per fault: killed, by
what, or SURVIVED, or SKIPPED where the test was: that says nothing of the fault. The last lines are "N skipped", if any were, and
"N passed, N failed"; exit code 1 if a fault survived. Names on the command line choose faults.

--check compares the list with the sources, builds nothing, and is silent when each text is there exactly once and no folder
of the product has too few faults.
"""
import argparse
import collections
import concurrent.futures
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.realpath(os.path.join(HERE, "..", ".."))
COPIES = os.path.join(TOP, "build", "mutants")
sys.path[:0] = [HERE, os.path.join(TOP, "tools")]
sys.dont_write_bytecode = True

from mutants import MUTANTS  # noqa: E402
from testrun import units  # noqa: E402

CPUS = os.cpu_count() or 1
VARIANTS = ("release", "debug", "asan", "tsan", "sched")  # a seeded fault's test is in release, asan, tsan or sched
PRODUCT = ("base", "classifier", "conf", "flashindex", "segments", "server")
FAULTS_LEAST = 4  # in each folder with sources of these
BUILD_SECONDS = 1200
FIRST_SECONDS = 300  # of a test without a fault
# With a fault a test may take so many times as long as without one, and some seconds more.
TIMES, MORE_SECONDS = 10, 20
SHOWN_LINES = 40
# Programs without which a test of the protocol is skipped, beside the daemon.
BESIDE = {"tests/protocol/test_dump.py": ("dump", "load"), "tests/protocol/test_inspect.py": ("inspect",)}
PYTEST_FAILED = re.compile(r"^FAILED \S+::(\S+)", re.M)
PYTEST_ALL_SKIPPED = re.compile(r"^\d+ skipped\b.* in [\d.]+s", re.M)  # those that failed or passed would come first


def say(text):
    print(text, flush=True)


def tail(output):
    return "\n".join(output.splitlines()[-SHOWN_LINES:])


# ---- the list ------------------------------------------------------------------------------------


def pattern(text):
    """Finds the text however its words are laid out in lines."""
    return re.compile(r"\s*".join(re.escape(token) for token in re.findall(r"\w+|[^\w\s]", text)))


def findings():
    """What is wrong with the list, a line each."""
    seen = set()
    for mutant in MUTANTS:
        if mutant.name in seen:
            yield f"{mutant.name}: there are two of that name"
        seen.add(mutant.name)
        for path, old, new in mutant.edits:
            try:
                with open(os.path.join(TOP, path), encoding="utf-8") as opened:
                    times = len(pattern(old).findall(opened.read()))
            except OSError as error:
                yield f"{mutant.name}: {path}: {error.strerror}"
                continue
            if times != 1 or old == new:
                yield f"{mutant.name}: {path} has the text {times} times: {old.strip().splitlines()[0]}"
        if not os.path.exists(os.path.join(TOP, source_of(mutant.test))):
            yield f"{mutant.name}: there is no test {mutant.test}"
    yield from poor_folders()


def poor_folders():
    """Folders of the product with sources, and with too few faults."""
    faults = collections.Counter(path.rpartition("/")[0] for mutant in MUTANTS for path in {path for path, _, _ in mutant.edits})
    for tree in PRODUCT:
        for folder, _, names in os.walk(os.path.join(TOP, tree)):
            folder = os.path.relpath(folder, TOP)
            if any(name.endswith(".c") for name in names) and faults[folder] < FAULTS_LEAST:
                yield f"{folder} has {faults[folder]} faults, and needs {FAULTS_LEAST}"


def variant_of(test):
    """Of "asan server/store/test_overload", "asan protocol test_keep_all.py::test_a" or "sched 40": 40 seeds of the scheduler."""
    return test.split()[0]


def is_protocol(test):
    return test.split()[1] == "protocol"


def is_sched(test):
    return variant_of(test) == "sched"


def source_of(test):
    if is_sched(test):
        return "tests/sched/main.c"
    if is_protocol(test):
        return "tests/protocol/" + test.split()[2].partition("::")[0]
    return f"tests/unit/{test.split()[1]}.c"


def target_of(test):
    variant = variant_of(test)
    if is_sched(test):
        return "build/sched/sched"
    if is_protocol(test):
        return "build/flashield" if variant == "release" else f"build/{variant}/flashield"
    return f"build/{variant}/tests/{test.split()[1]}"


def targets_of(test):
    """Variants and what make builds in each: the target, and the programs beside a daemon."""
    beside = BESIDE.get(source_of(test), ()) if is_protocol(test) else ()
    return {(variant_of(test), name) for name in [target_of(test), *(f"{target_of(test)}-{program}" for program in beside)]}


# ---- copies of the tree --------------------------------------------------------------------------


def listed():
    """What git has or would have."""
    output = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=TOP, check=True, capture_output=True, text=True).stdout
    return sorted(path for path in set(output.split("\0")) if path and os.path.lexists(os.path.join(TOP, path)))


def contents(path):
    with open(path, "rb") as opened:
        return opened.read()


def bring_up_to_date(copy):
    """Writes what differs alone, so that make builds no more than that."""
    paths = listed()
    for path in paths:
        source, target = os.path.join(TOP, path), os.path.join(copy, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.islink(source):
            if not os.path.lexists(target):
                os.symlink(os.readlink(source), target)
        elif not os.path.exists(target) or contents(source) != contents(target):
            shutil.copy(source, target)
    known = set(paths)
    for folder, folders, names in os.walk(copy):
        if folder == copy and "build" in folders:
            folders.remove("build")
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, copy) not in known:
                os.unlink(path)


def run(command, copy, seconds, env=None):
    """(exit code, output). 124: it took too long, and was ended with all its children."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:  # what a killed test leaves behind goes with it
        os.chmod(folder, 0o755)  # some tests become another user
        return run_with(command, copy, seconds, dict(env or {}, TMPDIR=folder))


def run_with(command, copy, seconds, env):
    full = dict(os.environ, **env)
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):  # the outer make's job server isn't ours
        full.pop(name, None)
    process = subprocess.Popen(command, cwd=copy, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, env=full, text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        return 124, ""
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)  # what a test left behind too, and when this script is told to end
        except ProcessLookupError:
            pass
        process.wait()


def build(copy, targets, jobs):
    """The compiler's words where something didn't build, else nothing."""
    for variant in VARIANTS:
        wanted = sorted({target for of, target in targets if of == variant})
        if wanted:
            code, output = run(["make", f"-j{jobs}", "--no-print-directory", f"VARIANT={variant}", *wanted], copy,
                               BUILD_SECONDS)
            if code != 0:
                return output or "make took too long"
    return ""


def command_of(test):
    if is_sched(test):
        return [target_of(test), "1", test.split()[1]]
    if is_protocol(test):
        return [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=short",
                "tests/protocol/" + test.split()[2]]
    # TSan of Debian 12 can't map its shadow where the kernel randomises more bits than it knows.
    return (["setarch", "-R"] if variant_of(test) == "tsan" else []) + [target_of(test)]


def run_test(copy, test, seconds, prefix=()):
    env = {"CMOCKA_MESSAGE_OUTPUT": "TAP", "ASAN_OPTIONS": "detect_stack_use_after_return=1",
           "FLASHIELD_BIN": os.path.join(copy, target_of(test))}
    return run([*prefix, *command_of(test)], copy, seconds, env)


# ---- a fault -------------------------------------------------------------------------------------


def write(copy, path, text):
    with open(os.path.join(copy, path), "w", encoding="utf-8") as opened:
        opened.write(text)


def put_in(copy, mutant):
    """The texts of the files as they were."""
    before = {}
    for path, old, new in mutant.edits:
        text = contents(os.path.join(copy, path)).decode()
        before.setdefault(path, text)
        write(copy, path, pattern(old).sub(lambda _, new=new: new.strip(), text))
    return before


def all_skipped(output):
    """Of a test that didn't fail: whether none of its cases ran."""
    cases = [match for match in map(units.TAP.match, output.splitlines()) if match]
    return all(match.group(3) for match in cases) if cases else PYTEST_ALL_SKIPPED.search(output) is not None


def found_by(output, code):
    cases = [match for match in map(units.TAP.match, output.splitlines()) if match]
    names = [match.group(2) for match in cases if match.group(1) and not match.group(3)] or PYTEST_FAILED.findall(output)
    if code == 124:
        return "it hangs"
    if names:
        return names[0] + (f" and {len(names) - 1} more" if len(names) > 1 else "")
    for sign in ("AddressSanitizer", "UndefinedBehaviorSanitizer", "runtime error", "ThreadSanitizer", "LeakSanitizer"):
        if sign in output:
            return f"a report of {sign}"
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def try_out(copy, mutant, seconds, jobs):
    """("passed", "failed" or "skipped", the line that says so)."""
    before = put_in(copy, mutant)
    try:
        words = build(copy, targets_of(mutant.test), jobs)
        if words:
            return "failed", f"FAILED    {mutant.name}: doesn't build\n{tail(words)}"
        code, output = run_test(copy, mutant.test, seconds)
    finally:
        for path, text in before.items():
            write(copy, path, text)
    if code == 0 and all_skipped(output):
        return "skipped", f"SKIPPED   {mutant.name}: its test was, which says nothing ({mutant.test})"
    if code == 0:
        return "failed", f"SURVIVED  {mutant.name}: {mutant.says} ({mutant.test})"
    return "passed", f"killed    {mutant.name}  ({mutant.test}: {found_by(output, code)})"


def without_faults(copy, tests, jobs):
    """Seconds that each test takes; None where one failed."""
    took = {}
    words = build(copy, set().union(*map(targets_of, tests)), jobs)
    if words:
        say("the copy doesn't build:\n" + words)
        return None
    for test in tests:
        began = time.monotonic()
        code, output = run_test(copy, test, FIRST_SECONDS)
        took[test] = time.monotonic() - began
        if code != 0:
            say(f"FAILED    {test} without a fault: {found_by(output, code)}\n{tail(output)}")
            return None
    return took


def copies(jobs, tests):
    """Paths of up to date copies, all built, and what each test takes."""
    first = os.path.join(COPIES, "0")
    bring_up_to_date(first)
    took = without_faults(first, tests, CPUS)
    paths = [os.path.join(COPIES, str(n)) for n in range(jobs)]
    for path in paths[1:]:
        if took is not None and not os.path.exists(path):
            shutil.copytree(first, path, symlinks=True)
        bring_up_to_date(path)
    return paths, took


def told(results):
    """Prints what try_out() gives of each, and counts the outcomes."""
    outcomes = collections.Counter()
    for outcome, line in results:
        outcomes[outcome] += 1
        say(line)
    return outcomes


def end(outcomes):
    """Prints the sums. Returns the exit code."""
    if outcomes["skipped"]:
        say(f"{outcomes['skipped']} skipped")
    say(f"{outcomes['passed']} passed, {outcomes['failed']} failed")
    return 1 if outcomes["failed"] else 0


def chosen(names):
    known = {mutant.name: mutant for mutant in MUTANTS}
    for unknown in set(names) - set(known):
        sys.exit(f"mutants: there is no {unknown}")
    return [known[name] for name in names] if names else MUTANTS


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="of faults; all when none is given")
    parser.add_argument("--jobs", type=int, default=CPUS, help="so many faults at a time, a copy of the tree each")
    parser.add_argument("--list", action="store_true", help="the faults, what each breaks and which test finds it")
    parser.add_argument("--check", action="store_true", help="is each text there exactly once? Silent when so")
    return parser.parse_args()


def main():
    args = arguments()
    wrong = list(findings())
    if wrong or args.check:
        for line in wrong:
            print(f"tests/mutants/mutants.py: {line}")
        return 1 if wrong else 0
    mutants = chosen(args.names)
    if args.list:
        for mutant in mutants:
            print(f"{mutant.name}: {mutant.says}\n    {mutant.edits[0][0]}; {mutant.test}")
        return 0
    began = time.monotonic()
    jobs = max(1, min(args.jobs, len(mutants)))
    tests = sorted({mutant.test for mutant in mutants})
    say(f"-- {len(tests)} tests without a fault")
    paths, took = copies(jobs, tests)
    if took is None:
        say(f"0 passed, {len(mutants)} failed")
        return 1
    say(f"-- {len(mutants)} faults, {jobs} at a time, after {time.monotonic() - began:.0f} s")
    free = queue.SimpleQueue()
    for path in paths:
        free.put(path)

    def one(mutant):
        copy = free.get()
        try:
            return try_out(copy, mutant, took[mutant.test] * TIMES + MORE_SECONDS, max(1, CPUS // jobs))
        finally:
            free.put(copy)

    with concurrent.futures.ThreadPoolExecutor(max_workers=jobs) as pool:
        outcomes = told(pool.map(one, mutants))
    say(f"   mutants took {time.monotonic() - began:.0f} s")
    return end(outcomes)


if __name__ == "__main__":
    sys.exit(main())
