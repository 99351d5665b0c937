#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A figure stands in FIGURES.md alone: README's table and the references to sections agree with it.

Prints a line per finding and exits with 1; silent when clean. Run from the top folder.
"""
import glob
import re
import sys

LINK = re.compile(r"\(FIGURES\.md#([a-z0-9-]+)\)")
QUOTED = re.compile(r'FIGURES\.md`?[,:]? \(?((?:"[^"]+"(?:, | and )?)+)')
NUMBER = re.compile(r"[\d][\d.,]*")


def sections():
    """Anchor and heading of each section, with its text."""
    found = {}
    for part in open("FIGURES.md", encoding="utf-8").read().split("\n## ")[1:]:
        heading, _, text = part.partition("\n")
        found[heading] = text
    return found


def anchor(heading):
    return re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-")


def numbers(text):
    return {number.rstrip(".,") for number in NUMBER.findall(text)}


def main():
    headings = sections()
    by_anchor = {anchor(heading): text for heading, text in headings.items()}
    findings = []
    for path in sorted(glob.glob("**/*.md", recursive=True)):
        if path.startswith("build"):
            continue
        text = open(path, encoding="utf-8").read()
        for name in LINK.findall(text):
            if name not in by_anchor:
                findings.append(f"{path}: FIGURES.md has no section #{name}")
        for group in QUOTED.findall(" ".join(text.split())):
            for heading in re.findall(r'"([^"]+)"', group):
                if heading not in headings:
                    findings.append(f'{path}: FIGURES.md has no section "{heading}"')
    for number, line in enumerate(open("README.md", encoding="utf-8"), 1):
        cells, link = line.split("|"), LINK.search(line)
        if len(cells) == 6 and link and link.group(1) in by_anchor:
            for missing in sorted(numbers(cells[2] + cells[3]) - numbers(by_anchor[link.group(1)])):
                findings.append(f"README.md:{number}: {missing} isn't in FIGURES.md#{link.group(1)}")
    for line in findings:
        print(line)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
