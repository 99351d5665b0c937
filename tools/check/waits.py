#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests in Python that read a clock, sleep, or wait for a time of their own must be marked `clock`: they run apart.

A file of tests is one named test_*.py in a folder below. What a test calls of its own file counts as its own, fixtures
included. Helpers of the folder (helpers.py and the like) may do all of this: they wait until something happens, for as long as
PATIENCE, and who is late there is told apart from who is wrong. Prints a line per finding; silent when clean.
"""
import ast
import glob
import sys

FOLDERS = ["tests/protocol", "tests/nodes"]
CLOCKS = {("time", name) for name in ("sleep", "time", "monotonic", "perf_counter", "time_ns", "monotonic_ns", "process_time")}
BOUND = "PATIENCE"  # a wait of that length is for what hangs


def words_of(node):
    """("time", "sleep") of time.sleep, and so on."""
    if isinstance(node, ast.Attribute):
        return (*words_of(node.value), node.attr)
    return (node.id,) if isinstance(node, ast.Name) else ("",)


def is_bound(arguments):
    return not arguments or (isinstance(arguments[0], ast.Name) and arguments[0].id == BOUND)


def is_none_or_zero(arguments):
    return bool(arguments) and isinstance(arguments[0], ast.Constant) and not arguments[0].value


def what_it_waits_for(call):
    """How this call depends on real time, or None."""
    words = words_of(call.func)
    if words[-2:] in CLOCKS:
        return ".".join(words[-2:])
    if words[-1] == "settimeout" and not is_bound(call.args) and not is_none_or_zero(call.args):
        return "settimeout"
    if words[-1] == "wait" and not is_bound(call.args):
        return "wait"
    if words[-2:] == ("select", "select") and len(call.args) == 4 and not is_none_or_zero(call.args[3:]):
        return "select"
    return None


def has_clock(marks):
    """Is `clock` one of these decorators, or of these values of pytestmark?"""
    return any(words_of(mark.func if isinstance(mark, ast.Call) else mark)[-1] == "clock" for mark in marks)


def marks_of_file(tree):
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets):
            return node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value]
    return []


def reasons_of(tree):
    """{name of a function or class of the file: (line, why it depends on real time)}"""
    parts = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    reasons = {}
    for name, part in parts.items():
        for node in ast.walk(part):
            what = what_it_waits_for(node) if isinstance(node, ast.Call) else None
            if what:
                reasons.setdefault(name, (node.lineno, what))
    uses = {name: {node.id for node in ast.walk(part) if isinstance(node, ast.Name)} |
            {node.arg for node in ast.walk(part) if isinstance(node, ast.arg)} for name, part in parts.items()}
    more = True
    while more:
        more = False
        for name, used in uses.items():
            found = next((other for other in used if other in reasons), None)
            if name not in reasons and found:
                reasons[name] = (parts[name].lineno, f"{found}, which has {reasons[found][1]}")
                more = True
    return parts, reasons


def findings(path):
    with open(path, encoding="utf-8") as opened:
        tree = ast.parse(opened.read())
    if has_clock(marks_of_file(tree)):
        return
    parts, reasons = reasons_of(tree)
    for name, (line, what) in reasons.items():
        if name.startswith("test_") and not has_clock(parts[name].decorator_list):
            yield f"{path}:{line}: {name} depends on real time ({what}), and isn't marked `clock`"


def main():
    found = [line for folder in FOLDERS for path in sorted(glob.glob(f"{folder}/test_*.py")) for line in findings(path)]
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
