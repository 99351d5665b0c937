# SPDX-License-Identifier: BSD-3-Clause
"""Counts the outcomes of tests, prints them, and ends with the names of all that were not good.

    wrong   a value, an answer, an exit, a sanitizer's report: it counts at its first appearance
    late    a wait ran out, or a share, a rate or an amount of memory was missed on a busy machine: it is tried once more, alone, and
            then passes or fails; more than LATE_MOST of them are failures without that
    broken  the machine has no space, no memory, no mirror, or a stranger has the port: the step is repeated once, and then
            the run says nothing

A step counts into Results of its own, which the whole takes over when the step's machine was not broken. TEST_RECORD names a file
that carries the whole from one run to the next, so that the last line of the second run is the sum of both (.ci/run).
Steps run side by side, each in a thread: a thread counts into the Results that collect() gave it, and prints lines whole.
"""
import errno
import json
import os
import threading
import traceback
from collections import Counter
from dataclasses import dataclass, field
from typing import Callable

LATE_MOST = 10
BROKEN_MACHINE = 75  # the exit code of a run that says nothing: EX_TEMPFAIL of sysexits.h

# Plain output of a test is shown only when it failed, and then its end.
SHOWN_LINES = 60

# What is counted, as the last lines say it.
KINDS = {"own": "own tests", "others": "other people's assertions", "inputs": "fuzz inputs"}

# Errors of the system that say that the machine has run out of something.
OUT_OF = {errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EROFS}

printing = threading.Lock()
local = threading.local()  # .results: where this thread counts


@dataclass
class Late:
    name: str
    again: Callable  # runs this test alone, and counts it


@dataclass
class Results:
    """What one step counted."""
    kind: str = "own"
    passed: int = 0
    skipped: int = 0
    wrong: Counter = field(default_factory=Counter)  # name: how many
    late: list = field(default_factory=list)
    broken: list = field(default_factory=list)  # why the machine was


def say(text):
    with printing:
        print(text, flush=True)


def tail(output):
    lines = output.rstrip().splitlines()
    cut = ["  ..."] if len(lines) > SHOWN_LINES else []
    return "\n".join(cut + ["  " + line for line in lines[-SHOWN_LINES:]])


def told(word, name, output):
    say(f"{word} {name}" + ("\n" + tail(output) if output.strip() else ""))


def passed(n=1):
    local.results.passed += n


def skipped(name, why="", n=1):
    local.results.skipped += n
    say(f"skipped {name}{': ' + why if why else ''}")


def failed(name, output="", n=1):
    """It is wrong."""
    local.results.wrong[name] += n
    told("FAILED", name, output)


def late(name, again, output=""):
    """again() runs it alone."""
    local.results.late.append(Late(name, again))
    told("LATE", name, output)


def broken(why, output=""):
    """The machine is, so that this step says nothing."""
    local.results.broken.append(why)
    told("BROKEN MACHINE:", why, output)


def collect(name, run, kind="own"):
    """Runs a step, or a late test. Returns its Results."""
    results = local.results = Results(kind)
    try:
        run()
    except OSError as error:
        if error.errno in OUT_OF:
            broken(os.strerror(error.errno), traceback.format_exc())
        else:
            failed(f"{name}: the step itself failed", traceback.format_exc())
    except Exception:  # whatever it is, the other steps are run
        failed(f"{name}: the step itself failed", traceback.format_exc())
    return results


class Whole:
    """All steps of a run, and of the runs before it that TEST_RECORD names. Used by several threads."""

    def __init__(self):
        self.lock = threading.Lock()
        self.passed = dict.fromkeys(KINDS, 0)
        self.failed = dict.fromkeys(KINDS, 0)
        self.skipped = 0
        self.failures = []  # names
        self.tardy = []  # names of those that passed alone
        self.broken = []  # steps, with the reason
        self.waiting = []  # (Late, kind) that are to be tried again
        self.record = os.environ.get("TEST_RECORD")
        if self.record and os.path.exists(self.record) and os.path.getsize(self.record):
            with open(self.record, encoding="utf-8") as opened:
                for name, value in json.load(opened).items():
                    setattr(self, name, value)

    def add(self, results):
        with self.lock:
            self.passed[results.kind] += results.passed
            self.skipped += results.skipped
            for name, n in results.wrong.items():
                self.fail(name, results.kind, n)
            self.waiting += [(one, results.kind) for one in results.late]

    def fail(self, name, kind="own", n=1):
        self.failed[kind] += n
        self.failures.append(name)

    def add_broken(self, step, why):
        with self.lock:
            self.broken.append(f"{step}: {why}")
            self.fail(f"{step}: the machine was broken")

    def try_again(self):
        """Runs alone what was late, when nothing else runs any more."""
        most = len(self.waiting) + len(self.tardy) > LATE_MOST
        if most:
            say(f"-- more than {LATE_MOST} tests were late: none is tried again")
        elif self.waiting:
            say(f"-- what was late is tried again, alone: {len(self.waiting)}")
        for one, kind in self.waiting:
            if most:
                self.fail(f"{one.name}: late, as more than {LATE_MOST} were", kind)
                continue
            results = collect(one.name, one.again, kind)
            if results.broken:
                self.add_broken(one.name, results.broken[0])
            elif results.wrong:
                self.fail(f"{one.name}: late, then wrong", kind)
            elif results.late or not results.passed:
                self.fail(f"{one.name}: late twice", kind)
            else:
                self.passed[kind] += results.passed
                self.tardy.append(one.name)
        self.waiting = []

    def end(self):
        """Prints the names of what was not good, and the sums. Returns the exit code."""
        if self.record:
            with open(self.record, "w", encoding="utf-8") as opened:
                json.dump({name: getattr(self, name) for name in ("passed", "failed", "skipped", "failures", "tardy", "broken")}, opened)
        if self.skipped:
            say(f"{self.skipped} skipped")
        for head, names in (("late, and passed alone:", self.tardy), ("failed:", self.failures),
                            ("the machine was broken, so this run says nothing:", self.broken)):
            if names:
                say("\n".join([head] + [f"  {name}" for name in names]))
        for kind, text in KINDS.items():
            if self.passed[kind] or self.failed[kind]:
                say(f"{text}: {self.passed[kind]} passed, {self.failed[kind]} failed")
        say(f"{sum(self.passed.values())} passed, {sum(self.failed.values())} failed")
        if self.broken:
            return BROKEN_MACHINE
        return 1 if self.failures else 0
