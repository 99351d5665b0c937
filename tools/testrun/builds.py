# SPDX-License-Identifier: BSD-3-Clause
"""Builds each variant once, with all that the chosen steps need of it."""
import re
import threading

from testrun.process import make
from testrun.tally import failed, passed, say

locks = {}  # variant: its lock, so that nobody waits for a build that another lane needs
goals = {}  # variant: what the chosen steps need of it
results = {}


def wanted(needs):
    """Before the steps: (variant, goal) of each of them."""
    for variant, goal in needs:
        goals.setdefault(variant, [])
        if goal not in goals[variant]:
            goals[variant].append(goal)


def complaints(output):
    """Returns the output of make, without the line for each file."""
    return "\n".join(line for line in output.splitlines() if not re.match(r"^  (CC|CXX|AR|LD|LOOK) ", line))


def build(name, *words):
    say(f"-- {name}")
    code, output = make("WERROR=1", *words)
    if code == 0:
        passed()
        return True
    failed(name, complaints(output))
    return False


def lock_of(variant):
    return locks.setdefault(variant, threading.Lock())


def built(variant):
    """Does this variant build without a warning? The first to ask builds it."""
    with lock_of(variant):
        if variant not in results:
            results[variant] = build(f"{variant} builds without a warning", f"VARIANT={variant}", *goals[variant])
        return results[variant]


def forget_failures():
    """Before a step is repeated, as the machine was broken: what didn't build is built again."""
    for variant in [variant for variant, good in list(results.items()) if not good]:
        with lock_of(variant):
            results.pop(variant, None)
