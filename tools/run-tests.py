#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs every test, for "make test". The last line is "N passed, N failed"; exit code 1 on failures.

Steps: builds without a warning under gcc and clang; make check; the unit tests as they are, under
ASan+UBSan and under TSan; the corpora of the fuzz targets (tests/fuzz); the protocol tests (pytest), also under ASan+UBSan; the comparison with memcached
(tests/compare/run.py); several nodes behind a proxy and hashing clients (tests/nodes, pytest); other people's
clients (tests/clients/run.py), also under ASan+UBSan; the model test (tests/model/run.py); the Debian package in fresh systems (tests/package/run.py). Each
step is bounded in time, and so is the whole: what is left then counts as failed.

Names on the command line choose steps: build check unit asan fuzz tsan protocol protocol-asan compare nodes clients
clients-asan model.
"""
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

CPUS = os.cpu_count() or 1
WHOLE_SECONDS = int(os.environ.get("TEST_SECONDS", "2400"))
BUILD_SECONDS = 600
UNIT_SECONDS = {"release": 120, "asan": 240, "tsan": 240}
PROTOCOL_SECONDS = 420
COMPARE_SECONDS = 300
COMPARE_SCRIPT = "tests/compare/run.py"
NODES_SECONDS = 180
CLIENTS_SECONDS = 420
CLIENTS_SCRIPT = "tests/clients/run.py"
MODEL_SECONDS = 300
PACKAGE_SECONDS = 420
PACKAGE_SCRIPT = "tests/package/run.py"
# For each configuration: enough for the slower builds to move every object too.
MODEL_EACH_SECONDS = {"debug": 6, "asan": 8, "tsan": 12}
MODEL_SCRIPT = "tests/model/run.py"
STEPS = ["build", "check", "unit", "asan", "fuzz", "tsan", "protocol", "protocol-asan", "compare", "nodes", "clients", "clients-asan", "model", "package"]

# These take longest and start first, so that no core is idle at the end.
UNIT_FIRST = ["store/test_random", "store/test_memory", "classifier/test_admission", "store/test_reclaim", "store/test_modify"]

# Slower programs than this are named, so that somebody looks at them.
SLOW_SECONDS = 20

# One thread and minutes of arithmetic: TSan has nothing to find there.
TSAN_LEFT_OUT = ["flashindex/test_load", "store/test_index_size", "store/test_keep_all", "store/test_pace"]

# Plain output of a test is shown only when it failed, and then its end.
SHOWN_LINES = 60

TAP = re.compile(r"^(not )?ok \d+(?: - (.*?))?(?:\s*# (SKIP)\s*(.*))?$")
TAP_PLAN = re.compile(r"^1\.\.(\d+)")
CLIENTS_LINE = re.compile(r"^(PASS|FAIL|skip) (.*?)(?:: passed (\d+) failed (\d+).*)?$")
MODEL_LINE = re.compile(r"^(PASS|FAIL|SKIP|skip)\b[:\s]*(.*)")

started = time.monotonic()
counts = {"passed": 0, "failed": 0, "skipped": 0}


def say(text):
    print(text, flush=True)


def left(seconds):
    """The bound of a step: its own, or what the whole has left."""
    return max(1.0, min(seconds, WHOLE_SECONDS - (time.monotonic() - started)))


def tail(output):
    lines = output.rstrip().splitlines()
    cut = ["  ..."] if len(lines) > SHOWN_LINES else []
    return "\n".join(cut + ["  " + line for line in lines[-SHOWN_LINES:]])


def passed(n=1):
    counts["passed"] += n


def failed(name, output="", n=1):
    counts["failed"] += n
    say(f"FAILED {name}")
    if output.strip():
        say(tail(output))


def skipped(name, why=""):
    counts["skipped"] += 1
    say(f"skipped {name}{': ' + why if why else ''}")


def run(command, seconds, env=None):
    """(exit code, output). A command that takes too long is ended with all its children: 124."""
    full = dict(os.environ, **(env or {}))
    for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL"):  # the outer make's job server isn't ours
        full.pop(name, None)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               env=full, text=True, errors="replace", start_new_session=True)
    try:
        output, _ = process.communicate(timeout=left(seconds))
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return 124, output + f"\nended after {seconds:.0f} s\n"


def make(*words, seconds=BUILD_SECONDS):
    return run(["make", f"-j{CPUS}", "-k", "--no-print-directory", *words], seconds)


def build(name, *words):
    say(f"-- {name}")
    code, output = make("WERROR=1", *words)
    if code == 0:
        passed()
        return True
    failed(name, "\n".join(line for line in output.splitlines() if not re.match(r"^  (CC|AR|LD) ", line)))
    return False


def step_build():
    build("builds under gcc without a warning", "all")
    build("builds under clang without a warning", "CC=clang", "all")


def step_check():
    say("-- check")
    code, output = make("check")
    if code == 0 and not output.strip():
        passed()
    else:
        failed("make check", output)


def unit_programs(variant):
    """The programs that the sources make, so that one that didn't build is missed."""
    listed = subprocess.run(["make", "-s", f"VARIANT={variant}", "list-unit-tests"], check=True, capture_output=True,
                            text=True).stdout
    return sorted(listed.split())


