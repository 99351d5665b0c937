# SPDX-License-Identifier: BSD-3-Clause
"""Tests with programs of their own that run daemons: pytest's, the clients', the comparison, the model, the never-stale checker, the
package, other machines."""
import concurrent.futures
import os
import re
import tempfile
import xml.etree.ElementTree

from testrun.builds import built
from testrun.process import CPUS, PYTHON, counted, run
from testrun.tally import failed, passed, say, skipped, tried_again
from testrun.units import without_aslr

# Bounds for a hang, five and more times what each takes on two idle cores.
PROTOCOL_SECONDS = 2400
COMPARE_SECONDS = 3000
UPSTREAM_SECONDS = 1500
NODES_SECONDS = 600
CLIENTS_SECONDS = 1800
MODEL_SECONDS = 1500
STALE_SECONDS = 1800
PACKAGE_SECONDS = 1200
OTHER_PACKAGE_SECONDS = 3600  # where it is built too
ARM64_SECONDS = 7200

# Seconds for each configuration: enough for the slower builds to move every object too.
MODEL_EACH_SECONDS = {"debug": 4, "asan": 8, "tsan": 12}

CLIENTS_LINE = re.compile(r"^(PASS|FAIL|skip) (.*?)(?:: passed (\d+) failed (\d+).*)?$")
LINE = re.compile(r"^(PASS|FAIL|SKIP|skip)\b[:\s]*(.*)")

LINE_MOST = 160  # characters of a test that passed; the model tells a dozen figures more

# The slowest cases are named, so that somebody looks at them.
SLOW_SECONDS, SLOW_MOST = 5, 12

# Tests of tools, rules and dashboard say nothing more about the daemon under ASan.
ASAN_LEFT_OUT = ["replay", "tracegen", "inspect", "bench", "bench_flash", "bench_device", "seccomp", "core", "boards",
                 "dashboard", "prometheus"]


def program(variant, name="flashield"):
    return os.path.abspath(f"build/{name}" if variant == "release" else f"build/{variant}/{name}")


class Reports:
    """Sanitizers report to files, as daemons are ended by their tests; any file is a failure. Use with "with"."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        os.chmod(self.folder.name, 0o777)  # the daemon may have become another user
        log = f"log_path={os.path.join(self.folder.name, 'report')}"
        return {
            "ASAN_OPTIONS": f"detect_stack_use_after_return=1:strict_string_checks=1:{log}",
            "UBSAN_OPTIONS": f"print_stacktrace=1:{log}",
            "TSAN_OPTIONS": f"second_deadlock_stack=1:{log}",
        }

    def __exit__(self, *_):
        for report in sorted(os.listdir(self.folder.name)):
            with open(os.path.join(self.folder.name, report), encoding="utf-8", errors="replace") as opened:
                failed(f"{self.name}: a sanitizer's report", opened.read())
        self.folder.cleanup()


# ---- pytest ----------------------------------------------------------------------------------------

# A machine that stalls can make a wait run out. Such a test runs once more, and the last lines of the run name it. Whatever else is
# wrong (a value, an answer, the end of a daemon, a sanitizer's report) is a failure at once.
WAITS = r"waited [0-9.]+ s for|no object got to flash|timed out"
AGAIN = re.compile(r"^RERUN (\S.*)$", re.MULTILINE)


def pytest(name, folder, seconds, processes, *options, env=None):
    say(f"-- {name}")
    with tempfile.TemporaryDirectory() as work:
        report = os.path.join(work, "junit.xml")
        code, output = run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "-n",
                            str(processes), "--reruns", "1", "--only-rerun", WAITS, "-r", "R", f"--junitxml={report}", *options,
                            folder], seconds, env)
        for title in sorted(set(AGAIN.findall(output))):
            tried_again(f"{title} ({name})")
        count_cases(name, report, code, output)


def count_cases(name, report, code, output):
    bad = 0
    try:
        cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        failed(f"{name}: no report, exit code {code}", output)
        return
    slow = sorted(((float(case.get("time") or 0), case) for case in cases), key=lambda pair: -pair[0])[:SLOW_MOST]
    for seconds, case in slow:
        if seconds > SLOW_SECONDS:
            say(f"   {case.get('classname')}.{case.get('name')} took {seconds:.0f} s")
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


def protocol(variant, *options):
    name = f"protocol tests ({variant})"
    if not built(variant):
        failed(f"{name}: not run, as the build failed")
        return
    with Reports(name) as env:
        pytest(name, "tests/protocol", PROTOCOL_SECONDS, CPUS + 1, "--dist", "loadfile", *options,
               env=dict(env, FLASHIELD_BIN=program(variant)))


# Files with tests of the flash that hold with either index.
FRUGAL = ("core", "place", "meta_place", "large", "dump", "restart", "kills", "move", "stream", "contents", "binary", "metrics",
          "pressure", "restart_time")


def with_frugal(name, *files):
    if not built("release"):
        failed(f"{name}: not run, as the build failed")
        return
    with Reports(name) as env:
        # Most gets read twice, and a read that comes too late on a busy machine would be a miss.
        pytest(name, files[0], PROTOCOL_SECONDS, CPUS + 1, "--dist", "loadfile", *files[1:],
               env=dict(env, FLASHIELD_BIN=program("release"), FLASHIELD_FLAGS="--index=frugal --flash-read-timeout=2m"))


def frugal():
    with_frugal("protocol tests with the frugal index", *[f"tests/protocol/test_{file}.py" for file in FRUGAL])


def frugal_all():
    with_frugal("all protocol tests with the frugal index", "tests/protocol")


def nodes():
    if not built("release"):
        failed("several nodes: not run, as the build failed")
        return
    pytest("several nodes", "tests/nodes", NODES_SECONDS, CPUS)


# ---- programs that print a line for each of their tests --------------------------------------------


class Block:
    """A line of a test, and what the program printed below it."""

    def __init__(self, line):
        self.line = line
        self.more = []


def blocks(output, pattern):
    """Returns the output before the first test, and a block for each test."""
    head, found = [], []
    for line in output.splitlines():
        if pattern.match(line):
            found.append(Block(line))
        else:
            (found[-1].more if found else head).append(line)
    return "\n".join(head), found


def count_lines(name, code, output, pattern=LINE):
    """A test that failed is told with its own text. A line of the clients says how many it counted."""
    bad = 0
    head, found = blocks(output, pattern)
    for block in found:
        word, title, *numbers = pattern.match(block.line).groups()
        if word.lower() == "skip":
            skipped(f"{title} ({name})")
            continue
        passed(int(numbers[0] or 0) if numbers else word == "PASS")
        if word == "PASS":
            say(f"   {block.line[:LINE_MOST]}")
            continue
        wrong = max(int(numbers[1] or 0), 1) if numbers else 1
        bad += wrong
        failed(f"{title} ({name})", "\n".join([block.line, *block.more]), wrong)
    if not found or (code != 0 and not bad):
        more = found[-1].more if found else []
        failed(f"{name}: {len(found)} tests, exit code {code}", "\n".join([head, *more]))


def is_missing(name):
    """Was the release build, which these tests are about, not made?"""
    if built("release"):
        return False
    failed(f"{name}: not run, as the build failed")
    return True


def count_comparison(name, code, output):
    """The last line is the sum."""
    count_lines(name, code, output)
    say(f"   {output.rstrip().rpartition(chr(10))[2]}")


def compare():
    name = "comparison with memcached"
    if is_missing(name):
        return
    say(f"-- {name}")
    count_comparison(name, *run([PYTHON, "tests/compare/run.py"], COMPARE_SECONDS))


def upstream_runs(runs):
    """memcached's own tests: runs are (release, place). They go side by side, as these tests mostly wait."""
    name = "memcached's own tests"
    if is_missing(name):
        return
    say(f"-- {name}")
    cpu = counted()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        outcomes = pool.map(lambda pair: run([PYTHON, "tests/upstream/run.py", "--release", pair[0], "--place", pair[1]],
                                             UPSTREAM_SECONDS, cpu=cpu), runs)
        for pair, outcome in zip(runs, outcomes):
            count_comparison(f"{name}, {', '.join(pair)}", *outcome)


