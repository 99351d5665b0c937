#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that need no compiler: include edges, heads, marks, tables, READMEs.

Prints a line per finding and exits with 1; silent when clean. Run from the top folder. The rules
are the tables below; an exception is a visible entry in one of them.
"""
import os
import re
import subprocess
import sys

ENGINE = ["classifier", "flashindex", "flashindex/frugal", "segments", "conf", "base/metrics", "base"]
# The rooms of the store, each with those below it that it may include; its interface is for all.
STORE = "server/store/store.h"
VIEWS = "server/store/views.h" # store.h includes it
STORE_BESIDE = ["server/store/check.h", "server/store/daemon_lock.h", "server/store/drive.h", "server/store/move.h"]  # a further header of that interface
STORE_END = "server/store/end.h"  # a part of it: only store.h includes it
STORE_FLUSH = "server/store/flush.h"  # the same
STORE_PROMOTION = "server/store/promotion.h"  # likewise
STORE_CRAWLER = "server/store/crawler.h"  # likewise
STORE_TUNING = "server/store/tuning.h"  # likewise
STORE_LIMITS = "server/store/limits.h"  # likewise
STORE_WALK = "server/store/walk.h"  # and this
STORE_SAMPLE = "server/store/sample.h"  # and this
STORE_INDEX = "server/store/index.h"  # likewise
OUTLOOK = "server/store/outlook.h"  # what a start would do, for the inspector alone
STORE_STATE = ["server/store/state", STORE] + ENGINE
STORE_DRAM = ["server/store/dram"] + STORE_STATE
STORE_CLEANER = ["server/store/cleaner"] + STORE_DRAM
STORE_REQUEST = ["server/store/request"] + STORE_CLEANER
STORE_REPORT = ["server/store/report"] + STORE_CLEANER
STORE_ROOMS = ["server/store/" + room for room in ("state", "dram", "cleaner", "request", "report")]
SERVER_ROOMS = ["server/" + room for room in ("conn", "count", "net", "auth", "admin", "metrics", "proto")] + [STORE]

# Which folder may include which. The longest matching prefix counts, on both sides.
EDGES = {
    "base": ["base"],
    # Counters, durations and metric names: every module counts, but what lies in base itself counts nothing.
    "base/metrics": ["base/metrics", "base"],
    "conf": ["conf", "base"],
    "classifier": ["classifier", "conf", "base/metrics", "base"],
    "flashindex": ["flashindex", "conf", "base/metrics", "base"],
    "flashindex/frugal": ["flashindex/frugal", "conf", "base/metrics", "base"],
    "segments": ["segments", "conf", "base/metrics", "base"],
    STORE: [VIEWS, STORE_END, STORE_FLUSH, STORE_PROMOTION, STORE_CRAWLER, STORE_TUNING, STORE_LIMITS, STORE_WALK, STORE_SAMPLE, STORE_INDEX] + ENGINE,
    VIEWS: [],
    STORE_INDEX: [],
    STORE_END: [],
    STORE_FLUSH: ["base"],
    STORE_CRAWLER: ["base"],
    STORE_PROMOTION: [],
    STORE_TUNING: ["classifier", "conf", "base"],
    STORE_LIMITS: ["conf", "base"],
    STORE_WALK: ["base"],
    STORE_SAMPLE: [],
    "server/store/state": STORE_STATE,
    "server/store/dram": STORE_DRAM,
    "server/store/cleaner": STORE_CLEANER,
    "server/store/request": STORE_REQUEST,
    "server/store/report": STORE_REPORT,
    # Life and composition: opening in order, closing in the mirrored order.
    "server/store": [STORE, OUTLOOK] + STORE_ROOMS + ENGINE,
    OUTLOOK: [STORE],
    # The daemon's rooms, from the bottom up. A protocol reaches the network through the connection's interface alone,
    # and the network a protocol through the table that main.c hands over.
    "server/conn": ["server/conn", STORE, "base/metrics", "base"],
    "server/count": ["server/count", "server/conn", STORE, "conf", "base/metrics", "base"],
    "server/net": ["server/net", "server/count", "server/conn", STORE, "conf", "base/metrics", "base"],
    # It decides from a name and a password alone, and knows neither connections nor objects.
    "server/auth": ["server/auth", "conf", "base"],
    "server/admin": ["server/admin", "server/auth", "server/metrics", "server/net", "server/count", "server/conn", STORE, "conf", "base/metrics", "base"],
    "server/metrics": ["server/metrics", "server/net", "server/count", "server/conn", STORE, "conf", "base/metrics", "base"],
    "server/proto": ["server/proto", "server/admin", "server/auth", "server/count", "server/conn", STORE, "conf", "base/metrics", "base"],
    "server": ["server"] + SERVER_ROOMS + ["conf", "base/metrics", "base"],
    "tools": ["tools", "tools/common", STORE] + ENGINE,
    "tools/common": ["tools/common", "conf", "base"],
    # A reader of the format written from segments/FORMAT.md: it may know no line of the engine. What a start would do, the
    # start itself tells.
    "tools/inspect": ["tools/inspect", "tools/common", OUTLOOK, "conf", "base"],
    "packaging/completion": ["conf", "base"],
    # A reader of reports alone.
    "tools/top": ["tools/top", "tools/common", "conf", "base/metrics", "base"],
    "tests/unit/tools/inspect": ["tests/unit/tools/inspect", "tools/inspect", "tools/common", "conf", "base"],
    "tests/unit/tools/top": ["tests/unit/tools/top", "tools/top", "tools/common", "conf", "base/metrics", "base"],
    "tests/unit": ["tests", "tools", "tools/common", "server", OUTLOOK] + SERVER_ROOMS + STORE_ROOMS + ENGINE,
    "tests/fuzz": ["tests", "tests/unit/tools/inspect", "tools", "tools/common", "tools/inspect", "server", OUTLOOK] + SERVER_ROOMS + STORE_ROOMS + ENGINE,
    "tests/sched": ["tests", "server", STORE] + STORE_ROOMS + ENGINE,
    "tests": ["tests", "tools", "tools/common", "conf", "base/metrics", "base", STORE],
}

# Which files alone may include a library's header. A folder ends in "/".
LIBRARIES = [
    (re.compile(r"^(event\.h|evutil\.h|event2/)"), ["server/net/"], "libevent"),
    (re.compile(r"^libaio\.h"), ["segments/", "tools/bench/raw.c", "tests/fuzz/fixed.c"], "libaio"),
    (re.compile(r"^(linear\.h|liblinear/)"), ["classifier/"], "liblinear"),
    (re.compile(r"^(xxhash\.h|xxh3\.h)"), ["base/hash.c"], "xxHash"),
    (re.compile(r"^jemalloc/"), ["base/alloc.c"], "jemalloc"),
    (re.compile(r"^(ini\.h|INIReader\.h)"), ["conf/file.c"], "inih"),
    (re.compile(r"^openssl/"), ["server/net/", "server/auth/", "server/metrics/http.c", "server/metrics/users.c", "server/metrics/users_file.c", "tools/record/names.c", "tools/common/access.c", "tools/common/client.c"], "OpenSSL"),
    (re.compile(r"^sasl/"), ["server/auth/"], "libsasl2"),
    (re.compile(r"^(ncurses|ncursesw/.*|curses|term)\.h"), ["tools/top/term.c", "tools/top/term_type.c"], "ncurses"),
    (re.compile(r"^seccomp\.h"), ["server/seccomp.c"], "libseccomp"),
    (re.compile(r"^systemd/"), ["server/service.c"], "libsystemd"),
    (re.compile(r"^libmemcached"), ["tests/nodes/"], "libmemcached"),
    (re.compile(r"^prometheus/"), ["server/metrics/metrics.cc"], "prometheus-cpp"),
    (re.compile(r"^microhttpd"), ["server/metrics/http.c"], "libmicrohttpd"),
    (re.compile(r"^gnutls/"), ["server/metrics/certs.c"], "GnuTLS"),
    (re.compile(r"^crypt\.h"), ["server/metrics/users.c"], "libcrypt"),
]

# Libraries that a single file wraps, and the files beside it that may use them nevertheless.
ONE_FILE_ONLY = {
    # The one measures what the device does without the engine, the other stands between engine and library.
    "libaio": {"tools/bench/raw.c", "tests/fuzz/fixed.c"},
}

TESTED_FOLDERS = ["base", "classifier", "flashindex", "flashindex/frugal", "segments", "server/store"]
README_FOLDERS = ["base", "base/metrics", "conf", "classifier", "flashindex", "flashindex/frugal", "segments", "server", "server/store", "tools", "tests",
                  "packaging", "server/conn", "server/count", "server/net", "server/auth", "server/admin", "server/metrics",
                  "server/proto"]
README_LINES = 60

ROWS = "base/metrics/rows.def"
# This file names what it looks for.
SELF = "tools/check/sources.py"

MARKS = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
MACHINE_PATHS = re.compile(r"(?<![\w.$}/-])/(work|root|home)/[\w.]")
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]')
SPDX = "SPDX-License-Identifier: BSD-3-Clause"
NEEDS_SPDX = (".c", ".h", ".def", ".sh", ".py", ".cc")

findings = []


def find(path, line, text):
    findings.append(f"{path}:{line}: {text}" if line else f"{path}: {text}")


def listed():
    """Returns the files that git has or would have; outside of a checkout, all files that no build has made."""
    try:
        return subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
            check=True, capture_output=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        return [os.path.relpath(os.path.join(folder, name), ".")
                for folder, _, names in os.walk(".") if not re.match(r"\./(\.git|build)(/|$)", folder)
                for name in names]


def files():
    """Path and text of each text file; what was deleted but not yet committed is left out."""
    for path in sorted(set(listed()) - {""}):
        try:
            with open(path, encoding="utf-8") as opened:
                yield path, opened.read()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue


def zone(path, zones):
    path = STORE if path in STORE_BESIDE else path
    fitting = [z for z in zones if path == z or path.startswith(z + "/")]
    return max(fitting, key=len, default=None)


def check_includes(path, text, users):
    own = zone(path, EDGES)
    targets = {t for allowed in EDGES.values() for t in allowed}
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        name = match.group(2)
        for pattern, allowed, library in LIBRARIES:
            if not pattern.match(name):
                continue
            users.setdefault(library, set()).add(path)
            if not any(path == a or (a.endswith("/") and path.startswith(a)) for a in allowed):
                find(path, number, f"{library} belongs into {' '.join(allowed)} only")
        if match.group(1) != '"':
            continue
        target = zone(name, targets)
        beside = own and own.startswith("tests") and os.path.exists(os.path.join(os.path.dirname(path), name))
        if beside:
            continue  # tests may name what lies beside them
        if target is None:
            find(path, number, f'"{name}" is not named from the top folder')
        elif own and target not in EDGES[own]:
            find(path, number, f"{own} may not include {target}")
        if own and name.endswith("_internal.h") and not path.startswith((target + "/", "tests/")):
            find(path, number, f"{name} is internal to {target}")


def note_edges(path, text, edges):
    """Which folder includes which, with the first file and line of each edge."""
    own = zone(path, EDGES)
    targets = {t for allowed in EDGES.values() for t in allowed}
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        target = zone(match.group(2), targets) if match and match.group(1) == '"' else None
        if own and target and target != own:
            edges.setdefault(own, {}).setdefault(target, (path, number))


def check_circles(edges):
    """An edge from which its own start can be reached again is part of a circle: there may be none, whatever EDGES allows."""
    def reaches(folder, goal, seen):
        seen.add(folder)
        return folder == goal or any(reaches(f, goal, seen) for f in edges.get(folder, {}) if f not in seen)

    for folder, targets in sorted(edges.items()):
        for target, (path, number) in sorted(targets.items()):
            if reaches(target, folder, set()):
                find(path, number, f"{folder} includes {target}, from where {folder} is reached again: a circle of folders")


def check_allowed():
    """EDGES itself allows no two folders to include each other."""
    for folder, allowed in EDGES.items():
        for other in allowed:
            if other > folder and folder in EDGES.get(other, []):
                find(SELF, 0, f"EDGES allows {folder} and {other} to include each other")


def check_lines(path, text):
    for number, line in enumerate(text.splitlines(), 1):
        if MARKS.search(line):
            find(path, number, "an open mark: do it, or open an issue")
        if MACHINE_PATHS.search(line):
            find(path, number, "a path of somebody's machine")
        if line != line.rstrip() and path.endswith(NEEDS_SPDX):
            find(path, number, "blanks at the end of the line")


def check_fault_table(text):
    names = re.findall(r"\bFAULT\((\w+), \"", text)
    for before, after in zip(names, names[1:]):
        if before >= after:
            find("base/fault.h", 0, f"the fault table isn't sorted: {after} after {before}")


def check_row_table(known):
    """Each row that is described is given by a report. (One that isn't described doesn't compile.)"""
    reports = "".join(text for path, text in known.items() if path.startswith("server/admin/") and path.endswith(".c"))
    given = set(re.findall(r"\bROW_[A-Z]+_\w+", reports))
    for report, name in re.findall(r"(?m)^ROW\((\w+), (\w+),", known.get(ROWS, "")):
        if f"ROW_{report}_{name}" not in given:
            find(ROWS, 0, f"no report gives the row {name} of {report}")


def check_readmes(known):
    for folder in README_FOLDERS:
        readme = f"{folder}/README.md"
        if readme not in known:
            find(readme, 0, "is missing")
        elif len(known[readme].splitlines()) > README_LINES:
            find(readme, 0, f"is longer than {README_LINES} lines")


def check_tests(known):
    """Each source of the engine has a test at its own path, under its own name."""
    for path in known:
        folder, name = path.rsplit("/", 1) if "/" in path else ("", path)
        if name.endswith(".c") and any(folder == top or folder.startswith(top + "/") for top in TESTED_FOLDERS):
            test = f"tests/unit/{folder}/test_{name}"
            if test not in known:
                find(path, 0, f"has no test: {test}")


def main():
    users = {}
    edges = {}
    known = dict(files())
    for path, text in known.items():
        if path == SELF:
            continue
        if path.endswith(NEEDS_SPDX) and SPDX not in "\n".join(text.splitlines()[:3]):
            find(path, 0, "its head has no SPDX line")
        if path.endswith((".c", ".h", ".cc", ".def")):
            check_includes(path, text, users)
            note_edges(path, text, edges)
        check_lines(path, text)
    for library, exceptions in ONE_FILE_ONLY.items():
        wrappers = users.get(library, set()) - exceptions
        if len(wrappers) > 1:
            find(" ".join(sorted(wrappers)), 0, f"{library} belongs into one file")
    check_circles(edges)
    check_allowed()
    check_fault_table(known.get("base/fault.h", ""))
    check_row_table(known)
    check_readmes(known)
    check_tests(known)
    for line in findings:
        print(line)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
