#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One word, one meaning: reports phrases that VOCABULARY.md rules out.

Prints a line per finding and exits with 1; silent when clean. Run from the top folder. It reads every line of text in
git: comments, documents, texts and identifiers. The rules are the rows of TABLE; an exception is a visible entry in
EXCEPTIONS.
"""
import re
import subprocess
import sys

EVERYWHERE = [""]

# (phrase that must not occur, folders or files where it must not, what to say instead)
TABLE = [
    (r"(?i)\bghost[ _-](list|cache|queue|table|entr(y|ies))\b", EVERYWHERE,
     "a ghost is a flash object at CLOCK zero; the record of evicted keys is the history"),
    (r"(?i)ghost", ["classifier/", "tests/unit/classifier/", "base/"],
     "the classifier knows no ghosts; its record of evicted keys is the history"),
    (r"(?i)candidate", ["classifier/", "tests/unit/classifier/", "base/"],
     "a candidate is offered to a plan; the sampler chooses samples among subjects"),
    (r"(?i)candidate", ["tests/model/"], "a candidate is offered to a plan; say which values are possible"),
    (r"\bways?\b(?= (of|in|to) (a|the) (cache line|history))|\b(way|WAYS)\b *(=|<|\[|\+\+)", ["classifier/"],
     "a way is the number of a slot in its bucket of the index; a bucket of the history has entries"),
    (r"\bplaces?\b|_place\b", ["base/", "classifier/", "conf/"],
     "a place is a key's 64-bit value from which positions follow; say position, location, origin or room"),
    (r"(?i)extended", ["base/", "classifier/", "flashindex/", "segments/", "server/store/", "server/proto/"],
     "extended options are memcached's -o; anything else has options"),
    (r"(?i)free place|retired place|places? on flash", EVERYWHERE, "say segment, position or block"),
    (r"\bplaces? of (a |the )?(slot|segment|row|word)", EVERYWHERE, "say number, index or position"),
    (r"\bstruct seg\b", EVERYWHERE, "the handle of all segments is struct segments"),
    (r"(?i)\bpromise[sd]?\b", ["tools/bench/", "tools/dashboard/", "packaging/", "README.md"],
     "a figure that the project aims at is a target"),
    (r"\bDESIGN(\.md)?\b|\(section [0-9]", EVERYWHERE,
     "no design document is in the tree: say the argument, or name the README that has it"),
    (r"(?i)black ?list|white ?list", EVERYWHERE, "say what is refused or allowed"),
    (r"(?i)candidate", ["server/net/"], "a candidate is offered to a plan; say which objects, keys or processes are meant"),
    (r"\bplaces?\b|_place\b", ["server/conn/", "server/count/", "server/metrics/", "server/proto/"],
     "a place is a key's 64-bit value from which positions follow; say position, number or tier"),
]

# (path, text of the line): the line may say it.
EXCEPTIONS = [
    ("VOCABULARY.md", None),  # it names what must not be said
    ("tools/check/vocabulary.py", None),
    # Counters and metrics speak of the whole product.
    ("base/metrics/counters.def", None),
    ("base/metrics/metrics.def", None),
    ("base/metrics/rows.def", None),
]


def files():
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        check=True, capture_output=True, text=True).stdout.split("\0")
    for path in sorted(set(listed) - {""}):
        try:
            with open(path, encoding="utf-8") as opened:
                yield path, opened.read()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue


def excepted(path, line):
    return any(path == at and (text is None or text in line) for at, text in EXCEPTIONS)


def main():
    rules = [(re.compile(phrase), tuple(folders), instead) for phrase, folders, instead in TABLE]
    found = False
    for path, text in files():
        own = [(phrase, instead) for phrase, folders, instead in rules if path.startswith(folders)]
        if not own:
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for phrase, instead in own:
                match = phrase.search(line)
                if match and not excepted(path, line):
                    print(f'{path}:{number}: "{match.group(0)}": {instead}')
                    found = True
    return found


if __name__ == "__main__":
    sys.exit(main())