def without_aslr():
    """TSan of Debian 12 can't map its shadow where the kernel randomises more bits than it knows."""
    command = ["setarch", "-R"]
    try:
        return command if subprocess.run(command + ["true"], capture_output=True).returncode == 0 else []
    except FileNotFoundError:
        return []


def run_unit(program, variant, *arguments):
    env = {
        "CMOCKA_MESSAGE_OUTPUT": "TAP",
        "ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": "second_deadlock_stack=1",
    }
    prefix = without_aslr() if variant == "tsan" else []
    before = time.monotonic()
    result = run(prefix + [program, *arguments], UNIT_SECONDS[variant], env)
    took = time.monotonic() - before
    if took > SLOW_SECONDS:
        say(f"   {program} took {took:.0f} s")
    return program, result


def count_unit(program, variant, code, output):
    name = f"{'/'.join(program.split('/')[-2:])} ({variant})"
    planned = seen = bad = 0
    for line in output.splitlines():
        plan = TAP_PLAN.match(line)
        match = TAP.match(line)
        if plan:
            planned += int(plan.group(1))
        if not match:
            continue
        seen += 1
        if match.group(3):  # cmocka says "not ok" of a skipped test
            skipped(f"{name} {match.group(4) or match.group(2) or ''}".rstrip())
        elif match.group(1):
            bad += 1
        else:
            passed()
    missing = max(0, planned - seen)
    if code != 0 and bad + missing == 0:
        missing = 1  # all tests passed, and then something else was wrong: a leak, a race
    if seen == 0 and missing == 0:
        missing = 1
    if bad + missing:
        failed(f"{name}: {bad} failed, {missing} without a result, exit code {code}", output, bad + missing)


def unit(variant):
    if not build(f"unit tests build ({variant})", f"VARIANT={variant}", "unit-build"):
        say("   what did build is run")
    programs = unit_programs(variant)
    if variant == "tsan":
        programs = [p for p in programs if not p.endswith(tuple(TSAN_LEFT_OUT))]
    programs.sort(key=lambda p: not p.endswith(tuple(UNIT_FIRST)))
    present = [p for p in programs if os.access(p, os.X_OK)]
    for program in sorted(set(programs) - set(present)):
        failed(f"{program}: not built")
    say(f"-- {len(present)} unit test programs ({variant})")
    # The sanitizers' own threads and memory leave no room for more than the machine has.
    with concurrent.futures.ThreadPoolExecutor(max_workers=CPUS) as pool:
        for program, (code, output) in pool.map(lambda p: run_unit(p, variant), present):
            count_unit(program, variant, code, output)


def step_unit():
    unit("release")


def step_asan():
    unit("asan")


