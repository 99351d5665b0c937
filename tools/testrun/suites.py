# SPDX-License-Identifier: BSD-3-Clause
"""Tests with programs of their own that run daemons: pytest's, the clients', the comparison, the model, the never-stale checker, the
package, other machines."""
import concurrent.futures
import os

from testrun.builds import built
from testrun.lines import COUNTED_LINE, Program
from testrun.process import CPUS, PYTHON, counted, run
from testrun.pytests import Pytest
from testrun.tally import failed, passed, say, skipped
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
SCHED_SECONDS = 600
OTHER_PACKAGE_SECONDS = 3600  # where it is built too
ARM64_SECONDS = 7200

# Seeds of the scheduler: always the same, and as many as CPU seconds allow from a number on that the commit gives.
SCHED_SEEDS = 200
SCHED_MORE_SECONDS = 15

# Seconds for each configuration: enough for the slower builds to move every object too.
MODEL_EACH_SECONDS = {"debug": 4, "asan": 8, "tsan": 12}

# The kernel's rules, Prometheus and the dashboard say nothing more under ASan, and neither do tests of tools.
ASAN_LEFT_OUT = ["seccomp", "core", "dashboard", "prometheus"]

# What .ci/run leaves to "make test-all": tests of the flash, whose code has unit tests under ASan; ...
ASAN_ENGINE = ["allocation", "bad_drive", "faults", "filter_units", "journal", "journal_faults", "keep_all", "kills", "memory", "model", "move",
               "place", "pressure", "region_room", "resident", "restart", "restart_time", "slowdrive", "sweep", "wall_clock"]
# ... all but these configurations of the model, which differ in threads and in what they share: TSan takes half a minute of CPU time for
# each; ...
MODEL_TSAN = ["plain", "frugal", "promote-sketch", "race", "expiry", "everything"]
# ... and all but one in so many sessions with Debian's memcached.
COMPARE_DEBIAN = 4


def program(variant, name="flashield"):
    return os.path.abspath(f"build/{name}" if variant == "release" else f"build/{variant}/{name}")


def is_missing(name, *variants):
    """Says what the tests lack; True if a build that they are about was not made."""
    if all([built(variant) for variant in variants]):
        return False
    failed(f"{name}: not run, as the build failed")
    return True


# ---- pytest ----------------------------------------------------------------------------------------


def protocol(variant, *options, tests=("tests/protocol",)):
    name = f"protocol tests ({variant})"
    if is_missing(name, variant, "debug"):
        return
    say(f"-- {name}")
    env = {"FLASHIELD_BIN": program(variant), "FLASHIELD_FAULTS_BIN": program("debug")}
    Pytest(name, PROTOCOL_SECONDS, CPUS + 1, "--dist", "loadfile", *options, env=env).run(*tests)


def protocol_asan(left_out=()):
    protocol("asan", "-m", "not tools", *[f"--ignore=tests/protocol/test_{name}.py" for name in [*ASAN_LEFT_OUT, *left_out]])


# Files with tests of the flash that hold with either index.
FRUGAL = ("core", "place", "meta_place", "large", "dump", "restart", "kills", "move", "stream", "contents", "binary", "metrics",
          "pressure", "restart_time")


def with_frugal(name, *tests):
    if is_missing(name, "release", "debug"):
        return
    say(f"-- {name}")
    # Most gets read twice, and a read that comes too late on a busy machine would be a miss.
    env = {"FLASHIELD_BIN": program("release"), "FLASHIELD_FLAGS": "--index=frugal --flash-read-timeout=2m"}
    Pytest(name, PROTOCOL_SECONDS, CPUS + 1, "--dist", "loadfile", env=env).run(*tests)


def frugal():
    with_frugal("protocol tests with the frugal index", *[f"tests/protocol/test_{file}.py" for file in FRUGAL])


def frugal_all():
    with_frugal("all protocol tests with the frugal index", "tests/protocol")


def nodes():
    name = "several nodes"
    if is_missing(name, "release"):
        return
    say(f"-- {name}")
    Pytest(name, NODES_SECONDS, CPUS).run("tests/nodes")


def runner():
    """The tests of this runner itself."""
    say("-- the outcomes of tests")
    Pytest("the outcomes of tests", NODES_SECONDS, 0).run("tests/testrun")


def options_newest():
    """The tests of options, which compare with Debian's memcached, with the newest one."""
    name = "options beside the newest memcached"
    if is_missing(name, "release"):
        return
    code, output = run([PYTHON, "-c", "import source; print(source.built())"], UPSTREAM_SECONDS, {"PYTHONPATH": "tests/upstream"})
    if code != 0:
        skipped(f"{name}: {output.rstrip().rpartition(chr(10))[2]}")
        return
    say(f"-- {name}")
    env = {"FLASHIELD_BIN": program("release"), "MEMCACHED_BIN": os.path.join(output.strip(), "memcached")}
    Pytest(name, PROTOCOL_SECONDS, CPUS + 1, env=env).run("tests/protocol/test_options.py")


