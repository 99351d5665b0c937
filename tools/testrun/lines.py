# SPDX-License-Identifier: BSD-3-Clause
"""Programs that print a line for each of their tests, and below it what there is to see:

    PASS name            FAIL name            skip name: why
    LATE name            and below it "  again: COMMAND", which runs this test alone and prints such lines
    BROKEN why           the machine is

Lines of the clients say how many assertions they counted: "PASS name: passed N failed M".
"""
import functools
import re
import shlex

from testrun.process import run
from testrun.reports import Reports
from testrun.tally import broken, failed, late, passed, say, skipped

LINE = re.compile(r"^(PASS|FAIL|SKIP|skip|LATE|BROKEN)\b[:\s]*(.*)")
COUNTED_LINE = re.compile(r"^(PASS|FAIL|SKIP|skip|LATE|BROKEN) (.*?)(?:: passed (\d+) failed (\d+).*)?$")
AGAIN = re.compile(r"^\s+again: (.+)$")

LINE_MOST = 160  # characters of a test that passed; the model tells a dozen figures more


class Block:
    """A line of a test, and what the program printed below it."""

    def __init__(self, line):
        self.line = line
        self.more = []

    def text(self):
        return "\n".join([self.line, *self.more])

    def again(self):
        """The command that runs it alone, or None."""
        return next((match.group(1) for match in map(AGAIN.match, self.more) if match), None)


def blocks(output, pattern):
    """Returns the output before the first test, and a block for each test."""
    head, found = [], []
    for line in output.splitlines():
        if pattern.match(line):
            found.append(Block(line))
        else:
            (found[-1].more if found else head).append(line)
    return "\n".join(head), found


def count(name, code, output, again, pattern=LINE):
    """again(command) runs such a command, and counts it."""
    bad = 0
    head, found = blocks(output, pattern)
    for block in found:
        word, title, *numbers = pattern.match(block.line).groups()
        title = f"{title} ({name})"
        if word.lower() == "skip":
            skipped(title)
            continue
        if word == "BROKEN":
            broken(title, block.text())
            bad += 1
            continue
        if word == "LATE" and block.again():
            late(title, functools.partial(again, block.again()), block.text())
            bad += 1
            continue
        passed(int(numbers[0] or 0) if numbers else word == "PASS")
        if word == "PASS":
            say(f"   {block.line[:LINE_MOST]}")
            continue
        wrong = max(int(numbers[1] or 0), 1) if numbers else 1
        bad += wrong
        failed(title, block.text(), wrong)
    if not found or (code != 0 and not bad):
        failed(f"{name}: {len(found)} tests, exit code {code}", "\n".join([head, *(found[-1].more if found else [])]))


class Program:
    """Such a program. report: do sanitizers report to files; sum: is its last line the sum."""

    def __init__(self, name, seconds, env=None, pattern=LINE, sum_line=False):
        self.name = name
        self.seconds = seconds
        self.env = env or {}
        self.pattern = pattern
        self.sum_line = sum_line

    def run(self, command, cpu=None):
        """Runs it, and counts. cpu: as process.run()."""
        self.count(*self.outcome(command, cpu))

    def outcome(self, command, cpu=None):
        """For a thread that counts nothing: what count() takes."""
        reports = Reports()
        with reports as env:
            code, output = run(command, self.seconds, dict(env, **self.env), cpu)
            found = reports.found()
        return code, output, found

    def count(self, code, output, found):
        count(self.name, code, output, lambda again: self.run(shlex.split(again)), self.pattern)
        for report in found:
            failed(f"{self.name}: a sanitizer's report", report)
        if self.sum_line:
            say(f"   {output.rstrip().rpartition(chr(10))[2]}")