def step_fuzz():
    """What fuzzing has found worth keeping, and the protocol tests' sessions, without libFuzzer."""
    if not build("fuzz targets build (asan)", "VARIANT=asan", "fuzz-build"):
        say("   what did build is run")
    names = sorted(f[len("fuzz_"):-len(".c")] for f in os.listdir("tests/fuzz") if re.fullmatch(r"fuzz_\w+\.c", f))
    say(f"-- {len(names)} fuzz targets replay their corpora (asan)")
    with tempfile.TemporaryDirectory() as seeds, concurrent.futures.ThreadPoolExecutor(max_workers=CPUS) as pool:
        code, output = run([sys.executable, "tests/fuzz/seeds.py", seeds], UNIT_SECONDS["release"])
        if code != 0:
            failed("tests/fuzz/seeds.py", output)
        runs = pool.map(lambda name: replay(name, seeds), names)
        for name, (code, output) in runs:
            count_unit(f"fuzz/{name}", "asan", code, output)


def replay(name, seeds):
    program = f"build/asan/tests/fuzz/{name}"
    folders = [f for f in (f"tests/fuzz/corpus/{name}", f"{seeds}/{name}") if os.path.isdir(f)]
    return name, run_unit(program, "asan", *folders)[1] if os.access(program, os.X_OK) else (1, "not built")


def step_tsan():
    unit("tsan")


def sanitizer_options(folder):
    """Reports go to files, as daemons are ended by their tests; any file is a failure."""
    log = f"log_path={os.path.join(folder, 'report')}"
    return {
        "ASAN_OPTIONS": f"detect_stack_use_after_return=1:strict_string_checks=1:{log}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:{log}",
        "TSAN_OPTIONS": f"second_deadlock_stack=1:{log}",
    }


def count_reports(name, folder):
    for report in sorted(os.listdir(folder)):
        with open(os.path.join(folder, report), encoding="utf-8", errors="replace") as opened:
            failed(f"{name}: a sanitizer's report", opened.read())


def protocol(variant, seconds, *pytest_options):
    if not any(f.startswith("test_") for f in os.listdir("tests/protocol")):
        return
    name = f"protocol tests ({variant})"
    if variant != "release" and not build(f"builds ({variant})", f"VARIANT={variant}", "all"):
        return
    say(f"-- {name}")
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "junit.xml")
        reports = os.path.join(folder, "sanitizer")
        os.mkdir(reports)
        os.chmod(folder, 0o755)
        os.chmod(reports, 0o777)  # the daemon may have become another user
        env = dict(sanitizer_options(reports))
        if variant != "release":
            env["FLASHIELD_BIN"] = os.path.abspath(f"build/{variant}/flashield")
        code, output = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short",
                            "-n", str(CPUS + 1), "--dist", "loadfile",
                            f"--junitxml={report}", *pytest_options, "tests/protocol"], seconds, env)
        count_protocol(name, report, code, output)
        count_reports(name, reports)


def count_protocol(name, report, code, output):
    bad = 0
    try:
        cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        failed(f"{name}: no report", output)
        return
    for case in cases:
        wrong = [case.find(kind) for kind in ("failure", "error") if case.find(kind) is not None]
        title = f"{case.get('classname')}.{case.get('name')}"
        if wrong:
            bad += 1
            failed(f"{title} ({name})", wrong[0].text or wrong[0].get("message") or "")
        elif case.find("skipped") is not None:
            skipped(title, case.find("skipped").get("message") or "")
        else:
            passed()
    if code != 0 and bad == 0:
        failed(f"{name}: exit code {code}", output)


def step_protocol():
    protocol("release", PROTOCOL_SECONDS)


def step_protocol_asan():
    # The tools' own tests are left out, and those of rules and dashboard: they say nothing more about the daemon.
    protocol("asan", PROTOCOL_SECONDS, "--ignore=tests/protocol/test_replay.py",
             "--ignore=tests/protocol/test_tracegen.py", "--ignore=tests/protocol/test_inspect.py",
             "--ignore=tests/protocol/test_bench.py", "--ignore=tests/protocol/test_bench_flash.py",
             "--ignore=tests/protocol/test_seccomp.py", "--ignore=tests/protocol/test_core.py", "--ignore=tests/protocol/test_bench_device.py", "--ignore=tests/protocol/test_boards.py",
             "--ignore=tests/protocol/test_dashboard.py", "--ignore=tests/protocol/test_prometheus.py")


