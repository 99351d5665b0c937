# SPDX-License-Identifier: BSD-3-Clause
"""Tests of pytest: their outcomes are in its report, by the class of the exception that ended them."""
import os
import re
import tempfile
import xml.etree.ElementTree

from testrun.process import PYTHON, run
from testrun.reports import Reports
from testrun.tally import broken, failed, late, passed, say, skipped

# The slowest cases are named, so that somebody looks at them.
SLOW_SECONDS, SLOW_MOST = 5, 12

# How the message of an exception begins that says that a wait ran out, or that the machine is broken; in a fixture, too.
IN_FIXTURE = r'(failed on (setup|teardown) with ")?'
LATE = re.compile(IN_FIXTURE + r"((\w+\.)*Late\b|TimeoutError\b|socket\.timeout\b|subprocess\.TimeoutExpired\b)")
BROKEN = re.compile(IN_FIXTURE + r"(\w+\.)*Broken\b")


def complaints(case):
    """What went wrong in it: [(message, text)]."""
    return [(found.get("message") or "", found.text or "") for kind in ("failure", "error") for found in case.findall(kind)]


def is_all(pattern, wrong):
    return all(pattern.match(message) for message, _ in wrong)


class Pytest:
    """A step of pytest: name as it is told, env and options for each run of it."""

    def __init__(self, name, seconds, processes, *options, env=None):
        self.name = name
        self.seconds = seconds
        self.processes = processes
        self.options = options
        self.env = env or {}

    def run(self, *tests, processes=None):
        """Runs files, folders or single tests, and counts them."""
        reports = Reports()
        with tempfile.TemporaryDirectory() as work, reports as env:
            report = os.path.join(work, "junit.xml")
            code, output = run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=short", "-n",
                                str(self.processes if processes is None else processes), "-o", "junit_family=xunit1",
                                f"--junitxml={report}", *self.options, *tests], self.seconds, dict(env, **self.env))
            self.count(report, code, output)
            for text in reports.found():
                failed(f"{self.name}: a sanitizer's report", text)

    def count(self, report, code, output):
        try:
            cases = list(xml.etree.ElementTree.parse(report).iter("testcase"))
        except (OSError, xml.etree.ElementTree.ParseError):
            failed(f"{self.name}: no report, exit code {code}", output)
            return
        slow = sorted(((float(case.get("time") or 0), case) for case in cases), key=lambda pair: -pair[0])[:SLOW_MOST]
        for seconds, case in slow:
            if seconds > SLOW_SECONDS:
                say(f"   {case.get('classname')}.{case.get('name')} took {seconds:.0f} s")
        good = [self.count_case(case) for case in cases]
        if code != 0 and all(good):
            failed(f"{self.name}: exit code {code}", output)

    def count_case(self, case):
        """Returns whether it was good."""
        wrong = complaints(case)
        title = f"{case.get('classname')}.{case.get('name')} ({self.name})"
        if not wrong:
            if case.find("skipped") is not None:
                skipped(title, case.find("skipped").get("message") or "")
            else:
                passed()
            return True
        text = "\n".join(text or message for message, text in wrong)
        if is_all(BROKEN, wrong):
            broken(f"{title}: {wrong[0][0]}", text)
        elif is_all(LATE, wrong) and case.get("file"):
            late(title, lambda: self.run(f"{case.get('file')}::{case.get('name')}", processes=0), text)
        else:
            failed(title, text)
        return False