# ---- programs that print a line for each of their tests --------------------------------------------


def compare(*options):
    name = "comparison with memcached"
    if is_missing(name, "release", "debug"):
        return
    say(f"-- {name}")
    env = {"FLASHIELD_BIN": program("release"), "FLASHIELD_FAULTS_BIN": program("debug")}
    Program(name, COMPARE_SECONDS, env, sum_line=True).run([PYTHON, "tests/compare/run.py", *options])


def compare_most():
    compare("--release", "newest")
    compare("--release", "debian", "--one-in", str(COMPARE_DEBIAN))


def upstream_runs(runs):
    """memcached's own tests: runs are (release, place). They go side by side, as these tests mostly wait."""
    name = "memcached's own tests"
    if is_missing(name, "release"):
        return
    say(f"-- {name}")
    cpu = counted()
    programs = [Program(f"{name}, {release}, {place}", UPSTREAM_SECONDS, pattern=COUNTED_LINE, sum_line=True) for release, place in runs]
    commands = [[PYTHON, "tests/upstream/run.py", "--release", release, "--place", place] for release, place in runs]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        for one, outcome in zip(programs, pool.map(lambda one, command: one.outcome(command, cpu), programs, commands)):
            one.count(*outcome)


def upstream():
    upstream_runs([("newest", "dram"), ("debian", "dram")])


def upstream_places():
    for place in ("flash", "full"):
        upstream_runs([("newest", place), ("debian", place)])


def clients(variant, *options):
    name = f"clients ({variant})"
    if is_missing(name, variant, "debug"):
        return
    say(f"-- {name}")
    env = {"FLASHIELD_BIN": program(variant), "FLASHIELD_FAULTS_BIN": program("debug")}
    Program(name, CLIENTS_SECONDS, env, COUNTED_LINE).run([PYTHON, "tests/clients/run.py", *options])


def changed_results():
    """The runners of other people's tests, with some results changed: each has to be told as a failure."""
    name = "changed results are told"
    if is_missing(name, "release"):
        return
    say(f"-- {name}")
    for title, command in (("clients", ["tests/clients/run.py", "--wrong", "2", "--place", "dram", "memccapable", "python-memcached"]),
                           ("memcached's own tests", ["tests/upstream/run.py", "--wrong", "500", "--only", r"^(getset|binary)\.t$"])):
        code, output = run([PYTHON, *command], CLIENTS_SECONDS, {"FLASHIELD_BIN": program("release")})
        if code == 0:
            passed()
        else:
            failed(f"{name}: {title}", output)


def clients_beside():
    """Their counts beside those of both memcacheds."""
    for release in ("debian", "newest"):
        clients("release", "--beside", release)


def commit_seed():
    """A number that the commit gives, or None where none is known; far from the fixed seeds."""
    code, output = run(["git", "rev-parse", "HEAD"], 60)
    return int(output[:7], 16) + 1000000 if code == 0 else None


def sched():
    name = "the engine under a seeded scheduler"
    if is_missing(name, "sched"):
        return
    say(f"-- {name}")
    Program(name, SCHED_SECONDS).run(["build/sched/sched", "1", str(SCHED_SEEDS)])
    seed = commit_seed()
    if seed is not None:
        Program(f"{name}, seeds of the commit", SCHED_SECONDS, {"SCHED_SECONDS": str(SCHED_MORE_SECONDS)}).run(
            ["build/sched/sched", str(seed), "1000"])


def model(variant, *names):
    name = f"model test ({variant})"
    if is_missing(name, variant):
        return
    say(f"-- {name}")
    prefix = without_aslr() if variant == "tsan" else []
    Program(name, MODEL_SECONDS).run([*prefix, PYTHON, "tests/model/run.py", "--variant", variant, "--seconds",
                                      str(MODEL_EACH_SECONDS[variant]), "--jobs", str(CPUS), *names])


def stale(*names):
    name = "never-stale checker"
    if is_missing(name, "debug"):
        return
    say(f"-- {name}: {' '.join(names) or 'all'}")
    Program(name, STALE_SECONDS).run([PYTHON, "tests/stale/run.py", "--variant", "debug", "--seconds", "6", *names])


def package():
    say("-- the Debian package in fresh systems")
    Program("the Debian package", PACKAGE_SECONDS).run([PYTHON, "tests/package/run.py"])


def other_package(release):
    name = f"the package built and installed on {release}"
    say(f"-- {name}")
    Program(name, OTHER_PACKAGE_SECONDS).run([PYTHON, "tests/package/run.py", "--release", release])


def arm64(part):
    name = f"built for arm64 ({part})"
    say(f"-- {name}")
    Program(name, ARM64_SECONDS).run([PYTHON, "tests/arm64/run.py", part])