def step_compare():
    say("-- comparison with memcached")
    code, output = run([sys.executable, COMPARE_SCRIPT], COMPARE_SECONDS)
    count_lines("comparison with memcached", code, output)
    say(f"   {output.rstrip().rpartition(chr(10))[2]}")


def step_nodes():
    name = "several nodes"
    if not build(f"builds ({name})", "nodes"):
        return
    say(f"-- {name}")
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "junit.xml")
        code, output = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "-n", str(CPUS),
                            f"--junitxml={report}", "tests/nodes"], NODES_SECONDS)
        count_protocol(name, report, code, output)


def clients(variant, *options):
    name = f"clients ({variant})"
    if variant != "release" and not build(f"builds ({variant})", f"VARIANT={variant}", "all"):
        return
    say(f"-- {name}")
    with tempfile.TemporaryDirectory() as reports:
        os.chmod(reports, 0o777)  # the daemon may have become another user
        folder = "build" if variant == "release" else f"build/{variant}"
        env = dict(sanitizer_options(reports), FLASHIELD_BIN=os.path.abspath(f"{folder}/flashield"))
        code, output = run([sys.executable, CLIENTS_SCRIPT, *options], CLIENTS_SECONDS, env)
        count_clients(name, code, output)
        count_reports(name, reports)


def count_clients(name, code, output):
    bad = seen = 0
    for line in output.splitlines():
        match = CLIENTS_LINE.match(line)
        if not match:
            continue
        seen += 1
        if match.group(1) == "skip":
            skipped(match.group(2))
            continue
        say(f"   {line}")
        passed(int(match.group(3) or 0))
        if match.group(1) == "FAIL":
            bad += max(int(match.group(4) or 0), 1)
    if bad or code != 0 or not seen:
        failed(f"{name}: {bad} failed, exit code {code}", output, max(bad, 1))


def step_clients():
    clients("release")


def step_clients_asan():
    clients("asan", "--place", "dram")


def model(variant):
    name = f"model test ({variant})"
    if not build(f"builds ({variant})", f"VARIANT={variant}", "model"):
        return
    say(f"-- {name}")
    with tempfile.TemporaryDirectory() as reports:
        os.chmod(reports, 0o777)  # the daemon may have become another user
        prefix = without_aslr() if variant == "tsan" else []
        code, output = run(prefix + [sys.executable, MODEL_SCRIPT, "--variant", variant, "--seconds",
                                     str(MODEL_EACH_SECONDS[variant]), "--jobs", str(CPUS)], MODEL_SECONDS, sanitizer_options(reports))
        count_lines(name, code, output)
        count_reports(name, reports)


def count_lines(name, code, output):
    bad = seen = 0
    for line in output.splitlines():
        match = MODEL_LINE.match(line)
        if not match:
            continue
        seen += 1
        say(f"   {line}")
        if match.group(1) == "PASS":
            passed()
        elif match.group(1) == "FAIL":
            bad += 1
        else:
            skipped(match.group(2))
    if bad or code != 0 or not seen:
        failed(f"{name}: {bad} failed, exit code {code}", output, max(bad, 1))


def step_model():
    if not os.path.exists(MODEL_SCRIPT):
        return
    for variant in ("debug", "asan", "tsan"):
        model(variant)


def step_package():
    say("-- the Debian package in fresh systems")
    code, output = run([sys.executable, PACKAGE_SCRIPT], PACKAGE_SECONDS)
    count_lines("the Debian package", code, output)


def main():
    steps = sys.argv[1:] or STEPS
    for unknown in set(steps) - set(STEPS):
        sys.exit(f"run-tests: {unknown} is not one of {' '.join(STEPS)}")
    for step in steps:
        if time.monotonic() - started > WHOLE_SECONDS:
            failed(f"{step}: not run, as the {WHOLE_SECONDS} s for all tests are over")
            continue
        before = time.monotonic()
        globals()[f"step_{step.replace('-', '_')}"]()
        say(f"   {step} took {time.monotonic() - before:.0f} s")
    if counts["skipped"]:
        say(f"{counts['skipped']} skipped")
    say(f"{counts['passed']} passed, {counts['failed']} failed")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    sys.exit(main())
