#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shapes of C sources: sizes of files and functions, calls that are banned, prototypes without a comment.

Prints a line per finding and exits with 1; silent when clean; with "figures" it prints what it counted. Run from the top
folder. An exception is a visible entry in a table below.
"""
import pathlib
import re
import sys

FOLDERS = ["base", "classifier", "conf", "flashindex", "segments", "server", "tools"]
FILE_LINES = 600
FUNCTION_LINES = 80

# A call, and what is used in its place.
BANNED = {
    "strcpy": "snprintf or memcpy with a known length",
    "strcat": "snprintf",
    "sprintf": "snprintf",
    "vsprintf": "vsnprintf",
    "gets": "fgets",
    "strtok": "strtok_r or strchr",
    "alloca": "a bounded array or mem_alloc",
    "rand": "base/rng.h",
    "srand": "base/rng.h",
    "random": "base/rng.h",
    "tmpnam": "mkstemp",
    "mktemp": "mkstemp",
    "system": "posix_spawn with its arguments",
    "popen": "posix_spawn with its arguments",
}

# (path, what it may have, why)
EXCEPTIONS: list[tuple[str, str, str]] = []

CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\(")
FUNCTION = re.compile(r"^(?!struct|enum|union|typedef|extern|#|\s).*\b(\w+)\(")
COMMENT = re.compile(r"^/\*.*?\*/$", re.M | re.S)  # one that no code shares its lines with
PROTOTYPE = re.compile(r"^(?!static inline|typedef|#|\s|//|/\*|\*)[\w][\w\s\*]*?\b(\w+)\((?:[^;{}]|\n)*?\)[^;{}]*;", re.M)

findings = []
counted = {}


def find(path, line, text):
    findings.append(f"{path}:{line}: {text}" if line else f"{path}: {text}")


def excepted(path, what):
    return any(path == where and what == kind for where, kind, _ in EXCEPTIONS)


def without_text(source):
    """Comments and strings blanked, lines kept."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, source, flags=re.S)


def check_calls(path, code):
    for number, line in enumerate(code.splitlines(), 1):
        for match in CALL.finditer(line):
            if not excepted(path, match.group(1)):
                find(path, number, f"{match.group(1)}() is banned: {BANNED[match.group(1)]}")


def check_functions(path, code):
    name, start = None, 0
    for number, line in enumerate(code.splitlines(), 1):
        match = FUNCTION.match(line)
        if match:
            name = match.group(1)
        if line == "{":
            start = number
        elif line == "}" and name and start:
            if number - start > FUNCTION_LINES and not excepted(path, name):
                find(path, start, f"{name}() has {number - start} lines, {FUNCTION_LINES} at the most")
            name, start = None, 0


def one_thing(names):
    """Do these functions have a name in common that a comment may speak of: fs_x_begin, fs_x_end?"""
    words = [name.split("_") for name in names]
    return len({first for first, *_ in words}) == 1 and (
        min(map(len, words)) < 3 or len({second for _, second, *_ in words}) == 1)


def documented(source, match):
    """By a comment at its end, or one right above. A comment above a group, which a blank line ends, counts for the
    functions that it names, and for all when their names begin alike."""
    end = source.find("\n", match.end())
    if "/*" in source[match.end():end if end >= 0 else len(source)]:
        return True
    group = source[:match.start()].rpartition("\n\n")[2]
    comments = list(COMMENT.finditer(group))
    if not comments:
        return False
    names = [before.group(1) for before in PROTOTYPE.finditer(group[comments[-1].end():])] + [match.group(1)]
    return len(names) == 1 or match.group(1) in comments[-1].group(0) or one_thing(names)


def check_prototypes(path, source):
    folder = path.split("/")[0]
    counted[folder] = counted.get(folder, 0)
    for match in PROTOTYPE.finditer(source):
        counted[folder] += 1
        if not documented(source, match) and not excepted(path, match.group(1)):
            find(path, source.count("\n", 0, match.start(1)) + 1, f"{match.group(1)}() has no comment of its own or of its group")


def main():
    for folder in FOLDERS:
        for file in sorted(pathlib.Path(folder).rglob("*.[ch]")):
            path = str(file)
            source = file.read_text(encoding="utf-8")
            code = without_text(source)
            lines = source.count("\n")
            if lines > FILE_LINES and not excepted(path, "lines"):
                find(path, 0, f"has {lines} lines, {FILE_LINES} at the most")
            check_calls(path, code)
            if path.endswith(".c"):
                check_functions(path, code)
            else:
                check_prototypes(path, source)
    if "figures" in sys.argv[1:]:
        for folder, number in counted.items():
            print(f"{folder}: {number} prototypes, all with a comment but for the findings")
        print(f"all: {sum(counted.values())}")
    for line in findings:
        print(line)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
