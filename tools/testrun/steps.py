# SPDX-License-Identifier: BSD-3-Clause
"""Which steps there are, which set each belongs to, and what each needs to be built.

The gate is what "make test" runs. .ci/run adds the rest, and "make test-all" what takes longest. The lanes of a set run side by side: what
computes in one, what mostly waits for daemons, disk or network in the others.
"""
from dataclasses import dataclass, field
from typing import Callable

from testrun import suites, units
from testrun.builds import built, complaints
from testrun.process import make
from testrun.tally import failed, passed, say


@dataclass
class Step:
    name: str
    run: Callable
    needs: list = field(default_factory=list)  # (variant, goal of make)
    kind: str = "own"  # of tally.KINDS


def check():
    say("-- make check")
    code, output = make("check")
    if code == 0 and not output.strip():
        passed()
    else:
        failed("make check", output)


def clang():
    """Fails on warnings of clang, whose objects are of no use. What "make check" has clang-tidy look at is left out."""
    name = "clang compiles tests and C++ without a warning"
    say(f"-- {name}")
    code, output = make("WERROR=1", "CC=clang", "syntax", "UNDER=tests/% %.cc")
    if code == 0:
        passed()
    else:
        failed(name, complaints(output))


GATE = [
    [
        Step("unit", lambda: units.unit("debug"), [("debug", "unit-build")]),
        Step("sched", suites.sched, [("sched", "build/sched/sched")]),
        Step("model", lambda: suites.model("debug"), [("debug", "model")]),
        Step("check", check),
    ],
    [
        Step("build", lambda: built("release"), [("release", "all")]),
        Step("runner", suites.runner),
        Step("protocol", lambda: suites.protocol("release", "-m", "not tools"), [("release", "all"), ("debug", "all")]),
    ],
]
REST = [
    [
        Step("asan", lambda: units.unit("asan"), [("asan", "unit-build")]),
        Step("tsan", lambda: units.unit("tsan"), [("tsan", f"build/tsan/tests/{name}") for name in units.threaded()]),
        Step("fuzz", units.fuzz, [("asan", "fuzz-build")], "inputs"),
        Step("clang", clang),
        Step("model-asan", lambda: suites.model("asan"), [("asan", "model")]),
        Step("model-tsan", lambda: suites.model("tsan", *suites.MODEL_TSAN), [("tsan", "model")]),
    ],
    [
        Step("protocol-clock", lambda: suites.protocol("release", "--long", "-m", "clock and not long"), [("release", "all"), ("debug", "all")]),
        Step("tools", lambda: suites.protocol("release", "-m", "tools"), [("release", "all"), ("debug", "all")]),
        Step("nodes", suites.nodes, [("release", "nodes")]),
        Step("stale", suites.stale, [("debug", "stale")]),
        Step("frugal", suites.frugal, [("release", "all"), ("debug", "all")]),
        Step("frugal-unit", units.frugal, [("debug", goal) for goal in units.FRUGAL_GOALS]),
        Step("arithmetic", lambda: units.unit("release", units.ARITHMETIC),
             [("release", f"build/release/tests/{name}") for name in units.ARITHMETIC]),
        Step("power", units.power, [("release", units.POWER)]),
    ],
    [
        Step("package", suites.package),
        Step("compare", suites.compare_most, [("release", "all"), ("debug", "all")]),
        Step("upstream", suites.upstream, [("release", "all")], "others"),
        Step("clients", lambda: suites.clients("release", "--place", "dram", "--place", "flash"), [("release", "all"), ("debug", "all")], "others"),
        Step("changed-results", suites.changed_results, [("release", "all")]),
        Step("protocol-asan", lambda: suites.protocol_asan(suites.ASAN_ENGINE), [("asan", "all"), ("debug", "all")]),
    ],
]
LONG = [
    [
        Step("unit-release", lambda: units.unit("release"), [("release", "unit-build")]),
        Step("model-tsan-all", lambda: suites.model("tsan"), [("tsan", "model")]),
        Step("arm64", lambda: suites.arm64("user")),
        Step("package-trixie", lambda: suites.other_package("trixie")),
    ],
    [
        Step("protocol-long", lambda: suites.protocol("release", "--long", "-m", "long"), [("release", "all"), ("debug", "all")]),
        Step("protocol-asan-all", suites.protocol_asan, [("asan", "all"), ("debug", "all")]),
        Step("compare-all", suites.compare, [("release", "all"), ("debug", "all")]),
        Step("clients-full", lambda: suites.clients("release", "--place", "full"), [("release", "all"), ("debug", "all")], "others"),
        Step("clients-asan", lambda: suites.clients("asan", "--place", "dram"), [("asan", "all"), ("debug", "all")], "others"),
        Step("frugal-all", suites.frugal_all, [("release", "all"), ("debug", "all")]),
    ],
]
# In no set: they take too long, or need what not every machine can reach. Whoever wants one names it.
APART = [
    [
        Step("clients-beside", suites.clients_beside, [("release", "all"), ("debug", "all")], "others"),
        Step("upstream-places", suites.upstream_places, [("release", "all")], "others"),
        Step("options-newest", suites.options_newest, [("release", "all")]),
        Step("arm64-machine", lambda: suites.arm64("machine")),
        Step("package-noble", lambda: suites.other_package("noble")),
    ],
]
SETS = {"gate": [GATE], "rest": [REST], "all": [GATE, REST, LONG]}
LANES = [lane for set_ in (GATE, REST, LONG, APART) for lane in set_]
NAMES = [step.name for lane in LANES for step in lane]


def chosen(words):
    """The sets of lanes that these words ask for, in order."""
    if len(words) == 1 and words[0] in SETS:
        return SETS[words[0]]
    # Steps that are named run one after the other: whoever names them looks at one.
    return [[[step]] for lane in LANES for step in lane if step.name in words]
