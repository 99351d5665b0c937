# SPDX-License-Identifier: BSD-3-Clause
"""Unit tests (cmocka, TAP), and the corpora of the fuzz targets."""
import concurrent.futures
import os
import re
import subprocess
import tempfile
import time

from testrun import reports
from testrun.builds import built
from testrun.process import CPUS, PYTHON, counted, run
from testrun.tally import failed, passed, say, skipped

# Minutes for what takes seconds: a bound for a hang.
PROGRAM_SECONDS = 900

# These take longest and start first, so that no core is idle at the end.
UNIT_FIRST = ["/test_random", "/test_keep_all", "cleaner/test_tables", "/test_overload", "/test_pace", "flashindex/test_tables",
              "/test_memory", "/test_trainer", "/test_reclaim", "/test_threads"]

# Slower programs than this are named, so that somebody looks at them.
SLOW_SECONDS = 20

# One thread and much arithmetic: half of the CPU time of all unit tests in the builds with checks, which leave them out. They run as
# released.
ARITHMETIC = ["flashindex/test_load", "server/store/cleaner/test_tables", "server/store/test_keep_all"]
POWER = "build/release/tests/server/store/test_power"

# What a program says at its end of each test that did (tests/unit/threads.c), and those that may: TSan has nothing to find in the others.
STARTS_THREADS = "# it starts threads: "
ALL_TESTS = "*"
THREADED = "tests/unit/threaded.txt"

TAP = re.compile(r"^(not )?ok \d+(?: - (.*?))?(?:\s*# (SKIP)\s*(.*))?$")
TAP_PLAN = re.compile(r"^1\.\.(\d+)")


def threaded():
    """By program, the names of its tests that start threads."""
    with open(THREADED, encoding="utf-8") as file:
        lines = [line.strip().partition(" ") for line in file if not line.startswith("#")]
    return {program: tests.split(", ") for program, _, tests in lines}


def name_of(program):
    return program.partition("/tests/")[2]


def programs_of(variant):
    """The programs that the sources make, so that one that didn't build is missed. As released all of them; without
    ARITHMETIC in other builds; under TSan those with threads."""
    listed = subprocess.run(["make", "-s", f"VARIANT={variant}", "list-unit-tests"], check=True, capture_output=True,
                            text=True).stdout.split()
    if variant != "release":
        listed = [program for program in listed if name_of(program) not in ARITHMETIC]
    if variant == "tsan":
        names = threaded()
        for name in sorted(set(names) - {name_of(program) for program in listed}):
            failed(f"{THREADED} names a test that isn't there: {name}")
        listed = [program for program in listed if name_of(program) in names]
    return sorted(listed, key=lambda program: (not program.endswith(tuple(UNIT_FIRST)), program))


def without_aslr():
    """TSan of Debian 12 can't map its shadow where the kernel randomises more bits than it knows."""
    command = ["setarch", "-R"]
    try:
        return command if subprocess.run(command + ["true"], capture_output=True).returncode == 0 else []
    except FileNotFoundError:
        return []


def run_program(program, prefix, cpu, *arguments, env=None):
    before = time.monotonic()
    result = run(prefix + [program, *arguments], PROGRAM_SECONDS, dict(reports.options(), CMOCKA_MESSAGE_OUTPUT="TAP", **(env or {})), cpu)
    took = time.monotonic() - before
    if took > SLOW_SECONDS:
        say(f"   {program} took {took:.0f} s")
    return result


def count(name, code, output):
    planned = seen = bad = 0
    left_out = []
    for line in output.splitlines():
        plan = TAP_PLAN.match(line)
        match = TAP.match(line)
        if plan:
            planned += int(plan.group(1))
        if not match:
            continue
        seen += 1
        if match.group(3):  # cmocka says "not ok" of a skipped test
            left_out.append(match.group(4) or match.group(2) or "")
        elif match.group(1):
            bad += 1
            failed(f"{name} {match.group(2) or ''}".rstrip())
        else:
            passed()
    if left_out:
        skipped(name, f"{len(left_out)} of {seen} tests" if len(left_out) > 1 else left_out[0], len(left_out))
    missing = max(0, planned - seen)
    if code != 0 and bad + missing == 0:
        missing = 1  # all tests passed, and then something else was wrong: a leak, a race
    if seen == 0 and missing == 0:
        missing = 1
    if missing:
        failed(f"{name}: {missing} without a result, exit code {code}", output, missing)
    elif bad:
        say(f"   what {name} printed:\n" + "\n".join("  " + line for line in output.splitlines()[-60:]))


