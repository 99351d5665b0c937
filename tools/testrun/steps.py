# SPDX-License-Identifier: BSD-3-Clause
"""Which steps there are, which set each belongs to, and what each needs to be built.

The sets are "short" ("make test") and "rest" (what "make test-all" runs beside it). The lanes of a set run side by side:
what computes in one, what mostly waits for daemons, disk or network in the other.
"""
import os
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


def check():
    say("-- make check")
    code, output = make("check")
    if code == 0 and not output.strip():
        passed()
    else:
        failed("make check", output)


def clang():
    """Fails on warnings of clang, whose objects are of no use."""
    say("-- clang compiles everything without a warning")
    code, output = make("WERROR=1", "CC=clang", "syntax")
    if code == 0:
        passed()
    else:
        failed("clang compiles everything without a warning", complaints(output))


def protocol_asan():
    suites.protocol("asan", *[f"--ignore=tests/protocol/test_{name}.py" for name in suites.ASAN_LEFT_OUT
                              if os.path.exists(f"tests/protocol/test_{name}.py")])


SHORT = [
    [
        Step("build", lambda: built("release"), [("release", "all")]),
        Step("unit", lambda: units.unit("release"), [("release", "unit-build")]),
        Step("asan", lambda: units.unit("asan", "without"), [("asan", "unit-build")]),
        Step("clang", clang),
        Step("check", check),
    ],
    [
        Step("protocol", lambda: suites.protocol("release"), [("release", "all")]),
        Step("nodes", suites.nodes, [("release", "nodes")]),
        Step("model", lambda: suites.model("debug"), [("debug", "model")]),
        Step("stale", lambda: suites.stale("mixed", "frugal", "chain"), [("debug", "stale")]),
        Step("package", suites.package),
    ],
]
REST = [
    [
        Step("tsan", lambda: units.unit("tsan"), [("tsan", f"build/tsan/tests/{name}") for name in units.threaded()]),
        Step("asan-arithmetic", lambda: units.unit("asan", "alone"), [("asan", "unit-build")]),
        Step("fuzz", units.fuzz, [("asan", "fuzz-build")]),
        Step("model-asan", lambda: suites.model("asan"), [("asan", "model")]),
        Step("model-tsan", lambda: suites.model("tsan"), [("tsan", "model")]),
        Step("arm64", lambda: suites.arm64("user")),
        Step("package-trixie", lambda: suites.other_package("trixie")),
    ],
    [
        Step("stale-all", suites.stale, [("debug", "stale")]),
        Step("frugal", suites.frugal, [("release", "all")]),
        Step("frugal-unit", units.frugal, [("debug", goal) for goal in units.FRUGAL_GOALS]),
        Step("power", units.power, [("release", "unit-build")]),
        Step("compare", suites.compare, [("release", "all")]),
        Step("upstream", suites.upstream, [("release", "all")]),
        Step("clients", lambda: suites.clients("release"), [("release", "all")]),
        Step("protocol-long", lambda: suites.protocol("release", "--long"), [("release", "all")]),
        Step("protocol-asan", protocol_asan, [("asan", "all")]),
        Step("clients-asan", lambda: suites.clients("asan", "--place", "dram"), [("asan", "all")]),
    ],
]
# In no set: they take too long, or need what not every machine can reach. Whoever wants one names it.
APART = [
    [
        Step("clients-beside", suites.clients_beside, [("release", "all")]),
        Step("upstream-places", suites.upstream_places, [("release", "all")]),
        Step("options-newest", suites.options_newest, [("release", "all")]),
        Step("frugal-all", suites.frugal_all, [("release", "all")]),
        Step("arm64-machine", lambda: suites.arm64("machine")),
        Step("package-noble", lambda: suites.other_package("noble")),
    ],
]
SETS = {"short": [SHORT], "rest": [REST], "all": [SHORT, REST]}
NAMES = [step.name for lanes in (SHORT, REST, APART) for lane in lanes for step in lane]


def chosen(words):
    """The sets of lanes that these words ask for, in order."""
    if len(words) == 1 and words[0] in SETS:
        return SETS[words[0]]
    lanes = [[step for step in lane if step.name in words] for set_ in (SHORT, REST, APART) for lane in set_]
    # Steps that are named run one after the other: whoever names them looks at one.
    return [[[step]] for lane in lanes for step in lane]
