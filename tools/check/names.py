#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Files that are spoken of exist: reports names of files and folders that nothing in the tree has, in Markdown documents,
in comments of C sources, in comments and docstrings of Python, and in comments of shell and configuration files.

Prints a line per finding and exits with 1; silent when clean. Run from the top folder. A word is a name when it ends in
one of EXTENSIONS, or has a slash and begins with a folder at the top. It may be relative to the top, to the document's
folder, or end the path of any file ("store.h", "conn/conn.h"); * stands for any characters. An exception is a visible
entry in EXCEPTIONS.
"""
import fnmatch
import io
import os
import re
import subprocess
import sys
import tokenize

EXTENSIONS = (".c", ".h", ".cc", ".def", ".py", ".sh", ".md", ".mk")
SOURCES = (".c", ".h", ".cc", ".def")
HASHED = (".sh", ".bash", ".conf", ".example", ".toml", ".mk", ".service", ".socket", ".postinst", ".postrm", ".prerm")  # comments begin with #

# (document or None for all, name, why it may be spoken of)
EXCEPTIONS: list[tuple[str | None, str, str]] = [
    (None, "sysexits.h", "is the C library's"),
    ("tests/mutants/mutants.py", "test_file.py", "stands for any test of a protocol"),
]

COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|(/\*.*?\*/|//[^\n]*)', re.DOTALL)
HASH = re.compile(r"(?:^|(?<=\s))#.*")
# No part of an URL, of an absolute or a home path, or of what follows a variable.
WORD = re.compile(r"(?<![\w./:~@$})])[A-Za-z0-9_*.][\w.*/-]*")


def tree():
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        check=True, capture_output=True, text=True).stdout.split("\0")
    return sorted(path for path in set(listed) - {""} if os.path.exists(path))


def texts(path):
    """(number of the line, text) of what may speak of files."""
    with open(path, encoding="utf-8") as opened:
        text = opened.read()
    if path.endswith(".md"):
        yield 1, re.sub(r"https?://\S+", "", text)
        return
    if path.endswith(".py"):
        yield from python_texts(text)
        return
    if path.endswith(HASHED):
        for number, line in enumerate(text.splitlines(), 1):
            match = HASH.search(line)
            if match:
                yield number, match[0]
        return
    for match in COMMENT.finditer(text):
        if match[1]:
            yield text.count("\n", 0, match.start()) + 1, match[1]


def python_texts(text):
    """Comments, and strings that are statements."""
    begins = True
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or (token.type == tokenize.STRING and begins):
            yield token.start[0], token.string
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            begins = token.type in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)


class Tree:
    def __init__(self, paths):
        folders = {folder for path in paths for folder in parents(path)}
        self.paths = set(paths) | folders
        self.tops = {path.split("/")[0] for path in folders}
        self.ends = {end for path in self.paths for end in ends(path)}

    def names(self, word):
        return word.endswith(EXTENSIONS) or ("/" in word and word.split("/")[0] in self.tops)

    def has(self, name, folder):
        if "*" in name:
            return any(fnmatch.fnmatchcase(end, name) for end in self.ends)
        # A program may be named without its source's extension.
        return name in self.ends or name + ".c" in self.ends or os.path.normpath(os.path.join(folder, name)) in self.paths


def parents(path):
    while "/" in path:
        path = path.rsplit("/", 1)[0]
        yield path


def ends(path):
    parts = path.split("/")
    return ("/".join(parts[start:]) for start in range(len(parts)))


def main():
    paths = tree()
    known = Tree(paths)
    found = False
    for path in paths:
        if not path.endswith((".md", ".py", *SOURCES, *HASHED)):
            continue
        for first, text in texts(path):
            for match in WORD.finditer(text):
                name = match[0].rstrip("./")
                if name in EXTENSIONS or not known.names(name) or known.has(name, os.path.dirname(path)):
                    continue
                if any(at in (None, path) and name == excepted for at, excepted, _ in EXCEPTIONS):
                    continue
                print(f"{path}:{first + text.count(chr(10), 0, match.start())}: {name} is not in the tree")
                found = True
    return found


if __name__ == "__main__":
    sys.exit(main())
