#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A guide that says what comes of a fault names a test for it, and the test is there.

Prints a line per finding and exits with 1; silent when clean. Run from the top folder. Each row of a table whose last column
is called "proved by" has at least one name in it, of a function of tests/unit that is in its list of tests, or of a test of pytest.
"""
import glob
import re
import sys

GUIDES = ["packaging/doc/" + name for name in ("faults.md", "pressure.md", "restart.md", "stop.md")]
COLUMN = "proved by"
C_TEST = re.compile(r"^static void (\w+)\(void \*\*state\)$", re.MULTILINE)
MACRO = re.compile(r"^#define (\w+)\(name\b.*\n\s*static void (\w+)##name\(void \*\*state\)", re.MULTILINE)
PYTEST = re.compile(r"^\s*def (test_\w+)\(", re.MULTILINE)


def made_by_macros(text):
    """Names of tests that a macro of the file defines."""
    return [prefix + name for macro, prefix in MACRO.findall(text)
            for name in re.findall(rf"^{macro}\((\w+)", text, re.MULTILINE)]


def tests():
    """The names of all tests."""
    names = set()
    for path in glob.glob("tests/unit/**/test_*.c", recursive=True):
        text = open(path, encoding="utf-8").read()
        names |= {name for name in C_TEST.findall(text) + made_by_macros(text)
                  if re.search(rf"\({name}\b(?!\(void)[,)]", text)}
    for path in glob.glob("tests/**/test_*.py", recursive=True):
        names |= set(PYTEST.findall(open(path, encoding="utf-8").read()))
    return names


def cells(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def rows(path):
    """(number of the line, its cells, how many there should be) of each row of a table with the column."""
    columns = None
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        if not line.startswith("|"):
            columns = None
        elif columns is None:
            columns = cells(line)
        elif columns[-1] == COLUMN and not re.fullmatch(r"[|\s:-]+", line):
            yield number, cells(line), len(columns)


def main():
    names, findings = tests(), []
    for path in GUIDES:
        found = list(rows(path))
        if not found:
            findings.append(f'{path}: has no table with a column "{COLUMN}"')
        for number, row, columns in found:
            proofs = re.findall(r"`(\w+)`", row[-1])
            if len(row) != columns:
                findings.append(f"{path}:{number}: {len(row)} cells instead of {columns}")
            elif not proofs:
                findings.append(f'{path}:{number}: no test proves "{row[0]}"')
            findings += [f"{path}:{number}: there is no test {name}" for name in proofs if name not in names]
    for line in findings:
        print(line)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