def compare_with_list(name, tests, output, whole):
    """tests: those of the program that may start threads. whole: each of them is in this build, and has come to its end."""
    if ALL_TESTS in tests:
        return
    started = {line[len(STARTS_THREADS):] for line in output.splitlines() if line.startswith(STARTS_THREADS)}
    for test in sorted(started - set(tests)):
        failed(f"{name} {test} starts threads: {THREADED} lacks it")
    for test in tests if whole else []:
        if f" - {test}\n" not in output:
            failed(f"{THREADED} names a test that isn't there: {name} {test}")


def unit(variant, names=None):
    """Runs the unit tests of a variant; names: those alone."""
    if not built(variant):
        say("   what did build is run")
    programs = [program for program in programs_of(variant) if names is None or name_of(program) in names]
    present = [program for program in programs if os.access(program, os.X_OK)]
    for program in sorted(set(programs) - set(present)):
        failed(f"{program}: not built")
    say(f"-- {len(present)} unit test programs ({variant})")
    prefix, cpu, known = without_aslr() if variant == "tsan" else [], counted(), threaded()

    def run_tests(program):
        tests = known[name_of(program)] if variant == "tsan" else [ALL_TESTS]
        return run_program(program, prefix, cpu, env={} if ALL_TESTS in tests else {"UNIT_TESTS": ",".join(tests)})

    # The sanitizers' own threads and memory leave no room for more than the machine has.
    with concurrent.futures.ThreadPoolExecutor(max_workers=CPUS) as pool:
        for program, (code, output) in zip(present, pool.map(run_tests, present)):
            count(f"{name_of(program)} ({variant})", code, output)
            compare_with_list(name_of(program), known.get(name_of(program), []), output, variant == "tsan" and code == 0)


def power():
    """Cuts the power at each event, where the run of all unit tests does it at every few."""
    if not built("release"):
        say("   what did build is run")
    say("-- the power is cut at each event")
    if not os.access(POWER, os.X_OK):
        failed(f"{POWER} at each event: not built")
        return
    count(f"{name_of(POWER)} at each event (release)", *run_program(POWER, [], counted(), env={"POWER_STEP": "1"}))


# Tests of the store whose cases hold with either index.
FRUGAL = ("test_random", "test_threads", "test_store", "test_power", "report/test_walk", "cleaner/test_load_items", "state/test_restart")


FRUGAL_GOALS = [f"build/debug/tests/server/store/{test}" for test in FRUGAL]
FRUGAL_INDEXES = {"frugal": "frugal index", "chain": "frugal index with a chain"}


def frugal_environment(index):
    return {"STORE_INDEX": index, "STORE_OPERATIONS": "20000"}


def frugal():
    """Small objects without slots (--index=frugal)."""
    if not built("debug"):
        say("   what did build is run")
    say(f"-- {len(FRUGAL_GOALS)} unit test programs with the frugal index")
    for name in FRUGAL_GOALS:
        if not os.access(name, os.X_OK):
            failed(f"{name}: not built")
            continue
        for index, text in FRUGAL_INDEXES.items():
            count(f"{name_of(name)} ({text})", *run_program(name, [], counted(), env=frugal_environment(index)))


def replay(name, seeds, cpu):
    program = f"build/asan/tests/fuzz/{name}"
    folders = [f for f in (f"tests/fuzz/corpus/{name}", f"{seeds}/{name}") if os.path.isdir(f)]
    return run_program(program, [], cpu, *folders) if os.access(program, os.X_OK) else (1, "not built")


def fuzz():
    """Replays the inputs that fuzzing found worth keeping, and the protocol tests' sessions, without libFuzzer."""
    if not built("asan"):
        say("   what did build is run")
    names = sorted(f[len("fuzz_"):-len(".c")] for f in os.listdir("tests/fuzz") if re.fullmatch(r"fuzz_\w+\.c", f))
    say(f"-- {len(names)} fuzz targets replay their corpora (asan)")
    cpu = counted()
    with tempfile.TemporaryDirectory() as seeds, concurrent.futures.ThreadPoolExecutor(max_workers=CPUS) as pool:
        code, output = run([PYTHON, "tests/fuzz/seeds.py", seeds], PROGRAM_SECONDS)
        if code != 0:
            failed("tests/fuzz/seeds.py", output)
        for name, (code, output) in zip(names, pool.map(lambda name: replay(name, seeds, cpu), names)):
            count(f"fuzz/{name} (asan)", code, output)
