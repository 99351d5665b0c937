#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the unit tests of VARIANT=coverage and reports what they reach, for "make coverage": coverage.py BUILD.

A line per folder: lines and branches that ran at least once. BUILD/coverage/lcov.info says the same of each line, for
editors and genhtml; BUILD/coverage/index.html is written where gcovr is installed. Branches are as gcc counts them, calls
left out. Exit code 1 when a test failed; no share is asked for.
"""
import collections
import concurrent.futures
import glob
import json
import os
import shutil
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CPUS = os.cpu_count() or 1
ENGINE = ("base", "conf", "classifier", "flashindex", "segments", "server/store")
AIM = 90  # per cent of the lines of the engine
# What is no part of the product.
LEFT_OUT = ("tests/", "tools/check/", "/")


def run_tests(build):
    """The names of those that failed."""
    for path in glob.glob(f"{build}/obj/coverage/**/*.gcda", recursive=True):
        os.unlink(path)  # of an earlier run
    listed = subprocess.run(["make", "-s", "VARIANT=coverage", f"BUILD={build}", "list-unit-tests"], check=True,
                            capture_output=True, text=True).stdout.split()
    with concurrent.futures.ThreadPoolExecutor(CPUS) as pool:
        codes = pool.map(lambda program: subprocess.run([program], stdin=subprocess.DEVNULL, capture_output=True).returncode,
                         listed)
    return [program for program, code in zip(listed, codes) if code != 0]


def of_object(note):
    """Returns gcov's data on one object: its files, each with its lines. One that no test ran has a note alone."""
    done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", note], check=True, capture_output=True,
                          text=True)
    return [file for line in done.stdout.splitlines() if line.startswith("{") for file in json.loads(line)["files"]]


def collect(build):
    """{file: {line: [how often, branches]}}. A header's lines are those of all objects together."""
    files = collections.defaultdict(dict)
    notes = sorted(glob.glob(f"{build}/obj/coverage/**/*.gcno", recursive=True))
    with concurrent.futures.ThreadPoolExecutor(CPUS) as pool:
        for found in pool.map(of_object, notes):
            for file in found:
                path = os.path.normpath(file["file"])
                if not path.startswith(LEFT_OUT):
                    add(files[path], file["lines"])
    return files


def add(known, lines):
    for line in lines:
        branches = [branch["count"] for branch in line["branches"] if not branch["throw"]]
        row = known.setdefault(line["line_number"], [0, []])
        row[0] += line["count"]
        if len(row[1]) == len(branches):
            row[1] = [a + b for a, b in zip(row[1], branches)]
        else:  # the same line twice, as two inlined copies have it
            row[1] = max(row[1], branches, key=len)


def write_lcov(files, path):
    with open(path, "w", encoding="utf-8") as out:
        for name, lines in sorted(files.items()):
            out.write(f"TN:\nSF:{os.path.join(TOP, name)}\n")
            for number, (times, branches) in sorted(lines.items()):
                for index, count in enumerate(branches):
                    out.write(f"BRDA:{number},0,{index},{count if times else '-'}\n")
                out.write(f"DA:{number},{times}\n")
            out.write("end_of_record\n")


def folder_of(path):
    return os.path.dirname(path)


def share(reached, all_):
    return f"{100 * reached / all_:5.1f} %" if all_ else "      -"


def print_table(files):
    folders = collections.defaultdict(lambda: [0, 0, 0, 0])
    for path, lines in files.items():
        for name in (folder_of(path), "all of the engine" if in_engine(path) else "all others"):
            row = folders[name]
            row[0] += sum(1 for times, _ in lines.values() if times)
            row[1] += len(lines)
            row[2] += sum(1 for _, branches in lines.values() for count in branches if count)
            row[3] += sum(len(branches) for _, branches in lines.values())
    print(f"{'folder':24} {'lines':>16} {'branches':>18}")
    for name in sorted(folders, key=lambda name: (name.startswith("all"), not in_engine(name + "/"), name)):
        lines, all_lines, branches, all_branches = folders[name]
        missed = f"   below {AIM} %" if in_engine(name + "/") and 100 * lines < AIM * all_lines else ""
        print(f"{name:24} {lines:6}/{all_lines:<6}{share(lines, all_lines)} {branches:6}/{all_branches:<6}"
              f"{share(branches, all_branches)}{missed}")


def in_engine(path):
    return path.startswith(tuple(f"{folder}/" for folder in ENGINE))


def write_html(build, folder):
    """gcovr reads the same counts by itself."""
    if not shutil.which("gcovr"):
        return None
    page = os.path.join(folder, "index.html")
    done = subprocess.run(["gcovr", "--root", TOP, "--object-directory", f"{build}/obj/coverage", "--exclude", "tests/",
                           "--exclude", "tools/check/", "--html-details", page, f"{build}/obj/coverage"],
                          capture_output=True, text=True)
    if done.returncode != 0:
        print(f"gcovr failed: {done.stderr.strip()[-400:]}")
        return None
    return page


def main():
    os.chdir(TOP)
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    bad = run_tests(build)
    folder = os.path.join(build, "coverage")
    os.makedirs(folder, exist_ok=True)
    files = collect(build)
    print_table(files)
    write_lcov(files, os.path.join(folder, "lcov.info"))
    page = write_html(build, folder)
    print(f"each line: {folder}/lcov.info{' and ' + page if page else ''}")
    for program in bad:
        print(f"FAILED {program}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
