# SPDX-License-Identifier: BSD-3-Clause
"""Reads off a suite's output how many of its tests passed and failed. Each gives (passed, failed)."""
import re
import xml.etree.ElementTree


def ours(output, _folder):
    """A script's last line: "NAME: passed N failed M"."""
    found = re.findall(r": passed (\d+) failed (\d+)$", output, re.M)
    return tuple(map(int, found[-1])) if found else (0, 0)


def junit(_output, folder):
    """pytest's --junitxml=FOLDER/junit.xml."""
    try:
        cases = list(xml.etree.ElementTree.parse(f"{folder}/junit.xml").iter("testcase"))
    except (OSError, xml.etree.ElementTree.ParseError):
        return 0, 0
    failed = sum(case.find("failure") is not None or case.find("error") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    return len(cases) - failed - skipped, failed


def go(output, _folder):
    """go test -v"""
    return len(re.findall(r"^\s*--- PASS", output, re.M)), len(re.findall(r"^\s*--- FAIL", output, re.M))


def tap(output, _folder):
    """mocha --reporter tap; what it marks as skipped is neither."""
    lines = [line for line in output.splitlines() if not re.search(r"# SKIP", line, re.I)]
    return sum(line.startswith("ok ") for line in lines), sum(line.startswith("not ok ") for line in lines)


def memccapable(output, _folder):
    """One line "NAME   [pass]" or "[FAIL]" per test; some say more between the two."""
    return len(re.findall(r"\[pass\]", output)), len(re.findall(r"\[FAIL\]|\[fail\]", output))


