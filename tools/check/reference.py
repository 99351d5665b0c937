#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The generated parts of manual pages and guides.

    reference.py PROGRAM write    puts what PROGRAM (print-reference) prints between the marks
    reference.py PROGRAM check    says which file differs; silent when none does

A mark is a line: in Markdown "<!-- begin generated: PART -->" and "<!-- end generated -->", in manual pages
'.\\" begin generated: PART' and '.\\" end generated'.
"""
import glob
import re
import subprocess
import sys

FILES = ["packaging/doc/*.md", "packaging/man/*.[158]"]
PARTS = re.compile(r'(?m)^((?:<!-- |\.\\" )begin generated: ([\w-]+)(?: -->)?\n)(.*?)^((?:<!-- |\.\\" )end generated(?: -->)?)$', re.DOTALL)


def made(program, part):
    result = subprocess.run([program, part], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{part}: there is no such generated part")
    text = result.stdout.strip("\n") + "\n"
    return text


def current(program, path, text):
    """Markdown has empty lines around what is generated, so that tables are tables."""
    edge = "\n" if path.endswith(".md") else ""
    return PARTS.sub(lambda match: match[1] + edge + made(program, match[2]) + edge + match[4], text)


def main():
    program, action = sys.argv[1:]
    found = 0
    for path in sorted(sum((glob.glob(pattern) for pattern in FILES), [])):
        with open(path, encoding="utf-8") as opened:
            text = opened.read()
        found += len(PARTS.findall(text))
        wanted = current(program, path, text)
        if wanted != text and action == "check":
            print(f"{path}: not current, run: make reference")
        elif wanted != text:
            with open(path, "w", encoding="utf-8") as opened:
                opened.write(wanted)
    if not found:
        print("packaging: nothing generated is left in manual pages and guides")


if __name__ == "__main__":
    main()