def upstream():
    upstream_runs([("newest", "dram"), ("debian", "dram")])


def upstream_places():
    for place in ("flash", "full"):
        upstream_runs([("newest", place), ("debian", place)])


def clients(variant, *options):
    name = f"clients ({variant})"
    if not built(variant):
        failed(f"{name}: not run, as the build failed")
        return
    say(f"-- {name}")
    with Reports(name) as env:
        code, output = run([PYTHON, "tests/clients/run.py", *options], CLIENTS_SECONDS,
                           dict(env, FLASHIELD_BIN=program(variant)))
        count_lines(name, code, output, CLIENTS_LINE)


def clients_beside():
    """Their counts beside those of both memcacheds."""
    for release in ("debian", "newest"):
        clients("release", "--beside", release)


def options_newest():
    """The tests of options, which compare with Debian's memcached, with the newest one."""
    name = "options beside the newest memcached"
    if is_missing(name):
        return
    code, output = run([PYTHON, "-c", "import source; print(source.built())"], UPSTREAM_SECONDS, {"PYTHONPATH": "tests/upstream"})
    if code != 0:
        skipped(f"{name}: {output.rstrip().rpartition(chr(10))[2]}")
        return
    with Reports(name) as env:
        pytest(name, "tests/protocol/test_options.py", PROTOCOL_SECONDS, CPUS + 1,
               env=dict(env, FLASHIELD_BIN=program("release"), MEMCACHED_BIN=os.path.join(output.strip(), "memcached")))


def model(variant):
    name = f"model test ({variant})"
    if not built(variant):
        failed(f"{name}: not run, as the build failed")
        return
    say(f"-- {name}")
    with Reports(name) as env:
        prefix = without_aslr() if variant == "tsan" else []
        code, output = run([*prefix, PYTHON, "tests/model/run.py", "--variant", variant, "--seconds",
                            str(MODEL_EACH_SECONDS[variant]), "--jobs", str(CPUS)], MODEL_SECONDS, env)
        count_lines(name, code, output)


def stale(*names):
    name = "never-stale checker"
    if not built("debug"):
        failed(f"{name}: not run, as the build failed")
        return
    say(f"-- {name}: {' '.join(names) or 'all'}")
    code, output = run([PYTHON, "tests/stale/run.py", "--variant", "debug", "--seconds", "6", *names], STALE_SECONDS)
    count_lines(name, code, output)


def package():
    say("-- the Debian package in fresh systems")
    code, output = run([PYTHON, "tests/package/run.py"], PACKAGE_SECONDS)
    count_lines("the Debian package", code, output)


def other_package(release):
    name = f"the package built and installed on {release}"
    say(f"-- {name}")
    code, output = run([PYTHON, "tests/package/run.py", "--release", release], OTHER_PACKAGE_SECONDS)
    count_lines(name, code, output)


def arm64(part):
    name = f"built for arm64 ({part})"
    say(f"-- {name}")
    code, output = run([PYTHON, "tests/arm64/run.py", part], ARM64_SECONDS)
    count_lines(name, code, output)
